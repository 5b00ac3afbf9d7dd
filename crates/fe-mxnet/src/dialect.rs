//! What only MXNet has: operators under several names, and custom operators by their `op_type`.

use crate::aliases::first_name;
use crate::attributes::is_without_effect;
use crate::graph::CUSTOM;
use crate::types::element_type;
use carafe_frontend::{Dialect, Found, RuleSet, SourceNode, Words};
use carafe_graph::Error;
use carafe_tensor::ElementType;

static WORDS: Words = Words {
    node: "node",
    operation: "operator",
    output: "output",
    value: "value",
    graph: "symbol",
    wants: "the symbol reads",
    version: "version",
    domain: "mxnet",
    input_port: "",
    output_port: "",
};

pub(crate) struct MxnetDialect;

impl Dialect for MxnetDialect {
    fn words(&self) -> &Words {
        &WORDS
    }
    fn location(&self, node: &SourceNode) -> String {
        let name = node.label();
        match node.domain == CUSTOM {
            true => format!("node `{name}` (Custom, op_type `{}`)", node.op_type),
            false => format!("node `{name}` ({})", node.full_type()),
        }
    }
    fn find<'r>(&'r self, rules: &'r RuleSet, node: &SourceNode) -> Option<Found<'r>> {
        let by_name = rules.find(&node.domain, &node.op_type, node.version);
        by_name.or_else(|| rules.find(&node.domain, first_name(&node.op_type)?, node.version))
    }
    fn unhandled(&self, nodes: &[&SourceNode], general: Error) -> Error {
        match nodes.iter().any(|n| n.domain == CUSTOM) {
            true => general.at("nodes of domain `Custom` are found by their op_type, which a user's rule answers for"),
            false => general,
        }
    }
    fn is_annotation(&self, _node: &SourceNode, attribute: &str) -> bool {
        is_without_effect(attribute)
    }
    fn element_type(&self, code: i64) -> Option<ElementType> {
        element_type(code)
    }
}
