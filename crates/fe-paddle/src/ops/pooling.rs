//! Pooling.

use super::slots::{Slots, in_channels_first};
use super::windows::windows;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::movement::Pad;
use carafe_ops::movement::pad::PadMode;
use carafe_ops::pooling::{AdaptiveAvgPool, AdaptiveMaxPool, AvgPool, MaxPool};
use carafe_ops::reduce::{ReduceMax, ReduceMean};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("max_pool2d_with_index", 0, |n| with_index(n, 2)),
    rule("max_pool3d_with_index", 0, |n| with_index(n, 3)),
    rule("pool2d", 0, |n| pool(n, 2)),
    rule("pool3d", 0, |n| pool(n, 3)),
];

fn pool(n: &mut NodeCx<'_>, spatial: usize) -> Result<Outputs> {
    let x = n.slot("X")?;
    let kind: String = n.attr("pooling_type", "max".to_string())?;
    let is_max = match kind.as_str() {
        "max" => true,
        "avg" => false,
        other => return Err(n.unsupported(format!("`pooling_type` is `{other}`"))),
    };
    let is_last = n.is_channels_last("data_format")?;
    let (is_global, is_adaptive): (bool, bool) = (n.attr("global_pooling", false)?, n.attr("adaptive", false)?);
    let size = n.vector("ksize", &[])?.ok_or_else(|| n.fail("`ksize` is missing"))?;
    let known = n.ints(size);
    let w = windows(n, spatial)?;
    let rounding_type = if n.attr("ceil_mode", false)? { Rounding::Ceil } else { Rounding::Floor };
    let exclude_pad: bool = n.attr("exclusive", true)?;
    let is_one = is_adaptive && known.as_ref().is_some_and(|k| k.iter().all(|s| *s == 1));
    let out = in_channels_first(n, x, is_last, |n, x| {
        if is_global || is_one {
            let axes = n.i64s(&(2..2 + spatial as i64).collect::<Vec<_>>())?;
            return match is_max {
                true => n.emit(ReduceMax { keep_dims: true }, &[x, axes]),
                false => n.emit(ReduceMean { keep_dims: true }, &[x, axes]),
            };
        }
        if is_adaptive {
            return match is_max {
                true => n.emit(AdaptiveMaxPool { index_element_type: ElementType::I64 }, &[x, size]),
                false => n.emit(AdaptiveAvgPool, &[x, size]),
            };
        }
        let kernel =
            known.ok_or_else(|| n.unsupported("`ksize` is computed; it must be known when the model is read"))?;
        let (strides, pads_begin, pads_end) = (w.strides, w.begin, w.end);
        match is_max {
            true => n.emit(
                MaxPool {
                    strides,
                    dilations: vec![1; spatial],
                    pads_begin,
                    pads_end,
                    kernel,
                    rounding_type,
                    auto_pad: w.auto_pad,
                    index_element_type: ElementType::I64,
                    axis: 0,
                },
                &[x],
            ),
            false => average(n, x, kernel, strides, (pads_begin, pads_end, w.auto_pad), exclude_pad, rounding_type),
        }
    })?;
    Ok(n.give(&[("Out", out)]))
}

fn average(
    n: &mut NodeCx<'_>,
    x: Value,
    kernel: Vec<i64>,
    strides: Vec<i64>,
    (pads_begin, pads_end, auto_pad): (Vec<i64>, Vec<i64>, PadType),
    exclude_pad: bool,
    rounding_type: Rounding,
) -> Result<Value> {
    // Pads count and what a last window has beyond them does not: the pads become a part of the data.
    if rounding_type == Rounding::Ceil && !exclude_pad && auto_pad == PadType::Explicit {
        let wide = |pads: &[i64]| [&[0, 0], pads].concat();
        let zero = n.scalar_like(x, 0.0)?;
        let (begin, end) = (n.i64s(&wide(&pads_begin))?, n.i64s(&wide(&pads_end))?);
        let x = n.emit(Pad { pad_mode: PadMode::Constant }, &[x, begin, end, zero])?;
        let none = vec![0; kernel.len()];
        let op = AvgPool {
            dilations: vec![1; kernel.len()],
            strides,
            pads_begin: none.clone(),
            pads_end: none,
            kernel,
            exclude_pad: true,
            auto_pad,
            rounding_type,
        };
        return n.emit(op, &[x]);
    }
    let op = AvgPool {
        dilations: vec![1; kernel.len()],
        strides,
        pads_begin,
        pads_end,
        kernel,
        exclude_pad,
        auto_pad,
        rounding_type,
    };
    n.emit(op, &[x])
}

// The index of an element counts over the spatial axes.
fn with_index(n: &mut NodeCx<'_>, spatial: usize) -> Result<Outputs> {
    let x = n.slot("X")?;
    let (is_global, is_adaptive): (bool, bool) = (n.attr("global_pooling", false)?, n.attr("adaptive", false)?);
    let kernel: Vec<i64> = n.required("ksize")?;
    let w = windows(n, spatial)?;
    n.ignore(&["data_format"]);
    let rounding_type = if n.attr("ceil_mode", false)? { Rounding::Ceil } else { Rounding::Floor };
    let index_element_type = ElementType::I32;
    let out = if is_global || is_adaptive {
        let size = n.i64s(&if is_global { vec![1; spatial] } else { kernel })?;
        n.emit_all(AdaptiveMaxPool { index_element_type }, &[x, size])?
    } else {
        let op = MaxPool {
            strides: w.strides,
            dilations: vec![1; spatial],
            pads_begin: w.begin,
            pads_end: w.end,
            kernel,
            rounding_type,
            auto_pad: w.auto_pad,
            index_element_type,
            axis: 2,
        };
        n.emit_all(op, &[x])?
    };
    Ok(n.give(&[("Out", out[0]), ("Mask", out[1])]))
}
