//! What only TensorFlow has: attributes that say nothing new.

use carafe_frontend::{Dialect, SourceNode, Words};

static WORDS: Words = Words {
    node: "node",
    operation: "operation",
    output: "output",
    value: "value",
    graph: "graph",
    wants: "the model reads",
    version: "version",
    domain: "tensorflow",
    input_port: "",
    output_port: "",
};

#[derive(Debug)]
pub(crate) struct TensorFlowDialect;

impl Dialect for TensorFlowDialect {
    fn words(&self) -> &Words {
        &WORDS
    }
    fn is_annotation(&self, node: &SourceNode, attribute: &str) -> bool {
        node.attrs.get(attribute).is_none_or(crate::ops::types::is_tolerated)
    }
}
