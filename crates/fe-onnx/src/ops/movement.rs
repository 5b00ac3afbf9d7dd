//! Elements that only move: shapes, axes, repetition, blocks. Axes of Squeeze and Unsqueeze moved from an attribute to an
//! input at version 13.

use super::shapes::{flatten, rank, scalar, vector};
use carafe_frontend::{Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::{OneHot, one_hot::NegativeIndices};
use carafe_ops::movement::{
    Broadcast, DepthToSpace, Identity, Reshape, ReverseSequence, SpaceToDepth, Squeeze, Tile, Transpose, Unsqueeze,
    broadcast::BroadcastMode, depth_to_space::BlockOrder,
};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Concat", 1, |n| concat(n, Some(1))),
    rule("Concat", 4, |n| concat(n, None)),
    rule("DepthToSpace", 1, depth_to_space),
    rule("Expand", 8, expand),
    rule("Flatten", 1, |n| {
        let (axis, x) = (n.attr("axis", 1)?, n.input(0)?);
        Ok(flatten(n, x, axis)?.into())
    }),
    rule("Identity", 1, identity),
    rule("Reshape", 1, reshape_attribute),
    rule("Reshape", 5, reshape),
    rule("ReverseSequence", 10, reverse_sequence),
    rule("SpaceToDepth", 1, space_to_depth),
    rule("Squeeze", 1, |n| {
        let axes = axes_attribute(n)?;
        squeeze(n, axes)
    }),
    rule("Squeeze", 13, |n| {
        let axes = n.opt(1)?;
        squeeze(n, axes)
    }),
    rule("Tile", 1, tile_axis),
    rule("Tile", 6, tile),
    rule("Transpose", 1, transpose),
    rule("Unsqueeze", 1, |n| {
        let axes = axes_attribute(n)?;
        unsqueeze(n, axes)
    }),
    rule("Unsqueeze", 13, |n| {
        let axes = n.opt(1)?;
        unsqueeze(n, axes)
    }),
];

fn concat(n: &mut NodeCx<'_>, default: Option<i64>) -> Result<Outputs> {
    let axis: i64 = match default {
        Some(axis) => n.attr("axis", axis)?,
        None => n.required("axis")?,
    };
    let inputs = n.inputs()?;
    Ok(n.concat(&inputs, axis)?.into())
}

fn depth_to_space(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let block_size: i64 = n.required("blocksize")?;
    let mode: String = n.attr("mode", "DCR".to_string())?;
    let mode = match mode.as_str() {
        "DCR" => BlockOrder::BlocksFirst,
        "CRD" => BlockOrder::DepthFirst,
        other => return Err(n.fail(format!("attribute `mode` must be DCR or CRD, found {other}"))),
    };
    let x = image(n)?;
    Ok(n.emit(DepthToSpace { block_size, mode }, &[x])?.into())
}

fn space_to_depth(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let block_size: i64 = n.required("blocksize")?;
    let mode: String = n.attr("mode", "DCR".to_string())?;
    let mode = match mode.as_str() {
        "DCR" => BlockOrder::BlocksFirst,
        "CRD" => BlockOrder::DepthFirst,
        other => return Err(n.fail(format!("attribute `mode` must be DCR or CRD, found {other}"))),
    };
    let x = image(n)?;
    Ok(n.emit(SpaceToDepth { block_size, mode }, &[x])?.into())
}

// Our operations take more than images, ONNX and its readers do not.
fn image(n: &mut NodeCx<'_>) -> Result<Value> {
    let x = n.input(0)?;
    match n.rank(x) {
        None | Some(4) => Ok(x),
        Some(_) => Err(n.fail(format!("data must have 4 axes, found [{}]", n.shape(x)))),
    }
}

fn expand(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, shape) = (n.input(0)?, n.input(1)?);
    Ok(n.emit(Broadcast { mode: BroadcastMode::Bidirectional }, &[x, shape])?.into())
}

// Sequences and optionals pass as they are.
fn identity(n: &mut NodeCx<'_>) -> Result<Outputs> {
    match n.item(0)? {
        Some(Item::Tensor(x)) => Ok(n.emit(Identity, &[x])?.into()),
        Some(other) => Ok(other.into()),
        None => Err(n.fail("input 0 is required and missing")),
    }
}

fn reshape_attribute(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["consumed_inputs"]);
    if n.attr_value("shape").is_none() && n.has(1) {
        n.warn("Reshape of version 1 has its shape as an attribute; the input is taken");
        return reshape(n);
    }
    let shape: Vec<i64> = n.required("shape")?;
    let x = n.input(0)?;
    Ok(n.reshape(x, &shape)?.into())
}

fn reshape(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.overlook(&["special_zero"]);
    let zero_is_zero: bool = n.attr("allowzero", false)?;
    let (x, shape) = (n.input(0)?, n.input(1)?);
    Ok(n.emit(Reshape { special_zero: !zero_is_zero }, &[x, shape])?.into())
}

fn reverse_sequence(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (batch_axis, seq_axis): (i64, i64) = (n.attr("batch_axis", 1)?, n.attr("time_axis", 0)?);
    if !matches!((batch_axis, seq_axis), (0, 1) | (1, 0)) {
        return Err(n.fail(format!(
            "`batch_axis` and `time_axis` must be 0 and 1 or 1 and 0, found {batch_axis} and {seq_axis}"
        )));
    }
    let (x, lengths) = (n.input(0)?, n.input(1)?);
    Ok(n.emit(ReverseSequence { batch_axis, seq_axis }, &[x, lengths])?.into())
}

fn axes_attribute(n: &mut NodeCx<'_>) -> Result<Option<Value>> {
    match n.opt_attr::<Vec<i64>>("axes")? {
        Some(axes) => n.i64s(&axes).map(Some),
        None => Ok(None),
    }
}

fn squeeze(n: &mut NodeCx<'_>, axes: Option<Value>) -> Result<Outputs> {
    let x = n.input(0)?;
    let op = Squeeze { allow_axis_skip: false };
    Ok(match axes {
        Some(axes) => n.emit(op, &[x, axes])?,
        None => n.emit(op, &[x])?,
    }
    .into())
}

fn unsqueeze(n: &mut NodeCx<'_>, axes: Option<Value>) -> Result<Outputs> {
    let x = n.input(0)?;
    let axes = axes.ok_or_else(|| n.fail("the axes are required and missing"))?;
    Ok(n.emit(Unsqueeze, &[x, axes])?.into())
}

// The first version repeated along a single axis.
fn tile_axis(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, tiles, axis) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (tiles, axis) = (scalar(n, tiles)?, scalar(n, axis)?);
    let (tiles, axis) = (n.convert(tiles, ElementType::I64)?, n.convert(axis, ElementType::I64)?);
    let depth = rank(n, x)?;
    let (depth, once) = (scalar(n, depth)?, n.i64(1)?);
    let op = OneHot { axis: 0, negative_indices_mode: NegativeIndices::Normalize };
    let repeats = n.emit(op, &[axis, depth, tiles, once])?;
    Ok(n.emit(Tile, &[x, repeats])?.into())
}

fn tile(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, repeats) = (n.input(0)?, n.input(1)?);
    let repeats = vector(n, repeats)?;
    if let Some(bad) = n.ints(repeats).unwrap_or_default().iter().find(|r| **r < 0) {
        return Err(n.fail(format!("data cannot be repeated {bad} times")));
    }
    Ok(n.emit(Tile, &[x, repeats])?.into())
}

// No order at all turns the axes around, on both sides.
fn transpose(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let perm: Option<Vec<i64>> = n.opt_attr("perm")?;
    let x = n.input(0)?;
    let order = match (perm, n.rank(x)) {
        (Some(perm), _) => perm,
        (None, Some(rank)) => (0..rank as i64).rev().collect(),
        (None, None) => vec![],
    };
    let order = n.i64s(&order)?;
    Ok(n.emit(Transpose, &[x, order])?.into())
}
