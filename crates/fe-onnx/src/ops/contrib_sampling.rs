//! Operations of `com.microsoft` that take parts of a tensor: windows that slide, and regions of pictures.

use super::contrib::MS;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::Gather;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] =
    &[rule_in(MS, "CropAndResize", 1, crop_and_resize), rule_in(MS, "UnfoldTensor", 1, unfold_tensor)];

// Windows along an axis; what is in them becomes the last axis.
fn unfold_tensor(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (dim, size, step): (i64, i64, i64) = (n.attr("dim", -1)?, n.required("size")?, n.attr("step", 1)?);
    if size < 1 || step < 1 {
        return Err(n.fail(format!("size and step must be above 0, found {size} and {step}")));
    }
    let x = n.input(0)?;
    let rank = n.known_rank(x)?;
    let axis = n.axis(dim, rank)? as i64;
    let length = n.length(x, axis)?;
    let room = n.plus_number(length, (step - size) as f64)?;
    let count = n.over_number(room, step as f64)?;
    let starts = n.count_to(count, ElementType::I64)?;
    let starts = n.times_number(starts, step as f64)?;
    let starts = n.unsqueeze(starts, &[1])?;
    let size = n.i64(size)?;
    let within = n.count_to(size, ElementType::I64)?;
    let at = n.plus(starts, within)?;
    let y = n.gather(x, at, axis)?;
    let rank = rank as i64;
    let order: Vec<i64> = (0..=axis).chain(axis + 2..=rank).chain([axis + 1]).collect();
    Ok(n.transpose(y, &order)?.into())
}

// Regions `y1, x1, y2, x2` in parts of the picture, their corners on those of the result.
fn crop_and_resize(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let outside: f32 = n.attr("extrapolation_value", 0.0)?;
    let mode: String = n.attr("mode", "bilinear".to_string())?;
    let linear = match mode.as_str() {
        "bilinear" => true,
        "nearest" => false,
        other => return Err(n.fail(format!("mode must be bilinear or nearest, found `{other}`"))),
    };
    let (x, regions, images, sizes) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?);
    let regions = n.convert(regions, ElementType::F32)?;
    let sizes = n.convert(sizes, ElementType::I64)?;
    let corners = n.split_equally(regions, 1, 4)?;
    let rows = Line::new(n, x, 2, [corners[0], corners[2]], sizes, 0)?;
    let columns = Line::new(n, x, 3, [corners[1], corners[3]], sizes, 1)?;
    let pictures = n.gather(x, images, 0)?;
    let there = {
        let (r, c) = (n.unsqueeze(rows.inside, &[1, 3])?, n.unsqueeze(columns.inside, &[1, 2])?);
        n.and(r, c)?
    };
    let y = if linear {
        let (top, bottom) = (rows.taken(n, pictures, rows.floor)?, rows.taken(n, pictures, rows.ceil)?);
        let part = n.unsqueeze(rows.part, &[1, 3])?;
        let y = between(n, top, bottom, part)?;
        let (left, right) = (columns.taken(n, y, columns.floor)?, columns.taken(n, y, columns.ceil)?);
        let part = n.unsqueeze(columns.part, &[1, 2])?;
        between(n, left, right, part)?
    } else {
        let y = rows.taken(n, pictures, rows.near)?;
        columns.taken(n, y, columns.near)?
    };
    let outside = n.scalar_like(y, f64::from(outside))?;
    Ok(n.choose(there, y, outside)?.into())
}

fn between(n: &mut NodeCx<'_>, a: Value, b: Value, part: Value) -> Result<Value> {
    let part = n.convert_like(part, a)?;
    let apart = n.minus(b, a)?;
    let moved = n.times(apart, part)?;
    n.plus(a, moved)
}

/// Places of samples along one axis; all are `[region, sample]`.
struct Line {
    axis: i64,
    floor: Value,
    ceil: Value,
    near: Value,
    part: Value,
    inside: Value,
}

impl Line {
    fn new(n: &mut NodeCx<'_>, x: Value, axis: i64, [from, to]: [Value; 2], sizes: Value, size: i64) -> Result<Line> {
        let at = n.i64(size)?;
        let count = n.gather(sizes, at, 0)?;
        let last = n.length(x, axis)?;
        let last = n.plus_number(last, -1.0)?;
        let last = n.convert(last, ElementType::F32)?;
        let start = n.times(from, last)?;
        let length = n.minus(to, from)?;
        let length = n.times(length, last)?;
        let steps = n.plus_number(count, -1.0)?;
        let one = n.i64(1)?;
        let some = n.max(steps, one)?;
        let some = n.convert(some, ElementType::F32)?;
        let step = n.over(length, some)?;
        let samples = n.count_to(count, ElementType::F32)?;
        let moved = n.times(step, samples)?;
        let many = n.plus(start, moved)?;
        // A single sample lies in the middle.
        let both = n.plus(from, to)?;
        let middle = n.times_number(both, 0.5)?;
        let middle = n.times(middle, last)?;
        let single = n.equal(count, one)?;
        let position = n.choose(single, middle, many)?;
        let zero = n.scalar(ElementType::F32, 0.0)?;
        let (behind, before) = (n.greater_equal(position, zero)?, n.less_equal(position, last)?);
        let inside = n.and(behind, before)?;
        let position = n.max(position, zero)?;
        let position = n.min(position, last)?;
        let (floor, ceil) = (n.floor(position)?, n.ceiling(position)?);
        let part = n.minus(position, floor)?;
        let half = n.plus_number(position, 0.5)?;
        let near = n.floor(half)?;
        let near = n.min(near, last)?;
        let [floor, ceil, near] = [floor, ceil, near].map(|v| n.convert(v, ElementType::I64));
        Ok(Line { axis, floor: floor?, ceil: ceil?, near: near?, part, inside })
    }

    fn taken(&self, n: &mut NodeCx<'_>, pictures: Value, at: Value) -> Result<Value> {
        let axis = n.i64(self.axis)?;
        n.emit(Gather { batch_dims: 1 }, &[pictures, at, axis])
    }
}
