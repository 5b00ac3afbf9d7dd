//! Wider tensors.

use super::slots::Slots;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::Pad;
use carafe_ops::movement::pad::PadMode;

pub(super) const RULES: &[StaticRule] = &[rule("pad", 0, pad), rule("pad2d", 0, pad2d), rule("pad3d", 0, pad3d)];

// Begin and end of each axis in turns, for all axes.
fn pad(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let pads: Vec<i64> = n.required("paddings")?;
    let value = n.number_of("pad_value", &[], 0.0, x)?;
    let begin: Vec<i64> = pads.iter().step_by(2).copied().collect();
    let end: Vec<i64> = pads.iter().skip(1).step_by(2).copied().collect();
    let (begin, end) = (n.i64s(&begin)?, n.i64s(&end)?);
    let out = n.emit(Pad { pad_mode: PadMode::Constant }, &[x, begin, end, value])?;
    Ok(n.give(&[("Out", out)]))
}

// Top, bottom, left, right.
fn pad2d(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let is_last = n.is_channels_last("data_format")?;
    let pads = n.vector("paddings", &["Paddings"])?.ok_or_else(|| n.fail("`paddings` is missing"))?;
    padded(n, x, pads, 2, is_last, false, "pad_value")
}

// Left, right, top, bottom, front, back.
fn pad3d(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("X")?;
    let is_last = n.is_channels_last("data_format")?;
    let pads = n.vector("paddings", &["Paddings"])?.ok_or_else(|| n.fail("`paddings` is missing"))?;
    let value = if n.attr_value("value").is_some() { "value" } else { "pad_value" };
    padded(n, x, pads, 3, is_last, true, value)
}

// `pads` is begin and end of each spatial axis in turns, the last axis first where `is_backward`.
fn padded(
    n: &mut NodeCx<'_>,
    x: Value,
    pads: Value,
    spatial: usize,
    is_last: bool,
    is_backward: bool,
    attribute: &str,
) -> Result<Outputs> {
    let mode: String = n.attr("mode", "constant".to_string())?;
    let value = n.number_of(attribute, &[], 0.0, x)?;
    let rank = n.known_rank(x)?;
    if rank != spatial + 2 {
        return Err(n.fail(format!("the input has {rank} axes, expected {}", spatial + 2)));
    }
    let first = if is_last { 1 } else { 2 };
    // Where begin and end of each axis of the tensor stand in the list.
    let at = |axis: usize, end: i64| {
        let i = axis.checked_sub(first).filter(|i| *i < spatial)?;
        let i = if is_backward { spatial - 1 - i } else { i };
        Some(2 * i as i64 + end)
    };
    if mode == "circular" {
        let out = wrapped(n, x, pads, rank, &at)?;
        return Ok(n.give(&[("Out", out)]));
    }
    let pad_mode = match mode.as_str() {
        "constant" => PadMode::Constant,
        "reflect" => PadMode::Reflect,
        "replicate" | "edge" => PadMode::Edge,
        other => return Err(n.unsupported(format!("`mode` is `{other}`"))),
    };
    // A zero behind the list stands for the axes without pads.
    let zero = n.i64s(&[0])?;
    let pads = n.concat(&[pads, zero], 0)?;
    let mut both = vec![];
    for end in [0, 1] {
        let order: Vec<i64> = (0..rank).map(|axis| at(axis, end).unwrap_or(2 * spatial as i64)).collect();
        let order = n.i64s(&order)?;
        both.push(n.gather(pads, order, 0)?);
    }
    let out = match pad_mode {
        PadMode::Constant => n.emit(Pad { pad_mode }, &[x, both[0], both[1], value])?,
        _ => n.emit(Pad { pad_mode }, &[x, both[0], both[1]])?,
    };
    Ok(n.give(&[("Out", out)]))
}

// The other end of an axis goes in front of it, its start behind it.
fn wrapped(
    n: &mut NodeCx<'_>,
    x: Value,
    pads: Value,
    rank: usize,
    at: &dyn Fn(usize, i64) -> Option<i64>,
) -> Result<Value> {
    let pads = n.ints(pads).ok_or_else(|| n.unsupported("pads of the mode `circular` must be known"))?;
    let mut out = x;
    for axis in 0..rank {
        let (Some(begin), Some(end)) = (at(axis, 0), at(axis, 1)) else { continue };
        let (begin, end) = (pads[begin as usize], pads[end as usize]);
        let mut parts = vec![];
        if begin > 0 {
            parts.push(n.part(out, -begin, i64::MAX, axis as i64)?);
        }
        parts.push(out);
        if end > 0 {
            parts.push(n.part(out, 0, end, axis as i64)?);
        }
        out = n.concat(&parts, axis as i64)?;
    }
    Ok(out)
}
