//! The two float types of 16 bits that products are computed in: bfloat16, and half precision.

use crate::Numbers;
use crate::cast::{Brain, Half, brain_to_f32, f32_to_brain, f32_to_half, half_to_f32};

/// A float type of 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Halves {
    /// The exponents of f32, and 8 bits of a number: none overflows.
    Bf16,
    /// 11 bits of a number, up to 65504; larger ones become infinite.
    F16,
}

impl Halves {
    /// As operands of products, two a cell.
    pub fn numbers(self) -> Numbers {
        match self {
            Halves::Bf16 => Numbers::Bf16,
            Halves::F16 => Numbers::F16,
        }
    }
    /// The bits of a number, rounded to the nearest, ties to even.
    #[inline(always)]
    pub fn bits(self, x: f32) -> u16 {
        match self {
            Halves::Bf16 => f32_to_brain(x).0,
            Halves::F16 => f32_to_half(x).0,
        }
    }
    /// The number of such bits.
    #[inline(always)]
    pub fn wide(self, bits: u16) -> f32 {
        match self {
            Halves::Bf16 => brain_to_f32(Brain(bits)),
            Halves::F16 => half_to_f32(Half(bits)),
        }
    }
    /// The bits of many numbers.
    pub fn all_bits(self, from: &[f32]) -> Vec<u16> {
        from.iter().map(|x| self.bits(*x)).collect()
    }
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Halves::Bf16 => "bf16",
            Halves::F16 => "f16",
        }
    }
}
