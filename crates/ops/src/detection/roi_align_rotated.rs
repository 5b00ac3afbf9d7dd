//! ROIAlignRotated: ROIAlign over turned regions `[x_center, y_center, width, height, angle]`, always averaged. The angle
//! is in radians and counts against the clock unless `clockwise_mode` says otherwise.

use super::roi_align::pool_regions;
use super::roi_grid::{Region, infer_align, pool_turned};
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Turned regions averaged to a fixed grid.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 15, inputs = "data, rois, batch_indices", heavy)]
pub struct ROIAlignRotated {
    /// Bins of a column.
    pub pooled_h: i64,
    /// Bins of a row.
    pub pooled_w: i64,
    /// Samples a side of each bin; 0 for one per pixel.
    pub sampling_ratio: i64,
    /// From region to feature-map coordinates.
    pub spatial_scale: f32,
    /// Direction of the angle.
    #[attr(default = false)]
    pub clockwise_mode: bool,
}

impl Op for ROIAlignRotated {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer_align(cx, 5, (self.pooled_h, self.pooled_w), self.sampling_ratio)
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        pool_regions(cx, 5, self.sampling_ratio, |features, roi, bins, out| {
            let scale = self.spatial_scale;
            let (center_x, center_y) = (roi[0] * scale - 0.5, roi[1] * scale - 0.5);
            let (width, height) = (roi[2] * scale, roi[3] * scale);
            let angle = if self.clockwise_mode { -roi[4] } else { roi[4] };
            let (sin, cos) = angle.sin_cos();
            let region = Region { x: -width / 2.0, y: -height / 2.0, width, height };
            pool_turned(features, region, bins, out, |x, y| {
                (y * sin + x * cos + center_x, y * cos - x * sin + center_y)
            })
        })
    }
}
