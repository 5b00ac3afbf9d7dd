//! Reductions. Axes are a scalar or a vector, may count from the end and may be none, which leaves the data as it is.

use super::shapes::i64_vector;
use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Op, Result, Value};
use carafe_ops::arithmetic::Divide;
use carafe_ops::movement::Broadcast;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::reduce::{
    ReduceL2, ReduceLogicalAnd, ReduceLogicalOr, ReduceMax, ReduceMean, ReduceMin, ReduceProd, ReduceSum,
};
use carafe_tensor::ElementType;

/// How elements are folded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Whether all are true.
    All,
    /// Whether one is true.
    Any,
    /// The square root of the sum of squares.
    EuclideanNorm,
    /// The largest.
    Max,
    /// The mean; of integers rounded toward zero.
    Mean,
    /// The smallest.
    Min,
    /// The product.
    Prod,
    /// The sum.
    Sum,
}

/// Folds `x` over `axes`.
pub fn reduce(n: &mut NodeCx<'_>, fold: Fold, x: Value, axes: Value, keep_dims: bool) -> Result<Value> {
    let axes = i64_vector(n, axes)?;
    // A file cannot hold the constant of no axes.
    if n.ints(axes).is_some_and(|a| a.is_empty()) {
        return if fold == Fold::EuclideanNorm { n.abs(x) } else { Ok(x) };
    }
    match fold {
        Fold::All => logical(n, ReduceLogicalAnd { keep_dims }, ReduceMin { keep_dims }, x, axes),
        Fold::Any => logical(n, ReduceLogicalOr { keep_dims }, ReduceMax { keep_dims }, x, axes),
        Fold::EuclideanNorm => n.emit(ReduceL2 { keep_dims }, &[x, axes]),
        Fold::Max => of_floats(n, ReduceMax { keep_dims }, x, axes, f64::NEG_INFINITY),
        Fold::Min => of_floats(n, ReduceMin { keep_dims }, x, axes, f64::INFINITY),
        Fold::Mean if n.ty(x).is_float() => of_floats(n, ReduceMean { keep_dims }, x, axes, f64::NAN),
        Fold::Mean => integer_mean(n, x, axes, keep_dims),
        Fold::Prod => n.emit(ReduceProd { keep_dims }, &[x, axes]),
        Fold::Sum => n.emit(ReduceSum { keep_dims }, &[x, axes]),
    }
}

// OpenVINO wants the axes of logical reductions fixed, those of others may come while it runs.
fn logical<A: Op, B: Op>(n: &mut NodeCx<'_>, op: A, of_bytes: B, x: Value, axes: Value) -> Result<Value> {
    if n.ints(axes).is_some() {
        return n.emit(op, &[x, axes]);
    }
    let bytes = n.convert(x, ElementType::U8)?;
    let y = n.emit(of_bytes, &[bytes, axes])?;
    n.convert(y, ElementType::Boolean)
}

// Of no floats at all the extreme is infinite and the mean no number; our operations give finite ones.
fn of_floats<O: Op>(n: &mut NodeCx<'_>, op: O, x: Value, axes: Value, of_none: f64) -> Result<Value> {
    let y = n.emit(op, &[x, axes])?;
    let none = n.shape(x).dims().is_some_and(|dims| dims.iter().any(|d| d.get() == Some(0)));
    if !none || !n.ty(x).is_float() || n.shape(y).elements() == Some(0) {
        return Ok(y);
    }
    let (value, shape) = (n.scalar_like(x, of_none)?, n.shape_of(y)?);
    n.emit(Broadcast { mode: BroadcastMode::Numpy }, &[value, shape])
}

fn integer_mean(n: &mut NodeCx<'_>, x: Value, axes: Value, keep_dims: bool) -> Result<Value> {
    let ty = n.ty(x);
    // The sum of small integers is wider than they are.
    let x = n.convert(x, ElementType::I64)?;
    let sum = n.emit(ReduceSum { keep_dims }, &[x, axes])?;
    let shape = n.shape_of(x)?;
    let sizes = n.gather(shape, axes, 0)?;
    let zero = n.i64(0)?;
    let count = n.emit(ReduceProd { keep_dims: false }, &[sizes, zero])?;
    let mean = n.emit(Divide { m_pythondiv: false, ..Divide::default() }, &[sum, count])?;
    n.convert(mean, ty)
}
