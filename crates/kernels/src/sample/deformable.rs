//! Convolutions whose taps are moved by data: the samples of a strip of pixels are put side by side in scratch, and the strip
//! is multiplied with packed weights.

use super::blend::Blend;
use crate::gemm::panels::Panels;
use crate::gemm::region::{Product, STRIP, TileEpilogue};
use crate::gemm::{Gemm, Micro};
use crate::simd::{Simd, dispatch};
use crate::{ConvShape, Epilogue, Exec, Isa, SharedMut};
use std::ops::Range;

/// A convolution of two axes with moved taps.
#[derive(Clone, Copy, Debug)]
pub struct DeformableShape {
    /// As if no tap were moved.
    pub conv: ConvShape,
    /// Groups of input channels that are moved alike.
    pub moves: usize,
    /// The image fades into zeros within one pixel, instead of ending at its border.
    pub fades: bool,
}

/// How far taps are moved and what they weigh: planes of `[moves, taps, 2]` and `[moves, taps]`, each of one number an output
/// pixel. With `last` the planes lie side by side for each pixel.
#[derive(Clone, Copy, Debug)]
pub struct Moves<'a> {
    pub offsets: &'a [f32],
    pub offsets_last: bool,
    pub mask: Option<&'a [f32]>,
    pub mask_last: bool,
}

/// Bound to its sizes; weights are packed.
#[derive(Clone, Debug)]
pub struct Deformable {
    isa: Isa,
    micro: &'static Micro,
    shape: DeformableShape,
    /// Panels of one group.
    panels: Panels,
    /// Floats from pixel to pixel of the samples.
    pitch: usize,
    /// Pixels of a strip.
    strip: usize,
    /// Channels of one group that are moved alike.
    runs: Vec<Run>,
}

#[derive(Clone, Debug)]
struct Run {
    moves: usize,
    group: usize,
    channels: Range<usize>,
}

/// Pixels this many bytes apart, or a multiple, meet in few lines of the first-level cache.
const ALIASED: usize = 2048;

impl Deformable {
    /// For `threads` that share the work.
    pub fn new(isa: Isa, threads: usize, shape: DeformableShape) -> Deformable {
        let conv = &shape.conv;
        conv.check();
        assert!(conv.kernel[0] == 1 && conv.in_spatial[0] == 1, "a convolution of three axes: {conv:?}");
        assert!(
            shape.moves > 0 && conv.in_channels.is_multiple_of(shape.moves),
            "{} channels are not moved in {} groups",
            conv.in_channels,
            shape.moves
        );

        let micro = Micro::of(isa);
        let floats = conv.in_channels * conv.taps();
        let pitch = floats + if (floats * 4).is_multiple_of(ALIASED) { 16 } else { 0 };
        let share = conv.out_pixels().div_ceil(4 * threads.max(1));
        let most = (STRIP / pitch.max(1)).min(share);
        let strip = (most / micro.rows).max(1) * micro.rows;
        let (each, together) = (conv.in_channels / shape.moves, conv.in_channels / conv.groups);
        let mut runs = vec![];
        for moves in 0..shape.moves {
            for group in 0..conv.groups {
                let start = (moves * each).max(group * together);
                let end = ((moves + 1) * each).min((group + 1) * together);
                if start < end {
                    runs.push(Run { moves, group, channels: start..end });
                }
            }
        }
        let panels = Panels::new(micro, conv.out_channels / conv.groups);
        Deformable { isa, micro, shape, panels, pitch, strip, runs }
    }

    pub fn shape(&self) -> &DeformableShape {
        &self.shape
    }
    /// Input channels of one group.
    fn group_channels(&self) -> usize {
        self.shape.conv.in_channels / self.shape.conv.groups
    }
    /// Rows of the packed weights of a group.
    fn k(&self) -> usize {
        self.group_channels() * self.shape.conv.taps()
    }
    /// Floats of the packed weights.
    pub fn packed_floats(&self) -> usize {
        self.shape.conv.groups * self.panels.floats(self.k())
    }
    /// Floats of scratch of each thread.
    pub fn scratch_floats(&self) -> usize {
        self.strip * self.pitch
    }

    /// Packs weights of `[out][in/group][height][width]`. Without `exec` on this thread alone.
    pub fn pack(&self, exec: Option<&Exec<'_>>, weights: &[f32], packed: &mut [f32]) {
        let (conv, k) = (&self.shape.conv, self.k());
        assert!(weights.len() >= conv.weights(), "{} weights of {}", weights.len(), conv.weights());
        assert!(packed.len() >= self.packed_floats(), "{} floats for packed weights", packed.len());
        let floats = self.panels.floats(k);
        if floats == 0 {
            return;
        }
        let gemm = Gemm::new(self.isa, self.panels.n, k);
        for (g, packed) in packed.chunks_exact_mut(floats).take(conv.groups).enumerate() {
            let weights = &weights[g * self.panels.n * k..];
            // SAFETY: `n` runs of `k` weights each follow, as checked above.
            unsafe { gemm.pack_from(exec, weights.as_ptr(), k, true, conv.taps(), packed) };
        }
    }

    /// Convolves a channels-last `input`; pixels of it are `in_stride` floats apart and those of `out` are `out_stride`.
    pub fn run(
        &self,
        exec: &Exec<'_>,
        input: &[f32],
        in_stride: usize,
        moves: Moves<'_>,
        packed: &[f32],
        out: &mut [f32],
        out_stride: usize,
        epilogue: &Epilogue<'_>,
    ) {
        let (conv, pixels) = (&self.shape.conv, self.shape.conv.out_pixels());
        if pixels * conv.out_channels == 0 {
            return;
        }
        let needed = (conv.in_pixels().max(1) - 1) * in_stride + conv.in_channels;
        assert!(in_stride >= conv.in_channels, "pixels of {} floats overlap", conv.in_channels);
        assert!(conv.in_pixels() == 0 || input.len() >= needed, "{} floats of input, not {needed}", input.len());
        assert!(out_stride >= conv.out_channels, "pixels of {} floats overlap", conv.out_channels);
        assert!(
            out.len() >= (pixels - 1) * out_stride + conv.out_channels,
            "{} floats for {pixels} pixels of {out_stride}",
            out.len()
        );
        assert!(packed.len() >= self.packed_floats(), "{} floats for packed weights", packed.len());
        let planes = self.shape.moves * conv.taps();
        assert!(moves.offsets.len() >= 2 * planes * pixels, "{} offsets", moves.offsets.len());
        assert!(moves.mask.is_none_or(|m| m.len() >= planes * pixels), "a mask of another size");
        assert!(exec.scratch.floats() >= self.scratch_floats(), "scratch of {} floats", exec.scratch.floats());
        let tile_epilogue = TileEpilogue::new(self.isa, epilogue, 1.0, pixels, conv.out_channels);
        let of = |planes: usize, last: bool| {
            let each = pixels / conv.batch;
            Place { image: planes * each, plane: if last { 1 } else { each }, pixel: if last { planes } else { 1 } }
        };
        let samples = &Samples {
            of: self,
            input,
            in_stride,
            moves,
            offsets: of(2 * planes, moves.offsets_last),
            mask: of(planes, moves.mask_last),
        };
        let out = SharedMut::new(out);
        exec.each(pixels.div_ceil(self.strip), |strip, thread| {
            let strip = strip * self.strip..pixels.min((strip + 1) * self.strip);
            let mut scratch = exec.scratch.of(thread);
            let scratch = &mut scratch[..self.strip * self.pitch];
            let rows = strip.clone();
            // SAFETY: the lengths were checked above.
            unsafe {
                dispatch!(self.isa, <'a, S> (samples: &'a Samples<'a>, rows: Range<usize>, scratch: &'a mut [f32]) {
                    samples.fill::<S>(rows, scratch)
                })
            };
            for group in 0..conv.groups {
                let product = Product {
                    micro: self.micro,
                    panels: self.panels,
                    k: self.k(),
                    a: scratch[group * self.k()..].as_ptr(),
                    lda: self.pitch,
                    b: packed[group * self.panels.floats(self.k())..].as_ptr(),
                    c: out.as_ptr().wrapping_add(strip.start * out_stride + group * self.panels.n),
                    ldc: out_stride,
                    tile_epilogue,
                    first_row: strip.start,
                    first_column: group * self.panels.n,
                    all_columns: conv.out_channels,
                    stop: exec.stop,
                };
                // SAFETY: the samples are there, the lengths were checked above, and strips are disjoint.
                unsafe { product.run(0..strip.len(), 0..self.panels.count(), None, thread) };
            }
        });
    }
}

/// Floats from one image, plane or pixel to the next.
#[derive(Clone, Copy)]
struct Place {
    image: usize,
    plane: usize,
    pixel: usize,
}

impl Place {
    #[inline(always)]
    fn at(&self, image: usize, plane: usize, pixel: usize) -> usize {
        image * self.image + plane * self.plane + pixel * self.pixel
    }
}

struct Samples<'a> {
    of: &'a Deformable,
    input: &'a [f32],
    in_stride: usize,
    moves: Moves<'a>,
    offsets: Place,
    mask: Place,
}

/// Two neighbours on an axis and their weights; one that is not there weighs nothing.
#[derive(Clone, Copy)]
struct Pair {
    at: [Option<usize>; 2],
    weight: [f32; 2],
}

impl Samples<'_> {
    /// The samples of some pixels into rows of `groups x taps x channels`.
    ///
    /// # Safety
    /// Lengths are those that the shape says, and `rows` has room for all pixels.
    #[inline(always)]
    unsafe fn fill<S: Simd>(&self, pixels: Range<usize>, rows: &mut [f32]) {
        let conv = &self.of.shape.conv;
        let [_, out_h, out_w] = conv.out_spatial();
        let [_, height, width] = conv.in_spatial;
        let (taps, each) = (conv.taps(), self.of.group_channels());
        let mut blend = Blend::new();
        for (pixel, row) in pixels.zip(rows.chunks_exact_mut(self.of.pitch)) {
            let (image, pixel) = (pixel / (out_h * out_w), pixel % (out_h * out_w));
            let start = image * height * width;
            for tap in 0..taps {
                let still = |axis: usize, o: usize, k: usize| {
                    (o * conv.stride[axis] + k * conv.dilation[axis]) as f64 - conv.pad_begin[axis] as f64
                };
                let (y, x) =
                    (still(1, pixel / out_w, tap / conv.kernel[2]), still(2, pixel % out_w, tap % conv.kernel[2]));
                let mut moved = usize::MAX;
                let mut scale = 1.0;
                for run in &self.of.runs {
                    let plane = run.moves * taps + tap;
                    if moved != run.moves {
                        moved = run.moves;
                        let offset =
                            |i: usize| f64::from(self.moves.offsets[self.offsets.at(image, 2 * plane + i, pixel)]);
                        scale = self.moves.mask.map_or(1.0, |m| m[self.mask.at(image, plane, pixel)]);
                        blend.clear();
                        let rows = self.pair(y + offset(0), height);
                        let columns = self.pair(x + offset(1), width);
                        if let (Some(rows), Some(columns)) = (rows, columns) {
                            for t in 0..4 {
                                if let (Some(y), Some(x)) = (rows.at[t / 2], columns.at[t % 2]) {
                                    let from = (start + y * width + x) * self.in_stride;
                                    let weight = rows.weight[t / 2] * columns.weight[t % 2];
                                    blend.add(self.input.as_ptr().wrapping_add(from), weight);
                                }
                            }
                        }
                    }
                    let first = run.channels.start;
                    let to = (run.group * taps + tap) * each + first - run.group * each;
                    let to = &mut row[to..to + run.channels.len()];
                    // SAFETY: the pixels lie in the image and have all channels.
                    unsafe { blend.write::<S>(first, scale, to.as_mut_ptr(), to.len()) };
                }
            }
        }
    }

    /// The neighbours of a position, unless it is outside.
    #[inline(always)]
    fn pair(&self, at: f64, size: usize) -> Option<Pair> {
        let inside = at < size as f64 && if self.of.shape.fades { at > -1.0 } else { at >= 0.0 };
        if !inside {
            return None;
        }
        let low = at.floor();
        let part = (at - low) as f32;
        let low = low as isize;
        let there = |i: isize| usize::try_from(i).ok().filter(|i| *i < size);
        let high = if self.of.shape.fades { low + 1 } else { (low + 1).min(size as isize - 1) };
        Some(Pair { at: [there(low), there(high)], weight: [1.0 - part, part] })
    }
}
