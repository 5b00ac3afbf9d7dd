//! ExperimentalDetectronPriorGridGenerator: copies of the priors around the centres of the cells of a feature map. Only
//! the shapes of the two images are read. The shape of the result follows the feature map even where `h` and `w` say
//! otherwise.

use super::expect::{at_least, dim_is, put_f32, same_dim, zeros};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

/// Anchors cell by cell.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 6, inputs = "priors, feature_map, im_data", also = "experimental, extension")]
pub struct ExperimentalDetectronPriorGridGenerator {
    /// One row for all anchors; otherwise `[h, w, priors, 4]`.
    #[attr(default = true)]
    pub flatten: bool,
    /// Rows of cells; 0 takes the feature map's.
    #[attr(default = 0)]
    pub h: i64,
    /// Columns of cells; 0 takes the feature map's.
    #[attr(default = 0)]
    pub w: i64,
    /// Pixels between columns; 0 takes image by feature-map width.
    #[attr(default = 0.0)]
    pub stride_x: f32,
    /// Pixels between rows; 0 takes image by feature-map height.
    #[attr(default = 0.0)]
    pub stride_y: f32,
}

impl Op for ExperimentalDetectronPriorGridGenerator {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        at_least(cx, "h", self.h, 0)?;
        at_least(cx, "w", self.w, 0)?;
        cx.require_float(0)?;
        cx.require_rank(0, &[2])?;
        cx.require_rank(1, &[4])?;
        cx.require_rank(2, &[4])?;
        dim_is(cx, 0, 1, 4)?;
        same_dim(cx, (1, 0), (2, 0))?;
        let (priors, height, width) = (cx.dim(0, 0), cx.dim(1, 2), cx.dim(1, 3));
        if let (Some(map_h), Some(map_w)) = (height.get(), width.get()) {
            let cell_rows = if self.h == 0 { map_h } else { self.h };
            let cell_columns = if self.w == 0 { map_w } else { self.w };
            cx.require(cell_rows.saturating_mul(cell_columns) <= map_h.saturating_mul(map_w), || {
                format!("{cell_rows} x {cell_columns} cells do not fit the feature map [{}]", cx.shape(1))
            })?;
        }
        let four = Dim::known(4);
        let shape = if self.flatten {
            PartialShape::new([height.mul(width).mul(priors), four])
        } else {
            PartialShape::new([height, width, priors, four])
        };
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.out_shape(0)?;
        let (map, image) = (cx.shape(1), cx.shape(2));
        let height = if self.h == 0 { map[2] } else { self.h as usize };
        let width = if self.w == 0 { map[3] } else { self.w as usize };
        let step_x = if self.stride_x == 0.0 { image[3] as f32 / width as f32 } else { self.stride_x };
        let step_y = if self.stride_y == 0.0 { image[2] as f32 / height as f32 } else { self.stride_y };
        let mut out = zeros(&shape)?;
        {
            let priors = cx.get::<f32>(0)?;
            let mut anchors = out.as_slice_mut::<f32>()?.chunks_exact_mut(4);
            'cells: for cell in 0..height * width {
                let (x, y) = (step_x * ((cell % width) as f32 + 0.5), step_y * ((cell / width) as f32 + 0.5));
                for p in priors.chunks_exact(4) {
                    let Some(anchor) = anchors.next() else { break 'cells };
                    anchor.copy_from_slice(&[p[0] + x, p[1] + y, p[2] + x, p[3] + y]);
                }
            }
        }
        put_f32(cx, 0, out)
    }
}
