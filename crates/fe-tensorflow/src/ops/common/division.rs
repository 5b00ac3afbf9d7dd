//! Quotients and remainders. TensorFlow has both roundings for integers; floats round only where they are asked to.

use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::{Divide, FloorMod, Mod};

/// `a / b`, integers rounded down, floats rounded down too.
pub fn floor_div(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    let y = n.over(a, b)?;
    if n.ty(a).is_float() { n.floor(y) } else { Ok(y) }
}

/// `a / b`, integers rounded toward zero.
pub fn divide(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    n.emit(Divide { m_pythondiv: n.ty(a).is_float(), ..Divide::default() }, &[a, b])
}

/// What is left of `a` by `b`, with the sign of `b`.
pub fn floor_mod(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    n.emit(FloorMod::default(), &[a, b])
}

/// What is left of `a` by `b`, with the sign of `a`.
pub fn truncate_mod(n: &mut NodeCx<'_>, a: Value, b: Value) -> Result<Value> {
    n.emit(Mod::default(), &[a, b])
}
