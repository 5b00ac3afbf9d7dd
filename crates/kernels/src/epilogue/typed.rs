//! What is done to the sums of a product whose operands or result are not floats: sums are scaled to real numbers, worked on as
//! such, and rounded to the steps of the result's grid, all while they are near.

use super::{Act, Finish};
use crate::Halves;

/// Rounds real numbers to the steps of a grid: `round(x * inverse + shift)`, kept between `low` and `high`, then `+ zero`. A
/// shift is added before rounding, the zero point after it; definitions differ in which of the two they have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantizer {
    /// One over the step.
    pub inverse: f32,
    /// Added before rounding.
    pub shift: f32,
    /// Least and largest step, before `zero` is added.
    pub low: f32,
    pub high: f32,
    /// Added after rounding.
    pub zero: i32,
}

impl Quantizer {
    /// Whether numbers already count steps, so that they are only rounded.
    pub(crate) fn is_unit(&self) -> bool {
        self.inverse == 1.0 && self.shift == 0.0
    }
    /// The step of a number, as it is stored.
    pub fn step(&self, x: f32) -> i32 {
        self.rounded(x) as i32 + self.zero
    }
    #[inline(always)]
    pub(crate) fn rounded(&self, x: f32) -> f32 {
        Quantizer::rounded_within(x.mul_add(self.inverse, self.shift), self.low, self.high)
    }
    /// A whole number between two. A number that is none becomes the least.
    #[inline(always)]
    pub(crate) fn rounded_within(x: f32, low: f32, high: f32) -> f32 {
        let x = if x > low { x } else { low };
        x.min(high).round_ties_even()
    }
}

/// A number rounded to the steps of a grid and back: `step * scale + offset`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTrip {
    pub quantizer: Quantizer,
    pub scale: f32,
    pub offset: f32,
}

impl RoundTrip {
    pub fn apply(&self, x: f32) -> f32 {
        self.quantizer.rounded(x).mul_add(self.scale, self.offset)
    }
}

/// A matrix like the result that is added to it, with elements from row to row.
#[derive(Clone, Copy, Debug)]
pub enum Addend<'a> {
    F32(&'a [f32], usize),
    /// The bits of numbers of 16 bits.
    Half(Halves, &'a [u16], usize),
    /// `(x - zero) * scale`.
    U8 {
        data: &'a [u8],
        stride: usize,
        scale: f32,
        zero: i32,
    },
    /// What the output holds before it is written. Bytes count as in [`Addend::U8`]; other types have no use for the numbers.
    Own {
        scale: f32,
        zero: i32,
    },
}

/// Where the result goes.
#[derive(Debug)]
pub enum TypedOut<'a> {
    F32(&'a mut [f32]),
    /// The bits of numbers of 16 bits, rounded to the nearest.
    Half(Halves, &'a mut [u16]),
    U8(&'a mut [u8], Quantizer),
}

/// Applied in this order: `sum * scale + bias` of the column, `round_trip`, `offset` of the column, the function and the sum with `add` (in the order of
/// `add_last`), `after`, `finish`, and the conversion to the type of the output.
#[derive(Clone, Copy, Default)]
pub struct TypedEpilogue<'a> {
    /// One number a column; 1 when there is none.
    pub scale: Option<&'a [f32]>,
    /// One number a column.
    pub bias: Option<&'a [f32]>,
    pub round_trip: Option<RoundTrip>,
    /// One number a column, behind `round_trip`.
    pub offset: Option<&'a [f32]>,
    /// The largest number of a column, in steps. Only for integers that leave as bytes and count in steps: all quantizers have an
    /// inverse of 1 and no shift, and there is neither a function nor a sum.
    pub most: Option<&'a [f32]>,
    pub add: Option<Addend<'a>>,
    pub add_last: bool,
    pub act: Act,
    /// A factor and a term.
    pub after: Option<[f32; 2]>,
    /// Further work on rectangles of floats.
    pub finish: Option<&'a dyn Finish>,
}

impl std::fmt::Debug for TypedEpilogue<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (scale, bias, add) = (self.scale.is_some(), self.bias.is_some(), self.add.is_some());
        write!(f, "TypedEpilogue(scale {scale}, bias {bias}, {:?}, add {add}, {:?})", self.round_trip, self.act)
    }
}
