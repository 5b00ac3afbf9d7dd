//! NMSRotated: NonMaxSuppression of turned boxes `x_center, y_center, width, height, angle`. A box is dropped when its
//! overlap is above the threshold; the angle is in radians and `clockwise` says in which direction it counts.

use super::expect::index_type;
use super::non_max_suppression::{Limits, infer_selection, put_selection, row_bound, select_all};
use super::rotated_boxes::Turned;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Selected boxes, their scores and their number.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(
    since = 13,
    inputs = "boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold",
    outputs = "selected_indices, selected_scores, valid_outputs"
)]
pub struct NMSRotated {
    /// Order the result by score over all batches and classes.
    #[attr(default = true)]
    pub sort_result_descending: bool,
    /// Type of the indices: i64 or i32.
    #[attr(default = ElementType::I64)]
    pub output_type: ElementType,
    /// Direction of the angle.
    #[attr(default = true)]
    pub clockwise: bool,
}

impl Op for NMSRotated {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        index_type(cx, "output_type", self.output_type)?;
        infer_selection(cx, 5, self.output_type)?;
        let rows = PartialShape::new([row_bound(cx), Dim::known(3)]);
        cx.set(1, ElementType::F32, rows);
        cx.set(2, self.output_type, PartialShape::of(&[1]));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let limits = Limits::read(cx)?;
        let turn = if self.clockwise { 1.0 } else { -1.0 };
        let decode = |b: &[f32]| Turned { x: b[0], y: b[1], width: b[2], height: b[3], angle: b[4] * turn };
        let boxes: Vec<Turned> = cx.get::<f32>(0)?.chunks_exact(5).map(decode).collect();
        let decay = |iou: f32| if iou > limits.iou { None } else { Some(1.0) };
        let selected = select_all(cx, &limits, |a, b| boxes[a].iou(&boxes[b]), decay)?;
        put_selection(cx, selected, self.sort_result_descending)
    }
}
