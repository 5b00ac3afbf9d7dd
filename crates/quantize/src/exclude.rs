//! Layers that cost too much stay in float: each is quantized alone and measured, and as few of the worst as hold the limit are
//! left out.

use crate::build::Plan;
use crate::error::{Reference, drop_of};
use crate::observe::Runner;
use crate::options::Metric;
use crate::report::OutputReport;
use carafe_graph::{Error, Result};
use std::collections::{HashMap, HashSet};

/// Samples that single layers are judged by.
const FEW: usize = 4;

/// The layers that must stay in float, what each layer costs alone, and how far the model is then.
pub(crate) struct Excluded {
    pub layers: HashSet<usize>,
    pub effects: HashMap<usize, f64>,
    pub outputs: Vec<OutputReport>,
}

/// `start` is how far the model with all layers quantized is.
pub(crate) fn exclude(
    plan: &Plan,
    reference: &Reference,
    runner: &Runner<'_>,
    metric: Metric,
    most: f64,
    start: f64,
) -> Result<Excluded> {
    let candidates = plan.candidates();
    let few = reference.first(FEW);
    let mut effects = HashMap::new();
    for (done, &layer) in candidates.iter().enumerate() {
        runner.progress.tell(done, candidates.len(), "layers measured alone");
        let model = plan.build(&|i| i == layer)?;
        // The error tells layers apart where no row changes.
        let reports = few.compare(runner, &model, "layers measured alone")?;
        effects.insert(layer, drop_of(&reports, Metric::Error)?);
    }
    let mut worst = candidates;
    carafe_graph::sort_by(&mut worst, |a, b| effects[b].total_cmp(&effects[a]).then(a.cmp(b)));
    // The smallest number that holds, if more layers in float never do harm.
    let (mut too_few, mut enough) = (0, worst.len());
    let mut held = None;
    let mut least = start;
    while enough - too_few > 1 {
        let n = too_few + (enough - too_few) / 2;
        let out: HashSet<usize> = worst[..n].iter().copied().collect();
        let model = plan.build(&|i| plan.layers[i].reason.is_none() && !out.contains(&i))?;
        let outputs = reference.compare(runner, &model, &format!("samples with {n} layers in float"))?;
        let drop = drop_of(&outputs, metric)?;
        least = least.min(drop);
        if drop <= most {
            (enough, held) = (n, Some((out, outputs)));
        } else {
            too_few = n;
        }
    }
    let Some((layers, outputs)) = held else {
        return Err(Error::invalid(format!(
            "a difference of at most {most} cannot be reached with any layer quantized; the least was {least:.6}, with all \
             layers quantized it is {start:.6}; allow more, or use other data or another calibration"
        )));
    };
    Ok(Excluded { layers, effects, outputs })
}
