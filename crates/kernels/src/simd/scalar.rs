//! Four floats in plain Rust, which the compiler turns into whatever vectors its baseline has. A truth value is a lane of
//! ones.

use super::{Block, Kernel, Simd};
use std::ops::{Add, Div, Mul, Neg, Sub};

#[derive(Clone, Copy)]
pub(super) struct F32x4([f32; 4]);

type Mask = [i32; 4];

#[inline(always)]
fn each<A: Copy, R>(a: [A; 4], f: impl Fn(A) -> R) -> [R; 4] {
    [f(a[0]), f(a[1]), f(a[2]), f(a[3])]
}

#[inline(always)]
fn zip<A: Copy, B: Copy, R>(a: [A; 4], b: [B; 4], f: impl Fn(A, B) -> R) -> [R; 4] {
    [f(a[0], b[0]), f(a[1], b[1]), f(a[2], b[2]), f(a[3], b[3])]
}

macro_rules! operator {
    ($($Op:ident $method:ident $sign:tt;)*) => {$(
        impl $Op for F32x4 {
            type Output = F32x4;
            #[inline(always)]
            fn $method(self, other: F32x4) -> F32x4 {
                F32x4(zip(self.0, other.0, |a, b| a $sign b))
            }
        }
    )*};
}
operator! { Add add +; Sub sub -; Mul mul *; Div div /; }

impl Neg for F32x4 {
    type Output = F32x4;
    #[inline(always)]
    fn neg(self) -> F32x4 {
        F32x4(each(self.0, |a| -a))
    }
}

macro_rules! lanes {
    ($($name:ident |$a:ident| $body:expr;)*) => {$(
        #[inline(always)]
        fn $name(self) -> Self {
            F32x4(each(self.0, |$a: f32| $body))
        }
    )*};
}

macro_rules! pairs {
    ($($name:ident -> $Out:ty, $wrap:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        #[inline(always)]
        fn $name(self, other: Self) -> $Out {
            $wrap(zip(self.0, other.0, |$a: f32, $b: f32| $body))
        }
    )*};
}

macro_rules! integers {
    ($($name:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        #[inline(always)]
        fn $name(a: [i32; 4], b: [i32; 4]) -> [i32; 4] {
            zip(a, b, |$a: i32, $b: i32| $body)
        }
    )*};
}

/// For masks, which are not wrapped.
#[inline(always)]
fn same<T>(x: T) -> T {
    x
}

impl Simd for F32x4 {
    type Int = [i32; 4];
    type Mask = Mask;
    const N: usize = 4;
    const REGISTERS: usize = 16;
    const FAST_LOOKUP: bool = false;
    const FUSED: bool = false;

    // Once for each kernel, not inside of everything that picks a level.
    #[inline(never)]
    unsafe fn call<K: Kernel>(args: K::Args<'_>) -> K::Out {
        // SAFETY: the caller's promise; no instructions are needed.
        unsafe { K::run::<Self>(args) }
    }
    #[inline(always)]
    fn splat(x: f32) -> Self {
        F32x4([x; 4])
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller's promise.
        F32x4(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    unsafe fn load_partial(from: *const f32, n: usize) -> Self {
        let mut lanes = [0.0; 4];
        for i in 0..n.min(4) {
            // SAFETY: the caller's promise.
            lanes[i] = unsafe { *from.add(i) };
        }
        F32x4(lanes)
    }
    #[inline(always)]
    unsafe fn store_partial(self, to: *mut f32, n: usize) {
        for i in 0..n.min(4) {
            // SAFETY: the caller's promise.
            unsafe { *to.add(i) = self.0[i] };
        }
    }
    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: Mask) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::load_partial(from, count(mask)) }
    }
    #[inline(always)]
    unsafe fn store_masked(self, to: *mut f32, mask: Mask) {
        // SAFETY: the caller's promise.
        unsafe { self.store_partial(to, count(mask)) }
    }
    #[inline(always)]
    unsafe fn load_doubled(from: *const f32) -> Self {
        // SAFETY: the caller's promise.
        let (a, b) = unsafe { (*from, *from.add(1)) };
        F32x4([a, a, b, b])
    }
    #[inline(always)]
    unsafe fn gather(from: *const f32, indices: [i32; 4]) -> Self {
        // SAFETY: the caller's promise.
        F32x4(each(indices, |i| unsafe { *from.offset(i as isize) }))
    }
    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> [i32; 4] {
        // SAFETY: the caller's promise.
        each(unsafe { from.cast::<[i8; 4]>().read() }, i32::from)
    }
    #[inline(always)]
    fn lookup(table: &[f32; 16], indices: [i32; 4]) -> Self {
        F32x4(each(indices, |i| table[(i & 15) as usize]))
    }
    // The product is exact in f64, so only the sum rounds, and then the result: as good as one rounding here, and far
    // quicker than the library's exact one.
    #[inline(always)]
    fn fma(self, by: Self, plus: Self) -> Self {
        let product = zip(self.0, by.0, |a, b| f64::from(a) * f64::from(b));
        F32x4(zip(product, plus.0, |p, c| (p + f64::from(c)) as f32))
    }
    #[inline(always)]
    fn fnma(self, by: Self, from: Self) -> Self {
        let product = zip(self.0, by.0, |a, b| f64::from(a) * f64::from(b));
        F32x4(zip(product, from.0, |p, c| (f64::from(c) - p) as f32))
    }
    #[inline(always)]
    fn mul_add(self, by: Self, plus: Self) -> Self {
        self * by + plus
    }
    #[inline(always)]
    fn mul_add_alternate(self, by: Self, other: Self) -> Self {
        let [a, b, c, d] = other.0;
        self * by + F32x4([-a, b, -c, d])
    }
    #[inline(always)]
    fn swap_pairs(self) -> Self {
        let [a, b, c, d] = self.0;
        F32x4([b, a, d, c])
    }
    lanes! {
        sqrt |a| a.sqrt();
        floor |a| a.floor();
        ceil |a| a.ceil();
        trunc |a| a.trunc();
        round_even |a| round_even(a);
        recip |a| 1.0 / a;
    }
    pairs! {
        max -> Self, F32x4 |a, b| if a > b { a } else { b };
        min -> Self, F32x4 |a, b| if a < b { a } else { b };
        lt -> Mask, same |a, b| -i32::from(a < b);
        le -> Mask, same |a, b| -i32::from(a <= b);
        equal -> Mask, same |a, b| -i32::from(a == b);
        or -> Self, F32x4 |a, b| f32::from_bits(a.to_bits() | b.to_bits());
        xor -> Self, F32x4 |a, b| f32::from_bits(a.to_bits() ^ b.to_bits());
        ldexp -> Self, F32x4 |a, n| ldexp(a, n);
    }
    #[inline(always)]
    fn any(mask: Mask) -> bool {
        mask[0] | mask[1] | mask[2] | mask[3] != 0
    }
    #[inline(always)]
    fn first(n: usize) -> Mask {
        each([0, 1, 2, 3], |i: usize| -i32::from(i < n))
    }
    #[inline(always)]
    fn select(mask: Mask, yes: Self, no: Self) -> Self {
        let [a, b, c, d] = mask;
        let pick = |m: i32, i: usize| if m != 0 { yes.0[i] } else { no.0[i] };
        F32x4([pick(a, 0), pick(b, 1), pick(c, 2), pick(d, 3)])
    }
    #[inline(always)]
    fn and_bits(self, bits: u32) -> Self {
        F32x4(each(self.0, |a| f32::from_bits(a.to_bits() & bits)))
    }
    #[inline(always)]
    fn to_bits(self) -> [i32; 4] {
        each(self.0, |a| a.to_bits() as i32)
    }
    #[inline(always)]
    fn from_bits(bits: [i32; 4]) -> Self {
        F32x4(each(bits, |a| f32::from_bits(a as u32)))
    }
    #[inline(always)]
    fn to_int(self) -> [i32; 4] {
        each(self.0, |a| round_even(a) as i32)
    }
    #[inline(always)]
    fn from_int(int: [i32; 4]) -> Self {
        F32x4(each(int, |a| a as f32))
    }
    #[inline(always)]
    fn int(x: i32) -> [i32; 4] {
        [x; 4]
    }
    integers! {
        mask_and |a, b| a & b;
        int_add |a, b| a.wrapping_add(b);
        int_sub |a, b| a.wrapping_sub(b);
        int_and |a, b| a & b;
        int_equal |a, b| -i32::from(a == b);
    }
    #[inline(always)]
    fn int_shl<const BY: u32>(a: [i32; 4]) -> [i32; 4] {
        each(a, |a| a << BY)
    }
    #[inline(always)]
    fn int_shr<const BY: u32>(a: [i32; 4]) -> [i32; 4] {
        each(a, |a| a >> BY)
    }
    #[inline(always)]
    fn reduce_add(self) -> f32 {
        (self.0[0] + self.0[2]) + (self.0[1] + self.0[3])
    }
    #[inline(always)]
    fn reduce_max(self) -> f32 {
        self.0[0].max(self.0[1]).max(self.0[2].max(self.0[3]))
    }
    #[inline(always)]
    fn reduce_add4(four: [Self; 4]) -> [f32; 4] {
        each(four, |v| v.reduce_add())
    }
    #[inline(always)]
    unsafe fn transpose(b: Block) {
        for column in 0..b.width {
            for row in 0..b.to_width {
                // SAFETY: rows are clamped to those that are there; the caller's block covers the rest.
                unsafe {
                    *b.to.add(column * b.to_stride + row) = *b.from.add(row.min(b.rows - 1) * b.from_stride + column);
                }
            }
        }
    }
}

/// Lanes of a mask of the first ones.
#[inline(always)]
fn count(mask: Mask) -> usize {
    -(mask[0] + mask[1] + mask[2] + mask[3]) as usize
}

#[inline(always)]
fn round_even(a: f32) -> f32 {
    // Adding 1.5 * 2^23 leaves no bits for a fraction; larger numbers have none.
    const BIG: f32 = 12_582_912.0;
    if a.abs() < 4_194_304.0 { ((a + BIG) - BIG).copysign(a) } else { a.round_ties_even() }
}

#[inline(always)]
fn ldexp(a: f32, n: f32) -> f32 {
    let half = (n * 0.5).trunc();
    let power = |n: f32| f64::from_bits(((n as i64 + 1023) as u64) << 52);
    (f64::from(a) * power(half) * power(n - half)) as f32
}
