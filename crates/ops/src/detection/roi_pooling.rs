//! ROIPooling: maximum over the cells of a region, or bilinear samples at its bins. The two methods read regions
//! differently: `max` takes pixels times `spatial_scale`, `bilinear` takes parts of the image and ignores the scale. A
//! region with image -1 ends the list, as Proposal writes it; its row and all after it are zero.

use super::expect::{at_least, dim_is, image_index, put_f32, same_float, zeros};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

carafe_graph::attr_enum! {
    /// How a bin gets its number.
    pub enum RoiMethod { Max = "max", Bilinear = "bilinear" }
}

/// Regions `[image, x1, y1, x2, y2]` pooled to a fixed grid.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 2, inputs = "data, rois", heavy, also = "opset1")]
pub struct ROIPooling {
    /// Bins of a column.
    pub pooled_h: i64,
    /// Bins of a row.
    pub pooled_w: i64,
    /// From region to feature-map coordinates.
    pub spatial_scale: f32,
    /// Maximum or bilinear.
    #[attr(default = RoiMethod::Max)]
    pub method: RoiMethod,
}

impl Op for ROIPooling {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        at_least(cx, "pooled_h", self.pooled_h, 1)?;
        at_least(cx, "pooled_w", self.pooled_w, 1)?;
        let scale = self.spatial_scale;
        cx.require(scale > 0.0, || format!("attribute `spatial_scale` must be positive, found {scale}"))?;
        let ty = same_float(cx, &[0, 1])?;
        cx.require_rank(0, &[4])?;
        cx.require_rank(1, &[2])?;
        dim_is(cx, 1, 1, 5)?;
        let (regions, channels) = (cx.dim(1, 0), cx.dim(0, 1));
        cx.set(0, ty, PartialShape::new([regions, channels, Dim::known(self.pooled_h), Dim::known(self.pooled_w)]));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (rows, columns) = (self.pooled_h as usize, self.pooled_w as usize);
        pool_listed_regions(cx, |maps, _, roi, out| {
            let (height, width) = (maps.height, maps.width);
            match self.method {
                RoiMethod::Max => {
                    let y = MaxBins::new(roi[1], roi[3], self.spatial_scale, rows, height);
                    let x = MaxBins::new(roi[0], roi[2], self.spatial_scale, columns, width);
                    maps.fill(rows, columns, out, |map, row, column| {
                        let (top, bottom) = y.bounds(row);
                        let (left, right) = x.bounds(column);
                        if top >= bottom || left >= right {
                            return 0.0;
                        }
                        let lines = (top..bottom).map(|h| &map[h * width + left..h * width + right]);
                        lines.flatten().copied().fold(f32::MIN, f32::max)
                    });
                }
                RoiMethod::Bilinear => {
                    let ys: Vec<f32> = (0..rows).map(|i| sample_at(roi[1], roi[3], i, rows, height)).collect();
                    let xs: Vec<f32> = (0..columns).map(|i| sample_at(roi[0], roi[2], i, columns, width)).collect();
                    maps.fill(rows, columns, out, |map, row, column| {
                        interpolate(map, height, width, ys[row], xs[column]).unwrap_or(0.0)
                    });
                }
            }
            Ok(())
        })
    }
}

/// Bins of one axis for `max`.
struct MaxBins {
    start: i64,
    bin: f32,
    size: i64,
}

impl MaxBins {
    fn new(from: f32, to: f32, scale: f32, bins: usize, size: usize) -> MaxBins {
        // Far outside of any feature map, and far from overflow.
        let pixel = |v: f32| (v * scale).round().clamp(-1e9, 1e9) as i64;
        let (start, end) = (pixel(from), pixel(to));
        MaxBins { start, bin: (end - start + 1).max(1) as f32 / bins as f32, size: size as i64 }
    }
    fn bounds(&self, i: usize) -> (usize, usize) {
        let from = (i as f32 * self.bin).floor() as i64 + self.start;
        let to = ((i + 1) as f32 * self.bin).ceil() as i64 + self.start;
        (from.clamp(0, self.size) as usize, to.clamp(0, self.size) as usize)
    }
}

/// Where bin `i` samples an axis. The last one is pinned to the end, since rounding could carry it past.
fn sample_at(from: f32, to: f32, i: usize, bins: usize, size: usize) -> f32 {
    let last = size.saturating_sub(1) as f32;
    if bins == 1 {
        0.5 * (from + to) * last
    } else if i == bins - 1 {
        last * to
    } else {
        let scale = (to - from) * last / (bins - 1) as f32;
        i as f32 * scale + from * last
    }
}

/// Bilinear value; `None` outside of the map.
pub(super) fn interpolate(map: &[f32], height: usize, width: usize, y: f32, x: f32) -> Option<f32> {
    let inside = |v: f32, size: usize| size > 0 && (0.0..=(size - 1) as f32).contains(&v);
    if !inside(y, height) || !inside(x, width) {
        return None;
    }
    let (top, left) = ((y as usize).min(height - 1), (x as usize).min(width - 1));
    let (bottom, right) = ((y.ceil() as usize).min(height - 1), (x.ceil() as usize).min(width - 1));
    let (dy, dx) = (y - top as f32, x - left as f32);
    let along = |row: usize| {
        let (a, b) = (map[row * width + left], map[row * width + right]);
        a + (b - a) * dx
    };
    let (a, b) = (along(top), along(bottom));
    Some(a + (b - a) * dy)
}

/// The feature maps of one image.
pub(super) struct Maps<'a> {
    pub(super) data: &'a [f32],
    pub(super) height: usize,
    pub(super) width: usize,
}

impl Maps<'_> {
    pub(super) fn plane(&self, channel: usize) -> &[f32] {
        let size = self.height * self.width;
        &self.data[channel * size..(channel + 1) * size]
    }
    /// Fills `out`, one grid after the other, with `value(map of the channel, row, column)`.
    fn fill(&self, rows: usize, columns: usize, out: &mut [f32], value: impl Fn(&[f32], usize, usize) -> f32) {
        for (c, grid) in out.chunks_exact_mut(rows * columns).enumerate() {
            let map = self.plane(c);
            for (i, o) in grid.iter_mut().enumerate() {
                *o = value(map, i / columns, i % columns);
            }
        }
    }
}

/// Runs `pool(image, number, x1 y1 x2 y2, output)` for the regions `[image, x1, y1, x2, y2]` of input 1, up to the first
/// with image -1.
pub(super) fn pool_listed_regions(
    cx: &mut EvalCx<'_>,
    pool: impl Fn(&Maps<'_>, usize, &[f32], &mut [f32]) -> Result<()>,
) -> Result<()> {
    let shape = cx.out_shape(0)?;
    let &[images, channels, height, width] = cx.shape(0) else { return Err(cx.fail("data must have rank 4")) };
    let mut out = zeros(&shape)?;
    {
        let (data, rois) = (cx.get::<f32>(0)?, cx.get::<f32>(1)?);
        let image_size = channels * height * width;
        let per_region: usize = shape[1..].iter().product();
        if per_region > 0 {
            let out = out.as_slice_mut::<f32>()?.chunks_exact_mut(per_region);
            for (number, (roi, out)) in rois.chunks_exact(5).zip(out).enumerate() {
                if roi[0] == -1.0 {
                    break;
                }
                let image = image_index(cx, roi[0] as i64, images)?;
                let data = &data[image * image_size..(image + 1) * image_size];
                pool(&Maps { data, height, width }, number, &roi[1..], out)?;
            }
        }
    }
    put_f32(cx, 0, out)
}
