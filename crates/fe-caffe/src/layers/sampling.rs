//! SpatialTransformer and FlowWarp: images sampled at points that other bottoms say. Both are compositions around GridSample,
//! whose points count from -1 to 1 between the outer edges of the image.

use super::cx::LayerCx;
use super::numbers::{part, picked, size, ticks};
use super::shapes::reversed;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::AutoBroadcast;
use carafe_ops::compare::{GreaterEqual, Less};
use carafe_ops::indexing::Select;
use carafe_ops::linear::MatMul;
use carafe_ops::logic::LogicalAnd;
use carafe_ops::movement::Reshape;
use carafe_ops::resize::GridSample;
use carafe_ops::resize::grid_sample::{PaddingMode, SampleMode};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] =
    &[rule("FlowWarp", 0, flow_warp), rule("SpatialTransformer", 0, spatial_transformer)];

/// Images are no larger along an axis.
const MOST: i64 = 1 << 14;

// Caffe's first coordinate is the vertical one, and -1 to 1 goes from the first pixel to behind the last one.
fn spatial_transformer(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let [x, theta] = n.bottoms_of()?;
    n.ignore(&["to_compute_dU"]);
    for (name, only) in [("transform_type", "affine"), ("sampler_type", "bilinear")] {
        let found: String = n.attr(name, only.to_string())?;
        if found != only {
            return Err(n.unsupported(format!("`{name}` {found} is not supported, {only} is")));
        }
    }
    if n.attr("de_transform", false)? {
        return Err(n.unsupported("the inverse transform (`de_transform`) is not supported"));
    }
    let from = size(n, x)?;
    let given: [Option<i64>; 2] = [n.opt_attr("output_H")?, n.opt_attr("output_W")?];
    let mut to = [from; 2];
    for (i, given) in given.into_iter().enumerate() {
        to[i] = match given {
            Some(size) => n.i64s(&[size])?,
            None => picked(n, from, &[i as i64])?,
        };
    }
    let to = n.concat(&to, 0)?;
    for v in [from, to] {
        if let Some(bad) = n.ints(v).and_then(|sizes| sizes.into_iter().find(|s| !(1..=MOST).contains(s))) {
            return Err(n.fail(format!("an image of {bad} pixels along an axis cannot be")));
        }
    }
    // The two rows of the matrix change places, since GridSample takes the horizontal coordinate first.
    let theta = n.reshape(theta, &[0, -1])?;
    let one = part(n, theta, &[1], &[0], &[1], &[1])?;
    let zero = n.times_number(one, 0.0)?;
    let mut entries = vec![];
    let mut taken = 0;
    for name in ["theta_1_1", "theta_1_2", "theta_1_3", "theta_2_1", "theta_2_2", "theta_2_3"] {
        entries.push(match n.opt_attr::<f64>(name)? {
            Some(fixed) => n.plus_number(zero, fixed)?,
            None => {
                taken += 1;
                part(n, theta, &[1], &[taken - 1], &[taken], &[1])?
            }
        });
    }
    entries.rotate_left(3);
    let theta = n.concat(&entries, 1)?;
    let theta = n.reshape(theta, &[0, 2, 3])?;
    // r / rows * 2 - 1, c / columns * 2 - 1, 1
    let positions = pixels(n, to)?;
    let counts = n.convert(to, ElementType::F32)?;
    let positions = n.over(positions, counts)?;
    let positions = n.times_number(positions, 2.0)?;
    let positions = n.plus_number(positions, -1.0)?;
    let positions = n.reshape(positions, &[-1, 2])?;
    let ones = part(n, positions, &[1], &[0], &[1], &[1])?;
    let ones = n.times_number(ones, 0.0)?;
    let ones = n.plus_number(ones, 1.0)?;
    let points = n.concat(&[positions, ones], 1)?;
    let grid = n.emit(MatMul { transpose_a: false, transpose_b: true }, &[points, theta])?;
    let half = pixel(n, from, 1.0)?;
    let grid = n.plus(grid, half)?;
    let (batch, two) = (n.i64s(&[0])?, n.i64s(&[2])?);
    let shape = n.concat(&[batch, to, two], 0)?;
    let grid = n.emit(Reshape { special_zero: true }, &[grid, shape])?;
    let op = GridSample { align_corners: false, mode: SampleMode::Bilinear, padding_mode: PaddingMode::Zeros };
    Ok(n.emit(op, &[x, grid])?.into())
}

// Each pixel is fetched from where it stands plus the flow; from outside there comes nothing.
fn flow_warp(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let [x, flow] = n.bottoms_of()?;
    let fill: String = n.attr("fill_value", "ZERO".to_string())?;
    let fill = match fill.as_str() {
        "ZERO" => 0.0,
        "NOT_A_NUMBER" => f64::NAN,
        other => return Err(n.fail(format!("`fill_value` must be ZERO or NOT_A_NUMBER, found {other}"))),
    };
    let whole = size(n, x)?;
    if let Some(bad) = n.ints(whole).and_then(|sizes| sizes.into_iter().find(|s| !(1..=MOST).contains(s))) {
        return Err(n.fail(format!("an image of {bad} pixels along an axis cannot be")));
    }
    let flow = n.transpose(flow, &[0, 2, 3, 1])?;
    let here = pixels(n, whole)?;
    // The horizontal coordinate goes first.
    let here = reversed(n, here, 2)?;
    let points = n.plus(flow, here)?;
    let scale = pixel(n, whole, 2.0)?;
    let shift = pixel(n, whole, 1.0)?;
    let shift = n.plus_number(shift, -1.0)?;
    let grid = n.times(points, scale)?;
    let grid = n.plus(grid, shift)?;
    let op = GridSample { align_corners: false, mode: SampleMode::Bilinear, padding_mode: PaddingMode::Border };
    let y = n.emit(op, &[x, grid])?;
    let zero = n.scalar(ElementType::F32, 0.0)?;
    let limits = picked(n, whole, &[1, 0])?;
    let limits = n.convert(limits, ElementType::F32)?;
    let low = n.emit(GreaterEqual::default(), &[points, zero])?;
    let high = n.emit(Less::default(), &[points, limits])?;
    let inside = n.emit(LogicalAnd::default(), &[low, high])?;
    let across = part(n, inside, &[3], &[0], &[1], &[1])?;
    let along = part(n, inside, &[3], &[1], &[2], &[1])?;
    let inside = n.emit(LogicalAnd::default(), &[across, along])?;
    let inside = n.transpose(inside, &[0, 3, 1, 2])?;
    let fill = n.scalar_like(y, fill)?;
    let op = Select { auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None };
    Ok(n.emit(op, &[inside, y, fill])?.into())
}

// Row and column of every pixel of an image of this size, [rows, columns, 2].
fn pixels(n: &mut NodeCx<'_>, size: Value) -> Result<Value> {
    let (rows, columns) = (picked(n, size, &[0])?, picked(n, size, &[1])?);
    let (rows, columns) = (ticks(n, rows)?, ticks(n, columns)?);
    let rows = n.unsqueeze(rows, &[1])?;
    let (still_rows, still_columns) = (n.times_number(rows, 0.0)?, n.times_number(columns, 0.0)?);
    let (rows, columns) = (n.plus(rows, still_columns)?, n.plus(still_rows, columns)?);
    let (rows, columns) = (n.unsqueeze(rows, &[2])?, n.unsqueeze(columns, &[2])?);
    n.concat(&[rows, columns], 2)
}

// What this many of a pixel's halves are between -1 and 1, across and along.
fn pixel(n: &mut NodeCx<'_>, size: Value, halves: f64) -> Result<Value> {
    let turned = picked(n, size, &[1, 0])?;
    let turned = n.convert(turned, ElementType::F32)?;
    let halves = n.scalar(ElementType::F32, halves)?;
    n.over(halves, turned)
}
