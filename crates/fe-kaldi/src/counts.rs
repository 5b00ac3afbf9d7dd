//! Priors of states: how often each was seen, and what is subtracted so that scores become likelihoods.

use crate::component::{Component, Field};
use crate::descriptor::Descriptor;
use crate::net::Net;
use carafe_graph::{Error, Result};
use carafe_tensor::{Tensor, files};
use std::path::Path;

/// Smaller counts are none.
const CUTOFF: f64 = 1.000_000_01e-10;

/// Counts out of a file of one line, with or without brackets.
pub(crate) fn read(path: &Path) -> Result<Vec<f64>> {
    let at = |e: Error| e.at(format!("counts `{}`", path.display()));
    let text = files::read_text(path).map_err(|e| Error::io(format!("cannot read `{}`", path.display()), &e))?;
    if text.trim_end().lines().count() > 1 {
        return Err(at(Error::invalid("expected one line of numbers")));
    }
    let words = text.split(|c: char| c.is_whitespace() || c == '[' || c == ']').filter(|w| !w.is_empty());
    let number = |w: &str| w.parse::<f64>().map_err(|_| at(Error::invalid(format!("expected a number, found `{w}`"))));
    let counts = words.map(number).collect::<Result<Vec<f64>>>()?;
    match counts.is_empty() {
        true => Err(at(Error::invalid("the file has no numbers"))),
        false => Ok(counts),
    }
}

/// Logarithms of the shares; a state that was never seen gets a huge one, so that its score is out of the question.
fn log_priors(counts: &[f64]) -> Vec<f32> {
    let all: Vec<f64> = counts.iter().map(|c| c.max(CUTOFF)).collect();
    let sum: f64 = all.iter().sum();
    let huge = |c: &f64| if *c < CUTOFF { f64::from(f32::MAX) / 2.0 } else { 0.0 };
    all.iter().zip(counts).map(|(a, c)| ((a / sum).ln() + huge(c)) as f32).collect()
}

/// Subtracts them from what the last Softmax reads, or from the output where there is none.
pub(crate) fn apply(net: &mut Net, counts: &[f64]) -> Result<()> {
    let [(name, output)] = &net.outputs[..] else {
        let names: Vec<String> = net.outputs.iter().map(|(n, _)| format!("`{n}`")).collect();
        return Err(Error::unsupported(format!("counts belong to one output, the network has {}", names.join(", "))));
    };
    let (name, output) = (name.clone(), output.clone());
    let softmax = match &output {
        Descriptor::Node(last) => net.nodes.iter().position(|n| n.name == *last).filter(|i| is_softmax(net, *i, false)),
        _ => None,
    };
    let minus: Vec<f32> = log_priors(counts).iter().map(|x| -x).collect();
    let mut bias = Component { kind: "FixedBiasComponent".into(), ..Component::default() };
    bias.set("Bias", Field::Made(Tensor::from_vec(&[minus.len()], minus)?));
    let before = softmax.map_or(output, |i| net.nodes[i].input.clone());
    let made = net.add("sub_counts", bias, before);
    match softmax {
        Some(i) => net.nodes[i].input = made,
        None => net.outputs = vec![(name, made)],
    }
    Ok(())
}

fn is_softmax(net: &Net, node: usize, or_log: bool) -> bool {
    let kind = net.component(&net.nodes[node]).map(|c| c.kind.as_str());
    matches!(kind, Some("Softmax" | "SoftmaxComponent")) || or_log && kind == Some("LogSoftmaxComponent")
}

/// Takes a Softmax or LogSoftmax away that is an output itself.
pub(crate) fn remove_softmax(net: &mut Net) {
    for i in 0..net.outputs.len() {
        let Descriptor::Node(last) = &net.outputs[i].1 else { continue };
        let node = net.nodes.iter().position(|n| n.name == *last).filter(|n| is_softmax(net, *n, true));
        if let Some(node) = node {
            net.outputs[i].1 = net.nodes[node].input.clone();
        }
    }
}
