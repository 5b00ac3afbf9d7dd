//! What is translated: every rule has a case.

use crate::cases::{FAMILIES, cases};
use carafe::{Content, ReadRequest};
use carafe_fe_mxnet::Mxnet;
use carafe_frontend::{Format, Source, SourceGraph};
use std::collections::BTreeSet;

/// Rules without a case under `fixtures`, and why.
const WITHOUT_CASE: &[(&str, &str)] = &[
    ("CuDNNBatchNorm", "only old MXNet for GPUs has it; it is BatchNorm"),
    ("_CrossDeviceCopy", "made by executors of several devices"),
    ("_contrib_BatchNormWithReLU", "MXNet runs it with oneDNN for training alone"),
    ("_contrib_DeformablePSROIPooling", "MXNet has it for GPUs alone"),
    ("_copyto", "made by copies between arrays"),
    ("_random_normal", "random: there are no numbers to compare with"),
    ("_random_normal_like", "random: there are no numbers to compare with"),
    ("_random_uniform", "random: there are no numbers to compare with"),
    ("_random_uniform_like", "random: there are no numbers to compare with"),
    ("_zeros_without_dtype", "made by gradients"),
    ("proposal", "an operator in Python, of the same numbers as Proposal"),
];

fn collect(graph: &SourceGraph, into: &mut BTreeSet<String>) {
    for node in &graph.nodes {
        into.insert(node.op_type.clone());
        node.graphs().for_each(|(_, inner)| collect(inner, into));
    }
}

#[test]
fn every_rule_has_a_case() {
    let mut found = BTreeSet::new();
    for case in FAMILIES.iter().flat_map(|f| cases(f)) {
        let request =
            ReadRequest { weights: case.params.as_ref().map(Content::Bytes), ..ReadRequest::from_bytes(&case.symbol) };
        match Mxnet.decode(&request).unwrap() {
            Source::Graph(graph, _) => collect(&graph, &mut found),
            Source::Model(_) => unreachable!("a symbol holds no operations of ours"),
        }
    }
    let missing = Mxnet.rules().names().into_iter().filter(|r| !found.contains(*r));
    let expected: BTreeSet<&str> = WITHOUT_CASE.iter().map(|(name, _)| *name).collect();
    assert_eq!(missing.collect::<BTreeSet<_>>(), expected);
}
