//! What only Kaldi has: components for training and for whole utterances.

use crate::graph::{INPUT_PORT, OUTPUT_PORT};
use crate::training::is_training;
use carafe_frontend::{Dialect, SourceNode, Words};
use carafe_graph::Error;

static WORDS: Words = Words {
    node: "component-node",
    operation: "component",
    output: "output",
    value: "value",
    graph: "network",
    wants: "the model reads",
    version: "version",
    domain: "kaldi",
    input_port: INPUT_PORT,
    output_port: OUTPUT_PORT,
};

/// Components that need all frames of an utterance before they give the first.
const WHOLE: &[&str] =
    &["BlstmProjected", "BlstmProjectedStreams", "SentenceAveragingComponent", "SimpleSentenceAveragingComponent"];

pub(crate) struct KaldiDialect;

impl Dialect for KaldiDialect {
    fn words(&self) -> &Words {
        &WORDS
    }
    fn is_annotation(&self, node: &SourceNode, attribute: &str) -> bool {
        is_training(&node.op_type, attribute)
    }
    fn unhandled(&self, nodes: &[&SourceNode], general: Error) -> Error {
        match nodes.iter().find(|n| WHOLE.contains(&n.op_type.as_str())) {
            Some(node) => general.at(format!(
                "{} needs all frames of an utterance at once and cannot be fed frame by frame",
                node.op_type
            )),
            None => general,
        }
    }
}
