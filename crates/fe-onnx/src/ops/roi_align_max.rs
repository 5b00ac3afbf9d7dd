//! RoiAlign with `mode` = `max`. ONNX takes the largest of the four weighted neighbours of every sample, where our ROIAlign
//! blends them first, so this one is composed. How many samples a bin has may differ from region to region; the grid is
//! as fine as the finest, and the samples a region does not have count for nothing.

use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::Gather;
use carafe_ops::reduce::ReduceMax;
use carafe_tensor::ElementType;

pub(super) struct RoiAlignMax {
    pub pooled: [i64; 2],
    /// Samples of a bin along each axis; 0 lets the size of the region decide.
    pub sampling_ratio: i64,
    pub spatial_scale: f64,
    pub half_pixel: bool,
}

/// One axis of all regions; every value is `[regions, bins, samples]`.
struct Samples {
    low: Value,
    high: Value,
    low_weight: Value,
    high_weight: Value,
    /// Whether the region has this sample.
    there: Value,
}

impl RoiAlignMax {
    pub(super) fn emit(&self, n: &mut NodeCx<'_>, x: Value, rois: Value, images: Value) -> Result<Value> {
        let rois = n.convert(rois, ElementType::F32)?;
        let mut corners = n.times_number(rois, self.spatial_scale)?;
        if self.half_pixel {
            corners = n.plus_number(corners, -0.5)?;
        }
        let rows = self.samples(n, corners, x, 0)?;
        let columns = self.samples(n, corners, x, 1)?;
        // [regions, rows of bins, columns of bins, samples down, samples across].
        let down = |n: &mut NodeCx<'_>, v: Value| n.unsqueeze(v, &[2, 4]);
        let across = |n: &mut NodeCx<'_>, v: Value| n.unsqueeze(v, &[1, 3]);

        let flat = n.transpose(x, &[0, 2, 3, 1])?;
        let (batch, channels) = (n.size(x, 0)?, n.size(x, 1)?);
        let all = n.i64s(&[-1])?;
        let shape = n.concat(&[batch, all, channels], 0)?;
        let flat = n.reshaped(flat, shape, false)?;
        let flat = n.gather(flat, images, 0)?;
        let width = n.length(x, 3)?;

        let mut best: Option<Value> = None;
        for (y, y_weight) in [(rows.low, rows.low_weight), (rows.high, rows.high_weight)] {
            for (x_at, x_weight) in [(columns.low, columns.low_weight), (columns.high, columns.high_weight)] {
                let y = n.times(y, width)?;
                let (y, x_at) = (down(n, y)?, across(n, x_at)?);
                let at = n.plus(y, x_at)?;
                let axis = n.i64(1)?;
                let pixel = n.emit(Gather { batch_dims: 1 }, &[flat, at, axis])?;
                let (y_weight, x_weight) = (down(n, y_weight)?, across(n, x_weight)?);
                let weight = n.times(y_weight, x_weight)?;
                let weight = n.unsqueeze(weight, &[-1])?;
                let weight = n.convert_like(weight, x)?;
                let value = n.times(pixel, weight)?;
                best = Some(match best {
                    Some(best) => n.max(best, value)?,
                    None => value,
                });
            }
        }
        let best = best.ok_or_else(|| n.fail("there is nothing to sample"))?;
        let (y_there, x_there) = (down(n, rows.there)?, across(n, columns.there)?);
        let there = n.and(y_there, x_there)?;
        let there = n.unsqueeze(there, &[-1])?;
        let lowest = n.scalar_like(best, if n.ty(x) == ElementType::F16 { -65504.0 } else { f64::from(f32::MIN) })?;
        let best = n.choose(there, best, lowest)?;
        let axes = n.i64s(&[3, 4])?;
        let best = n.emit(ReduceMax { keep_dims: false }, &[best, axes])?;
        // A region without samples.
        let found = n.greater(best, lowest)?;
        let zero = n.scalar_like(best, 0.0)?;
        let best = n.choose(found, best, zero)?;
        n.transpose(best, &[0, 3, 1, 2])
    }

    // Along the rows (axis 0) or the columns (axis 1) of the image.
    fn samples(&self, n: &mut NodeCx<'_>, corners: Value, x: Value, axis: usize) -> Result<Samples> {
        let at = |n: &mut NodeCx<'_>, i: i64| -> Result<Value> {
            let v = n.part(corners, i, i + 1, 1)?;
            n.unsqueeze(v, &[2])
        };
        let (start, stop) = (at(n, 1 - axis as i64)?, at(n, 3 - axis as i64)?);
        let mut length = n.minus(stop, start)?;
        if !self.half_pixel {
            let one = n.scalar_like(length, 1.0)?;
            length = n.max(length, one)?;
        }
        let bin = n.over_number(length, self.pooled[axis] as f64)?;
        let (own, most) = match self.sampling_ratio {
            0 => {
                let own = n.ceiling(bin)?;
                let axes = n.i64s(&[0, 1, 2])?;
                let most = n.emit(ReduceMax { keep_dims: false }, &[own, axes])?;
                let one = n.scalar_like(most, 1.0)?;
                let most = n.max(most, one)?;
                (own, n.convert(most, ElementType::I64)?)
            }
            ratio => {
                let none = n.minus(bin, bin)?;
                (n.plus_number(none, ratio as f64)?, n.i64(ratio)?)
            }
        };
        let step = n.count_to(most, ElementType::F32)?;
        let there = n.less(step, own)?;
        let one = n.scalar_like(bin, 1.0)?;
        let divisor = n.max(own, one)?;
        let within = n.plus_number(step, 0.5)?;
        let within = n.times(within, bin)?;
        let within = n.over(within, divisor)?;
        let bins: Vec<f64> = (0..self.pooled[axis]).map(|b| b as f64).collect();
        let bins = n.constant(carafe_tensor::Tensor::from_f64(ElementType::F32, &[1, bins.len(), 1], &bins)?)?;
        let offset = n.times(bins, bin)?;
        let begin = n.plus(start, offset)?;
        let position = n.plus(begin, within)?;

        let size = n.length(x, 2 + axis as i64)?;
        let size = n.convert(size, ElementType::F32)?;
        let last = n.plus_number(size, -1.0)?;
        let before = n.scalar_like(position, -1.0)?;
        let (not_before, not_behind) = (n.less_equal(before, position)?, n.less_equal(position, size)?);
        let inside = n.and(not_before, not_behind)?;
        let zero = n.scalar_like(position, 0.0)?;
        let position = n.max(position, zero)?;
        let position = n.min(position, last)?;
        let low = n.floor(position)?;
        let high = n.plus_number(low, 1.0)?;
        let high = n.min(high, last)?;
        let part = n.minus(position, low)?;
        let rest = n.sub_from(1.0, part)?;
        Ok(Samples {
            low: n.convert(low, ElementType::I64)?,
            high: n.convert(high, ElementType::I64)?,
            low_weight: n.choose(inside, rest, zero)?,
            high_weight: n.choose(inside, part, zero)?,
            there,
        })
    }
}
