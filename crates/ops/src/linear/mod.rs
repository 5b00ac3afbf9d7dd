//! Products of matrices and tensors.

mod contraction;
mod equation;
pub(crate) mod product;

opset! {
    einsum::{Einsum},
    grouped_mat_mul::{GroupedMatMul},
    inverse::{Inverse},
    mat_mul::{MatMul},
    scaled_dot_product_attention::{ScaledDotProductAttention},
}
