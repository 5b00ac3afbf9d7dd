//! Layers that move or name elements anew and compute nothing.

use super::cx::LayerCx;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::Gather;
use carafe_ops::movement::{Reshape, Slice, Tile};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("BatchReindex", 0, batch_reindex),
    rule("Crop", 0, crop),
    rule("Flatten", 0, flatten),
    rule("Permute", 0, permute),
    rule("Reshape", 0, reshape),
    rule("Reverse", 0, reverse),
    rule("Tile", 0, tile),
];

/// A dimension of a new shape.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    /// That of the bottom at this axis.
    Same(usize),
    Size(i64),
    /// What is left.
    Rest,
}

// What is written stays right when the model is given another shape.
fn reshape_to(n: &mut NodeCx<'_>, x: Value, parts: &[Part]) -> Result<Value> {
    let in_place = parts.iter().enumerate().all(|(i, p)| !matches!(p, Part::Same(axis) if *axis != i));
    if in_place && !parts.contains(&Part::Size(0)) {
        let number = |p: &Part| match p {
            Part::Same(_) => 0,
            Part::Size(size) => *size,
            Part::Rest => -1,
        };
        let pattern: Vec<i64> = parts.iter().map(number).collect();
        return n.reshape(x, &pattern);
    }
    let shape = n.shape_of(x)?;
    let zero = n.i64(0)?;
    let mut pieces = vec![];
    for part in parts {
        pieces.push(match part {
            Part::Same(axis) => {
                let at = n.i64s(&[*axis as i64])?;
                n.emit(Gather { batch_dims: 0 }, &[shape, at, zero])?
            }
            Part::Size(size) => n.i64s(&[*size])?,
            Part::Rest => n.i64s(&[-1])?,
        });
    }
    let shape = n.concat(&pieces, 0)?;
    n.emit(Reshape { special_zero: false }, &[x, shape])
}

fn flatten(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let (start, end): (i64, i64) = (n.attr("axis", 1)?, n.attr("end_axis", -1)?);
    if n.rank(x).is_none() && (start, end) == (1, -1) {
        return Ok(n.reshape(x, &[0, -1])?.into());
    }
    let rank = n.known_rank(x)?;
    let (start, end) = (n.axis(start, rank)?, n.axis(end, rank)?);
    if end < start {
        return Err(n.fail(format!("`end_axis` {end} lies before `axis` {start}")));
    }
    let mut parts: Vec<Part> = (0..start).map(Part::Same).collect();
    parts.push(Part::Rest);
    parts.extend((end + 1..rank).map(Part::Same));
    Ok(reshape_to(n, x, &parts)?.into())
}

fn reshape(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let dims: Vec<i64> = n.attr("shape__dim", vec![])?;
    let (axis, num_axes): (i64, i64) = (n.attr("axis", 0)?, n.attr("num_axes", -1)?);
    let start = match (axis, n.rank(x)) {
        (0, _) => 0,
        // A negative axis is one further than elsewhere: -1 appends.
        (a, Some(rank)) => {
            let a = if a < 0 { a + rank as i64 + 1 } else { a };
            let inside = usize::try_from(a).ok().filter(|a| *a <= rank);
            inside.ok_or_else(|| n.fail(format!("`axis` {axis} does not fit a bottom of rank {rank}")))?
        }
        (_, None) => return Err(n.unsupported("`axis` needs a bottom of known rank")),
    };
    let replaced = match (num_axes, n.rank(x)) {
        (-1, rank) => rank.map(|r| r - start),
        (k, Some(rank)) => match usize::try_from(k) {
            Ok(k) if start + k <= rank => Some(k),
            _ => return Err(n.fail(format!("`num_axes` {k} from axis {start} on does not fit a bottom of rank {rank}"))),
        },
        (_, None) => return Err(n.unsupported("`num_axes` needs a bottom of known rank")),
    };
    let mut parts: Vec<Part> = (0..start).map(Part::Same).collect();
    for (i, dim) in dims.into_iter().enumerate() {
        parts.push(match dim {
            0 => match n.rank(x) {
                Some(rank) if start + i >= rank => {
                    return Err(n.fail(format!("dimension 0 at place {i} copies axis {}, the bottom has {rank}", start + i)));
                }
                _ => Part::Same(start + i),
            },
            -1 if parts.contains(&Part::Rest) => return Err(n.fail("only one dimension may be -1")),
            -1 => Part::Rest,
            size if size > 0 => Part::Size(size),
            size => return Err(n.fail(format!("a dimension must be -1, 0 or positive, found {size}"))),
        });
    }
    if let (Some(replaced), Some(rank)) = (replaced, n.rank(x)) {
        parts.extend((start + replaced..rank).map(Part::Same));
    }
    Ok(reshape_to(n, x, &parts)?.into())
}

// Axes that are not named follow in their order.
fn permute(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let mut order: Vec<i64> = n.attr("order", vec![])?;
    let rank = n.known_rank(x)? as i64;
    for (i, axis) in order.iter().enumerate() {
        if *axis >= rank || order[..i].contains(axis) {
            return Err(n.fail(format!("`order` must name axes of rank {rank} once each, found {order:?}")));
        }
    }
    let rest: Vec<i64> = (0..rank).filter(|a| !order.contains(a)).collect();
    order.extend(rest);
    Ok(n.transpose(x, &order)?.into())
}

fn crop(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let bottoms = n.bottoms()?;
    let Some(&x) = bottoms.first() else { return Err(n.fail("has no bottom")) };
    let rank = n.known_rank(x)?;
    let axis = n.axis(n.attr("axis", 2)?, rank)?;
    let offsets: Vec<i64> = n.attr("offset", vec![])?;
    let sizes: Vec<i64> = n.attr("dimsize", vec![])?;
    let cropped = rank - axis;
    let offsets = match offsets.len() {
        0 => vec![0; cropped],
        1 => vec![offsets[0]; cropped],
        len if len == cropped => offsets,
        len => return Err(n.fail(format!("`offset` has {len} values for {cropped} axes"))),
    };
    let sizes = match bottoms[..] {
        [_] if sizes.len() == cropped => n.i64s(&sizes)?,
        [_] => return Err(n.fail(format!("`dimsize` has {} values for {cropped} axes", sizes.len()))),
        [_, like] if n.known_rank(like)? == rank => {
            for (i, offset) in (axis..rank).zip(&offsets) {
                if let (Some(have), Some(want)) = (n.shape(x).dim(i).get(), n.shape(like).dim(i).get())
                    && have - offset < want
                {
                    return Err(n.fail(format!("axis {i} of {have} has no {want} elements from {offset} on")));
                }
            }
            let shape = n.shape_of(like)?;
            let (start, stop) = (n.i64s(&[axis as i64])?, n.i64s(&[rank as i64])?);
            n.cut(shape, start, stop, 0)?
        }
        _ => return Err(n.fail("takes two bottoms of the same rank")),
    };
    let start = n.i64s(&offsets)?;
    let stop = n.plus(sizes, start)?;
    let (step, axes) = (n.i64s(&vec![1; cropped])?, n.i64s(&(axis as i64..rank as i64).collect::<Vec<_>>())?);
    Ok(n.emit(Slice, &[x, start, stop, step, axes])?.into())
}

fn tile(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let rank = n.known_rank(x)?;
    let axis = n.axis(n.attr("axis", 1)?, rank)?;
    let mut repeats = vec![1; rank];
    repeats[axis] = n.required::<i64>("tiles")?;
    if repeats[axis] < 1 {
        return Err(n.fail(format!("`tiles` must be at least 1, found {}", repeats[axis])));
    }
    let repeats = n.i64s(&repeats)?;
    Ok(n.emit(Tile, &[x, repeats])?.into())
}

// Images in the order that the second bottom says, in floats.
fn batch_reindex(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let [x, order] = n.bottoms_of()?;
    let order = n.convert(order, ElementType::I64)?;
    let axis = n.i64(0)?;
    Ok(n.emit(Gather { batch_dims: 0 }, &[x, order, axis])?.into())
}

/// The elements of an axis from the last to the first.
pub(super) fn reversed(n: &mut NodeCx<'_>, x: Value, axis: i64) -> Result<Value> {
    let (start, stop, step) = (n.i64s(&[-1])?, n.i64s(&[i64::MIN])?, n.i64s(&[-1])?);
    let axis = n.i64s(&[axis])?;
    n.emit(Slice, &[x, start, stop, step, axis])
}

fn reverse(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let axis = n.attr("axis", 0)?;
    Ok(reversed(n, x, axis)?.into())
}
