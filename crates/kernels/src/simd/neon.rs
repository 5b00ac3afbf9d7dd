//! 4 floats in one NEON register. A truth value is a lane of ones.
#![allow(clippy::undocumented_unsafe_blocks)] // One reason for all: only code that was dispatched to this level has the type.

use super::{Block, Kernel, Simd, operators};
use std::arch::aarch64::*;

#[derive(Clone, Copy)]
pub(super) struct F32x4(float32x4_t);

operators! { F32x4:
    Add add |a, b| unsafe { vaddq_f32(a, b) };
    Sub sub |a, b| unsafe { vsubq_f32(a, b) };
    Mul mul |a, b| unsafe { vmulq_f32(a, b) };
    Div div |a, b| unsafe { vdivq_f32(a, b) };
}

macro_rules! names {
    ($($name:ident($own:ident $(, $arg:ident)*) = $body:expr;)*) => {$(
        #[inline(always)]
        fn $name(self $(, $arg: Self)*) -> Self {
            let $own = self.0;
            $(let $arg = $arg.0;)*
            F32x4(unsafe { $body })
        }
    )*};
}

macro_rules! integers {
    ($($name:ident = $body:ident;)*) => {$(
        #[inline(always)]
        fn $name(a: int32x4_t, b: int32x4_t) -> int32x4_t {
            unsafe { $body(a, b) }
        }
    )*};
}

/// Lanes of a mask of the first ones.
#[inline(always)]
fn count(mask: uint32x4_t) -> usize {
    unsafe { vaddvq_u32(vshrq_n_u32::<31>(mask)) as usize }
}

#[inline(always)]
fn bits(x: float32x4_t) -> uint32x4_t {
    unsafe { vreinterpretq_u32_f32(x) }
}

impl Simd for F32x4 {
    type Int = int32x4_t;
    type Mask = uint32x4_t;
    const N: usize = 4;
    const REGISTERS: usize = 32;
    const FAST_LOOKUP: bool = false;
    const FUSED: bool = true;

    #[target_feature(enable = "neon")]
    unsafe fn call<K: Kernel>(args: K::Args<'_>) -> K::Out {
        unsafe { K::run::<Self>(args) }
    }
    #[inline(always)]
    fn splat(x: f32) -> Self {
        F32x4(unsafe { vdupq_n_f32(x) })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        F32x4(unsafe { vld1q_f32(from) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { vst1q_f32(to, self.0) }
    }
    #[inline(always)]
    unsafe fn load_partial(from: *const f32, n: usize) -> Self {
        F32x4(unsafe {
            let zero = vdupq_n_f32(0.0);
            match n {
                0 => zero,
                1 => vld1q_lane_f32::<0>(from, zero),
                2 => vcombine_f32(vld1_f32(from), vdup_n_f32(0.0)),
                3 => vld1q_lane_f32::<2>(from.add(2), vcombine_f32(vld1_f32(from), vdup_n_f32(0.0))),
                _ => vld1q_f32(from),
            }
        })
    }
    #[inline(always)]
    unsafe fn store_partial(self, to: *mut f32, n: usize) {
        unsafe {
            match n {
                0 => {}
                1 => vst1q_lane_f32::<0>(to, self.0),
                2 => vst1_f32(to, vget_low_f32(self.0)),
                3 => {
                    vst1_f32(to, vget_low_f32(self.0));
                    vst1q_lane_f32::<2>(to.add(2), self.0);
                }
                _ => vst1q_f32(to, self.0),
            }
        }
    }
    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: uint32x4_t) -> Self {
        unsafe { Self::load_partial(from, count(mask)) }
    }
    #[inline(always)]
    unsafe fn store_masked(self, to: *mut f32, mask: uint32x4_t) {
        unsafe { self.store_partial(to, count(mask)) }
    }
    #[inline(always)]
    unsafe fn load_doubled(from: *const f32) -> Self {
        unsafe {
            let two = vld1_f32(from);
            F32x4(vcombine_f32(vdup_lane_f32::<0>(two), vdup_lane_f32::<1>(two)))
        }
    }
    #[inline(always)]
    unsafe fn gather(from: *const f32, indices: int32x4_t) -> Self {
        unsafe {
            let at = |i: i32| from.offset(i as isize);
            let first = vld1q_dup_f32(at(vgetq_lane_s32::<0>(indices)));
            let second = vld1q_lane_f32::<1>(at(vgetq_lane_s32::<1>(indices)), first);
            let third = vld1q_lane_f32::<2>(at(vgetq_lane_s32::<2>(indices)), second);
            F32x4(vld1q_lane_f32::<3>(at(vgetq_lane_s32::<3>(indices)), third))
        }
    }
    #[inline(always)]
    unsafe fn load_i8(from: *const i8) -> int32x4_t {
        unsafe {
            let bytes = vreinterpret_s8_u32(vdup_n_u32(from.cast::<u32>().read_unaligned()));
            vmovl_s16(vget_low_s16(vmovl_s8(bytes)))
        }
    }
    #[inline(always)]
    fn lookup(table: &[f32; 16], indices: int32x4_t) -> Self {
        // SAFETY: four bits count within the table.
        unsafe { Self::gather(table.as_ptr(), vandq_s32(indices, vdupq_n_s32(15))) }
    }
    names! {
        fma(a, b, c) = vfmaq_f32(c, a, b);
        fnma(a, b, c) = vfmsq_f32(c, a, b);
        // The instructions of these names treat NaN otherwise.
        max(a, b) = vbslq_f32(vcgtq_f32(a, b), a, b);
        min(a, b) = vbslq_f32(vcltq_f32(a, b), a, b);
        sqrt(a) = vsqrtq_f32(a);
        floor(a) = vrndmq_f32(a);
        ceil(a) = vrndpq_f32(a);
        trunc(a) = vrndq_f32(a);
        round_even(a) = vrndnq_f32(a);
        swap_pairs(a) = vrev64q_f32(a);
        or(a, b) = vreinterpretq_f32_u32(vorrq_u32(bits(a), bits(b)));
        xor(a, b) = vreinterpretq_f32_u32(veorq_u32(bits(a), bits(b)));
    }
    #[inline(always)]
    fn mul_add_alternate(self, by: Self, other: Self) -> Self {
        let even = unsafe { vreinterpretq_f32_u64(vdupq_n_u64(0x8000_0000)) };
        self.fma(by, other.xor(F32x4(even)))
    }
    #[inline(always)]
    fn recip(self) -> Self {
        Self::splat(1.0) / self
    }
    #[inline(always)]
    fn ldexp(self, n: Self) -> Self {
        let n = n.to_int();
        let half = Self::int_shr::<1>(n);
        let power = |n| Self::from_bits(Self::int_shl::<23>(Self::int_add(n, Self::int(127))));
        // One part is exact whenever the other makes the result denormal, so it is rounded once.
        self * power(half) * power(Self::int_sub(n, half))
    }
    #[inline(always)]
    fn lt(self, other: Self) -> uint32x4_t {
        unsafe { vcltq_f32(self.0, other.0) }
    }
    #[inline(always)]
    fn le(self, other: Self) -> uint32x4_t {
        unsafe { vcleq_f32(self.0, other.0) }
    }
    #[inline(always)]
    fn equal(self, other: Self) -> uint32x4_t {
        unsafe { vceqq_f32(self.0, other.0) }
    }
    #[inline(always)]
    fn mask_and(a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        unsafe { vandq_u32(a, b) }
    }
    #[inline(always)]
    fn any(mask: uint32x4_t) -> bool {
        unsafe { vmaxvq_u32(mask) != 0 }
    }
    #[inline(always)]
    fn first(n: usize) -> uint32x4_t {
        unsafe {
            let lanes = vld1q_u32([0, 1, 2, 3].as_ptr());
            vcltq_u32(lanes, vdupq_n_u32(n.min(4) as u32))
        }
    }
    #[inline(always)]
    fn select(mask: uint32x4_t, yes: Self, no: Self) -> Self {
        unsafe { F32x4(vbslq_f32(mask, yes.0, no.0)) }
    }
    #[inline(always)]
    fn and_bits(self, with: u32) -> Self {
        unsafe { F32x4(vreinterpretq_f32_u32(vandq_u32(bits(self.0), vdupq_n_u32(with)))) }
    }
    #[inline(always)]
    fn to_bits(self) -> int32x4_t {
        unsafe { vreinterpretq_s32_f32(self.0) }
    }
    #[inline(always)]
    fn from_bits(bits: int32x4_t) -> Self {
        unsafe { F32x4(vreinterpretq_f32_s32(bits)) }
    }
    #[inline(always)]
    fn to_int(self) -> int32x4_t {
        unsafe { vcvtnq_s32_f32(self.0) }
    }
    #[inline(always)]
    fn from_int(int: int32x4_t) -> Self {
        unsafe { F32x4(vcvtq_f32_s32(int)) }
    }
    #[inline(always)]
    fn int(x: i32) -> int32x4_t {
        unsafe { vdupq_n_s32(x) }
    }
    integers! {
        int_add = vaddq_s32;
        int_sub = vsubq_s32;
        int_and = vandq_s32;
    }
    #[inline(always)]
    fn int_shl<const BY: u32>(a: int32x4_t) -> int32x4_t {
        unsafe { vshlq_s32(a, vdupq_n_s32(BY as i32)) }
    }
    #[inline(always)]
    fn int_shr<const BY: u32>(a: int32x4_t) -> int32x4_t {
        unsafe { vshlq_s32(a, vdupq_n_s32(-(BY as i32))) }
    }
    #[inline(always)]
    fn int_equal(a: int32x4_t, b: int32x4_t) -> uint32x4_t {
        unsafe { vceqq_s32(a, b) }
    }
    #[inline(always)]
    fn reduce_add(self) -> f32 {
        unsafe {
            let two = vadd_f32(vget_low_f32(self.0), vget_high_f32(self.0));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        }
    }
    #[inline(always)]
    fn reduce_max(self) -> f32 {
        unsafe { vmaxvq_f32(self.0) }
    }
    #[inline(always)]
    fn reduce_add4([a, b, c, d]: [Self; 4]) -> [f32; 4] {
        let mut out = [0.0; 4];
        unsafe { vst1q_f32(out.as_mut_ptr(), vpaddq_f32(vpaddq_f32(a.0, b.0), vpaddq_f32(c.0, d.0))) };
        out
    }
    #[inline(always)]
    unsafe fn transpose(b: Block) {
        // SAFETY: rows are clamped to those that are there, and only the block's width of each is read and written.
        unsafe {
            let row = |i: usize| Self::load_partial(b.from.add(i.min(b.rows - 1) * b.from_stride), b.width).0;
            let (r0, r1, r2, r3) = (row(0), row(1), row(2), row(3));
            let pairs = |x, y| (vreinterpretq_f64_f32(vtrn1q_f32(x, y)), vreinterpretq_f64_f32(vtrn2q_f32(x, y)));
            let ((a, c), (b2, d)) = (pairs(r0, r1), pairs(r2, r3));
            let columns = [vtrn1q_f64(a, b2), vtrn1q_f64(c, d), vtrn2q_f64(a, b2), vtrn2q_f64(c, d)];
            for (i, column) in columns.into_iter().enumerate().take(b.width) {
                F32x4(vreinterpretq_f32_f64(column)).store_partial(b.to.add(i * b.to_stride), b.to_width);
            }
        }
    }
}
