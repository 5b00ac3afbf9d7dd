//! LogSoftmax: the logarithm of Softmax, computed as `t - ln(sum(e^t))` with `t = x - max`, so that it never meets `ln(0)`.

use super::along_axis;
use carafe_graph::{EvalCx, InferCx, Op, Result, RowsCx, OrderCx, Reordered};

/// Turns the numbers along an axis into logarithms of probabilities.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 5, keeps_shape)]
pub struct LogSoftmax {
    /// The axis; negative ones count from the end.
    #[attr(default = 1)]
    pub axis: i64,
}

impl Op for LogSoftmax {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        along_axis::infer(cx, self.axis)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        along_axis::map(cx, self.axis, |line| {
            let log = line.iter().map(|x| x.exp()).sum::<f64>().ln();
            line.iter_mut().for_each(|x| *x -= log);
        })
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0]).and_then(|()| cx.axis_leaves_rows(self.axis))
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        Some(Reordered { op: Box::new(LogSoftmax { axis: cx.axis(self.axis)? }), data: 1, ints: vec![] })
    }
}
