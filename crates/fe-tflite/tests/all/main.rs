//! Tests of TFLite files, in one binary: linking costs more than running.

mod bad_input;
mod cases;
mod common;
mod coverage;
mod files;
mod networks;
