//! Interp of DeepLab and PSPNet, and Resample of FlowNet. Interp puts the corners of both images on each other and has its own
//! arithmetic for sizes. Resample puts pixel centres on each other; where it shrinks with `antialias`, or is cubic, its
//! filter loses what lies outside the image and is scaled up again, which no mode of Interpolate does: then both axes are
//! products with matrices made of the sizes.

use super::cx::LayerCx;
use super::numbers::{known_size, part, picked, size, ticks};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::{Clamp, Relu};
use carafe_ops::arithmetic::AutoBroadcast;
use carafe_ops::compare::{Greater, LessEqual};
use carafe_ops::indexing::Select;
use carafe_ops::linear::MatMul;
use carafe_ops::math::Abs;
use carafe_ops::reduce::{ReduceLogicalOr, ReduceSum};
use carafe_ops::resize::{Coordinates, Interpolate, Mode, NearestMode};
use carafe_ops::resize::interpolate::ShapeCalculation;
use carafe_tensor::ElementType;

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
            let from = size(n, x)?;
            let Some((above, below)) = fraction(factor) else {
                return Err(n.fail(format!("`factor` must be positive, found {factor}")));
            };
            let above = n.times_number(from, above as f64)?;
            let below = n.i64s(&[below])?;
            n.over(above, below)?
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
    let by_factor = like.is_none() && !(height > 0 && width > 0);
    if !cubic && (!antialias || (by_factor && factor >= 1.0)) {
        let y = resized(n, x, to, Mode::LinearOnnx, Coordinates::HalfPixel, NearestMode::Floor)?;
        return Ok(y.into());
    }
    let known = known_size(n, x).ok().zip(n.ints(to));
    if let Some((from, to)) = known.filter(|(from, to)| from.iter().chain(to).any(|s| !(1..=MOST).contains(s))) {
        return Err(n.fail(format!("{from:?} pixels cannot become {to:?}")));
    }
    let from = size(n, x)?;
    let (before, after) = (n.convert(from, ElementType::F32)?, n.convert(to, ElementType::F32)?);
    let step = n.over(before, after)?;
    let stretch = if antialias { Some(stretched(n, from, to, step)?) } else { None };
    // [.., to, from] x [.., from, from] x [from, to]
    let mut filters = vec![];
    for axis in [0, 1] {
        let (from, to, step) = (picked(n, from, &[axis])?, picked(n, to, &[axis])?, picked(n, step, &[axis])?);
        let stretch = stretch.map(|s| picked(n, s, &[axis])).transpose()?;
        filters.push(filter(n, from, to, step, stretch, cubic)?);
    }
    let (rows, columns) = (filters[0], filters[1]);
    let y = n.emit(MatMul { transpose_a: false, transpose_b: false }, &[rows, x])?;
    let y = n.emit(MatMul { transpose_a: false, transpose_b: true }, &[y, columns])?;
    Ok(y.into())
}

// Where either axis shrinks, the filter is as wide as a step on both; otherwise as wide as a pixel.
fn stretched(n: &mut NodeCx<'_>, from: Value, to: Value, step: Value) -> Result<Value> {
    let shrinks = n.emit(Greater::default(), &[from, to])?;
    let (axis, one) = (n.i64s(&[0])?, n.scalar(ElementType::F32, 1.0)?);
    let shrinks = n.emit(ReduceLogicalOr { keep_dims: true }, &[shrinks, axis])?;
    chosen(n, shrinks, step, one)
}

fn chosen(n: &mut NodeCx<'_>, when: Value, a: Value, b: Value) -> Result<Value> {
    n.emit(Select { auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None }, &[when, a, b])
}

// One row for each pixel of the result: how much it takes of each pixel. All are vectors of one element.
fn filter(
    n: &mut NodeCx<'_>,
    from: Value,
    to: Value,
    step: Value,
    stretch: Option<Value>,
    cubic: bool,
) -> Result<Value> {
    let positions = ticks(n, to)?;
    let positions = n.times(positions, step)?;
    let half = n.times_number(step, 0.5)?;
    let half = n.plus_number(half, -0.5)?;
    let positions = n.plus(positions, half)?;
    let positions = n.unsqueeze(positions, &[1])?;
    let pixels = ticks(n, from)?;
    let far = n.minus(positions, pixels)?;
    let mut far = n.emit(Abs, &[far])?;
    if let Some(stretch) = stretch {
        far = n.over(far, stretch)?;
    }
    let weights = match cubic {
        true => cubic_weights(n, far)?,
        false => {
            let near = n.times_number(far, -1.0)?;
            let near = n.plus_number(near, 1.0)?;
            n.emit(Relu, &[near])?
        }
    };
    let axis = n.i64s(&[1])?;
    let sum = n.emit(ReduceSum { keep_dims: true }, &[weights, axis])?;
    n.over(weights, sum)
}

// x * x * (1.5 * x - 2.5) + 1 up to 1, x * (x * (-0.5 * x + 2.5) - 4) + 2 up to 2, nothing beyond.
fn cubic_weights(n: &mut NodeCx<'_>, far: Value) -> Result<Value> {
    let x = n.emit(Clamp { min: 0.0, max: 2.0 }, &[far])?;
    let polynomial = |n: &mut NodeCx<'_>, factors: [f64; 4]| -> Result<Value> {
        let mut y = n.times_number(x, factors[0])?;
        for factor in &factors[1..3] {
            y = n.plus_number(y, *factor)?;
            y = n.times(y, x)?;
        }
        n.plus_number(y, factors[3])
    };
    let near = polynomial(n, [1.5, -2.5, 0.0, 1.0])?;
    let beyond = polynomial(n, [-0.5, 2.5, -4.0, 2.0])?;
    let one = n.scalar(ElementType::F32, 1.0)?;
    let is_near = n.emit(LessEqual::default(), &[x, one])?;
    chosen(n, is_near, near, beyond)
}

// The simplest fraction that is the same number to a float: sizes are whole and stay so.
fn fraction(factor: f64) -> Option<(i64, i64)> {
    if !(1e-4..=MOST as f64).contains(&factor) {
        return None;
    }
    let (mut last, mut now) = ((0i64, 1i64), (1i64, 0i64));
    let mut rest = factor;
    for _ in 0..64 {
        let whole = rest.floor() as i64;
        let next = (whole.checked_mul(now.0)?.checked_add(last.0)?, whole.checked_mul(now.1)?.checked_add(last.1)?);
        (last, now) = (now, next);
        let error = (now.0 as f64 / now.1 as f64 - factor).abs();
        if error <= factor * f64::from(f32::EPSILON) / 2.0 {
            return Some(now);
        }
        rest = 1.0 / (rest - whole as f64);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::fraction;

    #[test]
    fn factors_become_simple_fractions() {
        assert_eq!(fraction(2.0), Some((2, 1)));
        assert_eq!(fraction(0.7), Some((7, 10)));
        assert_eq!(fraction(f64::from(0.7f32)), Some((7, 10)));
        assert_eq!(fraction(f64::from(1.0f32 / 3.0)), Some((1, 3)));
        assert_eq!(fraction(0.123), Some((123, 1000)));
        assert_eq!(fraction(0.0), None);
        assert_eq!(fraction(-2.0), None);
        assert_eq!(fraction(f64::NAN), None);
    }
}
