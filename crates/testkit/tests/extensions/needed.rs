//! needed
