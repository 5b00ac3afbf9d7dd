//! Regions of an image pooled to a fixed grid of bins, from bilinear samples or from whole pixels. Channels lie last, so all
//! of them are done side by side; the samples of a bin that share a pixel are added up before it is read.

use crate::simd::dispatch;
use crate::{Exec, Isa, SharedMut, part_of};

/// The grid that regions are pooled to.
#[derive(Clone, Copy, Debug)]
pub struct RoiGrid {
    pub channels: usize,
    /// Bins of a column and of a row.
    pub bins: [usize; 2],
}

/// One image: rows of pixels of `channels` numbers.
#[derive(Clone, Copy, Debug)]
pub struct RoiMap<'a> {
    pub data: &'a [f32],
    pub height: usize,
    pub width: usize,
}

/// A region in coordinates of the map: where it starts, how large a bin is, and how many samples a bin has a side. All
/// pairs are of the vertical axis and the horizontal one.
#[derive(Clone, Copy, Debug)]
pub struct RoiRegion {
    pub start: [f32; 2],
    pub bin: [f32; 2],
    pub samples: [usize; 2],
}

/// How the samples of a bin become one number. Samples more than a pixel outside count as zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoiMode {
    Average,
    /// Never below zero.
    Max,
}

/// Two neighbours on an axis and the part that the second has.
#[derive(Clone, Copy)]
struct Tap {
    low: usize,
    high: usize,
    to_high: f32,
}

impl RoiGrid {
    /// Floats that each thread needs of scratch for maps of at most this size.
    pub fn scratch_floats(height: usize, width: usize) -> usize {
        height + width
    }

    /// Pools bilinear samples. `region(i)` gives map and region of number `i`, or nothing for zeros; `out` is
    /// `[regions, bins, bins, channels]`.
    pub fn align<'a>(
        &self,
        exec: &Exec<'_>,
        mode: RoiMode,
        region: impl Fn(usize) -> Option<(RoiMap<'a>, RoiRegion)> + Sync,
        out: &mut [f32],
    ) {
        self.each_row(exec, out, |i, row, thread, out| {
            let Some((map, region)) = region(i) else { return out.fill(0.0) };
            assert!(map.data.len() >= map.height * map.width * self.channels, "numbers of the map");
            let mut scratch = exec.scratch.of(thread);
            let needed = Self::scratch_floats(map.height, map.width);
            assert!(scratch.len() >= needed, "scratch for {} x {}", map.height, map.width);
            let job = Line { map, region, row, channels: self.channels, mode };
            align_line(exec.isa, &job, &mut scratch[..needed], out);
        });
    }

    /// The largest number of all pixels of a bin. `region(i)` gives the map and for a bin on each axis its pixels; a bin
    /// without any is zero, and so is all of a region that is nothing.
    pub fn maximum<'a, B: Fn(usize, usize) -> [usize; 2]>(
        &self,
        exec: &Exec<'_>,
        region: impl Fn(usize) -> Option<(RoiMap<'a>, B)> + Sync,
        out: &mut [f32],
    ) {
        self.each_row(exec, out, |i, row, _, out| {
            let Some((map, bounds)) = region(i) else { return out.fill(0.0) };
            let [top, bottom] = bounds(0, row);
            assert!(bottom <= map.height, "rows of a bin");
            for (column, out) in out.chunks_exact_mut(self.channels).enumerate() {
                let [left, right] = bounds(1, column);
                assert!(right <= map.width, "columns of a bin");
                if top >= bottom || left >= right {
                    out.fill(0.0);
                    continue;
                }
                let pixels = |y: usize| {
                    let at = |x: usize| (y * map.width + x) * self.channels;
                    &map.data[at(left)..at(right)]
                };
                largest(exec.isa, (top..bottom).map(pixels), out);
            }
        });
    }

    // Calls `work(region, row of bins, thread, output)` for all rows.
    fn each_row(&self, exec: &Exec<'_>, out: &mut [f32], work: impl Fn(usize, usize, usize, &mut [f32]) + Sync) {
        let line = self.bins[1] * self.channels;
        if line == 0 || out.is_empty() {
            return;
        }
        assert!(out.len().is_multiple_of(self.bins[0] * line), "{} numbers are no grids of {self:?}", out.len());
        let rows = out.len() / line;
        let chunks = if out.len() < 4 << 10 { 1 } else { (8 * exec.threads()).min(rows) };
        let out = SharedMut::new(out);
        exec.each(chunks, |chunk, thread| {
            for row in part_of(rows, chunks, chunk) {
                // SAFETY: each row is written by one chunk.
                let to = unsafe { out.part(row * line..(row + 1) * line) };
                work(row / self.bins[0], row % self.bins[0], thread, to);
            }
        });
    }
}

/// One row of bins of a region.
struct Line<'a> {
    map: RoiMap<'a>,
    region: RoiRegion,
    row: usize,
    channels: usize,
    mode: RoiMode,
}

impl Line<'_> {
    // Sample `i` of bin `bin`, if it falls on the map.
    #[inline(always)]
    fn tap(&self, axis: usize, bin: usize, i: usize) -> Option<Tap> {
        let (r, size) = (&self.region, [self.map.height, self.map.width][axis]);
        let step = r.bin[axis] / r.samples[axis] as f32;
        let at = r.start[axis] + bin as f32 * r.bin[axis] + step * (i as f32 + 0.5);
        if size == 0 || !(-1.0..=size as f32).contains(&at) {
            return None;
        }
        let at = at.max(0.0);
        let low = at as usize;
        if low >= size - 1 {
            return Some(Tap { low: size - 1, high: size - 1, to_high: 0.0 });
        }
        Some(Tap { low, high: low + 1, to_high: at - low as f32 })
    }

    // What all samples of a bin give to each pixel of an axis, and the pixels they touch.
    #[inline(always)]
    fn weights(&self, axis: usize, bin: usize, to: &mut [f32]) -> [usize; 2] {
        let (mut first, mut end) = (usize::MAX, 0);
        for i in 0..self.region.samples[axis] {
            let Some(tap) = self.tap(axis, bin, i) else { continue };
            for (at, weight) in [(tap.low, 1.0 - tap.to_high), (tap.high, tap.to_high)] {
                if first == usize::MAX {
                    (first, end) = (at, at);
                }
                // Of a region that is turned around they go from high to low.
                while end <= at {
                    to[end] = 0.0;
                    end += 1;
                }
                while first > at {
                    first -= 1;
                    to[first] = 0.0;
                }
                to[at] += weight;
            }
        }
        [first.min(end), end]
    }

    #[inline(always)]
    fn pixel(&self, y: usize, x: usize) -> &[f32] {
        &self.map.data[(y * self.map.width + x) * self.channels..][..self.channels]
    }
}

fn align_line(isa: Isa, line: &Line<'_>, scratch: &mut [f32], out: &mut [f32]) {
    // SAFETY: the body is safe code.
    unsafe {
        dispatch!(isa, plain <'a, _S>(line: &'a Line<'a>, scratch: &'a mut [f32], out: &'a mut [f32]) {
            align_any(line, scratch, out)
        })
    }
}

#[inline(always)]
fn align_any(line: &Line<'_>, scratch: &mut [f32], out: &mut [f32]) {
    let (rows, columns) = scratch.split_at_mut(line.map.height);
    if line.mode == RoiMode::Max {
        return max_any(line, out);
    }
    let [samples_y, samples_x] = line.region.samples;
    let share = (1.0 / (samples_y as f64 * samples_x as f64)) as f32;
    let [top, bottom] = line.weights(0, line.row, rows);
    rows[top..bottom].iter_mut().for_each(|w| *w *= share);
    for (bin, out) in out.chunks_exact_mut(line.channels).enumerate() {
        let [left, right] = line.weights(1, bin, columns);
        out.fill(0.0);
        for y in top..bottom {
            let mut x = left;
            // Two pixels at once, so that sums are loaded and stored half as often.
            while x + 1 < right {
                let (a, b) = (rows[y] * columns[x], rows[y] * columns[x + 1]);
                let (p, q) = (line.pixel(y, x), line.pixel(y, x + 1));
                for ((o, p), q) in out.iter_mut().zip(p).zip(q) {
                    *o += a * p + b * q;
                }
                x += 2;
            }
            if x < right {
                let a = rows[y] * columns[x];
                out.iter_mut().zip(line.pixel(y, x)).for_each(|(o, p)| *o += a * p);
            }
        }
    }
}

#[inline(always)]
fn max_any(line: &Line<'_>, out: &mut [f32]) {
    let [samples_y, samples_x] = line.region.samples;
    for (bin, out) in out.chunks_exact_mut(line.channels).enumerate() {
        out.fill(0.0);
        for row in (0..samples_y).filter_map(|i| line.tap(0, line.row, i)) {
            for column in (0..samples_x).filter_map(|i| line.tap(1, bin, i)) {
                let (ly, lx) = (row.to_high, column.to_high);
                let (hy, hx) = (1.0 - ly, 1.0 - lx);
                let (a, b) = (line.pixel(row.low, column.low), line.pixel(row.low, column.high));
                let (c, d) = (line.pixel(row.high, column.low), line.pixel(row.high, column.high));
                for ((((o, a), b), c), d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                    *o = o.max(hy * hx * a + hy * lx * b + ly * hx * c + ly * lx * d);
                }
            }
        }
    }
}

// Of runs of whole pixels.
fn largest<'a>(isa: Isa, runs: impl Iterator<Item = &'a [f32]>, out: &mut [f32]) {
    out.fill(f32::MIN);
    for run in runs {
        // SAFETY: the body is safe code.
        unsafe { dispatch!(isa, plain <'a, _S>(run: &'a [f32], out: &'a mut [f32]) { largest_any(run, out) }) }
    }
}

#[inline(always)]
fn largest_any(run: &[f32], out: &mut [f32]) {
    for pixel in run.chunks_exact(out.len()) {
        out.iter_mut().zip(pixel).for_each(|(o, x)| *o = o.max(*x));
    }
}
