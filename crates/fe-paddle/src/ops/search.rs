//! The largest, the sorted and the distinct.

use super::slots::Slots;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::search::topk::{TopKMode, TopKSort};
use carafe_ops::search::{CumSum, SearchSorted, TopK, Unique};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("arg_max", 0, |n| arg(n, TopKMode::Max)),
    rule("arg_min", 0, |n| arg(n, TopKMode::Min)),
    rule("argsort", 0, argsort),
    rule("cumsum", 0, cumsum),
    rule("kthvalue", 0, kthvalue),
    rule("searchsorted", 0, searchsorted),
    rule("top_k", 0, |n| top_k(n, "K")),
    rule("top_k_v2", 0, |n| top_k(n, "K")),
    rule("unique", 0, unique),
];

// The first `k` along an axis, values and indices.
fn sorted(n: &mut NodeCx<'_>, x: Value, k: Value, axis: i64, mode: TopKMode, sort: TopKSort) -> Result<(Value, Value)> {
    let op = TopK { axis, mode, sort, index_element_type: ElementType::I64, stable: sort == TopKSort::Value };
    let out = n.emit_all(op, &[x, k])?;
    Ok((out[0], out[1]))
}

// Only one of the equals is asked for: the first of them.
fn arg(n: &mut NodeCx<'_>, mode: TopKMode) -> Result<Outputs> {
    let mut x = n.slot("X")?;
    let is_flat: bool = n.attr("flatten", false)?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::I64);
    let keeps: bool = n.attr("keepdims", false)?;
    let mut axis = n.known_int("axis", &[], -1)?;
    let rank = n.rank(x);
    if is_flat || rank == Some(0) {
        x = n.reshape(x, &[-1])?;
        axis = 0;
    }
    if n.ty(x) == ElementType::Boolean {
        x = n.convert(x, ElementType::I32)?;
    }
    let one = n.i64(1)?;
    let (_, at) = sorted(n, x, one, axis, mode, TopKSort::Value)?;
    let mut out = match (keeps, is_flat) {
        (true, false) => at,
        (true, true) => {
            let rank = rank.ok_or_else(|| n.unsupported("the rank of an input must be known"))?;
            n.reshape(at, &vec![1; rank])?
        }
        (false, _) => n.squeeze(at, &[axis])?,
    };
    out = n.convert(out, ty)?;
    Ok(n.give(&[("Out", out)]))
}

fn argsort(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let axis: i64 = n.attr("axis", -1)?;
    let is_down: bool = n.attr("descending", false)?;
    n.ignore(&["stable"]);
    if n.rank(x) == Some(0) {
        let at = n.i64(0)?;
        return Ok(n.give(&[("Out", x), ("Indices", at)]));
    }
    let rank = n.known_rank(x)?;
    let at = n.axis(axis, rank)? as i64;
    let k = n.length(x, at)?;
    let mode = if is_down { TopKMode::Max } else { TopKMode::Min };
    let (values, indices) = sorted(n, x, k, axis, mode, TopKSort::Value)?;
    Ok(n.give(&[("Out", values), ("Indices", indices)]))
}

fn top_k(n: &mut NodeCx<'_>, slot: &str) -> Result<Outputs> {
    let x = n.slot("X")?;
    let axis: i64 = n.attr("axis", -1)?;
    let is_largest: bool = n.attr("largest", true)?;
    n.ignore(&["sorted"]);
    let k = match n.vector("k", &[slot])? {
        Some(k) => n.as_scalar(k)?,
        None => n.i64(1)?,
    };
    let mode = if is_largest { TopKMode::Max } else { TopKMode::Min };
    let (values, indices) = sorted(n, x, k, axis, mode, TopKSort::Value)?;
    Ok(n.give(&[("Out", values), ("Indices", indices)]))
}

// The k-th smallest, counted from 1.
fn kthvalue(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let axis: i64 = n.attr("axis", -1)?;
    let k: i64 = n.attr("k", 1)?;
    let keeps: bool = n.attr("keepdim", false)?;
    let count = n.i64(k)?;
    let (values, indices) = sorted(n, x, count, axis, TopKMode::Min, TopKSort::Value)?;
    let mut out = vec![];
    for v in [values, indices] {
        let v = n.part(v, k - 1, k, axis)?;
        out.push(if keeps { v } else { n.squeeze(v, &[axis])? });
    }
    Ok(n.give(&[("Out", out[0]), ("Indices", out[1])]))
}

fn cumsum(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut x = n.slot("X")?;
    let is_flat: bool = n.attr("flatten", false)?;
    let mut axis = n.known_int("axis", &[], -1)?;
    let exclusive: bool = n.attr("exclusive", false)?;
    let reverse: bool = n.attr("reverse", false)?;
    if is_flat || n.rank(x) == Some(0) {
        x = n.reshape(x, &[-1])?;
        axis = 0;
    }
    let axis = n.i64(axis)?;
    let out = n.emit(CumSum { exclusive, reverse }, &[x, axis])?;
    Ok(n.give(&[("Out", out)]))
}

fn searchsorted(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (sequence, values) = (n.slot("SortedSequence")?, n.slot("Values")?);
    let right_mode: bool = n.attr("right", false)?;
    let is_small: bool = n.attr("out_int32", false)?;
    let output_type = if is_small { ElementType::I32 } else { ElementType::I64 };
    let (a, b) = (n.known_rank(sequence)?, n.known_rank(values)?);
    let flat = if a == 1 && b != 1 { n.reshape(values, &[-1])? } else { values };
    let mut out = n.emit(SearchSorted { right_mode, output_type }, &[sequence, flat])?;
    if flat != values {
        let shape = n.shape_of(values)?;
        out = n.reshaped(out, shape, false)?;
    }
    Ok(n.give(&[("Out", out)]))
}

fn unique(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::I64);
    let axis: Vec<i64> = n.attr("axis", vec![])?;
    let is_sorted: bool = n.attr("is_sorted", false)?;
    n.ignore(&["return_index", "return_inverse", "return_counts"]);
    let op = Unique { sorted: is_sorted, index_element_type: ty, count_element_type: ty };
    let out = match axis.first() {
        Some(axis) => {
            let axis = n.i64(*axis)?;
            n.emit_all(op, &[x, axis])?
        }
        None => n.emit_all(op, &[x])?,
    };
    Ok(n.give(&[("Out", out[0]), ("Indices", out[1]), ("Index", out[2]), ("Counts", out[3])]))
}
