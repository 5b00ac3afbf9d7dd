//! Upsample and its kin. With one bottom every pixel becomes a block; with a second one, the positions that a pooling found its
//! maxima at, values go back to where they were and all else is zero.

use super::cx::LayerCx;
use super::numbers::size;
use super::resize::blocks;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::{Reduction, ScatterElementsUpdate};
use carafe_ops::movement::Broadcast;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::reduce::ReduceProd;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("MaxUnpool", 0, max_unpool),
    rule("MaxUnpooling", 0, unpooling),
    rule("NNUpsample", 0, upsample),
    rule("Unpooling", 0, unpooling),
    rule("Upsample", 0, upsample),
];

fn upsample(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let bottoms = n.bottoms()?;
    let scale: i64 = n.attr("scale", n.attr("resize", 2)?)?;
    let scales: [i64; 2] = [n.attr("scale_h", scale)?, n.attr("scale_w", scale)?];
    let pads: [i64; 2] = [flag(n, "pad_out_h")?, flag(n, "pad_out_w")?];
    let given: Option<(i64, i64)> = n.opt_attr("upsample_h")?.zip(n.opt_attr("upsample_w")?);
    n.ignore(&["mode"]);
    if scales.iter().any(|s| !(1..=1 << 12).contains(s)) {
        return Err(n.fail(format!("factors of {scales:?} cannot be")));
    }
    let x = *bottoms.first().ok_or_else(|| n.fail("takes one or two bottoms, has none"))?;
    let to = match given {
        Some((h, w)) => n.i64s(&[h, w])?,
        None => {
            let from = size(n, x)?;
            let scales = n.i64s(&scales)?;
            let grown = n.times(from, scales)?;
            let pads = n.i64s(&pads)?;
            n.minus(grown, pads)?
        }
    };
    match bottoms[..] {
        [x] => Ok(blocks(n, x, to)?.into()),
        [x, positions] => Ok(unpooled(n, x, positions, to)?.into()),
        _ => Err(n.fail(format!("takes one or two bottoms, has {}", bottoms.len()))),
    }
}

// 0 or 1, written as a number or as a word.
fn flag(n: &NodeCx<'_>, name: &str) -> Result<i64> {
    Ok(match n.attr_value(name) {
        Some(carafe_graph::AttrValue::Bool(b)) => i64::from(*b),
        _ => n.attr(name, 0)?,
    })
}

// Of DeconvNet: windows as those of the pooling, or a size.
fn unpooling(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let [x, positions] = n.bottoms_of()?;
    let method: String = n.attr("unpool", "MAX".to_string())?;
    if method != "MAX" {
        return Err(n.unsupported(format!("unpooling `{method}` is not supported, MAX is")));
    }
    let both = |n: &NodeCx<'_>, name: &str, hw: [&str; 2], default: i64| -> Result<[i64; 2]> {
        let single: i64 = n.attr(name, default)?;
        Ok([n.attr(hw[0], single)?, n.attr(hw[1], single)?])
    };
    let kernel = both(n, "kernel_size", ["kernel_h", "kernel_w"], 2)?;
    let strides = both(n, "stride", ["stride_h", "stride_w"], 1)?;
    let pads = both(n, "pad", ["pad_h", "pad_w"], 0)?;
    let wanted = both(n, "unpool_size", ["unpool_h", "unpool_w"], 0)?;
    let to = if wanted.iter().all(|s| *s > 0) { n.i64s(&wanted)? } else { windows(n, x, kernel, strides, pads)? };
    Ok(unpooled(n, x, positions, to)?.into())
}

// Of OpenCV and ENet: a third bottom has the size.
fn max_unpool(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let bottoms = n.bottoms()?;
    let pair = |n: &NodeCx<'_>, names: [&str; 2], default: i64| -> Result<[i64; 2]> {
        Ok([n.attr(names[0], default)?, n.attr(names[1], default)?])
    };
    let kernel = pair(n, ["pool_k_h", "pool_k_w"], 2)?;
    let strides = pair(n, ["pool_stride_h", "pool_stride_w"], 2)?;
    let pads = pair(n, ["pool_pad_h", "pool_pad_w"], 0)?;
    let (x, positions, to) = match bottoms[..] {
        [x, positions] => (x, positions, windows(n, x, kernel, strides, pads)?),
        [x, positions, like] => (x, positions, size(n, like)?),
        _ => return Err(n.fail(format!("takes two or three bottoms, has {}", bottoms.len()))),
    };
    Ok(unpooled(n, x, positions, to)?.into())
}

// What windows of a pooling come from.
fn windows(n: &mut NodeCx<'_>, x: Value, kernel: [i64; 2], strides: [i64; 2], pads: [i64; 2]) -> Result<Value> {
    let all = kernel.iter().chain(&strides).chain(&pads);
    if all.into_iter().any(|v| !(0..=1 << 16).contains(v)) {
        return Err(n.fail(format!("windows of {kernel:?} with steps of {strides:?} and pads of {pads:?} cannot be")));
    }
    let from = size(n, x)?;
    let steps = n.i64s(&strides)?;
    let steps = n.times(from, steps)?;
    // (size - 1) * stride + kernel - 2 * pad
    let rest = n.i64s(&[0, 1].map(|i: usize| kernel[i] - strides[i] - 2 * pads[i]))?;
    n.plus(steps, rest)
}

fn unpooled(n: &mut NodeCx<'_>, x: Value, positions: Value, size: Value) -> Result<Value> {
    let flat = n.reshape(x, &[0, 0, -1])?;
    let positions = n.reshape(positions, &[0, 0, -1])?;
    let positions = n.convert(positions, ElementType::I64)?;
    let shape = n.shape_of(x)?;
    let (start, stop) = (n.i64s(&[0])?, n.i64s(&[2])?);
    let lead = n.cut(shape, start, stop, 0)?;
    let axis = n.i64s(&[0])?;
    let area = n.emit(ReduceProd { keep_dims: true }, &[size, axis])?;
    let plane = n.concat(&[lead, area], 0)?;
    let zero = n.scalar_like(x, 0.0)?;
    let empty = n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[zero, plane])?;
    let axis = n.i64(2)?;
    let op = ScatterElementsUpdate { reduction: Reduction::None, use_init_val: true };
    let filled = n.emit(op, &[empty, positions, flat, axis])?;
    let shape = n.concat(&[lead, size], 0)?;
    n.emit(carafe_ops::movement::Reshape { special_zero: false }, &[filled, shape])
}
