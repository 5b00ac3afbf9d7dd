//! Resizing one axis by operations: a Gather of the nearest pixels, or a product with a matrix of weights, one row for each
//! new pixel. Pixels beyond the border stand for the border pixel, unless they are excluded.

use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::OneHot;
use carafe_ops::indexing::one_hot::NegativeIndices;
use carafe_ops::reduce::{ReduceMax, ReduceMin, ReduceSum};
use carafe_ops::resize::NearestMode;
use carafe_ops::shape::Range;
use carafe_tensor::ElementType;

/// How pixels are blended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kernel {
    Nearest(NearestMode),
    Linear,
    /// With its coefficient.
    Cubic(f64),
}

/// Where a new pixel lies among the old ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Place {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    Asymmetric,
    TfHalfPixelForNn,
    AlignCorners,
    Crop,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    pub kernel: Kernel,
    pub position: Place,
    pub exclude_outside: bool,
    pub antialias: bool,
    /// What stands outside of the data under `Place::Crop`.
    pub extrapolation: f64,
}

/// One axis; sizes and scale are f32 scalars.
pub(super) struct Axis {
    pub axis: i64,
    pub from: Value,
    pub to: Value,
    pub scale: Value,
    /// Begin and end of the region, as parts of the axis.
    pub crop: Option<(Value, Value)>,
}

impl Sampling {
    /// The type to compute in: movement keeps every type, weights are floats.
    pub(super) fn working_type(&self, ty: ElementType) -> ElementType {
        match (self.kernel, self.position) {
            (Kernel::Nearest(_), position) if position != Place::Crop => ty,
            _ if ty == ElementType::F64 => ty,
            _ => ElementType::F32,
        }
    }

    pub(super) fn resize(&self, n: &mut NodeCx<'_>, x: Value, axis: &Axis) -> Result<Value> {
        let to = n.convert(axis.to, ElementType::I64)?;
        let new = n.count_to(to, ElementType::F32)?;
        let at = self.coordinates(n, new, axis)?;
        let y = match self.kernel {
            Kernel::Nearest(mode) => {
                let pixel = nearest(n, at, mode)?;
                let pixel = clip(n, pixel, axis.from)?;
                let pixel = n.convert(pixel, ElementType::I64)?;
                n.gather(x, pixel, axis.axis)?
            }
            Kernel::Linear | Kernel::Cubic(_) => {
                let weights = self.weights(n, at, axis)?;
                weigh(n, x, weights, axis.axis)?
            }
        };
        if axis.crop.is_none() {
            return Ok(y);
        }
        let zero = n.scalar_like(at, 0.0)?;
        let below = n.less(at, zero)?;
        let last = n.plus_number(axis.from, -1.0)?;
        let above = n.greater(at, last)?;
        let outside = n.or(below, above)?;
        let behind = n.known_rank(x)? as i64 - 1 - axis.axis;
        let outside = n.reshape(outside, &[&[-1][..], &vec![1; behind as usize]].concat())?;
        let value = n.scalar_like(y, self.extrapolation)?;
        n.choose(outside, value, y)
    }

    fn coordinates(&self, n: &mut NodeCx<'_>, new: Value, axis: &Axis) -> Result<Value> {
        match self.position {
            Place::Asymmetric => n.over(new, axis.scale),
            Place::HalfPixel | Place::PytorchHalfPixel => {
                let at = centred(n, new, axis.scale)?;
                if self.position == Place::HalfPixel {
                    return Ok(at);
                }
                let single = n.equal_number(axis.to, 1.0)?;
                let zero = n.scalar_like(at, 0.0)?;
                n.choose(single, zero, at)
            }
            Place::HalfPixelSymmetric => {
                let at = centred(n, new, axis.scale)?;
                let exact = n.times(axis.scale, axis.from)?;
                let part = n.over(axis.to, exact)?;
                let gap = n.times_number(part, -1.0)?;
                let gap = n.plus_number(gap, 1.0)?;
                let middle = n.times_number(axis.from, 0.5)?;
                let offset = n.times(middle, gap)?;
                n.plus(at, offset)
            }
            Place::TfHalfPixelForNn => {
                let at = n.plus_number(new, 0.5)?;
                n.over(at, axis.scale)
            }
            Place::AlignCorners => {
                let exact = n.times(axis.scale, axis.from)?;
                spread(n, new, exact, axis.from)
            }
            Place::Crop => {
                let Some((begin, end)) = axis.crop else { return Err(n.fail("a crop needs a region")) };
                let last = n.plus_number(axis.from, -1.0)?;
                let span = n.minus(end, begin)?;
                let span = n.times(span, last)?;
                let exact = n.times(axis.scale, axis.from)?;
                let single = n.equal_number(exact, 1.0)?;
                let steps = n.plus_number(exact, -1.0)?;
                let one = n.scalar_like(exact, 1.0)?;
                let steps = n.choose(single, one, steps)?;
                let moved = n.times(new, span)?;
                let moved = n.over(moved, steps)?;
                let half = n.times_number(span, 0.5)?;
                let moved = n.choose(single, half, moved)?;
                let start = n.times(begin, last)?;
                n.plus(moved, start)
            }
        }
    }

    // [to, from].
    fn weights(&self, n: &mut NodeCx<'_>, at: Value, axis: &Axis) -> Result<Value> {
        let one = n.scalar_like(axis.scale, 1.0)?;
        // Antialias widens the filter as the image shrinks.
        let squeeze = if self.antialias { n.min(axis.scale, one)? } else { one };
        let reach = if matches!(self.kernel, Kernel::Cubic(_)) { 2.0 } else { 1.0 };
        let (first, stop) = if self.exclude_outside {
            (n.scalar_like(one, 0.0)?, axis.from)
        } else {
            let most = n.scalar_like(one, reach)?;
            let most = n.over(most, squeeze)?;
            let most = n.ceiling(most)?;
            let (low, high) = self.span(n, at)?;
            let low = n.minus(low, most)?;
            let high = n.plus(high, most)?;
            let zero = n.scalar_like(one, 0.0)?;
            let low = n.min(low, zero)?;
            let high = n.max(high, axis.from)?;
            (n.floor(low)?, n.ceiling(high)?)
        };
        let old = n.emit(Range { output_type: ElementType::F32 }, &[first, stop, one])?;
        let column = n.unsqueeze(at, &[1])?;
        let distance = n.minus(column, old)?;
        let distance = n.times(distance, squeeze)?;
        let distance = n.abs(distance)?;
        let mut weights = match self.kernel {
            Kernel::Cubic(a) => cubic(n, distance, a)?,
            _ => {
                let inside = n.times_number(distance, -1.0)?;
                let inside = n.plus_number(inside, 1.0)?;
                n.emit(carafe_ops::activation::Relu, &[inside])?
            }
        };
        if self.antialias || self.exclude_outside {
            let last = n.i64s(&[1])?;
            let sums = n.put(ReduceSum { keep_dims: true }, &[weights, last])?;
            let nothing = n.equal_number(sums, 0.0)?;
            let sums = n.choose(nothing, one, sums)?;
            weights = n.over(weights, sums)?;
        }
        if self.exclude_outside {
            return Ok(weights);
        }
        // What lies outside goes to the border pixels.
        let border = clip(n, old, axis.from)?;
        let border = n.convert(border, ElementType::I64)?;
        let depth = n.convert(axis.from, ElementType::I64)?;
        let (on, off) = (n.scalar(ElementType::F32, 1.0)?, n.scalar(ElementType::F32, 0.0)?);
        let op = OneHot { axis: -1, negative_indices_mode: NegativeIndices::Ignore };
        let fold = n.emit(op, &[border, depth, on, off])?;
        n.product(weights, fold, false)
    }

    // Lowest and highest coordinate.
    fn span(&self, n: &mut NodeCx<'_>, at: Value) -> Result<(Value, Value)> {
        let axes = n.i64s(&[0])?;
        let low = n.emit(ReduceMin { keep_dims: false }, &[at, axes])?;
        let high = n.emit(ReduceMax { keep_dims: false }, &[at, axes])?;
        let high = n.plus_number(high, 1.0)?;
        Ok((low, high))
    }
}

fn centred(n: &mut NodeCx<'_>, new: Value, scale: Value) -> Result<Value> {
    let at = n.plus_number(new, 0.5)?;
    let at = n.over(at, scale)?;
    n.plus_number(at, -0.5)
}

// First on first and last on last; a single pixel on the first.
fn spread(n: &mut NodeCx<'_>, new: Value, to: Value, from: Value) -> Result<Value> {
    let single = n.equal_number(to, 1.0)?;
    let one = n.scalar_like(to, 1.0)?;
    let steps = n.plus_number(to, -1.0)?;
    let steps = n.choose(single, one, steps)?;
    let last = n.plus_number(from, -1.0)?;
    let at = n.times(new, last)?;
    let at = n.over(at, steps)?;
    let zero = n.scalar_like(at, 0.0)?;
    n.choose(single, zero, at)
}

fn clip(n: &mut NodeCx<'_>, pixel: Value, from: Value) -> Result<Value> {
    let last = n.plus_number(from, -1.0)?;
    let pixel = n.min(pixel, last)?;
    let zero = n.scalar_like(pixel, 0.0)?;
    n.max(pixel, zero)
}

fn nearest(n: &mut NodeCx<'_>, at: Value, mode: NearestMode) -> Result<Value> {
    match mode {
        NearestMode::Ceil => n.ceiling(at),
        NearestMode::RoundPreferFloor => {
            let at = n.plus_number(at, -0.5)?;
            n.ceiling(at)
        }
        NearestMode::RoundPreferCeil => {
            let at = n.plus_number(at, 0.5)?;
            n.floor(at)
        }
        NearestMode::Floor | NearestMode::Simple => n.floor(at),
    }
}

// The cubic filter at a distance.
fn cubic(n: &mut NodeCx<'_>, d: Value, a: f64) -> Result<Value> {
    let near = n.times_number(d, a + 2.0)?;
    let near = n.plus_number(near, -(a + 3.0))?;
    let near = n.times(near, d)?;
    let near = n.times(near, d)?;
    let near = n.plus_number(near, 1.0)?;
    let far = n.plus_number(d, -5.0)?;
    let far = n.times(far, d)?;
    let far = n.plus_number(far, 8.0)?;
    let far = n.times(far, d)?;
    let far = n.plus_number(far, -4.0)?;
    let far = n.times_number(far, a)?;
    let (one, two, zero) = (n.scalar_like(d, 1.0)?, n.scalar_like(d, 2.0)?, n.scalar_like(d, 0.0)?);
    let is_far = n.less(d, two)?;
    let far = n.choose(is_far, far, zero)?;
    let is_near = n.less_equal(d, one)?;
    n.choose(is_near, near, far)
}

// Weights [to, from] on one axis of the data.
fn weigh(n: &mut NodeCx<'_>, x: Value, weights: Value, axis: i64) -> Result<Value> {
    let weights = n.convert_like(weights, x)?;
    let rank = n.known_rank(x)? as i64;
    let op = carafe_ops::linear::MatMul { transpose_a: false, transpose_b: true };
    if axis == rank - 1 {
        return n.emit(op, &[x, weights]);
    }
    // Swapping twice is going there and back.
    let mut order: Vec<i64> = (0..rank).collect();
    order.swap(axis as usize, rank as usize - 1);
    let turned = n.transpose(x, &order)?;
    let turned = n.emit(op, &[turned, weights])?;
    n.transpose(turned, &order)
}
