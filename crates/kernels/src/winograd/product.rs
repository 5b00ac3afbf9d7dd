//! The small matrix products between the transforms: some tiles times one or two vectors of output channels, summed over
//! the input channels in registers.

use crate::Isa;
use crate::vector::{Entry, Lanes, Work, each, on_scalar};
#[cfg(target_arch = "x86_64")]
use crate::vector::{on_avx2, on_avx512};

/// Rows of `a` times a panel.
pub(super) struct Product {
    /// Blocks of channels, each of one vector a row; the first row.
    pub(super) a: *const f32,
    pub(super) block_step: usize,
    /// Input channels.
    pub(super) channels: usize,
    /// One row of one or two vectors an input channel.
    pub(super) b: *const f32,
    pub(super) out: *mut f32,
}

struct Rows<const M: usize, const V: usize>;

impl<const M: usize, const V: usize> Work for Rows<M, V> {
    type Job = Product;
    #[inline(always)]
    unsafe fn run<L: Lanes>(p: &Product) {
        // SAFETY: the product describes memory that is there, and the processor has the instructions.
        unsafe {
            let mut acc = [[L::splat(0.0); V]; M];
            let (mut a, mut b) = (p.a, p.b);
            for _ in 0..p.channels / L::N {
                let mut k = 0;
                while k < L::N {
                    each!(u < 4, 4, {
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
            each!(i < M, 14, {
                each!(v < V, [0 1] { acc[i][v].store(p.out.add((i * V + v) * L::N)); });
            });
        }
    }
}

#[inline(always)]
unsafe fn channel<L: Lanes, const M: usize, const V: usize>(a: *const f32, b: *const f32, acc: &mut [[L; V]; M]) {
    // SAFETY: as the caller says.
    unsafe {
        let mut w = [L::splat(0.0); V];
        each!(v < V, [0 1] { w[v] = L::load(b.add(v * L::N)); });
        each!(i < M, 14, {
            let x = L::splat(*a.add(i * L::N));
            each!(v < V, [0 1] { acc[i][v] = x.fma(w[v], acc[i][v]); });
        });
    }
}

/// Functions for 1 and 2 vectors of 2, 4, 6 .. rows, up to the most that fit the registers.
pub(super) fn table(isa: Isa) -> Vec<[Entry<Product>; 2]> {
    macro_rules! of {
        ($on:ident: $($m:literal)*) => { vec![$([$on::<Rows<$m, 1>>, $on::<Rows<$m, 2>>]),*] };
    }
    match isa.here() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => of!(on_avx512: 2 4 6 8 10 12 14),
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => of!(on_avx2: 2 4 6),
        _ => of!(on_scalar: 2 4),
    }
}
