//! Tests of MXNet models, in one binary: linking costs more than running.

mod cases;
mod coverage;
