//! Images `[N, H, W, C]`: resized, cropped, and changed in colour.

use super::common::resize::{self, Corners};
use super::common::shapes::{i64_vector, scalar};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::Clamp;
use carafe_ops::indexing::GatherND;
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("AdjustContrastv2", 0, adjust_contrast),
    rule("AdjustHue", 0, |n| {
        let (x, delta) = (n.input(0)?, n.input(1)?);
        let [h, s, v] = to_hsv(n, x)?;
        let delta = scalar(n, delta)?;
        let delta = n.convert_like(delta, x)?;
        let turned = n.plus(h, delta)?;
        let whole = n.floor(turned)?;
        let h = n.minus(turned, whole)?;
        Ok(to_rgb(n, [h, s, v])?.into())
    }),
    rule("AdjustSaturation", 0, |n| {
        let (x, scale) = (n.input(0)?, n.input(1)?);
        let [h, s, v] = to_hsv(n, x)?;
        let scale = scalar(n, scale)?;
        let scale = n.convert_like(scale, x)?;
        let s = n.times(s, scale)?;
        let s = n.emit(Clamp { min: 0.0, max: 1.0 }, &[s])?;
        Ok(to_rgb(n, [h, s, v])?.into())
    }),
    rule("CropAndResize", 0, crop_and_resize),
    rule("HSVToRGB", 0, |n| {
        let x = n.input(0)?;
        let hsv = channels(n, x)?;
        Ok(to_rgb(n, hsv)?.into())
    }),
    rule("RGBToHSV", 0, |n| {
        let x = n.input(0)?;
        let hsv = to_hsv(n, x)?;
        Ok(n.concat(&hsv, -1)?.into())
    }),
    rule("ResizeBilinear", 0, |n| {
        let corners = corners(n)?;
        let (x, size) = (n.input(0)?, n.input(1)?);
        // Whatever goes in, floats come out.
        let x = n.convert(x, ElementType::F32)?;
        Ok(resize::bilinear(n, x, size, corners)?.into())
    }),
    rule("ResizeNearestNeighbor", 0, |n| {
        let corners = corners(n)?;
        let (x, size) = (n.input(0)?, n.input(1)?);
        Ok(resize::nearest(n, x, size, corners)?.into())
    }),
];

fn corners(n: &NodeCx<'_>) -> Result<Corners> {
    Ok(Corners {
        align_corners: n.attr("align_corners", false)?,
        half_pixel_centers: n.attr("half_pixel_centers", false)?,
    })
}

fn adjust_contrast(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, factor) = (n.input(0)?, n.input(1)?);
    let factor = scalar(n, factor)?;
    let factor = n.convert_like(factor, x)?;
    let mean = n.mean_over(x, &[-3, -2], true)?;
    let distance = n.minus(x, mean)?;
    let scaled = n.times(distance, factor)?;
    Ok(n.plus(scaled, mean)?.into())
}

// The three channels, each with an axis of 1.
fn channels(n: &mut NodeCx<'_>, x: Value) -> Result<[Value; 3]> {
    let parts = n.split_equally(x, -1, 3)?;
    Ok([parts[0], parts[1], parts[2]])
}

// Hue, saturation and value of an image of red, green and blue.
fn to_hsv(n: &mut NodeCx<'_>, x: Value) -> Result<[Value; 3]> {
    let [r, g, b] = channels(n, x)?;
    let (zero, one) = (n.scalar_like(x, 0.0)?, n.scalar_like(x, 1.0)?);
    let high = n.max(r, g)?;
    let value = n.max(high, b)?;
    let low = n.min(r, g)?;
    let low = n.min(low, b)?;
    let range = n.minus(value, low)?;
    let positive = n.greater(value, zero)?;
    let divisor = n.choose(positive, value, one)?;
    let saturation = n.over(range, divisor)?;
    let saturation = n.choose(positive, saturation, zero)?;
    let has_hue = n.greater(range, zero)?;
    let safe = n.choose(has_hue, range, one)?;
    let six = n.times_number(safe, 6.0)?;
    let mut part = |a: Value, b: Value, turn: f64| -> Result<Value> {
        let difference = n.minus(a, b)?;
        let share = n.over(difference, six)?;
        n.plus_number(share, turn)
    };
    let (of_r, of_g, of_b) = (part(g, b, 0.0)?, part(b, r, 2.0 / 6.0)?, part(r, g, 4.0 / 6.0)?);
    let (is_r, is_g) = (n.equal(r, value)?, n.equal(g, value)?);
    let hue = n.choose(is_g, of_g, of_b)?;
    let hue = n.choose(is_r, of_r, hue)?;
    let hue = n.choose(has_hue, hue, zero)?;
    let below = n.less(hue, zero)?;
    let turned = n.plus_number(hue, 1.0)?;
    Ok([n.choose(below, turned, hue)?, saturation, value])
}

// Red, green and blue of hue, saturation and value.
fn to_rgb(n: &mut NodeCx<'_>, [h, s, v]: [Value; 3]) -> Result<Value> {
    let chroma = n.times(s, v)?;
    let low = n.minus(v, chroma)?;
    let six = n.times_number(h, 6.0)?;
    let mut colour = |from: f64, sign: f64, offset: f64| -> Result<Value> {
        let distance = n.plus_number(six, -from)?;
        let distance = n.abs(distance)?;
        let share = n.times_number(distance, sign)?;
        let share = n.plus_number(share, offset)?;
        let share = n.emit(Clamp { min: 0.0, max: 1.0 }, &[share])?;
        let part = n.times(share, chroma)?;
        n.plus(part, low)
    };
    let rgb = [colour(3.0, 1.0, -1.0)?, colour(2.0, -1.0, 2.0)?, colour(4.0, -1.0, 2.0)?];
    n.concat(&rgb, -1)
}

// Each box of an image becomes a crop of one size. Samples outside of the image are the extrapolation value.
fn crop_and_resize(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let method: String = n.attr("method", "bilinear".to_string())?;
    let outside: f64 = n.attr("extrapolation_value", 0.0)?;
    let (image, boxes, image_of, size) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?);
    let nearest = match method.as_str() {
        "bilinear" => false,
        "nearest" => true,
        other => return Err(n.unsupported(format!("attribute `method` is `{other}`; known are bilinear, nearest"))),
    };
    let image = n.convert(image, ElementType::F32)?;
    let size = i64_vector(n, size)?;
    let y = samples(n, image, boxes, size, 0)?;
    let x = samples(n, image, boxes, size, 1)?;
    let (y_axes, x_axes) = ([2, 3], [1, 3]);
    let crop = if nearest {
        // Halves are rounded away from 0.
        let mut round = |v: Value| -> Result<Value> {
            n.put(carafe_ops::math::Round { mode: carafe_ops::math::round::RoundMode::HalfAwayFromZero }, &[v])
        };
        let (y, x) = (round(y)?, round(x)?);
        pixels(n, image, image_of, y, x)?
    } else {
        let (top, left) = (n.floor(y)?, n.floor(x)?);
        let (bottom, right) = (n.ceiling(y)?, n.ceiling(x)?);
        let (down, across) = (n.minus(y, top)?, n.minus(x, left)?);
        let (down, across) = (n.with_axes(down, &y_axes)?, n.with_axes(across, &x_axes)?);
        let top_left = pixels(n, image, image_of, top, left)?;
        let top_right = pixels(n, image, image_of, top, right)?;
        let bottom_left = pixels(n, image, image_of, bottom, left)?;
        let bottom_right = pixels(n, image, image_of, bottom, right)?;
        let top = blend(n, top_left, top_right, across)?;
        let bottom = blend(n, bottom_left, bottom_right, across)?;
        blend(n, top, bottom, down)?
    };
    let (y_in, x_in) = (is_inside(n, image, y, 1)?, is_inside(n, image, x, 2)?);
    let (y_in, x_in) = (n.with_axes(y_in, &y_axes)?, n.with_axes(x_in, &x_axes)?);
    let (inside, outside) = (n.and(y_in, x_in)?, n.scalar_like(crop, outside)?);
    Ok(n.choose(inside, crop, outside)?.into())
}

fn blend(n: &mut NodeCx<'_>, a: Value, b: Value, share: Value) -> Result<Value> {
    let distance = n.minus(b, a)?;
    let part = n.times(distance, share)?;
    n.plus(a, part)
}

// Where the samples of each box lie on an axis (0 is y, 1 is x): `[boxes, size]`.
fn samples(n: &mut NodeCx<'_>, image: Value, boxes: Value, size: Value, axis: i64) -> Result<Value> {
    let (first, second, at) = (n.i64s(&[axis])?, n.i64s(&[axis + 2])?, n.i64(axis)?);
    let (low, high) = (n.gather(boxes, first, 1)?, n.gather(boxes, second, 1)?);
    let count = n.gather(size, at, 0)?;
    let last = n.length(image, axis + 1)?;
    let last = n.plus_number(last, -1.0)?;
    let last = n.convert_like(last, boxes)?;
    let one = n.i64(1)?;
    let steps = n.minus(count, one)?;
    let several = n.greater(count, one)?;
    let divisor = n.max(steps, one)?;
    let divisor = n.convert_like(divisor, boxes)?;
    let index = n.count_to(count, ElementType::I64)?;
    let index = n.convert_like(index, boxes)?;
    let distance = n.minus(high, low)?;
    let distance = n.times(distance, last)?;
    let scale = n.over(distance, divisor)?;
    let start = n.times(low, last)?;
    let along = n.times(index, scale)?;
    let spread = n.plus(start, along)?;
    let sum = n.plus(low, high)?;
    let middle = n.times_number(sum, 0.5)?;
    let middle = n.times(middle, last)?;
    n.choose(several, spread, middle)
}

fn is_inside(n: &mut NodeCx<'_>, image: Value, at: Value, axis: i64) -> Result<Value> {
    let last = n.length(image, axis)?;
    let last = n.plus_number(last, -1.0)?;
    let (last, zero) = (n.convert_like(last, at)?, n.scalar_like(at, 0.0)?);
    let (above, below) = (n.greater_equal(at, zero)?, n.less_equal(at, last)?);
    n.and(above, below)
}

// The pixels of rows `y` and columns `x` of each box; those outside are the nearest ones inside.
fn pixels(n: &mut NodeCx<'_>, image: Value, image_of: Value, y: Value, x: Value) -> Result<Value> {
    let zero = n.constant(Tensor::scalar(0i64))?;
    let mut index = |v: Value, axis: i64| -> Result<Value> {
        let v = n.convert(v, ElementType::I64)?;
        let last = n.length(image, axis)?;
        let last = n.plus_number(last, -1.0)?;
        let v = n.min(v, last)?;
        n.max(v, zero)
    };
    let (y, x) = (index(y, 1)?, index(x, 2)?);
    let (y, x) = (n.with_axes(y, &[2])?, n.with_axes(x, &[1])?);
    let which = n.convert(image_of, ElementType::I64)?;
    let which = n.with_axes(which, &[1, 2])?;
    let both = n.plus(y, x)?;
    let shape = n.shape_of(both)?;
    let mut tuple = vec![];
    for v in [which, y, x] {
        let v = n.stretch(v, shape)?;
        tuple.push(n.with_axes(v, &[-1])?);
    }
    let tuples = n.concat(&tuple, -1)?;
    n.emit(GatherND { batch_dims: 0 }, &[image, tuples])
}
