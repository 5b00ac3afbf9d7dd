//! GridSample: reads an image at points given in `-1..1` as `x, y` pairs. `align_corners` decides whether -1 is the centre
//! or the outer edge of the first pixel, and with it around what a reflection turns.

use super::taps::cubic_weights;
use crate::linear::product::zeros;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::PartialShape;

carafe_graph::attr_enum! {
    /// How pixels are blended.
    pub enum SampleMode {
        /// The four neighbours.
        Bilinear = "bilinear",
        /// Sixteen neighbours.
        Bicubic = "bicubic",
        /// The nearest, the even one of two equally near.
        Nearest = "nearest",
    }
}

carafe_graph::attr_enum! {
    /// What lies beyond the border.
    pub enum PaddingMode {
        /// Zeros.
        Zeros = "zeros",
        /// The border pixel.
        Border = "border",
        /// The image mirrored.
        Reflection = "reflection",
    }
}

/// Samples `[N, C, H, W]` at the points of a grid `[N, Ho, Wo, 2]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 9, inputs = "data, grid")]
pub struct GridSample {
    /// -1 and 1 are the centres of the corner pixels, not their outer edges.
    #[attr(default = false)]
    pub align_corners: bool,
    /// How pixels are blended.
    #[attr(default = SampleMode::Bilinear)]
    pub mode: SampleMode,
    /// What lies beyond the border.
    #[attr(default = PaddingMode::Zeros)]
    pub padding_mode: PaddingMode,
}

impl Op for GridSample {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_number(0)?;
        cx.require_float(1)?;
        cx.require_rank(0, &[4])?;
        cx.require_rank(1, &[4])?;
        cx.require(cx.dim(1, 3).contains(2), || format!("grid must end in x, y pairs, found [{}]", cx.shape(1)))?;
        let batch = cx.dim(0, 0).merge(cx.dim(1, 0)).ok_or_else(|| {
            cx.fail(format!("data [{}] and grid [{}] differ in their batch", cx.shape(0), cx.shape(1)))
        })?;
        cx.set(0, cx.ty(0), PartialShape::new([batch, cx.dim(0, 1), cx.dim(1, 1), cx.dim(1, 2)]));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out_shape = cx.out_shape(0)?;
        let &[_, channels, height, width] = cx.shape(0) else { return Err(cx.fail("data must have rank 4")) };
        let (data, grid) = (cx.get::<f64>(0)?, cx.get::<f32>(1)?);
        let mut out: Vec<f64> = zeros(&out_shape)?;
        if out.is_empty() {
            drop((data, grid));
            return cx.put(0, &out_shape, out);
        }
        if height * width == 0 {
            return Err(cx.fail(format!("data of shape {:?} has no pixel to sample", cx.shape(0))));
        }
        let n_points = out_shape[2] * out_shape[3];
        for (i, plane) in out.chunks_exact_mut(n_points).enumerate() {
            let image = Image { pixels: &data[i * height * width..], height, width, of: self };
            let points = grid[i / channels * n_points * 2..].chunks_exact(2);
            for (y, point) in plane.iter_mut().zip(points) {
                *y = image.sample(self.position(point[1], height), self.position(point[0], width));
            }
        }
        drop((data, grid));
        cx.put(0, &out_shape, out)
    }
}

impl GridSample {
    /// In pixels, computed in f32, so that halves fall where they do in the stored grid.
    fn position(&self, v: f32, size: usize) -> f32 {
        let size = size as f32;
        if self.align_corners { (v + 1.0) * (size - 1.0) / 2.0 } else { ((v + 1.0) * size - 1.0) / 2.0 }
    }

    /// The pixel that stands at an index, which may be beyond the border.
    fn padded(&self, at: i64, size: usize) -> Option<usize> {
        let n = size as i64;
        let inside = match self.padding_mode {
            PaddingMode::Zeros => at,
            PaddingMode::Border => at.clamp(0, n - 1),
            PaddingMode::Reflection if self.align_corners => {
                let period = if n == 1 { 1 } else { 2 * (n - 1) };
                let at = at.unsigned_abs() as i64 % period;
                if at >= n { period - at } else { at }
            }
            PaddingMode::Reflection => {
                let at = at.rem_euclid(2 * n);
                if at >= n { 2 * n - 1 - at } else { at }
            }
        };
        usize::try_from(inside).ok().filter(|&i| i < size)
    }
}

struct Image<'a> {
    pixels: &'a [f64],
    height: usize,
    width: usize,
    of: &'a GridSample,
}

impl Image<'_> {
    fn pixel(&self, y: i64, x: i64) -> f64 {
        match (self.of.padded(y, self.height), self.of.padded(x, self.width)) {
            (Some(y), Some(x)) => self.pixels[y * self.width + x],
            _ => 0.0,
        }
    }

    fn sample(&self, y: f32, x: f32) -> f64 {
        if self.of.mode == SampleMode::Nearest {
            return self.pixel(y.round_ties_even() as i64, x.round_ties_even() as i64);
        }
        // Far points are brought near, so that their neighbours can be counted.
        let near = |v: f32| (v.clamp(-1e15, 1e15).floor() as i64, f64::from(v - v.floor()));
        let ((y0, fy), (x0, fx)) = (near(y), near(x));
        let (rows, columns, first) = match self.of.mode {
            SampleMode::Bicubic => (cubic_weights(fy, -0.75), cubic_weights(fx, -0.75), -1),
            _ => ([1.0 - fy, fy, 0.0, 0.0], [1.0 - fx, fx, 0.0, 0.0], 0),
        };
        let mut sum = 0.0;
        for (j, &wy) in (first..).zip(&rows) {
            for (i, &wx) in (first..).zip(&columns) {
                if wy * wx != 0.0 {
                    sum += wy * wx * self.pixel(y0 + j, x0 + i);
                }
            }
        }
        sum
    }
}
