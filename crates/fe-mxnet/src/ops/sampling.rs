//! Images sampled at points of a grid, whose coordinates go from -1 to 1 and stand in the second axis.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::linear::MatMul;
use carafe_ops::resize::GridSample;
use carafe_ops::resize::grid_sample::{PaddingMode, SampleMode};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("BilinearSampler", 0, |n| {
        let (x, grid) = (n.input(0)?, n.input(1)?);
        Ok(sampled(n, x, grid)?.into())
    }),
    rule("GridGenerator", 0, grid_generator),
    rule("SpatialTransformer", 0, spatial_transformer),
];

// The grid is `[N, 2, H, W]`, x first.
fn sampled(n: &mut NodeCx<'_>, x: Value, grid: Value) -> Result<Value> {
    let grid = n.transpose(grid, &[0, 2, 3, 1])?;
    let op = GridSample { align_corners: true, mode: SampleMode::Bilinear, padding_mode: PaddingMode::Zeros };
    n.emit(op, &[x, grid])
}

// Points from -1 to 1 along an axis of an image, as `[1, H, W]`.
fn ticks(h: i64, w: i64) -> (Vec<f32>, Vec<f32>) {
    let at = |i: i64, n: i64| if n > 1 { -1.0 + 2.0 * i as f32 / (n - 1) as f32 } else { -1.0 };
    let points = (0..h).flat_map(|y| (0..w).map(move |x| (x, y)));
    points.map(|(x, y)| (at(x, w), at(y, h))).unzip()
}

fn target(n: &NodeCx<'_>) -> Result<[i64; 2]> {
    match n.ints_of("target_shape")?[..] {
        [h, w] if (1..=1 << 14).contains(&h) && (1..=1 << 14).contains(&w) => Ok([h, w]),
        _ => Err(n.unsupported("attribute `target_shape` must give height and width")),
    }
}

// Six numbers of an affine map for each image, as a grid.
fn affine(n: &mut NodeCx<'_>, map: Value) -> Result<Value> {
    let [h, w] = target(n)?;
    let (xs, ys) = ticks(h, w);
    let ones = vec![1f32; xs.len()];
    let points = n.floats(&[3, ones.len()], &[xs, ys, ones].concat())?;
    let map = n.reshape(map, &[-1, 2, 3])?;
    let grid = n.emit(MatMul { transpose_a: false, transpose_b: false }, &[map, points])?;
    n.reshape(grid, &[0, 2, h, w])
}

fn grid_generator(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    match n.word("transform_type", "").as_str() {
        "affine" => Ok(affine(n, x)?.into()),
        "warp" => {
            n.ignore(&["target_shape"]);
            Ok(warp(n, x)?.into())
        }
        other => Err(n.unknown_word("transform_type", other, "affine, warp")),
    }
}

// A flow in pixels, added to the pixels and scaled to -1 to 1.
fn warp(n: &mut NodeCx<'_>, flow: Value) -> Result<Value> {
    let mut parts = vec![];
    for (channel, axis) in [(0, 3), (1, 2)] {
        let shift = n.part(flow, channel, channel + 1, 1)?;
        let size = n.length(flow, axis)?;
        let pixels = n.count_to(size, ElementType::F32)?;
        let pixels = n.convert_like(pixels, flow)?;
        let pixels = n.along(pixels, axis as usize, 4)?;
        let point = n.plus(shift, pixels)?;
        let size = n.convert_like(size, flow)?;
        let half = n.plus_number(size, -1.0)?;
        let half = n.times_number(half, 0.5)?;
        let point = n.over(point, half)?;
        parts.push(n.plus_number(point, -1.0)?);
    }
    n.concat(&parts, 1)
}

fn spatial_transformer(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["transform_type", "sampler_type"]);
    let (x, map) = (n.input(0)?, n.input(1)?);
    let grid = affine(n, map)?;
    Ok(sampled(n, x, grid)?.into())
}
