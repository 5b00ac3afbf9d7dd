//! Changing the element type of a tensor.

mod casting;

opset! { convert::{Convert}, convert_like::{ConvertLike}, convert_promote_types::{ConvertPromoteTypes} }
