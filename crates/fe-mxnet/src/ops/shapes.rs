//! Axes: their order, those of size 1, repetition; and shapes as values.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::depth_to_space::BlockOrder;
use carafe_ops::movement::pad::PadMode;
use carafe_ops::movement::reverse::ReverseMode;
use carafe_ops::movement::{DepthToSpace, Pad, Reverse, SpaceToDepth, Squeeze, Tile, Transpose};

pub(super) const RULES: &[StaticRule] = &[
    rule("Cast", 0, cast),
    rule("Pad", 0, pad),
    rule("SwapAxis", 0, swap_axis),
    rule("_np_moveaxis", 0, move_axis),
    rule("_np_squeeze", 0, |n| squeeze(n, false)),
    rule("_np_transpose", 0, transpose),
    rule("_npi_broadcast_to", 0, |n| broadcast_to(n, &[-2])),
    rule("_npi_flip", 0, reverse),
    rule("_npi_pad", 0, numpy_pad),
    rule("amp_cast", 0, amp_cast),
    rule("broadcast_axis", 0, broadcast_axis),
    rule("broadcast_like", 0, broadcast_like),
    rule("broadcast_to", 0, |n| broadcast_to(n, &[0])),
    rule("depth_to_space", 0, |n| {
        let (x, block_size) = (n.input(0)?, n.needed_int("block_size")?);
        Ok(n.emit(DepthToSpace { block_size, mode: BlockOrder::BlocksFirst }, &[x])?.into())
    }),
    rule("expand_dims", 0, |n| {
        let (x, axis) = (n.input(0)?, n.needed_int("axis")?);
        Ok(n.unsqueeze(x, &[axis])?.into())
    }),
    rule("repeat", 0, repeat),
    rule("reverse", 0, reverse),
    rule("shape_array", 0, |n| {
        let x = n.input(0)?;
        Ok(n.shape_of(x)?.into())
    }),
    rule("size_array", 0, |n| {
        let x = n.input(0)?;
        let size = n.n_elements(x)?;
        Ok(n.reshape(size, &[1])?.into())
    }),
    rule("space_to_depth", 0, |n| {
        let (x, block_size) = (n.input(0)?, n.needed_int("block_size")?);
        Ok(n.emit(SpaceToDepth { block_size, mode: BlockOrder::BlocksFirst }, &[x])?.into())
    }),
    rule("squeeze", 0, |n| squeeze(n, true)),
    rule("tile", 0, tile),
    rule("transpose", 0, transpose),
];

fn cast(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let ty = n.dtype("dtype")?.ok_or_else(|| n.fail("attribute `dtype` is required and missing"))?;
    Ok(n.convert(x, ty)?.into())
}

// Whole numbers stay what they are.
fn amp_cast(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let ty = n.dtype("dtype")?.ok_or_else(|| n.fail("attribute `dtype` is required and missing"))?;
    Ok(if n.ty(x).is_float() { n.convert(x, ty)? } else { x }.into())
}

fn transpose(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let axes = n.opt_ints("axes")?.unwrap_or_default();
    // No axes stand for the reverse of all.
    let axes = if axes.is_empty() {
        let rank = n.known_rank(x)? as i64;
        (0..rank).rev().collect()
    } else if axes.iter().any(|a| *a < 0) {
        let rank = n.known_rank(x)?;
        axes.iter().map(|a| n.axis(*a, rank).map(|a| a as i64)).collect::<Result<Vec<_>>>()?
    } else {
        axes
    };
    let order = n.i64s(&axes)?;
    Ok(n.emit(Transpose, &[x, order])?.into())
}

fn swap_axis(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let rank = n.known_rank(x)?;
    let (a, b) = (n.int("dim1", 0)?, n.int("dim2", 0)?);
    let (a, b) = (n.axis(a, rank)?, n.axis(b, rank)?);
    let mut order: Vec<i64> = (0..rank as i64).collect();
    order.swap(a, b);
    Ok(n.transpose(x, &order)?.into())
}

fn move_axis(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let rank = n.known_rank(x)?;
    let absolute = |n: &NodeCx<'_>, all: Vec<i64>| all.iter().map(|a| n.axis(*a, rank)).collect::<Result<Vec<_>>>();
    let (source, target) = (n.ints_of("source")?, n.ints_of("destination")?);
    let (source, target) = (absolute(n, source)?, absolute(n, target)?);
    if source.len() != target.len() {
        return Err(n.fail(format!("moves {} axes to {}", source.len(), target.len())));
    }
    let mut order: Vec<i64> = (0..rank).filter(|a| !source.contains(a)).map(|a| a as i64).collect();
    let mut moves: Vec<(usize, usize)> = target.into_iter().zip(source).collect();
    moves.sort_unstable();
    moves.into_iter().for_each(|(to, from)| order.insert(to.min(order.len()), from as i64));
    Ok(n.transpose(x, &order)?.into())
}

fn squeeze(n: &mut NodeCx<'_>, keeps_one: bool) -> Result<Outputs> {
    let x = n.input(0)?;
    let y = match n.opt_ints("axis")? {
        Some(axes) => n.squeeze(x, &axes)?,
        None => n.emit(Squeeze { allow_axis_skip: false }, &[x])?,
    };
    // One axis is left at least.
    Ok(if keeps_one && n.rank(y) == Some(0) { n.reshape(y, &[1])? } else { y }.into())
}

fn tile(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let reps = n.ints_of("reps")?;
    let reps = n.i64s(&reps)?;
    Ok(n.emit(Tile, &[x, reps])?.into())
}

/// Each element several times in a row.
pub(super) fn repeated(n: &mut NodeCx<'_>, x: Value, repeats: i64, axis: i64) -> Result<Value> {
    if repeats == 1 {
        return Ok(x);
    }
    let rank = n.known_rank(x)?;
    let axis = n.axis(axis, rank)?;
    let shape = n.shape_of(x)?;
    let wide = n.unsqueeze(x, &[axis as i64 + 1])?;
    let mut reps = vec![1; rank + 1];
    reps[axis + 1] = repeats;
    let reps = n.i64s(&reps)?;
    let y = n.emit(Tile, &[wide, reps])?;
    let mut factors = vec![1; rank];
    factors[axis] = repeats;
    let factors = n.i64s(&factors)?;
    let shape = n.times(shape, factors)?;
    n.reshaped(y, shape, false)
}

fn repeat(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let repeats = n.needed_int("repeats")?;
    Ok(match n.opt_int("axis")? {
        Some(axis) => repeated(n, x, repeats, axis)?,
        None => {
            let flat = n.reshape(x, &[-1])?;
            repeated(n, flat, repeats, 0)?
        }
    }
    .into())
}

fn reverse(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let axes = n.ints_of("axis")?;
    let rank = n.known_rank(x)?;
    let axes = axes.iter().map(|a| n.axis(*a, rank).map(|a| a as i64)).collect::<Result<Vec<_>>>()?;
    let axes = n.i64s(&axes)?;
    Ok(n.emit(Reverse { mode: ReverseMode::Index }, &[x, axes])?.into())
}

// Some numbers stand for the size that is there.
fn broadcast_to(n: &mut NodeCx<'_>, kept: &[i64]) -> Result<Outputs> {
    let x = n.input(0)?;
    let shape = n.ints_of("shape")?;
    // A size of 1 is stretched by nobody.
    let shape: Vec<i64> = shape.iter().map(|d| if kept.contains(d) { 1 } else { *d }).collect();
    let shape = n.i64s(&shape)?;
    Ok(n.stretch(x, shape)?.into())
}

fn broadcast_axis(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (axes, sizes) = (n.ints_of("axis")?, n.ints_of("size")?);
    if axes.len() != sizes.len() {
        return Err(n.fail(format!("`axis` has {} numbers, `size` has {}", axes.len(), sizes.len())));
    }
    let rank = n.known_rank(x)?;
    let mut shape = vec![1; rank];
    for (axis, size) in axes.iter().zip(sizes) {
        shape[n.axis(*axis, rank)?] = size;
    }
    let shape = n.i64s(&shape)?;
    Ok(n.stretch(x, shape)?.into())
}

fn broadcast_like(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, like) = (n.input(0)?, n.input(1)?);
    let (own, theirs) = (n.opt_ints("lhs_axes")?, n.opt_ints("rhs_axes")?);
    let shape = match (own, theirs) {
        (None, None) => n.shape_of(like)?,
        (Some(own), Some(theirs)) if own.len() == theirs.len() => {
            let (rank, like_rank) = (n.known_rank(x)?, n.known_rank(like)?);
            let one = n.i64s(&[1])?;
            let mut parts = vec![one; rank];
            for (a, b) in own.iter().zip(theirs) {
                let (a, b) = (n.axis(*a, rank)?, n.axis(b, like_rank)?);
                parts[a] = n.dims_at(like, &[b as i64])?;
            }
            n.concat(&parts, 0)?
        }
        _ => return Err(n.fail("`lhs_axes` and `rhs_axes` must have as many numbers as each other")),
    };
    Ok(n.stretch(x, shape)?.into())
}

fn padding(n: &mut NodeCx<'_>, x: Value, pairs: &[(i64, i64)], mode: PadMode, value: f64) -> Result<Outputs> {
    let (begin, end): (Vec<i64>, Vec<i64>) = pairs.iter().copied().unzip();
    let (begin, end) = (n.i64s(&begin)?, n.i64s(&end)?);
    let value = n.scalar_like(x, value)?;
    let inputs = [x, begin, end, value];
    let used = if mode == PadMode::Constant { &inputs[..] } else { &inputs[..3] };
    Ok(n.emit(Pad { pad_mode: mode }, used)?.into())
}

fn pad(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let width = n.ints_of("pad_width")?;
    let value = n.float("constant_value", 0.0)?;
    let mode = match n.word("mode", "").as_str() {
        "constant" => PadMode::Constant,
        "edge" => PadMode::Edge,
        "reflect" => PadMode::Reflect,
        other => return Err(n.unknown_word("mode", other, "constant, edge, reflect")),
    };
    if width.len() % 2 != 0 {
        return Err(n.fail(format!("`pad_width` has {} numbers, two for each axis are expected", width.len())));
    }
    let pairs: Vec<(i64, i64)> = width.chunks_exact(2).map(|p| (p[0], p[1])).collect();
    padding(n, x, &pairs, mode, value)
}

// `pad_width` is a tuple of pairs.
fn numpy_pad(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let text = n.word("pad_width", "");
    let numbers: Option<Vec<i64>> = text
        .split(|c: char| !(c.is_ascii_digit() || c == '-'))
        .filter(|t| !t.is_empty())
        .map(|t| t.parse().ok())
        .collect();
    let numbers = numbers.filter(|p| p.len() % 2 == 0);
    let numbers = numbers.ok_or_else(|| n.fail(format!("`pad_width` must be pairs of numbers, found `{text}`")))?;
    let value = n.float("constant_value", 0.0)?;
    let even = n.word("reflect_type", "even");
    let mode = match n.word("mode", "constant").as_str() {
        "constant" => PadMode::Constant,
        "edge" => PadMode::Edge,
        "reflect" if even == "even" => PadMode::Reflect,
        "symmetric" if even == "even" => PadMode::Symmetric,
        other => return Err(n.unknown_word("mode", other, "constant, edge, reflect, symmetric; with reflect_type even")),
    };
    let pairs: Vec<(i64, i64)> = numbers.chunks_exact(2).map(|p| (p[0], p[1])).collect();
    padding(n, x, &pairs, mode, value)
}
