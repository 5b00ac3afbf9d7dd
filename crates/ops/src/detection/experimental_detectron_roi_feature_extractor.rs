//! ExperimentalDetectronROIFeatureExtractor: ROIAlign over a feature pyramid. The level follows from the size of a
//! region; one without an area gets zeros. Regions are at least one pixel large also when `aligned`, unlike in ROIAlign.

use super::expect::{at_least, dim_is, put_f32, same_float, zeros};
use super::roi_grid::{Bins, Features, PoolMode, Region, pool_upright};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

/// Pooled features and the regions themselves.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 6, inputs = "rois, pyramid_layers...", outputs = "features, rois", also = "experimental, extension")]
pub struct ExperimentalDetectronROIFeatureExtractor {
    /// Bins a side.
    pub output_size: i64,
    /// Samples a side of each bin; 0 for one per pixel.
    pub sampling_ratio: i64,
    /// Image pixels a cell, level by level.
    pub pyramid_scales: Vec<i64>,
    /// Shift samples by half a pixel.
    #[attr(default = false)]
    pub aligned: bool,
}

impl Op for ExperimentalDetectronROIFeatureExtractor {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        at_least(cx, "output_size", self.output_size, 1)?;
        at_least(cx, "sampling_ratio", self.sampling_ratio, 0)?;
        let levels = cx.n_inputs() - 1;
        cx.require(levels >= 1, || "needs at least one pyramid level".to_string())?;
        let scales = self.pyramid_scales.len();
        cx.require(scales >= levels, || format!("{levels} levels need as many `pyramid_scales`, found {scales}"))?;
        if let Some(bad) = self.pyramid_scales.iter().find(|&&s| s <= 0) {
            return Err(cx.fail(format!("attribute `pyramid_scales` must be positive, found {bad}")));
        }
        let inputs: Vec<usize> = (0..=levels).collect();
        let ty = same_float(cx, &inputs)?;
        cx.require_rank(0, &[2])?;
        dim_is(cx, 0, 1, 4)?;
        let mut channels = Dim::ANY;
        for level in 1..=levels {
            cx.require_rank(level, &[4])?;
            dim_is(cx, level, 0, 1)?;
            let own = cx.dim(level, 1);
            channels = channels
                .merge(own)
                .ok_or_else(|| cx.fail(format!("all levels need as many channels, found {channels} and {own}")))?;
        }
        let (regions, side) = (cx.dim(0, 0), Dim::known(self.output_size));
        cx.set(0, ty, PartialShape::new([regions, channels, side, side]));
        cx.set(1, ty, PartialShape::new([regions, Dim::known(4)]));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.out_shape(0)?;
        let side = self.output_size as usize;
        let bins = Bins { height: side, width: side, sampling: self.sampling_ratio as usize };
        let mut out = zeros(&shape)?;
        {
            let rois = cx.get::<f32>(0)?;
            let layers = (1..cx.n_inputs()).map(|i| cx.get::<f32>(i)).collect::<Result<Vec<_>>>()?;
            let per_region = shape[1..].iter().product::<usize>().max(1);
            for (roi, out) in rois.chunks_exact(4).zip(out.as_slice_mut::<f32>()?.chunks_exact_mut(per_region)) {
                let Some(level) = level_of(roi, layers.len()) else { continue };
                let map = cx.shape(level + 1);
                let f = Features { data: &layers[level], channels: map[1], height: map[2], width: map[3] };
                pool_upright(&f, self.region(roi, self.pyramid_scales[level]), bins, PoolMode::Avg, out)?;
            }
        }
        let rois = cx.input(0).clone();
        put_f32(cx, 0, out)?;
        cx.set(1, rois)
    }
}

impl ExperimentalDetectronROIFeatureExtractor {
    /// The level of a region among so many, and `[x, y, width, height]` on its feature map; nothing for one without an area.
    pub fn on_level(&self, roi: &[f32], levels: usize) -> Option<(usize, [f32; 4])> {
        let level = level_of(roi, levels)?;
        let r = self.region(roi, *self.pyramid_scales.get(level)?);
        Some((level, [r.x, r.y, r.width, r.height]))
    }

    fn region(&self, roi: &[f32], pixels: i64) -> Region {
        let scale = 1.0 / pixels as f32;
        let at = |v: f32| v * scale - if self.aligned { 0.5 } else { 0.0 };
        let (x, y) = (at(roi[0]), at(roi[1]));
        Region { x, y, width: (at(roi[2]) - x).max(1.0), height: (at(roi[3]) - y).max(1.0) }
    }
}

/// A region of 224 pixels a side belongs to level 2; one without an area to none.
fn level_of(roi: &[f32], levels: usize) -> Option<usize> {
    let area = (roi[2] - roi[0]) * (roi[3] - roi[1]);
    if area.is_nan() || area <= 0.0 {
        return None;
    }
    let level = ((area.sqrt() / 224.0 + 1e-6).log2() + 2.0).floor();
    Some((level.max(0.0) as usize).min(levels - 1))
}
