//! Softmax: `e^x` along an axis, divided by its sum. Before opset 8 the axis could not be counted from the end,
//! and a missing one was 0, not 1.

use super::along_axis;
use carafe_graph::{EvalCx, InferCx, Op, Result, RowsCx, Version, VersionCx, OrderCx, Reordered};

/// Turns the numbers along an axis into probabilities.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 8, xml = "SoftMax", keeps_shape)]
pub struct Softmax {
    /// The axis; negative ones count from the end.
    #[attr(default = 1)]
    pub axis: i64,
}

impl Op for Softmax {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        along_axis::infer(cx, self.axis)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        along_axis::map(cx, self.axis, softmax)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0]).and_then(|()| cx.axis_leaves_rows(self.axis))
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if self.axis >= 0 { Version::of::<SoftmaxV1>(self, cx) } else { None }
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        Some(Reordered { op: Box::new(Softmax { axis: cx.axis(self.axis)? }), data: 1, ints: vec![] })
    }
}

/// Turns the numbers along an axis into probabilities.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Softmax", since = 1, until = 7, xml = "SoftMax", keeps_shape)]
pub struct SoftmaxV1 {
    /// The axis, not negative.
    #[attr(default = 0)]
    pub axis: i64,
}

impl Op for SoftmaxV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let axis = self.axis;
        cx.require(axis >= 0, || format!("attribute `axis` must not be negative before opset 8, found {axis}"))?;
        along_axis::infer(cx, axis)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        along_axis::map(cx, self.axis, softmax)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0]).and_then(|()| cx.axis_leaves_rows(self.axis))
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<Softmax>(self, cx)
    }
}

fn softmax(line: &mut [f64]) {
    line.iter_mut().for_each(|x| *x = x.exp());
    let sum: f64 = line.iter().sum();
    line.iter_mut().for_each(|x| *x /= sum);
}
