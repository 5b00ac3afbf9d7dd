//! Resize and Upsample. Interpolate takes over where it means the same; everything else (antialias, `exclude_outside`, crops,
//! `keep_aspect_ratio_policy`) becomes one product with a matrix of weights, or one Gather, for each resized axis. Sizes,
//! scales and crops may be computed by the model, so the weights are computed by operations as well.

use super::resize_axis::{Axis, Kernel, Place, Sampling};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::reduce::{ReduceMax, ReduceMin};
use carafe_ops::resize::interpolate::ShapeCalculation;
use carafe_ops::resize::{Coordinates, Interpolate, Mode, NearestMode};
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("Resize", 10, by_scales_input),
    rule("Resize", 11, resize),
    rule("Upsample", 1, upsample_v1),
    rule("Upsample", 7, upsample_v7),
    rule("Upsample", 9, by_scales_input),
];

fn upsample_v1(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (height, width): (f32, f32) = (n.required("height_scale")?, n.required("width_scale")?);
    let scales = n.constant(Tensor::from_slice(&[4], &[1.0, 1.0, height, width])?)?;
    early(n, scales)
}

fn upsample_v7(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let scales: Vec<f32> = n.required("scales")?;
    let scales = n.constant(Tensor::from_slice(&[scales.len()], &scales)?)?;
    early(n, scales)
}

fn by_scales_input(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let scales = n.input(1)?;
    early(n, scales)
}

// Before version 11 pixels have no extent, and a smaller image takes the next pixel instead of the nearest.
fn early(n: &mut NodeCx<'_>, scales: Value) -> Result<Outputs> {
    let mode: String = n.attr("mode", "nearest".to_string())?;
    let mode = match mode.as_str() {
        "nearest" => Mode::Nearest,
        "linear" | "bilinear" => Mode::LinearOnnx,
        other => return Err(n.fail(format!("attribute `mode` is `{other}`; known are nearest, linear"))),
    };
    let x = n.input(0)?;
    let axes: Vec<i64> = (0..n.known_rank(x)? as i64).collect();
    let (axes, scales) = changed(n, &axes, scales)?;
    let how = Interpolate {
        mode,
        shape_calculation_mode: ShapeCalculation::Scales,
        coordinate_transformation_mode: Coordinates::Asymmetric,
        nearest_mode: NearestMode::Simple,
        antialias: false,
        pads_begin: vec![0],
        pads_end: vec![0],
        cube_coeff: -0.75,
    };
    let axes = n.i64s(&axes)?;
    Ok(n.emit(how, &[x, scales, axes])?.into())
}

// Leaves the axes out whose scale is known to be 1; batch and channels mostly are such.
fn changed(n: &mut NodeCx<'_>, axes: &[i64], scales: Value) -> Result<(Vec<i64>, Value)> {
    let scales = n.convert(scales, ElementType::F32)?;
    let Some(known) = n.tensor(scales).and_then(|t| t.to_vec::<f32>().ok().map(|v| v.into_owned())) else {
        return Ok((axes.to_vec(), scales));
    };
    if known.len() != axes.len() {
        return Err(n.fail(format!("{} scales are given for {} axes", known.len(), axes.len())));
    }
    let kept: Vec<(i64, f32)> = axes.iter().copied().zip(known).filter(|(_, s)| *s != 1.0).collect();
    if kept.is_empty() || kept.len() == axes.len() {
        return Ok((axes.to_vec(), scales));
    }
    let values: Vec<f32> = kept.iter().map(|(_, s)| *s).collect();
    Ok((kept.iter().map(|(a, _)| *a).collect(), n.constant(Tensor::from_slice(&[values.len()], &values)?)?))
}

// The same for sizes, where the data has them already.
fn changed_sizes(n: &mut NodeCx<'_>, x: Value, axes: &[i64], sizes: Value) -> Result<(Vec<i64>, Value)> {
    let (Some(known), Some(dims)) = (n.ints(sizes), n.shape(x).dims()) else { return Ok((axes.to_vec(), sizes)) };
    if known.len() != axes.len() {
        return Err(n.fail(format!("{} sizes are given for {} axes", known.len(), axes.len())));
    }
    let stays = |a: i64, size: i64| dims[a as usize].get() == Some(size);
    let kept: Vec<(i64, i64)> = axes.iter().copied().zip(known).filter(|(a, s)| !stays(*a, *s)).collect();
    if kept.is_empty() || kept.len() == axes.len() {
        return Ok((axes.to_vec(), sizes));
    }
    let values: Vec<i64> = kept.iter().map(|(_, s)| *s).collect();
    Ok((kept.iter().map(|(a, _)| *a).collect(), n.i64s(&values)?))
}

/// What decides the new sizes.
enum Target {
    Scales(Value),
    Sizes(Value),
}

// An input that is there and not empty.
fn filled(n: &mut NodeCx<'_>, input: usize) -> Result<Option<Value>> {
    let Some(v) = n.opt(input)? else { return Ok(None) };
    Ok((n.shape(v).elements() != Some(0)).then_some(v))
}

fn resize(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let rank = n.known_rank(x)?;
    let axes = match n.opt_attr::<Vec<i64>>("axes")? {
        Some(axes) => axes.iter().map(|&a| n.axis(a, rank).map(|a| a as i64)).collect::<Result<Vec<_>>>()?,
        None => (0..rank as i64).collect(),
    };
    let mode: String = n.attr("mode", "nearest".to_string())?;
    let position: String = n.attr("coordinate_transformation_mode", "half_pixel".to_string())?;
    let nearest: String = n.attr("nearest_mode", "round_prefer_floor".to_string())?;
    let policy: String = n.attr("keep_aspect_ratio_policy", "stretch".to_string())?;
    let cubic: f32 = n.attr("cubic_coeff_a", -0.75)?;
    let exclude_outside: bool = n.attr("exclude_outside", false)?;
    let antialias: bool = n.attr("antialias", false)?;
    let extrapolation: f64 = n.attr("extrapolation_value", 0.0)?;
    let target = match (filled(n, 3)?, filled(n, 2)?) {
        (Some(sizes), _) => Target::Sizes(sizes),
        (None, Some(scales)) => Target::Scales(scales),
        (None, None) => return Err(n.fail("one of scales and sizes must be given")),
    };
    let known = |what: &str, found: &str, list: &str| {
        Err(n.fail(format!("attribute `{what}` is `{found}`; known are {list}")))
    };
    let kernel = match mode.as_str() {
        "nearest" => Kernel::Nearest(match nearest.as_str() {
            "round_prefer_floor" => NearestMode::RoundPreferFloor,
            "round_prefer_ceil" => NearestMode::RoundPreferCeil,
            "floor" => NearestMode::Floor,
            "ceil" => NearestMode::Ceil,
            other => return known("nearest_mode", other, "round_prefer_floor, round_prefer_ceil, floor, ceil"),
        }),
        "linear" => Kernel::Linear,
        "cubic" => Kernel::Cubic(f64::from(cubic)),
        other => return known("mode", other, "nearest, linear, cubic"),
    };
    let position = match position.as_str() {
        "half_pixel" => Place::HalfPixel,
        "half_pixel_symmetric" => Place::HalfPixelSymmetric,
        "pytorch_half_pixel" => Place::PytorchHalfPixel,
        "asymmetric" => Place::Asymmetric,
        "tf_half_pixel_for_nn" => Place::TfHalfPixelForNn,
        "align_corners" => Place::AlignCorners,
        "tf_crop_and_resize" => Place::Crop,
        other => {
            let list = "half_pixel, half_pixel_symmetric, pytorch_half_pixel, asymmetric, tf_half_pixel_for_nn, \
                        align_corners, tf_crop_and_resize";
            return known("coordinate_transformation_mode", other, list);
        }
    };
    let sampling = Sampling { kernel, position, exclude_outside, antialias, extrapolation };
    if policy == "stretch"
        && let Some(coordinates) = direct(n, x, &axes, &target, &sampling)
    {
        return Ok(interpolate(n, x, &axes, &target, &sampling, coordinates)?.into());
    }
    let by_axis = plan(n, x, &axes, &target, &policy, position)?;
    let mut y = n.convert(x, sampling.working_type(n.ty(x)))?;
    for axis in &by_axis {
        y = sampling.resize(n, y, axis)?;
    }
    Ok(n.convert_like(y, x)?.into())
}

// The coordinates of Interpolate, when it computes just this.
fn direct(n: &NodeCx<'_>, x: Value, axes: &[i64], target: &Target, s: &Sampling) -> Option<Coordinates> {
    if s.antialias || s.exclude_outside && matches!(s.kernel, Kernel::Cubic(_)) {
        return None;
    }
    // Sizes that scales do not hit exactly: Interpolate computes with the rounded size, ONNX with the product.
    let exact = match target {
        Target::Sizes(_) => true,
        Target::Scales(v) => n.tensor(*v).and_then(|t| t.to_vec::<f32>().ok()).is_some_and(|scales| {
            scales.iter().zip(axes).all(|(s, &a)| {
                let size = n.shape(x).dims().and_then(|d| d[a as usize].get());
                s.fract() == 0.0 || size.is_some_and(|d| (d as f32 * s).fract() == 0.0)
            })
        }),
    };
    match s.position {
        Place::HalfPixel => Some(Coordinates::HalfPixel),
        Place::HalfPixelSymmetric if exact => Some(Coordinates::HalfPixel),
        Place::PytorchHalfPixel => Some(Coordinates::PytorchHalfPixel),
        Place::Asymmetric => Some(Coordinates::Asymmetric),
        Place::TfHalfPixelForNn => Some(Coordinates::TfHalfPixelForNn),
        // A blend follows the product, as ONNX's own tests have it; they say nothing of the nearest pixel, which peers find
        // by the rounded size.
        Place::AlignCorners if exact || matches!(s.kernel, Kernel::Nearest(_)) => Some(Coordinates::AlignCorners),
        _ => None,
    }
}

fn interpolate(
    n: &mut NodeCx<'_>,
    x: Value,
    axes: &[i64],
    target: &Target,
    s: &Sampling,
    coordinates: Coordinates,
) -> Result<Value> {
    let (by, (axes, amounts)) = match *target {
        Target::Scales(v) => (ShapeCalculation::Scales, changed(n, axes, v)?),
        Target::Sizes(v) => (ShapeCalculation::Sizes, changed_sizes(n, x, axes, v)?),
    };
    let (mode, nearest_mode, cube_coeff) = match s.kernel {
        Kernel::Nearest(nearest) => (Mode::Nearest, nearest, -0.75),
        Kernel::Linear => (Mode::LinearOnnx, NearestMode::RoundPreferFloor, -0.75),
        Kernel::Cubic(a) => (Mode::Cubic, NearestMode::RoundPreferFloor, a as f32),
    };
    let op = Interpolate {
        mode,
        shape_calculation_mode: by,
        coordinate_transformation_mode: coordinates,
        nearest_mode,
        antialias: false,
        pads_begin: vec![0],
        pads_end: vec![0],
        cube_coeff,
    };
    let axes = n.i64s(&axes)?;
    n.emit(op, &[x, amounts, axes])
}

// Old size, new size, scale and crop of every axis.
fn plan(n: &mut NodeCx<'_>, x: Value, axes: &[i64], target: &Target, policy: &str, position: Place) -> Result<Vec<Axis>> {
    let f32s = |n: &mut NodeCx<'_>, v: Value| n.convert(v, ElementType::F32);
    let shape = n.shape_of(x)?;
    let which = n.i64s(axes)?;
    let old = n.gather(shape, which, 0)?;
    let old = f32s(n, old)?;
    let (new, scales) = match *target {
        Target::Scales(scales) => {
            let scales = f32s(n, scales)?;
            let new = n.times(old, scales)?;
            (n.floor(new)?, scales)
        }
        Target::Sizes(sizes) => {
            let sizes = f32s(n, sizes)?;
            let scales = n.over(sizes, old)?;
            let first = n.i64s(&[0])?;
            let common = match policy {
                "stretch" => None,
                "not_larger" => Some(n.emit(ReduceMin { keep_dims: true }, &[scales, first])?),
                "not_smaller" => Some(n.emit(ReduceMax { keep_dims: true }, &[scales, first])?),
                other => {
                    let list = "stretch, not_larger, not_smaller";
                    return Err(n.fail(format!("attribute `keep_aspect_ratio_policy` is `{other}`; known are {list}")));
                }
            };
            match common {
                None => (sizes, scales),
                Some(common) => {
                    let ones = n_ones(n, axes.len())?;
                    let scales = n.times(common, ones)?;
                    let new = n.times(old, common)?;
                    let new = n.plus_number(new, 0.5)?;
                    (n.floor(new)?, scales)
                }
            }
        }
    };
    let roi = match (position, filled(n, 1)?) {
        (Place::Crop, Some(roi)) => Some(f32s(n, roi)?),
        (Place::Crop, None) => return Err(n.fail("tf_crop_and_resize needs input 1, the region")),
        _ => None,
    };
    let mut all = vec![];
    for (i, &axis) in axes.iter().enumerate() {
        let pick = |n: &mut NodeCx<'_>, v: Value, i: usize| {
            let at = n.i64(i as i64)?;
            n.gather(v, at, 0)
        };
        let (from, to, scale) = (pick(n, old, i)?, pick(n, new, i)?, pick(n, scales, i)?);
        let unchanged = n.tensor(scale).and_then(|t| t.to_vec::<f32>().ok()).is_some_and(|s| s[..] == [1.0]);
        if unchanged && roi.is_none() {
            continue;
        }
        let crop = match roi {
            Some(roi) => Some((pick(n, roi, i)?, pick(n, roi, i + axes.len())?)),
            None => None,
        };
        all.push(Axis { axis, from, to, scale, crop });
    }
    Ok(all)
}

fn n_ones(n: &mut NodeCx<'_>, count: usize) -> Result<Value> {
    n.constant(Tensor::from_slice(&[count], &vec![1.0_f32; count])?)
}
