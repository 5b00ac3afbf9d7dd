//! What is translated: every rule has a case, and every component of Kaldi a rule or a reason.

use crate::common::{FAMILIES, cases};
use carafe::{ReadRequest, SharedBytes};
use carafe_fe_kaldi::{Kaldi, components};
use carafe_frontend::{Format, Source};
use std::collections::BTreeSet;

/// Rules without a case under `fixtures`, and why.
const WITHOUT_CASE: &[(&str, &str)] = &[];

const WHOLE: &str = "needs whole utterances";

/// Components without a rule, and why.
const WITHOUT_RULE: &[(&str, &str)] = &[
    ("BlstmProjected", WHOLE),
    ("BlstmProjectedStreams", WHOLE),
    ("CompositeComponent", "its components become nodes"),
    ("DistributeComponent", "gives rows that differ in an index which frames do not have"),
    ("LstmProjectedStreams", "the older name of LstmProjected"),
    ("MultiBasisComponent", "chooses its nets by sums over a whole utterance"),
    ("ParallelComponent", "its nets become nodes"),
    ("SentenceAveragingComponent", WHOLE),
    ("SimpleSentenceAveragingComponent", WHOLE),
    ("Splice", "becomes a descriptor"),
    ("SpliceComponent", "becomes a descriptor"),
];

fn names(list: &[(&str, &str)]) -> BTreeSet<String> {
    list.iter().map(|(name, _)| name.to_string()).collect()
}

fn types(bytes: &SharedBytes) -> BTreeSet<String> {
    match Kaldi.decode(&ReadRequest::from_bytes(bytes)).unwrap() {
        Source::Graph(graph, _) => graph.nodes.iter().map(|n| n.op_type.clone()).collect(),
        Source::Model(_) => unreachable!("a Kaldi file holds no operations of ours"),
    }
}

#[test]
fn every_rule_has_a_case() {
    let all = FAMILIES.iter().flat_map(|f| cases(f)).flat_map(|c| types(&c.binary));
    let (with_case, rules): (BTreeSet<String>, _) = (all.collect(), Kaldi.rules().names());
    let missing: BTreeSet<String> = rules.iter().filter(|r| !with_case.contains(**r)).map(|r| r.to_string()).collect();
    assert_eq!(missing, names(WITHOUT_CASE));
}

#[test]
fn every_component_of_kaldi_has_a_rule_or_a_reason() {
    let rules = Kaldi.rules().names();
    let missing: BTreeSet<String> =
        components().iter().filter(|c| !rules.contains(**c)).map(|c| c.to_string()).collect();
    assert_eq!(missing, names(WITHOUT_RULE));
}

#[test]
fn both_forms_of_a_case_are_the_same_graph() {
    for case in FAMILIES.iter().flat_map(|f| cases(f)) {
        let read = |bytes: &SharedBytes| match Kaldi.decode(&ReadRequest::from_bytes(bytes)).unwrap() {
            Source::Graph(graph, _) => {
                let nodes = graph.nodes.iter().map(|n| {
                    // A number without a fraction is a whole one in text.
                    let attrs: Vec<String> =
                        n.attrs.iter().map(|(k, v)| format!("{k}={}", v.to_string().trim_end_matches(".0"))).collect();
                    format!("{} {} {:?} {:?} {attrs:?}", n.name, n.op_type, n.inputs, n.outputs)
                });
                nodes.collect::<Vec<String>>()
            }
            Source::Model(_) => unreachable!("a Kaldi file holds no operations of ours"),
        };
        assert_eq!(read(&case.binary), read(&case.text), "{}", case.name);
    }
}
