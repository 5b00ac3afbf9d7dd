//! A few output pixels of one row and one phase, times one or two vectors of output channels. All their taps are summed in
//! registers.

use crate::Isa;
use crate::epilogue::Quick;
use crate::simd::{Entry, Kernel, Simd, entry, unroll};

/// An input position under an element of the kernel. Along a row it is relative to the output pixel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tap {
    pub(super) at: isize,
    pub(super) k: usize,
}

/// Taps of the three axes; an output pixel sums over all combinations.
#[derive(Clone, Copy)]
pub(super) struct Taps {
    pub(super) list: [*const Tap; 3],
    pub(super) count: [usize; 3],
    /// Floats from position to position.
    pub(super) step: [usize; 3],
    pub(super) kernel: [usize; 3],
}

/// Output pixels and channels.
pub(super) struct Tile {
    pub(super) taps: Taps,
    /// The image at position 0 of depth and height and at the first pixel's position 0 of the width.
    pub(super) input: *const f32,
    pub(super) in_channels: usize,
    /// Weights by kernel element, input channel and output channel.
    pub(super) weights: *const f32,
    pub(super) out: *mut f32,
    pub(super) out_step: usize,
    pub(super) out_channels: usize,
    /// Null where there is none.
    pub(super) bias: *const f32,
    pub(super) add: *const f32,
    pub(super) add_step: usize,
    pub(super) add_last: bool,
    pub(super) quick: Quick,
}

impl Tile {
    /// Finishes and stores a vector of each pixel at channel `c`.
    #[inline(always)]
    pub(super) unsafe fn put<L: Simd, const M: usize>(&self, c: usize, mut sums: [L; M], mask: L::Mask) {
        // SAFETY: the tile describes memory that is there.
        unsafe {
            if !self.bias.is_null() {
                let bias = L::load_masked(self.bias.add(c), mask);
                unroll!(i < M, 14, {
                    sums[i] = sums[i] + bias;
                });
            }
            let is_added = !self.add.is_null();
            if is_added && !self.add_last {
                unroll!(i < M, 14, {
                    sums[i] = sums[i] + L::load_masked(self.add.add(i * self.add_step + c), mask);
                });
            }
            self.quick.apply(&mut sums);
            if is_added && self.add_last {
                unroll!(i < M, 14, {
                    sums[i] = sums[i] + L::load_masked(self.add.add(i * self.add_step + c), mask);
                });
            }
            unroll!(i < M, 14, {
                sums[i].store_masked(self.out.add(i * self.out_step + c), mask);
            });
        }
    }
}

/// `M` pixels, `V` vectors.
struct Pixels<const M: usize, const V: usize>;

impl<const M: usize, const V: usize> Kernel for Pixels<M, V> {
    type Args<'a> = &'a Tile;
    type Out = ();
    #[inline(always)]
    unsafe fn run<L: Simd>(t: &Tile) {
        // Not compiled where `table` does not list it.
        if const { (M > 6 && L::REGISTERS < 32) || (M == 6 && L::REGISTERS >= 32) } {
            unreachable!("not a tile of this level");
        }
        // SAFETY: the tile describes memory that is there, and the processor has the instructions.
        unsafe {
            let mut acc = [[L::splat(0.0); V]; M];
            let step = t.taps.step[2];
            for d in 0..t.taps.count[0] {
                for h in 0..t.taps.count[1] {
                    for w in 0..t.taps.count[2] {
                        let [d, h, w] = [*t.taps.list[0].add(d), *t.taps.list[1].add(h), *t.taps.list[2].add(w)];
                        let mut a = t.input.wrapping_offset(
                            d.at * t.taps.step[0] as isize + h.at * t.taps.step[1] as isize + w.at * step as isize,
                        );
                        let element = (d.k * t.taps.kernel[1] + h.k) * t.taps.kernel[2] + w.k;
                        let mut b = t.weights.add(element * t.in_channels * V * L::N);
                        for _ in 0..t.in_channels {
                            let mut weights = [L::splat(0.0); V];
                            unroll!(v < V, [0 1] { weights[v] = L::load(b.add(v * L::N)); });
                            unroll!(i < M, 14, {
                                let x = L::splat(*a.add(i * step));
                                unroll!(v < V, [0 1] { acc[i][v] = x.mul_add(weights[v], acc[i][v]); });
                            });
                            a = a.add(1);
                            b = b.add(V * L::N);
                        }
                    }
                }
            }
            unroll!(v < V, [0 1] {
                let mask = L::first(t.out_channels - (v * L::N).min(t.out_channels));
                let mut sums = [L::splat(0.0); M];
                unroll!(i < M, 14, { sums[i] = acc[i][v]; });
                t.put(v * L::N, sums, mask);
            });
        }
    }
}

/// Numbers of pixels, largest first, with functions for 1 and 2 vectors.
pub(super) fn table(isa: Isa) -> Vec<(usize, [Entry<Tile>; 2])> {
    macro_rules! of {
        ($($m:literal)*) => { vec![$(($m, [entry::<Pixels<$m, 1>, _>(isa), entry::<Pixels<$m, 2>, _>(isa)])),*] };
    }
    if isa.registers() >= 32 { of!(14 10 7 4 2 1) } else { of!(6 4 2 1) }
}

/// One pixel where every channel is a group of its own.
pub(super) struct EachChannel;

impl Kernel for EachChannel {
    type Args<'a> = &'a Tile;
    type Out = ();
    #[inline(always)]
    unsafe fn run<L: Simd>(t: &Tile) {
        let [depth, height, width] = t.taps.count;
        let mut c = 0;
        while c < t.out_channels {
            // SAFETY: the tile describes memory that is there, and the processor has the instructions.
            unsafe {
                let mask = L::first(t.out_channels - c);
                let mut acc = L::splat(0.0);
                for n in 0..depth * height * width {
                    let d = *t.taps.list[0].add(n / width / height);
                    let h = *t.taps.list[1].add(n / width % height);
                    let w = *t.taps.list[2].add(n % width);
                    let steps = [0, 1, 2].map(|i| t.taps.step[i] as isize);
                    let at = d.at * steps[0] + h.at * steps[1] + w.at * steps[2];
                    let x = L::load_masked(t.input.wrapping_offset(at).wrapping_add(c), mask);
                    let element = (d.k * t.taps.kernel[1] + h.k) * t.taps.kernel[2] + w.k;
                    acc = x.mul_add(L::load_masked(t.weights.add(element * t.out_channels + c), mask), acc);
                }
                t.put(c, [acc], mask);
            }
            c += L::N;
        }
    }
}
