//! The activation that operators may end with.

use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::activation::Relu;
use carafe_ops::math::Tanh;

/// Applies what `fused_activation_function` says.
pub(super) fn activated(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let name: String = n.attr("fused_activation_function", "NONE".to_string())?;
    named(n, x, &name)
}

/// Applies an activation by its name in the schema.
pub(super) fn named(n: &mut NodeCx<'_>, x: Value, name: &str) -> Result<Value> {
    match name {
        "NONE" => Ok(x),
        "RELU" => n.emit(Relu, &[x]),
        "RELU_N1_TO_1" => n.between(x, -1.0, 1.0),
        "RELU6" => n.between(x, 0.0, 6.0),
        "TANH" => n.emit(Tanh, &[x]),
        "SIGN_BIT" => {
            let zero = n.scalar_like(x, 0.0)?;
            let negative = n.less(x, zero)?;
            n.convert_like(negative, x)
        }
        other => Err(n.unsupported(format!("activation `{other}` is not known"))),
    }
}
