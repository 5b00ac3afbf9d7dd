//! Operations that give what they are given, whatever that is.

use super::types::is_complex;
use carafe_frontend::{Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;

pub(super) const RULES: &[StaticRule] = &[
    rule("Assert", 0, nothing),
    rule("CheckNumerics", 0, first),
    rule("CheckNumericsV2", 0, first),
    rule("EnsureShape", 0, first),
    rule("Identity", 0, first),
    rule("IdentityN", 0, all),
    rule("NoOp", 0, nothing),
    rule("PlaceholderWithDefault", 0, first),
    rule("PreventGradient", 0, first),
    rule("ReadVariableOp", 0, first),
    rule("Snapshot", 0, first),
    rule("StopGradient", 0, first),
];

fn first(n: &mut NodeCx<'_>) -> Result<Outputs> {
    is_complex(n, "T");
    is_complex(n, "dtype");
    let item = n.item(0)?.ok_or_else(|| n.fail("input 0 is required and missing"))?;
    Ok(item.into())
}

fn all(n: &mut NodeCx<'_>) -> Result<Outputs> {
    is_complex(n, "T");
    let items = (0..n.n_inputs()).map(|i| Ok(n.item(i)?.unwrap_or(Item::Nothing))).collect::<Result<_>>()?;
    Ok(Outputs(items))
}

// Conditions that stop a run are not looked at.
fn nothing(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore_inputs(n.n_inputs());
    Ok(Outputs::default())
}
