//! Convolutions as matrix products that read the image itself: each tap of the filter is an offset added to the addresses of
//! the pixels. Rows are copied with their padding first, a strip at a time, which costs little beside the product.

use super::ConvShape;
use super::fill::{self, Input, Rows};
use crate::gemm::panels::Panels;
use crate::gemm::region::{Ending, Grid, Product, STRIP};
use crate::gemm::task::Task;
use crate::gemm::{FIRST_ROWS, Gemm, Micro};
use crate::{Epilogue, Exec, Isa, SharedMut, part_of};
use std::ops::Range;

/// A convolution of channels-last images with packed weights.
#[derive(Clone, Debug)]
pub struct Conv {
    isa: Isa,
    micro: &'static Micro,
    shape: ConvShape,
    /// Floats from pixel to pixel of the input.
    in_stride: usize,
    planar: bool,
    /// Groups taken together as one with zeros between them, so that narrow ones fill a vector.
    fused: usize,
    /// Panels of one (fused) group.
    panels: Panels,
    path: Path,
}

#[derive(Clone, Debug)]
enum Path {
    /// Pixels are the rows of a product.
    Pixels,
    /// Rows are copied with their padding.
    Rows {
        rows: Rows,
        /// Output rows of a strip.
        strip: usize,
        /// Offsets of the taps, those of one kernel row together.
        taps: Vec<usize>,
        per_row: usize,
        depth: usize,
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
        Conv::with_layout(isa, threads, shape, shape.in_channels, false)
    }

    fn with_layout(isa: Isa, _threads: usize, shape: ConvShape, in_stride: usize, planar: bool) -> Conv {
        shape.check();
        let isa = isa.here();
        let micro = Micro::of(isa);
        let each = (shape.out_channels / shape.groups).max(1);
        let fused = (1..=shape.groups)
            .rev()
            .find(|f| shape.groups.is_multiple_of(*f) && (*f == 1 || f * each <= 8))
            .unwrap_or(1);
        let panels = Panels::new(micro, shape.out_channels / (shape.groups / fused));
        let mut conv = Conv { isa, micro, shape, in_stride, planar, fused, panels, path: Path::Pixels };
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
        let mut taps = Vec::new();
        for z in 0..shape.kernel[0] {
            for y in 0..shape.kernel[1] {
                for x in 0..per_row {
                    let line = z * rows.plane + y * shape.dilation[1] * rows.row;
                    taps.push(line + x * shape.dilation[2] * rows.pitch);
                }
            }
        }
        Path::Rows { rows, strip, taps, per_row, depth }
    }

    /// Input channels of one (fused) group.
    fn group_channels(&self) -> usize {
        self.shape.in_channels / self.groups()
    }
    fn groups(&self) -> usize {
        self.shape.groups / self.fused
    }
    /// Rows of the packed weights of a group.
    fn k(&self) -> usize {
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
        Gemm::new(self.isa, self.panels.n, self.k())
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
        let needed = match self.planar {
            true => shape.in_pixels() * shape.in_channels,
            false => (shape.in_pixels().max(1) - 1) * self.in_stride + shape.in_channels,
        };
        assert!(shape.in_pixels() == 0 || input.len() >= needed, "{} floats of input, not {needed}", input.len());
        assert!(out_stride >= shape.out_channels, "pixels of {} floats overlap", shape.out_channels);
        assert!(
            out.len() >= (pixels - 1) * out_stride + shape.out_channels,
            "{} floats for {pixels} pixels of {out_stride}",
            out.len()
        );
        assert!(packed.len() >= self.packed_floats(), "{} floats for packed weights", packed.len());
        let ending = Ending::new(self.isa, epilogue, 1.0, pixels, shape.out_channels);
        if matches!(self.path, Path::Pixels) && self.groups() == 1 {
            let gemm = self.gemm();
            return gemm.run(exec, pixels, input, self.in_stride, packed, out, out_stride, epilogue);
        }
        assert!(exec.scratch.floats() >= self.scratch_floats(), "scratch of {} floats", exec.scratch.floats());
        let call = Call { conv: self, input, packed, out: SharedMut::new(out), out_stride, ending };
        let panels = self.groups() * self.panels.count();
        let mut grid = Grid::new(self.micro, exec.threads(), pixels, panels, self.k());
        let units = match self.path {
            Path::Rows { .. } => pixels / shape.out_spatial()[2],
            _ => pixels,
        };
        grid.rows = grid.rows.min(units);
        exec.each(grid.chunks(), |chunk, thread| {
            let (units, panels) = grid.part(chunk, units, panels);
            let mut scratch = exec.scratch.of(thread);
            // SAFETY: the slices were checked above, and chunks are disjoint rectangles of pixels and channels.
            unsafe { call.part(units, panels, &mut scratch, thread) };
        });
    }
}

/// One run of a convolution.
struct Call<'a> {
    conv: &'a Conv,
    input: &'a [f32],
    packed: &'a [f32],
    out: SharedMut<'a, f32>,
    out_stride: usize,
    ending: Ending<'a>,
}

impl Call<'_> {
    /// `units` are rows or pixels of the output; panels count through all groups.
    unsafe fn part(&self, units: Range<usize>, panels: Range<usize>, scratch: &mut [f32], thread: usize) {
        // SAFETY: what the caller promises is passed on.
        unsafe {
            match &self.conv.path {
                Path::Rows { rows, strip, taps, per_row, depth } => {
                    let [_, out_h, _] = self.conv.shape.out_spatial();
                    let mut row = units.start;
                    while row < units.end {
                        // Strips of equal height up to the end of the plane.
                        let (plane, y) = (row / out_h, row % out_h);
                        let end = (plane * out_h + out_h).min(units.end);
                        let strips = (end - row).div_ceil(*strip);
                        let count = part_of(end - row, strips, 0).len();
                        let taps = Taps { rows, taps, per_row: *per_row, depth: *depth };
                        self.strip(taps, plane, y..y + count, panels.clone(), scratch, thread);
                        row += count;
                    }
                }
                Path::Columns { pixels, pitch } => {
                    let mut start = units.start;
                    while start < units.end {
                        let strip = start..(start + pixels).min(units.end);
                        for (group, panels) in self.by_group(panels.clone()) {
                            let each = self.conv.group_channels();
                            let channels = group * each..(group + 1) * each;
                            let (shape, stride) = (&self.conv.shape, self.conv.in_stride);
                            fill::columns(shape, self.input, stride, channels, strip.clone(), *pitch, scratch);
                            self.pixels(scratch.as_ptr(), *pitch, group, strip.clone(), panels, thread);
                        }
                        start = strip.end;
                    }
                }
                Path::Pixels => {
                    for (group, panels) in self.by_group(panels) {
                        let at = units.start * self.conv.in_stride + group * self.conv.group_channels();
                        let a = self.input[at..].as_ptr();
                        self.pixels(a, self.conv.in_stride, group, units.clone(), panels, thread);
                    }
                }
            }
        }
    }

    /// The groups that a range of panels touches, each with its own panels.
    fn by_group(&self, panels: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let each = self.conv.panels.count();
        (panels.start / each..panels.end.div_ceil(each)).map(move |group| {
            let first = group * each;
            (group, panels.start.max(first) - first..panels.end.min(first + each) - first)
        })
    }

    /// Pixels whose taps lie side by side at `a`.
    unsafe fn pixels(
        &self,
        a: *const f32,
        lda: usize,
        group: usize,
        pixels: Range<usize>,
        panels: Range<usize>,
        thread: usize,
    ) {
        let conv = self.conv;
        let product = Product {
            micro: conv.micro,
            panels: conv.panels,
            k: conv.k(),
            a,
            lda,
            b: self.packed[group * conv.panels.floats(conv.k())..].as_ptr(),
            c: self.out.as_ptr().wrapping_add(pixels.start * self.out_stride + group * conv.panels.n),
            ldc: self.out_stride,
            ending: self.ending,
            first_row: pixels.start,
            first_column: group * conv.panels.n,
            all_columns: conv.shape.out_channels,
        };
        // SAFETY: the caller's promise; the rows of `a` are those pixels.
        unsafe { product.run(0..pixels.len(), panels, None, thread) }
    }

    /// A strip of rows of one plane of the output.
    unsafe fn strip(
        &self,
        taps: Taps<'_>,
        plane: usize,
        strip: Range<usize>,
        panels: Range<usize>,
        scratch: &mut [f32],
        thread: usize,
    ) {
        let conv = self.conv;
        let (shape, micro, k) = (&conv.shape, conv.micro, conv.k());
        let [out_d, out_h, out_w] = shape.out_spatial();
        let input = match conv.planar {
            true => Input::Planar(self.input),
            false => Input::ChannelsLast { data: self.input, stride: conv.in_stride },
        };
        taps.rows.fill(shape, input, plane / out_d, plane % out_d, strip.clone(), scratch);
        let first = plane * out_h;
        let paired = out_w <= micro.pair_rows;
        let tiles = out_w.div_ceil(micro.rows);
        let (mut from, mut to) = (shape.out_channels, 0);
        for (group, panels) in self.by_group(panels) {
            let packed = &self.packed[group * conv.panels.floats(k)..];
            for panel in panels {
                let width = conv.panels.width_of(panel);
                let column = group * conv.panels.n + panel * conv.panels.width;
                let panel_start = conv.panels.start(panel, k);
                let mut task = Task {
                    lda: shape.stride[2] * taps.rows.pitch,
                    depth: taps.depth,
                    ldc: self.out_stride,
                    columns: conv.panels.columns(panel),
                    ..Task::default()
                };
                (from, to) = (from.min(column), to.max(column + task.columns));
                let mut y = strip.start;
                while y < strip.end {
                    let together = if paired && y + 1 < strip.end { 2 } else { 1 };
                    let kernel_rows = taps.inside(shape, y..y + together);
                    let skipped = kernel_rows.start * taps.per_row;
                    task.taps = taps.taps[skipped..].as_ptr();
                    task.tap_count = kernel_rows.len() * taps.per_row;
                    task.b = packed[panel_start + skipped * taps.depth * width..].as_ptr();
                    let line = (y - strip.start) * shape.stride[1] * taps.rows.row;
                    let line = scratch[line..].as_ptr().wrapping_add(group * conv.group_channels());
                    let row = (first + y) * out_w;
                    for t in 0..tiles {
                        let tile = part_of(out_w, tiles, t);
                        let pixel = row + tile.start;
                        task.a[0] = line.wrapping_add(tile.start * task.lda);
                        task.c = self.out.as_ptr().wrapping_add(pixel * self.out_stride + column);
                        let run = if together == 2 {
                            task.a[1] = task.a[0].wrapping_add(shape.stride[1] * taps.rows.row);
                            micro.pair(tile.len(), width)
                        } else {
                            task.a[1] = task.a[0].wrapping_add(FIRST_ROWS * task.lda);
                            micro.tile(tile.len(), width)
                        };
                        // SAFETY: the copied rows hold every tap of the tile; the tile is this thread's own.
                        unsafe {
                            self.ending.direct(&mut task, pixel, column);
                            run(&task);
                        }
                    }
                    y += together;
                }
            }
        }
        let rows = (first + strip.start) * out_w..(first + strip.end) * out_w;
        let alone = to - from == shape.out_channels;
        // SAFETY: this thread has just written the rectangle.
        unsafe { self.ending.after(self.out.as_ptr(), self.out_stride, rows, from..to, alone, thread) };
    }
}

#[derive(Clone, Copy)]
struct Taps<'a> {
    rows: &'a Rows,
    taps: &'a [usize],
    per_row: usize,
    depth: usize,
}

impl Taps<'_> {
    /// Kernel rows that meet more than padding for any of these output rows. All of them when the kernel has depth.
    fn inside(&self, shape: &ConvShape, rows: Range<usize>) -> Range<usize> {
        let all = 0..shape.kernel[0] * shape.kernel[1];
        if shape.kernel[0] > 1 {
            return all;
        }
        let (pad, dilation) = (shape.pad_begin[1], shape.dilation[1]);
        let (low, high) = (rows.start * shape.stride[1], (rows.end - 1) * shape.stride[1]);
        // The last of the rows reaches highest up, the first one lowest down.
        let start = pad.saturating_sub(high).div_ceil(dilation).min(all.end);
        let below = (shape.in_spatial[1] + pad).saturating_sub(low);
        start..below.div_ceil(dilation).clamp(start, all.end)
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
        ConvPlanar { conv: Conv::with_layout(isa, threads, shape, shape.in_channels, true) }
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
