//! Parts of a tensor, by bounds of the node or by the size of another tensor.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::{Slice, SliceScatter};

pub(super) const RULES: &[StaticRule] = &[
    rule("Crop", 0, crop),
    rule("_image_crop", 0, image_crop),
    rule("_slice_assign", 0, |n| {
        let (x, part) = (n.input(0)?, n.input(1)?);
        assigned(n, x, part)
    }),
    rule("_slice_assign_scalar", 0, |n| {
        let x = n.input(0)?;
        let number = n.float("scalar", 0.0)?;
        let [start, stop, step, axes] = bounds(n)?;
        let part = n.emit(Slice, &[x, start, stop, step, axes])?;
        let part = n.filled_like(part, number)?;
        Ok(n.emit(SliceScatter, &[x, part, start, stop, step, axes])?.into())
    }),
    rule("slice", 0, |n| {
        let x = n.input(0)?;
        let [start, stop, step, axes] = bounds(n)?;
        Ok(n.emit(Slice, &[x, start, stop, step, axes])?.into())
    }),
    rule("slice_axis", 0, slice_axis),
    rule("slice_like", 0, slice_like),
];

// Starts, stops, steps and axes of the leading axes; `None` is the end in the direction of the step.
fn bounds(n: &mut NodeCx<'_>) -> Result<[Value; 4]> {
    let (begin, end, step) = (n.bounds("begin")?, n.bounds("end")?, n.bounds("step")?);
    if begin.len() != end.len() {
        return Err(n.fail(format!("`begin` has {} numbers, `end` has {}", begin.len(), end.len())));
    }
    let steps: Vec<i64> = (0..begin.len()).map(|i| step.get(i).copied().flatten().unwrap_or(1)).collect();
    let ends = |goes_up: bool| if goes_up { (0, i64::MAX) } else { (i64::MAX, i64::MIN) };
    let start: Vec<i64> = begin.iter().zip(&steps).map(|(b, s)| b.unwrap_or(ends(*s > 0).0)).collect();
    let stop: Vec<i64> = end.iter().zip(&steps).map(|(e, s)| e.unwrap_or(ends(*s > 0).1)).collect();
    let axes: Vec<i64> = (0..begin.len() as i64).collect();
    Ok([n.i64s(&start)?, n.i64s(&stop)?, n.i64s(&steps)?, n.i64s(&axes)?])
}

fn assigned(n: &mut NodeCx<'_>, x: Value, part: Value) -> Result<Outputs> {
    let [start, stop, step, axes] = bounds(n)?;
    Ok(n.emit(SliceScatter, &[x, part, start, stop, step, axes])?.into())
}

fn slice_axis(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let axis = n.needed_int("axis")?;
    let (begin, end) = (n.int("begin", 0)?, n.opt_int("end")?);
    Ok(n.part(x, begin, end.unwrap_or(i64::MAX), axis)?.into())
}

// As long as another on some axes, on all of them by default.
fn slice_like(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, like) = (n.input(0)?, n.input(1)?);
    let axes = n.ints_of("axes")?;
    let axes = if axes.is_empty() { (0..n.known_rank(x)? as i64).collect() } else { axes };
    let axes = match axes.iter().any(|a| *a < 0) {
        true => {
            let rank = n.known_rank(x)?;
            axes.iter().map(|a| n.axis(*a, rank).map(|a| a as i64)).collect::<Result<Vec<_>>>()?
        }
        false => axes,
    };
    let stop = n.dims_at(like, &axes)?;
    let (start, step) = (n.i64s(&vec![0; axes.len()])?, n.i64s(&vec![1; axes.len()])?);
    let axes = n.i64s(&axes)?;
    Ok(n.emit(Slice, &[x, start, stop, step, axes])?.into())
}

// A part of an image: of the size of another, or of `h_w`.
fn crop(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["num_args"]);
    let x = n.input(0)?;
    let like = n.opt(1)?;
    let (offset, size) = (n.ints_of("offset")?, n.ints_of("h_w")?);
    let size = match like {
        Some(like) => n.dims_at(like, &[2, 3])?,
        None if size.len() == 2 => n.i64s(&size)?,
        None => return Err(n.fail("attribute `h_w` must give height and width where there is no second input")),
    };
    let start = match n.flag("center_crop", false)? {
        true => {
            let whole = n.dims_at(x, &[2, 3])?;
            let rest = n.minus(whole, size)?;
            let two = n.i64s(&[2])?;
            n.over(rest, two)?
        }
        false if offset.is_empty() => n.i64s(&[0, 0])?,
        false if offset.len() == 2 => n.i64s(&offset)?,
        false => return Err(n.fail(format!("attribute `offset` has {} numbers, two are expected", offset.len()))),
    };
    let stop = n.plus(start, size)?;
    let (step, axes) = (n.i64s(&[1, 1])?, n.i64s(&[2, 3])?);
    Ok(n.emit(Slice, &[x, start, stop, step, axes])?.into())
}

// Of images with channels last, one or many.
fn image_crop(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let image = n.input(0)?;
    let rank = n.known_rank(image)? as i64;
    let (x, y) = (n.needed_int("x")?, n.needed_int("y")?);
    let (width, height) = (n.needed_int("width")?, n.needed_int("height")?);
    let (start, stop) = (n.i64s(&[y, x])?, n.i64s(&[y + height, x + width])?);
    let (step, axes) = (n.i64s(&[1, 1])?, n.i64s(&[rank - 3, rank - 2])?);
    Ok(n.emit(Slice, &[image, start, stop, step, axes])?.into())
}
