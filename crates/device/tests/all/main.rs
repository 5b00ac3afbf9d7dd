//! Tests of asynchronous requests, in one binary: linking costs more than running.

mod async_queue;
mod async_request;
mod async_stress;
mod fake;
