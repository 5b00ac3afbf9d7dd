//! A step that can work in place writes its result over an input that nobody needs afterwards. From then on the two are one
//! value for the memory plan.

use super::alias_concat_split::{Aliased, locate};
use super::select::{Origin, Selection};
use crate::backend::Backend;
use crate::plan::Action;

/// Lets steps write over what they read last.
pub(super) fn run_in_place<B: Backend>(chosen: &mut Selection<B>) {
    let mut at: Vec<Aliased> = (0..chosen.values.len()).map(|v| locate(&chosen.values, v)).collect();
    // Last step that touches each whole; those of results are touched for ever.
    let mut last = vec![0; at.len()];
    for (s, step) in chosen.steps.iter().enumerate() {
        step.reads.iter().chain(&step.writes).for_each(|&v| last[at[v].root] = s);
    }
    chosen.outputs.iter().for_each(|&v| last[at[v].root] = usize::MAX);
    for s in 0..chosen.steps.len() {
        let step = &chosen.steps[s];
        let (Action::Kernel(kernel), &[to]) = (&step.action, &step.writes[..]) else { continue };
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
                && (own.start, own.row_stride) == (0, 0)
                && (from.ty, from.elements()) == (chosen.values[to].ty, chosen.values[to].elements())
                && whole.elements() == from.elements()
                && kernel.runs_in_place(*i)
        };
        let Some(read) = (0..step.reads.len()).find(fits) else { continue };
        let (of, root) = (step.reads[read], at[step.reads[read]].root);
        let end = last[to];
        chosen.steps[s].in_place = Some(read);
        chosen.values[to].source = Origin::View(of);
        for aliased in at.iter_mut().filter(|l| l.root == to) {
            aliased.root = root;
        }
        last[root] = end;
    }
}
