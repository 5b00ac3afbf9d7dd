//! The largest number of every window and where it stands, over planes. A window without a number above the least one gives
//! that and the first position of its plane.

use super::PoolShape;
use crate::simd::dispatch;
use crate::{Exec, SharedMut, part_of};
use std::ops::Range;

/// Places as they are stored.
#[derive(Debug)]
pub enum Places<'a> {
    I32(&'a mut [i32]),
    I64(&'a mut [i64]),
}

/// A position as it is stored.
trait PositionNumber: Copy + Send + Sync + 'static {
    fn of(position: usize) -> Self;
}
impl PositionNumber for i32 {
    #[inline(always)]
    fn of(position: usize) -> i32 {
        position as i32
    }
}
impl PositionNumber for i64 {
    #[inline(always)]
    fn of(position: usize) -> i64 {
        position as i64
    }
}

/// Bound to its sizes.
#[derive(Clone, Copy, Debug)]
pub struct MaxPositions {
    shape: PoolShape,
    /// Places are counted up to here and then from 0 again.
    counted: usize,
}

/// Windows of a row that are done together.
const BLOCK: usize = 64;

impl MaxPositions {
    /// Whether planes of this size can be done.
    pub fn fits(in_spatial: [usize; 3]) -> bool {
        in_spatial.iter().try_fold(1usize, |n, s| n.checked_mul(*s)).is_some_and(|n| n <= i32::MAX as usize)
    }

    pub fn new(shape: PoolShape, counted: usize) -> MaxPositions {
        assert!(Self::fits(shape.in_spatial) && counted > 0, "planes of {:?}", shape.in_spatial);
        assert!(shape.stride.iter().all(|s| *s > 0), "steps of nothing: {shape:?}");
        MaxPositions { shape, counted }
    }

    /// From planes to planes, and their positions.
    pub fn run(&self, exec: &Exec<'_>, input: &[f32], out: &mut [f32], positions: Places<'_>) {
        match positions {
            Places::I32(positions) => self.run_as(exec, input, out, positions),
            Places::I64(positions) => self.run_as(exec, input, out, positions),
        }
    }

    fn run_as<I: PositionNumber>(&self, exec: &Exec<'_>, input: &[f32], out: &mut [f32], positions: &mut [I]) {
        let s = &self.shape;
        let planes = s.batch * s.channels;
        let [depth, height, width] = s.out_spatial;
        let rows = planes * depth * height;
        if rows * width == 0 {
            return;
        }
        assert!(input.len() >= planes * s.in_spatial.iter().product::<usize>(), "{} numbers", input.len());
        assert!(
            out.len() >= rows * width && positions.len() >= rows * width,
            "{} results",
            out.len().min(positions.len())
        );
        let chunks = if input.len() < 4 << 10 { 1 } else { (8 * exec.threads()).min(rows) };
        let (out, positions, isa) = (SharedMut::new(out), SharedMut::new(positions), exec.isa);
        exec.each(chunks, |chunk, _| {
            let mine = part_of(rows, chunks, chunk);
            let part = mine.start * width..mine.end * width;
            // SAFETY: each row is written by one chunk.
            let (out, positions) = unsafe { (out.part(part.clone()), positions.part(part)) };
            let this = self;
            // SAFETY: the body is safe code; its level is there.
            unsafe {
                dispatch!(isa, <'a, _S, I: PositionNumber>
                    (this: &'a MaxPositions, input: &'a [f32], mine: Range<usize>, out: &'a mut [f32], positions: &'a mut [I]) {
                    this.rows(input, mine, out, positions)
                })
            }
        });
    }

    #[inline(always)]
    fn rows<I: PositionNumber>(&self, input: &[f32], rows: Range<usize>, out: &mut [f32], positions: &mut [I]) {
        let s = &self.shape;
        let ([depth, height, width], [_, in_h, in_w]) = (s.out_spatial, s.in_spatial);
        let plane: usize = s.in_spatial.iter().product();
        let mut best = [f32::MIN; BLOCK];
        let mut at = [0i32; BLOCK];
        for ((row, out), positions) in rows.zip(out.chunks_exact_mut(width)).zip(positions.chunks_exact_mut(width)) {
            let (image, z, y) = (row / (depth * height), row / height % depth, row % height);
            let pixels = &input[image * plane..(image + 1) * plane];
            for (block, (out, positions)) in out.chunks_mut(BLOCK).zip(positions.chunks_mut(BLOCK)).enumerate() {
                let count = out.len();
                let (best, at) = (&mut best[..count], &mut at[..count]);
                best.fill(f32::MIN);
                at.fill(0);
                for kz in 0..s.kernel[0] {
                    let Some(iz) = self.inside(0, z, kz) else { continue };
                    for ky in 0..s.kernel[1] {
                        let Some(iy) = self.inside(1, y, ky) else { continue };
                        let line = (iz * in_h + iy) * in_w;
                        for kx in 0..s.kernel[2] {
                            self.compare(&pixels[line..line + in_w], line, block * BLOCK, kx, best, at);
                        }
                    }
                }
                let first = image * plane % self.counted;
                for (i, (out, position)) in out.iter_mut().zip(positions).enumerate() {
                    *out = best[i];
                    let found = first + at[i] as usize;
                    *position = I::of(if found < self.counted { found } else { found % self.counted });
                }
            }
        }
    }

    #[inline(always)]
    fn inside(&self, axis: usize, o: usize, k: usize) -> Option<usize> {
        let s = &self.shape;
        let at = (o * s.stride[axis] + k * s.dilation[axis]).checked_sub(s.pad_begin[axis])?;
        (at < s.in_spatial[axis]).then_some(at)
    }

    /// One tap of the windows from `first` on, whose row of pixels starts at position `start`.
    #[inline(always)]
    fn compare(&self, pixels: &[f32], start: usize, first: usize, kx: usize, best: &mut [f32], at: &mut [i32]) {
        let s = &self.shape;
        let (stride, ahead, pad) = (s.stride[2], kx * s.dilation[2], s.pad_begin[2]);
        // The first window of the block whose tap is inside, and the end of those.
        let from = pad.saturating_sub(ahead).div_ceil(stride).max(first);
        let end = (pixels.len() + pad).saturating_sub(ahead).div_ceil(stride).min(first + best.len());
        if from >= end {
            return;
        }
        let x = from * stride + ahead - pad;
        let (best, at) = (&mut best[from - first..end - first], &mut at[from - first..end - first]);
        let pixels = &pixels[x..];
        let (position, step) = ((start + x) as i32, stride as i32);
        let last = best.len() - 1;
        // All windows but the last have a whole step behind them.
        match stride {
            1 => {
                for (i, ((best, at), v)) in best.iter_mut().zip(&mut *at).zip(pixels).enumerate() {
                    larger(*v, position + i as i32, best, at);
                }
            }
            2 => {
                let pairs = pixels.chunks_exact(2);
                for (i, ((best, at), v)) in best[..last].iter_mut().zip(&mut *at).zip(pairs).enumerate() {
                    larger(v[0], position + 2 * i as i32, best, at);
                }
                larger(pixels[2 * last], position + 2 * last as i32, &mut best[last], &mut at[last]);
            }
            _ => {
                let each = pixels.iter().step_by(stride);
                for (i, ((best, at), v)) in best.iter_mut().zip(&mut *at).zip(each).enumerate() {
                    larger(*v, position + step * i as i32, best, at);
                }
            }
        }
    }
}

#[inline(always)]
fn larger(v: f32, position: i32, best: &mut f32, at: &mut i32) {
    let more = v > *best;
    *best = if more { v } else { *best };
    *at = if more { position } else { *at };
}
