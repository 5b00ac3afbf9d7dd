//! GridSample of volumes: data `[N, C, D, H, W]` at points `[N, d, h, w, 3]` given as `x, y, z` in `-1..1`.

use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::arithmetic::FloorMod;
use carafe_ops::indexing::Gather;
use carafe_tensor::ElementType;

/// What lies beyond the border.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Border {
    Zeros,
    Nearest,
    Mirror,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct VolumeSample {
    pub align_corners: bool,
    /// Blends the eight pixels around a point; else takes the nearest one.
    pub linear: bool,
    pub border: Border,
}

/// A candidate on one axis: pixel, and its weight where it has one.
type Pixel = (Value, Option<Value>);

impl VolumeSample {
    pub(super) fn sample(&self, n: &mut NodeCx<'_>, x: Value, grid: Value) -> Result<Value> {
        let mut sizes = vec![];
        let mut candidates: Vec<Vec<Pixel>> = vec![];
        for axis in 0..3 {
            let size = n.length(x, axis + 2)?;
            let at = n.i64(2 - axis)?;
            let points = n.gather(grid, at, -1)?;
            let points = n.convert(points, ElementType::F32)?;
            let width = n.convert(size, ElementType::F32)?;
            candidates.push(self.pixels(n, points, width)?);
            sizes.push(size);
        }
        // Pixels of an image in a row, channels behind.
        let flat = n.transpose(x, &[0, 2, 3, 4, 1])?;
        let (batch, channels) = (n.size(x, 0)?, n.size(x, 1)?);
        let all = n.i64s(&[-1])?;
        let shape = n.concat(&[batch, all, channels], 0)?;
        let flat = n.reshaped(flat, shape, false)?;
        let mut total: Option<Value> = None;
        for &(z, wz) in &candidates[0] {
            for &(y, wy) in &candidates[1] {
                for &(x_at, wx) in &candidates[2] {
                    let row = n.times(z, sizes[1])?;
                    let row = n.plus(row, y)?;
                    let at = n.times(row, sizes[2])?;
                    let at = n.plus(at, x_at)?;
                    let axis = n.i64(1)?;
                    let mut part = n.emit(Gather { batch_dims: 1 }, &[flat, at, axis])?;
                    for weight in [wz, wy, wx].into_iter().flatten() {
                        let weight = n.unsqueeze(weight, &[-1])?;
                        let weight = n.convert_like(weight, x)?;
                        part = n.times(part, weight)?;
                    }
                    total = Some(match total {
                        Some(sum) => n.plus(sum, part)?,
                        None => part,
                    });
                }
            }
        }
        let y = total.ok_or_else(|| n.fail("there is nothing to sample"))?;
        n.transpose(y, &[0, 4, 1, 2, 3])
    }

    fn pixels(&self, n: &mut NodeCx<'_>, points: Value, size: Value) -> Result<Vec<Pixel>> {
        let mut at = n.plus_number(points, 1.0)?;
        let last = n.plus_number(size, -1.0)?;
        if self.align_corners {
            at = n.times_number(at, 0.5)?;
            at = n.times(at, last)?;
        } else {
            at = n.times(at, size)?;
            at = n.plus_number(at, -1.0)?;
            at = n.times_number(at, 0.5)?;
        }
        if !self.linear {
            at = n.round(at)?;
        }
        let at = match self.border {
            Border::Zeros => at,
            Border::Nearest => clip(n, at, last)?,
            Border::Mirror => self.mirrored(n, at, size)?,
        };
        if !self.linear {
            return Ok(vec![self.pixel(n, at, last, None)?]);
        }
        let low = n.floor(at)?;
        let high = n.plus_number(low, 1.0)?;
        let part = n.minus(at, low)?;
        let rest = n.sub_from(1.0, part)?;
        Ok(vec![self.pixel(n, low, last, Some(rest))?, self.pixel(n, high, last, Some(part))?])
    }

    // A pixel that exists; outside of the data the weight is zero under `Border::Zeros`.
    fn pixel(&self, n: &mut NodeCx<'_>, at: Value, last: Value, weight: Option<Value>) -> Result<Pixel> {
        let inside = clip(n, at, last)?;
        let index = n.convert(inside, ElementType::I64)?;
        if self.border != Border::Zeros {
            return Ok((index, weight));
        }
        let same = n.equal(inside, at)?;
        let one = n.scalar_like(at, 1.0)?;
        let zero = n.scalar_like(at, 0.0)?;
        let weight = n.choose(same, weight.unwrap_or(one), zero)?;
        Ok((index, Some(weight)))
    }

    // Back and forth between the borders: the centres of the outer pixels, or their edges.
    fn mirrored(&self, n: &mut NodeCx<'_>, at: Value, size: Value) -> Result<Value> {
        let edge = if self.align_corners { 0.0 } else { -0.5 };
        let span = if self.align_corners { n.plus_number(size, -1.0)? } else { size };
        let one = n.scalar_like(span, 1.0)?;
        let span = n.max(span, one)?;
        let round_trip = n.times_number(span, 2.0)?;
        let offset = n.plus_number(at, -edge)?;
        let offset = n.emit(FloorMod::default(), &[offset, round_trip])?;
        let back = n.minus(round_trip, offset)?;
        let offset = n.min(offset, back)?;
        n.plus_number(offset, edge)
    }
}

fn clip(n: &mut NodeCx<'_>, at: Value, last: Value) -> Result<Value> {
    let at = n.min(at, last)?;
    let zero = n.scalar_like(at, 0.0)?;
    n.max(at, zero)
}
