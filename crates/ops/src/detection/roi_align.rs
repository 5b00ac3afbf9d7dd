//! ROIAlign: bilinear samples of each region, averaged or maximal per bin. Only the asymmetric alignment makes regions
//! at least one pixel large; in the other modes a turned-around region has no samples and gives zeros.

use super::expect::{image_index, put_f32, zeros};
use super::roi_grid::{Bins, Features, PoolMode, Region, infer_align, pool_upright};
use carafe_graph::{EvalCx, InferCx, Op, Result, Version, VersionCx};

carafe_graph::attr_enum! {
    /// How region coordinates are brought to the feature map.
    pub enum AlignedMode {
        /// `v * scale`
        Asymmetric = "asymmetric",
        /// `v * scale - 0.5`
        HalfPixelForNn = "half_pixel_for_nn",
        /// `(v + 0.5) * scale - 0.5`
        HalfPixel = "half_pixel",
    }
}

/// Regions `[x1, y1, x2, y2]` pooled to a fixed grid.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 9, inputs = "data, rois, batch_indices", heavy)]
pub struct ROIAlign {
    /// Bins of a column.
    pub pooled_h: i64,
    /// Bins of a row.
    pub pooled_w: i64,
    /// Samples a side of each bin; 0 for one per pixel.
    pub sampling_ratio: i64,
    /// From region to feature-map coordinates.
    pub spatial_scale: f32,
    /// Average or maximum of the samples.
    pub mode: PoolMode,
    /// Alignment of coordinates.
    #[attr(default = AlignedMode::Asymmetric)]
    pub aligned_mode: AlignedMode,
}

/// Regions pooled to a fixed grid, asymmetric alignment.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "ROIAlign", since = 3, until = 8, inputs = "data, rois, batch_indices", heavy)]
pub struct ROIAlignV3 {
    /// Bins of a column.
    pub pooled_h: i64,
    /// Bins of a row.
    pub pooled_w: i64,
    /// Samples a side of each bin; 0 for one per pixel.
    pub sampling_ratio: i64,
    /// From region to feature-map coordinates.
    pub spatial_scale: f32,
    /// Average or maximum of the samples.
    pub mode: PoolMode,
}

impl ROIAlignV3 {
    fn newest(&self) -> ROIAlign {
        ROIAlign {
            pooled_h: self.pooled_h,
            pooled_w: self.pooled_w,
            sampling_ratio: self.sampling_ratio,
            spatial_scale: self.spatial_scale,
            mode: self.mode,
            aligned_mode: AlignedMode::Asymmetric,
        }
    }
}

impl Op for ROIAlignV3 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        self.newest().infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        self.newest().eval(cx)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<ROIAlign>(self, cx)
    }
}

impl Op for ROIAlign {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer_align(cx, 4, (self.pooled_h, self.pooled_w), self.sampling_ratio)
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        pool_regions(cx, 4, self.sampling_ratio, |features, roi, bins, out| {
            pool_upright(features, self.region(roi), bins, self.mode, out)
        })
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if self.aligned_mode == AlignedMode::Asymmetric { Version::of::<ROIAlignV3>(self, cx) } else { None }
    }
}

impl ROIAlign {
    fn region(&self, roi: &[f32]) -> Region {
        let (before, after) = match self.aligned_mode {
            AlignedMode::Asymmetric => (0.0, 0.0),
            AlignedMode::HalfPixelForNn => (0.0, -0.5),
            AlignedMode::HalfPixel => (0.5, -0.5),
        };
        let least = if self.aligned_mode == AlignedMode::Asymmetric { 1.0 } else { f32::NEG_INFINITY };
        let at = |v: f32| (v + before) * self.spatial_scale + after;
        let (x1, y1, x2, y2) = (at(roi[0]), at(roi[1]), at(roi[2]), at(roi[3]));
        Region { x: x1, y: y1, width: (x2 - x1).max(least), height: (y2 - y1).max(least) }
    }
}

/// Runs `pool(image, region numbers, bins, output)` for every region of `data, rois, batch_indices`.
pub(super) fn pool_regions(
    cx: &mut EvalCx<'_>,
    roi_size: usize,
    sampling: i64,
    pool: impl Fn(&Features<'_>, &[f32], Bins, &mut [f32]) -> Result<()>,
) -> Result<()> {
    let shape = cx.out_shape(0)?;
    let &[images, channels, height, width] = cx.shape(0) else { return Err(cx.fail("data must have rank 4")) };
    let bins = Bins { height: shape[2], width: shape[3], sampling: sampling.max(0) as usize };
    let mut out = zeros(&shape)?;
    {
        let (data, rois, indices) = (cx.get::<f32>(0)?, cx.get::<f32>(1)?, cx.get::<i64>(2)?);
        let image_size = channels * height * width;
        let per_region = channels * bins.height * bins.width;
        if per_region > 0 {
            let regions = rois.chunks_exact(roi_size).zip(indices.iter());
            for ((roi, &index), out) in regions.zip(out.as_slice_mut::<f32>()?.chunks_exact_mut(per_region)) {
                let image = image_index(cx, index, images)?;
                let data = &data[image * image_size..(image + 1) * image_size];
                pool(&Features { data, channels, height, width }, roi, bins, out)?;
            }
        }
    }
    put_f32(cx, 0, out)
}
