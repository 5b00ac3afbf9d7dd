//! Depthwise convolution: every channel has a kernel of its own. Vectors run along the channels, blocks of output columns
//! and rows are kept in registers.

mod any;
mod fixed;
mod target;

use crate::ConvShape;
use crate::cast::{Brain, Half};
use crate::epilogue::{Quick, SplitEpilogue};
use crate::simd::{Entry, Number, entry};
use crate::split::Split;
use crate::{Epilogue, Exec, Halves, Isa, SharedMut};
use target::Target;

/// A convolution with as many groups as input and output channels.
#[derive(Clone, Debug)]
pub struct Depthwise {
    isa: Isa,
    shape: ConvShape,
    out: [usize; 3],
    pieces: Vec<Piece>,
    kernels: Kernels<f32>,
    /// The same over numbers of bf16, and of f16.
    brains: Kernels<Brain>,
    halves: Kernels<Half>,
}

/// Some columns of every output row.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// First output column and how many there are.
    x: usize,
    columns: usize,
    /// Pieces of this kind that follow one another.
    count: usize,
    wide: bool,
    edge: bool,
    /// Columns of the input under the piece, and which of them lie in the image.
    input_x: isize,
    low: usize,
    high: usize,
}

#[derive(Clone)]
enum Kernels<T: 'static> {
    /// Wide ones for two rows and for one.
    Fixed {
        wide: Option<[Entry<fixed::Block<T>>; 2]>,
        narrow: Entry<fixed::Block<T>>,
    },
    Any(Entry<any::Span<T>>),
}

impl<T> std::fmt::Debug for Kernels<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Kernels::Any(_)) { "Any" } else { "Fixed" })
    }
}

/// Output columns of wide and narrow blocks of [`fixed`].
const WIDE: usize = 7;
const NARROW: usize = 4;

impl Depthwise {
    /// Whether this kernel can do the convolution.
    pub fn fits(shape: &ConvShape) -> bool {
        shape.groups == shape.in_channels && shape.out_channels == shape.in_channels
    }

    pub fn new(isa: Isa, _threads: usize, shape: ConvShape) -> Depthwise {
        assert!(Depthwise::fits(&shape), "a depthwise convolution has one channel a group: {shape:?}");

        let (kernels, columns) = Kernels::of(isa, &shape);
        let ((brains, _), (halves, _)) = (Kernels::of(isa, &shape), Kernels::of(isa, &shape));
        let out = shape.out_spatial();
        let pieces = pieces(&shape, out[2], columns, matches!(kernels, Kernels::Fixed { .. }));
        Depthwise { isa, shape, out, pieces, kernels, brains, halves }
    }

    /// Floats of packed weights.
    pub fn packed_floats(&self) -> usize {
        self.taps() * self.shape.in_channels.next_multiple_of(self.isa.lanes())
    }

    /// Packs weights of `[channels, depth, height, width]`.
    pub fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        let (channels, taps, lanes) = (self.shape.in_channels, self.taps(), self.isa.lanes());
        assert_eq!(weights.len(), channels * taps, "weights of {:?}", self.shape);
        assert_eq!(packed.len(), self.packed_floats(), "packed weights of {:?}", self.shape);
        for (block, to) in packed.chunks_exact_mut(taps * lanes).enumerate() {
            for (tap, to) in to.chunks_exact_mut(lanes).enumerate() {
                for (lane, to) in to.iter_mut().enumerate() {
                    let c = block * lanes + lane;
                    *to = if c < channels { weights[c * taps + tap] } else { 0.0 };
                }
            }
        }
    }

    /// Floats that each thread needs of scratch.
    pub fn scratch_floats(&self) -> usize {
        0
    }

    /// `in_stride` and `out_stride` are floats from pixel to pixel.
    pub fn run(
        &self,
        exec: &Exec<'_>,
        input: &[f32],
        in_stride: usize,
        packed: &[f32],
        out: &mut [f32],
        out_stride: usize,
        epilogue: &Epilogue<'_>,
    ) {
        let rest = |out: SharedMut<'_, f32>, stride, rows, columns, thread| {
            // SAFETY: a job asks for rows and channels that its thread alone has made.
            unsafe { SplitEpilogue::new(epilogue).rest(self.isa, out, stride, rows, columns, thread) }
        };
        let split = SplitEpilogue::new(epilogue);
        self.run_typed(exec, &self.kernels, (input, in_stride), packed, (out, out_stride), split, &rest);
    }

    /// Whether [`Depthwise::run_halves`] does the function: any, but few with a factor and a term behind it.
    pub fn does(act: crate::Act, after: [f32; 2]) -> bool {
        after == [1.0, 0.0] || Quick::of(act).and_then(|quick| quick.then(after)).is_some()
    }

    /// Over images of numbers of 16 bits, given by their bits and computed in f32. The epilogue is a bias and a function that [`Depthwise::does`], with a factor and a
    /// term behind it.
    pub fn run_halves(
        &self,
        exec: &Exec<'_>,
        halves: Halves,
        (input, in_stride): (&[u16], usize),
        packed: &[f32],
        (out, out_stride): (&mut [u16], usize),
        epilogue: &Epilogue<'_>,
        after: [f32; 2],
    ) {
        assert!(epilogue.add.is_none() && Depthwise::does(epilogue.act, after), "{epilogue:?} of {halves:?}");
        let mut epilogue = SplitEpilogue::new(epilogue);
        assert!(epilogue.epilogue.finish.is_none(), "work on finished rows of {halves:?}");
        epilogue.quick = epilogue.quick.then(after).unwrap_or(epilogue.quick);
        epilogue.in_registers = true;
        match halves {
            Halves::Bf16 => {
                let (input, out) = (bytemuck::cast_slice(input), bytemuck::cast_slice_mut(out));
                let none = |_: SharedMut<'_, Brain>, _, _, _, _| {};
                self.run_typed(exec, &self.brains, (input, in_stride), packed, (out, out_stride), epilogue, &none);
            }
            Halves::F16 => {
                let (input, out) = (bytemuck::cast_slice(input), bytemuck::cast_slice_mut(out));
                let none = |_: SharedMut<'_, Half>, _, _, _, _| {};
                self.run_typed(exec, &self.halves, (input, in_stride), packed, (out, out_stride), epilogue, &none);
            }
        }
    }

    fn run_typed<T: Number>(
        &self,
        exec: &Exec<'_>,
        kernels: &Kernels<T>,
        (input, in_stride): (&[T], usize),
        packed: &[f32],
        (out, out_stride): (&mut [T], usize),
        epilogue: SplitEpilogue<'_>,
        rest: &Rest<'_, T>,
    ) {
        let (s, channels) = (&self.shape, self.shape.in_channels);
        let in_pixels = s.batch * s.in_spatial.iter().product::<usize>();
        let (rows, width) = (s.batch * self.out[0] * self.out[1], self.out[2]);
        let pixels = rows * width;
        if pixels == 0 || channels == 0 {
            return;
        }
        assert!(
            in_stride >= channels && out_stride >= channels,
            "pixels of {in_stride} and {out_stride} floats overlap"
        );
        assert!(in_pixels == 0 || input.len() >= (in_pixels - 1) * in_stride + channels, "input of {s:?}");
        assert!(out.len() >= (pixels - 1) * out_stride + channels, "output of {s:?}");
        assert_eq!(packed.len(), self.packed_floats(), "packed weights of {s:?}");
        epilogue.check(pixels, channels);

        // Few rows are shared out by halves of their channels.
        let halves = if rows < 8 * exec.threads() && channels >= 4 * self.isa.lanes() { 2 } else { 1 };
        let split = Split::new(rows * halves, pixels * channels * self.taps(), exec.threads());
        let first = (channels / 2).next_multiple_of(self.isa.lanes());
        let out = SharedMut::new(out);
        let job =
            Job { this: self, kernels, input, in_stride, first_in: 0, packed, out, out_stride, first: 0, epilogue };
        exec.each(split.chunks(), |chunk, thread| {
            let units = split.range(chunk);
            for half in 0..halves {
                let rows = (units.start + halves - 1 - half) / halves..(units.end + halves - 1 - half) / halves;
                let columns = match (halves, half) {
                    (1, _) => [0, channels],
                    (_, 0) => [0, first],
                    _ => [first, channels - first],
                };
                job.rows(rows, columns, thread, rest);
            }
        });
    }

    /// A run whose rows are asked for one by one, without work on finished rows. What is read and written is said then.
    pub(crate) fn job<'a>(&'a self, packed: &'a [f32], epilogue: SplitEpilogue<'a>) -> Job<'a, f32> {
        let (s, stride) = (&self.shape, self.shape.in_channels);
        assert_eq!(packed.len(), self.packed_floats(), "packed weights of {s:?}");
        assert!(!epilogue.has_rest(), "work that has no place");
        let (out, kernels) = (SharedMut::new(&mut []), &self.kernels);
        Job {
            this: self,
            kernels,
            input: &[],
            in_stride: stride,
            first_in: 0,
            packed,
            out,
            out_stride: stride,
            first: 0,
            epilogue,
        }
    }

    /// Some rows of a job. `input` and `out` are floats, the row of all images that they begin with, and floats from pixel to
    /// pixel.
    pub(crate) fn rows_into<'a>(
        &self,
        job: &Job<'a, f32>,
        rows: std::ops::Range<usize>,
        (input, first_in, in_stride): (&'a [f32], usize, usize),
        (out, first, out_stride): (SharedMut<'a, f32>, usize, usize),
    ) {
        let (s, channels) = (&self.shape, self.shape.in_channels);
        let [_, height, width] = s.in_spatial;
        let end = rows.clone().map(|row| row / self.out[1] * height + self.under(row % self.out[1]).end).max();
        let (ins, outs) = ((end.unwrap_or(0) - first_in) * width, (rows.end - first) * self.out[2]);
        assert!(s.in_spatial[0] == 1 && s.kernel[0] == 1, "rows of planes: {s:?}");
        assert!(in_stride >= channels && input.len() + in_stride >= ins * in_stride + channels, "input of {rows:?}");
        assert!(out_stride >= channels && out.len() + out_stride >= outs * out_stride + channels, "room for {rows:?}");
        let job = Job { input, first_in, in_stride, out, first: first * self.out[2], out_stride, ..*job };
        job.rows(rows, [0, channels], 0, &|_: SharedMut<'_, f32>, _, _, _, _| {});
    }

    /// Input rows under an output row, those in the padding left out.
    pub(crate) fn under(&self, row: usize) -> std::ops::Range<usize> {
        let s = &self.shape;
        let (top, height) = (row * s.stride[1], s.in_spatial[1]);
        let bottom = top + (s.kernel[1] - 1) * s.dilation[1] + 1;
        let inside = |y: usize| y.saturating_sub(s.pad_begin[1]).min(height);
        inside(top)..inside(bottom)
    }

    fn taps(&self) -> usize {
        self.shape.kernel.iter().product()
    }
}

impl<T: Number> Kernels<T> {
    /// The functions, and how many output columns their blocks may have.
    fn of(isa: Isa, s: &ConvShape) -> (Kernels<T>, &'static [usize]) {
        let (k, stride) = (s.kernel[2], s.stride[2]);
        let flat = s.kernel[0] == 1 && s.in_spatial[0] + s.pad_begin[0] + s.pad_end[0] == 1;
        let square = s.kernel[1] == k && s.stride[1] == stride && s.dilation[1] == 1 && s.dilation[2] == 1;
        let of = |rows, wide| fixed::of(isa, k, stride, rows, wide);
        if let (true, Some(narrow)) = (flat && square, of(1, false)) {
            return match (of(2, true), of(1, true)) {
                (Some(two), Some(one)) => (Kernels::Fixed { wide: Some([two, one]), narrow }, &[WIDE, NARROW]),
                _ => (Kernels::Fixed { wide: None, narrow }, &[NARROW]),
            };
        }
        (Kernels::Any(entry::<any::Any<T>, _>(isa)), &[any::COLUMNS])
    }
}

/// Cuts a row of `width` output columns into blocks of the given sizes, the largest first; the last one may stick out. With
/// `runs` those that are alike are one piece.
fn pieces(s: &ConvShape, width: usize, sizes: &[usize], runs: bool) -> Vec<Piece> {
    let (stride, dilation, kernel) = (s.stride[2], s.dilation[2], s.kernel[2]);
    let mut sizes_left = vec![];
    match *sizes {
        [wide, narrow] => {
            // As few missing columns as possible, then as few blocks.
            let best = (0..=width.div_ceil(wide))
                .map(|w| (w, width.saturating_sub(w * wide).div_ceil(narrow)))
                .min_by_key(|&(w, n)| (w * (wide + 1) + n * (narrow + 1), n))
                .unwrap_or((0, 0));
            sizes_left.extend(std::iter::repeat_n(wide, best.0));
            sizes_left.extend(std::iter::repeat_n(narrow, best.1));
        }
        _ => sizes_left.extend(std::iter::repeat_n(sizes[0], width.div_ceil(sizes[0]))),
    }
    let mut x = 0;
    let mut pieces: Vec<Piece> = vec![];
    for size in sizes_left {
        let columns = size.min(width - x);
        let input_x = (x * stride) as isize - s.pad_begin[2] as isize;
        let extent = ((size - 1) * stride + (kernel - 1) * dilation + 1) as isize;
        let low = (-input_x).clamp(0, extent) as usize;
        let high = (s.in_spatial[2] as isize - input_x).clamp(0, extent) as usize;
        let edge = columns < size || low > 0 || high < extent as usize;
        let alike = |p: &&mut Piece| runs && !p.edge && !edge && p.columns == columns;
        match pieces.last_mut().filter(alike) {
            Some(piece) => piece.count += 1,
            None => pieces.push(Piece { x, columns, count: 1, wide: size == WIDE, edge, input_x, low, high }),
        }
        x += columns;
    }
    pieces
}

/// Work that is left on finished rows: output and its stride, rows, channels, thread.
type Rest<'a, T> = dyn Fn(SharedMut<'_, T>, usize, [usize; 2], [usize; 2], usize) + Sync + 'a;

/// One run.
#[derive(Clone, Copy)]
pub(crate) struct Job<'a, T: 'static> {
    this: &'a Depthwise,
    kernels: &'a Kernels<T>,
    input: &'a [T],
    in_stride: usize,
    /// The row of all images that `input` begins with.
    first_in: usize,
    packed: &'a [f32],
    out: SharedMut<'a, T>,
    out_stride: usize,
    /// The pixel of the whole output that `out` begins with.
    first: usize,
    epilogue: SplitEpilogue<'a>,
}

impl<T: Number> Job<'_, T> {
    /// Some output rows, some channels.
    fn rows(&self, rows: std::ops::Range<usize>, [c, channels]: [usize; 2], thread: usize, rest: &Rest<'_, T>) {
        let width = self.this.out[2];
        let height = self.this.out[1];
        let mut row = rows.start;
        while row < rows.end {
            let both = row + 1 < rows.end && !(row + 1).is_multiple_of(height);
            let n = match self.kernels {
                Kernels::Fixed { wide, narrow } => {
                    let n = if both && wide.is_some() { 2 } else { 1 };
                    for piece in &self.this.pieces {
                        match wide {
                            Some(wide) if piece.wide => self.fixed(wide[2 - n], row, n, piece, c, channels),
                            _ => (0..n).for_each(|i| self.fixed(*narrow, row + i, 1, piece, c, channels)),
                        }
                    }
                    n
                }
                Kernels::Any(any) => {
                    for piece in &self.this.pieces {
                        self.any(*any, row, piece, c, channels);
                    }
                    1
                }
            };
            if self.epilogue.has_rest() {
                let rest = |row, rows| rest(self.out, self.out_stride, [row, rows], [c, channels], thread);
                if channels == self.this.shape.in_channels {
                    rest(row * width, n * width);
                } else {
                    (row * width..(row + n) * width).for_each(|pixel| rest(pixel, 1));
                }
            }
            row += n;
        }
    }

    fn target(&self, row: usize, rows: usize, piece: &Piece, c: usize) -> Target<T> {
        let pixel = |i: usize| (row + i.min(rows - 1)) * self.this.out[2] + piece.x;
        let (adds, add_step) = self.epilogue.adds();
        Target {
            out: [0, 1].map(|i| self.out.as_ptr().wrapping_add((pixel(i) - self.first) * self.out_stride + c)),
            step: self.out_stride,
            columns: piece.columns,
            bias: if self.epilogue.bias().is_null() {
                self.epilogue.bias()
            } else {
                self.epilogue.bias().wrapping_add(c)
            },
            adds: adds
                .map(|add| [0, 1].map(|i| if add.is_null() { add } else { add.wrapping_add(pixel(i) * add_step + c) })),
            add_step,
            quick: self.epilogue.quick,
            slow: self.epilogue.slow().map(|act| (self.this.isa, act)),
        }
    }

    fn fixed(&self, kernel: Entry<fixed::Block<T>>, row: usize, rows: usize, piece: &Piece, c: usize, channels: usize) {
        let s = &self.this.shape;
        let (image, y) = (row / self.this.out[1], row % self.this.out[1]);
        let [_, height, width] = s.in_spatial;
        let top = (y * s.stride[1]) as isize - s.pad_begin[1] as isize;
        let start = self.input.as_ptr().wrapping_add(c).wrapping_offset(piece.input_x * self.in_stride as isize);
        let block = fixed::Block {
            rows: std::array::from_fn(|r| {
                let y = top + r as isize;
                if y < 0 || y >= height as isize || piece.low >= piece.high {
                    return std::ptr::null();
                }
                start.wrapping_add((image * height + y as usize - self.first_in) * width * self.in_stride)
            }),
            step: self.in_stride,
            edge: piece.edge,
            low: piece.low,
            high: piece.high,
            weights: self.packed[c * self.this.taps()..].as_ptr(),
            channels,
            count: piece.count,
            advance: [s.stride[2] * self.in_stride, self.out_stride, self.epilogue.adds().1].map(|n| piece.columns * n),
            target: self.target(row, rows, piece, c),
        };
        // SAFETY: lengths were checked at the door; rows are null and columns masked where they leave the image; the
        // output rows belong to this thread.
        unsafe { kernel(&block) }
    }

    fn any(&self, kernel: Entry<any::Span<T>>, row: usize, piece: &Piece, c: usize, channels: usize) {
        let s = &self.this.shape;
        let (image, z, y) = {
            let plane = row / self.this.out[1];
            (plane / self.this.out[0], plane % self.this.out[0], row % self.this.out[1])
        };
        let [depth, height, width] = s.in_spatial;
        let top = [0, 1].map(|i| ([z, y][i] * s.stride[i]) as isize - s.pad_begin[i] as isize);
        let inside = |i: usize| {
            let at_least = |p: isize| ((p - top[i]).max(0) as usize).div_ceil(s.dilation[i]).min(s.kernel[i]);
            [at_least(0), at_least(s.in_spatial[i] as isize)]
        };
        let line = (width * self.in_stride) as isize;
        let origin = ((image * depth * height) as isize - self.first_in as isize) * line
            + (top[0] * height as isize + top[1]) * line
            + piece.input_x * self.in_stride as isize
            + c as isize;
        let span = any::Span {
            input: self.input.as_ptr().wrapping_offset(origin),
            depth: inside(0),
            height: inside(1),
            tap_step: [
                s.dilation[0] * height * width * self.in_stride,
                s.dilation[1] * width * self.in_stride,
                s.dilation[2] * self.in_stride,
            ],
            kernel: s.kernel,
            x: piece.input_x,
            width,
            edge: piece.edge,
            dilation: s.dilation[2],
            stride: s.stride[2],
            step: self.in_stride,
            weights: self.packed[c * self.this.taps()..].as_ptr(),
            channels,
            target: self.target(row, 1, piece, c),
        };
        // SAFETY: lengths were checked at the door; taps outside of the image are not in the ranges or skipped by column;
        // the output row belongs to this thread.
        unsafe { kernel(&span) }
    }
}
