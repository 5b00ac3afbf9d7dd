//! PriorBoxClustered: anchors of listed widths and heights around the cells of a feature map. `step_w` and `step_h` fall
//! back to `step` one by one, but to image by layer size only when both end up zero.

use super::prior_box::{infer_grid, place_grid, sizes};
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Anchors `[2, 4 * H * W * sizes]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "output_size, image_size", shape_inputs = "0, 1")]
pub struct PriorBoxClustered {
    /// Widths in pixels.
    pub width: Vec<f32>,
    /// Heights in pixels, as many.
    pub height: Vec<f32>,
    /// Clip all boxes to 0..1.
    #[attr(default = true)]
    pub clip: bool,
    /// Distance of cells where the two below are zero.
    #[attr(default = 0.0)]
    pub step: f32,
    /// Horizontal distance of cells in pixels.
    #[attr(default = 0.0)]
    pub step_w: f32,
    /// Vertical distance of cells in pixels.
    #[attr(default = 0.0)]
    pub step_h: f32,
    /// Centre within a cell.
    pub offset: f32,
    /// None for 0.1, one, or one for each coordinate.
    #[attr(default = vec![])]
    pub variance: Vec<f32>,
}

impl Op for PriorBoxClustered {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let (w, h) = (self.width.len(), self.height.len());
        cx.require(w == h, || format!("attributes `width` and `height` must be as many, found {w} and {h}"))?;
        infer_grid(cx, &self.variance, w)
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let [layer_h, layer_w, image_h, image_w] = sizes(cx)?;
        let or_step = |s: f32| if s == 0.0 { self.step } else { s };
        let (mut step_w, mut step_h) = (or_step(self.step_w), or_step(self.step_h));
        if step_w == 0.0 && step_h == 0.0 {
            (step_w, step_h) = (image_w / layer_w, image_h / layer_h);
        }
        place_grid(cx, &self.variance, self.width.len(), |column, row, n| {
            let (x, y) = ((column + self.offset) * step_w, (row + self.offset) * step_h);
            let (w, h) = (self.width[n] / 2.0, self.height[n] / 2.0);
            let b = [(x - w) / image_w, (y - h) / image_h, (x + w) / image_w, (y + h) / image_h];
            if self.clip { b.map(|v| v.clamp(0.0, 1.0)) } else { b }
        })
    }
}
