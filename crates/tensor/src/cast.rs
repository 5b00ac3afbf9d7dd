//! Rust types of elements, and conversion between any two element types with the results OpenVINO gives on x86.
//! Rust's `as` saturates floats; here a float outside of i32 or i64 gives the minimum, and narrower integers wrap.

use std::borrow::Cow;
use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Rem, Sub};

use half::{bf16, f16};

use crate::memory::try_collect;
use crate::{ElementType, Tensor, TensorError, float8, pack};

/// A Rust type that is the storage of an element type.
pub trait Element: bytemuck::Pod + Send + Sync {
    /// The element type that it stores.
    const TYPE: ElementType;
}

/// Arithmetic and lossless-where-possible conversion over the element types that Rust can compute with.
pub trait Number:
    bytemuck::Pod
    + PartialOrd
    + Default
    + Debug
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Rem<Output = Self>
{
    /// Whether it is a float.
    const IS_FLOAT: bool;
    /// The element type that it computes.
    const TYPE: ElementType;

    /// As f64; integers beyond 2^53 are rounded.
    fn to_f64(self) -> f64;
    /// Truncates floats; outside of i64, and for NaN, gives `i64::MIN`. A u64 wraps.
    fn to_i64(self) -> i64;
    /// Negatives wrap.
    fn to_u64(self) -> u64;
    /// From f64; floats are rounded, integers truncated and kept within their range.
    fn from_f64(value: f64) -> Self;
    /// Integers wrap.
    fn from_i64(value: i64) -> Self;
    /// Integers wrap.
    fn from_u64(value: u64) -> Self;

    /// Converts as OpenVINO's Convert does; integers never travel through a float.
    fn cast<U: Number>(self) -> U;

    /// The sum; integers wrap.
    fn wrapping_add(self, other: Self) -> Self;
    /// The difference; integers wrap.
    fn wrapping_sub(self, other: Self) -> Self;
    /// The product; integers wrap.
    fn wrapping_mul(self, other: Self) -> Self;

    /// 0.
    fn zero() -> Self {
        Self::default()
    }
    /// 1.
    fn one() -> Self {
        Self::from_i64(1)
    }
    /// The lowest finite value.
    fn lowest() -> Self;
    /// The highest finite value.
    fn highest() -> Self;
    /// Whether it is not a number; never for integers.
    fn is_nan(self) -> bool;

    /// What [`Tensor::to_vec`] does, compiled in this crate for each type and not again in each that calls it.
    #[doc(hidden)]
    fn all_of(tensor: &Tensor) -> Result<Cow<'_, [Self]>, TensorError>;
    /// What [`Tensor::from_numbers`] does where numbers are converted.
    #[doc(hidden)]
    fn tensor_of(ty: ElementType, shape: &[usize], data: &[Self]) -> Result<Tensor, TensorError>;
}

/// The conversions of whole tensors, the same for each number.
macro_rules! tensors {
    () => {
        fn all_of(tensor: &Tensor) -> Result<Cow<'_, [Self]>, TensorError> {
            tensor.numbers()
        }
        fn tensor_of(ty: ElementType, shape: &[usize], data: &[Self]) -> Result<Tensor, TensorError> {
            Tensor::from_number_slice(ty, shape, data)
        }
    };
}

/// Truncates toward zero; outside of i64 gives the minimum, as cvttsd2si.
fn truncate_i64(value: f64) -> i64 {
    // 2^63 itself does not fit, -2^63 does.
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) { value as i64 } else { i64::MIN }
}

fn truncate_i32(value: f64) -> i32 {
    let whole = value.trunc();
    if (-2_147_483_648.0..=2_147_483_647.0).contains(&whole) { whole as i32 } else { i32::MIN }
}

/// Below 2^63 as i64 (negatives wrap), above exactly; infinity gives 0, as compilers for x86 do it.
fn truncate_u64(value: f64) -> u64 {
    const HALF: f64 = 9_223_372_036_854_775_808.0;
    if value >= HALF { (truncate_i64(value - HALF) as u64) ^ (1 << 63) } else { truncate_i64(value) as u64 }
}

macro_rules! integer {
    ($($t:ident $ty:ident from_f64 = |$v:ident| $from:expr, via $via:ident;)*) => {$(
        impl Element for $t {
            const TYPE: ElementType = ElementType::$ty;
        }

        impl Number for $t {
            const IS_FLOAT: bool = false;
            const TYPE: ElementType = ElementType::$ty;

            fn to_f64(self) -> f64 {
                self as f64
            }
            fn to_i64(self) -> i64 {
                self as i64
            }
            fn to_u64(self) -> u64 {
                self as u64
            }
            fn from_f64($v: f64) -> Self {
                $from as $t
            }
            fn from_i64(value: i64) -> Self {
                value as $t
            }
            fn from_u64(value: u64) -> Self {
                value as $t
            }
            fn cast<U: Number>(self) -> U {
                integer!(@cast $via U self)
            }
            fn wrapping_add(self, other: Self) -> Self {
                <$t>::wrapping_add(self, other)
            }
            fn wrapping_sub(self, other: Self) -> Self {
                <$t>::wrapping_sub(self, other)
            }
            fn wrapping_mul(self, other: Self) -> Self {
                <$t>::wrapping_mul(self, other)
            }
            fn lowest() -> Self {
                <$t>::MIN
            }
            fn highest() -> Self {
                <$t>::MAX
            }
            fn is_nan(self) -> bool {
                false
            }
            tensors!();
        }
    )*};
    (@cast i64 $u:ident $self:ident) => { $u::from_i64($self as i64) };
    (@cast u64 $u:ident $self:ident) => { $u::from_u64($self as u64) };
}

// x86 has no conversion to 8 and 16 bits: they take the low bits of an i32, and u32 those of an i64.
integer! {
    i8 I8 from_f64 = |v| truncate_i32(v), via i64;
    i16 I16 from_f64 = |v| truncate_i32(v), via i64;
    i32 I32 from_f64 = |v| truncate_i32(v), via i64;
    i64 I64 from_f64 = |v| truncate_i64(v), via i64;
    u8 U8 from_f64 = |v| truncate_i32(v), via u64;
    u16 U16 from_f64 = |v| truncate_i32(v), via u64;
    u32 U32 from_f64 = |v| truncate_i64(v), via u64;
    u64 U64 from_f64 = |v| truncate_u64(v), via u64;
}

macro_rules! float {
    ($($t:ident $ty:ident, to |$s:ident| $to:expr, from |$v:ident| $from:expr;)*) => {$(
        impl Element for $t {
            const TYPE: ElementType = ElementType::$ty;
        }

        impl Number for $t {
            const IS_FLOAT: bool = true;
            const TYPE: ElementType = ElementType::$ty;

            fn to_f64(self) -> f64 {
                let $s = self;
                $to
            }
            fn to_i64(self) -> i64 {
                truncate_i64(Number::to_f64(self))
            }
            fn to_u64(self) -> u64 {
                truncate_u64(Number::to_f64(self))
            }
            fn from_f64($v: f64) -> Self {
                $from
            }
            fn from_i64($v: i64) -> Self {
                $from
            }
            fn from_u64($v: u64) -> Self {
                $from
            }
            fn cast<U: Number>(self) -> U {
                U::from_f64(Number::to_f64(self))
            }
            fn wrapping_add(self, other: Self) -> Self {
                self + other
            }
            fn wrapping_sub(self, other: Self) -> Self {
                self - other
            }
            fn wrapping_mul(self, other: Self) -> Self {
                self * other
            }
            fn lowest() -> Self {
                <$t>::MIN
            }
            fn highest() -> Self {
                <$t>::MAX
            }
            fn is_nan(self) -> bool {
                <$t>::is_nan(self)
            }
            tensors!();
        }
    )*};
}

// OpenVINO reaches f16 and bf16 through f32, so an f64 is rounded twice.
float! {
    f16 F16, to |s| f64::from(s), from |v| f16::from_f32(v as f32);
    bf16 Bf16, to |s| f64::from(s), from |v| bf16::from_f32(v as f32);
    f32 F32, to |s| f64::from(s), from |v| v as f32;
    f64 F64, to |s| s, from |v| v as f64;
}

/// Runs `$body` with `$T` bound to the Rust type that stores `$ty`, or `$other` for types that have none.
macro_rules! with_storage_type {
    ($ty:expr, $T:ident => $body:expr, _ => $other:expr) => {
        match $ty {
            $crate::ElementType::F32 => {
                type $T = f32;
                $body
            }
            $crate::ElementType::F64 => {
                type $T = f64;
                $body
            }
            $crate::ElementType::F16 => {
                type $T = half::f16;
                $body
            }
            $crate::ElementType::Bf16 => {
                type $T = half::bf16;
                $body
            }
            $crate::ElementType::I8 => {
                type $T = i8;
                $body
            }
            $crate::ElementType::I16 => {
                type $T = i16;
                $body
            }
            $crate::ElementType::I32 => {
                type $T = i32;
                $body
            }
            $crate::ElementType::I64 => {
                type $T = i64;
                $body
            }
            $crate::ElementType::U8 => {
                type $T = u8;
                $body
            }
            $crate::ElementType::U16 => {
                type $T = u16;
                $body
            }
            $crate::ElementType::U32 => {
                type $T = u32;
                $body
            }
            $crate::ElementType::U64 => {
                type $T = u64;
                $body
            }
            _ => $other,
        }
    };
}
pub(crate) use with_storage_type;

/// True for the types kept as raw codes: all of at most 8 bits that Rust has no number for, and Boolean.
pub(crate) fn is_coded(ty: ElementType) -> bool {
    ty == ElementType::Boolean || ty.is_sub_byte() || (ty.is_float() && ty.bits() == 8)
}

/// The number a raw code stands for.
pub(crate) fn decode_code<T: Number>(ty: ElementType, code: u8) -> T {
    match ty {
        ElementType::I2 => T::from_i64(i64::from((code << 6) as i8 >> 6)),
        ElementType::I4 => T::from_i64(i64::from((code << 4) as i8 >> 4)),
        _ if ty.is_float() => float8::decode(ty, code).cast(),
        _ => T::from_u64(u64::from(code)),
    }
}

/// The raw code a number becomes: the low bits for integers (one bit for u1), `!= 0` for Boolean.
pub(crate) fn encode_code<T: Number>(ty: ElementType, value: T) -> u8 {
    match ty {
        ElementType::Boolean => u8::from(value != T::default()),
        ElementType::U1 => value.to_i64() as u8 & 1,
        _ if ty.is_float() => float8::encode(ty, value.cast()),
        _ => value.to_i64() as u8,
    }
}

/// The numbers behind `count` raw codes packed in `bytes`.
pub(crate) fn decode_all<T: Number>(ty: ElementType, bytes: &[u8], count: usize) -> Result<Vec<T>, TensorError> {
    let values: Vec<T> = (0..1usize << ty.bits()).map(|code| decode_code(ty, code as u8)).collect();
    try_collect((0..count).map(|i| values[usize::from(pack::get(ty, bytes, i))]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_truncate_toward_zero() {
        assert_eq!(1.9f32.cast::<i32>(), 1);
        assert_eq!((-1.9f32).cast::<i32>(), -1);
        assert_eq!((-1.9f32).cast::<i64>(), -1);
    }

    #[test]
    fn floats_outside_of_i32_give_the_minimum() {
        for value in [3e9f32, -3e9, f32::INFINITY, f32::NAN, 2_147_483_648.0] {
            assert_eq!(value.cast::<i32>(), i32::MIN, "{value}");
        }
        assert_eq!(2_147_483_647.5f64.cast::<i32>(), i32::MAX);
        assert_eq!((-2_147_483_648.5f64).cast::<i32>(), i32::MIN);
    }

    #[test]
    fn floats_outside_of_i64_give_the_minimum() {
        for value in [1e19f32, -1e19, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 2f32.powi(63)] {
            assert_eq!(value.cast::<i64>(), i64::MIN, "{value}");
        }
    }

    #[test]
    fn floats_wrap_into_narrow_integers() {
        assert_eq!(300f32.cast::<u8>(), 44);
        assert_eq!((-1.9f32).cast::<u8>(), 255);
        assert_eq!((-300f32).cast::<i8>(), -44);
        assert_eq!((-300f32).cast::<u16>(), 65236);
        assert_eq!(3e9f32.cast::<u32>(), 3_000_000_000);
        assert_eq!(5e9f32.cast::<u32>(), 0x2a05_f200);
        assert_eq!((-1.9f32).cast::<u32>(), u32::MAX);
    }

    #[test]
    fn floats_past_i32_give_zero_in_16_bits() {
        assert_eq!(5e9f32.cast::<u16>(), 0);
        assert_eq!(f32::INFINITY.cast::<i16>(), 0);
    }

    #[test]
    fn floats_past_i64_reach_u64() {
        assert_eq!(1e19f32.cast::<u64>(), 0x8ac7_2300_0000_0000);
        assert_eq!(1e19f64.cast::<u64>(), 10_000_000_000_000_000_000);
        assert_eq!((-1.9f32).cast::<u64>(), u64::MAX);
        assert_eq!(f32::INFINITY.cast::<u64>(), 0);
        assert_eq!(f32::NAN.cast::<u64>(), 1 << 63);
    }

    #[test]
    fn negative_integers_wrap_into_unsigned() {
        assert_eq!((-1i32).cast::<u8>(), 255);
        assert_eq!((-1i64).cast::<u64>(), u64::MAX);
        assert_eq!(300i32.cast::<u8>(), 44);
    }

    #[test]
    fn large_integers_keep_every_bit() {
        let big = i64::MAX - 1;
        assert_eq!(big.cast::<u64>(), big as u64);
        assert_eq!((u64::MAX - 1).cast::<i64>(), -2);
        assert_eq!((u64::MAX - 1).cast::<u64>(), u64::MAX - 1);
        assert_eq!(((1u64 << 53) + 1).cast::<i64>(), (1 << 53) + 1);
    }

    #[test]
    fn large_integers_reach_f32_with_one_rounding() {
        assert_eq!(((1i64 << 62) + (1 << 38) + 1).cast::<f32>().to_bits(), 0x5e80_0001);
    }

    #[test]
    fn halves_round_to_nearest_even() {
        assert_eq!((1.0f32 + 2f32.powi(-11)).cast::<f16>(), f16::ONE);
        assert_eq!((1.0f32 + 3.0 * 2f32.powi(-11)).cast::<f16>().to_bits(), 0x3c02);
        assert_eq!((1.0f32 + 2f32.powi(-8)).cast::<bf16>(), bf16::ONE);
        assert_eq!(1.9f32.cast::<bf16>().to_bits(), 0x3ff3);
    }

    #[test]
    fn f64_reaches_f16_through_f32() {
        assert_eq!((1.0f64 + 2f64.powi(-11) + 2f64.powi(-40)).cast::<f16>(), f16::ONE);
    }

    #[test]
    fn boolean_is_anything_but_zero() {
        assert_eq!(encode_code(ElementType::Boolean, 0.5f32), 1);
        assert_eq!(encode_code(ElementType::Boolean, f32::NAN), 1);
        assert_eq!(encode_code(ElementType::Boolean, -0.0f32), 0);
        assert_eq!(encode_code(ElementType::Boolean, 256i32), 1);
    }

    #[test]
    fn u1_takes_the_low_bit() {
        assert_eq!(encode_code(ElementType::U1, 2i32), 0);
        assert_eq!(encode_code(ElementType::U1, 3i32), 1);
        assert_eq!(encode_code(ElementType::U1, 0.5f32), 0);
        assert_eq!(encode_code(ElementType::U1, -1.9f32), 1);
    }

    #[test]
    fn sub_byte_integers_take_the_low_bits() {
        assert_eq!(encode_code(ElementType::U4, 300f32) & 15, 12);
        assert_eq!(encode_code(ElementType::U4, -1.9f32) & 15, 15);
        assert_eq!(encode_code(ElementType::U2, 7u8) & 3, 3);
    }

    #[test]
    fn i4_codes_are_signed() {
        assert_eq!(decode_code::<i32>(ElementType::I4, 15), -1);
        assert_eq!(decode_code::<f32>(ElementType::I4, 8), -8.0);
        assert_eq!(decode_code::<f32>(ElementType::U4, 15), 15.0);
        let i2 = [0, 1, 2, 3].map(|code| decode_code::<i32>(ElementType::I2, code));
        assert_eq!(i2, [0, 1, -2, -1]);
    }

    #[test]
    fn ends_of_the_range_are_finite() {
        assert_eq!(<f32 as Number>::lowest(), f32::MIN);
        assert_eq!(<f16 as Number>::highest(), f16::MAX);
        assert_eq!(<i8 as Number>::lowest(), -128);
    }
}
