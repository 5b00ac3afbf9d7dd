//! The small matrix products between the transforms: some tiles times one or two vectors of output channels, summed over
//! the input channels in registers.

use crate::Isa;
use crate::simd::{Entry, Kernel, Simd, entry, unroll};

/// Rows of `a` times a panel.
pub(super) struct Product {
    /// Blocks of channels, each of one vector a row; the first row.
    pub(super) a: *const f32,
    pub(super) block_step: usize,
    /// Input channels.
    pub(super) channels: usize,
    /// One row of one or two vectors an input channel.
    pub(super) b: *const f32,
    /// Whether the sums of earlier channels are in `out`.
    pub(super) resumes: bool,
    pub(super) out: *mut f32,
}

struct Rows<const M: usize, const V: usize>;

impl<const M: usize, const V: usize> Kernel for Rows<M, V> {
    type Args<'a> = &'a Product;
    type Out = ();
    #[inline(always)]
    unsafe fn run<L: Simd>(p: &Product) {
        // Not compiled where `table` does not list it.
        if const { M > 6 && L::REGISTERS < 32 } {
            unreachable!("more sums than registers");
        }
        // SAFETY: the product describes memory that is there, and the processor has the instructions.
        unsafe {
            let mut acc = [[L::splat(0.0); V]; M];
            let (mut a, mut b) = (p.a, p.b);
            for _ in 0..p.channels / L::N {
                let mut k = 0;
                while k < L::N {
                    unroll!(u < 4, 4, {
                        channel(a.add(k + u), b.add(u * V * L::N), &mut acc);
                    });
                    b = b.add(4 * V * L::N);
                    k += 4;
                }
                a = a.add(p.block_step);
            }
            for k in 0..p.channels % L::N {
                channel(a.add(k), b.add(k * V * L::N), &mut acc);
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
unsafe fn channel<L: Simd, const M: usize, const V: usize>(a: *const f32, b: *const f32, acc: &mut [[L; V]; M]) {
    // SAFETY: as the caller says.
    unsafe {
        let mut w = [L::splat(0.0); V];
        unroll!(v < V, [0 1] { w[v] = L::load(b.add(v * L::N)); });
        unroll!(i < M, 14, {
            let x = L::splat(*a.add(i * L::N));
            unroll!(v < V, [0 1] { acc[i][v] = x.mul_add(w[v], acc[i][v]); });
        });
    }
}

/// Functions for 1 and 2 vectors of 2, 4, 6 .. rows, up to the most that fit the registers.
pub(super) fn table(isa: Isa) -> Vec<[Entry<Product>; 2]> {
    macro_rules! of {
        ($($m:literal)*) => { vec![$([entry::<Rows<$m, 1>, _>(isa), entry::<Rows<$m, 2>, _>(isa)]),*] };
    }
    if isa.registers() >= 32 { of!(2 4 6 8 10 12 14) } else { of!(2 4 6) }
}
