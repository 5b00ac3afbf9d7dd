//! Samples at the points of a grid. Where a point lies and how much its neighbours weigh is found for a block of points at a
//! time, then used for all channels: of planes by gathering, of pixels that keep their channels side by side by whole vectors.

use super::blend::Blend;
use crate::simd::{Simd, dispatch};
use crate::{Exec, SharedMut, part_of};
use std::ops::Range;

/// How pixels are blended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleMode {
    /// One pixel, the even one of two equally near.
    Nearest,
    Bilinear,
    /// Sixteen neighbours, with -0.75 as the coefficient.
    Bicubic,
}

/// What lies beyond the border.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplePadding {
    Zeros,
    Border,
    Reflection,
}

/// Images of `[batch, channels, height, width]` read at `points` of each, given as `x, y` from -1 to 1. A pixel of no weight
/// is not read; a point that is no number or infinite gives NaN, but for the nearest pixel.
#[derive(Clone, Copy, Debug)]
pub struct GridSample {
    pub batch: usize,
    pub channels: usize,
    pub height: usize,
    pub width: usize,
    pub points: usize,
    pub mode: SampleMode,
    pub padding: SamplePadding,
    /// -1 and 1 are the centres of the corner pixels, not their outer edges.
    pub align_corners: bool,
}

/// Points of a block.
const BLOCK: usize = 128;
/// Pixels on an axis at most, and how far a point may lie outside to be counted in floats.
const FAR: f32 = 4_194_304.0;

impl GridSample {
    /// Whether images of this size can be done: positions in a plane are 32-bit numbers.
    pub fn fits(height: usize, width: usize) -> bool {
        let axis = 1..=FAR as usize;
        axis.contains(&height) && axis.contains(&width) && height * width <= i32::MAX as usize
    }

    /// Samples planes into planes.
    pub fn run_planes(&self, exec: &Exec<'_>, data: &[f32], grid: &[f32], out: &mut [f32]) {
        self.run(exec, data, grid, out, true);
    }

    /// Samples an image that lies channels last into one that does.
    pub fn run_pixels(&self, exec: &Exec<'_>, data: &[f32], grid: &[f32], out: &mut [f32]) {
        self.run(exec, data, grid, out, false);
    }

    fn run(&self, exec: &Exec<'_>, data: &[f32], grid: &[f32], out: &mut [f32], planes: bool) {
        let all = self.batch * self.points;
        if all * self.channels == 0 {
            return;
        }
        assert!(Self::fits(self.height, self.width), "images of {} x {}", self.height, self.width);
        let image = self.channels * self.height * self.width;
        assert!(data.len() >= self.batch * image, "{} numbers for images of {image}", data.len());
        assert!(grid.len() >= 2 * all, "{} coordinates of {all} points", grid.len());
        assert!(out.len() >= all * self.channels, "{} numbers for {all} points", out.len());
        let blocks = self.points.div_ceil(BLOCK);
        let total = self.batch * blocks;
        let chunks = if all * self.channels < 4 << 10 { 1 } else { (8 * exec.threads()).min(total) };
        let call = &Call { of: self, data, grid, out: SharedMut::new(out), planes };
        let isa = exec.isa;
        exec.each(chunks, |chunk, _| {
            let mine = part_of(total, chunks, chunk);
            // SAFETY: the lengths were checked above, and blocks are written by one chunk each.
            unsafe { dispatch!(isa, <'a, S> (call: &'a Call<'a>, mine: Range<usize>) { call.blocks::<S>(mine) }) }
        });
    }

    /// In pixels. Rounded after each step, so that halves fall where they do in the operation.
    #[inline(always)]
    fn position(&self, v: f32, size: f32) -> f32 {
        if self.align_corners { (v + 1.0) * (size - 1.0) / 2.0 } else { ((v + 1.0) * size - 1.0) / 2.0 }
    }

    /// The pixel at an index that may be far beyond the border.
    fn far_pixel(&self, at: i64, size: usize) -> Option<usize> {
        let n = size as i64;
        let inside = match self.padding {
            SamplePadding::Zeros => at,
            SamplePadding::Border => at.clamp(0, n - 1),
            SamplePadding::Reflection if self.align_corners => {
                let period = if n == 1 { 1 } else { 2 * (n - 1) };
                let at = at.unsigned_abs() as i64 % period;
                if at >= n { period - at } else { at }
            }
            SamplePadding::Reflection => {
                let at = at.rem_euclid(2 * n);
                if at >= n { 2 * n - 1 - at } else { at }
            }
        };
        usize::try_from(inside).ok().filter(|&i| i < size)
    }

    /// Neighbours of a point that is far outside or no number, on one axis.
    fn far<S: Simd, const T: usize>(&self, v: f32, size: usize, taps: &mut Axis<T>, p: usize) {
        let part = v - v.floor();
        let (base, undefined) = match T {
            1 => (v.round_ties_even() as i64, false),
            _ => (v.clamp(-1e15, 1e15).floor() as i64, part.is_nan()),
        };
        for (t, weights) in weights_of::<S, T>(S::splat(part)).into_iter().enumerate() {
            let mut weight = 0.0;
            // SAFETY: one float.
            unsafe { weights.store_partial(&mut weight, 1) };
            let at = base.saturating_add(t as i64 - i64::from(T == 4));
            let pixel = self.far_pixel(at, size);
            taps.at[t][p] = pixel.unwrap_or(0) as i32;
            taps.weight[t][p] = if pixel.is_some() || undefined { weight } else { 0.0 };
        }
    }
}

/// Neighbours on one axis of all points of a block.
#[repr(C, align(64))]
struct Axis<const T: usize> {
    at: [[i32; BLOCK]; T],
    weight: [[f32; BLOCK]; T],
}

struct Call<'a> {
    of: &'a GridSample,
    data: &'a [f32],
    grid: &'a [f32],
    out: SharedMut<'a, f32>,
    planes: bool,
}

impl Call<'_> {
    /// # Safety
    /// The slices hold what the sizes say, and this thread alone writes the blocks.
    #[inline(always)]
    unsafe fn blocks<S: Simd>(&self, blocks: Range<usize>) {
        // SAFETY: passed on.
        unsafe {
            match self.of.mode {
                SampleMode::Nearest => self.blocks_of::<S, 1>(blocks),
                SampleMode::Bilinear => self.blocks_of::<S, 2>(blocks),
                SampleMode::Bicubic => self.blocks_of::<S, 4>(blocks),
            }
        }
    }

    #[inline(always)]
    unsafe fn blocks_of<S: Simd, const T: usize>(&self, blocks: Range<usize>) {
        let of = self.of;
        let each = of.points.div_ceil(BLOCK);
        let mut positions = [[0.0; BLOCK]; 2];
        let mut rows = Axis::<T> { at: [[0; BLOCK]; T], weight: [[0.0; BLOCK]; T] };
        let mut columns = Axis::<T> { at: [[0; BLOCK]; T], weight: [[0.0; BLOCK]; T] };
        for block in blocks {
            let (image, first) = (block / each, block % each * BLOCK);
            let count = BLOCK.min(of.points - first);
            let grid = &self.grid[2 * (image * of.points + first)..][..2 * count];
            let [ys, xs] = &mut positions;
            let (height, width) = (of.height as f32, of.width as f32);
            for ((point, y), x) in grid.chunks_exact(2).zip(ys.iter_mut()).zip(xs.iter_mut()) {
                (*x, *y) = (of.position(point[0], width), of.position(point[1], height));
            }
            self.locate::<S, T>(ys, of.height, count, &mut rows);
            self.locate::<S, T>(xs, of.width, count, &mut columns);
            rows.at.as_flattened_mut().iter_mut().for_each(|at| *at *= of.width as i32);
            // SAFETY: passed on; all positions are inside of a plane.
            unsafe {
                match self.planes {
                    true => self.by_planes::<S, T>(&rows, &columns, image, first, count),
                    false => self.by_pixels::<S, T>(&rows, &columns, image, first, count),
                }
            }
        }
    }

    #[inline(always)]
    fn locate<S: Simd, const T: usize>(&self, positions: &[f32; BLOCK], size: usize, count: usize, taps: &mut Axis<T>) {
        let (zero, one) = (S::splat(0.0), S::splat(1.0));
        let mut lost = zero;
        for p in (0..count).step_by(S::N) {
            // SAFETY: vectors divide a block.
            let v = unsafe { S::load(positions.as_ptr().add(p)) };
            let near = v.abs().lt(S::splat(FAR));
            lost = lost + S::select(near, zero, one);
            let v = S::select(near, v, zero);
            let base = if T == 1 { v.round_even() } else { v.floor() };
            let weights = weights_of::<S, T>(v - base);
            for t in 0..T {
                let at = base + S::splat(t as f32 - if T == 4 { 1.0 } else { 0.0 });
                let (at, weight) = self.padded(at, weights[t], size);
                // SAFETY: as above.
                unsafe {
                    S::from_bits(at.to_int()).store(taps.at[t].as_mut_ptr().add(p).cast());
                    weight.store(taps.weight[t].as_mut_ptr().add(p));
                }
            }
        }
        if lost.reduce_add() > 0.0 {
            for (p, &v) in positions.iter().enumerate().take(count) {
                if v.is_nan() || v.abs() >= FAR {
                    self.of.far::<S, T>(v, size, taps, p);
                }
            }
        }
    }

    /// The pixel at an index, which is a whole number below `FAR` and a little, and its weight.
    #[inline(always)]
    fn padded<S: Simd>(&self, at: S, weight: S, size: usize) -> (S, S) {
        let n = size as f32;
        let (zero, last) = (S::splat(0.0), S::splat(n - 1.0));
        match self.of.padding {
            SamplePadding::Zeros => {
                let inside = S::mask_and(zero.le(at), at.le(last));
                (clamped(at, n - 1.0), S::select(inside, weight, zero))
            }
            SamplePadding::Border => (clamped(at, n - 1.0), weight),
            SamplePadding::Reflection => {
                let aligned = self.of.align_corners;
                let (at, period, mirror) = match aligned {
                    true if size == 1 => (at.abs(), 1.0, 1.0),
                    true => (at.abs(), 2.0 * (n - 1.0), 2.0 * (n - 1.0)),
                    false => (at, 2.0 * n, 2.0 * n - 1.0),
                };
                let period = S::splat(period);
                // The quotient may round to the next whole number.
                let rest = at - (at / period).floor() * period;
                let rest = S::select(rest.lt(zero), rest + period, rest);
                let rest = S::select(period.le(rest), rest - period, rest);
                let back = S::splat(mirror) - rest;
                (clamped(S::select(last.lt(rest), back, rest), n - 1.0), weight)
            }
        }
    }

    #[inline(always)]
    unsafe fn by_planes<S: Simd, const T: usize>(
        &self,
        rows: &Axis<T>,
        columns: &Axis<T>,
        image: usize,
        first: usize,
        count: usize,
    ) {
        let of = self.of;
        let plane = of.height * of.width;
        let zero = S::splat(0.0);
        // Only `T * T` of them are used.
        let (mut positions, mut weights) = ([S::int(0); 16], [zero; 16]);
        for p in (0..count).step_by(S::N) {
            let here = S::N.min(count - p);
            // SAFETY: vectors divide a block; positions lie in a plane, of which each channel has one; the points are this
            // thread's own.
            unsafe {
                for t in 0..T * T {
                    positions[t] = S::int_add(ints_at::<S>(&rows.at[t / T], p), ints_at::<S>(&columns.at[t % T], p));
                    weights[t] = floats_at::<S>(&rows.weight[t / T], p) * floats_at::<S>(&columns.weight[t % T], p);
                }
                for c in 0..of.channels {
                    let number = image * of.channels + c;
                    let from = self.data.as_ptr().add(number * plane);
                    let mut sum = zero;
                    for t in 0..T * T {
                        let pixels = S::gather(from, positions[t]);
                        let pixels = S::select(weights[t].equal(zero), zero, pixels);
                        sum = pixels.fma(weights[t], sum);
                    }
                    let to = self.out.as_ptr().add(number * of.points + first + p);
                    if here == S::N { sum.store(to) } else { sum.store_partial(to, here) }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn by_pixels<S: Simd, const T: usize>(
        &self,
        rows: &Axis<T>,
        columns: &Axis<T>,
        image: usize,
        first: usize,
        count: usize,
    ) {
        let of = self.of;
        let mut blend = Blend::new();
        let start = image * of.height * of.width;
        for p in 0..count {
            blend.clear();
            for t in 0..T * T {
                let weight = rows.weight[t / T][p] * columns.weight[t % T][p];
                if weight != 0.0 {
                    let pixel = start + (rows.at[t / T][p] + columns.at[t % T][p]) as usize;
                    blend.add(self.data.as_ptr().wrapping_add(pixel * of.channels), weight);
                }
            }
            let pixel = image * of.points + first + p;
            // SAFETY: all positions lie in the image; the pixel is this thread's own.
            unsafe { blend.write::<S>(0, 1.0, self.out.as_ptr().add(pixel * of.channels), of.channels) };
        }
    }
}

// Functions and no closures from here on: they must be inlined where they are compiled for their level.

/// Weights of the `T` neighbours around points this far behind one of them.
#[inline(always)]
fn weights_of<S: Simd, const T: usize>(part: S) -> [S; T] {
    let (one, two) = (S::splat(1.0), S::splat(2.0));
    let mut weights = [one; T];
    if T == 2 {
        weights[0] = one - part;
        weights[T - 1] = part;
    } else if T == 4 {
        weights[0] = cubic_far(part + one);
        weights[1 % T] = cubic_near(part);
        weights[2 % T] = cubic_near(one - part);
        weights[3 % T] = cubic_far(two - part);
    }
    weights
}

const A: f32 = -0.75;

#[inline(always)]
fn cubic_near<S: Simd>(d: S) -> S {
    d.fma(S::splat(A + 2.0), S::splat(-(A + 3.0))) * d * d + S::splat(1.0)
}

#[inline(always)]
fn cubic_far<S: Simd>(d: S) -> S {
    d.fma(S::splat(A), S::splat(-5.0 * A)).fma(d, S::splat(8.0 * A)).fma(d, S::splat(-4.0 * A))
}

#[inline(always)]
fn clamped<S: Simd>(at: S, last: f32) -> S {
    at.max(S::splat(0.0)).min(S::splat(last))
}

/// # Safety
/// A vector can be read from `p` on.
#[inline(always)]
unsafe fn floats_at<S: Simd>(list: &[f32; BLOCK], p: usize) -> S {
    // SAFETY: the caller's promise.
    unsafe { S::load(list.as_ptr().add(p)) }
}

/// # Safety
/// A vector can be read from `p` on.
#[inline(always)]
unsafe fn ints_at<S: Simd>(list: &[i32; BLOCK], p: usize) -> S::Int {
    // SAFETY: the caller's promise.
    unsafe { S::load(list.as_ptr().add(p).cast()).to_bits() }
}
