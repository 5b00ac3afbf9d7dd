//! DeformablePSROIPooling: position-sensitive averages of bilinear samples, each bin moved by a learned offset. Samples
//! outside of the feature map are left out of the average, not counted as zeros.

use super::expect::{between, same_dim, same_float};
use super::psroi_pooling::infer_position_sensitive;
use super::roi_pooling::{interpolate, pool_listed_regions};
use carafe_graph::{EvalCx, InferCx, Op, Result};

carafe_graph::attr_enum! {
    /// The only way of sampling.
    pub enum DeformableMode { BilinearDeformable = "bilinear_deformable" }
}

/// Regions `[image, x1, y1, x2, y2]` to `group_size` by `group_size` bins, moved by `offsets`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, rois, offsets?", heavy)]
pub struct DeformablePSROIPooling {
    /// Channels of the output.
    pub output_dim: i64,
    /// From region to feature-map coordinates.
    pub spatial_scale: f32,
    /// Bins a side.
    #[attr(default = 1)]
    pub group_size: i64,
    /// Always `bilinear_deformable`.
    #[attr(default = DeformableMode::BilinearDeformable)]
    pub mode: DeformableMode,
    /// Samples of a row of a bin.
    #[attr(default = 1)]
    pub spatial_bins_x: i64,
    /// Samples of a column of a bin.
    #[attr(default = 1)]
    pub spatial_bins_y: i64,
    /// Factor of the offsets.
    #[attr(default = 1.0)]
    pub trans_std: f32,
    /// Cells a side of the offsets.
    #[attr(default = 1)]
    pub part_size: i64,
}

impl Op for DeformablePSROIPooling {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        between(cx, "spatial_bins_x", self.spatial_bins_x, 1, 1 << 12)?;
        between(cx, "spatial_bins_y", self.spatial_bins_y, 1, 1 << 12)?;
        between(cx, "part_size", self.part_size, 1, 1 << 16)?;
        if cx.has(2) {
            same_float(cx, &[0, 2])?;
            cx.require_rank(2, &[4])?;
            same_dim(cx, (1, 0), (2, 0))?;
            let groups = cx.dim(2, 1).floor_div(2);
            cx.require(groups.max().is_none_or(|n| n >= 1), || {
                format!("{} needs two channels for each group, found [{}]", cx.port_name(2), cx.shape(2))
            })?;
        }
        infer_position_sensitive(cx, self.output_dim, self.group_size, self.group_size.checked_mul(self.group_size))
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let offsets = match cx.has(2) {
            true => Some(Offsets { data: cx.get::<f32>(2)?.into_owned(), groups: cx.shape(2)[1] / 2 }),
            false => None,
        };
        let (group, part) = (self.group_size as usize, self.part_size as usize);
        let (nx, ny) = (self.spatial_bins_x as usize, self.spatial_bins_y as usize);
        pool_listed_regions(cx, |maps, number, roi, out| {
            let from = |v: f32| v.round() * self.spatial_scale - 0.5;
            let to = |v: f32| (v.round() + 1.0) * self.spatial_scale - 0.5;
            let (x1, y1) = (from(roi[0]), from(roi[1]));
            let (width, height) = ((to(roi[2]) - x1).max(0.1), (to(roi[3]) - y1).max(0.1));
            let (bin_w, bin_h) = (width / group as f32, height / group as f32);
            let (step_x, step_y) = (bin_w / nx as f32, bin_h / ny as f32);
            for (channel, o) in out.iter_mut().enumerate() {
                let (c, row, column) = (channel / (group * group), channel / group % group, channel % group);
                let (mut x, mut y) = (x1 + column as f32 * bin_w, y1 + row as f32 * bin_h);
                if let Some(offsets) = &offsets {
                    let class_group = c / (self.output_dim as usize / offsets.groups).max(1);
                    let cell = (row * part / group) * part + column * part / group;
                    let [dx, dy] = offsets.at(number, class_group, cell, part * part)?;
                    x += dx * self.trans_std * width;
                    y += dy * self.trans_std * height;
                }
                let map = maps.plane(channel);
                let (mut sum, mut count) = (0.0, 0);
                for iy in 0..ny {
                    let Some(y) = inside(y + iy as f32 * step_y, maps.height) else { continue };
                    for ix in 0..nx {
                        let Some(x) = inside(x + ix as f32 * step_x, maps.width) else { continue };
                        sum += f64::from(interpolate(map, maps.height, maps.width, y, x).unwrap_or(0.0));
                        count += 1;
                    }
                }
                if count > 0 {
                    *o = (sum / f64::from(count)) as f32;
                }
            }
            Ok(())
        })
    }
}

/// Offsets `[regions, 2 * groups, part, part]`: first all cells of x, then of y.
struct Offsets {
    data: Vec<f32>,
    groups: usize,
}

impl Offsets {
    fn at(&self, region: usize, group: usize, cell: usize, cells: usize) -> Result<[f32; 2]> {
        let x = (region * self.groups + group) * 2 * cells + cell;
        match (self.data.get(x), self.data.get(x + cells)) {
            (Some(&dx), Some(&dy)) => Ok([dx, dy]),
            _ => Err(carafe_graph::Error::invalid(format!(
                "{} offsets are too few for region {region}, group {group}, cell {cell} of {cells}",
                self.data.len()
            ))),
        }
    }
}

/// A coordinate within half a pixel of the axis, brought onto it.
fn inside(at: f32, size: usize) -> Option<f32> {
    let size = size as f32;
    (-0.5..=size - 0.5).contains(&at).then(|| at.clamp(0.0, (size - 1.0).max(0.0)))
}
