//! Tests of HETERO, MULTI, AUTO and BATCH, in one binary: linking costs more than running.

mod asynchronous;
mod auto;
mod batch;
mod common;
mod hetero;
mod hetero_random;
