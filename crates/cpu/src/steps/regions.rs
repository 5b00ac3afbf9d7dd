//! Regions of feature maps pooled to a grid: ROIAlign, of one map or of a pyramid, and ROIPooling by maximum. Where the
//! regions lie is data.

use super::types::{indices, is_index};
use super::{Built, Cpu, Io, Port, Site, Step, Work, floats};
use carafe_graph::{Error, Result};
use carafe_kernels::movement::Indices;
use carafe_kernels::{RoiGrid, RoiMap, RoiMode, RoiRegion};
use carafe_ops::detection::roi_align::AlignedMode;
use carafe_ops::detection::roi_pooling::RoiMethod;
use carafe_ops::detection::{ExperimentalDetectronROIFeatureExtractor, PoolMode, ROIAlign, ROIPooling};
use carafe_plan::Layout;
use carafe_tensor::ElementType;
use std::sync::Arc;

/// Bins with more samples are refused, as by the operation itself.
const MOST_SAMPLES: usize = 1 << 20;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() {
        return Ok(None);
    }
    Ok(if let Some(op) = site.op.get::<ROIAlign>() {
        align(site, op.sampling_ratio, op.spatial_scale, op.mode, op.aligned_mode)
    } else if let Some(op) = site.op.get::<ROIPooling>() {
        pooling(site, op)
    } else if let Some(op) = site.op.get::<ExperimentalDetectronROIFeatureExtractor>() {
        pyramid(site, op)
    } else {
        None
    })
}

/// Sizes of the maps: images, height, width.
fn sizes(site: &Site<'_>) -> Option<(RoiGrid, [usize; 3])> {
    let (&[images, channels, height, width], &[_, _, rows, columns]) =
        (&site.inputs[0].shape[..], &site.outputs[0].shape[..])
    else {
        return None;
    };
    let float = site.inputs[..2].iter().all(|p| p.is_f32());
    float.then_some((RoiGrid { channels, bins: [rows, columns] }, [images, height, width]))
}

fn map<'a>(data: &'a [f32], grid: &RoiGrid, [_, height, width]: [usize; 3], image: usize) -> RoiMap<'a> {
    let size = height * width * grid.channels;
    RoiMap { data: &data[image * size..(image + 1) * size], height, width }
}

#[derive(Debug)]
struct Align {
    grid: RoiGrid,
    maps: [usize; 3],
    mode: RoiMode,
    sampling: usize,
    scale: f32,
    /// Added to coordinates before and after scaling.
    shift: [f32; 2],
    /// Least size of a region.
    least: f32,
    index: ElementType,
}

impl Align {
    fn region(&self, roi: &[f32]) -> RoiRegion {
        let at = |v: f32| (v + self.shift[0]) * self.scale + self.shift[1];
        let (x1, y1, x2, y2) = (at(roi[0]), at(roi[1]), at(roi[2]), at(roi[3]));
        let size = [(y2 - y1).max(self.least), (x2 - x1).max(self.least)];
        let bin = [size[0] / self.grid.bins[0] as f32, size[1] / self.grid.bins[1] as f32];
        RoiRegion { start: [y1, x1], bin, samples: samples(bin, self.sampling) }
    }
}

// Samples of a bin a side, one a pixel where nothing is said. A negative or undefined size casts to 0.
fn samples(bin: [f32; 2], sampling: usize) -> [usize; 2] {
    bin.map(|bin| if sampling > 0 { sampling } else { bin.ceil() as usize })
}

fn check_samples(region: &RoiRegion) -> Result<()> {
    let [ny, nx] = region.samples;
    match nx.max(1).saturating_mul(ny.max(1)) > MOST_SAMPLES {
        true => Err(Error::invalid(format!("a region needs more than {MOST_SAMPLES} samples a bin"))),
        false => Ok(()),
    }
}

impl Step<Cpu> for Align {
    fn kernel(&self) -> String {
        "roi_align".into()
    }
    fn scratch_bytes(&self) -> usize {
        floats(RoiGrid::scratch_floats(self.maps[1], self.maps[2]))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let list = indices(io, 2, self.index);
        let (out, io) = io.take_output(0);
        let (data, rois) = (io.input::<f32>(0), io.input::<f32>(1));
        let image = |i: usize| match list {
            Indices::I32(list) => i64::from(list[i]),
            Indices::I64(list) => list[i],
        };
        for (i, roi) in rois.chunks_exact(4).enumerate() {
            check_image(image(i), self.maps[0])?;
            check_samples(&self.region(roi))?;
        }
        let region = |i: usize| {
            let map = map(data, &self.grid, self.maps, image(i) as usize);
            Some((map, self.region(&rois[4 * i..4 * i + 4])))
        };
        self.grid.align(io.exec, self.mode, region, out);
        Ok(())
    }
}

fn check_image(index: i64, images: usize) -> Result<()> {
    match usize::try_from(index).is_ok_and(|i| i < images) {
        true => Ok(()),
        false => Err(Error::invalid(format!("a region names image {index}, there are {images}"))),
    }
}

fn align(site: &Site<'_>, sampling: i64, scale: f32, mode: PoolMode, aligned: AlignedMode) -> Option<Built> {
    let (grid, maps) = sizes(site)?;
    let index = site.inputs[2].ty;
    if !is_index(index) {
        return None;
    }
    let step = Align {
        grid,
        maps,
        mode: if mode == PoolMode::Max { RoiMode::Max } else { RoiMode::Average },
        sampling: usize::try_from(sampling).ok()?,
        scale,
        shift: match aligned {
            AlignedMode::Asymmetric => [0.0, 0.0],
            AlignedMode::HalfPixelForNn => [0.0, -0.5],
            AlignedMode::HalfPixel => [0.5, -0.5],
        },
        least: if aligned == AlignedMode::Asymmetric { 1.0 } else { f32::NEG_INFINITY },
        index,
    };
    let reads = vec![(0, Layout::CHANNELS_LAST), (1, Layout::PLAIN), (2, Layout::PLAIN)];
    Some(Built::step(step, reads, Layout::CHANNELS_LAST))
}

/// ROIAlign over a feature pyramid.
#[derive(Debug)]
struct Pyramid {
    op: ExperimentalDetectronROIFeatureExtractor,
    grid: RoiGrid,
    /// Height and width of each level.
    levels: Vec<[usize; 2]>,
}

impl Pyramid {
    fn region(&self, roi: &[f32]) -> Option<(usize, RoiRegion)> {
        let (level, [x, y, width, height]) = self.op.on_level(roi, self.levels.len())?;
        let bin = [height / self.grid.bins[0] as f32, width / self.grid.bins[1] as f32];
        Some((level, RoiRegion { start: [y, x], bin, samples: samples(bin, self.op.sampling_ratio as usize) }))
    }
}

impl Step<Cpu> for Pyramid {
    fn kernel(&self) -> String {
        "roi_align_pyramid".into()
    }
    fn scratch_bytes(&self) -> usize {
        floats(self.levels.iter().map(|&[h, w]| RoiGrid::scratch_floats(h, w)).max().unwrap_or(0))
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let rois = io.input::<f32>(0);
        rois.chunks_exact(4).filter_map(|roi| self.region(roi)).try_for_each(|(_, r)| check_samples(&r))?;
        let region = |i: usize| {
            let (level, region) = self.region(&rois[4 * i..4 * i + 4])?;
            let [height, width] = self.levels[level];
            Some((RoiMap { data: bytemuck::cast_slice(io.inputs[level + 1]), height, width }, region))
        };
        let [features, copied] = &mut *io.outputs else { return Ok(()) };
        self.grid.align(io.exec, RoiMode::Average, region, bytemuck::cast_slice_mut(features));
        copied.copy_from_slice(io.inputs[0]);
        Ok(())
    }
}

fn pyramid(site: &Site<'_>, op: &ExperimentalDetectronROIFeatureExtractor) -> Option<Built> {
    let &[_, channels, rows, columns] = &site.outputs[0].shape[..] else { return None };
    let level = |p: &Port| match p.shape[..] {
        [1, c, height, width] if c == channels && p.is_f32() => Some([height, width]),
        _ => None,
    };
    let levels = site.inputs[1..].iter().map(level).collect::<Option<Vec<_>>>()?;
    if !site.inputs[0].is_f32() || site.outputs.len() != 2 {
        return None;
    }
    let reads = (0..site.inputs.len()).map(|i| (i, if i == 0 { Layout::PLAIN } else { Layout::CHANNELS_LAST }));
    let step = Pyramid { op: op.clone(), grid: RoiGrid { channels, bins: [rows, columns] }, levels };
    let outputs = vec![Layout::CHANNELS_LAST, Layout::PLAIN];
    Some(Built::new(Work::Step(Arc::new(step)), reads, outputs))
}

/// ROIPooling by maximum; a region of image -1 ends the list.
#[derive(Debug)]
struct Pooling {
    grid: RoiGrid,
    maps: [usize; 3],
    scale: f32,
}

impl Step<Cpu> for Pooling {
    fn kernel(&self) -> String {
        "roi_pooling".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let (out, io) = io.take_output(0);
        let (data, rois) = (io.input::<f32>(0), io.input::<f32>(1));
        let end = rois.chunks_exact(5).position(|roi| roi[0] == -1.0).unwrap_or(usize::MAX);
        rois.chunks_exact(5).take(end).try_for_each(|roi| check_image(roi[0] as i64, self.maps[0]))?;
        let region = |i: usize| {
            let roi = rois.get(5 * i..5 * i + 5).filter(|_| i < end)?;
            let map = map(data, &self.grid, self.maps, roi[0] as usize);
            let axes = [(roi[2], roi[4], map.height), (roi[1], roi[3], map.width)];
            let bins = self.grid.bins;
            let bounds = move |axis: usize, bin: usize| {
                let (from, to, size) = axes[axis];
                // Far outside of any feature map, and far from overflow.
                let pixel = |v: f32| (v * self.scale).round().clamp(-1e9, 1e9) as i64;
                let (start, end) = (pixel(from), pixel(to));
                let each = (end - start + 1).max(1) as f32 / bins[axis] as f32;
                let low = (bin as f32 * each).floor() as i64 + start;
                let high = ((bin + 1) as f32 * each).ceil() as i64 + start;
                [low, high].map(|v| v.clamp(0, size as i64) as usize)
            };
            Some((map, bounds))
        };
        self.grid.maximum(io.exec, region, out);
        Ok(())
    }
}

fn pooling(site: &Site<'_>, op: &ROIPooling) -> Option<Built> {
    let (grid, maps) = sizes(site).filter(|_| op.method == RoiMethod::Max)?;
    let step = Pooling { grid, maps, scale: op.spatial_scale };
    Some(Built::step(step, vec![(0, Layout::CHANNELS_LAST), (1, Layout::PLAIN)], Layout::CHANNELS_LAST))
}
