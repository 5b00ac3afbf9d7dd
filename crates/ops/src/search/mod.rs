//! Operations that order, look up and accumulate along an axis.

opset! {
    bucketize::{Bucketize}, cum_sum::{CumSum}, search_sorted::{SearchSorted}, topk::{TopK, TopKV1, TopKV3},
    unique::{Unique},
}
