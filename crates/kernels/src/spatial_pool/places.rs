//! The largest number of every window and where it stands, over planes. A window without a number above the least one gives
//! that and the first place of its plane.

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

/// A place as it is stored.
trait PlaceNumber: Copy + Send + Sync + 'static {
    fn of(place: usize) -> Self;
}
impl PlaceNumber for i32 {
    #[inline(always)]
    fn of(place: usize) -> i32 {
        place as i32
    }
}
impl PlaceNumber for i64 {
    #[inline(always)]
    fn of(place: usize) -> i64 {
        place as i64
    }
}

/// Bound to its sizes.
#[derive(Clone, Copy, Debug)]
pub struct MaxPlaces {
    shape: PoolShape,
    /// Places are counted up to here and then from 0 again.
    counted: usize,
}

/// Windows of a row that are done together.
const BLOCK: usize = 64;

impl MaxPlaces {
    /// Whether planes of this size can be done.
    pub fn fits(in_spatial: [usize; 3]) -> bool {
        in_spatial.iter().try_fold(1usize, |n, s| n.checked_mul(*s)).is_some_and(|n| n <= i32::MAX as usize)
    }

    pub fn new(shape: PoolShape, counted: usize) -> MaxPlaces {
        assert!(Self::fits(shape.in_spatial) && counted > 0, "planes of {:?}", shape.in_spatial);
        assert!(shape.stride.iter().all(|s| *s > 0), "steps of nothing: {shape:?}");
        MaxPlaces { shape, counted }
    }

    /// From planes to planes, and their places.
    pub fn run(&self, exec: &Exec<'_>, input: &[f32], out: &mut [f32], places: Places<'_>) {
        match places {
            Places::I32(places) => self.run_as(exec, input, out, places),
            Places::I64(places) => self.run_as(exec, input, out, places),
        }
    }

    fn run_as<I: PlaceNumber>(&self, exec: &Exec<'_>, input: &[f32], out: &mut [f32], places: &mut [I]) {
        let s = &self.shape;
        let planes = s.batch * s.channels;
        let [depth, height, width] = s.out_spatial;
        let rows = planes * depth * height;
        if rows * width == 0 {
            return;
        }
        assert!(input.len() >= planes * s.in_spatial.iter().product::<usize>(), "{} numbers", input.len());
        assert!(out.len() >= rows * width && places.len() >= rows * width, "{} results", out.len().min(places.len()));
        let chunks = if input.len() < 4 << 10 { 1 } else { (8 * exec.threads()).min(rows) };
        let (out, places, isa) = (SharedMut::new(out), SharedMut::new(places), exec.isa);
        exec.each(chunks, |chunk, _| {
            let mine = part_of(rows, chunks, chunk);
            let part = mine.start * width..mine.end * width;
            // SAFETY: each row is written by one chunk.
            let (out, places) = unsafe { (out.part(part.clone()), places.part(part)) };
            let this = self;
            // SAFETY: the body is safe code; its level is there.
            unsafe {
                dispatch!(isa, <'a, _S, I: PlaceNumber>
                    (this: &'a MaxPlaces, input: &'a [f32], mine: Range<usize>, out: &'a mut [f32], places: &'a mut [I]) {
                    this.rows(input, mine, out, places)
                })
            }
        });
    }

    #[inline(always)]
    fn rows<I: PlaceNumber>(&self, input: &[f32], rows: Range<usize>, out: &mut [f32], places: &mut [I]) {
        let s = &self.shape;
        let ([depth, height, width], [_, in_h, in_w]) = (s.out_spatial, s.in_spatial);
        let plane: usize = s.in_spatial.iter().product();
        let mut best = [f32::MIN; BLOCK];
        let mut at = [0i32; BLOCK];
        for ((row, out), places) in rows.zip(out.chunks_exact_mut(width)).zip(places.chunks_exact_mut(width)) {
            let (image, z, y) = (row / (depth * height), row / height % depth, row % height);
            let pixels = &input[image * plane..(image + 1) * plane];
            for (block, (out, places)) in out.chunks_mut(BLOCK).zip(places.chunks_mut(BLOCK)).enumerate() {
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
                for (i, (out, place)) in out.iter_mut().zip(places).enumerate() {
                    *out = best[i];
                    let found = first + at[i] as usize;
                    *place = I::of(if found < self.counted { found } else { found % self.counted });
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

    /// One tap of the windows from `first` on, whose row of pixels starts at place `start`.
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
        let (place, step) = ((start + x) as i32, stride as i32);
        let last = best.len() - 1;
        // All windows but the last have a whole step behind them.
        match stride {
            1 => {
                for (i, ((best, at), v)) in best.iter_mut().zip(&mut *at).zip(pixels).enumerate() {
                    larger(*v, place + i as i32, best, at);
                }
            }
            2 => {
                let pairs = pixels.chunks_exact(2);
                for (i, ((best, at), v)) in best[..last].iter_mut().zip(&mut *at).zip(pairs).enumerate() {
                    larger(v[0], place + 2 * i as i32, best, at);
                }
                larger(pixels[2 * last], place + 2 * last as i32, &mut best[last], &mut at[last]);
            }
            _ => {
                let each = pixels.iter().step_by(stride);
                for (i, ((best, at), v)) in best.iter_mut().zip(&mut *at).zip(each).enumerate() {
                    larger(*v, place + step * i as i32, best, at);
                }
            }
        }
    }
}

#[inline(always)]
fn larger(v: f32, place: i32, best: &mut f32, at: &mut i32) {
    let more = v > *best;
    *best = if more { v } else { *best };
    *at = if more { place } else { *at };
}
