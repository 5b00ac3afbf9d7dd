//! One vector of floats at every instruction level. A kernel is written once over [`Lanes`], with every function of it
//! `#[inline(always)]`, and becomes machine code inside the entry points of [`entry`], which switch the instructions on.

use crate::Isa;

/// A vector register of floats.
///
/// # Safety
/// Every function needs a processor with the instructions of the level; those that take an address need it to be valid for
/// the lanes they touch.
pub(crate) trait Lanes: Copy {
    const N: usize;
    /// Which lanes take part.
    type Mask: Copy;

    unsafe fn splat(x: f32) -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    /// The first `n` lanes.
    unsafe fn first(n: usize) -> Self::Mask;
    /// Zero in the other lanes.
    unsafe fn load_some(from: *const f32, mask: Self::Mask) -> Self;
    unsafe fn store_some(self, to: *mut f32, mask: Self::Mask);
    /// `self * b + c`.
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    unsafe fn plus(self, b: Self) -> Self;
    unsafe fn minus(self, b: Self) -> Self;
    unsafe fn times(self, b: Self) -> Self;
    /// `self > b ? self : b`, so `b` where either is not a number.
    unsafe fn greater(self, b: Self) -> Self;
    /// `self < b ? self : b`, so `b` where either is not a number.
    unsafe fn lesser(self, b: Self) -> Self;
}

/// A piece of work that can be done at any level.
pub(crate) trait Work {
    type Job;
    /// # Safety
    /// As the implementor says; and the processor must have the instructions of `L`.
    unsafe fn run<L: Lanes>(job: &Self::Job);
}

/// The machine code of a piece of work.
pub(crate) type Entry<J> = unsafe fn(&J);

/// The function that does `W` at a level.
pub(crate) fn entry<W: Work>(isa: Isa) -> Entry<W::Job> {
    match isa.here() {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => on_avx512::<W>,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => on_avx2::<W>,
        _ => on_scalar::<W>,
    }
}

pub(crate) unsafe fn on_scalar<W: Work>(job: &W::Job) {
    // SAFETY: the caller keeps the promise of `W`; plain floats need no instructions of their own.
    unsafe { W::run::<Four>(job) }
}

/// Four floats in plain Rust.
#[derive(Clone, Copy)]
pub(crate) struct Four([f32; 4]);

impl Four {
    #[inline(always)]
    fn zip(self, b: Four, f: impl Fn(f32, f32) -> f32) -> Four {
        Four([f(self.0[0], b.0[0]), f(self.0[1], b.0[1]), f(self.0[2], b.0[2]), f(self.0[3], b.0[3])])
    }
}

impl Lanes for Four {
    const N: usize = 4;
    type Mask = usize;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Four {
        Four([x; 4])
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Four {
        // SAFETY: valid for four floats, as the trait asks.
        Four(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: valid for four floats, as the trait asks.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn first(n: usize) -> usize {
        n
    }
    #[inline(always)]
    unsafe fn load_some(from: *const f32, mask: usize) -> Four {
        let mut v = [0.0; 4];
        for i in 0..mask.min(4) {
            // SAFETY: valid for the lanes of the mask, as the trait asks.
            v[i] = unsafe { *from.add(i) };
        }
        Four(v)
    }
    #[inline(always)]
    unsafe fn store_some(self, to: *mut f32, mask: usize) {
        for i in 0..mask.min(4) {
            // SAFETY: valid for the lanes of the mask, as the trait asks.
            unsafe { *to.add(i) = self.0[i] };
        }
    }
    #[inline(always)]
    unsafe fn fma(self, b: Four, c: Four) -> Four {
        self.zip(b, |a, b| a * b).zip(c, |ab, c| ab + c)
    }
    #[inline(always)]
    unsafe fn plus(self, b: Four) -> Four {
        self.zip(b, |a, b| a + b)
    }
    #[inline(always)]
    unsafe fn minus(self, b: Four) -> Four {
        self.zip(b, |a, b| a - b)
    }
    #[inline(always)]
    unsafe fn times(self, b: Four) -> Four {
        self.zip(b, |a, b| a * b)
    }
    #[inline(always)]
    unsafe fn greater(self, b: Four) -> Four {
        self.zip(b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    unsafe fn lesser(self, b: Four) -> Four {
        self.zip(b, |a, b| if a < b { a } else { b })
    }
}

/// Repeats a block with a literal index while it is below a bound that is known when compiling. Unlike a loop it is gone
/// before arrays are split into registers.
macro_rules! each {
    ($i:ident < $n:expr, [$($k:literal)*] $body:block) => {
        $(if $k < $n {
            #[allow(unused_variables)]
            let $i: usize = $k;
            $body
        })*
    };
    ($i:ident < $n:expr, 4, $body:block) => { each!($i < $n, [0 1 2 3] $body) };
    ($i:ident < $n:expr, 8, $body:block) => { each!($i < $n, [0 1 2 3 4 5 6 7] $body) };
    ($i:ident < $n:expr, 14, $body:block) => { each!($i < $n, [0 1 2 3 4 5 6 7 8 9 10 11 12 13] $body) };
    ($i:ident < $n:expr, 20, $body:block) => {
        each!($i < $n, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19] $body)
    };
}
pub(crate) use each;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86::{on_avx2, on_avx512};

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Lanes, Work};
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
    pub(crate) unsafe fn on_avx512<W: Work>(job: &W::Job) {
        // SAFETY: the caller keeps the promise of `W`; the instructions are on in this function.
        unsafe { W::run::<__m512>(job) }
    }

    #[target_feature(enable = "avx2,fma")]
    pub(crate) unsafe fn on_avx2<W: Work>(job: &W::Job) {
        // SAFETY: the caller keeps the promise of `W`; the instructions are on in this function.
        unsafe { W::run::<__m256>(job) }
    }

    macro_rules! lanes {
        ($v:ty, $n:literal, $mask:ty, $first:expr, $load_some:expr, $store_some:expr,
         $splat:ident $load:ident $store:ident $fma:ident $add:ident $sub:ident $mul:ident $max:ident $min:ident) => {
            impl Lanes for $v {
                const N: usize = $n;
                type Mask = $mask;

                #[inline(always)]
                unsafe fn splat(x: f32) -> Self {
                    // SAFETY: the instructions are there, as the trait asks.
                    unsafe { $splat(x) }
                }
                #[inline(always)]
                unsafe fn load(from: *const f32) -> Self {
                    // SAFETY: as above, and the address is valid.
                    unsafe { $load(from) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut f32) {
                    // SAFETY: as above, and the address is valid.
                    unsafe { $store(to, self) }
                }
                #[inline(always)]
                unsafe fn first(n: usize) -> $mask {
                    // SAFETY: as above.
                    unsafe { $first(n) }
                }
                #[inline(always)]
                unsafe fn load_some(from: *const f32, mask: $mask) -> Self {
                    // SAFETY: as above, and the address is valid for the lanes of the mask.
                    unsafe { $load_some(from, mask) }
                }
                #[inline(always)]
                unsafe fn store_some(self, to: *mut f32, mask: $mask) {
                    // SAFETY: as above, and the address is valid for the lanes of the mask.
                    unsafe { $store_some(to, mask, self) }
                }
                #[inline(always)]
                unsafe fn fma(self, b: Self, c: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $fma(self, b, c) }
                }
                #[inline(always)]
                unsafe fn plus(self, b: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $add(self, b) }
                }
                #[inline(always)]
                unsafe fn minus(self, b: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $sub(self, b) }
                }
                #[inline(always)]
                unsafe fn times(self, b: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $mul(self, b) }
                }
                #[inline(always)]
                unsafe fn greater(self, b: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $max(self, b) }
                }
                #[inline(always)]
                unsafe fn lesser(self, b: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $min(self, b) }
                }
            }
        };
    }

    lanes!(__m512, 16, u16, first_of_16, load_some_16, _mm512_mask_storeu_ps,
        _mm512_set1_ps _mm512_loadu_ps _mm512_storeu_ps _mm512_fmadd_ps _mm512_add_ps _mm512_sub_ps _mm512_mul_ps
        _mm512_max_ps _mm512_min_ps);
    lanes!(__m256, 8, __m256i, first_of_8, _mm256_maskload_ps, _mm256_maskstore_ps,
        _mm256_set1_ps _mm256_loadu_ps _mm256_storeu_ps _mm256_fmadd_ps _mm256_add_ps _mm256_sub_ps _mm256_mul_ps
        _mm256_max_ps _mm256_min_ps);

    #[inline(always)]
    unsafe fn first_of_16(n: usize) -> u16 {
        ((1u32 << n.min(16)) - 1) as u16
    }

    #[inline(always)]
    unsafe fn load_some_16(from: *const f32, mask: u16) -> __m512 {
        // SAFETY: valid for the lanes of the mask, as the trait asks.
        unsafe { _mm512_maskz_loadu_ps(mask, from) }
    }

    #[inline(always)]
    unsafe fn first_of_8(n: usize) -> __m256i {
        // SAFETY: needs AVX2, as the trait asks.
        unsafe { _mm256_cmpgt_epi32(_mm256_set1_epi32(n.min(8) as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)) }
    }
}
