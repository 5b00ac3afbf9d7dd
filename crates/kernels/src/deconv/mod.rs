//! Transposed convolution. Output pixels that are a stride apart see the same kernel elements on consecutive input pixels,
//! so each such phase of a row is an ordinary product, and no output is touched twice.

mod cells;
mod tile;
mod touching;

pub use cells::DeconvCells;
pub use touching::TouchingDeconv;

use crate::epilogue::SplitEpilogue;
use crate::simd::{Entry, entry};
use crate::split::Split;
use crate::{Epilogue, Exec, Isa, SharedMut};
use tile::{EachChannel, Tap, Taps, Tile};

/// Sizes are depth, height, width; 1 where there is no such axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeconvShape {
    pub batch: usize,
    pub in_channels: usize,
    pub out_channels: usize,
    pub in_spatial: [usize; 3],
    /// As large as asked for; what no input reaches is bias alone.
    pub out_spatial: [usize; 3],
    pub kernel: [usize; 3],
    pub stride: [usize; 3],
    pub dilation: [usize; 3],
    /// What is cut off before the first output pixel.
    pub pad_begin: [usize; 3],
    pub groups: usize,
}

impl DeconvShape {
    /// Whether windows of the output touch without an overlap, and nothing is cut off.
    pub(crate) fn windows_touch(&self) -> bool {
        (0..3).all(|i| {
            self.kernel[i] == self.stride[i]
                && self.pad_begin[i] == 0
                && self.out_spatial[i] == self.in_spatial[i] * self.stride[i]
                && (self.dilation[i] == 1 || self.kernel[i] == 1)
        })
    }
}

/// A transposed convolution.
#[derive(Clone, Debug)]
pub struct Deconv {
    isa: Isa,
    shape: DeconvShape,
    /// Taps by output position, of depth and height.
    positions: [Vec<Vec<Tap>>; 2],
    runs: Vec<Run>,
    kernels: Kernels,
}

/// Output pixels of a row, a stride apart, with the same taps.
#[derive(Clone, Debug)]
struct Run {
    /// First output pixel, and the position that taps count from.
    x: usize,
    position: usize,
    pixels: usize,
    taps: Vec<Tap>,
}

#[derive(Clone)]
struct Kernels {
    pixels: Vec<(usize, [Entry<Tile>; 2])>,
    each_channel: Entry<Tile>,
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} sizes", self.pixels.len())
    }
}

impl Deconv {
    pub fn new(isa: Isa, _threads: usize, shape: DeconvShape) -> Deconv {
        let s = &shape;
        assert!(s.kernel.iter().chain(&s.stride).chain(&s.dilation).all(|n| *n > 0) && s.groups > 0, "{s:?}");
        assert!(s.in_channels.is_multiple_of(s.groups) && s.out_channels.is_multiple_of(s.groups), "{s:?}");

        let kernels = Kernels { pixels: tile::table(isa), each_channel: entry::<EachChannel, _>(isa) };
        let positions = [0, 1].map(|axis| (0..s.out_spatial[axis]).map(|at| taps(s, axis, at)).collect());
        Deconv { isa, positions, runs: runs(s), kernels, shape }
    }

    /// Whether every channel is a group of its own.
    fn each_channel(&self) -> bool {
        self.shape.groups == self.shape.in_channels && self.shape.in_channels == self.shape.out_channels
    }

    /// Input and output channels of a group.
    fn channels(&self) -> [usize; 2] {
        [self.shape.in_channels / self.shape.groups, self.shape.out_channels / self.shape.groups]
    }

    /// Output channels of a panel, and of the one at `c` of a group with what fills up its last vector.
    fn panel(&self) -> usize {
        2 * self.isa.lanes()
    }
    fn panel_width(&self, c: usize) -> usize {
        (self.channels()[1] - c).min(self.panel()).next_multiple_of(self.isa.lanes())
    }

    /// Floats of the packed weights of a group.
    fn group_floats(&self) -> usize {
        let [ins, outs] = self.channels();
        self.shape.kernel.iter().product::<usize>() * ins * outs.next_multiple_of(self.isa.lanes())
    }

    /// Floats of packed weights.
    pub fn packed_floats(&self) -> usize {
        if self.each_channel() {
            return self.shape.kernel.iter().product::<usize>() * self.shape.out_channels;
        }
        self.shape.groups * self.group_floats()
    }

    /// Packs weights of `[in, out / groups, depth, height, width]`.
    pub fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        let (s, taps) = (&self.shape, self.shape.kernel.iter().product::<usize>());
        let [ins, outs] = self.channels();
        assert_eq!(weights.len(), s.in_channels * outs * taps, "weights of {s:?}");
        assert_eq!(packed.len(), self.packed_floats(), "packed weights of {s:?}");
        packed.fill(0.0);
        for (i, w) in weights.chunks_exact(taps).enumerate() {
            let (group, channel, out) = (i / outs / ins, i / outs % ins, i % outs);
            let (c, inside) = (out / self.panel() * self.panel(), out % self.panel());
            let width = self.panel_width(c);
            for (tap, w) in w.iter().enumerate() {
                let at = if self.each_channel() {
                    tap * s.out_channels + group
                } else {
                    group * self.group_floats() + c * taps * ins + (tap * ins + channel) * width + inside
                };
                packed[at] = *w;
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
        let s = &self.shape;
        let in_pixels = s.batch * s.in_spatial.iter().product::<usize>();
        let rows = s.batch * s.out_spatial[0] * s.out_spatial[1];
        let pixels = rows * s.out_spatial[2];
        if pixels == 0 || s.out_channels == 0 {
            return;
        }
        assert!(
            in_stride >= s.in_channels && out_stride >= s.out_channels,
            "pixels overlap: {in_stride}, {out_stride}"
        );
        assert!(in_pixels == 0 || input.len() >= (in_pixels - 1) * in_stride + s.in_channels, "input of {s:?}");
        assert!(out.len() >= (pixels - 1) * out_stride + s.out_channels, "output of {s:?}");
        assert_eq!(packed.len(), self.packed_floats(), "packed weights of {s:?}");
        let epilogue = SplitEpilogue::new(epilogue);
        epilogue.check(pixels, s.out_channels);
        let work = in_pixels * s.kernel.iter().product::<usize>() * s.in_channels * self.channels()[1];
        let split = Split::new(rows, work.max(pixels * s.out_channels), exec.threads());
        let job = Job { this: self, input, in_stride, packed, out: SharedMut::new(out), out_stride, epilogue };
        exec.each(split.chunks(), |chunk, thread| {
            for row in split.range(chunk) {
                job.row(row);
                let width = s.out_spatial[2];
                // SAFETY: the row was made by this thread alone.
                unsafe {
                    epilogue.rest(self.isa, job.out, out_stride, [row * width, width], [0, s.out_channels], thread)
                };
            }
        });
    }
}

/// The kernel elements that reach output position `out` of an axis, and from where.
fn taps(s: &DeconvShape, axis: usize, out: usize) -> Vec<Tap> {
    let from = (out + s.pad_begin[axis]) as isize;
    (0..s.kernel[axis])
        .filter_map(|k| {
            let at = from - (k * s.dilation[axis]) as isize;
            let (at, rest) = (at.div_euclid(s.stride[axis] as isize), at.rem_euclid(s.stride[axis] as isize));
            (rest == 0 && at >= 0 && at < s.in_spatial[axis] as isize).then_some(Tap { at, k })
        })
        .collect()
}

/// Cuts each phase of a row where its taps change.
fn runs(s: &DeconvShape) -> Vec<Run> {
    let mut runs: Vec<Run> = vec![];
    for phase in 0..s.stride[2].min(s.out_spatial[2]) {
        for (n, x) in (phase..s.out_spatial[2]).step_by(s.stride[2]).enumerate() {
            let mut taps = taps(s, 2, x);
            taps.iter_mut().for_each(|t| t.at -= n as isize);
            match runs.last_mut() {
                Some(run) if n > 0 && run.taps == taps => run.pixels += 1,
                _ => runs.push(Run { x, position: n, pixels: 1, taps }),
            }
        }
    }
    runs
}

/// One run.
struct Job<'a> {
    this: &'a Deconv,
    input: &'a [f32],
    in_stride: usize,
    packed: &'a [f32],
    out: SharedMut<'a, f32>,
    out_stride: usize,
    epilogue: SplitEpilogue<'a>,
}

impl Job<'_> {
    fn row(&self, row: usize) {
        let (this, s) = (self.this, &self.this.shape);
        let plane = row / s.out_spatial[1];
        let image = plane / s.out_spatial[0];
        let depth = &this.positions[0][plane % s.out_spatial[0]];
        let height = &this.positions[1][row % s.out_spatial[1]];
        let line = s.in_spatial[2] * self.in_stride;
        let input = self.input.as_ptr().wrapping_add(image * s.in_spatial[0] * s.in_spatial[1] * line);
        let [ins, outs] = this.channels();
        for run in &this.runs {
            let taps = Taps {
                list: [depth.as_ptr(), height.as_ptr(), run.taps.as_ptr()],
                count: [depth.len(), height.len(), run.taps.len()],
                step: [s.in_spatial[1] * line, line, self.in_stride],
                kernel: s.kernel,
            };
            let pixel = row * s.out_spatial[2] + run.x;
            if this.each_channel() {
                for i in 0..run.pixels {
                    let tile = self.tile(
                        taps,
                        input.wrapping_add((run.position + i) * self.in_stride),
                        pixel + i * s.stride[2],
                        0,
                    );
                    let tile = Tile { weights: self.packed.as_ptr(), out_channels: s.out_channels, ..tile };
                    // SAFETY: lengths were checked at the door; taps lie inside of the image by construction; the row is
                    // of this thread alone.
                    unsafe { (this.kernels.each_channel)(&tile) };
                }
                continue;
            }
            // Tiles of one size; the last one may do pixels of the one before again.
            let size = |p: &&(usize, [Entry<Tile>; 2])| {
                let (m, tiles) = (p.0, run.pixels.div_ceil(p.0));
                (tiles * (m + 2), tiles)
            };
            let Some((m, kernels)) = this.kernels.pixels.iter().filter(|p| p.0 <= run.pixels).min_by_key(size) else {
                continue;
            };
            for group in 0..s.groups {
                for c in (0..outs).step_by(this.panel()) {
                    let width = this.panel_width(c);
                    let weights = group * this.group_floats() + c * s.kernel.iter().product::<usize>() * ins;
                    for first in (0..run.pixels).step_by(*m) {
                        let first = first.min(run.pixels - m);
                        let from = input.wrapping_add((run.position + first) * self.in_stride + group * ins);
                        let tile = self.tile(taps, from, pixel + first * s.stride[2], group * outs + c);
                        let tile = Tile {
                            in_channels: ins,
                            weights: self.packed.as_ptr().wrapping_add(weights),
                            out_channels: (outs - c).min(width),
                            ..tile
                        };
                        // SAFETY: as above.
                        unsafe { kernels[width / this.isa.lanes() - 1](&tile) };
                    }
                }
            }
        }
    }

    /// Everything about a tile but the channels it works on.
    fn tile(&self, taps: Taps, input: *const f32, pixel: usize, c: usize) -> Tile {
        let stride = self.this.shape.stride[2];
        let (adds, add_stride) = self.epilogue.adds();
        let bias = self.epilogue.bias();
        Tile {
            taps,
            input,
            in_channels: 0,
            weights: std::ptr::null(),
            out: self.out.as_ptr().wrapping_add(pixel * self.out_stride + c),
            out_step: stride * self.out_stride,
            out_channels: 0,
            bias: if bias.is_null() { bias } else { bias.wrapping_add(c) },
            adds: adds.map(|add| if add.is_null() { add } else { add.wrapping_add(pixel * add_stride + c) }),
            add_step: stride * add_stride,
            quick: self.epilogue.quick,
        }
    }
}
