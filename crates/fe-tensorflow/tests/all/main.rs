//! Tests of TensorFlow models, in one binary: linking costs more than running.

mod bad_bytes;
mod bad_checkpoints;
mod bad_graphs;
mod common;
mod containers;
mod control;
mod coverage;
mod frozen;
mod ops;
mod references;
mod xla;
