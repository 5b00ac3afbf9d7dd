//! Layers that change nothing when a net is run.

use super::cx::LayerCx;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Dropout", 0, dropout),
    rule("Identity", 0, split),
    rule("Silence", 0, |_| Ok(Outputs::default())),
    rule("Split", 0, split),
];

fn dropout(n: &mut NodeCx<'_>) -> Result<Outputs> {
    // Values are scaled while training, so that nothing is left to do here.
    n.ignore(&["dropout_ratio", "scale_train", "engine"]);
    Ok(n.bottom()?.into())
}

fn split(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.bottom()?;
    Ok(vec![x; n.n_outputs()].into())
}
