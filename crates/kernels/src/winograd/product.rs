//! The small matrix products between the transforms: some tiles times one or two vectors of output channels, summed over
//! the input channels in registers.

use crate::simd::{Cell, Entry, Float, Kernel, Native, Shifted, Simd, entry, unroll};
use crate::{Isa, Numbers, part_of};
use std::marker::PhantomData;

/// Rows of `a` times a panel.
pub(super) struct Product {
    /// Blocks of channels, as many as a vector has lanes, a row; the first row.
    pub(super) a: *const f32,
    pub(super) block_step: usize,
    /// Cells of input channels: one float, or two bf16.
    pub(super) cells: usize,
    /// One row of one or two vectors a cell.
    pub(super) b: *const f32,
    /// Whether the sums of earlier channels are in `out`.
    pub(super) resumes: bool,
    pub(super) out: *mut f32,
}

struct Rows<C, const M: usize, const V: usize>(PhantomData<C>);

impl<C: Cell, const M: usize, const V: usize> Kernel for Rows<C, M, V> {
    type Args<'a> = &'a Product;
    type Out = ();
    #[inline(always)]
    unsafe fn run<L: Simd>(p: &Product) {
        // Not compiled where `table` does not list it.
        if const { (M > 6 && L::REGISTERS < 32) || !(C::EVERYWHERE || L::BRAINS) } {
            unreachable!("more sums than registers, or instructions that no machine of the level has");
        }
        // SAFETY: the product describes memory that is there, and the processor has the instructions.
        unsafe {
            let mut acc = [[L::splat(0.0); V]; M];
            let (mut a, mut b) = (p.a, p.b);
            // Cells of a block.
            let block = const { L::N / C::COUNT };
            for _ in 0..p.cells / block {
                let mut k = 0;
                while k < block {
                    unroll!(u < L::N / C::COUNT, 4, {
                        channel::<C, L, M, V>(a.add(k + u), b.add(u * V * L::N), &mut acc);
                    });
                    let done = const { if L::N / C::COUNT < 4 { L::N / C::COUNT } else { 4 } };
                    b = b.add(done * V * L::N);
                    k += done;
                }
                a = a.add(p.block_step);
            }
            for k in 0..p.cells % block {
                channel::<C, L, M, V>(a.add(k), b.add(k * V * L::N), &mut acc);
            }
            if p.resumes {
                unroll!(i < M, 14, {
                    unroll!(v < V, [0 1] { acc[i][v] = acc[i][v] + L::load(p.out.add((i * V + v) * L::N)); });
                });
            }
            unroll!(i < M, 14, {
                unroll!(v < V, [0 1] { acc[i][v].store(p.out.add((i * V + v) * L::N)); });
            });
        }
    }
}

#[inline(always)]
unsafe fn channel<C: Cell, L: Simd, const M: usize, const V: usize>(
    a: *const f32,
    b: *const f32,
    acc: &mut [[L; V]; M],
) {
    // SAFETY: as the caller says.
    unsafe {
        let mut w = [L::splat(0.0); V];
        unroll!(v < V, [0 1] { w[v] = L::load(b.add(v * L::N)); });
        unroll!(i < M, 14, {
            let x = L::splat(*a.add(i * (L::N / C::COUNT)));
            unroll!(v < V, [0 1] { acc[i][v] = C::multiply(x, w[v], acc[i][v]); });
        });
    }
}

/// Functions for 1 and 2 vectors of 2, 4, 6 .. rows, up to the most that fit the registers.
pub(super) type Table = Vec<[Entry<Product>; 2]>;

/// Those of floats.
pub(super) fn table(isa: Isa) -> Table {
    table_of::<Float>(isa)
}

/// Those of bf16 pairs.
pub(super) fn table_of_pairs(isa: Isa) -> Table {
    if Numbers::Bf16.is_native(isa) { table_of::<Native>(isa) } else { table_of::<Shifted>(isa) }
}

fn table_of<C: Cell>(isa: Isa) -> Table {
    macro_rules! of {
        ($($m:literal)*) => { vec![$([entry::<Rows<C, $m, 1>, _>(isa), entry::<Rows<C, $m, 2>, _>(isa)]),*] };
    }
    if isa.registers() >= 32 { of!(2 4 6 8 10 12 14) } else { of!(2 4 6) }
}

/// Cells that are summed at once, more or less: longer sums are taken in blocks, whose errors do not add up.
const BLOCK: usize = 128;

/// The matrices of a block of tiles.
pub(super) struct Matrices<'a> {
    pub(super) count: usize,
    pub(super) tiles: usize,
    pub(super) lanes: usize,
    /// Cells of the input channels, and of as many of them as a vector has lanes.
    pub(super) cells: usize,
    pub(super) block: usize,
    pub(super) v: &'a [f32],
    /// Floats from matrix to matrix, and of the products.
    pub(super) v_step: usize,
    pub(super) m_step: usize,
}

impl Matrices<'_> {
    /// Times a panel of weights of `width` columns.
    pub(super) fn multiply(&self, table: &Table, weights: &[f32], width: usize, m: &mut [f32]) {
        let Matrices { tiles, cells, block, .. } = *self;
        assert_eq!(weights.len(), self.count * cells * width, "a panel of weights");
        let row_tiles = tiles.div_ceil(2 * table.len());
        let blocks = ((cells + BLOCK / 2) / BLOCK).max(1);
        let each = cells.div_ceil(blocks).next_multiple_of(block).max(1);
        for q in 0..self.count {
            let (v, weights) = (&self.v[q * self.v_step..], &weights[q * cells * width..]);
            for first in (0..cells).step_by(each) {
                for part in 0..row_tiles {
                    // By twos, so that no part touches the sums of another.
                    let pairs = part_of(tiles.div_ceil(2), row_tiles, part);
                    let row = 2 * pairs.start;
                    let product = Product {
                        a: v[first * tiles + row * block..].as_ptr(),
                        block_step: tiles * block,
                        cells: each.min(cells - first),
                        b: weights[first * width..].as_ptr(),
                        resumes: first > 0,
                        out: m[q * self.m_step + row * width..].as_mut_ptr(),
                    };
                    // SAFETY: all parts lie in scratch and in the packed weights, whose lengths were checked.
                    unsafe { table[pairs.len() - 1][width / self.lanes - 1](&product) };
                }
            }
        }
    }
}
