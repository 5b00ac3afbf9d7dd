//! Shared by operations of one number: floats are computed in f64 and rounded once, so results are exact to the last bit
//! of the stored type in nearly all cases. On integers each operation says itself whether its real result is rounded or
//! cut; OpenVINO does both, so look there before trusting a habit.

use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::ElementType;

/// Numeric input, output alike.
pub(crate) fn infer(cx: &mut InferCx<'_>) -> Result<()> {
    cx.require_number(0)?;
    cx.output_like(0, 0);
    Ok(())
}

/// Float input, output alike.
pub(crate) fn infer_float(cx: &mut InferCx<'_>) -> Result<()> {
    cx.require_float(0)?;
    cx.output_like(0, 0);
    Ok(())
}

/// Float input, boolean output of the same shape.
pub(crate) fn infer_predicate(cx: &mut InferCx<'_>) -> Result<()> {
    cx.require_float(0)?;
    cx.set(0, ElementType::Boolean, cx.shape(0).clone());
    Ok(())
}

/// A float function and an exact integer one; integers wrap into the type they are stored in.
pub(crate) fn map_number(cx: &mut EvalCx<'_>, float: impl Fn(f64) -> f64, int: impl Fn(i128) -> i128) -> Result<()> {
    if cx.ty(0).is_float() { map_float(cx, float) } else { map_integer(cx, int) }
}

/// A float function; the results of integers are rounded to the nearest, halves away from zero.
pub(crate) fn map_rounded(cx: &mut EvalCx<'_>, f: impl Fn(f64) -> f64) -> Result<()> {
    let rounds = !cx.ty(0).is_float();
    map_blocks(cx, &mut |block| each(block, &f), rounds)
}

/// A float function; the results of integers lose their fraction.
pub(crate) fn map_truncated(cx: &mut EvalCx<'_>, f: impl Fn(f64) -> f64) -> Result<()> {
    map_float(cx, f)
}

/// A float function on numbers of any type, stored as Convert would.
pub(crate) fn map_float(cx: &mut EvalCx<'_>, f: impl Fn(f64) -> f64) -> Result<()> {
    map_blocks(cx, &mut |block| each(block, &f), false)
}

fn each<T: Copy>(block: &mut [T], f: impl Fn(T) -> T) {
    for x in block {
        *x = f(*x);
    }
}

// Numbers of a block, so that the function is compiled as one loop over f64 whatever the type of the data.
const BLOCK: usize = 256;

fn map_blocks(cx: &mut EvalCx<'_>, f: &mut dyn FnMut(&mut [f64]), rounds: bool) -> Result<()> {
    let shape = cx.shape(0).to_vec();
    if cx.ty(0) == ElementType::F32 {
        let mut y = cx.get::<f32>(0)?.into_owned();
        let mut wide = [0.0; BLOCK];
        for block in y.chunks_mut(BLOCK) {
            let wide = &mut wide[..block.len()];
            for (to, from) in wide.iter_mut().zip(&*block) {
                *to = f64::from(*from);
            }
            f(wide);
            for (to, from) in block.iter_mut().zip(&*wide) {
                *to = *from as f32;
            }
        }
        return cx.put(0, &shape, y);
    }
    let mut y = cx.get::<f64>(0)?.into_owned();
    f(&mut y);
    if rounds {
        each(&mut y, f64::round);
    }
    cx.put(0, &shape, y)
}

fn map_integer(cx: &mut EvalCx<'_>, f: impl Fn(i128) -> i128) -> Result<()> {
    map_integer_blocks(cx, &mut |block| each(block, &f))
}

fn map_integer_blocks(cx: &mut EvalCx<'_>, f: &mut dyn FnMut(&mut [i128])) -> Result<()> {
    let shape = cx.shape(0).to_vec();
    let unsigned = cx.ty(0) == ElementType::U64;
    let mut y = match unsigned {
        true => cx.get::<u64>(0)?.iter().map(|&x| x as i64).collect(),
        false => cx.get::<i64>(0)?.into_owned(),
    };
    let mut wide = [0; BLOCK];
    for block in y.chunks_mut(BLOCK) {
        let wide = &mut wide[..block.len()];
        for (to, from) in wide.iter_mut().zip(&*block) {
            *to = if unsigned { i128::from(*from as u64) } else { i128::from(*from) };
        }
        f(wide);
        for (to, from) in block.iter_mut().zip(&*wide) {
            *to = *from as i64;
        }
    }
    cx.put(0, &shape, y)
}

/// The input as it is.
pub(crate) fn keep(cx: &mut EvalCx<'_>) -> Result<()> {
    let x = cx.input(0).clone();
    cx.set(0, x)
}

/// A question about each float.
pub(crate) fn ask(cx: &mut EvalCx<'_>, holds: impl Fn(f64) -> bool) -> Result<()> {
    let y: Vec<u8> = cx.get::<f64>(0)?.iter().map(|&x| u8::from(holds(x))).collect();
    let shape = cx.shape(0).to_vec();
    cx.put(0, &shape, y)
}

/// Lowest and highest value of an integer type.
pub(crate) fn integer_range(ty: ElementType) -> (i128, i128) {
    let bits = ty.bits().max(1);
    if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_of_an_integer_type_follows_from_its_bits() {
        assert_eq!(integer_range(ElementType::I4), (-8, 7));
        assert_eq!(integer_range(ElementType::U64), (0, i128::from(u64::MAX)));
        assert_eq!(integer_range(ElementType::I64), (i128::from(i64::MIN), i128::from(i64::MAX)));
    }
}
