//! A step that can work in place writes its result over an input that nobody needs afterwards. From then on the two are one
//! value for the memory plan.

use super::inside::{Location, locate};
use super::select::{Origin, Selection};
use crate::plan::Action;

/// Lets steps write over what they read last.
pub(super) fn write_over(chosen: &mut Selection) {
    let mut at: Vec<Location> = (0..chosen.values.len()).map(|v| locate(&chosen.values, v)).collect();
    // Last step that touches each whole; those of results are touched for ever.
    let mut last = vec![0; at.len()];
    for (s, step) in chosen.steps.iter().enumerate() {
        step.reads.iter().chain(&step.writes).for_each(|&v| last[at[v].root] = s);
    }
    chosen.outputs.iter().for_each(|&v| last[at[v].root] = usize::MAX);
    for s in 0..chosen.steps.len() {
        let step = &chosen.steps[s];
        let (Action::Fast(kernel), &[to]) = (&step.action, &step.writes[..]) else { continue };
        if !matches!(chosen.values[to].source, Origin::Step) {
            continue;
        }
        let fits = |i: &usize| {
            let (from, own) = (&chosen.values[step.reads[*i]], at[step.reads[*i]]);
            let alone = step.reads.iter().filter(|&&v| at[v].root == own.root).count() == 1;
            let whole = &chosen.values[own.root];
            alone
                && last[own.root] == s
                && matches!(whole.source, Origin::Step)
                && (own.start, own.pitch) == (0, 0)
                && (from.ty, from.elements()) == (chosen.values[to].ty, chosen.values[to].elements())
                && whole.elements() == from.elements()
                && kernel.may_run_over(*i)
        };
        let Some(over) = (0..step.reads.len()).find(fits) else { continue };
        let (of, root) = (step.reads[over], at[step.reads[over]].root);
        let end = last[to];
        chosen.steps[s].over = Some(over);
        chosen.values[to].source = Origin::View(of);
        for place in at.iter_mut().filter(|l| l.root == to) {
            place.root = root;
        }
        last[root] = end;
    }
}
