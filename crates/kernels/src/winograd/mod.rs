//! Convolution with 3 by 3 kernels in the transformed domain of Winograd: tiles of 4 by 4 outputs cost 36 multiplications
//! instead of 144. Weights are transformed once; a block of tiles is transformed, multiplied by
//! panels of weights and transformed back while it is in cache.

mod blocks;
mod pairs;
mod product;
mod transform;

pub use pairs::{WinogradPairs, worthwhile_in_pairs};

use crate::ConvShape;
use crate::epilogue::SplitEpilogue;
use crate::exec::Stop;
use crate::simd::{Entry, entry};
use crate::{Epilogue, Exec, Isa, Machine, SharedMut, part_of};
use blocks::{Blocks, matrix_step};
use product::Matrices;
use transform::{A, Floats, G, Gather, GatherTiles, Grid, Scatter, ScatterTiles, TILE};

/// A convolution of 3 by 3 with steps of 1.
#[derive(Clone, Debug)]
pub struct Winograd {
    isa: Isa,
    shape: ConvShape,
    grid: Grid,
    blocks: Blocks,
    kernels: Kernels,
}

#[derive(Clone)]
struct Kernels {
    gather: Entry<Gather<f32>>,
    scatter: Entry<Scatter>,
    products: product::Table,
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows", self.products.len())
    }
}

/// Whether the transformed domain is faster than the direct way on a machine, by a model of both. It counts in the time of one
/// multiply-add of 16 floats and was fitted to layers from 16 channels of 160 by 160 pixels to 512 of 7 by 7. What counts most is
/// that transforms cost the same for few channels as for many, and that there are four times as many weights to read: where those
/// come from memory while the processor could multiply, the direct way wins.
pub fn worthwhile(shape: &ConvShape, threads: usize, machine: &Machine) -> bool {
    if !Winograd::fits(shape) {
        return false;
    }
    let [_, height, width] = shape.out_spatial();
    let images = shape.batch * shape.in_spatial[0];
    let tiles = (images * height.div_ceil(TILE) * width.div_ceil(TILE)) as f64;
    let pixels = (images * height * width) as f64;
    let vectors = |channels: usize| channels.div_ceil(16) as f64;
    let (ins, outs) = (shape.in_channels as f64, vectors(shape.out_channels));
    let threads = threads.max(1);
    // Either method has each thread read its part of the weights, or all of them in turn.
    let reading = |matrices: usize| {
        let bytes = matrices as f64 * ins * outs * 64.0;
        bytes / (threads as f64 * machine.arrival(bytes as usize / threads, bytes as usize))
    };
    let threads = threads as f64;
    let transforms = 250.0 * vectors(shape.in_channels) + 300.0 * outs + 100.0;
    let here = (tiles * (MATRICES as f64 * ins * outs + transforms) / threads).max(reading(MATRICES));
    let direct = (pixels * 9.0 * ins * outs / threads).max(reading(9));
    here < 0.9 * direct
}

impl Winograd {
    /// Whether this kernel can do the convolution.
    pub fn fits(s: &ConvShape) -> bool {
        let flat = s.pad_begin[0] == 0 && s.pad_end[0] == 0;
        s.groups == 1 && s.kernel == [1, 3, 3] && s.stride == [1; 3] && s.dilation[1..] == [1, 1] && flat
    }

    pub fn new(isa: Isa, threads: usize, shape: ConvShape) -> Winograd {
        assert!(Winograd::fits(&shape), "not a 3 by 3 convolution with steps of 1: {shape:?}");
        let grid = Grid::new(&shape, TILE);
        let tiles = shape.batch * shape.in_spatial[0] * grid.tiles[0] * grid.tiles[1];
        let kernels = Kernels {
            gather: entry::<GatherTiles<Floats, A>, _>(isa),
            scatter: entry::<ScatterTiles, _>(isa),
            products: product::table(isa),
        };
        let (rows, panels) = (2 * kernels.products.len(), shape.out_channels.div_ceil(2 * isa.lanes()));
        let blocks = Blocks { tiles, count: 1, most: 1, parts: 1 };
        let this = Winograd { isa, shape, grid, blocks, kernels };
        let blocks = Blocks::new(tiles, rows, this.packed_floats() * 4, panels, threads.max(1));
        Winograd { blocks, ..this }
    }

    /// Output channels of a panel.
    fn panel(&self) -> usize {
        2 * self.isa.lanes()
    }

    /// Floats of packed weights.
    pub fn packed_floats(&self) -> usize {
        MATRICES * self.shape.in_channels * self.shape.out_channels.next_multiple_of(self.isa.lanes())
    }

    /// Transforms and packs weights of `[out, in, 3, 3]`, with threads where they are given.
    pub fn pack(&self, exec: Option<&Exec<'_>>, weights: &[f32], packed: &mut [f32]) {
        let (ins, outs) = (self.shape.in_channels, self.shape.out_channels);
        assert_eq!(weights.len(), outs * ins * 9, "weights of {:?}", self.shape);
        assert_eq!(packed.len(), self.packed_floats(), "packed weights of {:?}", self.shape);
        let packed = SharedMut::new(packed);
        let panel = |panel: usize| {
            let (c, width) = (panel * self.panel(), self.panel_width(panel));
            let start = c * MATRICES * ins;
            // SAFETY: panels do not overlap, and each is packed once.
            let packed = unsafe { packed.part(start..start + width * MATRICES * ins) };
            packed.fill(0.0);
            for channel in 0..ins {
                for out in 0..width.min(outs - c) {
                    let w = &weights[((c + out) * ins + channel) * 9..][..9];
                    let half = G.map(|g| [0, 1, 2].map(|j| (0..3).map(|k| g[k] * w[k * 3 + j] as f64).sum::<f64>()));
                    for (i, half) in half.iter().enumerate() {
                        for (j, g) in G.iter().enumerate() {
                            let x: f64 = (0..3).map(|k| half[k] * g[k]).sum();
                            packed[((i * A + j) * ins + channel) * width + out] = x as f32;
                        }
                    }
                }
            }
        };
        let panels = outs.div_ceil(self.panel());
        match exec {
            Some(exec) => exec.each(panels, |i, _| panel(i)),
            None => (0..panels).for_each(panel),
        }
    }

    /// Output channels of a panel, with what fills up the last vector.
    fn panel_width(&self, panel: usize) -> usize {
        (self.shape.out_channels - panel * self.panel()).min(self.panel()).next_multiple_of(self.isa.lanes())
    }

    /// Floats that each thread needs of scratch.
    pub fn scratch_floats(&self) -> usize {
        MATRICES * (self.v_step(self.blocks.most) + self.m_step(self.blocks.most))
    }

    /// Floats from matrix to matrix of transformed tiles, and of products.
    fn v_step(&self, tiles: usize) -> usize {
        matrix_step(tiles * self.shape.in_channels.next_multiple_of(self.isa.lanes()))
    }
    fn m_step(&self, tiles: usize) -> usize {
        // Products are made for an even number of tiles.
        matrix_step((tiles + 1) * self.panel())
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
        let images = s.batch * s.in_spatial[0];
        let in_pixels = images * self.grid.size[0] * self.grid.size[1];
        let pixels = images * self.grid.out[0] * self.grid.out[1];
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
        let job = Job {
            this: self,
            input,
            in_stride,
            packed,
            out: SharedMut::new(out),
            out_stride,
            epilogue,
            stop: exec.stop,
        };
        let Blocks { tiles, count, parts, .. } = self.blocks;
        exec.each(parts * count, |chunk, thread| {
            let tiles = part_of(tiles, count, chunk % count);
            let panels = part_of(s.out_channels.div_ceil(self.panel()), parts, chunk / count);
            job.block(tiles, panels, &mut exec.scratch.of(thread), thread);
        });
    }
}

/// Matrices of the transformed domain.
const MATRICES: usize = A * A;

/// One run.
struct Job<'a> {
    this: &'a Winograd,
    input: &'a [f32],
    in_stride: usize,
    packed: &'a [f32],
    out: SharedMut<'a, f32>,
    out_stride: usize,
    epilogue: SplitEpilogue<'a>,
    stop: Stop<'a>,
}

impl Job<'_> {
    fn block(&self, tiles: std::ops::Range<usize>, panels: std::ops::Range<usize>, scratch: &mut [f32], thread: usize) {
        let this = self.this;
        let (count, first) = (tiles.len(), tiles.start);
        if count == 0 || panels.is_empty() {
            return;
        }
        assert!(scratch.len() >= this.scratch_floats(), "scratch of {} floats", scratch.len());
        let (lanes, ins) = (this.isa.lanes(), this.shape.in_channels);
        let (v_step, m_step) = (this.v_step(count), this.m_step(count));
        let (v, m) = scratch.split_at_mut(MATRICES * v_step);
        let gather = Gather {
            grid: this.grid,
            input: self.input.as_ptr(),
            in_stride: self.in_stride,
            channels: ins,
            first,
            count,
            v: v.as_mut_ptr(),
            matrix_step: v_step,
        };
        // SAFETY: the input was checked at the door, scratch above.
        unsafe { (this.kernels.gather)(&gather) };
        let matrices = Matrices { count: MATRICES, tiles: count, lanes, cells: ins, block: lanes, v, v_step, m_step };
        for panel in panels.clone() {
            self.stop.check();
            let c = panel * this.panel();
            let width = this.panel_width(panel);
            let weights = &self.packed[c * MATRICES * ins..][..width * MATRICES * ins];
            matrices.multiply(&this.kernels.products, weights, width, m);
            let (adds, add_stride) = self.epilogue.adds();
            let at = |p: *const f32| if p.is_null() { p } else { p.wrapping_add(c) };
            let scatter = Scatter {
                grid: this.grid,
                first,
                count,
                m: m.as_ptr(),
                matrix_step: m_step,
                out: self.out.as_ptr().wrapping_add(c),
                out_stride: self.out_stride,
                channels: (this.shape.out_channels - c).min(width),
                bias: at(self.epilogue.bias()),
                adds: adds.map(at),
                add_stride,
                quick: self.epilogue.quick,
            };
            // SAFETY: output, bias and sum were checked at the door; the tiles and channels belong to this thread.
            unsafe { (this.kernels.scatter)(&scatter) };
        }
        if self.epilogue.has_rest() {
            let start = panels.start * this.panel();
            let end = (panels.end * this.panel()).min(this.shape.out_channels);
            self.rest(tiles, [start, end - start], thread);
        }
    }

    /// The rest of the epilogue, by rows of pixels of tiles next to each other.
    fn rest(&self, tiles: std::ops::Range<usize>, [c, channels]: [usize; 2], thread: usize) {
        let (this, size) = (self.this, TILE);
        let [tiles_y, tiles_x] = this.grid.tiles;
        let [height, width] = this.grid.out;
        let mut tile = tiles.start;
        while tile < tiles.end {
            let (image, ty, tx) = (tile / (tiles_y * tiles_x), tile / tiles_x % tiles_y, tile % tiles_x);
            let run = (tiles_x - tx).min(tiles.end - tile);
            let (x, end) = (tx * size, ((tx + run) * size).min(width));
            for y in ty * size..((ty + 1) * size).min(height) {
                let pixel = (image * height + y) * width + x;
                let rest = |pixel, pixels| {
                    // SAFETY: these pixels and channels were made by this thread alone.
                    unsafe {
                        self.epilogue.rest(this.isa, self.out, self.out_stride, [pixel, pixels], [c, channels], thread)
                    }
                };
                if channels == this.shape.out_channels {
                    rest(pixel, end - x);
                } else {
                    (pixel..pixel + end - x).for_each(|pixel| rest(pixel, 1));
                }
            }
            tile += run;
        }
    }
}
