//! Largest, smallest and sorted elements. Indices come as floats unless the file says otherwise.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::{GatherND, Reduction, ScatterElementsUpdate};
use carafe_ops::search::TopK;
use carafe_ops::search::topk::{TopKMode, TopKSort};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("_npi_argmax", 0, |n| arg(n, TopKMode::Max, ElementType::I64, true)),
    rule("_npi_argmin", 0, |n| arg(n, TopKMode::Min, ElementType::I64, true)),
    rule("argmax", 0, |n| arg(n, TopKMode::Max, ElementType::F32, false)),
    rule("argmax_channel", 0, |n| {
        let x = n.input(0)?;
        let (_, indices) = best(n, x, 1, TopKMode::Max)?;
        let indices = n.squeeze(indices, &[1])?;
        Ok(n.convert_like(indices, x)?.into())
    }),
    rule("argmin", 0, |n| arg(n, TopKMode::Min, ElementType::F32, false)),
    rule("argsort", 0, argsort),
    rule("sort", 0, sort),
    rule("topk", 0, topk),
];

/// The best `k` of an axis, best first, with their indices; equals keep their order.
pub(super) fn sorted(n: &mut NodeCx<'_>, x: Value, k: Value, axis: i64, mode: TopKMode) -> Result<(Value, Value)> {
    let op = TopK { axis, mode, sort: TopKSort::Value, index_element_type: ElementType::I64, stable: true };
    let both = n.emit_all(op, &[x, k])?;
    Ok((both[0], both[1]))
}

/// Of each batch the rows by their numbers: `[B, N, ..]` and `[B, K]` give `[B, K, ..]`. A Gather with a batch axis of one reads
/// past its data in OpenVINO.
pub(super) fn rows_at(n: &mut NodeCx<'_>, data: Value, numbers: Value) -> Result<Value> {
    let numbers = n.unsqueeze(numbers, &[-1])?;
    n.emit(GatherND { batch_dims: 1 }, &[data, numbers])
}

fn best(n: &mut NodeCx<'_>, x: Value, axis: i64, mode: TopKMode) -> Result<(Value, Value)> {
    let one = n.i64(1)?;
    sorted(n, x, one, axis, mode)
}

fn arg(n: &mut NodeCx<'_>, mode: TopKMode, ty: ElementType, is_numpy: bool) -> Result<Outputs> {
    let x = n.input(0)?;
    let keeps = n.flag("keepdims", false)?;
    let Some(axis) = n.opt_int("axis")? else {
        let rank = n.known_rank(x)?;
        let flat = n.reshape(x, &[-1])?;
        let (_, index) = best(n, flat, 0, mode)?;
        let index = n.convert(index, ty)?;
        return Ok(match (keeps, is_numpy) {
            (true, _) => n.reshape(index, &vec![1; rank])?,
            (false, true) => n.reshape(index, &[])?,
            (false, false) => index,
        }
        .into());
    };
    let is_vector = n.rank(x) == Some(1);
    let (_, index) = best(n, x, axis, mode)?;
    let index = n.convert(index, ty)?;
    // Old operators leave one axis at least.
    Ok(if keeps || (is_vector && !is_numpy) { index } else { n.squeeze(index, &[axis])? }.into())
}

// Data, axis and whether it was made flat.
fn subject(n: &mut NodeCx<'_>) -> Result<(Value, i64)> {
    let x = n.input(0)?;
    let axis = n.int("axis", -1)?;
    if n.is_none("axis") { Ok((n.reshape(x, &[-1])?, 0)) } else { Ok((x, axis)) }
}

fn mode(ascending: bool) -> TopKMode {
    if ascending { TopKMode::Min } else { TopKMode::Max }
}

fn argsort(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, axis) = subject(n)?;
    let ascending = n.flag("is_ascend", true)?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    let k = n.length(x, axis)?;
    let (_, indices) = sorted(n, x, k, axis, mode(ascending))?;
    Ok(n.convert(indices, ty)?.into())
}

fn sort(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, axis) = subject(n)?;
    let ascending = n.flag("is_ascend", true)?;
    let k = n.length(x, axis)?;
    Ok(sorted(n, x, k, axis, mode(ascending))?.0.into())
}

fn topk(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let was = n.input(0)?;
    let (x, axis) = subject(n)?;
    let ascending = n.flag("is_ascend", false)?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    // Fewer than one means all.
    let k = match n.int("k", 1)? {
        k if k > 0 => n.i64(k)?,
        _ => n.length(x, axis)?,
    };
    let (values, indices) = sorted(n, x, k, axis, mode(ascending))?;
    match n.word("ret_typ", "indices").as_str() {
        "value" => Ok(values.into()),
        "indices" => Ok(n.convert(indices, ty)?.into()),
        "both" => {
            let indices = n.convert(indices, ty)?;
            Ok(vec![values, indices].into())
        }
        "mask" => {
            let zeros = n.filled_like(x, 0.0)?;
            let ones = n.filled_like(values, 1.0)?;
            let axis = n.i64(axis)?;
            let op = ScatterElementsUpdate { reduction: Reduction::None, use_init_val: true };
            let mask = n.emit(op, &[zeros, indices, ones, axis])?;
            let shape = n.shape_of(was)?;
            Ok(n.reshaped(mask, shape, false)?.into())
        }
        other => Err(n.unknown_word("ret_typ", other, "value, indices, both, mask")),
    }
}
