//! Convolutions as matrix products that read the image itself: each tap of the filter is an offset added to the addresses of
//! the pixels. Rows are copied with their padding first, a strip at a time, which costs little beside the product.

use super::ConvShape;
use super::call::{Call, HELD};
use super::fill::Rows;
use crate::gemm::cells::{self, Numbers};
use crate::gemm::grid::{Grid, Size};
use crate::gemm::leave::Leaving;
use crate::gemm::panels::Panels;
use crate::gemm::region::{self, STRIP, TileEpilogue, chunks};
use crate::gemm::{Gemm, Micro};
use crate::{Epilogue, Exec, Halves, Isa, SharedMut, TypedEpilogue, TypedOut};
use std::sync::atomic::AtomicUsize;

/// A convolution of channels-last images with packed weights.
#[derive(Clone, Debug)]
pub struct Conv {
    pub(super) isa: Isa,
    pub(super) micro: &'static Micro,
    pub(super) shape: ConvShape,
    /// Floats from pixel to pixel of the input.
    pub(super) in_stride: usize,
    pub(super) planar: bool,
    /// Channels of the input, where they are planes of floats that become pairs of bf16 or f16.
    pub(super) planes: Option<(usize, Halves)>,
    /// Groups taken together as one with zeros between them, so that narrow ones fill a vector.
    pub(super) fused: usize,
    /// Panels of one (fused) group.
    pub(super) panels: Panels,
    pub(super) path: Path,
    pub(super) numbers: Numbers,
    /// The cell that stands for a pixel outside of the image.
    pub(super) outside: u32,
}

#[derive(Clone, Debug)]
pub(super) enum Path {
    /// Pixels are the rows of a product.
    Pixels,
    /// Rows are copied with their padding.
    Rows {
        rows: Rows,
        /// Output rows of a strip.
        strip: usize,
        /// Where runs of `depth` numbers that are summed lie, `per_row` of a kernel row after one another: taps, joined taps or
        /// parts of either.
        taps: Vec<usize>,
        per_row: usize,
        depth: usize,
        /// As in a task.
        chunk_taps: usize,
        /// Blocks of these that are summed one after another.
        blocks: usize,
    },
    /// The taps of each pixel are copied side by side.
    Columns { pixels: usize, pitch: usize },
}

/// Most floats of copied rows; beyond, taps are copied one by one.
const MOST_ROWS: usize = 4 * STRIP;
/// Pixels this many bytes apart, or a multiple, meet in few lines of the first-level cache.
const ALIASED: usize = 2048;

impl Conv {
    /// For `threads` that share the work.
    pub fn new(isa: Isa, threads: usize, shape: ConvShape) -> Conv {
        Conv::with_layout(isa, Micro::of(isa), threads, shape, shape.in_channels, false)
    }

    /// Of numbers in cells, with an output of any type: see [`Conv::run_typed`]. Pixels outside of the image are `outside`, which
    /// is zero unless the numbers are integers. `None` when the channels of a group do not fill their cells.
    pub fn of_cells(isa: Isa, threads: usize, shape: ConvShape, numbers: Numbers, outside: u8) -> Option<Conv> {
        let cell = numbers.per_cell();
        if !(shape.in_channels / shape.groups).is_multiple_of(cell) {
            return None;
        }
        let cells = shape.in_channels / cell;
        let shape = ConvShape { in_channels: cells, ..shape };
        let conv = Conv::with_layout(isa, numbers.micro(isa), threads, shape, cells, false);
        let conv = Conv { numbers, outside: u32::from_ne_bytes([outside; 4]), ..conv };
        (conv.fused == 1).then_some(conv)
    }

    /// In a type of 16 bits, of planes of floats, one a channel, four at most, which become pairs on the way; see [`Conv::run_typed`].
    pub fn of_planes(isa: Isa, threads: usize, shape: ConvShape, halves: Halves) -> Conv {
        let planes = shape.in_channels;
        assert!((1..=4).contains(&planes) && shape.groups == 1, "{planes} planes in {} groups", shape.groups);
        let numbers = halves.numbers();
        let cells = planes.div_ceil(numbers.per_cell());
        let shape = ConvShape { in_channels: cells, ..shape };
        let conv = Conv::with_layout(isa, numbers.micro(isa), threads, shape, cells, true);
        Conv { numbers, planes: Some((planes, halves)), ..conv }
    }

    fn with_layout(
        isa: Isa,
        micro: &'static Micro,
        _threads: usize,
        shape: ConvShape,
        in_stride: usize,
        planar: bool,
    ) -> Conv {
        shape.check();
        let each = (shape.out_channels / shape.groups).max(1);
        let fused = (1..=shape.groups)
            .rev()
            .find(|f| shape.groups.is_multiple_of(*f) && (*f == 1 || f * each <= 8))
            .unwrap_or(1);
        let panels = Panels::new(micro, shape.out_channels / (shape.groups / fused));
        let mut conv = Conv {
            isa,
            micro,
            shape,
            in_stride,
            planar,
            planes: None,
            fused,
            panels,
            path: Path::Pixels,
            numbers: Numbers::F32,
            outside: 0,
        };
        conv.path = conv.choose();
        conv
    }

    /// The same for an input whose pixels are `in_stride` floats apart.
    pub fn with_in_stride(self, in_stride: usize) -> Conv {
        assert!(in_stride >= self.shape.in_channels, "pixels of {} floats overlap", self.shape.in_channels);
        Conv { in_stride, ..self }
    }

    pub fn shape(&self) -> &ConvShape {
        &self.shape
    }

    fn choose(&self) -> Path {
        let shape = &self.shape;
        if shape.is_pointwise() && !self.planar {
            return Path::Pixels;
        }
        let channels = shape.in_channels;
        let aliased = (channels * shape.stride[2] * 4).is_multiple_of(ALIASED) && !self.planar;
        let rows = Rows::new(shape, channels + if aliased { 16 } else { 0 });
        let floats = |strip: usize| shape.kernel[0] * Rows::under(shape, strip) * rows.row;
        let out_width = shape.out_spatial()[2];
        if !self.planar && (floats(1) > MOST_ROWS || out_width < 4 || shape.taps() == 1) {
            let pitch = self.k() + if (self.k() * 4).is_multiple_of(ALIASED) { 16 } else { 0 };
            let pixels = (STRIP / pitch.max(1) / self.micro.rows).max(1) * self.micro.rows;
            return Path::Columns { pixels, pitch };
        }
        let out_rows = shape.out_spatial()[1].max(1);
        let strip = (1..=out_rows).take_while(|s| floats(*s) <= 2 * STRIP).last().unwrap_or(1);
        let rows = rows.sized(shape, strip);
        // Neighbouring taps of a row are neighbours in memory when nothing lies between the pixels.
        let joined = shape.dilation[2] == 1 && shape.groups == self.fused && rows.pitch == channels;
        let (per_row, depth) =
            if joined { (1, shape.kernel[2] * channels) } else { (shape.kernel[2], self.group_channels()) };
        let [pieces, chunk_taps] = if self.micro.resumes { chunks(depth) } else { [1, 0] };
        let (per_row, depth) = (per_row * pieces, depth / pieces);
        let mut taps = Vec::new();
        for z in 0..shape.kernel[0] {
            for y in 0..shape.kernel[1] {
                for x in 0..per_row {
                    let line = z * rows.plane + y * shape.dilation[1] * rows.row;
                    taps.push(line + x / pieces * shape.dilation[2] * rows.pitch + x % pieces * depth);
                }
            }
        }
        // A panel leaves room in the cache for the rows it is multiplied with.
        let blocks = match self.micro.resumes {
            true => (self.k() * self.micro.width).div_ceil(STRIP + STRIP / 2).clamp(1, taps.len().max(1)),
            false => 1,
        };
        Path::Rows { rows, strip, taps, per_row, depth, chunk_taps, blocks }
    }

    /// Input channels of one (fused) group.
    pub(super) fn group_channels(&self) -> usize {
        self.shape.in_channels / self.groups()
    }
    pub(super) fn groups(&self) -> usize {
        self.shape.groups / self.fused
    }
    /// Rows of the packed weights of a group.
    pub(super) fn k(&self) -> usize {
        self.group_channels() * self.shape.taps()
    }

    /// Floats of the packed weights.
    pub fn packed_floats(&self) -> usize {
        self.groups() * self.panels.floats(self.k())
    }

    /// Floats of scratch of each thread.
    pub fn scratch_floats(&self) -> usize {
        match &self.path {
            Path::Pixels if self.groups() == 1 => self.gemm().scratch_floats(),
            Path::Pixels => 0,
            Path::Rows { rows, .. } => self.shape.kernel[0] * rows.plane,
            Path::Columns { pixels, pitch } => pixels * pitch,
        }
    }

    fn gemm(&self) -> Gemm {
        Gemm::with_micro(self.isa, self.micro, self.panels.n, self.k())
    }

    /// Packs weights of `[groups][out/group][in/group][depth][height][width]`. Without `exec` on this thread alone.
    pub fn pack(&self, exec: Option<&Exec<'_>>, weights: &[f32], packed: &mut [f32]) {
        let (taps, k) = (self.shape.taps(), self.k());
        assert!(weights.len() >= self.shape.weights(), "{} weights of {}", weights.len(), self.shape.weights());
        assert!(packed.len() >= self.packed_floats(), "{} floats for packed weights", packed.len());
        let floats = self.panels.floats(k);
        if floats == 0 {
            return;
        }
        let (each_in, each_out) = (self.group_channels() / self.fused, self.panels.n / self.fused);
        for (g, packed) in packed.chunks_exact_mut(floats).take(self.groups()).enumerate() {
            let weights = &weights[g * self.fused * each_in * each_out * taps..];
            if self.fused == 1 {
                // SAFETY: `n` runs of `k` weights each follow, as checked above.
                unsafe { self.gemm().pack_from(exec, weights.as_ptr(), k, true, taps, packed) };
                continue;
            }
            // One narrow panel, with zeros where a group meets the channels of another.
            packed.fill(0.0);
            let width = self.panels.width_of(0);
            for (i, w) in weights.iter().take(self.fused * each_in * each_out * taps).enumerate() {
                let (tap, c, o) = (i % taps, i / taps % each_in, i / (taps * each_in));
                let channel = o / each_out * each_in + c;
                packed[(tap * self.group_channels() + channel) * width + o] = *w;
            }
        }
    }

    /// Packs weights of 8 bits, as [`Conv::pack`] does floats.
    pub fn pack_i8(&self, weights: &[i8], packed: &mut [f32]) {
        self.pack_cells(weights, packed, |cell| std::array::from_fn(|i| cell[i] as u8));
    }

    /// Packs weights given as bits of bf16 or f16.
    pub fn pack_halves(&self, weights: &[u16], packed: &mut [f32]) {
        self.pack_cells(weights, packed, |cell| {
            let [a, b] = [cell[0], cell[1]].map(u16::to_le_bytes);
            [a[0], a[1], b[0], b[1]]
        });
    }

    /// Packs weights of 32 bits into cells of their own.
    pub fn pack_f32(&self, weights: &[f32], packed: &mut [f32]) {
        self.pack_cells(weights, packed, |cell| cell[0].to_le_bytes());
    }

    fn pack_cells<T: Copy + Default>(&self, weights: &[T], packed: &mut [f32], bytes: impl Fn([T; 4]) -> [u8; 4]) {
        let (taps, cells, each) = (self.shape.taps(), self.group_channels(), self.numbers.per_cell());
        let channels = self.planes.map_or(cells * each, |(planes, _)| planes);
        let (all, n) = (channels * taps, self.panels.n);
        assert!(weights.len() >= self.groups() * n * all, "{} weights", weights.len());
        assert!(packed.len() >= self.packed_floats(), "{} floats for packed weights", packed.len());
        let size = self.panels.floats(self.k());
        for (group, packed) in packed.chunks_exact_mut(size.max(1)).take(self.groups()).enumerate() {
            let weights = &weights[group * n * all..];
            cells::pack(&self.panels, taps, cells, packed, |column, tap, cell| {
                let mut numbers = [T::default(); 4];
                let there = each.min(channels - cell * each);
                for (i, number) in numbers[..there].iter_mut().enumerate() {
                    *number = weights[column * all + (cell * each + i) * taps + tap];
                }
                bytes(numbers)
            });
        }
    }

    /// Whether what the epilogue adds may lie in the output.
    pub fn adds_over(&self, epilogue: &Epilogue<'_>) -> bool {
        let k = match self.path {
            Path::Rows { blocks: 1, .. } => 0,
            _ => self.k(),
        };
        region::adds_over(k, epilogue)
    }

    /// Convolves a channels-last `input`; pixels of `out` are `out_stride` floats apart.
    pub fn run(
        &self,
        exec: &Exec<'_>,
        input: &[f32],
        packed: &[f32],
        out: &mut [f32],
        out_stride: usize,
        epilogue: &Epilogue<'_>,
    ) {
        let (shape, pixels) = (&self.shape, self.shape.out_pixels());
        if pixels * shape.out_channels == 0 {
            return;
        }
        assert!(self.micro.resumes, "a convolution of cells has a typed output");
        assert!(out_stride >= shape.out_channels, "pixels of {} floats overlap", shape.out_channels);
        assert!(
            out.len() >= (pixels - 1) * out_stride + shape.out_channels,
            "{} floats for {pixels} pixels of {out_stride}",
            out.len()
        );
        let mut tile_epilogue = TileEpilogue::new(self.isa, epilogue, 1.0, pixels, shape.out_channels);
        let out = SharedMut::new(out);
        if epilogue.add_own {
            assert!(self.adds_over(epilogue), "{epilogue:?} cannot add what the output holds");
            tile_epilogue = tile_epilogue.over(out.as_ptr(), out_stride);
        }
        self.convolve(exec, input, packed, out, out_stride, tile_epilogue);
    }

    /// Convolves a channels-last `input` of cells; pixels of `out` are `out_stride` elements apart.
    pub fn run_typed(
        &self,
        exec: &Exec<'_>,
        input: &[f32],
        packed: &[f32],
        out: TypedOut<'_>,
        out_stride: usize,
        epilogue: &TypedEpilogue<'_>,
    ) {
        let (shape, pixels) = (&self.shape, self.shape.out_pixels());
        if pixels * shape.out_channels == 0 {
            return;
        }
        assert!(!self.micro.resumes, "a convolution of floats has an output of floats");
        let integer = self.numbers == Numbers::U8I8;
        let leaving = Leaving::new(self.isa, integer, epilogue, out, out_stride, pixels, shape.out_channels);
        let tile_epilogue = TileEpilogue::leaving(self.isa, &leaving);
        self.convolve(exec, input, packed, SharedMut::new(&mut []), 0, tile_epilogue);
    }

    fn convolve(
        &self,
        exec: &Exec<'_>,
        input: &[f32],
        packed: &[f32],
        out: SharedMut<'_, f32>,
        out_stride: usize,
        tile_epilogue: TileEpilogue<'_>,
    ) {
        let (shape, pixels) = (&self.shape, self.shape.out_pixels());
        let needed = match self.planar {
            true => shape.in_pixels() * self.planes.map_or(shape.in_channels, |(planes, _)| planes),
            false => (shape.in_pixels().max(1) - 1) * self.in_stride + shape.in_channels,
        };
        assert!(shape.in_pixels() == 0 || input.len() >= needed, "{} floats of input, not {needed}", input.len());
        assert!(packed.len() >= self.packed_floats(), "{} floats for packed weights", packed.len());
        if matches!(self.path, Path::Pixels) && self.groups() == 1 {
            let rows = (pixels, input, self.in_stride);
            return self.gemm().multiply(exec, rows, packed, out.as_ptr(), out_stride, tile_epilogue);
        }
        assert!(exec.scratch.floats() >= self.scratch_floats(), "scratch of {} floats", exec.scratch.floats());
        let held = [const { AtomicUsize::new(usize::MAX) }; HELD];
        let call = Call { conv: self, input, packed, out, out_stride, tile_epilogue, held, stop: exec.stop };
        let panels = self.groups() * self.panels.count();
        let units = match self.path {
            Path::Rows { .. } => pixels / shape.out_spatial()[2],
            _ => pixels,
        };
        let copied = !matches!(self.path, Path::Pixels);
        let grid = Grid::new(self.micro, exec.threads(), Size { m: pixels, units, panels, k: self.k(), copied });
        exec.each(grid.chunks(), |chunk, thread| {
            let (units, panels) = grid.part(chunk, units, panels);
            let mut scratch = exec.scratch.of(thread);
            // SAFETY: the slices were checked above, and chunks are disjoint rectangles of pixels and channels. The table is
            // that of a level of this machine.
            unsafe {
                self.micro.around(|| call.part(units.clone(), panels.clone(), &mut scratch, thread));
            }
        });
    }
}

/// A convolution of an image given as planes (batch, channels, then space) into one that lies channels last: the first layer
/// of a network. For few input channels.
#[derive(Clone, Debug)]
pub struct ConvPlanar {
    conv: Conv,
}

impl ConvPlanar {
    pub fn new(isa: Isa, threads: usize, shape: ConvShape) -> ConvPlanar {
        ConvPlanar { conv: Conv::with_layout(isa, Micro::of(isa), threads, shape, shape.in_channels, true) }
    }
    pub fn shape(&self) -> &ConvShape {
        self.conv.shape()
    }
    pub fn packed_floats(&self) -> usize {
        self.conv.packed_floats()
    }
    pub fn scratch_floats(&self) -> usize {
        self.conv.scratch_floats()
    }
    pub fn pack(&self, exec: Option<&Exec<'_>>, weights: &[f32], packed: &mut [f32]) {
        self.conv.pack(exec, weights, packed);
    }
    pub fn run(
        &self,
        exec: &Exec<'_>,
        input: &[f32],
        packed: &[f32],
        out: &mut [f32],
        out_stride: usize,
        epilogue: &Epilogue<'_>,
    ) {
        self.conv.run(exec, input, packed, out, out_stride, epilogue);
    }
}
