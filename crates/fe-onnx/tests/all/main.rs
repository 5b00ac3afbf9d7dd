//! Tests of ONNX files, in one binary: linking costs more than running.

mod bad_bytes;
mod bad_graphs;
mod bad_tensors;
mod common;
mod decoded;
mod forms;
mod found_by_fuzzing;
mod keep_unknown;
mod large;
mod loose_models;
mod telemetry;
mod unfolding;
