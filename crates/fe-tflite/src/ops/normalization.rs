//! Normalization over channels, the last axis.

use super::fused::activated;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::normalization::normalize_l2::EpsMode;
use carafe_ops::normalization::{Lrn, NormalizeL2};

pub(crate) const RULES: &[StaticRule] = &[
    rule("L2_NORMALIZATION", 1, l2_normalization),
    rule("LOCAL_RESPONSE_NORMALIZATION", 1, local_response_normalization),
];

// The norm is at least 1e-6, its square at least 1e-12.
fn l2_normalization(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let axis = n.known_rank(x)? as i64 - 1;
    let axes = n.i64s(&[axis])?;
    let y = n.emit(NormalizeL2 { eps: 1e-12, eps_mode: EpsMode::Max }, &[x, axes])?;
    Ok(activated(n, y)?.into())
}

// Sums here, means there.
fn local_response_normalization(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let radius: i64 = n.required("radius")?;
    let (bias, alpha, beta): (f32, f32, f32) = (n.required("bias")?, n.required("alpha")?, n.required("beta")?);
    if !(0..1 << 20).contains(&radius) {
        return Err(n.fail(format!("a radius of {radius} is not possible")));
    }
    let size = 2 * radius + 1;
    let axis = n.known_rank(x)? as i64 - 1;
    let axes = n.i64s(&[axis])?;
    Ok(n.emit(Lrn { alpha: alpha * size as f32, beta, bias, size }, &[x, axes])?.into())
}
