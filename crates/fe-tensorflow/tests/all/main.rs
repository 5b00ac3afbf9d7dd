//! Tests of TensorFlow models, in one binary: linking costs more than running.

mod common;
mod containers;
mod control;
mod frozen;
mod ops;
mod references;
