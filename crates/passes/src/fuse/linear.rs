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
        let (a, b) = (broadcast_strides(&self.shape, &shape), broadcast_strides(&other.shape, &shape));
        let (axes, run, steps) = last_run(&shape, [&a, &b]);
        let starts = |strides: &[usize]| offsets(&shape[..axes], &strides[..axes]);
        let mut values = Vec::with_capacity(shape.iter().product());
        for (a, b) in starts(&a).zip(starts(&b)) {
            values.extend((0..run).map(|i| f(self.values[a + i * steps[0]], other.values[b + i * steps[1]])));
        }
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

// The last axes over which both operands are either read one by one or repeat one number: how many axes are left in front of
// them, how many numbers they hold, and the step of each operand.
fn last_run(shape: &[usize], strides: [&[usize]; 2]) -> (usize, usize, [usize; 2]) {
    let (mut axes, mut run, mut steps) = (shape.len(), 1, None);
    while let Some(axis) = axes.checked_sub(1) {
        if shape[axis] != 1 {
            let step = |s: &[usize]| (s[axis] == 0).then_some(0).or((s[axis] == run).then_some(1));
            let (Some(a), Some(b)) = (step(strides[0]), step(strides[1])) else { break };
            if *steps.get_or_insert([a, b]) != [a, b] {
                break;
            }
            run *= shape[axis];
        }
        axes = axis;
    }
    (axes, run, steps.unwrap_or([0, 0]))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_meet_whichever_axes_repeat() {
        let count = |shape: &[usize]| {
            let n: usize = shape.iter().product();
            Plain { shape: shape.to_vec(), values: (0..n).map(|i| i as f64 + 1.0).collect() }
        };
        let whole = count(&[2, 4, 3]);
        for small in [&[][..], &[1], &[3], &[4, 1], &[4, 3], &[2, 1, 1], &[2, 1, 3], &[2, 4, 1], &[1, 4, 3], &[2, 4, 3]]
        {
            let small = count(small);
            let strides = broadcast_strides(&small.shape, &whole.shape);
            let each = whole.values.iter().zip(offsets(&whole.shape, &strides));
            let wanted: Vec<f64> = each.map(|(x, at)| x - 100.0 * small.values[at]).collect();
            assert_eq!(whole.zip(&small, |a, b| a - 100.0 * b).unwrap().values, wanted, "{:?}", small.shape);
            let other = small.zip(&whole, |a, b| b - 100.0 * a).unwrap();
            assert_eq!((other.values, other.shape), (wanted, vec![2, 4, 3]));
        }
    }
}
