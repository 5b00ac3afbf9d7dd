//! Numbers of bfloat16 on their way into products.

use crate::cast::f32_to_brain;

/// The bits of numbers, rounded to the nearest.
pub fn brain_bits(from: &[f32]) -> Vec<u16> {
    from.iter().map(|x| f32_to_brain(*x).0).collect()
}
