//! Reductions of a tensor over some of its axes.

mod reduction;

opset! {
    reduce_l1::{ReduceL1}, reduce_l2::{ReduceL2}, reduce_logical_and::{ReduceLogicalAnd},
    reduce_logical_or::{ReduceLogicalOr}, reduce_max::{ReduceMax}, reduce_mean::{ReduceMean}, reduce_min::{ReduceMin},
    reduce_prod::{ReduceProd}, reduce_sum::{ReduceSum},
}
