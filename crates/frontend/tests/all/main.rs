//! Tests of what all formats share, in one binary: linking costs more than running.

mod graphs;
mod toy;
