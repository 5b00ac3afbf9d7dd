//! Short words for the operations that composed rules are made of, for a node being translated and for a body built by
//! hand. Types must already agree; nothing is converted here.

use crate::node_cx::NodeCx;
use carafe_graph::{Model, Op, Result, Value};
use carafe_ops::activation::Clamp;
use carafe_ops::arithmetic::AutoBroadcast;
use carafe_ops::arithmetic::{Add, Divide, Maximum, Minimum, Multiply, Power, Subtract};
use carafe_ops::compare::{Equal, Greater, GreaterEqual, Less, LessEqual};
use carafe_ops::indexing::{Gather, Select};
use carafe_ops::linear::MatMul;
use carafe_ops::logic::{LogicalAnd, LogicalOr};
use carafe_ops::math::{Abs, Ceiling, Floor, Round, Sqrt};
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::{Broadcast, Reshape, Slice, Split, Squeeze, Unsqueeze};
use carafe_ops::reduce::{ReduceMax, ReduceMean, ReduceSum};
use carafe_ops::shape::{Range, ShapeOf};
use carafe_tensor::{ElementType, Tensor};

/// What takes operations: a node that is translated, or a model.
pub trait Compose {
    /// Adds an operation and gives all of its outputs.
    fn put_all<O: Op>(&mut self, op: O, inputs: &[Value]) -> Result<Vec<Value>>;
    /// Adds a constant.
    fn fixed(&mut self, tensor: Tensor) -> Result<Value>;
    /// The element type of a value.
    fn element(&self, v: Value) -> ElementType;

    /// Adds an operation and gives its first output.
    fn put<O: Op>(&mut self, op: O, inputs: &[Value]) -> Result<Value> {
        Ok(self.put_all(op, inputs)?[0])
    }
    /// A scalar in the type of `like`, which must be known.
    fn number(&mut self, like: Value, value: f64) -> Result<Value> {
        let ty = match self.element(like) {
            ElementType::Dynamic => ElementType::F32,
            ty => ty,
        };
        self.fixed(Tensor::from_f64(ty, &[], &[value])?)
    }
    /// An i64 scalar.
    fn index(&mut self, value: i64) -> Result<Value> {
        self.fixed(Tensor::scalar(value))
    }
    /// An i64 vector.
    fn indices(&mut self, values: &[i64]) -> Result<Value> {
        self.fixed(Tensor::from_slice(&[values.len()], values)?)
    }

    /// `a + b`.
    fn plus(&mut self, a: Value, b: Value) -> Result<Value> {
        self.put(Add::default(), &[a, b])
    }
    /// `a - b`.
    fn minus(&mut self, a: Value, b: Value) -> Result<Value> {
        self.put(Subtract::default(), &[a, b])
    }
    /// `a * b`.
    fn times(&mut self, a: Value, b: Value) -> Result<Value> {
        self.put(Multiply::default(), &[a, b])
    }
    /// `a / b`, rounded down where both are integers.
    fn over(&mut self, a: Value, b: Value) -> Result<Value> {
        self.put(Divide::default(), &[a, b])
    }
    /// The larger of two.
    fn max(&mut self, a: Value, b: Value) -> Result<Value> {
        self.put(Maximum::default(), &[a, b])
    }
    /// The smaller of two.
    fn min(&mut self, a: Value, b: Value) -> Result<Value> {
        self.put(Minimum::default(), &[a, b])
    }
    /// `a` to the power of `b`.
    fn power(&mut self, a: Value, b: Value) -> Result<Value> {
        self.put(Power::default(), &[a, b])
    }
    /// The square root.
    fn sqrt(&mut self, a: Value) -> Result<Value> {
        self.put(Sqrt, &[a])
    }
    /// To the nearest integer, halves to the even one.
    fn round(&mut self, a: Value) -> Result<Value> {
        self.put(Round { mode: carafe_ops::math::round::RoundMode::HalfToEven }, &[a])
    }
    /// `a + b` for a number `b`.
    fn plus_number(&mut self, a: Value, b: f64) -> Result<Value> {
        let b = self.number(a, b)?;
        self.plus(a, b)
    }
    /// `a * b` for a number `b`.
    fn times_number(&mut self, a: Value, b: f64) -> Result<Value> {
        let b = self.number(a, b)?;
        self.times(a, b)
    }
    /// `a / b` for a number `b`.
    fn over_number(&mut self, a: Value, b: f64) -> Result<Value> {
        let b = self.number(a, b)?;
        self.over(a, b)
    }
    /// `a` to the power of a number.
    fn power_number(&mut self, a: Value, b: f64) -> Result<Value> {
        let b = self.number(a, b)?;
        self.power(a, b)
    }
    /// Whether `a` is a number.
    fn equal_number(&mut self, a: Value, b: f64) -> Result<Value> {
        let b = self.number(a, b)?;
        self.equal(a, b)
    }
    /// No less than one number and no more than another.
    fn between(&mut self, a: Value, min: f64, max: f64) -> Result<Value> {
        self.put(Clamp { min, max }, &[a])
    }
    /// Without the sign.
    fn abs(&mut self, a: Value) -> Result<Value> {
        self.put(Abs, &[a])
    }
    /// Rounded down.
    fn floor(&mut self, a: Value) -> Result<Value> {
        self.put(Floor, &[a])
    }
    /// Rounded up.
    fn ceiling(&mut self, a: Value) -> Result<Value> {
        self.put(Ceiling, &[a])
    }
    /// `b - a` for a number `b`.
    fn sub_from(&mut self, b: f64, a: Value) -> Result<Value> {
        let b = self.number(a, b)?;
        self.minus(b, a)
    }
    /// `a < b`.
    fn less(&mut self, a: Value, b: Value) -> Result<Value> {
        self.put(Less::default(), &[a, b])
    }
    /// `a <= b`.
    fn less_equal(&mut self, a: Value, b: Value) -> Result<Value> {
        self.put(LessEqual::default(), &[a, b])
    }
    /// `a > b`.
    fn greater(&mut self, a: Value, b: Value) -> Result<Value> {
        self.put(Greater::default(), &[a, b])
    }
    /// `a >= b`.
    fn greater_equal(&mut self, a: Value, b: Value) -> Result<Value> {
        self.put(GreaterEqual::default(), &[a, b])
    }
    /// `a == b`.
    fn equal(&mut self, a: Value, b: Value) -> Result<Value> {
        self.put(Equal::default(), &[a, b])
    }
    /// Whether both are true.
    fn and(&mut self, a: Value, b: Value) -> Result<Value> {
        self.put(LogicalAnd::default(), &[a, b])
    }
    /// Whether one is true.
    fn or(&mut self, a: Value, b: Value) -> Result<Value> {
        self.put(LogicalOr::default(), &[a, b])
    }
    /// `then` where the condition is true, else `other`.
    fn choose(&mut self, condition: Value, then: Value, other: Value) -> Result<Value> {
        self.put(Select { auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None }, &[condition, then, other])
    }
    /// The matrix product.
    fn product(&mut self, a: Value, b: Value, transpose_b: bool) -> Result<Value> {
        self.put(MatMul { transpose_a: false, transpose_b }, &[a, b])
    }

    /// The sum over axes.
    fn sum_over(&mut self, a: Value, axes: &[i64], keep_dims: bool) -> Result<Value> {
        let axes = self.indices(axes)?;
        self.put(ReduceSum { keep_dims }, &[a, axes])
    }
    /// The mean over axes.
    fn mean_over(&mut self, a: Value, axes: &[i64], keep_dims: bool) -> Result<Value> {
        let axes = self.indices(axes)?;
        self.put(ReduceMean { keep_dims }, &[a, axes])
    }
    /// The largest over axes.
    fn max_over(&mut self, a: Value, axes: &[i64], keep_dims: bool) -> Result<Value> {
        let axes = self.indices(axes)?;
        self.put(ReduceMax { keep_dims }, &[a, axes])
    }

    /// Elements of an axis by index.
    fn gather(&mut self, data: Value, indices: Value, axis: i64) -> Result<Value> {
        let axis = self.index(axis)?;
        self.put(Gather { batch_dims: 0 }, &[data, indices, axis])
    }
    /// One dimension of a value, as an i64 vector of one.
    fn size(&mut self, v: Value, axis: i64) -> Result<Value> {
        let shape = self.put(ShapeOf { output_type: ElementType::I64 }, &[v])?;
        let at = self.indices(&[axis])?;
        self.gather(shape, at, 0)
    }
    /// One dimension of a value, as an i64 scalar.
    fn length(&mut self, v: Value, axis: i64) -> Result<Value> {
        let shape = self.put(ShapeOf { output_type: ElementType::I64 }, &[v])?;
        let at = self.index(axis)?;
        self.gather(shape, at, 0)
    }
    /// `0, 1, ... stop - 1` for a scalar.
    fn count_to(&mut self, stop: Value, ty: ElementType) -> Result<Value> {
        let (start, step) = (self.index(0)?, self.index(1)?);
        self.put(Range { output_type: ty }, &[start, stop, step])
    }
    /// Repeated along axes of 1 so that it has a shape, which may be repeated itself.
    fn stretch(&mut self, v: Value, shape: Value) -> Result<Value> {
        self.put(Broadcast { mode: BroadcastMode::Bidirectional }, &[v, shape])
    }
    /// In another shape.
    fn reshaped(&mut self, v: Value, shape: Value, special_zero: bool) -> Result<Value> {
        self.put(Reshape { special_zero }, &[v, shape])
    }
    /// With further axes of 1.
    fn with_axes(&mut self, v: Value, axes: &[i64]) -> Result<Value> {
        let axes = self.indices(axes)?;
        self.put(Unsqueeze, &[v, axes])
    }
    /// Without axes of 1.
    fn without_axes(&mut self, v: Value, axes: &[i64]) -> Result<Value> {
        let axes = self.indices(axes)?;
        self.put(Squeeze { allow_axis_skip: false }, &[v, axes])
    }
    /// Equal parts of an axis.
    fn split_equally(&mut self, v: Value, axis: i64, parts: usize) -> Result<Vec<Value>> {
        let axis = self.index(axis)?;
        self.put_all(Split { num_splits: parts }, &[v, axis])
    }
    /// Elements `start..stop` of an axis; each bound is an i64 vector of one.
    fn cut(&mut self, v: Value, start: Value, stop: Value, axis: i64) -> Result<Value> {
        let (step, axis) = (self.indices(&[1])?, self.indices(&[axis])?);
        self.put(Slice, &[v, start, stop, step, axis])
    }
    /// As `cut`, with bounds that are known.
    fn part(&mut self, v: Value, start: i64, stop: i64, axis: i64) -> Result<Value> {
        let (start, stop) = (self.indices(&[start])?, self.indices(&[stop])?);
        self.cut(v, start, stop, axis)
    }
}

impl Compose for NodeCx<'_> {
    fn put_all<O: Op>(&mut self, op: O, inputs: &[Value]) -> Result<Vec<Value>> {
        self.emit_all(op, inputs)
    }
    fn fixed(&mut self, tensor: Tensor) -> Result<Value> {
        self.constant(tensor)
    }
    fn element(&self, v: Value) -> ElementType {
        self.ty(v)
    }
}

/// A body under construction.
impl Compose for Model {
    fn put_all<O: Op>(&mut self, op: O, inputs: &[Value]) -> Result<Vec<Value>> {
        let name = format!("{}_{}", op.info().name, self.slots());
        let node = self.add(name, op, inputs)?;
        Ok((0..self.node(node).outputs().len()).map(|port| Value { node, port }).collect())
    }
    fn fixed(&mut self, tensor: Tensor) -> Result<Value> {
        let name = format!("const_{}", self.slots());
        self.constant(&name, tensor)
    }
    fn element(&self, v: Value) -> ElementType {
        self.fact(v).ty
    }
}
