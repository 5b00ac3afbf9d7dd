//! What only TensorFlow has: attributes that say nothing new.

use carafe_frontend::{Dialect, SourceNode, Words};
use carafe_graph::AttrValue;

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
    // Element types of inputs and how many there are stand in the graph already; names in front of `_` are for tools.
    fn is_annotation(&self, node: &SourceNode, attribute: &str) -> bool {
        let is_type = || matches!(node.attrs.get(attribute), Some(AttrValue::Type(_) | AttrValue::Types(_)));
        attribute.starts_with('_')
            || attribute == "N"
            || attribute.starts_with('T')
            || (attribute == "SrcT" && is_type())
    }
}
