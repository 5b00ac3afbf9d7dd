//! Products of matrices and tensors.

pub(crate) mod product;

opset! {
    mat_mul::{MatMul},
}
