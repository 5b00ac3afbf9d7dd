//! Interp of DeepLab and PSPNet, and Resample of FlowNet. Interp puts the corners of both images on each other and has its own
//! arithmetic for sizes. Resample puts pixel centres on each other; where it shrinks with `antialias`, or is cubic, its
//! filter loses what lies outside the image and is scaled up again, which no mode of Interpolate does: then both axes are
//! products with fixed matrices.

use super::cx::LayerCx;
use super::numbers::{known_size, part, settled, size};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::linear::MatMul;
use carafe_ops::resize::{Coordinates, Interpolate, Mode, NearestMode};
use carafe_ops::resize::interpolate::ShapeCalculation;

pub(crate) const RULES: &[StaticRule] = &[rule("Interp", 0, interp), rule("Resample", 0, resample)];

/// Images are no larger along an axis.
const MOST: i64 = 1 << 16;

fn interp(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let bottoms = n.bottoms()?;
    let (mut x, like) = match bottoms[..] {
        [x] => (x, None),
        [x, like] => (x, Some(like)),
        _ => return Err(n.fail(format!("takes one or two bottoms, has {}", bottoms.len()))),
    };
    let (begin, end): (i64, i64) = (n.attr("pad_beg", 0)?, n.attr("pad_end", 0)?);
    if begin > 0 || end > 0 {
        return Err(n.unsupported("`pad_beg` and `pad_end` must not be positive: they cut, they do not pad"));
    }
    if begin < 0 || end < 0 {
        let stop = if end < 0 { end } else { i64::MAX };
        x = part(n, x, &[2, 3], &[-begin; 2], &[stop; 2], &[1, 1])?;
    }
    let (shrink, zoom): (Option<i64>, Option<i64>) = (n.opt_attr("shrink_factor")?, n.opt_attr("zoom_factor")?);
    let (height, width): (Option<i64>, Option<i64>) = (n.opt_attr("height")?, n.opt_attr("width")?);
    for (name, factor) in [("shrink_factor", shrink), ("zoom_factor", zoom)] {
        if factor.is_some_and(|f| !(1..=MOST).contains(&f)) {
            return Err(n.fail(format!("`{name}` must be positive, found {}", factor.unwrap_or(0))));
        }
    }
    let from = size(n, x)?;
    // Fields of a size give way to one factor, and both factors give way to a size.
    let to = match (shrink, zoom, height.zip(width), like) {
        (Some(shrink), None, ..) => shrunk(n, from, shrink)?,
        (None, Some(zoom), ..) => zoomed(n, from, zoom)?,
        (_, _, Some((h, w)), _) => n.i64s(&[h, w])?,
        (Some(shrink), Some(zoom), ..) => {
            let small = shrunk(n, from, shrink)?;
            zoomed(n, small, zoom)?
        }
        (.., Some(like)) => size(n, like)?,
        _ => return Err(n.fail("needs `height` and `width`, a factor, or a second bottom of the wanted size")),
    };
    let to = settled(n, to)?;
    Ok(corner_on_corner(n, x, to)?.into())
}

// (size - 1) / factor + 1
fn shrunk(n: &mut NodeCx<'_>, size: Value, factor: i64) -> Result<Value> {
    let steps = n.plus_number(size, -1.0)?;
    let factor = n.i64s(&[factor])?;
    let steps = n.over(steps, factor)?;
    n.plus_number(steps, 1.0)
}

// size + (size - 1) * (factor - 1)
fn zoomed(n: &mut NodeCx<'_>, size: Value, factor: i64) -> Result<Value> {
    let steps = n.plus_number(size, -1.0)?;
    let added = n.times_number(steps, (factor - 1) as f64)?;
    n.plus(size, added)
}

/// Linear, first and last pixels on each other; the size is an i64 vector.
pub(super) fn corner_on_corner(n: &mut NodeCx<'_>, x: Value, size: Value) -> Result<Value> {
    resized(n, x, size, Mode::LinearOnnx, Coordinates::AlignCorners, NearestMode::Floor)
}

/// Every pixel becomes a block.
pub(super) fn blocks(n: &mut NodeCx<'_>, x: Value, size: Value) -> Result<Value> {
    resized(n, x, size, Mode::Nearest, Coordinates::Asymmetric, NearestMode::Floor)
}

fn resized(
    n: &mut NodeCx<'_>,
    x: Value,
    size: Value,
    mode: Mode,
    coordinate_transformation_mode: Coordinates,
    nearest_mode: NearestMode,
) -> Result<Value> {
    if let Some(bad) = n.ints(size).and_then(|s| s.into_iter().find(|s| !(1..=MOST).contains(s))) {
        return Err(n.fail(format!("an image of {bad} pixels along an axis cannot be")));
    }
    let axes = n.i64s(&[2, 3])?;
    let op = Interpolate {
        mode,
        shape_calculation_mode: ShapeCalculation::Sizes,
        coordinate_transformation_mode,
        nearest_mode,
        antialias: false,
        pads_begin: vec![0],
        pads_end: vec![0],
        cube_coeff: -0.75,
    };
    n.emit(op, &[x, size, axes])
}

fn resample(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let bottoms = n.bottoms()?;
    let (x, like) = match bottoms[..] {
        [x] => (x, None),
        [x, like] => (x, Some(like)),
        _ => return Err(n.fail(format!("takes one or two bottoms, has {}", bottoms.len()))),
    };
    let kind: String = n.attr("type", "LINEAR".to_string())?;
    let antialias: bool = n.attr("antialias", true)?;
    let (height, width): (i64, i64) = (n.attr("height", 0)?, n.attr("width", 0)?);
    let factor: f64 = n.attr("factor", 1.0)?;
    let to = match like {
        Some(like) => size(n, like)?,
        None if height > 0 && width > 0 => n.i64s(&[height, width])?,
        None => {
            let from = known_size(n, x)?;
            n.i64s(&from.map(|s| (s as f64 * factor) as i64))?
        }
    };
    if kind == "NEAREST" {
        let y = resized(n, x, to, Mode::Nearest, Coordinates::HalfPixel, NearestMode::RoundPreferCeil)?;
        return Ok(y.into());
    }
    let cubic = match kind.as_str() {
        "LINEAR" => false,
        "CUBIC" => true,
        other => return Err(n.unsupported(format!("`type` {other} is not supported; NEAREST, LINEAR and CUBIC are"))),
    };
    let sizes = known_size(n, x).ok().zip(n.ints(to));
    let shrinks = sizes.as_ref().is_none_or(|(from, to)| from.iter().zip(to).any(|(f, t)| f > t));
    let wide = antialias && shrinks;
    if !cubic && !wide {
        let y = resized(n, x, to, Mode::LinearOnnx, Coordinates::HalfPixel, NearestMode::Floor)?;
        return Ok(y.into());
    }
    let Some((from, to)) = sizes else {
        return Err(n.unsupported("the sizes must be known where the filter is cubic or wide"));
    };
    if from.iter().chain(&to).any(|s| !(1..=MOST).contains(s)) {
        return Err(n.fail(format!("{from:?} pixels cannot become {to:?}")));
    }
    // [.., to, from] x [.., from, from] x [from, to]
    let rows = filter(n, from[0], to[0], cubic, wide)?;
    let columns = filter(n, from[1], to[1], cubic, wide)?;
    let y = n.emit(MatMul { transpose_a: false, transpose_b: false }, &[rows, x])?;
    let y = n.emit(MatMul { transpose_a: false, transpose_b: true }, &[y, columns])?;
    Ok(y.into())
}

// One row for each pixel of the result: how much it takes of each pixel.
fn filter(n: &mut NodeCx<'_>, from: i64, to: i64, cubic: bool, wide: bool) -> Result<Value> {
    let (from, to) = (from as usize, to as usize);
    let step = from as f64 / to as f64;
    let mut all = vec![0.0f32; from * to];
    for (o, row) in all.chunks_exact_mut(from).enumerate() {
        let place = o as f64 * step + step / 2.0 - 0.5;
        let weights: Vec<f64> = (0..from)
            .map(|i| {
                let far = (place - i as f64).abs() / if wide { step } else { 1.0 };
                if cubic { cubic_weight(far) } else { (1.0 - far).max(0.0) }
            })
            .collect();
        let sum: f64 = weights.iter().sum();
        if sum != 0.0 {
            row.iter_mut().zip(weights).for_each(|(r, w)| *r = (w / sum) as f32);
        }
    }
    n.floats(&[to, from], &all)
}

fn cubic_weight(x: f64) -> f64 {
    match x {
        x if x <= 1.0 => x * x * (1.5 * x - 2.5) + 1.0,
        x if x < 2.0 => x * (x * (-0.5 * x + 2.5) - 4.0) + 2.0,
        _ => 0.0,
    }
}
