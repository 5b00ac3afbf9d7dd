//! Convolution with 3 by 3 kernels in the transformed domain of Winograd: tiles of 4 by 4 (or 2 by 2) outputs cost 36 (16)
//! multiplications instead of 144 (36). Weights are transformed once; a block of tiles is transformed, multiplied by
//! panels of weights and transformed back while it is in cache.

mod product;
mod transform;

use crate::ConvShape;
use crate::after::After;
use crate::vector::{Entry, entry};
use crate::{Epilogue, Exec, Isa, SharedMut, part_of};
use transform::{Gather, GatherTiles, Grid, Scatter, ScatterTiles};

/// A convolution of 3 by 3 with steps of 1.
#[derive(Debug)]
pub struct Winograd {
    isa: Isa,
    shape: ConvShape,
    grid: Grid,
    /// Inputs of a tile on each axis.
    a: usize,
    tiles: usize,
    blocks: usize,
    /// Most tiles in a block.
    block: usize,
    /// Parts that the output channels are cut in, each for one thread.
    parts: usize,
    kernels: Kernels,
}

struct Kernels {
    gather: Entry<Gather>,
    scatter: Entry<Scatter>,
    products: Vec<[Entry<product::Product>; 2]>,
}

impl std::fmt::Debug for Kernels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} rows", self.products.len())
    }
}

/// Whether the transformed domain is faster than the direct way.
pub fn worthwhile(shape: &ConvShape, threads: usize) -> bool {
    let _ = threads;
    Winograd::fits(shape) && shape.in_channels >= 16 && shape.out_channels >= 16
}

impl Winograd {
    /// Whether this kernel can do the convolution.
    pub fn fits(s: &ConvShape) -> bool {
        let flat = s.pad_begin[0] == 0 && s.pad_end[0] == 0;
        s.groups == 1 && s.kernel == [1, 3, 3] && s.stride == [1; 3] && s.dilation[1..] == [1, 1] && flat
    }

    /// Tiles of 4 by 4 outputs.
    pub fn new(isa: Isa, threads: usize, shape: ConvShape) -> Winograd {
        Winograd::with_tiles(isa, threads, shape, 4)
    }

    /// Tiles of `size` by `size` outputs, 2 or 4.
    pub fn with_tiles(isa: Isa, threads: usize, shape: ConvShape, size: usize) -> Winograd {
        assert!(Winograd::fits(&shape), "not a 3 by 3 convolution with steps of 1: {shape:?}");
        assert!(size == 2 || size == 4, "tiles of {size}");
        let isa = isa.here();
        let [_, height, width] = shape.out_spatial();
        let grid = Grid {
            size: [shape.in_spatial[1], shape.in_spatial[2]],
            pad: [shape.pad_begin[1], shape.pad_begin[2]],
            out: [height, width],
            tiles: [height.div_ceil(size), width.div_ceil(size)],
        };
        let tiles = shape.batch * shape.in_spatial[0] * grid.tiles[0] * grid.tiles[1];
        let kernels = Kernels {
            gather: if size == 4 { entry::<GatherTiles<6>>(isa) } else { entry::<GatherTiles<4>>(isa) },
            scatter: if size == 4 { entry::<ScatterTiles<6>>(isa) } else { entry::<ScatterTiles<4>>(isa) },
            products: product::table(isa),
        };
        let a = size + 2;
        let mut this = Winograd { isa, shape, grid, a, tiles, blocks: 1, block: 1, parts: 1, kernels };
        this.plan(threads.max(1));
        this
    }

    /// Chooses the blocks.
    fn plan(&mut self, threads: usize) {
        let rows = self.kernels.products.len();
        // The larger the weights, the more tiles should share one pass over them.
        let bytes = self.packed_floats() * 4;
        let most = rows
            * if bytes < 2 << 20 {
                1
            } else if bytes < 12 << 20 {
                2
            } else {
                4
            };
        let panels = self.shape.out_channels.div_ceil(self.panel());
        if self.tiles < 2 * rows * threads && panels >= threads {
            // So few tiles that every thread takes them all and makes its own output channels.
            self.parts = threads;
            self.blocks = self.tiles.div_ceil(most);
        } else {
            self.blocks = self.tiles.div_ceil(most).next_multiple_of(threads).min(self.tiles.max(1));
        }
        self.block = self.tiles.div_ceil(self.blocks.max(1));
    }

    /// Output channels of a panel.
    fn panel(&self) -> usize {
        2 * self.isa.lanes()
    }

    /// Floats of packed weights.
    pub fn packed_floats(&self) -> usize {
        self.a * self.a * self.shape.in_channels * self.shape.out_channels.next_multiple_of(self.isa.lanes())
    }

    /// Transforms and packs weights of `[out, in, 3, 3]`.
    pub fn pack(&self, weights: &[f32], packed: &mut [f32]) {
        self.pack_on(None, weights, packed);
    }

    /// The same with threads.
    pub fn pack_on(&self, exec: Option<&Exec<'_>>, weights: &[f32], packed: &mut [f32]) {
        let (ins, outs, a) = (self.shape.in_channels, self.shape.out_channels, self.a);
        assert_eq!(weights.len(), outs * ins * 9, "weights of {:?}", self.shape);
        assert_eq!(packed.len(), self.packed_floats(), "packed weights of {:?}", self.shape);
        let panels = outs.div_ceil(self.panel());
        let to = SharedMut::new(packed);
        let one = |panel: usize, _thread: usize| {
            let start = panel * self.panel() * a * a * ins;
            let len = self.panel_width(panel) * a * a * ins;
            // SAFETY: panels lie one behind the other, and each is one thread's alone.
            self.pack_panel(panel, weights, unsafe { to.part(start..start + len) });
        };
        match exec {
            Some(exec) => exec.each(panels, one),
            None => (0..panels).for_each(|p| one(p, 0)),
        }
    }

    // The matrices of one panel, a row of channels after the other.
    fn pack_panel(&self, panel: usize, weights: &[f32], packed: &mut [f32]) {
        let (ins, outs, a) = (self.shape.in_channels, self.shape.out_channels, self.a);
        let (first, width) = (panel * self.panel(), self.panel_width(panel));
        let g: &[[f64; 3]] = if a == 6 { &FOUR } else { &TWO };
        for channel in 0..ins {
            for lane in 0..width {
                let out = first + lane;
                let mut half = [[0f64; 3]; 6];
                if out < outs {
                    let w = &weights[(out * ins + channel) * 9..][..9];
                    for (half, g) in half.iter_mut().zip(g) {
                        for j in 0..3 {
                            half[j] = g[0] * w[j] as f64 + g[1] * w[3 + j] as f64 + g[2] * w[6 + j] as f64;
                        }
                    }
                }
                for i in 0..a {
                    for j in 0..a {
                        let x = half[i][0] * g[j][0] + half[i][1] * g[j][1] + half[i][2] * g[j][2];
                        packed[((i * a + j) * ins + channel) * width + lane] = x as f32;
                    }
                }
            }
        }
    }

    /// Output channels of a panel, with what fills up the last vector.
    fn panel_width(&self, panel: usize) -> usize {
        (self.shape.out_channels - panel * self.panel()).min(self.panel()).next_multiple_of(self.isa.lanes())
    }

    /// Floats that each thread needs of scratch.
    pub fn scratch_floats(&self) -> usize {
        self.a * self.a * (self.v_step(self.block) + self.m_step(self.block))
    }

    /// Floats from matrix to matrix; an odd number of cache lines, so that they do not compete for the same ones.
    fn v_step(&self, tiles: usize) -> usize {
        let lines = (tiles * self.shape.in_channels.next_multiple_of(self.isa.lanes())).div_ceil(16);
        (lines | 1) * 16
    }
    fn m_step(&self, tiles: usize) -> usize {
        ((tiles * self.panel()).div_ceil(16) | 1) * 16
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
        let after = After::new(epilogue);
        after.check(pixels, s.out_channels);
        let job = Job { this: self, input, in_stride, packed, out: SharedMut::new(out), out_stride, after };
        exec.each(self.parts * self.blocks, |chunk, thread| {
            let tiles = part_of(self.tiles, self.blocks, chunk % self.blocks);
            let panels = part_of(s.out_channels.div_ceil(self.panel()), self.parts, chunk / self.blocks);
            job.block(tiles, panels, &mut exec.scratch.of(thread), thread);
        });
    }
}

/// Transforms of weights for tiles of 4 and of 2.
const FOUR: [[f64; 3]; 6] = [
    [1.0 / 4.0, 0.0, 0.0],
    [-1.0 / 6.0, -1.0 / 6.0, -1.0 / 6.0],
    [-1.0 / 6.0, 1.0 / 6.0, -1.0 / 6.0],
    [1.0 / 24.0, 1.0 / 12.0, 1.0 / 6.0],
    [1.0 / 24.0, -1.0 / 12.0, 1.0 / 6.0],
    [0.0, 0.0, 1.0],
];
const TWO: [[f64; 3]; 4] = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0.0, 0.0, 1.0]];

/// One run.
struct Job<'a> {
    this: &'a Winograd,
    input: &'a [f32],
    in_stride: usize,
    packed: &'a [f32],
    out: SharedMut<'a, f32>,
    out_stride: usize,
    after: After<'a>,
}

impl Job<'_> {
    fn block(&self, tiles: std::ops::Range<usize>, panels: std::ops::Range<usize>, scratch: &mut [f32], thread: usize) {
        let this = self.this;
        let (count, first, matrices) = (tiles.len(), tiles.start, this.a * this.a);
        if count == 0 || panels.is_empty() {
            return;
        }
        assert!(scratch.len() >= this.scratch_floats(), "scratch of {} floats", scratch.len());
        let (lanes, ins) = (this.isa.lanes(), this.shape.in_channels);
        let (v_step, m_step) = (this.v_step(count), this.m_step(count));
        let (v, m) = scratch.split_at_mut(matrices * v_step);
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
        let row_tiles = count.div_ceil(this.kernels.products.len());
        for panel in panels.clone() {
            let c = panel * this.panel();
            let width = this.panel_width(panel);
            let weights = &self.packed[c * matrices * ins..][..width * matrices * ins];
            for q in 0..matrices {
                for part in 0..row_tiles {
                    let rows = part_of(count, row_tiles, part);
                    let product = product::Product {
                        a: v[q * v_step + rows.start * lanes..].as_ptr(),
                        block_step: count * lanes,
                        channels: ins,
                        b: weights[q * ins * width..].as_ptr(),
                        out: m[q * m_step + rows.start * width..].as_mut_ptr(),
                    };
                    // SAFETY: all parts lie in scratch and in the packed weights, whose lengths were checked.
                    unsafe { this.kernels.products[rows.len() - 1][width / lanes - 1](&product) };
                }
            }
            let (add, add_stride) = self.after.add();
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
                bias: at(self.after.bias()),
                add: at(add),
                add_stride,
                add_last: self.after.add_last,
                quick: self.after.quick,
            };
            // SAFETY: output, bias and sum were checked at the door; the tiles and channels belong to this thread.
            unsafe { (this.kernels.scatter)(&scatter) };
        }
        if self.after.has_rest() {
            let start = panels.start * this.panel();
            let end = (panels.end * this.panel()).min(this.shape.out_channels);
            self.rest(tiles, [start, end - start], thread);
        }
    }

    /// The rest of the epilogue, by rows of pixels of tiles next to each other.
    fn rest(&self, tiles: std::ops::Range<usize>, [c, channels]: [usize; 2], thread: usize) {
        let (this, size) = (self.this, self.this.a - 2);
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
                        self.after.rest(this.isa, self.out, self.out_stride, [pixel, pixels], [c, channels], thread)
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
