//! One run of a direct convolution: strips of rows or pixels, panels over them, tiles of the strip over each panel.

use super::ConvShape;
use super::direct::{Conv, Path};
use super::fill::{self, Input, Rows};
use crate::exec::Stop;
use crate::gemm::region::{Product, TileEpilogue};
use crate::gemm::task::Task;
use crate::{SharedMut, part_of};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One run of a convolution.
pub(super) struct Call<'a> {
    pub(super) conv: &'a Conv,
    pub(super) input: &'a [f32],
    pub(super) packed: &'a [f32],
    pub(super) out: SharedMut<'a, f32>,
    pub(super) out_stride: usize,
    pub(super) tile_epilogue: TileEpilogue<'a>,
    /// The strip each thread has in its scratch, told by its first unit: the next chunk may need the same.
    pub(super) held: [AtomicUsize; HELD],
    pub(super) stop: Stop<'a>,
}

/// Tiles of a row from which it is long.
const LONG_ROW: usize = 4;

/// Floats of a panel, beyond which it does not stay in the nearest cache.
const NEAREST: usize = 8 * 1024;

/// Threads that remember what they hold.
pub(super) const HELD: usize = 64;

impl Call<'_> {
    /// `units` are rows or pixels of the output; panels count through all groups.
    ///
    /// # Safety
    /// The slices hold what the convolution says, and this thread alone writes the part.
    pub(super) unsafe fn part(&self, units: Range<usize>, panels: Range<usize>, scratch: &mut [f32], thread: usize) {
        // SAFETY: what the caller promises is passed on.
        unsafe {
            match &self.conv.path {
                Path::Rows { rows, strip, taps, per_row, depth, chunk_taps, blocks } => {
                    let [_, out_h, _] = self.conv.shape.out_spatial();
                    let mut row = units.start;
                    while row < units.end {
                        // Strips of equal height up to the end of the plane.
                        let (plane, y) = (row / out_h, row % out_h);
                        let end = (plane * out_h + out_h).min(units.end);
                        let strips = (end - row).div_ceil(*strip);
                        let count = part_of(end - row, strips, 0).len();
                        let (per_row, depth, chunk_taps, blocks) = (*per_row, *depth, *chunk_taps, *blocks);
                        let taps = Taps { rows, taps, per_row, depth, chunk_taps, blocks };
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
                            if self.is_other(start * self.conv.groups() + group, thread) {
                                let outside = f32::from_bits(self.conv.outside);
                                let pixels = strip.clone();
                                fill::columns(shape, self.input, stride, channels, pixels, *pitch, outside, scratch);
                            }
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

    /// Whether the thread's scratch has to be filled with another strip than it holds.
    fn is_other(&self, strip: usize, thread: usize) -> bool {
        // Each thread uses its own position alone.
        self.held.get(thread).is_none_or(|held| held.swap(strip, Ordering::Relaxed) != strip)
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
            tile_epilogue: self.tile_epilogue,
            first_row: pixels.start,
            first_column: group * conv.panels.n,
            all_columns: conv.shape.out_channels,
            stop: self.stop,
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
        let first = plane * out_h;
        // The rows of a chunk are cut into strips in one way only, so the first row tells which strip it is.
        if self.is_other(first + strip.start, thread) {
            let input = match (conv.planar, conv.planes) {
                (true, Some((planes, halves))) => Input::Pairs { data: self.input, planes, halves },
                (true, None) => Input::Planar(self.input),
                (false, _) => Input::ChannelsLast { data: self.input, stride: conv.in_stride },
            };
            let outside = f32::from_bits(conv.outside);
            taps.rows.fill(conv.isa, shape, input, plane / out_d, plane % out_d, strip.clone(), outside, scratch);
        }
        let paired = out_w <= micro.pair_rows;
        // Whole tiles of long rows in one call; few columns are rather cut evenly.
        let long = out_w.is_multiple_of(micro.rows) || out_w >= LONG_ROW * micro.rows;
        let below = micro.strip.filter(|_| micro.resumes && long);
        let all = taps.taps.len();
        let (mut from, mut to) = (shape.out_channels, 0);
        for (group, panels) in self.by_group(panels) {
            let packed = &self.packed[group * conv.panels.floats(k)..];
            for panel in panels.clone() {
                self.stop.check();
                let width = conv.panels.width_of(panel);
                let rows_stay = shape.kernel[2] > shape.stride[2] && k * width > NEAREST;
                let column = group * conv.panels.n + panel * conv.panels.width;
                let panel_start = conv.panels.start(panel, k);
                let mut task = Task {
                    lda: shape.stride[2] * taps.rows.pitch,
                    depth: taps.depth,
                    chunk_taps: taps.chunk_taps,
                    ldc: self.out_stride,
                    columns: conv.panels.columns(panel),
                    ldb: width,
                    thread,
                    rows_stay,
                    ..Task::default()
                };
                (from, to) = (from.min(column), to.max(column + task.columns));
                // Rows of a strip have about as many tiles each. The panels of a group lie one behind the other.
                let next = (below.is_none() && panel + 1 < panels.end)
                    .then(|| packed.as_ptr().wrapping_add(panel_start + k * width));
                let shared = strip.len().div_ceil(if paired { 2 } else { 1 }) * out_w.div_ceil(micro.rows);
                let mut asked = 0;
                for block in 0..taps.blocks {
                    let block = part_of(all, taps.blocks, block);
                    let mut y = strip.start;
                    while y < strip.end {
                        let together = if paired && y + 1 < strip.end { 2 } else { 1 };
                        // Pixels outside count unless they are zero.
                        let inside = match conv.outside {
                            0 => taps.inside(shape, y..y + together),
                            _ => 0..all,
                        };
                        let met = block.start.max(inside.start)..block.end.min(inside.end);
                        // A block that meets nothing but padding is left out, unless all are like that.
                        if met.is_empty() && (!inside.is_empty() || block.start > 0) {
                            y += together;
                            continue;
                        }
                        task.taps = taps.taps[met.start.min(all)..].as_ptr();
                        task.tap_count = met.len();
                        task.b = packed.as_ptr().wrapping_add(panel_start + met.start * taps.depth * width);
                        task.resume = met.start > inside.start;
                        let last = met.end >= inside.end;
                        let line = (y - strip.start) * shape.stride[1] * taps.rows.row;
                        let line = scratch[line..].as_ptr().wrapping_add(group * conv.group_channels());
                        let row = (first + y) * out_w;
                        let mut done = 0;
                        if let (1, Some(run)) = (together, below) {
                            task.a[0] = line;
                            task.c = self.out.as_ptr().wrapping_add(row * self.out_stride + column);
                            // SAFETY: the copied rows hold every tap of the row, which is this thread's own.
                            unsafe {
                                self.tile_epilogue.direct(&mut task, row, column, last);
                                done = run(&task, out_w);
                            }
                        }
                        let tiles = (out_w - done).div_ceil(micro.rows);
                        for t in 0..tiles {
                            let tile = part_of(out_w - done, tiles, t);
                            let tile = done + tile.start..done + tile.end;
                            let pixel = row + tile.start;
                            task.a[0] = line.wrapping_add(tile.start * task.lda);
                            task.c = self.out.as_ptr().wrapping_add(pixel * self.out_stride + column);
                            let run = if together == 2 {
                                task.rows = [tile.len(); 2];
                                task.low = tile.len();
                                task.a[1] = task.a[0].wrapping_add(shape.stride[1] * taps.rows.row);
                                micro.pair(tile.len(), width)
                            } else {
                                micro.start(&mut task, tile.len(), (out_w - done).div_ceil(tiles));
                                micro.tile(tile.len(), width)
                            };
                            task.ask_for(next, k * width, met.len() * taps.depth, asked, shared * taps.blocks);
                            asked += 1;
                            // SAFETY: the copied rows hold every tap of the tile; the tile is this thread's own.
                            unsafe {
                                self.tile_epilogue.direct(&mut task, pixel, column, last);
                                run(&task);
                            }
                        }
                        y += together;
                    }
                }
            }
        }
        let rows = (first + strip.start) * out_w..(first + strip.end) * out_w;
        let alone = to - from == shape.out_channels;
        // SAFETY: this thread has just written the rectangle.
        unsafe { self.tile_epilogue.after(self.out.as_ptr(), self.out_stride, rows, from..to, alone, thread) };
    }
}

#[derive(Clone, Copy)]
struct Taps<'a> {
    rows: &'a Rows,
    taps: &'a [usize],
    per_row: usize,
    depth: usize,
    chunk_taps: usize,
    blocks: usize,
}

impl Taps<'_> {
    /// Taps of kernel rows that meet more than padding for any of these output rows. All of them when the kernel has depth.
    fn inside(&self, shape: &ConvShape, rows: Range<usize>) -> Range<usize> {
        let all = shape.kernel[1];
        if shape.kernel[0] > 1 {
            return 0..self.taps.len();
        }
        let (pad, dilation) = (shape.pad_begin[1], shape.dilation[1]);
        let (low, high) = (rows.start * shape.stride[1], (rows.end - 1) * shape.stride[1]);
        // The last of the rows reaches highest up, the first one lowest down.
        let start = pad.saturating_sub(high).div_ceil(dilation).min(all);
        let below = (shape.in_spatial[1] + pad).saturating_sub(low);
        let end = below.div_ceil(dilation).clamp(start, all);
        start * self.per_row..end * self.per_row
    }
}
