//! The numbers that selections and sums are made of. Floats are summed in double precision; ranks turn a value and its
//! position into one integer, so that a selection compares nothing else.

use super::{CumSum, NonZero, NonZeroCounts, TopK, Unique};
use crate::Exec;
use crate::movement::{BadIndex, Indices, IndicesMut, Reduction, ScatterElements, ScatterNd};
use bytemuck::Pod;

/// An element type. `Wide` is what sums of it run in.
pub trait Number: Pod + PartialOrd + Send + Sync + std::fmt::Debug {
    type Wide: Pod + PartialOrd + Send + Sync;
    /// Value and position in one; more is better.
    type Rank: Rank;
    const ZERO: Self::Wide;
    const ONE: Self::Wide;
    const LOWEST: Self::Wide;
    const HIGHEST: Self::Wide;

    fn wide(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
    /// Integers wrap.
    fn add(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn sub(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    fn mul(a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// Bits of integers; floats have none to join.
    fn or(_: Self::Wide, _: Self::Wide) -> Self::Wide {
        panic!("floats have no bits to join")
    }
    fn and(a: Self::Wide, b: Self::Wide) -> Self::Wide {
        Self::or(a, b)
    }
    fn xor(a: Self::Wide, b: Self::Wide) -> Self::Wide {
        Self::or(a, b)
    }
    /// Integers round down.
    fn divided(a: Self::Wide, n: i64) -> Self::Wide;
    /// `start + number * step` in the type itself; integers wrap.
    fn in_sequence(start: Self, number: usize, step: Self) -> Self;
    /// NaN is not zero, -0 is.
    fn is_zero(self) -> bool;
    /// Rank of this value at a position: the greatest (or least, for `max` false) value ranks highest, NaN lowest, and of
    /// equal ones the first position.
    fn rank(self, max: bool, position: u32) -> Self::Rank;
    /// The position within a rank.
    #[inline(always)]
    fn rank_position(rank: Self::Rank) -> u32 {
        rank.position()
    }
    /// The kernels of this type.
    #[doc(hidden)]
    fn compiled() -> &'static Compiled<Self>;
}

/// What is compiled for each type of number, once and as this crate is built: a generic function would be compiled in the crate
/// that calls it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Compiled<T: Number> {
    pub(super) top_k: fn(&TopK, &Exec<'_>, &[T], &mut [T], IndicesMut<'_>),
    pub(super) cum_sum: fn(&CumSum, &Exec<'_>, &[T], &mut [T]),
    pub(super) unique: fn(&mut Unique, &[T], [usize; 3], bool),
    pub(super) count_non_zero: fn(&NonZero, &Exec<'_>, &[T]) -> NonZeroCounts,
    pub(super) fill_non_zero: fn(&NonZero, &Exec<'_>, &[T], &NonZeroCounts, IndicesMut<'_>),
    pub(super) range: fn(&Exec<'_>, T, T, &mut [T]),
    pub(crate) scatter: Scatter<T>,
    pub(crate) scatter_elements: ScatterOfElements<T>,
}

type Scatter<T> =
    fn(&ScatterNd, &Exec<'_>, &[T], Indices<'_>, &[T], Reduction, &mut [u32], &mut [T]) -> Result<(), BadIndex>;
type ScatterOfElements<T> =
    fn(&ScatterElements, &Exec<'_>, &[T], Indices<'_>, &[T], Reduction, bool, &mut [T]) -> Result<(), BadIndex>;

impl<T: Number> Compiled<T> {
    const ALL: Compiled<T> = Compiled {
        top_k: TopK::run_any,
        cum_sum: CumSum::run_any,
        unique: Unique::find_any,
        count_non_zero: NonZero::count_any,
        fill_non_zero: NonZero::fill_any,
        range: super::fill::range_any,
        scatter: ScatterNd::run_joined_any,
        scatter_elements: ScatterElements::run_joined_any,
    };
}

/// A value in the high bits, and the position turned over below it, so that of equal values the first is more.
pub trait Rank: Ord + Pod + Send + Sync {
    fn position(self) -> u32;
}

impl Rank for u64 {
    #[inline(always)]
    fn position(self) -> u32 {
        !(self as u32)
    }
}

impl Rank for u128 {
    #[inline(always)]
    fn position(self) -> u32 {
        !(self as u32)
    }
}

macro_rules! integers {
    ($($t:ty, $order:ty, $rank:ty);* $(;)?) => {$(
        impl Number for $t {
            type Wide = $t;
            type Rank = $rank;
            const ZERO: $t = 0;
            const ONE: $t = 1;
            const LOWEST: $t = <$t>::MIN;
            const HIGHEST: $t = <$t>::MAX;

            fn compiled() -> &'static Compiled<$t> {
                static ALL: Compiled<$t> = Compiled::ALL;
                &ALL
            }
            #[inline(always)]
            fn wide(self) -> $t {
                self
            }
            #[inline(always)]
            fn narrow(wide: $t) -> $t {
                wide
            }
            #[inline(always)]
            fn add(a: $t, b: $t) -> $t {
                a.wrapping_add(b)
            }
            #[inline(always)]
            fn sub(a: $t, b: $t) -> $t {
                a.wrapping_sub(b)
            }
            #[inline(always)]
            fn mul(a: $t, b: $t) -> $t {
                a.wrapping_mul(b)
            }
            #[inline(always)]
            fn or(a: $t, b: $t) -> $t {
                a | b
            }
            #[inline(always)]
            fn and(a: $t, b: $t) -> $t {
                a & b
            }
            #[inline(always)]
            fn xor(a: $t, b: $t) -> $t {
                a ^ b
            }
            #[inline(always)]
            fn divided(a: $t, n: i64) -> $t {
                (a as i128).div_euclid(n as i128) as $t
            }
            #[inline(always)]
            fn in_sequence(start: $t, number: usize, step: $t) -> $t {
                start.wrapping_add((number as $t).wrapping_mul(step))
            }
            #[inline(always)]
            fn is_zero(self) -> bool {
                self == 0
            }
            #[inline(always)]
            fn rank(self, max: bool, position: u32) -> $rank {
                // Shifted so that the least value is 0.
                let order = (self as $order).wrapping_sub(<$t>::MIN as $order);
                let order = if max { order } else { !order };
                (order as $rank) << 32 | !position as $rank
            }
        }
    )*};
}

integers! {
    i8, u32, u64; u8, u32, u64; i16, u32, u64; u16, u32, u64; i32, u32, u64; u32, u32, u64; i64, u64, u128; u64, u64, u128;
}

macro_rules! floats {
    ($($t:ty, $bits:ty, $rank:ty);* $(;)?) => {$(
        impl Number for $t {
            type Wide = f64;
            type Rank = $rank;
            const ZERO: f64 = 0.0;
            const ONE: f64 = 1.0;
            const LOWEST: f64 = f64::MIN;
            const HIGHEST: f64 = f64::MAX;

            fn compiled() -> &'static Compiled<$t> {
                static ALL: Compiled<$t> = Compiled::ALL;
                &ALL
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn narrow(wide: f64) -> $t {
                wide as $t
            }
            #[inline(always)]
            fn add(a: f64, b: f64) -> f64 {
                a + b
            }
            #[inline(always)]
            fn sub(a: f64, b: f64) -> f64 {
                a - b
            }
            #[inline(always)]
            fn mul(a: f64, b: f64) -> f64 {
                a * b
            }
            #[inline(always)]
            fn divided(a: f64, n: i64) -> f64 {
                a / n as f64
            }
            #[inline(always)]
            fn in_sequence(start: $t, number: usize, step: $t) -> $t {
                start + number as $t * step
            }
            #[inline(always)]
            fn is_zero(self) -> bool {
                self == 0.0
            }
            #[inline(always)]
            fn rank(self, max: bool, position: u32) -> $rank {
                const SIGN: $bits = 1 << (<$bits>::BITS - 1);
                // Adding zero makes -0 a 0.
                let bits = (self + 0.0).to_bits();
                let order = if bits & SIGN != 0 { !bits } else { bits | SIGN };
                let order = if max { order } else { !order };
                let order = if self.is_nan() { 0 } else { order };
                (order as $rank) << 32 | !position as $rank
            }
        }
    )*};
}

floats! { f32, u32, u64; f64, u64, u128; }
