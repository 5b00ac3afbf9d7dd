//! The same in bf16, two numbers a cell: tiles of 2 by 2 outputs cost 16 multiplications instead of 36. Larger tiles would save
//! more, but transformed numbers are rounded to 8 bits, and a tile of 4 by 4 multiplies those errors: on random images the mean
//! error of tiles of 2 is twice, of tiles of 4 six times that of the direct way.

use super::blocks::{Blocks, matrix_step};
use super::product::{self, Matrices};
use super::transform::{Domain, Gather, GatherTiles, Grid};
use crate::cast::{Brain, f32_to_brain};
use crate::exec::Stop;
use crate::gemm::leave::{LeaveFn, Leaving, SUMS, leave_of};
use crate::gemm::task::Target;
use crate::simd::{Brains, Entry, Kernel, Native, Shifted, Simd, entry, unroll};
use crate::{ConvShape, Exec, Isa, Machine, Numbers, SharedMut, TypedEpilogue, TypedOut, part_of};
use std::marker::PhantomData;
use std::ops::Range;

/// Outputs of a tile on each axis, and inputs.
const TILE: usize = 2;
const A: usize = TILE + 2;
const MATRICES: usize = A * A;
/// Numbers of a cell.
const PAIR: usize = 2;
/// Tiles that leave at once.
const TOGETHER: usize = 8;

/// One dimension of the transform of weights, at the points 0, 1, -1 and infinity.
const G: [[f64; 3]; A] = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]];

/// Numbers of bf16 between the transforms.
struct Pairs<B>(PhantomData<B>);

impl<B: Brains> Domain<A> for Pairs<B> {
    type Number = Brain;
    #[inline(always)]
    fn forward<S: Simd>(d: [S; A]) -> [S; A] {
        [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]
    }
    #[inline(always)]
    unsafe fn store<S: Simd>(v: S, to: *mut Brain) {
        // SAFETY: the caller's promise.
        unsafe { B::store(v, to) }
    }
}

/// Products of some tiles next to each other, to be turned into two rows of sums.
struct Scatter {
    m: *const f32,
    matrix_step: usize,
    count: usize,
    vectors: usize,
    /// Two rows of `TOGETHER * TILE` pixels.
    sums: *mut f32,
}

struct ScatterTiles;

impl Kernel for ScatterTiles {
    type Args<'a> = &'a Scatter;
    type Out = ();
    #[inline(always)]
    unsafe fn run<L: Simd>(s: &Scatter) {
        // SAFETY: the matrices hold the tiles, the sums all pixels of them.
        unsafe {
            let zero = L::splat(0.0);
            for t in 0..s.count {
                for v in 0..s.vectors {
                    let from = s.m.add((t * s.vectors + v) * L::N);
                    let mut mid = [[zero; A]; TILE];
                    unroll!(j < A, 4, {
                        let mut d = [zero; A];
                        unroll!(i < A, 4, {
                            d[i] = L::load(from.add((i * A + j) * s.matrix_step));
                        });
                        let d = backward(d);
                        unroll!(i < TILE, [0 1] { mid[i][j] = d[i]; });
                    });
                    unroll!(i < TILE, [0 1] {
                        let d = backward(mid[i]);
                        let to = s.sums.add(((i * TOGETHER + t) * TILE) * SUMS + v * L::N);
                        unroll!(j < TILE, [0 1] { d[j].store(to.add(j * SUMS)); });
                    });
                }
            }
        }
    }
}

#[inline(always)]
fn backward<S: Simd>(m: [S; A]) -> [S; TILE] {
    [m[0] + m[1] + m[2], m[1] - m[2] - m[3]]
}

/// Whether this is faster than the direct way with pairs, by the model of [`super::worthwhile`]. It counts in the time of one
/// product of 16 pairs.
pub fn worthwhile_in_pairs(isa: Isa, shape: &ConvShape, threads: usize, machine: &Machine) -> bool {
    // Tile registers multiply sixteen times as much in that time, and nothing is left to be saved.
    if !WinogradPairs::fits(shape) || isa.has_tiles() {
        return false;
    }
    let [_, height, width] = shape.out_spatial();
    let images = shape.batch * shape.in_spatial[0];
    let tiles = (images * height.div_ceil(TILE) * width.div_ceil(TILE)) as f64;
    let pixels = (images * height * width) as f64;
    let vectors = |channels: usize| channels.div_ceil(16) as f64;
    let (cells, outs) = ((shape.in_channels / PAIR) as f64, vectors(shape.out_channels));
    let threads = threads.max(1);
    let reading = |matrices: usize| {
        let bytes = matrices as f64 * cells * outs * 64.0;
        bytes / (threads as f64 * machine.arrival(bytes as usize / threads, bytes as usize))
    };
    let threads = threads as f64;
    let transforms = 80.0 * vectors(shape.in_channels) + 110.0 * outs + 40.0;
    let here = (tiles * (MATRICES as f64 * cells * outs + transforms) / threads).max(reading(MATRICES));
    let direct = (pixels * 9.0 * cells * outs / threads).max(reading(9));
    here < 0.9 * direct
}

/// A convolution of 3 by 3 with steps of 1, of bf16.
#[derive(Clone, Debug)]
pub struct WinogradPairs {
    isa: Isa,
    shape: ConvShape,
    grid: Grid,
    blocks: Blocks,
    kernels: Kernels,
}

#[derive(Clone)]
struct Kernels {
    gather: Entry<Gather<Brain>>,
    scatter: Entry<Scatter>,
    products: product::Table,
    leave: LeaveFn,
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows", self.products.len())
    }
}

impl WinogradPairs {
    /// Whether this kernel can do the convolution.
    pub fn fits(shape: &ConvShape) -> bool {
        super::Winograd::fits(shape) && shape.in_channels.is_multiple_of(PAIR)
    }

    pub fn new(isa: Isa, threads: usize, shape: ConvShape) -> WinogradPairs {
        assert!(WinogradPairs::fits(&shape), "not a 3 by 3 convolution of pairs with steps of 1: {shape:?}");
        let grid = Grid::new(&shape, TILE);
        let kernels = Kernels {
            gather: match Numbers::Bf16.is_native(isa) {
                true => entry::<GatherTiles<Pairs<Native>, A>, _>(isa),
                false => entry::<GatherTiles<Pairs<Shifted>, A>, _>(isa),
            },
            scatter: entry::<ScatterTiles, _>(isa),
            products: product::table_of_pairs(isa),
            leave: leave_of(isa),
        };
        let tiles = shape.batch * shape.in_spatial[0] * grid.tiles[0] * grid.tiles[1];
        let (rows, panels) = (2 * kernels.products.len(), shape.out_channels.div_ceil(2 * isa.lanes()));
        let blocks = Blocks { tiles, count: 1, most: 1, parts: 1 };
        let this = WinogradPairs { isa, shape, grid, blocks, kernels };
        let blocks = Blocks::new(tiles, rows, this.packed_floats() * 4, panels, threads.max(1));
        WinogradPairs { blocks, ..this }
    }

    pub fn shape(&self) -> &ConvShape {
        &self.shape
    }

    fn cells(&self) -> usize {
        self.shape.in_channels / PAIR
    }

    /// Output channels of a panel.
    fn panel(&self) -> usize {
        2 * self.isa.lanes()
    }

    /// The same with what fills up the last vector.
    fn panel_width(&self, panel: usize) -> usize {
        (self.shape.out_channels - panel * self.panel()).min(self.panel()).next_multiple_of(self.isa.lanes())
    }

    /// Floats of packed weights.
    pub fn packed_floats(&self) -> usize {
        MATRICES * self.cells() * self.shape.out_channels.next_multiple_of(self.isa.lanes())
    }

    /// Transforms and packs weights of `[out, in, 3, 3]`, with threads where they are given.
    pub fn pack(&self, exec: Option<&Exec<'_>>, weights: &[f32], packed: &mut [f32]) {
        let (ins, outs, cells) = (self.shape.in_channels, self.shape.out_channels, self.cells());
        assert_eq!(weights.len(), outs * ins * 9, "weights of {:?}", self.shape);
        assert_eq!(packed.len(), self.packed_floats(), "packed weights of {:?}", self.shape);
        let packed = SharedMut::new(packed);
        let panel = |panel: usize| {
            let (c, width) = (panel * self.panel(), self.panel_width(panel));
            let start = c * MATRICES * cells;
            // SAFETY: panels do not overlap, and each is packed once.
            let packed = unsafe { packed.part(start..start + width * MATRICES * cells) };
            packed.fill(0.0);
            for cell in 0..cells {
                for out in 0..width.min(outs - c) {
                    let [low, high] = [0, 1].map(|i| {
                        let from = ((c + out) * ins + cell * PAIR + i) * 9;
                        transformed(&weights[from..from + 9])
                    });
                    for q in 0..MATRICES {
                        let bits = u32::from(low[q].0) | u32::from(high[q].0) << 16;
                        packed[(q * cells + cell) * width + out] = f32::from_bits(bits);
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

    /// Floats that each thread needs of scratch.
    pub fn scratch_floats(&self) -> usize {
        MATRICES * (self.v_step(self.blocks.most) + self.m_step(self.blocks.most)) + LEAVING
    }

    /// Floats from matrix to matrix of transformed tiles, and of products.
    fn v_step(&self, tiles: usize) -> usize {
        matrix_step(tiles * self.shape.in_channels.next_multiple_of(self.isa.lanes()) / PAIR)
    }
    fn m_step(&self, tiles: usize) -> usize {
        // Products are made for an even number of tiles.
        matrix_step((tiles + 1) * self.panel())
    }

    /// Convolves the bits of bf16 numbers; strides are numbers from pixel to pixel.
    pub fn run(
        &self,
        exec: &Exec<'_>,
        input: &[u16],
        in_stride: usize,
        packed: &[f32],
        out: TypedOut<'_>,
        out_stride: usize,
        epilogue: &TypedEpilogue<'_>,
    ) {
        let s = &self.shape;
        let images = s.batch * s.in_spatial[0];
        let in_pixels = images * self.grid.size[0] * self.grid.size[1];
        let pixels = images * self.grid.out[0] * self.grid.out[1];
        if pixels == 0 || s.out_channels == 0 {
            return;
        }
        assert!(in_stride >= s.in_channels, "pixels overlap: {in_stride}");
        assert!(in_pixels == 0 || input.len() >= (in_pixels - 1) * in_stride + s.in_channels, "input of {s:?}");
        assert_eq!(packed.len(), self.packed_floats(), "packed weights of {s:?}");
        let leaving = Leaving::new(self.isa, false, epilogue, out, out_stride, pixels, s.out_channels);
        let job = Job { this: self, input, in_stride, packed, leaving: &leaving, stop: exec.stop };
        let Blocks { tiles, count, parts, .. } = self.blocks;
        exec.each(parts * count, |chunk, thread| {
            let tiles = part_of(tiles, count, chunk % count);
            let panels = part_of(s.out_channels.div_ceil(self.panel()), parts, chunk / count);
            job.block(tiles, panels, &mut exec.scratch.of(thread), thread);
        });
    }
}

/// Floats of the sums that leave.
const LEAVING: usize = TILE * TOGETHER * TILE * SUMS;

/// A filter in the transformed domain.
fn transformed(w: &[f32]) -> [Brain; MATRICES] {
    let half = G.map(|g| [0, 1, 2].map(|j| (0..3).map(|k| g[k] * f64::from(w[k * 3 + j])).sum::<f64>()));
    std::array::from_fn(|q| {
        let (half, g) = (&half[q / A], &G[q % A]);
        f32_to_brain((0..3).map(|k| half[k] * g[k]).sum::<f64>() as f32)
    })
}

/// One run.
struct Job<'a> {
    this: &'a WinogradPairs,
    input: &'a [u16],
    in_stride: usize,
    packed: &'a [f32],
    leaving: &'a Leaving<'a>,
    stop: Stop<'a>,
}

impl Job<'_> {
    fn block(&self, tiles: Range<usize>, panels: Range<usize>, scratch: &mut [f32], thread: usize) {
        let this = self.this;
        let count = tiles.len();
        if count == 0 || panels.is_empty() {
            return;
        }
        assert!(scratch.len() >= this.scratch_floats(), "scratch of {} floats", scratch.len());
        let (v_step, m_step) = (this.v_step(count), this.m_step(count));
        let (sums, scratch) = scratch.split_at_mut(LEAVING);
        let (v, m) = scratch.split_at_mut(MATRICES * v_step);
        let gather = Gather {
            grid: this.grid,
            input: self.input.as_ptr().cast(),
            in_stride: self.in_stride,
            channels: this.shape.in_channels,
            first: tiles.start,
            count,
            v: v.as_mut_ptr().cast(),
            matrix_step: v_step * PAIR,
        };
        // SAFETY: the input was checked at the door, scratch above.
        unsafe { (this.kernels.gather)(&gather) };
        let (lanes, cells) = (this.isa.lanes(), this.cells());
        let matrices = Matrices { count: MATRICES, tiles: count, lanes, cells, block: lanes / PAIR, v, v_step, m_step };
        for panel in panels {
            self.stop.check();
            let c = panel * this.panel();
            let width = this.panel_width(panel);
            let weights = &self.packed[c * MATRICES * cells..][..width * MATRICES * cells];
            matrices.multiply(&this.kernels.products, weights, width, m);
            let columns = (this.shape.out_channels - c).min(width);
            let leaving = std::ptr::from_ref(self.leaving).cast();
            self.leave(
                Target { row: 0, column: c, columns, thread, leaving },
                &tiles,
                (m, m_step, width / lanes),
                sums,
            );
        }
    }

    /// Tiles next to each other back to pixels, and those to the output.
    fn leave(
        &self,
        mut target: Target,
        tiles: &Range<usize>,
        (m, m_step, vectors): (&[f32], usize, usize),
        sums: &mut [f32],
    ) {
        let this = self.this;
        let [tiles_y, tiles_x] = this.grid.tiles;
        let [height, width] = this.grid.out;
        let mut tile = tiles.start;
        while tile < tiles.end {
            let (image, ty, tx) = (tile / (tiles_y * tiles_x), tile / tiles_x % tiles_y, tile % tiles_x);
            let count = (tiles_x - tx).min(tiles.end - tile).min(TOGETHER);
            let from = m[(tile - tiles.start) * vectors * this.isa.lanes()..].as_ptr();
            let scatter = Scatter { m: from, matrix_step: m_step, count, vectors, sums: sums.as_mut_ptr() };
            // SAFETY: the matrices hold these tiles, and `sums` is large enough for as many.
            unsafe { (this.kernels.scatter)(&scatter) };
            let (x, end) = (tx * TILE, ((tx + count) * TILE).min(width));
            for i in 0..TILE.min(height - ty * TILE) {
                target.row = (image * height + ty * TILE + i) * width + x;
                let line = &mut sums[i * TOGETHER * TILE * SUMS..];
                // SAFETY: the sums are those of the task's pixels and channels, which are this thread's own.
                unsafe { (this.kernels.leave)(&target, line.as_mut_ptr(), end - x) };
            }
            tile += count;
        }
    }
}
