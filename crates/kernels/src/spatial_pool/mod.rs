//! Largest elements and means of windows on channels-last images. What is not a number never is the largest element, and a
//! window without any pixel gives the lowest number, or 0 for a mean.

mod bytes;
mod positions;
mod row;

pub use bytes::max_pool_bytes;
pub use positions::{MaxPositions, Places};

use crate::cast::{Brain, Half};
use crate::simd::{Entry, Number, Readable};
use crate::split::Split;
use crate::{Exec, Halves, Isa, SharedMut};
use row::Row;
use std::ops::Range;

/// Windows on an image. Sizes are depth, height, width; 1 where there is no such axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolShape {
    pub batch: usize,
    pub channels: usize,
    pub in_spatial: [usize; 3],
    /// As many windows as there should be; the last ones may leave the image.
    pub out_spatial: [usize; 3],
    pub kernel: [usize; 3],
    pub stride: [usize; 3],
    pub dilation: [usize; 3],
    pub pad_begin: [usize; 3],
}

/// What is made of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolKind {
    Max,
    /// The sum divided by the number of pixels inside of the image.
    Mean,
    /// The sum divided by the size of the kernel.
    MeanOfAll,
}

/// A pool of windows.
#[derive(Clone, Debug)]
pub struct SpatialPool {
    isa: Isa,
    shape: PoolShape,
    kind: PoolKind,
    /// Columns first into scratch, then rows of those.
    two_passes: bool,
    kernels: Kernels<f32, f32>,
    /// The same over numbers of bf16, and of f16.
    brains: Kernels<Brain, Brain>,
    halves: Kernels<Half, Half>,
    /// Means of bytes.
    bytes: Kernels<u8, f32>,
}

/// Rows at once, and columns and rows of the two passes, between which floats lie.
#[derive(Clone)]
struct Kernels<I: 'static, O: 'static> {
    whole: Entry<Row<I, O>>,
    columns: Entry<Row<I, f32>>,
    lines: Entry<Row<f32, O>>,
}

impl<I: Readable, O: Number> Kernels<I, O> {
    fn of(isa: Isa, max: bool) -> Kernels<I, O> {
        Kernels { whole: row::of(isa, max), columns: row::of(isa, max), lines: row::of(isa, max) }
    }
}

impl<I, O> std::fmt::Debug for Kernels<I, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kernels")
    }
}

impl SpatialPool {
    pub fn new(isa: Isa, _threads: usize, shape: PoolShape, kind: PoolKind) -> SpatialPool {
        let positive = |sizes: [usize; 3]| sizes.iter().all(|n| *n > 0);
        assert!(positive(shape.kernel) && positive(shape.stride) && positive(shape.dilation), "a pool of {shape:?}");

        let (tall, wide, step) = (shape.kernel[0] * shape.kernel[1], shape.kernel[2], shape.stride[2]);
        let two_passes = shape.out_spatial[2] > 1 && 4 * (tall * step + wide + 2) < 3 * tall * wide;
        let max = kind == PoolKind::Max;
        let (kernels, brains, halves) = (Kernels::of(isa, max), Kernels::of(isa, max), Kernels::of(isa, max));
        SpatialPool { isa, shape, kind, two_passes, kernels, brains, halves, bytes: Kernels::of(isa, false) }
    }

    /// Floats that each thread needs of scratch.
    pub fn scratch_floats(&self) -> usize {
        if self.two_passes { self.shape.in_spatial[2] * self.shape.channels } else { 0 }
    }

    /// `in_stride` and `out_stride` are floats from pixel to pixel.
    pub fn run(&self, exec: &Exec<'_>, input: &[f32], in_stride: usize, out: &mut [f32], out_stride: usize) {
        self.run_typed(exec, &self.kernels, (input, in_stride), PLAIN, (out, out_stride));
    }

    /// The same over images of numbers of 16 bits, given by their bits and computed in f32.
    pub fn run_halves(
        &self,
        exec: &Exec<'_>,
        halves: Halves,
        (input, in_stride): (&[u16], usize),
        (out, out_stride): (&mut [u16], usize),
    ) {
        match halves {
            Halves::Bf16 => {
                let (input, out) = (bytemuck::cast_slice(input), bytemuck::cast_slice_mut(out));
                self.run_typed(exec, &self.brains, (input, in_stride), PLAIN, (out, out_stride));
            }
            Halves::F16 => {
                let (input, out) = (bytemuck::cast_slice(input), bytemuck::cast_slice_mut(out));
                self.run_typed(exec, &self.halves, (input, in_stride), PLAIN, (out, out_stride));
            }
        }
    }

    /// Means of bytes that stand for `(x - zero) * scale`. Every window has a pixel, and only those inside of the image count.
    pub fn run_bytes(
        &self,
        exec: &Exec<'_>,
        (input, in_stride): (&[u8], usize),
        (scale, zero): (f32, u8),
        (out, out_stride): (&mut [f32], usize),
    ) {
        assert!(self.kind == PoolKind::Mean, "{:?} of bytes", self.kind);
        let line = (scale, -f32::from(zero) * scale);
        self.run_typed(exec, &self.bytes, (input, in_stride), line, (out, out_stride));
    }

    /// Some rows of the output, over all images, of which this thread has the input from row `first` on.
    pub(crate) fn rows_into(
        &self,
        (exec, thread): (&Exec<'_>, usize),
        rows: Range<usize>,
        (input, first, in_stride): (&[f32], usize, usize),
        (out, out_stride): (SharedMut<'_, f32>, usize),
    ) {
        let s = &self.shape;
        debug_assert!(!self.two_passes, "the scratch of {s:?} is with others");
        let job = Job { this: self, kernels: &self.kernels, input, first, in_stride, line: PLAIN, out, out_stride };
        for row in rows {
            job.row(row, [0, s.channels], exec, thread);
        }
    }

    fn run_typed<I: Readable, O: Number>(
        &self,
        exec: &Exec<'_>,
        kernels: &Kernels<I, O>,
        (input, in_stride): (&[I], usize),
        line: (f32, f32),
        (out, out_stride): (&mut [O], usize),
    ) {
        let (s, channels) = (&self.shape, self.shape.channels);
        let in_pixels = s.batch * s.in_spatial.iter().product::<usize>();
        let rows = s.batch * s.out_spatial[0] * s.out_spatial[1];
        let pixels = rows * s.out_spatial[2];
        if pixels == 0 || channels == 0 {
            return;
        }
        assert!(
            in_stride >= channels && out_stride >= channels,
            "pixels of {in_stride} and {out_stride} floats overlap"
        );
        assert!(in_pixels == 0 || input.len() >= (in_pixels - 1) * in_stride + channels, "input of {s:?}");
        assert!(out.len() >= (pixels - 1) * out_stride + channels, "output of {s:?}");

        // Few rows are shared out by their channels.
        let least = 4 * self.isa.lanes();
        let parts = if rows < 4 * exec.threads() { (channels / least).clamp(1, 2 * exec.threads()) } else { 1 };
        let split = Split::new(rows * parts, pixels * channels * s.kernel.iter().product::<usize>(), exec.threads());
        let job = Job { this: self, kernels, input, first: 0, in_stride, line, out: SharedMut::new(out), out_stride };
        exec.each(split.chunks(), |chunk, thread| {
            for unit in split.range(chunk) {
                let part = |i: usize| (channels * i / parts).next_multiple_of(least).min(channels);
                let (from, to) = match (unit % parts, parts) {
                    (_, 1) => (0, channels),
                    (i, _) if i + 1 == parts => (part(i), channels),
                    (i, _) => (part(i), part(i + 1)),
                };
                if from < to {
                    job.row(unit / parts, [from, to - from], exec, thread);
                }
            }
        });
    }
}

/// The line of numbers that are what they are.
const PLAIN: (f32, f32) = (1.0, 0.0);

/// One run.
struct Job<'a, I: 'static, O: 'static> {
    this: &'a SpatialPool,
    kernels: &'a Kernels<I, O>,
    input: &'a [I],
    /// The row of all images that the input begins with.
    first: usize,
    in_stride: usize,
    /// What means are multiplied with, and what is added then.
    line: (f32, f32),
    out: SharedMut<'a, O>,
    out_stride: usize,
}

impl<I: Readable, O: Number> Job<'_, I, O> {
    fn row(&self, row: usize, [c, channels]: [usize; 2], exec: &Exec<'_>, thread: usize) {
        let s = &self.this.shape;
        let plane = row / s.out_spatial[1];
        let at = [plane % s.out_spatial[0], row % s.out_spatial[1]];
        let image = plane / s.out_spatial[0];
        let top = [0, 1].map(|i| (at[i] * s.stride[i]) as isize - s.pad_begin[i] as isize);
        let inside = |i: usize| {
            let at_least = |p: isize| ((p - top[i]).max(0) as usize).div_ceil(s.dilation[i]).min(s.kernel[i]);
            [at_least(0), at_least(s.in_spatial[i] as isize)]
        };
        let [depth, height, width] = s.in_spatial;
        let line = (width * self.in_stride) as isize;
        let origin = ((image * depth) as isize + top[0]) * height as isize + top[1] - self.first as isize;
        let origin = origin * line + c as isize;
        let (inside_depth, inside_height) = (inside(0), inside(1));
        let rows = (inside_depth[1] - inside_depth[0]) * (inside_height[1] - inside_height[0]);
        let divisor = match self.this.kind {
            PoolKind::MeanOfAll => s.kernel.iter().product::<usize>() as f32,
            _ => 0.0,
        };
        let whole = Row {
            input: self.input.as_ptr().wrapping_offset(origin),
            depth: inside_depth,
            height: inside_height,
            tap_step: [
                s.dilation[0] * height * width * self.in_stride,
                s.dilation[1] * width * self.in_stride,
                s.dilation[2] * self.in_stride,
            ],
            width,
            step: self.in_stride,
            taps: s.kernel[2],
            dilation: s.dilation[2],
            stride: s.stride[2],
            pad: s.pad_begin[2],
            out: self.out.as_ptr().wrapping_add(row * s.out_spatial[2] * self.out_stride + c),
            out_step: self.out_stride,
            columns: s.out_spatial[2],
            channels,
            divisor,
            rows,
            factor: self.line.0,
            plus: self.line.1,
        };
        if !self.this.two_passes || rows == 0 {
            // SAFETY: lengths were checked at the door; windows are cut at the borders; this part of the row is of this
            // thread alone.
            return unsafe { (self.kernels.whole)(&whole) };
        }
        let mut scratch = exec.scratch.of(thread);
        let scratch = &mut scratch[..width * channels];
        let columns = Row {
            input: whole.input,
            taps: 1,
            dilation: 1,
            stride: 1,
            pad: 0,
            out: scratch.as_mut_ptr(),
            out_step: channels,
            columns: width,
            // Sums stay sums.
            divisor: 1.0,
            depth: whole.depth,
            height: whole.height,
            tap_step: whole.tap_step,
            width,
            step: whole.step,
            channels,
            rows,
            factor: PLAIN.0,
            plus: PLAIN.1,
        };
        let lines = Row {
            input: scratch.as_ptr(),
            depth: [0, 1],
            height: [0, 1],
            tap_step: [0, 0, s.dilation[2] * channels],
            width,
            step: channels,
            taps: whole.taps,
            dilation: whole.dilation,
            stride: whole.stride,
            pad: whole.pad,
            out: whole.out,
            out_step: whole.out_step,
            columns: whole.columns,
            channels,
            divisor,
            rows,
            factor: self.line.0,
            plus: self.line.1,
        };
        // SAFETY: as above; the second pass reads what the first has written.
        unsafe {
            (self.kernels.columns)(&columns);
            (self.kernels.lines)(&lines);
        }
    }
}
