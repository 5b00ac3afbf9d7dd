//! SpatialTransformer and FlowWarp: images sampled at points that other bottoms say. Both are compositions around GridSample,
//! whose points count from -1 to 1 between the outer edges of the image.

use super::cx::LayerCx;
use super::numbers::{known_size, part};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::arithmetic::AutoBroadcast;
use carafe_ops::compare::{GreaterEqual, Less};
use carafe_ops::indexing::Select;
use carafe_ops::linear::MatMul;
use carafe_ops::logic::LogicalAnd;
use carafe_ops::resize::GridSample;
use carafe_ops::resize::grid_sample::{PaddingMode, SampleMode};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] =
    &[rule("FlowWarp", 0, flow_warp), rule("SpatialTransformer", 0, spatial_transformer)];

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
    let [h, w] = known_size(n, x)?;
    let (rows, columns): (i64, i64) = (n.attr("output_H", h)?, n.attr("output_W", w)?);
    if [h, w, rows, columns].iter().any(|s| !(1..=1 << 14).contains(s)) {
        return Err(n.fail(format!("an image of {h} x {w} cannot become one of {rows} x {columns}")));
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
    let mut points = Vec::with_capacity((rows * columns * 3) as usize);
    for r in 0..rows {
        for c in 0..columns {
            points.extend([r as f32 / rows as f32 * 2.0 - 1.0, c as f32 / columns as f32 * 2.0 - 1.0, 1.0]);
        }
    }
    let points = n.floats(&[(rows * columns) as usize, 3], &points)?;
    let grid = n.emit(MatMul { transpose_a: false, transpose_b: true }, &[points, theta])?;
    let half = n.floats(&[2], &[1.0 / w as f32, 1.0 / h as f32])?;
    let grid = n.plus(grid, half)?;
    let grid = n.reshape(grid, &[0, rows, columns, 2])?;
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
    let [h, w] = known_size(n, x)?;
    if [h, w].iter().any(|s| !(1..=1 << 14).contains(s)) {
        return Err(n.fail(format!("an image of {h} x {w} cannot be")));
    }
    let flow = n.transpose(flow, &[0, 2, 3, 1])?;
    let here: Vec<f32> = (0..h).flat_map(|r| (0..w).flat_map(move |c| [c as f32, r as f32])).collect();
    let here = n.floats(&[1, h as usize, w as usize, 2], &here)?;
    let points = n.plus(flow, here)?;
    let scale = n.floats(&[2], &[2.0 / w as f32, 2.0 / h as f32])?;
    let shift = n.floats(&[2], &[1.0 / w as f32 - 1.0, 1.0 / h as f32 - 1.0])?;
    let grid = n.times(points, scale)?;
    let grid = n.plus(grid, shift)?;
    let op = GridSample { align_corners: false, mode: SampleMode::Bilinear, padding_mode: PaddingMode::Border };
    let y = n.emit(op, &[x, grid])?;
    let (zero, size) = (n.scalar(ElementType::F32, 0.0)?, n.floats(&[2], &[w as f32, h as f32])?);
    let low = n.emit(GreaterEqual::default(), &[points, zero])?;
    let high = n.emit(Less::default(), &[points, size])?;
    let inside = n.emit(LogicalAnd::default(), &[low, high])?;
    let across = part(n, inside, &[3], &[0], &[1], &[1])?;
    let along = part(n, inside, &[3], &[1], &[2], &[1])?;
    let inside = n.emit(LogicalAnd::default(), &[across, along])?;
    let inside = n.reshape(inside, &[0, 1, h, w])?;
    let fill = n.scalar_like(y, fill)?;
    let op = Select { auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None };
    Ok(n.emit(op, &[inside, y, fill])?.into())
}
