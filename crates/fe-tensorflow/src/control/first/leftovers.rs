//! Nodes of the first generation that are no part of a loop or a conditional. A Switch whose values no Merge brings together
//! hands its input on: what is behind it has a value only where it is alive, and then that is the one.

use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;

pub(in crate::control) const RULES: &[StaticRule] = &[
    rule("Enter", 0, lost),
    rule("Exit", 0, lost),
    rule("LoopCond", 0, lost),
    rule("Merge", 0, lost),
    rule("NextIteration", 0, lost),
    rule("Switch", 0, switch),
    rule("_SwitchN", 0, switch),
];

fn switch(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.attrs();
    n.ignore_inputs(1);
    let data = n.item(0)?.ok_or_else(|| n.fail("input 0 is required and missing"))?;
    Ok(Outputs(vec![data; n.n_outputs()]))
}

fn lost(n: &mut NodeCx<'_>) -> Result<Outputs> {
    Err(n.fail("belongs to no loop or conditional that is complete"))
}
