//! Products of attention over projections that are stored interleaved: each head has its queries, keys and values side by side
//! in the last axis of `[sequence, batch, heads * parts * size]`.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convert::Convert;
use carafe_ops::linear::MatMul;
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("_contrib_div_sqrt_dim", 0, div_sqrt_dim),
    rule("_contrib_interleaved_matmul_encdec_qk", 0, |n| scores(n, false)),
    rule("_contrib_interleaved_matmul_encdec_valatt", 0, |n| values(n, 2)),
    rule("_contrib_interleaved_matmul_selfatt_qk", 0, |n| scores(n, true)),
    rule("_contrib_interleaved_matmul_selfatt_valatt", 0, |n| values(n, 3)),
];

/// `x / sqrt(d)` for the size `d` of the last axis.
fn over_root(n: &mut NodeCx<'_>, x: Value, size: Value) -> Result<Value> {
    let size = match n.ty(x) {
        ElementType::Dynamic => n.convert_like(size, x)?,
        ty => n.emit(Convert { destination_type: ty }, &[size])?,
    };
    let root = n.sqrt(size)?;
    n.over(x, root)
}

fn div_sqrt_dim(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let size = n.length(x, -1)?;
    Ok(over_root(n, x, size)?.into())
}

// One of the interleaved parts as `[batch * heads, sequence, size]`.
fn part(n: &mut NodeCx<'_>, x: Value, heads: i64, parts: i64, index: i64) -> Result<Value> {
    // [T, B, heads, parts, D]
    let x = n.reshape(x, &[0, 0, heads, parts, -1])?;
    let at = n.i64(index)?;
    let x = n.gather(x, at, 3)?;
    let x = n.transpose(x, &[1, 2, 0, 3])?;
    // The first two axes become one.
    let tail = n.dims_at(x, &[2, 3])?;
    let first = n.i64s(&[-1])?;
    let shape = n.concat(&[first, tail], 0)?;
    n.reshaped(x, shape, false)
}

fn scores(n: &mut NodeCx<'_>, is_self: bool) -> Result<Outputs> {
    let heads = n.needed_int("heads")?;
    let (q, k) = match is_self {
        true => {
            let x = n.input(0)?;
            (part(n, x, heads, 3, 0)?, part(n, x, heads, 3, 1)?)
        }
        false => {
            let (q, kv) = (n.input(0)?, n.input(1)?);
            (part(n, q, heads, 1, 0)?, part(n, kv, heads, 2, 0)?)
        }
    };
    let size = n.length(q, 2)?;
    let q = over_root(n, q, size)?;
    Ok(n.product(q, k, true)?.into())
}

// Back to `[sequence, batch, heads * size]`.
fn values(n: &mut NodeCx<'_>, parts: i64) -> Result<Outputs> {
    let heads = n.needed_int("heads")?;
    let (x, attention) = (n.input(0)?, n.input(1)?);
    let v = part(n, x, heads, parts, parts - 1)?;
    let y = n.emit(MatMul { transpose_a: false, transpose_b: false }, &[attention, v])?;
    let tail = n.dims_at(y, &[1, 2])?;
    let first = n.i64s(&[-1, heads])?;
    let shape = n.concat(&[first, tail], 0)?;
    let y = n.reshaped(y, shape, false)?;
    let y = n.transpose(y, &[2, 0, 1, 3])?;
    Ok(n.reshape(y, &[0, 0, -1])?.into())
}
