//! Quantisation. A scale is one number, a vector along an axis, or one number for each block of an axis; zero points have
//! its shape. The type of the zero point is the type of the quantised values.

use super::casts::to_f4e2m1;
use super::shapes::all_axes;
use crate::tensor::element_type;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::movement::Tile;
use carafe_ops::reduce::{ReduceMax, ReduceMin};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("DequantizeLinear", 10, dequantize_linear),
    rule("DynamicQuantizeLinear", 11, dynamic_quantize_linear),
    rule("QuantizeLinear", 10, quantize_linear),
];

/// Rounds, adds the zero point and saturates to its type.
pub(super) fn to_integer(n: &mut NodeCx<'_>, x: Value, zero_point: Value) -> Result<Value> {
    let ty = n.ty(zero_point);
    let (low, high) = limits(ty)
        .ok_or_else(|| n.unsupported(format!("quantised values of type {ty} are not supported")))?;
    // f16 cannot hold every 16-bit number.
    let x = n.round(x)?;
    let x = n.convert(x, ElementType::F32)?;
    let zero_point = n.convert(zero_point, ElementType::F32)?;
    let x = n.plus(x, zero_point)?;
    let x = n.between(x, low, high)?;
    n.convert(x, ty)
}

/// Smallest and largest value of a quantised type.
fn limits(ty: ElementType) -> Option<(f64, f64)> {
    Some(match ty {
        ElementType::U2 => (0.0, 3.0),
        ElementType::I2 => (-2.0, 1.0),
        ElementType::U4 => (0.0, 15.0),
        ElementType::I4 => (-8.0, 7.0),
        ElementType::U8 => (0.0, 255.0),
        ElementType::I8 => (-128.0, 127.0),
        ElementType::U16 => (0.0, 65535.0),
        ElementType::I16 => (-32768.0, 32767.0),
        ElementType::F8E4M3 => (-448.0, 448.0),
        ElementType::F8E4M3Fnuz => (-240.0, 240.0),
        ElementType::F8E5M2 | ElementType::F8E5M2Fnuz => (-57344.0, 57344.0),
        ElementType::F4E2M1 => (-6.0, 6.0),
        _ => return None,
    })
}

/// A type named by an attribute; 0 and absence mean none.
fn named_type(n: &NodeCx<'_>, attribute: &str) -> Result<Option<ElementType>> {
    match n.attr(attribute, 0_i32)? {
        0 => Ok(None),
        number => element_type(number).map(Some),
    }
}

/// How scales lie along the data.
enum Grain {
    /// They broadcast after a reshape to this pattern, or as they are.
    Whole(Option<Vec<i64>>),
    /// The data is viewed with the axis cut into blocks; scales get an axis of 1 behind it.
    Blocks { axis: usize, cut: Vec<i64>, whole: Vec<i64> },
    /// Every scale is repeated along the axis, as far as the data goes.
    Repeat { axis: usize, block: i64 },
}

/// Refuses a constant scale that is no finite number: nothing computed with it means anything. Others are as the operation
/// defines them and warned of: peers run them, and whoever reads the numbers gets the largest ones, or those of the other sign. A
/// channel whose weights are all 0 has a scale of 0, so such a one is told only where it divides.
pub(super) fn check_scale(n: &mut NodeCx<'_>, input: usize, divides: bool) -> Result<()> {
    let Some(scale) = n.opt(input)? else { return Ok(()) };
    let Some(all) = n.tensor(scale).filter(|t| t.len() <= 1 << 20).and_then(|t| t.to_vec::<f32>().ok()) else {
        return Ok(());
    };
    if let Some(at) = all.iter().position(|s| !s.is_finite()) {
        let about = format!("input {input} is a scale and holds {} at position {at}", all[at]);
        return Err(n.fail(format!("{about}; expected finite numbers above 0")));
    }
    if let Some(at) = all.iter().position(|s| *s < 0.0 || (divides && *s == 0.0)) {
        n.warn(&format!("the scale is {} at position {at}; expected a number above 0", all[at]));
    }
    Ok(())
}

// A zero point goes with each scale.
fn check_zero_point(n: &NodeCx<'_>, zero_point: Value, scale: Value) -> Result<()> {
    match (n.shape(zero_point).elements(), n.shape(scale).elements()) {
        (Some(zeros), Some(scales)) if zeros != scales && zeros != 1 => {
            Err(n.fail(format!("{zeros} zero points for {scales} scales; expected one for each, or one for all")))
        }
        _ => Ok(()),
    }
}

impl Grain {
    fn read(n: &NodeCx<'_>, x: Value, scale: Value) -> Result<Grain> {
        let axis: i64 = n.attr("axis", 1)?;
        let block: i64 = n.attr("block_size", 0)?;
        if block < 0 {
            return Err(n.fail(format!("attribute `block_size` must not be negative, found {block}")));
        }
        let (Some(rank), Some(scale_rank)) = (n.rank(x), n.rank(scale)) else {
            return match n.rank(scale) {
                Some(0) => Ok(Grain::Whole(None)),
                _ if n.shape(scale).elements() == Some(1) => Ok(Grain::Whole(None)),
                _ => Err(n.unsupported("scales along an axis need data of known rank")),
            };
        };
        if block > 0 && scale_rank == rank {
            let axis = n.axis(axis, rank)?;
            let dims = n.shape(x).to_static();
            return Ok(match dims {
                Some(dims) if dims[axis] as i64 % block == 0 && !dims.contains(&0) => {
                    let whole: Vec<i64> = dims.iter().map(|&d| d as i64).collect();
                    let mut cut = whole.clone();
                    cut.splice(axis..=axis, [whole[axis] / block, block]);
                    Grain::Blocks { axis, cut, whole }
                }
                _ => Grain::Repeat { axis, block },
            });
        }
        if scale_rank != 1 || rank <= 1 {
            return Ok(Grain::Whole(None));
        }
        let axis = n.axis(axis, rank)?;
        let (count, along) = (n.shape(scale).elements(), n.shape(x).dims().and_then(|dims| dims[axis].size()));
        if let (Some(count), Some(along)) = (count, along)
            && count != along
            && count != 1
        {
            let about = format!("the scale has {count} numbers, but axis {axis} of the data has {along} elements");
            return Err(n.fail(format!("{about}; expected one for each, or one for all")));
        }
        let mut pattern = vec![1; rank];
        pattern[axis] = -1;
        Ok(Grain::Whole(Some(pattern)))
    }

    fn view(&self, n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
        match self {
            Grain::Blocks { cut, .. } => n.reshape(x, cut),
            _ => Ok(x),
        }
    }

    fn back(&self, n: &mut NodeCx<'_>, y: Value) -> Result<Value> {
        match self {
            Grain::Blocks { whole, .. } => n.reshape(y, whole),
            _ => Ok(y),
        }
    }

    /// A scale or zero point as it meets the data.
    fn spread(&self, n: &mut NodeCx<'_>, v: Value, x: Value) -> Result<Value> {
        match self {
            Grain::Whole(None) => Ok(v),
            Grain::Whole(Some(pattern)) => n.reshape(v, pattern),
            Grain::Blocks { axis, .. } => n.unsqueeze(v, &[*axis as i64 + 1]),
            Grain::Repeat { axis, block } => {
                let rank = n.known_rank(v)?;
                let wide = n.unsqueeze(v, &[*axis as i64 + 1])?;
                let mut repeats = vec![1; rank + 1];
                repeats[axis + 1] = *block;
                let repeats = n.i64s(&repeats)?;
                let wide = n.emit(Tile, &[wide, repeats])?;
                let mut dims = Vec::new();
                for a in 0..rank {
                    dims.push(if a == *axis { n.i64s(&[-1])? } else { n.size(v, a as i64)? });
                }
                let shape = n.concat(&dims, 0)?;
                let wide = n.reshaped(wide, shape, false)?;
                let stop = n.size(x, *axis as i64)?;
                let start = n.i64s(&[0])?;
                n.cut(wide, start, stop, *axis as i64)
            }
        }
    }
}

fn quantize_linear(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, scale, zero_point) = (n.input(0)?, n.input(1)?, n.opt(2)?);
    let saturate: bool = n.attr("saturate", true)?;
    let ty = match (named_type(n, "output_dtype")?, zero_point) {
        (_, Some(z)) => n.ty(z),
        (Some(ty), None) => ty,
        (None, None) => ElementType::U8,
    };
    let precision = named_type(n, "precision")?.unwrap_or(match n.ty(scale) {
        t @ (ElementType::F16 | ElementType::Bf16 | ElementType::F64) => t,
        _ => ElementType::F32,
    });
    if let Some(zero_point) = zero_point {
        check_zero_point(n, zero_point, scale)?;
    }
    check_scale(n, 1, true)?;
    let grain = Grain::read(n, x, scale)?;
    let scale = grain.spread(n, scale, x)?;
    let zero_point = zero_point.map(|z| grain.spread(n, z, x)).transpose()?;
    let x = grain.view(n, x)?;
    let x = n.convert(x, precision)?;
    let scale = n.convert(scale, precision)?;
    let y = n.over(x, scale)?;
    let y = if ty.is_float() {
        let mut y = n.convert(y, ElementType::F32)?;
        if let Some(z) = zero_point {
            let z = n.convert(z, ElementType::F32)?;
            y = n.plus(y, z)?;
        }
        if let Some((low, high)) = limits(ty).filter(|_| saturate) {
            y = n.between(y, low, high)?;
        }
        match ty {
            ElementType::F4E2M1 => to_f4e2m1(n, y)?,
            _ => n.convert(y, ty)?,
        }
    } else {
        let zero_point = match zero_point {
            Some(z) => z,
            None => n.scalar(ty, 0.0)?,
        };
        to_integer(n, y, zero_point)?
    };
    Ok(grain.back(n, y)?.into())
}

fn dequantize_linear(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, scale, zero_point) = (n.input(0)?, n.input(1)?, n.opt(2)?);
    // A scale of powers of two is no type of results.
    let out = named_type(n, "output_dtype")?.unwrap_or(match n.ty(scale) {
        ElementType::F8E8M0 => ElementType::F32,
        ty => ty,
    });
    if !out.is_float() {
        return Err(n.fail(format!("attribute `output_dtype` must be a float type, found {out}")));
    }
    // Differences of 8-bit numbers are exact in every float type; wider ones need f32.
    let direct = out == n.ty(scale) && (n.ty(x).bits() <= 8 || matches!(out, ElementType::F32 | ElementType::F64));
    let float = matches!(out, ElementType::F16 | ElementType::Bf16 | ElementType::F32 | ElementType::F64);
    let ty = if direct && float { out } else { ElementType::F32 };
    if let Some(zero_point) = zero_point {
        check_zero_point(n, zero_point, scale)?;
    }
    check_scale(n, 1, false)?;
    let grain = Grain::read(n, x, scale)?;
    let scale = grain.spread(n, scale, x)?;
    let scale = n.convert(scale, ty)?;
    let zero_point = zero_point.map(|z| grain.spread(n, z, x)).transpose()?;
    let x = grain.view(n, x)?;
    let x = super::convolution::centred(n, x, zero_point, ty)?;
    let y = n.times(x, scale)?;
    let y = n.convert(y, out)?;
    Ok(grain.back(n, y)?.into())
}

fn dynamic_quantize_linear(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let axes = all_axes(n, x)?;
    let zero = n.scalar_like(x, 0.0)?;
    let high = n.emit(ReduceMax { keep_dims: false }, &[x, axes])?;
    let high = n.max(high, zero)?;
    let low = n.emit(ReduceMin { keep_dims: false }, &[x, axes])?;
    let low = n.min(low, zero)?;
    let span = n.minus(high, low)?;
    let scale = n.over_number(span, 255.0)?;
    // Data of zeros alone has no span.
    let flat = n.equal_number(scale, 0.0)?;
    let one = n.scalar_like(x, 1.0)?;
    let scale = n.choose(flat, one, scale)?;
    let zero_point = n.over(low, scale)?;
    let zero_point = n.minus(zero, zero_point)?;
    let zero_point = n.round(zero_point)?;
    let zero_point = n.between(zero_point, 0.0, 255.0)?;
    let zero_point = n.convert(zero_point, ElementType::U8)?;
    let y = n.over(x, scale)?;
    let y = to_integer(n, y, zero_point)?;
    Ok(vec![y, scale, zero_point].into())
}
