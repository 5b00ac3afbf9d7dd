//! What only TFLite has: operators without names, options of custom operators as bytes, and operations of TensorFlow.

use crate::graph::{CUSTOM, FLEX, RAW_OPTIONS};
use crate::types::element_type;
use carafe_fe_tensorflow::single;
use carafe_frontend::{Dialect, Found, NodeCx, RuleSet, SourceNode, Words};
use carafe_graph::Error;
use carafe_tensor::ElementType;
use std::rc::Rc;

static WORDS: Words = Words {
    node: "operator",
    operation: "operator type",
    output: "output",
    value: "tensor",
    graph: "graph",
    wants: "the model reads",
    version: "version",
    domain: "tflite",
    input_port: "",
    output_port: "",
};

pub(crate) struct LiteDialect;

// The operation of TensorFlow that an operator is.
fn flex(node: &SourceNode) -> Option<&str> {
    node.op_type.strip_prefix(FLEX).filter(|_| node.domain == CUSTOM)
}

impl Dialect for LiteDialect {
    fn words(&self) -> &Words {
        &WORDS
    }
    fn location(&self, node: &SourceNode) -> String {
        let (name, op_type) = (node.label(), node.full_type());
        match node.index {
            Some(i) => format!("operator {i} `{name}` ({op_type})"),
            None => format!("`{name}` ({op_type})"),
        }
    }
    fn find<'r>(&'r self, rules: &'r RuleSet, node: &SourceNode) -> Option<Found<'r>> {
        let tensorflow = || single::rule(flex(node)?);
        let found = rules.find(&node.domain, &node.op_type, node.version).or_else(tensorflow)?;
        if node.domain != CUSTOM {
            return Some(found);
        }
        // Who reads the options one by one need not look at their bytes.
        let translate = found.translate;
        let translate = Rc::new(move |n: &mut NodeCx<'_>| {
            n.ignore(&[RAW_OPTIONS]);
            translate(n)
        });
        Some(Found { translate, ..found })
    }
    fn is_annotation(&self, node: &SourceNode, attribute: &str) -> bool {
        flex(node).is_some() && node.attrs.get(attribute).is_none_or(single::is_annotation)
    }
    fn unhandled(&self, nodes: &[&SourceNode], general: Error) -> Error {
        match nodes.iter().any(|n| flex(n).is_some()) {
            true => general.at(
                "operators named `Flex..` are those of TensorFlow; convert the model without SELECT_TF_OPS, or bring rules for them",
            ),
            false => general,
        }
    }
    fn element_type(&self, code: i64) -> Option<ElementType> {
        element_type(code).ok()
    }
}
