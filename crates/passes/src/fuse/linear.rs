//! Steps of a linear chain (`x * c` and `x + c` with constants) and arithmetic on their constants, in f64 and with numpy
//! broadcasting.

use super::look::{is_float, is_stored, made_by, stored};
use carafe_graph::{Model, NodeId, Result, Value};
use carafe_ops::activation::{Clamp, Relu};
use carafe_ops::arithmetic::{Add, Divide, Maximum, Minimum, Multiply, Subtract};
use carafe_ops::convert::Convert;
use carafe_ops::index::{broadcast_strides, offsets};
use carafe_ops::math::{Ceiling, Floor, Round};
use carafe_ops::quantize::FakeQuantize;
use carafe_tensor::{ElementType, Tensor};

/// A constant to compute with.
#[derive(Clone, Debug)]
pub(super) struct Plain {
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

impl Plain {
    pub(super) fn of(tensor: &Tensor) -> Option<Plain> {
        Some(Plain { shape: tensor.shape().to_vec(), values: tensor.to_vec::<f64>().ok()?.into_owned() })
    }

    pub(super) fn map(mut self, f: impl Fn(f64) -> f64) -> Plain {
        self.values.iter_mut().for_each(|x| *x = f(*x));
        self
    }

    /// Both together; `None` when they do not broadcast, or when the result would be larger than either.
    pub(super) fn zip(&self, other: &Plain, f: impl Fn(f64, f64) -> f64) -> Option<Plain> {
        let rank = self.shape.len().max(other.shape.len());
        let dim = |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |i| shape[i]);
        let mut shape = Vec::with_capacity(rank);
        for axis in 0..rank {
            shape.push(match (dim(&self.shape, axis), dim(&other.shape, axis)) {
                (a, b) if a == b => a,
                (1, n) | (n, 1) => n,
                _ => return None,
            });
        }
        if shape.iter().product::<usize>() > self.values.len().max(other.values.len()) {
            return None;
        }
        let walk = |p: &Plain| offsets(&shape, &broadcast_strides(&p.shape, &shape));
        let values = walk(self).zip(walk(other)).map(|(a, b)| f(self.values[a], other.values[b])).collect();
        Some(Plain { shape, values })
    }

    /// Whether every number fits the type: finite, and not so small that it loses its digits.
    pub(super) fn fits(&self, ty: ElementType) -> bool {
        let (high, low) = match ty {
            ElementType::F16 => (65504.0, 6e-5),
            _ => (f64::from(f32::MAX), f64::from(f32::MIN_POSITIVE)),
        };
        self.values.iter().all(|x| x.abs() <= high && (*x == 0.0 || x.abs() >= low))
    }

    pub(super) fn tensor(&self, ty: ElementType) -> Result<Tensor> {
        Ok(Tensor::from_f64(ty, &self.shape, &self.values)?)
    }
}

/// One step of a chain.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Times(Plain),
    Plus(Plain),
}

/// What the node does to its data, if that is a step with a constant on floats. Numbers that are rounded to whole ones stay as
/// they are computed: joined constants differ in the last bit, which puts ties on the other side.
pub(super) fn step(model: &Model, id: NodeId) -> Option<(Value, Step)> {
    let v = Value::from(id);
    if model.get(id)?.outputs().len() != 1 || !is_float(model, v) || is_rounded(model, v, 4) {
        return None;
    }
    let apart = |inputs: &[Value]| {
        let &[a, b] = inputs else { return None };
        let (x, c) = if is_stored(model, b) { (a, b) } else { (b, a) };
        (!is_stored(model, x)).then_some(())?;
        Some((x, Plain::of(stored(model, c)?.as_ref())?))
    };
    if let Some(inputs) = made_by::<Add>(model, v) {
        return apart(inputs).map(|(x, c)| (x, Step::Plus(c)));
    }
    if let Some(inputs) = made_by::<Multiply>(model, v) {
        return apart(inputs).map(|(x, c)| (x, Step::Times(c)));
    }
    // The constant must come second.
    let second = |inputs: &[Value]| inputs.get(1).is_some_and(|c| is_stored(model, *c));
    if let Some(inputs) = made_by::<Subtract>(model, v).filter(|i| second(i)) {
        return apart(inputs).map(|(x, c)| (x, Step::Plus(c.map(|c| -c))));
    }
    let inputs = made_by::<Divide>(model, v).filter(|i| second(i))?;
    apart(inputs).map(|(x, c)| (x, Step::Times(c.map(|c| 1.0 / c))))
}

// Whether something rounds the value, maybe behind further arithmetic.
fn is_rounded(model: &Model, v: Value, depth: usize) -> bool {
    model.users(v).iter().any(|user| {
        let op = model.node(user.node).op();
        let to_integer = op.get::<Convert>().is_some_and(|c| c.destination_type.is_integer());
        let rounds = op.is::<Round>() || op.is::<Floor>() || op.is::<Ceiling>() || op.is::<FakeQuantize>();
        let linear = op.is::<Add>() || op.is::<Subtract>() || op.is::<Multiply>() || op.is::<Divide>();
        let limit = op.is::<Clamp>() || op.is::<Relu>() || op.is::<Maximum>() || op.is::<Minimum>();
        rounds || to_integer || (depth > 0 && (linear || limit) && is_rounded(model, user.node.into(), depth - 1))
    })
}
