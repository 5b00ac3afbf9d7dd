//! Arithmetic in the precision of an element type, so that sampled numbers come out equal to the bit. One operation on
//! f64 followed by one rounding is what a single operation of the narrower type gives.

use carafe_tensor::{ElementType, bf16, f16};

/// The value nearest to `x` that `ty` holds; halves are computed in f32 first, as everybody does.
pub(super) fn round_to(ty: ElementType, x: f64) -> f64 {
    match ty {
        ElementType::F64 => x,
        ElementType::F16 => f16::from_f32(x as f32).to_f64(),
        ElementType::Bf16 => bf16::from_f32(x as f32).to_f64(),
        _ => (x as f32) as f64,
    }
}
