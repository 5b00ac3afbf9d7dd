//! Leaky rectifiers written out become PRelu:
//!
//! ```text
//! Maximum(x, slope * x)                     ->  PRelu(x, slope)    0 <= slope <= 1
//! Select(x > 0, x, slope * x)               ->  PRelu(x, slope)
//! ReLU(x) + -slope * ReLU(-x)               ->  PRelu(x, slope)
//! ReLU(x) + slope * (x - Abs(x)) * 0.5      ->  PRelu(x, slope)
//! ```
//!
//! Slopes may be a number or a constant that broadcasts into the data. PRelu reads a vector along the channels, so a vector
//! that meant the last axis is given a second dimension.

use super::look::{absorbs, inputs_at, is_float, made_by, operands, put_in_place, read_outside, stored, value_of};
use super::poly::{Poly, sources};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::activation::{PRelu, Relu};
use carafe_ops::arithmetic::{Add, Maximum, Multiply, Subtract};
use carafe_ops::compare::{Greater, GreaterEqual, Less, LessEqual};
use carafe_ops::indexing::Select;
use carafe_ops::math::Abs;
use carafe_tensor::Tensor;

/// Leaky rectifiers written out become PRelu.
#[derive(Clone, Copy, Debug)]
pub struct FusePRelu;

/// The data, the constant and what the constant must be multiplied by to be the slope.
struct Leaky {
    x: Value,
    slope: Value,
    factor: f64,
}

impl Rewrite for FusePRelu {
    fn name(&self) -> &'static str {
        "fuse_prelu"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let found = maximum(model, root).or_else(|| choice(model, root)).or_else(|| sum(model, root));
        let Some(Leaky { x, slope, factor }) = found.filter(|f| is_float(model, f.x)) else {
            return Ok(Outcome::NoMatch);
        };
        if let Some(skip) = read_outside(model, root, &[x]) {
            return Ok(skip);
        }
        let Some(tensor) = stored(model, slope) else { return Ok(Outcome::NoMatch) };
        if !absorbs(&model.fact(x).shape, tensor.shape()) {
            return Ok(Outcome::skip(format!("slopes of shape {:?} may widen the data", tensor.shape())));
        }
        let values: Vec<f64> = tensor.to_vec::<f64>()?.iter().map(|s| s * factor).collect();
        let shape = match tensor.shape() {
            [n] if *n != 1 => vec![1, *n],
            shape if tensor.len() == 1 => shape[..0].to_vec(),
            shape => shape.to_vec(),
        };
        if model.fact(x).shape.rank().is_some_and(|r| r < shape.len()) {
            return Ok(Outcome::skip("a vector of slopes would be read along the channels"));
        }
        let tensor = Tensor::from_f64(model.fact(x).ty, &shape, &values)?;
        let name = format!("{}/slope", model.node(root).name());
        let slope = model.constant(&name, tensor)?;
        let new = model.add(format!("{}/PRelu", model.node(root).name()), PRelu, &[x, slope])?;
        put_in_place(model, root, new)
    }
}

// The constant that `v` is `x` multiplied by.
fn slope_of(model: &Model, v: Value, x: Value) -> Option<Value> {
    let ((), slope) = operands::<Multiply, _>(model, v, |a| (a == x).then_some(()))?;
    stored(model, slope).map(|_| slope)
}

fn maximum(model: &Model, root: NodeId) -> Option<Leaky> {
    let &[a, b] = inputs_at::<Maximum>(model, root)? else { return None };
    let (x, slope) = slope_of(model, b, a).map(|s| (a, s)).or_else(|| slope_of(model, a, b).map(|s| (b, s)))?;
    let tensor = stored(model, slope)?;
    let in_range = tensor.to_vec::<f64>().ok()?.iter().all(|s| (0.0..=1.0).contains(s));
    in_range.then_some(Leaky { x, slope, factor: 1.0 })
}

fn choice(model: &Model, root: NodeId) -> Option<Leaky> {
    let &[condition, then, other] = inputs_at::<Select>(model, root)? else { return None };
    let above = made_by::<Greater>(model, condition).or_else(|| made_by::<GreaterEqual>(model, condition));
    let below = made_by::<Less>(model, condition).or_else(|| made_by::<LessEqual>(model, condition));
    let (compared, x, leak) = match (above, below) {
        (Some(sides), _) => (sides, then, other),
        (_, Some(sides)) => (sides, other, then),
        _ => return None,
    };
    let &[left, zero] = compared else { return None };
    let slope = slope_of(model, leak, x)?;
    (left == x && value_of(model, zero, x) == Some(0.0)).then_some(Leaky { x, slope, factor: 1.0 })
}

fn sum(model: &Model, root: NodeId) -> Option<Leaky> {
    let (positive, negative, sign) = match (inputs_at::<Add>(model, root), inputs_at::<Subtract>(model, root)) {
        (Some(&[a, b]), _) if made_by::<Relu>(model, a).is_some() => (a, b, 1.0),
        (Some(&[a, b]), _) => (b, a, 1.0),
        (_, Some(&[a, b])) => (a, b, -1.0),
        _ => return None,
    };
    let &[x] = made_by::<Relu>(model, positive)? else { return None };
    let (slope, share, number) = factors(model, negative)?;
    let share = share_of_negative(model, share, x)?;
    Some(Leaky { x, slope, factor: sign * share * number })
}

// The slopes among the constants of a product, the rest of it, and a number that stands outside of both.
fn factors(model: &Model, v: Value) -> Option<(Value, Value, f64)> {
    let constant = |v: Value| stored(model, v).map(|_| v);
    let (outer, rest) = operands::<Multiply, _>(model, v, constant)?;
    if let (Some(number), Some((inner, rest))) =
        (value_of(model, outer, rest), operands::<Multiply, _>(model, rest, constant))
    {
        return Some((inner, rest, number));
    }
    Some((outer, rest, 1.0))
}

// How much of the negative part (`x` below zero, else 0) the value is.
fn share_of_negative(model: &Model, v: Value, x: Value) -> Option<f64> {
    let t = sources(model, v)
        .into_iter()
        .find(|t| made_by::<Abs>(model, *t) == Some(&[x][..]) || made_by::<Relu>(model, *t).is_some())?;
    if made_by::<Abs>(model, t).is_some() {
        // c * (x - |x|) is 2 c x below zero.
        let p = Poly::of(model, v, x, Some(t))?;
        return [0.5, 1.0].into_iter().find(|c| p.is(&[(*c, 1, 0), (-c, 0, 1)])).map(|c| 2.0 * c);
    }
    let &[u] = made_by::<Relu>(model, t)? else { return None };
    let turned = Poly::of(model, u, x, None)?.is(&[(-1.0, 1, 0)]);
    let p = Poly::of(model, v, x, Some(t))?;
    [1.0, -1.0].into_iter().find(|c| turned && p.is(&[(*c, 0, 1)])).map(|c| -c)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{fires, fires_static, stays};
    use super::*;
    use carafe_ops::arithmetic::AutoBroadcast;
    use carafe_ops::math::Negative;

    #[test]
    fn one_slope() {
        for spelling in 0..3 {
            fires(&FusePRelu, "PRelu", |g| {
                let x = g.input(&[2, 3, 4]);
                let (slope, zero) = (g.c(0.25), g.c(0.0));
                let leak = g.op(Multiply::default(), &[slope, x]);
                let select = Select { auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None };
                match spelling {
                    0 => g.op(Maximum::default(), &[x, leak]),
                    1 => {
                        let above = g.op(Greater::default(), &[x, zero]);
                        g.op(select, &[above, x, leak])
                    }
                    _ => {
                        let below = g.op(Less::default(), &[x, zero]);
                        g.op(select, &[below, leak, x])
                    }
                }
            });
        }
    }

    #[test]
    fn slopes_of_channels() {
        for spelling in 0..4 {
            fires_static(&FusePRelu, "PRelu", |g| {
                let x = g.input(&[2, 3, 4]);
                let slope = g.noise(&[3, 1], 0.3);
                let positive = g.op(Relu, &[x]);
                if spelling == 0 || spelling == 3 {
                    let size = g.op(Abs, &[x]);
                    let half = g.c(0.5);
                    let y = g.op(Subtract::default(), &[x, size]);
                    let (inner, outer) = if spelling == 0 { (half, slope) } else { (slope, half) };
                    let y = g.op(Multiply::default(), &[y, inner]);
                    let y = g.op(Multiply::default(), &[outer, y]);
                    return g.op(Add::default(), &[positive, y]);
                }
                let turned = g.op(Negative, &[x]);
                let y = g.op(Relu, &[turned]);
                let y = g.op(Multiply::default(), &[y, slope]);
                match spelling {
                    1 => g.op(Subtract::default(), &[positive, y]),
                    _ => g.op(Add::default(), &[y, positive]),
                }
            });
        }
    }

    #[test]
    fn a_vector_along_the_last_axis_keeps_its_axis() {
        fires_static(&FusePRelu, "PRelu", |g| {
            let x = g.input(&[2, 4, 4]);
            let slope = g.noise(&[4], 0.5);
            let leak = g.op(Multiply::default(), &[slope, x]);
            g.op(Maximum::default(), &[x, leak])
        });
    }

    #[test]
    fn slopes_above_one_and_slopes_that_widen_stay() {
        stays(&FusePRelu, "", |g| {
            let x = g.input(&[2, 3]);
            let slope = g.c(1.5);
            let leak = g.op(Multiply::default(), &[slope, x]);
            g.op(Maximum::default(), &[x, leak])
        });
        stays(&FusePRelu, "may widen the data", |g| {
            let x = g.input(&[1, 3]);
            let slope = g.noise(&[5, 1], 0.5);
            let leak = g.op(Multiply::default(), &[slope, x]);
            g.op(Maximum::default(), &[x, leak])
        });
        stays(&FusePRelu, "Multiply `Multiply2` has another user", |g| {
            let x = g.input(&[2, 3]);
            let slope = g.c(0.5);
            let leak = g.op(Multiply::default(), &[slope, x]);
            let y = g.op(Maximum::default(), &[x, leak]);
            g.op(Add::default(), &[y, leak])
        });
    }
}
