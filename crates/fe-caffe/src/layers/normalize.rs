//! Normalize and GRN: divided by the length of the vector across channels, or of the whole image. The small number is under the
//! root in both.

use super::cx::LayerCx;
use super::fillers::blob_or_value;
use super::numbers::dim;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::normalization::normalize_l2::EpsMode;
use carafe_ops::normalization::{Grn, NormalizeL2};

pub(crate) const RULES: &[StaticRule] = &[rule("GRN", 0, grn), rule("Normalize", 0, normalize)];

fn normalize(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let across_spatial: bool = n.attr("across_spatial", true)?;
    let shared: bool = n.attr("channel_shared", true)?;
    let eps: f32 = n.attr("eps", 1e-10)?;
    let axes = n.i64s(if across_spatial { &[1, 2, 3] } else { &[1] })?;
    let y = n.emit(NormalizeL2 { eps, eps_mode: EpsMode::Add }, &[x, axes])?;
    let channels = match (shared, n.n_blobs()?) {
        (true, _) => 1,
        (false, 0) => dim(n, x, 1).and_then(|c| usize::try_from(c).ok()).unwrap_or(0),
        (false, _) => n.blob_tensor(0)?.len(),
    };
    n.takes_blobs(1)?;
    let factor = blob_or_value(n, 0, &[1, channels, 1, 1], "scale_filler", 1.0)?;
    Ok(n.times(y, factor)?.into())
}

fn grn(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    let bias: f32 = n.attr("bias", 1.0)?;
    n.ignore(&["dummy_backward"]);
    Ok(n.emit(Grn { bias }, &[x])?.into())
}
