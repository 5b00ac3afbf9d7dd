//! What is translated: every rule has a case, and every operator of the schema a rule or a reason.

use carafe::{ReadRequest, SharedBytes};
use carafe_fe_tflite::{TfLite, builtin_operators};
use carafe_frontend::{Format, Source, SourceGraph};
use std::collections::BTreeSet;
use std::path::Path;

/// Rules without a case under `fixtures`, and why.
const WITHOUT_CASE: &[(&str, &str)] = &[
    ("CALL", "the interpreter has no such kernel"),
    ("MULTINOMIAL", "random: there are no numbers to compare with"),
    ("RANDOM_STANDARD_NORMAL", "random: there are no numbers to compare with"),
    ("RANDOM_UNIFORM", "random: there are no numbers to compare with"),
];

const UNLOWERED: &str = "converters turn it into builtin operators; OpenVINO has none either";

/// Operators of the schema without a rule, and why.
const WITHOUT_RULE: &[(&str, &str)] = &[
    ("CALL_ONCE", "followed when a file is decoded"),
    ("CONCAT_EMBEDDINGS", "never had a kernel"),
    ("CUSTOM", "stands for the name of the operator"),
    ("DELEGATE", "made by interpreters, never stored"),
    ("DILATE", "not seen in models; OpenVINO has none either"),
    ("EMBEDDING_LOOKUP_SPARSE", "not seen in models; OpenVINO has none either"),
    ("HASHTABLE", "followed when a file is decoded"),
    ("HASHTABLE_IMPORT", "followed when a file is decoded"),
    ("LSH_PROJECTION", "hashes of text; not seen in models of today, OpenVINO has none either"),
    ("PLACEHOLDER_FOR_GREATER_OP_CODES", "no operator"),
    ("REDUCE_WINDOW", "not seen in models; OpenVINO has none either"),
    ("SKIP_GRAM", "hashes of text; not seen in models of today, OpenVINO has none either"),
    ("STABLEHLO_CASE", UNLOWERED),
    ("STABLEHLO_CONVOLUTION", UNLOWERED),
    ("STABLEHLO_CUSTOM_CALL", "its meaning is not in the file"),
    ("STABLEHLO_GATHER", UNLOWERED),
    ("STABLEHLO_REDUCE", UNLOWERED),
    ("STABLEHLO_REDUCE_WINDOW", UNLOWERED),
    ("STABLEHLO_RNG_BIT_GENERATOR", "its algorithm is not in the file"),
    ("STABLEHLO_SCATTER", UNLOWERED),
    ("STABLEHLO_SORT", UNLOWERED),
    ("VAR_HANDLE", "followed when a file is decoded"),
];

fn names(list: &[(&'static str, &str)]) -> BTreeSet<String> {
    list.iter().map(|(name, _)| name.to_string()).collect()
}

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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    for file in std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()) {
        if file.extension().is_none_or(|e| e != "npz") {
            continue;
        }
        let arrays = carafe_npy::read_npz(&std::fs::read(&file).unwrap()).unwrap();
        for (_, model) in arrays.iter().filter(|(name, _)| name.ends_with(":model")) {
            let bytes = SharedBytes::from_vec(model.bytes().to_vec());
            match TfLite.decode(&ReadRequest::from_bytes(&bytes)).unwrap() {
                Source::Graph(graph, _) => collect(&graph, &mut all),
                Source::Model(_) => unreachable!("a TFLite file holds no operations of ours"),
            }
        }
    }
    all
}

#[test]
fn every_rule_has_a_case() {
    let (cases, rules) = (with_case(), TfLite.rules().names());
    let missing: BTreeSet<String> = rules.iter().filter(|r| !cases.contains(**r)).map(|r| r.to_string()).collect();
    assert_eq!(missing, names(WITHOUT_CASE));
}

#[test]
fn every_operator_of_the_schema_has_a_rule_or_a_reason() {
    let rules = TfLite.rules().names();
    let all = builtin_operators().iter().filter(|name| !rules.contains(**name));
    assert_eq!(all.map(|n| n.to_string()).collect::<BTreeSet<_>>(), names(WITHOUT_RULE));
}
