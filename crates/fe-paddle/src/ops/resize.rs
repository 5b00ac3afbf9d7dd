//! Resizing and sampling of pictures.

use super::slots::{Slots, in_channels_first};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{AttrValue, Result, Value};
use carafe_ops::resize::grid_sample::{PaddingMode, SampleMode};
use carafe_ops::resize::interpolate::ShapeCalculation;
use carafe_ops::resize::{Coordinates, Mode, NearestMode};
use carafe_ops::resize::{GridSample, Interpolate};
use carafe_tensor::{ElementType, Tensor};

pub(super) const RULES: &[StaticRule] = &[
    rule("affine_grid", 0, affine_grid),
    rule("bicubic_interp", 0, |n| interpolate(n, Mode::Cubic, 2)),
    rule("bicubic_interp_v2", 0, |n| interpolate(n, Mode::Cubic, 2)),
    rule("bilinear_interp", 0, |n| interpolate(n, Mode::LinearOnnx, 2)),
    rule("bilinear_interp_v2", 0, |n| interpolate(n, Mode::LinearOnnx, 2)),
    rule("grid_sampler", 0, grid_sampler),
    rule("linear_interp", 0, |n| interpolate(n, Mode::LinearOnnx, 1)),
    rule("linear_interp_v2", 0, |n| interpolate(n, Mode::LinearOnnx, 1)),
    rule("nearest_interp", 0, |n| interpolate(n, Mode::Nearest, 0)),
    rule("nearest_interp_v2", 0, |n| interpolate(n, Mode::Nearest, 0)),
    rule("trilinear_interp", 0, |n| interpolate(n, Mode::LinearOnnx, 3)),
    rule("trilinear_interp_v2", 0, |n| interpolate(n, Mode::LinearOnnx, 3)),
];

/// What decides the size of the result.
enum Target {
    Sizes(Value),
    Scales(Vec<f32>),
    ScaleTensor(Value),
}

// Sizes that are computed come first, then scales, then sizes of attributes.
fn target(n: &mut NodeCx<'_>, axes: usize) -> Result<Target> {
    let listed = n.inputs_named("SizeTensor")?;
    let size = n.opt_slot("OutSize")?;
    let scale = n.opt_slot("Scale")?;
    let names = &["out_d", "out_h", "out_w"][3 - axes..];
    let mut sizes: Vec<i64> = vec![];
    for name in names {
        sizes.push(n.attr(name, -1)?);
    }
    n.ignore(&["out_d", "out_h", "out_w"]);
    let scales: Vec<f32> = match n.attr_value("scale") {
        Some(AttrValue::Ints(list)) if list.is_empty() => vec![],
        Some(_) => n.attr("scale", vec![])?,
        None => vec![],
    };
    if !listed.is_empty() {
        let mut parts = vec![];
        for v in listed {
            let v = n.reshape(v, &[1])?;
            parts.push(n.convert(v, ElementType::I64)?);
        }
        return Ok(Target::Sizes(n.concat(&parts, 0)?));
    }
    if let Some(size) = size {
        return Ok(Target::Sizes(n.convert(size, ElementType::I64)?));
    }
    if let Some(scale) = scale {
        let scale = n.reshape(scale, &[-1])?;
        return Ok(Target::ScaleTensor(n.convert(scale, ElementType::F32)?));
    }
    let scales: Vec<f32> = if scales.len() == 1 { vec![scales[0]; axes] } else { scales };
    if scales.len() == axes && scales.iter().all(|s| *s > 0.0) {
        return Ok(Target::Scales(scales));
    }
    if sizes.iter().any(|s| *s <= 0) {
        return Err(n.fail(format!("neither sizes nor scales are given: sizes {sizes:?}, scales {scales:?}")));
    }
    Ok(Target::Sizes(n.i64s(&sizes)?))
}

fn interpolate(n: &mut NodeCx<'_>, mode: Mode, axes: usize) -> Result<Outputs> {
    let x = n.slot("X")?;
    let axes = if axes == 0 { n.known_rank(x)?.saturating_sub(2).clamp(1, 3) } else { axes };
    n.ignore(&["interp_method"]);
    let is_last = n.is_channels_last("data_layout")?;
    let is_aligned: bool = n.attr("align_corners", true)?;
    let align_mode: i64 = n.attr("align_mode", 1)?;
    let target = target(n, axes)?;
    let (coordinates, nearest_mode) = match (mode, is_aligned) {
        // The position and a half, cut.
        (Mode::Nearest, true) => (Coordinates::AlignCorners, NearestMode::RoundPreferCeil),
        (Mode::Nearest, false) => (Coordinates::Asymmetric, NearestMode::Floor),
        (_, true) => (Coordinates::AlignCorners, NearestMode::Floor),
        (Mode::Cubic, false) => (Coordinates::HalfPixel, NearestMode::Floor),
        (_, false) if align_mode == 0 => (Coordinates::HalfPixel, NearestMode::Floor),
        (_, false) => (Coordinates::Asymmetric, NearestMode::Floor),
    };
    let out = in_channels_first(n, x, is_last, |n, x| {
        let (by, shape_calculation_mode) = match target {
            Target::Sizes(v) => (v, ShapeCalculation::Sizes),
            Target::Scales(list) => (n.constant(Tensor::from_slice(&[axes], &list)?)?, ShapeCalculation::Scales),
            Target::ScaleTensor(v) => {
                let shape = n.i64s(&[axes as i64])?;
                (n.stretch(v, shape)?, ShapeCalculation::Scales)
            }
        };
        let at = n.i64s(&(2..2 + axes as i64).collect::<Vec<_>>())?;
        let op = Interpolate {
            mode,
            shape_calculation_mode,
            coordinate_transformation_mode: coordinates,
            nearest_mode,
            antialias: false,
            pads_begin: vec![0],
            pads_end: vec![0],
            cube_coeff: -0.75,
        };
        n.emit(op, &[x, by, at])
    })?;
    Ok(n.give(&[("Out", out)]))
}

fn grid_sampler(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, grid) = (n.slot("X")?, n.slot("Grid")?);
    if n.rank(x) == Some(5) {
        return Err(n.unsupported("volumes cannot be sampled; pictures of four axes can"));
    }
    let mode: String = n.attr("mode", "bilinear".to_string())?;
    let padding: String = n.attr("padding_mode", "zeros".to_string())?;
    let mode = match mode.as_str() {
        "bilinear" => SampleMode::Bilinear,
        "nearest" => SampleMode::Nearest,
        other => return Err(n.unsupported(format!("`mode` is `{other}`"))),
    };
    let padding_mode = match padding.as_str() {
        "zeros" => PaddingMode::Zeros,
        "border" => PaddingMode::Border,
        "reflection" => PaddingMode::Reflection,
        other => return Err(n.unsupported(format!("`padding_mode` is `{other}`"))),
    };
    let op = GridSample { align_corners: n.attr("align_corners", true)?, mode, padding_mode };
    let out = n.emit(op, &[x, grid])?;
    Ok(n.give(&[("Output", out), ("Out", out)]))
}

// Positions from -1 to 1, of pixel centres, or of the corners where those are aligned.
fn axis_positions(n: &mut NodeCx<'_>, size: Value, is_aligned: bool) -> Result<Value> {
    let size = n.as_scalar(size)?;
    let at = n.count_to(size, ElementType::I64)?;
    let (at, size) = (n.convert(at, ElementType::F32)?, n.convert(size, ElementType::F32)?);
    let twice = n.times_number(at, 2.0)?;
    if is_aligned {
        let last = n.plus_number(size, -1.0)?;
        let position = n.over(twice, last)?;
        return n.plus_number(position, -1.0);
    }
    let centre = n.plus_number(twice, 1.0)?;
    let position = n.over(centre, size)?;
    n.plus_number(position, -1.0)
}

// Each point (x, y, 1) times a matrix of two rows.
fn affine_grid(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let theta = n.slot("Theta")?;
    let is_aligned: bool = n.attr("align_corners", true)?;
    let shape = n.vector("output_shape", &["OutputShape"])?.ok_or_else(|| n.fail("`output_shape` is missing"))?;
    n.ignore_slots(&["OutputShape"]);
    let (height, width) = (n.part(shape, 2, 3, 0)?, n.part(shape, 3, 4, 0)?);
    let xs = axis_positions(n, width, is_aligned)?;
    let ys = axis_positions(n, height, is_aligned)?;
    let plane = n.concat(&[height, width], 0)?;
    let ys = n.unsqueeze(ys, &[1])?;
    let (xs, ys) = (n.stretch(xs, plane)?, n.stretch(ys, plane)?);
    let one = n.scalar(ElementType::F32, 1.0)?;
    let ones = n.stretch(one, plane)?;
    let mut points = vec![];
    for v in [xs, ys, ones] {
        points.push(n.reshape(v, &[-1, 1])?);
    }
    let points = n.concat(&points, 1)?;
    let points = n.convert_like(points, theta)?;
    let grid = n.product(points, theta, true)?;
    let front = n.part(shape, 0, 1, 0)?;
    let two = n.i64s(&[2])?;
    let shape = n.concat(&[front, plane, two], 0)?;
    let out = n.reshaped(grid, shape, false)?;
    Ok(n.give(&[("Output", out), ("Out", out)]))
}
