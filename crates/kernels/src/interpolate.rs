//! Resizing of channels-last images by tables: every output pixel of an axis is a weighted sum of some input pixels. One
//! tap of weight 1 on every axis copies whole pixels; else axes are blended one after the other, row by row.

use crate::simd::{Entry, Kernel, Readable, Simd, entry, unroll};
use crate::split::Split;
use crate::{Exec, Isa, SharedMut};
use std::marker::PhantomData;

/// Where the pixels of one axis come from.
#[derive(Clone, Debug, PartialEq)]
pub struct ResizeAxis {
    /// Input pixels that make an output pixel.
    pub taps: usize,
    /// `taps` positions for each output pixel.
    pub index: Vec<u32>,
    /// As many weights.
    pub weight: Vec<f32>,
}

impl ResizeAxis {
    /// One input pixel for each output pixel.
    pub fn nearest(index: Vec<u32>) -> ResizeAxis {
        let weight = vec![1.0; index.len()];
        ResizeAxis { taps: 1, index, weight }
    }
    /// An axis that stays as it is.
    pub fn same(len: usize) -> ResizeAxis {
        ResizeAxis::nearest((0..len as u32).collect())
    }
    /// Output pixels.
    pub fn len(&self) -> usize {
        self.index.len() / self.taps
    }
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }
    fn copies(&self) -> bool {
        self.taps == 1 && self.weight.iter().all(|w| *w == 1.0)
    }
}

/// A resize of a depth, a height and a width.
#[derive(Clone, Debug)]
pub struct Resize {
    batch: usize,
    channels: usize,
    from: [usize; 3],
    axes: [ResizeAxis; 3],
    copies: bool,
    kernel: BlendFn<f32>,
    /// Over bytes.
    bytes: BlendFn<u8>,
}

#[derive(Clone)]
struct BlendFn<T: 'static>(Entry<Sums<T>>);

impl<T> std::fmt::Debug for BlendFn<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BlendFn")
    }
}

impl Resize {
    /// `from` is the size before; the axes tell the size after.
    pub fn new(isa: Isa, batch: usize, channels: usize, from: [usize; 3], axes: [ResizeAxis; 3]) -> Resize {
        for (axis, from) in axes.iter().zip(from) {
            assert!(axis.taps > 0 && axis.index.len() == axis.weight.len(), "a weight for each position");
            assert!(axis.index.len().is_multiple_of(axis.taps), "as many positions for every pixel");
            assert!(axis.index.iter().all(|i| (*i as usize) < from), "a position outside of {from} pixels");
        }
        let copies = axes.iter().all(ResizeAxis::copies);
        let (kernel, bytes) = (BlendFn(entry::<Blend<f32>, _>(isa)), BlendFn(entry::<Blend<u8>, _>(isa)));
        Resize { batch, channels, from, axes, copies, kernel, bytes }
    }

    /// Size of the output.
    pub fn out_spatial(&self) -> [usize; 3] {
        [0, 1, 2].map(|i| self.axes[i].len())
    }

    /// Floats that each thread needs of scratch.
    pub fn scratch_floats(&self) -> usize {
        if self.one_line() { 0 } else { self.from[2] * self.channels }
    }

    /// Whether every output row is made from one input row.
    fn one_line(&self) -> bool {
        self.axes[0].copies() && self.axes[1].copies()
    }

    /// Whether whole pixels are copied.
    pub fn copies(&self) -> bool {
        self.copies
    }

    /// `in_stride` and `out_stride` are floats from pixel to pixel.
    pub fn run(&self, exec: &Exec<'_>, input: &[f32], in_stride: usize, out: &mut [f32], out_stride: usize) {
        let out = SharedMut::new(out);
        let job = Job { this: self, kernel: &self.kernel, input, in_stride, line: PLAIN, out, out_stride };
        job.run(exec, |rows| job.copies(rows));
    }

    /// Blends bytes that stand for `(x - zero) * scale`. Weights of a pixel make one, and not all pixels are copies.
    pub fn run_bytes(
        &self,
        exec: &Exec<'_>,
        (input, in_stride): (&[u8], usize),
        (scale, zero): (f32, u8),
        (out, out_stride): (&mut [f32], usize),
    ) {
        assert!(!self.copies, "bytes that are copied stay bytes");
        let line = (scale, -f32::from(zero) * scale);
        let out = SharedMut::new(out);
        let job = Job { this: self, kernel: &self.bytes, input, in_stride, line, out, out_stride };
        job.run(exec, |_| ());
    }
}

/// The line of numbers that are what they are.
const PLAIN: (f32, f32) = (1.0, 0.0);

/// One run.
struct Job<'a, T: 'static> {
    this: &'a Resize,
    kernel: &'a BlendFn<T>,
    input: &'a [T],
    in_stride: usize,
    /// What sums are multiplied with, and what is added then.
    line: (f32, f32),
    out: SharedMut<'a, f32>,
    out_stride: usize,
}

impl<T: Readable> Job<'_, T> {
    // All rows, where pixels are copied by `copy`.
    fn run(&self, exec: &Exec<'_>, copy: impl Fn(std::ops::Range<usize>) + Sync) {
        let (this, in_stride, out_stride) = (self.this, self.in_stride, self.out_stride);
        let [depth, height, width] = this.out_spatial();
        let (channels, rows) = (this.channels, this.batch * depth * height);
        let in_pixels = this.batch * this.from.iter().product::<usize>();
        if rows * width == 0 || channels == 0 {
            return;
        }
        assert!(
            in_stride >= channels && out_stride >= channels,
            "pixels of {in_stride} and {out_stride} numbers overlap"
        );
        let len = self.input.len();
        assert!(len >= (in_pixels - 1) * in_stride + channels, "{len} numbers for {in_pixels} pixels");
        assert!(self.out.len() >= (rows * width - 1) * out_stride + channels, "{} floats of output", self.out.len());
        let taps: usize = this.axes.iter().map(|a| a.taps).sum();
        let split = Split::new(rows, rows * width * channels * taps, exec.threads());
        exec.each(split.chunks(), |chunk, thread| {
            let rows = split.range(chunk);
            if this.copies {
                copy(rows);
            } else {
                self.blends(rows, &mut exec.scratch.of(thread));
            }
        });
    }

    /// Batch, depth and height of an output row.
    fn position(&self, row: usize) -> [usize; 3] {
        let [depth, height, _] = self.this.out_spatial();
        [row / height / depth, row / height % depth, row % height]
    }

    /// The first float of an input row.
    fn line(&self, batch: usize, z: u32, y: u32) -> usize {
        let [depth, height, width] = self.this.from;
        ((batch * depth + z as usize) * height + y as usize) * width * self.in_stride
    }

    fn blends(&self, rows: std::ops::Range<usize>, scratch: &mut [f32]) {
        let (this, channels) = (self.this, self.this.channels);
        let (factor, plus) = self.line;
        let [depth, height, across] = &this.axes;
        let width = across.len();
        for row in rows {
            let [batch, z, y] = self.position(row);
            let out = self.out.as_ptr().wrapping_add(row * width * self.out_stride);
            let (zs, ys) = (z * depth.taps..(z + 1) * depth.taps, y * height.taps..(y + 1) * height.taps);
            let across_of = Sums {
                input: std::ptr::null::<T>(),
                step: 0,
                index: across.index.as_ptr(),
                weight: across.weight.as_ptr(),
                taps: across.taps,
                factor,
                plus,
                out,
                floats: channels,
                more: false,
                columns: width,
                in_step: 0,
                out_step: self.out_stride,
                table_step: across.taps,
            };
            if this.one_line() {
                let line = self.line(batch, depth.index[zs.start], height.index[ys.start]);
                let sums = Sums { input: self.input[line..].as_ptr(), step: self.in_stride, ..across_of };
                // SAFETY: positions were checked when the axis was given, lengths at the door; the output row is of this thread
                // alone.
                unsafe { self.kernel.0(&sums) };
                continue;
            }
            // Rows that make this one, blended over their whole width.
            let mixed = &mut scratch[..this.from[2] * channels];
            let flat = self.in_stride == channels;
            let (columns, floats) = if flat { (1, mixed.len()) } else { (this.from[2], channels) };
            for i in zs.clone() {
                let sums = Sums {
                    input: self.input[self.line(batch, depth.index[i], 0)..].as_ptr(),
                    step: this.from[2] * self.in_stride,
                    index: height.index[ys.clone()].as_ptr(),
                    weight: height.weight[ys.clone()].as_ptr(),
                    taps: height.taps,
                    factor: depth.weight[i],
                    plus: 0.0,
                    out: mixed.as_mut_ptr(),
                    floats,
                    more: i > zs.start,
                    columns,
                    in_step: self.in_stride,
                    out_step: channels,
                    table_step: 0,
                };
                // SAFETY: as above.
                unsafe { self.kernel.0(&sums) };
            }
            let sums = across_of.over(mixed.as_ptr(), channels);
            // SAFETY: as above.
            unsafe { this.kernel.0(&sums) };
        }
    }
}

impl Job<'_, f32> {
    fn copies(&self, rows: std::ops::Range<usize>) {
        let (this, width, channels) = (self.this, self.this.axes[2].len(), self.this.channels);
        let whole = self.out_stride == channels;
        let mut before: Option<(usize, usize)> = None;
        for row in rows {
            let [batch, z, y] = self.position(row);
            let line = self.line(batch, this.axes[0].index[z], this.axes[1].index[y]);
            let start = row * width * self.out_stride;
            let len = (width - 1) * self.out_stride + channels;
            // SAFETY: output rows do not overlap, and this one is of this thread alone.
            let out = unsafe { self.out.part(start..start + len) };
            match before {
                Some((same, at)) if same == line && whole => {
                    // SAFETY: an earlier row of the same thread, not written to any more.
                    out.copy_from_slice(unsafe { self.out.part(at..at + len) });
                }
                _ => {
                    for (x, from) in this.axes[2].index.iter().enumerate() {
                        let from = line + *from as usize * self.in_stride;
                        out[x * self.out_stride..][..channels].copy_from_slice(&self.input[from..from + channels]);
                    }
                }
            }
            before = Some((line, start));
        }
    }
}

/// Weighted sums of runs of numbers.
#[derive(Clone, Copy)]
struct Sums<T> {
    input: *const T,
    /// Numbers from position to position.
    step: usize,
    index: *const u32,
    weight: *const f32,
    taps: usize,
    /// All weights are multiplied by it.
    factor: f32,
    /// What sums begin with.
    plus: f32,
    out: *mut f32,
    floats: usize,
    /// Added to what is there.
    more: bool,
    /// How many sums, and what lies between them in the input, the output and the tables.
    columns: usize,
    in_step: usize,
    out_step: usize,
    table_step: usize,
}

impl<T> Sums<T> {
    // The same of other numbers.
    fn over<U>(self, input: *const U, step: usize) -> Sums<U> {
        let Sums {
            index, weight, taps, factor, plus, out, floats, more, columns, in_step, out_step, table_step, ..
        } = self;
        Sums {
            input,
            step,
            index,
            weight,
            taps,
            factor,
            plus,
            out,
            floats,
            more,
            columns,
            in_step,
            out_step,
            table_step,
        }
    }
}

struct Blend<T>(PhantomData<T>);

impl<T: Readable> Kernel for Blend<T> {
    type Args<'a> = &'a Sums<T>;
    type Out = ();
    #[inline(always)]
    unsafe fn run<L: Simd>(sums: &Sums<T>) {
        let mut s = *sums;
        for _ in 0..s.columns {
            let mut at = 0;
            // SAFETY: the sums describe memory that is there, and the processor has the instructions.
            unsafe {
                let all = L::first(L::N);
                while at + 4 * L::N <= s.floats {
                    sum::<L, T, 4, false>(&s, at, (all, L::N));
                    at += 4 * L::N;
                }
                while at + L::N <= s.floats {
                    sum::<L, T, 1, false>(&s, at, (all, L::N));
                    at += L::N;
                }
                if at < s.floats {
                    sum::<L, T, 1, true>(&s, at, (L::first(s.floats - at), s.floats - at));
                }
            }
            s.input = s.input.wrapping_add(s.in_step);
            s.out = s.out.wrapping_add(s.out_step);
            s.index = s.index.wrapping_add(s.table_step);
            s.weight = s.weight.wrapping_add(s.table_step);
        }
    }
}

#[inline(always)]
unsafe fn sum<L: Simd, T: Readable, const V: usize, const TAIL: bool>(
    s: &Sums<T>,
    at: usize,
    (mask, n): (L::Mask, usize),
) {
    // SAFETY: as the caller says.
    unsafe {
        let mut acc = [L::splat(s.plus); V];
        if s.more {
            unroll!(v < V, 4, {
                let from = s.out.add(at + v * L::N);
                acc[v] = if TAIL { L::load_masked(from, mask) } else { L::load(from) };
            });
        }
        for t in 0..s.taps {
            let from = s.input.add(*s.index.add(t) as usize * s.step + at);
            let weight = L::splat(*s.weight.add(t) * s.factor);
            unroll!(v < V, 4, {
                let x = if TAIL { T::load_first::<L>(from, mask, n) } else { T::load::<L>(from.add(v * L::N)) };
                acc[v] = x.mul_add(weight, acc[v]);
            });
        }
        unroll!(v < V, 4, {
            let to = s.out.add(at + v * L::N);
            if TAIL { acc[v].store_masked(to, mask) } else { acc[v].store(to) }
        });
    }
}
