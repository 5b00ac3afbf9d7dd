//! Tests of protobuf text, in one binary: linking costs more than running.

mod encode;
mod text;
