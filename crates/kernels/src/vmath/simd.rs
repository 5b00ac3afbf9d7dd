//! A vector of floats as a type, so that one body serves every instruction level. The methods are cheap names for single
//! instructions; they must be inlined into a function that is compiled for their level, which [`level!`] sees to.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// `N` floats, with integers of the same width and one truth value a lane.
#[allow(dead_code)] // A complete set; not every level of use needs all of it.
pub(crate) trait Simd:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self> + Neg<Output = Self>
{
    type Int: Copy;
    type Mask: Copy;
    const N: usize;

    fn splat(x: f32) -> Self;
    /// # Safety
    /// `N` floats can be read.
    unsafe fn load(from: *const f32) -> Self;
    /// # Safety
    /// `N` floats can be written.
    unsafe fn store(self, to: *mut f32);
    /// The first `n` lanes, the others 0.
    /// # Safety
    /// `n <= N` floats can be read.
    unsafe fn load_part(from: *const f32, n: usize) -> Self;
    /// # Safety
    /// `n <= N` floats can be written.
    unsafe fn store_part(self, to: *mut f32, n: usize);
    /// A float from each place, counted from `from`.
    /// # Safety
    /// Each of them can be read.
    unsafe fn gather(from: *const f32, places: Self::Int) -> Self;

    /// `self * by + plus`, rounded once.
    fn fma(self, by: Self, plus: Self) -> Self;
    /// `from - self * by`, rounded once.
    fn fnma(self, by: Self, from: Self) -> Self;
    /// `self > other ? self : other`; so `other` where one is NaN.
    fn max(self, other: Self) -> Self;
    /// `self < other ? self : other`; so `other` where one is NaN.
    fn min(self, other: Self) -> Self;
    fn sqrt(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    fn round_even(self) -> Self;
    /// `1 / self` to the last bit or two, for numbers that are neither tiny nor huge.
    fn recip(self) -> Self;
    /// `self * 2^n` for whole `n` of at most 300 in size; also right where the result is denormal.
    fn times_power(self, n: Self) -> Self;

    fn lt(self, other: Self) -> Self::Mask;
    fn le(self, other: Self) -> Self::Mask;
    fn equal(self, other: Self) -> Self::Mask;
    fn both(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn either(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    fn any(mask: Self::Mask) -> bool;
    /// True for the first `n` lanes.
    fn first(n: usize) -> Self::Mask;
    /// Lanes of `yes` where the mask holds, else of `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;

    fn and_bits(self, bits: u32) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn to_bits(self) -> Self::Int;
    fn from_bits(bits: Self::Int) -> Self;
    /// The nearest whole number, for those that fit.
    fn to_int(self) -> Self::Int;
    fn from_int(int: Self::Int) -> Self;
    fn int(x: i32) -> Self::Int;
    fn int_add(a: Self::Int, b: Self::Int) -> Self::Int;
    fn int_sub(a: Self::Int, b: Self::Int) -> Self::Int;
    fn int_and(a: Self::Int, b: Self::Int) -> Self::Int;
    fn int_shl<const BY: u32>(a: Self::Int) -> Self::Int;
    /// Keeps the sign.
    fn int_shr<const BY: u32>(a: Self::Int) -> Self::Int;
    fn int_equal(a: Self::Int, b: Self::Int) -> Self::Mask;

    #[inline(always)]
    fn abs(self) -> Self {
        self.and_bits(0x7fff_ffff)
    }
    /// The sign bit alone.
    #[inline(always)]
    fn sign_bit(self) -> Self {
        self.and_bits(0x8000_0000)
    }
    /// `2^n` for whole `n` from -126 to 127.
    #[inline(always)]
    fn power_of_two(n: Self) -> Self {
        Self::from_bits(Self::int_shl::<23>(Self::int_add(n.to_int(), Self::int(127))))
    }
    /// The polynomial with these coefficients, the highest power first.
    #[inline(always)]
    fn poly<const K: usize>(self, coefficients: [f32; K]) -> Self {
        let mut sum = Self::splat(coefficients[0]);
        for i in 1..K {
            sum = sum.fma(self, Self::splat(coefficients[i]));
        }
        sum
    }
    /// The first `n` lanes from memory, the others `fill`.
    /// # Safety
    /// `n <= N` floats can be read.
    #[inline(always)]
    unsafe fn load_or(from: *const f32, n: usize, fill: Self) -> Self {
        if n == Self::N {
            // SAFETY: the caller's promise.
            return unsafe { Self::load(from) };
        }
        // SAFETY: the caller's promise.
        Self::select(Self::first(n), unsafe { Self::load_part(from, n) }, fill)
    }
    /// The largest of all lanes.
    #[inline(always)]
    fn largest(self) -> f32 {
        self.fold(|a, b| if a > b { a } else { b })
    }
    /// The sum of all lanes.
    #[inline(always)]
    fn sum(self) -> f32 {
        let mut lanes = [0.0f32; 16];
        // SAFETY: no level has more than 16 lanes.
        unsafe { self.store(lanes.as_mut_ptr()) };
        let mut width = Self::N;
        while width > 1 {
            width /= 2;
            for i in 0..width {
                lanes[i] += lanes[i + width];
            }
        }
        lanes[0]
    }
    /// `f` folded over all lanes.
    #[inline(always)]
    fn fold(self, f: impl Fn(f32, f32) -> f32) -> f32 {
        let mut lanes = [0.0f32; 16];
        // SAFETY: no level has more than 16 lanes.
        unsafe { self.store(lanes.as_mut_ptr()) };
        let mut all = lanes[0];
        for &lane in &lanes[1..Self::N] {
            all = f(all, lane);
        }
        all
    }
}

/// One float at a time: the level of machines without AVX2.
#[derive(Clone, Copy)]
pub(crate) struct Plain(pub(crate) f32);

macro_rules! operators {
    ($name:ident: $($op:ident $method:ident |$a:ident, $b:ident| $body:expr;)*) => {
        $(impl std::ops::$op for $name {
            type Output = $name;
            #[inline(always)]
            fn $method(self, other: $name) -> $name {
                let ($a, $b) = (self.0, other.0);
                $name($body)
            }
        })*
        impl std::ops::Neg for $name {
            type Output = $name;
            #[inline(always)]
            fn neg(self) -> $name {
                self.xor(<$name as Simd>::splat(-0.0))
            }
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use operators;

operators! { Plain: Add add |a, b| a + b; Sub sub |a, b| a - b; Mul mul |a, b| a * b; Div div |a, b| a / b; }

impl Simd for Plain {
    type Int = i32;
    type Mask = bool;
    const N: usize = 1;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        Plain(x)
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller's promise.
        Plain(unsafe { *from })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { *to = self.0 }
    }
    #[inline(always)]
    unsafe fn load_part(from: *const f32, n: usize) -> Self {
        // SAFETY: the caller's promise.
        if n == 0 { Plain(0.0) } else { unsafe { Self::load(from) } }
    }
    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, n: usize) {
        if n > 0 {
            // SAFETY: the caller's promise.
            unsafe { self.store(to) }
        }
    }
    #[inline(always)]
    unsafe fn gather(from: *const f32, places: i32) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::load(from.offset(places as isize)) }
    }
    // The product is exact in f64, so only the sum rounds, and then the result: as good as one rounding here, and far
    // quicker than the library's exact one.
    #[inline(always)]
    fn fma(self, by: Self, plus: Self) -> Self {
        Plain((f64::from(self.0) * f64::from(by.0) + f64::from(plus.0)) as f32)
    }
    #[inline(always)]
    fn fnma(self, by: Self, from: Self) -> Self {
        Plain((f64::from(from.0) - f64::from(self.0) * f64::from(by.0)) as f32)
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        if self.0 > other.0 { self } else { other }
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        if self.0 < other.0 { self } else { other }
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        Plain(self.0.sqrt())
    }
    #[inline(always)]
    fn floor(self) -> Self {
        Plain(self.0.floor())
    }
    #[inline(always)]
    fn ceil(self) -> Self {
        Plain(self.0.ceil())
    }
    #[inline(always)]
    fn trunc(self) -> Self {
        Plain(self.0.trunc())
    }
    #[inline(always)]
    fn round_even(self) -> Self {
        // Adding 1.5 * 2^23 leaves no bits for a fraction; larger numbers have none.
        const BIG: f32 = 12_582_912.0;
        if self.0.abs() < 4_194_304.0 {
            Plain(((self.0 + BIG) - BIG).copysign(self.0))
        } else {
            Plain(self.0.round_ties_even())
        }
    }
    #[inline(always)]
    fn recip(self) -> Self {
        Plain(1.0 / self.0)
    }
    #[inline(always)]
    fn times_power(self, n: Self) -> Self {
        let half = (n.0 * 0.5).trunc();
        let power = |n: f32| f64::from_bits(((n as i64 + 1023) as u64) << 52);
        Plain((f64::from(self.0) * power(half) * power(n.0 - half)) as f32)
    }
    #[inline(always)]
    fn lt(self, other: Self) -> bool {
        self.0 < other.0
    }
    #[inline(always)]
    fn le(self, other: Self) -> bool {
        self.0 <= other.0
    }
    #[inline(always)]
    fn equal(self, other: Self) -> bool {
        self.0 == other.0
    }
    #[inline(always)]
    fn both(a: bool, b: bool) -> bool {
        a & b
    }
    #[inline(always)]
    fn either(a: bool, b: bool) -> bool {
        a | b
    }
    #[inline(always)]
    fn any(mask: bool) -> bool {
        mask
    }
    #[inline(always)]
    fn first(n: usize) -> bool {
        n > 0
    }
    #[inline(always)]
    fn select(mask: bool, yes: Self, no: Self) -> Self {
        if mask { yes } else { no }
    }
    #[inline(always)]
    fn and_bits(self, bits: u32) -> Self {
        Plain(f32::from_bits(self.0.to_bits() & bits))
    }
    #[inline(always)]
    fn or(self, other: Self) -> Self {
        Plain(f32::from_bits(self.0.to_bits() | other.0.to_bits()))
    }
    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Plain(f32::from_bits(self.0.to_bits() ^ other.0.to_bits()))
    }
    #[inline(always)]
    fn to_bits(self) -> i32 {
        self.0.to_bits() as i32
    }
    #[inline(always)]
    fn from_bits(bits: i32) -> Self {
        Plain(f32::from_bits(bits as u32))
    }
    #[inline(always)]
    fn to_int(self) -> i32 {
        self.round_even().0 as i32
    }
    #[inline(always)]
    fn from_int(int: i32) -> Self {
        Plain(int as f32)
    }
    #[inline(always)]
    fn int(x: i32) -> i32 {
        x
    }
    #[inline(always)]
    fn int_add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }
    #[inline(always)]
    fn int_sub(a: i32, b: i32) -> i32 {
        a.wrapping_sub(b)
    }
    #[inline(always)]
    fn int_and(a: i32, b: i32) -> i32 {
        a & b
    }
    #[inline(always)]
    fn int_shl<const BY: u32>(a: i32) -> i32 {
        a << BY
    }
    #[inline(always)]
    fn int_shr<const BY: u32>(a: i32) -> i32 {
        a >> BY
    }
    #[inline(always)]
    fn int_equal(a: i32, b: i32) -> bool {
        a == b
    }
}

/// Runs `$body` with `$S` bound to the vector type of the level, inside a function compiled for it. The arguments are passed
/// by name with their types, since a nested function sees nothing else. `$body` is unsafe code.
macro_rules! level {
    ($isa:expr, <$S:ident $(, $G:ident: $Bound:path)*> ($($name:ident: $ty:ty),*) $(-> $Out:ty)? { $($body:tt)* }) => {{
        #[inline(always)]
        #[allow(unused_unsafe)]
        unsafe fn body<$S: $crate::vmath::simd::Simd $(, $G: $Bound)*>($($name: $ty),*) $(-> $Out)? {
            // SAFETY: the caller of `level!` promises what the body needs.
            unsafe { $($body)* }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
        unsafe fn avx512<$($G: $Bound),*>($($name: $ty),*) $(-> $Out)? {
            // SAFETY: passed on.
            unsafe { body::<$crate::vmath::avx512::F16 $(, $G)*>($($name),*) }
        }
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma")]
        unsafe fn avx2<$($G: $Bound),*>($($name: $ty),*) $(-> $Out)? {
            // SAFETY: passed on.
            unsafe { body::<$crate::vmath::avx2::F8 $(, $G)*>($($name),*) }
        }
        unsafe fn plain<$($G: $Bound),*>($($name: $ty),*) $(-> $Out)? {
            // SAFETY: passed on.
            unsafe { body::<$crate::vmath::simd::Plain $(, $G)*>($($name),*) }
        }
        match $crate::Isa::here($isa) {
            #[cfg(target_arch = "x86_64")]
            $crate::Isa::Avx512 => avx512::<$($G),*>($($name),*),
            #[cfg(target_arch = "x86_64")]
            $crate::Isa::Avx2 => avx2::<$($G),*>($($name),*),
            _ => plain::<$($G),*>($($name),*),
        }
    }};
}
pub(crate) use level;
