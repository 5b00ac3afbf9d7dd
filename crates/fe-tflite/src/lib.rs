//! TensorFlow Lite models.

#![forbid(unsafe_code)]
#![warn(missing_docs)]
