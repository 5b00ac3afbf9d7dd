//! Tiles into the transformed domain and back. A tile is [`TILE`] by [`TILE`] outputs made from [`A`] by [`A`] inputs.

use crate::after::Quick;
use crate::vector::{Lanes, Work, each};

/// Outputs of a tile on each axis.
pub(super) const TILE: usize = 4;
/// Inputs of a tile on each axis.
pub(super) const A: usize = TILE + 2;

/// Where tiles lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    /// Size of the image, and how much of it is padding before the first pixel.
    pub(super) size: [usize; 2],
    pub(super) pad: [usize; 2],
    /// Size of the output.
    pub(super) out: [usize; 2],
    /// Tiles by row and column of an image.
    pub(super) tiles: [usize; 2],
}

/// Input tiles, to be transformed.
pub(super) struct Gather {
    pub(super) grid: Grid,
    pub(super) input: *const f32,
    pub(super) in_stride: usize,
    pub(super) channels: usize,
    /// First tile and how many.
    pub(super) first: usize,
    pub(super) count: usize,
    /// `A * A` matrices, each of blocks of channels, each of one vector a tile.
    pub(super) v: *mut f32,
    pub(super) matrix_step: usize,
}

pub(super) struct GatherTiles;

impl Work for GatherTiles {
    type Job = Gather;
    #[inline(always)]
    unsafe fn run<L: Lanes>(g: &Gather) {
        let [tiles_y, tiles_x] = g.grid.tiles;
        let [height, width] = g.grid.size;
        let row_step = width * g.in_stride;
        for t in 0..g.count {
            let tile = g.first + t;
            let (image, ty, tx) = (tile / (tiles_y * tiles_x), tile / tiles_x % tiles_y, tile % tiles_x);
            let y = (ty * TILE) as isize - g.grid.pad[0] as isize;
            let x = (tx * TILE) as isize - g.grid.pad[1] as isize;
            let rows = inside(y, height);
            let columns = inside(x, width);
            let corner =
                (image * height) as isize * row_step as isize + y * row_step as isize + x * g.in_stride as isize;
            let from = g.input.wrapping_offset(corner);
            let whole = rows == [0, A] && columns == [0, A];
            let mut c = 0;
            // SAFETY: rows and columns outside of the image are not read; `v` has room for all tiles and channels.
            unsafe {
                let all = L::first(L::N);
                while c < g.channels {
                    let (from, to) = (from.wrapping_add(c), g.v.add(c * g.count + t * L::N));
                    let more = g.channels - c;
                    match (whole, more >= L::N) {
                        (true, true) => gather::<L, true, false>(g, from, row_step, rows, columns, to, all),
                        (false, true) => gather::<L, false, false>(g, from, row_step, rows, columns, to, all),
                        _ => gather::<L, false, true>(g, from, row_step, rows, columns, to, L::first(more)),
                    }
                    c += L::N;
                }
            }
        }
    }
}

/// Which of `A` positions from `at` on lie within `size`.
#[inline(always)]
fn inside(at: isize, size: usize) -> [usize; 2] {
    [(-at).clamp(0, A as isize) as usize, (size as isize - at).clamp(0, A as isize) as usize]
}

#[inline(always)]
unsafe fn gather<L: Lanes, const WHOLE: bool, const TAIL: bool>(
    g: &Gather,
    from: *const f32,
    row_step: usize,
    rows: [usize; 2],
    columns: [usize; 2],
    to: *mut f32,
    mask: L::Mask,
) {
    // SAFETY: as the caller says.
    unsafe {
        let zero = L::splat(0.0);
        let mut mid = [[zero; A]; A];
        each!(i < A, [0 1 2 3 4 5] {
            if WHOLE || (i >= rows[0] && i < rows[1]) {
                let row = from.wrapping_add(i * row_step);
                let mut d = [zero; A];
                each!(j < A, [0 1 2 3 4 5] {
                    if WHOLE || (j >= columns[0] && j < columns[1]) {
                        let at = row.wrapping_add(j * g.in_stride);
                        d[j] = if TAIL { L::load_some(at, mask) } else { L::load(at) };
                    }
                });
                mid[i] = forward(d);
            }
        });
        each!(j < A, [0 1 2 3 4 5] {
            let mut d = [zero; A];
            each!(i < A, [0 1 2 3 4 5] { d[i] = mid[i][j]; });
            let d = forward(d);
            each!(i < A, [0 1 2 3 4 5] { d[i].store(to.add((i * A + j) * g.matrix_step)); });
        });
    }
}

/// Products of tiles, to be turned into output pixels.
pub(super) struct Scatter {
    pub(super) grid: Grid,
    pub(super) first: usize,
    pub(super) count: usize,
    /// `A * A` matrices of one or two vectors a tile.
    pub(super) m: *const f32,
    pub(super) matrix_step: usize,
    /// Output at the first channel, and how many channels there are.
    pub(super) out: *mut f32,
    pub(super) out_stride: usize,
    pub(super) channels: usize,
    /// At the first channel, or null.
    pub(super) bias: *const f32,
    pub(super) add: *const f32,
    pub(super) add_stride: usize,
    pub(super) add_last: bool,
    pub(super) quick: Quick,
}

pub(super) struct ScatterTiles;

impl Work for ScatterTiles {
    type Job = Scatter;
    #[inline(always)]
    unsafe fn run<L: Lanes>(s: &Scatter) {
        let vectors = s.channels.div_ceil(L::N);
        // SAFETY: pixels outside of the output are not written; `m` holds all tiles.
        unsafe {
            for t in 0..s.count {
                for v in 0..vectors {
                    let from = s.m.add((t * vectors + v) * L::N);
                    let more = s.channels - v * L::N;
                    if more >= L::N {
                        scatter::<L, false>(s, s.first + t, from, v * L::N, L::first(L::N));
                    } else {
                        scatter::<L, true>(s, s.first + t, from, v * L::N, L::first(more));
                    }
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn scatter<L: Lanes, const TAIL: bool>(s: &Scatter, tile: usize, from: *const f32, c: usize, mask: L::Mask) {
    let [tiles_y, tiles_x] = s.grid.tiles;
    let [height, width] = s.grid.out;
    let (image, ty, tx) = (tile / (tiles_y * tiles_x), tile / tiles_x % tiles_y, tile % tiles_x);
    let (y, x) = (ty * TILE, tx * TILE);
    // SAFETY: as the caller says.
    unsafe {
        let zero = L::splat(0.0);
        let bias = match (s.bias.is_null(), TAIL) {
            (true, _) => zero,
            (_, true) => L::load_some(s.bias.add(c), mask),
            _ => L::load(s.bias.add(c)),
        };
        let mut mid = [[zero; A]; TILE];
        each!(j < A, [0 1 2 3 4 5] {
            let mut d = [zero; A];
            each!(i < A, [0 1 2 3 4 5] { d[i] = L::load(from.add((i * A + j) * s.matrix_step)); });
            let d = backward(d);
            each!(i < TILE, 4, { mid[i][j] = d[i]; });
        });
        each!(i < TILE, 4, {
            if y + i < height {
                let d = backward(mid[i]);
                let pixel = (image * height + y + i) * width + x;
                each!(j < TILE, 4, {
                    if x + j < width {
                        let mut v = d[j].plus(bias);
                        if s.add.is_null() {
                            v = s.quick.of_lanes(v);
                        } else {
                            let at = s.add.add((pixel + j) * s.add_stride + c);
                            let more = if TAIL { L::load_some(at, mask) } else { L::load(at) };
                            v = if s.add_last {
                                s.quick.of_lanes(v).plus(more)
                            } else {
                                s.quick.of_lanes(v.plus(more))
                            };
                        }
                        let to = s.out.add((pixel + j) * s.out_stride + c);
                        if TAIL { v.store_some(to, mask) } else { v.store(to) }
                    }
                });
            }
        });
    }
}

/// One dimension of the way into the transformed domain.
#[inline(always)]
unsafe fn forward<L: Lanes>(d: [L; A]) -> [L; A] {
    // SAFETY: the processor has the instructions.
    unsafe {
        let (four, two) = (L::splat(4.0), L::splat(2.0));
        let (minus_four, minus_five) = (L::splat(-4.0), L::splat(-5.0));
        let (p, q) = (d[2].fma(minus_four, d[4]), d[1].fma(minus_four, d[3]));
        let (r, s) = (d[4].minus(d[2]), d[3].minus(d[1]).times(two));
        [
            d[0].fma(four, d[2].fma(minus_five, d[4])),
            p.plus(q),
            p.minus(q),
            r.plus(s),
            r.minus(s),
            d[1].fma(four, d[3].fma(minus_five, d[5])),
        ]
    }
}

/// One dimension of the way back.
#[inline(always)]
unsafe fn backward<L: Lanes>(m: [L; A]) -> [L; TILE] {
    // SAFETY: the processor has the instructions.
    unsafe {
        let (a, b) = (m[1].plus(m[2]), m[1].minus(m[2]));
        let (e, f) = (m[3].plus(m[4]), m[3].minus(m[4]));
        [m[0].plus(a).plus(e), f.fma(L::splat(2.0), b), e.fma(L::splat(4.0), a), f.fma(L::splat(8.0), b).plus(m[5])]
    }
}
