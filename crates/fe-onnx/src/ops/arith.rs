//! Short words for the operations that composed rules are made of. Element types must already agree; numbers given in
//! Rust take the type of the value they meet.

use carafe_frontend::NodeCx;
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::{Add, Divide, Maximum, Minimum, Multiply, Power, Subtract};
use carafe_ops::compare::{Equal, Less, LessEqual};
use carafe_ops::indexing::{Gather, Select};
use carafe_ops::linear::MatMul;
use carafe_ops::math::round::RoundMode;
use carafe_ops::math::{Abs, Floor, Round, Sqrt};
use carafe_ops::movement::{Reshape, Slice};
use carafe_ops::reduce::{ReduceMean, ReduceSum};
use carafe_ops::shape::Range;
use carafe_tensor::ElementType;

pub(super) trait Arith {
    fn add(&mut self, a: Value, b: Value) -> Result<Value>;
    fn sub(&mut self, a: Value, b: Value) -> Result<Value>;
    fn mul(&mut self, a: Value, b: Value) -> Result<Value>;
    /// Integers divide towards minus infinity.
    fn div(&mut self, a: Value, b: Value) -> Result<Value>;
    fn maximum(&mut self, a: Value, b: Value) -> Result<Value>;
    fn minimum(&mut self, a: Value, b: Value) -> Result<Value>;
    fn plus(&mut self, a: Value, b: f64) -> Result<Value>;
    fn times(&mut self, a: Value, b: f64) -> Result<Value>;
    fn over(&mut self, a: Value, b: f64) -> Result<Value>;
    fn power(&mut self, a: Value, b: f64) -> Result<Value>;
    /// Between two numbers.
    fn between(&mut self, a: Value, low: f64, high: f64) -> Result<Value>;
    fn abs(&mut self, a: Value) -> Result<Value>;
    fn sqrt(&mut self, a: Value) -> Result<Value>;
    fn floor(&mut self, a: Value) -> Result<Value>;
    /// To the nearest integer, halves to the even one.
    fn round(&mut self, a: Value) -> Result<Value>;
    fn equal(&mut self, a: Value, b: f64) -> Result<Value>;
    fn less(&mut self, a: Value, b: Value) -> Result<Value>;
    fn less_equal(&mut self, a: Value, b: Value) -> Result<Value>;
    fn select(&mut self, condition: Value, yes: Value, no: Value) -> Result<Value>;
    fn matmul(&mut self, a: Value, b: Value) -> Result<Value>;
    /// Mean over axes that stay with size 1.
    fn mean(&mut self, a: Value, axes: Value) -> Result<Value>;
    /// Sum over axes that stay with size 1.
    fn sum(&mut self, a: Value, axes: Value) -> Result<Value>;
    fn gather(&mut self, data: Value, indices: Value, axis: i64) -> Result<Value>;
    /// Elements `start..stop` of an axis.
    fn part(&mut self, v: Value, axis: i64, start: i64, stop: i64) -> Result<Value>;
    fn reshape_to(&mut self, v: Value, shape: Value) -> Result<Value>;
    /// One dimension as an i64 vector of one element; a constant where it is known.
    fn dim(&mut self, v: Value, axis: usize) -> Result<Value>;
    /// One dimension as an i64 scalar.
    fn size(&mut self, v: Value, axis: usize) -> Result<Value>;
    /// `0, 1, ...` up to a scalar count.
    fn count_to(&mut self, stop: Value, ty: ElementType) -> Result<Value>;
    /// The axes from one on, also of a value of unknown rank.
    fn axes_from(&mut self, v: Value, first: usize) -> Result<Value>;
}

impl Arith for NodeCx<'_> {
    fn add(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit(Add::default(), &[a, b])
    }
    fn sub(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit(Subtract::default(), &[a, b])
    }
    fn mul(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit(Multiply::default(), &[a, b])
    }
    fn div(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit(Divide::default(), &[a, b])
    }
    fn maximum(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit(Maximum::default(), &[a, b])
    }
    fn minimum(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit(Minimum::default(), &[a, b])
    }
    fn plus(&mut self, a: Value, b: f64) -> Result<Value> {
        let b = self.scalar_like(a, b)?;
        self.add(a, b)
    }
    fn times(&mut self, a: Value, b: f64) -> Result<Value> {
        let b = self.scalar_like(a, b)?;
        self.mul(a, b)
    }
    fn over(&mut self, a: Value, b: f64) -> Result<Value> {
        let b = self.scalar_like(a, b)?;
        self.div(a, b)
    }
    fn power(&mut self, a: Value, b: f64) -> Result<Value> {
        let b = self.scalar_like(a, b)?;
        self.emit(Power::default(), &[a, b])
    }
    fn between(&mut self, a: Value, low: f64, high: f64) -> Result<Value> {
        self.emit(carafe_ops::activation::Clamp { min: low, max: high }, &[a])
    }
    fn abs(&mut self, a: Value) -> Result<Value> {
        self.emit(Abs, &[a])
    }
    fn sqrt(&mut self, a: Value) -> Result<Value> {
        self.emit(Sqrt, &[a])
    }
    fn floor(&mut self, a: Value) -> Result<Value> {
        self.emit(Floor, &[a])
    }
    fn round(&mut self, a: Value) -> Result<Value> {
        self.emit(Round { mode: RoundMode::HalfToEven }, &[a])
    }
    fn equal(&mut self, a: Value, b: f64) -> Result<Value> {
        let b = self.scalar_like(a, b)?;
        self.emit(Equal::default(), &[a, b])
    }
    fn less(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit(Less::default(), &[a, b])
    }
    fn less_equal(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit(LessEqual::default(), &[a, b])
    }
    fn select(&mut self, condition: Value, yes: Value, no: Value) -> Result<Value> {
        self.emit(Select { auto_broadcast: Default::default(), auto_broadcast_axis: None }, &[condition, yes, no])
    }
    fn matmul(&mut self, a: Value, b: Value) -> Result<Value> {
        self.emit(MatMul { transpose_a: false, transpose_b: false }, &[a, b])
    }
    fn mean(&mut self, a: Value, axes: Value) -> Result<Value> {
        self.emit(ReduceMean { keep_dims: true }, &[a, axes])
    }
    fn sum(&mut self, a: Value, axes: Value) -> Result<Value> {
        self.emit(ReduceSum { keep_dims: true }, &[a, axes])
    }
    fn gather(&mut self, data: Value, indices: Value, axis: i64) -> Result<Value> {
        let axis = self.i64(axis)?;
        self.emit(Gather { batch_dims: 0 }, &[data, indices, axis])
    }
    fn part(&mut self, v: Value, axis: i64, start: i64, stop: i64) -> Result<Value> {
        let inputs = [v, self.i64s(&[start])?, self.i64s(&[stop])?, self.i64s(&[1])?, self.i64s(&[axis])?];
        self.emit(Slice, &inputs)
    }
    fn reshape_to(&mut self, v: Value, shape: Value) -> Result<Value> {
        self.emit(Reshape { special_zero: false }, &[v, shape])
    }
    fn dim(&mut self, v: Value, axis: usize) -> Result<Value> {
        match self.shape(v).dims().and_then(|d| d.get(axis)).and_then(|d| d.get()) {
            Some(n) => self.i64s(&[n]),
            None => {
                let shape = self.shape_of(v)?;
                let axis = self.i64s(&[axis as i64])?;
                self.gather(shape, axis, 0)
            }
        }
    }
    fn size(&mut self, v: Value, axis: usize) -> Result<Value> {
        match self.shape(v).dims().and_then(|d| d.get(axis)).and_then(|d| d.get()) {
            Some(n) => self.i64(n),
            None => {
                let shape = self.shape_of(v)?;
                let axis = self.i64(axis as i64)?;
                self.gather(shape, axis, 0)
            }
        }
    }
    fn count_to(&mut self, stop: Value, ty: ElementType) -> Result<Value> {
        let (start, step) = (self.i64(0)?, self.i64(1)?);
        self.emit(Range { output_type: ty }, &[start, stop, step])
    }
    fn axes_from(&mut self, v: Value, first: usize) -> Result<Value> {
        if let Some(rank) = self.rank(v) {
            let axes: Vec<i64> = (first as i64..rank as i64).collect();
            return self.i64s(&axes);
        }
        let shape = self.shape_of(v)?;
        let rank = self.shape_of(shape)?;
        let rank = self.squeeze(rank, &[0])?;
        let (start, step) = (self.i64(first as i64)?, self.i64(1)?);
        self.emit(Range { output_type: ElementType::I64 }, &[start, rank, step])
    }
}
