//! What is translated: every rule has a case, and every operator that OpenVINO translates has a rule.

use carafe::{Content, ReadRequest, SharedBytes};
use carafe_fe_paddle::Paddle;
use carafe_frontend::{Format, Source, SourceGraph};
use std::collections::BTreeSet;
use std::path::Path;

/// Rules without a case under `fixtures`, and why.
const WITHOUT_CASE: &[(&str, &str)] = &[];

/// Operators that OpenVINO's frontend translates, from its table of operators.
const OF_OPENVINO: &str = include_str!("openvino_operators.txt");

// Operators of a graph and of the graphs that it holds.
fn collect(graph: &SourceGraph, into: &mut BTreeSet<String>) {
    for node in &graph.nodes {
        into.insert(node.op_type.clone());
        for (_, inner) in node.graphs() {
            collect(inner, into);
        }
    }
}

fn with_case() -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for folder in ["program", "json"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(folder);
        for file in std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()) {
            let arrays = carafe_npy::read_npz(&std::fs::read(&file).unwrap()).unwrap();
            for (name, model) in arrays.iter().filter(|(name, _)| name.ends_with(":model")) {
                let weights = name.replace(":model", ":weights");
                let weights =
                    arrays.iter().find(|(n, _)| *n == weights).map(|(_, t)| t.bytes().to_vec()).unwrap_or_default();
                let bytes = SharedBytes::from_vec(model.bytes().to_vec());
                let weights = SharedBytes::from_vec(weights);
                let mut request = ReadRequest::from_bytes(&bytes);
                request.weights = Some(Content::Bytes(&weights));
                match Paddle.decode(&request).unwrap_or_else(|e| panic!("{name}: {e}")) {
                    Source::Graph(graph, _) => collect(&graph, &mut all),
                    Source::Model(_) => unreachable!("a program holds no operations of ours"),
                }
            }
        }
    }
    all
}

#[test]
fn every_rule_has_a_case() {
    let (cases, rules) = (with_case(), Paddle.rules().names());
    let missing: BTreeSet<&str> = rules.iter().filter(|r| !cases.contains(**r)).copied().collect();
    assert_eq!(missing, WITHOUT_CASE.iter().map(|(name, _)| *name).collect());
}

#[test]
fn every_operator_of_openvino_has_a_rule() {
    let rules = Paddle.rules().names();
    let missing: Vec<&str> = OF_OPENVINO.split_whitespace().filter(|name| !rules.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
