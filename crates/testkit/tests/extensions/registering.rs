//! registering
