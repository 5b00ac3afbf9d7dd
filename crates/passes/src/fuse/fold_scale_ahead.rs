//! A factor and a shift of each channel in front of a convolution go into it:
//!
//! ```text
//! Convolution(x * s + t, w)  ->  Convolution(x, w * s) + sum of w * t
//! ```
//!
//! The shift only where nothing is padded, because the zeros of the padding are not shifted.

use super::linear::{Plain, Step, step};
use super::look::{absorbs, put_in_place};
use crate::shared::feeds_result;
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::arithmetic::Add;
use carafe_ops::convolution::Convolution;
use carafe_ops::convolution::window::PadType;

/// Takes a factor and a shift of each channel into the convolution behind it.
#[derive(Clone, Copy, Debug)]
pub struct FoldScaleAhead;

impl Rewrite for FoldScaleAhead {
    fn name(&self) -> &'static str {
        "fold_scale_ahead"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some(op) = model.op_at::<Convolution>(root) else { return Ok(Outcome::NoMatch) };
        let none = |pads: &[i64]| pads.iter().all(|n| *n == 0);
        let padded = match op.auto_pad {
            PadType::Valid => false,
            PadType::Explicit => !none(&op.pads_begin) || !none(&op.pads_end),
            PadType::SameUpper | PadType::SameLower => true,
        };
        let &[data, weights] = model.node(root).inputs() else { return Ok(Outcome::NoMatch) };
        if step(model, data.node).is_none() {
            return Ok(Outcome::NoMatch);
        }
        let Some(old) = model.constant_of(weights).and_then(Plain::of) else {
            return Ok(Outcome::skip("the weights are no stored floats"));
        };
        let (x, scale, shift) = match ahead(model, data, old.shape[1], padded) {
            Ok(found) => found,
            Err(skip) => return Ok(skip),
        };
        let mut meets = vec![1; old.shape.len()];
        meets[1] = scale.len();
        let (ty, name) = (model.fact(root.into()).ty, model.node(root).name().to_string());
        let scaled = old.zip(&Plain { shape: meets, values: scale }, |w, s| w * s).filter(|w| w.fits(ty));
        let Some(scaled) = scaled else { return Ok(Outcome::skip("the scaled weights do not fit their type")) };
        let bias = shifted(&old, &shift);
        if !bias.fits(ty) {
            return Ok(Outcome::skip("the shift does not fit its type"));
        }
        let has_bias = bias.values.iter().any(|b| *b != 0.0);
        let weights = model.constant(&format!("{name}/scaled"), scaled.tensor(ty)?)?;
        let (op, info) = (model.node(root).op_ref().clone(), model.node(root).rt_info.clone());
        // The name of an output stays with it; otherwise the layer goes on under its own.
        let keeps_name = has_bias && !feeds_result(model, root.into());
        if keeps_name {
            model.set_name(root, format!("{name}/was"));
        }
        let own = if keeps_name { name.clone() } else { format!("{name}/layer") };
        let layer = model.add_ref(own, op, &[x, weights])?;
        model.rt_info_mut(layer).extend_missing(&info);
        if !has_bias {
            return put_in_place(model, root, layer);
        }
        let bias = model.constant(&format!("{name}/bias"), bias.tensor(ty)?)?;
        let sum = model.add(format!("{name}/Add"), Add::default(), &[layer.into(), bias])?;
        put_in_place(model, root, sum)
    }
}

// What the steps before a convolution do to its data: `x * scale + shift`, a number for each channel.
fn ahead(
    model: &Model,
    data: Value,
    channels: usize,
    padded: bool,
) -> std::result::Result<(Value, Vec<f64>, Vec<f64>), Outcome> {
    let (mut x, mut scale, mut shift) = (data, vec![1.0; channels], vec![0.0; channels]);
    while let Some((from, step)) = step(model, x.node) {
        let constant = match &step {
            Step::Plus(_) if padded => break,
            Step::Times(c) | Step::Plus(c) => by_channel(model, x, c, channels),
        };
        let Some(constant) = constant.filter(|_| absorbs_into(model, from, &step)) else { break };
        if model.users(x).len() > 1 {
            break;
        }
        for (i, c) in constant.into_iter().enumerate() {
            match step {
                Step::Times(_) => scale[i] *= c,
                Step::Plus(_) => shift[i] += scale[i] * c,
            }
        }
        x = from;
    }
    match x == data {
        true => Err(Outcome::skip("what is before it is read elsewhere, padded or no number for each channel")),
        false => Ok((x, scale, shift)),
    }
}

// The data itself must have the shape of the step's result.
fn absorbs_into(model: &Model, from: Value, step: &Step) -> bool {
    let (Step::Times(c) | Step::Plus(c)) = step;
    absorbs(&model.fact(from).shape, &c.shape)
}

fn by_channel(model: &Model, v: Value, c: &Plain, channels: usize) -> Option<Vec<f64>> {
    let rank = model.fact(v).shape.rank()?;
    let lead = rank.checked_sub(c.shape.len())?;
    let along = |(i, &n): (usize, &usize)| n == 1 || (lead + i == 1 && n == channels);
    if !c.shape.iter().enumerate().all(along) {
        return None;
    }
    Some(if c.values.len() == 1 { vec![c.values[0]; channels] } else { c.values.clone() })
}

// What a shift of the data adds to each output channel.
fn shifted(weights: &Plain, shift: &[f64]) -> Plain {
    let filter: usize = weights.shape[1..].iter().product();
    let taps: usize = weights.shape[2..].iter().product();
    let sum = |f: &[f64]| f.chunks(taps.max(1)).zip(shift).map(|(w, t)| w.iter().sum::<f64>() * t).sum();
    let mut shape = vec![1; weights.shape.len() - 1];
    shape[0] = weights.shape[0];
    let values = match filter {
        0 => vec![0.0; weights.shape[0]],
        _ => weights.values.chunks(filter).map(sum).collect(),
    };
    Plain { shape, values }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Sketch, fires, fires_static, stays};
    use super::*;
    use carafe_ops::activation::Relu;
    use carafe_ops::arithmetic::{Divide, Multiply, Subtract};

    fn conv(g: &mut Sketch, x: Value, pad: i64) -> Value {
        let w = g.noise(&[6, 4, 2, 2], 0.1);
        let (strides, pads_begin, pads_end) = (vec![1, 1], vec![pad, 0], vec![0, pad]);
        let op = Convolution { strides, pads_begin, pads_end, dilations: vec![1, 1], auto_pad: PadType::Explicit };
        g.op(op, &[x, w])
    }

    fn data(g: &mut Sketch) -> Value {
        let x = g.input(&[2, 4, 3, 3]);
        g.op(Relu, &[x])
    }

    #[test]
    fn a_factor_goes_into_the_weights() {
        for pad in [0, 1] {
            fires_static(&FoldScaleAhead, "Relu Convolution", |g| {
                let x = data(g);
                let c = g.noise(&[1, 4, 1, 1], 2.0);
                let y = g.op(Multiply::default(), &[c, x]);
                conv(g, y, pad)
            });
        }
    }

    #[test]
    fn a_shift_goes_into_a_bias_where_nothing_is_padded() {
        fires_static(&FoldScaleAhead, "Relu Convolution Add", |g| {
            let x = data(g);
            let (c, d, t) = (g.noise(&[4, 1, 1], 2.0), g.c(1.5), g.noise(&[4, 1, 1], 0.5));
            let y = g.op(Multiply::default(), &[x, c]);
            let y = g.op(Subtract::default(), &[y, t]);
            let y = g.op(Divide::default(), &[y, d]);
            conv(g, y, 0)
        });
    }

    #[test]
    fn behind_a_shift_a_padded_convolution_takes_the_factor_alone() {
        fires(&FoldScaleAhead, "Relu Add Convolution", |g| {
            let x = data(g);
            let (t, c) = (g.c(0.5), g.c(3.0));
            let y = g.op(Add::default(), &[x, t]);
            let y = g.op(Multiply::default(), &[y, c]);
            conv(g, y, 1)
        });
    }

    #[test]
    fn others_stay() {
        let why = "read elsewhere, padded or no number for each channel";
        stays(&FoldScaleAhead, why, |g| {
            let x = data(g);
            let t = g.c(0.5);
            let y = g.op(Add::default(), &[x, t]);
            conv(g, y, 1)
        });
        stays(&FoldScaleAhead, why, |g| {
            let x = data(g);
            let c = g.noise(&[3], 2.0);
            let y = g.op(Multiply::default(), &[x, c]);
            conv(g, y, 0)
        });
    }
}
