//! Summaries of sliding or adaptive windows.

mod adaptive;
mod pool;

opset! {
    adaptive_avg_pool::{AdaptiveAvgPool},
    adaptive_max_pool::{AdaptiveMaxPool},
    avg_pool::{AvgPool, AvgPoolV1, AvgPoolV14},
    max_pool::{MaxPool, MaxPoolV1, MaxPoolV8},
}
