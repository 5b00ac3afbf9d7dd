//! PSROIPooling: position-sensitive pooling, where every bin of a region reads channels of its own. `average` takes whole
//! pixels of regions at least 0.1 large, and channels in output order; `bilinear` takes parts of the image, with one group of channels per sub-bin.

use super::expect::{at_least, dim_is, same_float};
use super::roi_pooling::{interpolate, pool_listed_regions};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

carafe_graph::attr_enum! {
    /// How a bin gets its number.
    pub enum PsRoiMode { Average = "average", Bilinear = "bilinear" }
}

/// Regions `[image, x1, y1, x2, y2]` to `group_size` by `group_size` bins.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, rois", heavy)]
pub struct PSROIPooling {
    /// Channels of the output.
    pub output_dim: i64,
    /// Bins a side.
    #[attr(default = 1)]
    pub group_size: i64,
    /// From region to feature-map coordinates.
    pub spatial_scale: f32,
    /// Average or bilinear.
    #[attr(default = PsRoiMode::Average)]
    pub mode: PsRoiMode,
    /// Sub-bins of a row, bilinear only.
    #[attr(default = 1)]
    pub spatial_bins_x: i64,
    /// Sub-bins of a column, bilinear only.
    #[attr(default = 1)]
    pub spatial_bins_y: i64,
}

impl Op for PSROIPooling {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let per_output = match self.mode {
            PsRoiMode::Average => self.group_size.checked_mul(self.group_size),
            PsRoiMode::Bilinear => {
                at_least(cx, "spatial_bins_x", self.spatial_bins_x, 1)?;
                at_least(cx, "spatial_bins_y", self.spatial_bins_y, 1)?;
                self.spatial_bins_x.checked_mul(self.spatial_bins_y)
            }
        };
        infer_position_sensitive(cx, self.output_dim, self.group_size, per_output)
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let group = self.group_size as usize;
        pool_listed_regions(cx, |maps, _, roi, out| {
            let (height, width) = (maps.height, maps.width);
            match self.mode {
                PsRoiMode::Average => {
                    let y = AverageBins::new(roi[1], roi[3], self.spatial_scale, group, height);
                    let x = AverageBins::new(roi[0], roi[2], self.spatial_scale, group, width);
                    for (channel, o) in out.iter_mut().enumerate() {
                        let (top, bottom) = y.bounds(channel / group % group);
                        let (left, right) = x.bounds(channel % group);
                        if top < bottom && left < right {
                            let map = maps.plane(channel);
                            let lines = (top..bottom).map(|h| &map[h * width + left..h * width + right]);
                            let sum: f64 = lines.flatten().map(|&v| f64::from(v)).sum();
                            *o = (sum / ((bottom - top) * (right - left)) as f64) as f32;
                        }
                    }
                }
                PsRoiMode::Bilinear => {
                    let (nx, ny) = (self.spatial_bins_x as usize, self.spatial_bins_y as usize);
                    let at = |v: f32| v * self.spatial_scale;
                    let ys = bilinear_points(at(roi[1]), at(roi[3]), ny, group, height);
                    let xs = bilinear_points(at(roi[0]), at(roi[2]), nx, group, width);
                    let outputs = self.output_dim as usize;
                    for (i, o) in out.iter_mut().enumerate() {
                        let (c, row, column) = (i / (group * group), i / group % group, i % group);
                        let value = |bin: usize| {
                            let map = maps.plane(bin * outputs + c);
                            let (y, x) = (ys[bin / nx * group + row], xs[bin % nx * group + column]);
                            f64::from(interpolate(map, height, width, y, x).unwrap_or(0.0))
                        };
                        *o = ((0..nx * ny).map(value).sum::<f64>() / (nx * ny) as f64) as f32;
                    }
                }
            }
            Ok(())
        })
    }
}

/// Checks `data, rois` and sets `[regions, output_dim, group_size, group_size]`; `per_output` input channels belong to
/// each output channel.
pub(super) fn infer_position_sensitive(
    cx: &mut InferCx<'_>,
    output_dim: i64,
    group_size: i64,
    per_output: Option<i64>,
) -> Result<()> {
    at_least(cx, "output_dim", output_dim, 1)?;
    at_least(cx, "group_size", group_size, 1)?;
    let ty = same_float(cx, &[0, 1])?;
    cx.require_rank(0, &[4])?;
    cx.require_rank(1, &[2])?;
    dim_is(cx, 1, 1, 5)?;
    let Some(channels) = per_output.and_then(|n| n.checked_mul(output_dim)) else {
        return Err(cx.fail("output channels and bins are too many"));
    };
    dim_is(cx, 0, 1, channels)?;
    let (regions, side) = (cx.dim(1, 0), Dim::known(group_size));
    cx.set(0, ty, PartialShape::new([regions, Dim::known(output_dim), side, side]));
    Ok(())
}

/// Bins of one axis for `average`.
struct AverageBins {
    start: f32,
    bin: f32,
    size: usize,
}

impl AverageBins {
    fn new(from: f32, to: f32, scale: f32, bins: usize, size: usize) -> AverageBins {
        let (start, end) = (from.round() * scale, (to.round() + 1.0) * scale);
        AverageBins { start, bin: (end - start).max(0.1) / bins as f32, size }
    }
    fn bounds(&self, i: usize) -> (usize, usize) {
        // Casts of negative numbers give 0.
        let from = (self.start + i as f32 * self.bin).floor() as usize;
        let to = (self.start + (i + 1) as f32 * self.bin).ceil() as usize;
        (from.min(self.size), to.min(self.size))
    }
}

/// Where each bin of each sub-bin samples an axis, sub-bin by sub-bin.
fn bilinear_points(from: f32, to: f32, sub_bins: usize, bins: usize, size: usize) -> Vec<f32> {
    let last = size.saturating_sub(1) as f32;
    let length = (to - from) / sub_bins as f32;
    let point = |i: usize| {
        let (start, bin) = (from + (i / bins) as f32 * length, i % bins);
        if bins == 1 {
            (start + start + length) * last / 2.0
        } else {
            bin as f32 * (length * last / (bins - 1) as f32) + start * last
        }
    };
    (0..sub_bins * bins).map(point).collect()
}
