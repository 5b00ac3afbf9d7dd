//! Padding before a window goes into the window:
//!
//! ```text
//! Convolution(Pad(x, 0)) {pads}   ->  Convolution(x) {pads + pad}     also GroupConvolution
//! AvgPool(Pad(x, 0)) {pads}       ->  AvgPool(x) {pads + pad, exclude-pad = false}
//! MaxPool(Pad(x, low)) {pads}     ->  MaxPool(x) {pads + pad}         low: the lowest number, or 0 when x is not negative
//! ```
//!
//! The pad must be of a constant, on spatial axes only and not crop. A pooling must drop windows that do not fit, and its
//! indices must not be used.

use super::look::{read_outside, sweep, value_of};
use carafe_graph::{Model, NodeId, OpRef, Outcome, Result, Rewrite, Value};
use carafe_ops::activation::{Clamp, Relu, Sigmoid};
use carafe_ops::convolution::window::{PadType, Rounding};
use carafe_ops::convolution::{Convolution, GroupConvolution};
use carafe_ops::movement::Pad;
use carafe_ops::movement::pad::PadMode;
use carafe_ops::pooling::{AvgPool, MaxPool};
use std::sync::Arc;

/// Takes padding before a window into the window.
#[derive(Clone, Copy, Debug)]
pub struct FusePad;

impl Rewrite for FusePad {
    fn name(&self) -> &'static str {
        "fuse_pad"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        if !WINDOWS.contains(&model.node(root).op().info().name) {
            return Ok(Outcome::NoMatch);
        }
        let Some(padded) = model.input(root, 0) else { return Ok(Outcome::NoMatch) };
        let Some(pad) = Padding::at(model, padded) else { return Ok(Outcome::NoMatch) };
        let pad = match pad {
            Ok(pad) => pad,
            Err(why) => return Ok(Outcome::skip(why)),
        };
        let op = match widened(model, root, &pad) {
            Ok(op) => op,
            Err(why) => return Ok(Outcome::skip(why)),
        };
        let mut leaves = model.node(root).inputs().to_vec();
        leaves[0] = pad.x;
        if let Some(skip) = read_outside(model, root, &leaves) {
            return Ok(skip);
        }
        model.set_input(root, 0, pad.x);
        model.set_op(root, op)?;
        sweep(model, padded.node)?;
        Ok(Outcome::Done)
    }
}

const WINDOWS: &[&str] = &["Convolution", "GroupConvolution", "AvgPool", "MaxPool"];

struct Padding {
    x: Value,
    /// On spatial axes.
    begin: Vec<i64>,
    end: Vec<i64>,
    value: f64,
}

impl Padding {
    fn at(model: &Model, v: Value) -> Option<std::result::Result<Padding, &'static str>> {
        if model.producer::<Pad>(v)?.1.pad_mode != PadMode::Constant {
            return Some(Err("its padding is not of a constant"));
        }
        let &[x, begin, end, ref value @ ..] = model.node(v.node).inputs() else { return None };
        let value = match value.first() {
            Some(value) => value_of(model, *value, x),
            None => Some(0.0),
        };
        let list = |v: Value| model.constant_of(v)?.to_vec::<i64>().ok().map(|l| l.to_vec());
        let (Some(begin), Some(end), Some(value)) = (list(begin), list(end), value) else {
            return Some(Err("its padding is computed"));
        };
        if begin.iter().chain(&end).any(|n| *n < 0) {
            return Some(Err("its padding crops"));
        }
        if begin.len() < 3 || begin.len() != end.len() || [begin[0], begin[1], end[0], end[1]] != [0; 4] {
            return Some(Err("batch or channels are padded"));
        }
        Some(Ok(Padding { x, begin: begin[2..].to_vec(), end: end[2..].to_vec(), value }))
    }

    // Adds the padding to pads that count; `same_*` ones depend on the size and stay.
    fn widen(
        &self,
        auto_pad: &mut PadType,
        begin: &mut Vec<i64>,
        end: &mut Vec<i64>,
    ) -> std::result::Result<(), &'static str> {
        match auto_pad {
            PadType::Explicit => {}
            PadType::Valid => {
                begin.clear();
                end.clear();
            }
            _ => return Err("the pads of the window follow from its size"),
        }
        *auto_pad = PadType::Explicit;
        for (own, more) in [(begin, &self.begin), (end, &self.end)] {
            own.resize(more.len(), 0);
            own.iter_mut().zip(more).for_each(|(a, b)| *a += b);
        }
        Ok(())
    }

    fn below(&self, kernel: &[i64]) -> bool {
        kernel.len() == self.begin.len()
            && self.begin.iter().chain(&self.end).zip(kernel.iter().chain(kernel)).all(|(pad, k)| pad < k)
    }
}

fn widened(model: &Model, root: NodeId, pad: &Padding) -> std::result::Result<OpRef, &'static str> {
    let zero = if pad.value == 0.0 { Ok(()) } else { Err("the padding is not of zeros") };
    macro_rules! convolution {
        ($T:ty) => {
            if let Some(op) = model.op_at::<$T>(root) {
                zero?;
                let mut op = op.clone();
                pad.widen(&mut op.auto_pad, &mut op.pads_begin, &mut op.pads_end)?;
                return Ok(Arc::new(op));
            }
        };
    }
    macro_rules! average {
        ($T:ty) => {
            if let Some(op) = model.op_at::<$T>(root) {
                zero?;
                let mut op = op.clone();
                if op.rounding_type != Rounding::Floor {
                    return Err("the pooling keeps windows that do not fit");
                }
                let padded =
                    op.auto_pad == PadType::Explicit && op.pads_begin.iter().chain(&op.pads_end).any(|p| *p != 0);
                if padded && op.exclude_pad {
                    return Err("the pooling leaves its own pads out of the mean");
                }
                pad.widen(&mut op.auto_pad, &mut op.pads_begin, &mut op.pads_end)?;
                let all =
                    Padding { x: pad.x, begin: op.pads_begin.clone(), end: op.pads_end.clone(), value: pad.value };
                if !all.below(&op.kernel) {
                    return Err("a window may see nothing but padding");
                }
                op.exclude_pad = false;
                return Ok(Arc::new(op));
            }
        };
    }
    macro_rules! maximum {
        ($T:ty) => {
            if let Some(op) = model.op_at::<$T>(root) {
                let mut op = op.clone();
                never_wins(model, pad)?;
                if op.rounding_type != Rounding::Floor || op.dilations.iter().any(|d| *d != 1) {
                    return Err("the pooling keeps windows that do not fit, or has holes");
                }
                pad.widen(&mut op.auto_pad, &mut op.pads_begin, &mut op.pads_end)?;
                let all =
                    Padding { x: pad.x, begin: op.pads_begin.clone(), end: op.pads_end.clone(), value: pad.value };
                if !all.below(&op.kernel) {
                    return Err("a window may see nothing but padding");
                }
                let used = |port: usize| !model.users(Value { node: root, port }).is_empty();
                if (1..model.node(root).outputs().len()).any(used) {
                    return Err("the indices of the pooling are used");
                }
                return Ok(Arc::new(op));
            }
        };
    }
    convolution!(Convolution);
    convolution!(GroupConvolution);
    average!(AvgPool);
    maximum!(MaxPool);
    Err("this window takes no padding in")
}

// Whether no padding is ever larger than all data of a window.
fn never_wins(model: &Model, pad: &Padding) -> std::result::Result<(), &'static str> {
    let lowest = if model.fact(pad.x).ty.bits() == 16 { -65504.0 } else { f64::from(f32::MIN) };
    let positive = model.producer::<Relu>(pad.x).is_some()
        || model.producer::<Sigmoid>(pad.x).is_some()
        || model.producer::<Clamp>(pad.x).is_some_and(|(_, c)| c.min >= 0.0);
    let never = model.fact(pad.x).ty.is_float() && (pad.value <= lowest || (pad.value == 0.0 && positive));
    if never { Ok(()) } else { Err("the padding may be the largest of a window") }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Sketch, fires, stays};
    use super::*;
    use carafe_ops::arithmetic::Add;
    use carafe_tensor::ElementType;

    fn padded(g: &mut Sketch, x: Value, begin: &[i64], end: &[i64], value: f64) -> Value {
        let (begin, end, value) = (g.ints(begin), g.ints(end), g.c(value));
        g.op(Pad { pad_mode: PadMode::Constant }, &[x, begin, end, value])
    }

    fn convolution(g: &mut Sketch, x: Value, auto_pad: PadType) -> Value {
        let w = g.noise(&[3, 2, 3, 3], 0.1);
        let (strides, dilations) = (vec![2, 1], vec![1, 1]);
        g.op(Convolution { strides, pads_begin: vec![1, 0], pads_end: vec![0, 1], dilations, auto_pad }, &[x, w])
    }

    fn average(exclude_pad: bool, pad: i64, rounding_type: Rounding) -> AvgPool {
        let (strides, kernel) = (vec![2, 2], vec![3, 3]);
        let (pads_begin, pads_end) = (vec![pad, 0], vec![0, 0]);
        let (dilations, auto_pad) = (vec![1, 1], PadType::Explicit);
        AvgPool { strides, dilations, kernel, pads_begin, pads_end, exclude_pad, auto_pad, rounding_type }
    }

    fn largest(kernel: i64) -> MaxPool {
        let (strides, kernel, pads) = (vec![2, 2], vec![kernel, kernel], vec![0, 0]);
        let (auto_pad, rounding_type) = (PadType::Explicit, Rounding::Floor);
        let (dilations, pads_begin, pads_end) = (vec![1, 1], pads.clone(), pads);
        let (index_element_type, axis) = (ElementType::I64, 0);
        MaxPool { strides, dilations, kernel, pads_begin, pads_end, auto_pad, rounding_type, index_element_type, axis }
    }

    const BEGIN: &[i64] = &[0, 0, 1, 2];
    const END: &[i64] = &[0, 0, 2, 0];

    #[test]
    fn into_a_convolution() {
        for auto_pad in [PadType::Explicit, PadType::Valid] {
            fires(&FusePad, "Convolution", |g| {
                let x = g.input(&[1, 2, 5, 5]);
                let y = padded(g, x, BEGIN, END, 0.0);
                convolution(g, y, auto_pad)
            });
        }
    }

    #[test]
    fn into_a_pooling() {
        for (exclude, pad) in [(true, 0), (false, 0), (false, 1)] {
            fires(&FusePad, "AvgPool", |g| {
                let x = g.input(&[1, 2, 5, 5]);
                let y = padded(g, x, BEGIN, END, 0.0);
                g.op(average(exclude, pad, Rounding::Floor), &[y])
            });
        }
        fires(&FusePad, "MaxPool", |g| {
            let x = g.input(&[1, 2, 5, 5]);
            let y = padded(g, x, BEGIN, END, f64::NEG_INFINITY);
            g.op(largest(3), &[y])
        });
        fires(&FusePad, "Relu MaxPool", |g| {
            let x = g.input(&[1, 2, 5, 5]);
            let y = g.op(Relu, &[x]);
            let y = padded(g, y, BEGIN, END, 0.0);
            g.op(largest(3), &[y])
        });
    }

    #[test]
    fn others_stay() {
        stays(&FusePad, "not of zeros", |g| {
            let x = g.input(&[1, 2, 5, 5]);
            let y = padded(g, x, BEGIN, END, 1.0);
            convolution(g, y, PadType::Explicit)
        });
        stays(&FusePad, "follow from its size", |g| {
            let x = g.input(&[1, 2, 5, 5]);
            let y = padded(g, x, BEGIN, END, 0.0);
            convolution(g, y, PadType::SameUpper)
        });
        stays(&FusePad, "batch or channels are padded", |g| {
            let x = g.input(&[1, 1, 5, 5]);
            let y = padded(g, x, &[0, 1, 0, 0], &[0, 0, 0, 0], 0.0);
            convolution(g, y, PadType::Explicit)
        });
        stays(&FusePad, "crops", |g| {
            let x = g.input(&[1, 2, 5, 5]);
            let y = padded(g, x, &[0, 0, -1, 0], &[0; 4], 0.0);
            convolution(g, y, PadType::Explicit)
        });
        stays(&FusePad, "may be the largest", |g| {
            let x = g.input(&[1, 2, 5, 5]);
            let y = padded(g, x, BEGIN, END, 0.0);
            g.op(largest(3), &[y])
        });
        stays(&FusePad, "nothing but padding", |g| {
            let x = g.input(&[1, 2, 5, 5]);
            let y = padded(g, x, BEGIN, END, f64::NEG_INFINITY);
            g.op(largest(2), &[y])
        });
        stays(&FusePad, "nothing but padding", |g| {
            let x = g.input(&[1, 2, 5, 5]);
            let y = padded(g, x, &[0; 4], &[0, 0, 3, 0], 0.0);
            g.op(average(false, 0, Rounding::Floor), &[y])
        });
        stays(&FusePad, "windows that do not fit", |g| {
            let x = g.input(&[1, 2, 5, 5]);
            let y = padded(g, x, BEGIN, END, 0.0);
            g.op(average(true, 0, Rounding::Ceil), &[y])
        });
        stays(&FusePad, "own pads out of the mean", |g| {
            let x = g.input(&[1, 2, 5, 5]);
            let y = padded(g, x, BEGIN, END, 0.0);
            g.op(average(true, 1, Rounding::Floor), &[y])
        });
        stays(&FusePad, "not of a constant", |g| {
            let x = g.input(&[1, 2, 5, 5]);
            let (begin, end) = (g.ints(BEGIN), g.ints(END));
            let y = g.op(Pad { pad_mode: PadMode::Edge }, &[x, begin, end]);
            convolution(g, y, PadType::Explicit)
        });
        stays(&FusePad, "Pad `Pad4` has another user", |g| {
            let x = g.input(&[1, 2, 5, 5]);
            let y = padded(g, x, BEGIN, END, 0.0);
            let z = g.op(average(true, 0, Rounding::Floor), &[y]);
            let again = g.op(average(true, 0, Rounding::Floor), &[y]);
            g.op(Add::default(), &[z, again])
        });
    }
}
