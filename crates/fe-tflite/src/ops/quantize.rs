//! Between integers and the floats that they stand for. Stored integers stay stored, widened and scaled where they are read;
//! other values are rounded to the grid of their type by FakeQuantize.

use crate::quantization::DOMAIN;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::AutoBroadcast;
use carafe_ops::quantize::FakeQuantize;
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("DEQUANTIZE", 1, dequantize_operator),
    rule("FAKE_QUANT", 1, fake_quant),
    rule("QUANTIZE", 1, |n| Ok(n.input(0)?.into())),
    rule_in(DOMAIN, "Dequantize", 1, dequantize),
    rule_in(DOMAIN, "FakeQuantize", 1, |n| {
        let (x, q) = (n.input(0)?, Grid::read(n)?);
        Ok(q.rounded(n, x)?.into())
    }),
    rule_in(DOMAIN, "Quantize", 1, |n| {
        let (x, q) = (n.input(0)?, Grid::read(n)?);
        Ok(q.integers(n, x)?.into())
    }),
];

// What was quantised is a float already; halves are widened.
fn dequantize_operator(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(n.convert(x, ElementType::F32)?.into())
}

/// How integers of a type stand for floats.
struct Grid {
    ty: ElementType,
    scale: Vec<f64>,
    zero_point: Vec<i64>,
    axis: i64,
}

/// Smallest and largest integer of a type that activations have.
fn limits(ty: ElementType) -> Option<(f64, f64)> {
    Some(match ty {
        ElementType::I8 => (-128.0, 127.0),
        ElementType::U8 => (0.0, 255.0),
        ElementType::I16 => (-32768.0, 32767.0),
        ElementType::U16 => (0.0, 65535.0),
        _ => return None,
    })
}

impl Grid {
    fn read(n: &NodeCx<'_>) -> Result<Grid> {
        let grid = Grid {
            ty: n.required("type")?,
            scale: n.required("scale")?,
            zero_point: n.required("zero_point")?,
            axis: n.required("axis")?,
        };
        let (scales, zeros) = (grid.scale.len(), grid.zero_point.len());
        if !(zeros <= 1 || zeros == scales) {
            return Err(n.fail(format!("{zeros} zero points do not fit {scales} scales")));
        }
        if let Some(s) = grid.scale.iter().find(|s| !s.is_finite() || **s < 0.0) {
            return Err(n.fail(format!("a scale is {s}; expected a finite number that is not negative")));
        }
        let outside = |z: &&i64| limits(grid.ty).is_some_and(|(low, high)| !(low..=high).contains(&(**z as f64)));
        if let Some(z) = grid.zero_point.iter().find(outside) {
            return Err(n.fail(format!("a zero point is {z}; expected a number that {} holds", grid.ty)));
        }
        Ok(grid)
    }

    fn zero(&self, i: usize) -> f64 {
        self.zero_point.get(i).or(self.zero_point.first()).copied().unwrap_or(0) as f64
    }

    // One number for each scale, as it meets data of the rank of `x`.
    fn spread(&self, n: &mut NodeCx<'_>, x: Value, f: impl Fn(usize) -> f64) -> Result<Value> {
        let numbers: Vec<f32> = (0..self.scale.len()).map(|i| f(i) as f32).collect();
        if let [one] = numbers[..] {
            return n.constant(Tensor::scalar(one));
        }
        let rank = n.known_rank(x)?;
        let axis = n.axis(self.axis, rank)?;
        let size = n.shape(x).dim(axis);
        if size.get().is_some_and(|s| s != numbers.len() as i64) {
            return Err(n.fail(format!("{} scales lie along axis {axis} of size {size}", numbers.len())));
        }
        let mut shape = vec![1; rank];
        shape[axis] = numbers.len();
        n.constant(Tensor::from_slice(&shape, &numbers)?)
    }

    // FakeQuantize from one range to another.
    fn quantize(&self, n: &mut NodeCx<'_>, x: Value, from_float: bool, to_float: bool) -> Result<Value> {
        let ty = self.ty;
        let Some((low, high)) = limits(ty) else {
            return Err(n.unsupported(format!("activations quantised as {ty} are not supported")));
        };
        if self.scale.iter().any(|s| *s <= 0.0) {
            return Err(n.fail("the scale of an activation is 0"));
        }
        let float = |limit: f64| move |i: usize| (limit - self.zero(i)) * self.scale[i];
        let mut inputs = vec![x];
        for is_float in [from_float, to_float] {
            for limit in [low, high] {
                inputs.push(match is_float {
                    true => self.spread(n, x, float(limit))?,
                    false => n.constant(Tensor::scalar(limit as f32))?,
                });
            }
        }
        let levels = (high - low) as u64 + 1;
        n.emit(fake_quantize(levels), &inputs)
    }

    /// A float rounded to the grid.
    fn rounded(&self, n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
        self.quantize(n, x, true, true)
    }

    /// The integers of a float on the grid.
    fn integers(&self, n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
        let y = self.quantize(n, x, true, false)?;
        n.convert(y, self.ty)
    }
}

fn dequantize(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let grid = Grid::read(n)?;
    let is_stored: bool = n.attr("is_stored", true)?;
    let block: i64 = n.attr("block_size", 0)?;
    let widened = n.convert(x, ElementType::F32)?;
    if block > 0 {
        return Ok(blockwise(n, widened, block)?.into());
    }
    if !is_stored {
        return Ok(grid.quantize(n, widened, false, true)?.into());
    }
    let mut y = widened;
    if grid.zero_point.iter().any(|z| *z != 0) {
        let zero_point = grid.spread(n, x, |i| grid.zero(i))?;
        y = n.minus(y, zero_point)?;
    }
    let scale = grid.spread(n, x, |i| grid.scale[i])?;
    Ok(n.times(y, scale)?.into())
}

// Scales and zero points in tensors of their own, each for a block of the last axis.
fn blockwise(n: &mut NodeCx<'_>, x: Value, block: i64) -> Result<Value> {
    let shape = n.shape(x).to_static().ok_or_else(|| n.unsupported("blockwise weights must have a known shape"))?;
    let (Some((&last, front)), true) = (shape.split_last(), block > 0) else {
        return Err(n.fail("blockwise weights need an axis"));
    };
    if last as i64 % block != 0 {
        return Err(n.fail(format!("blocks of {block} do not divide an axis of {last}")));
    }
    let whole: Vec<i64> = shape.iter().map(|d| *d as i64).collect();
    let front: Vec<i64> = front.iter().map(|d| *d as i64).collect();
    let blocks = [front.clone(), vec![last as i64 / block, block]].concat();
    let each = [front, vec![last as i64 / block, 1]].concat();
    let scale = n.input(1)?;
    let scale = n.convert(scale, ElementType::F32)?;
    let scale = n.reshape(scale, &each)?;
    let mut y = n.reshape(x, &blocks)?;
    if let Some(zero_point) = n.opt(2)? {
        let zero_point = n.convert(zero_point, ElementType::F32)?;
        let zero_point = n.reshape(zero_point, &each)?;
        y = n.minus(y, zero_point)?;
    }
    let y = n.times(y, scale)?;
    n.reshape(y, &whole)
}

// The range is moved a little so that zero is one of its steps.
fn fake_quant(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (min, max): (f64, f64) = (n.attr("min", 0.0)?, n.attr("max", 0.0)?);
    let bits: u32 = n.attr("num_bits", 0)?;
    let narrow: bool = n.attr("narrow_range", false)?;
    if !(2..=16).contains(&bits) || min > 0.0 || max < 0.0 || min >= max {
        return Err(n.fail(format!("a range of {min} to {max} in {bits} bits is not possible")));
    }
    let (low, high) = (f64::from(u32::from(narrow)), f64::from((1u32 << bits) - 1));
    let scale = f64::from(((max - min) / (high - low)) as f32);
    let zero = (low - min / scale).round().clamp(low, high);
    let mut inputs = vec![x];
    for limit in [low, high, low, high] {
        inputs.push(n.scalar(ElementType::F32, (limit - zero) * scale)?);
    }
    let levels = (high - low) as u64 + 1;
    Ok(n.emit(fake_quantize(levels), &inputs)?.into())
}

fn fake_quantize(levels: u64) -> FakeQuantize {
    FakeQuantize { levels, auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None }
}
