//! What only one format knows, asked while a graph of it is translated. A format without peculiarities gives its [`Words`].

use crate::options::Log;
use crate::rule::{Found, Origin, RuleSet};
use crate::source::{SourceGraph, SourceNode};
use carafe_graph::{AttrValue, Error, Result};
use carafe_tensor::ElementType;

/// The words of a format, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// A node.
    pub node: &'static str,
    /// Its type.
    pub operation: &'static str,
    /// What a node gives.
    pub output: &'static str,
    /// A value of the graph.
    pub value: &'static str,
    /// The graph.
    pub graph: &'static str,
    /// How the graph asks for outputs of a node.
    pub wants: &'static str,
    /// A version of the operations.
    pub version: &'static str,
    /// Name of the format's own domain in graphs that are not translated.
    pub domain: &'static str,
    /// Port of inputs of nodes that rewrites add, in formats that name ports.
    pub input_port: &'static str,
    /// Port of their outputs.
    pub output_port: &'static str,
}

impl Default for Words {
    fn default() -> Words {
        Words {
            node: "node",
            operation: "operation",
            output: "output",
            value: "value",
            graph: "graph",
            wants: "the model reads",
            version: "opset",
            domain: "",
            input_port: "",
            output_port: "",
        }
    }
}

/// What only one format knows about a model. Every method but the first has a default that suits most.
pub trait Dialect {
    /// The words of the format.
    fn words(&self) -> &Words;
    /// A node, the way errors speak of it.
    fn location(&self, node: &SourceNode) -> String {
        format!("{} `{}` ({})", self.words().node, node.label(), node.full_type())
    }
    /// Who translates a node.
    fn find<'r>(&'r self, rules: &'r RuleSet, node: &SourceNode) -> Option<Found<'r>> {
        rules.find(&node.domain, &node.op_type, node.version)
    }
    /// Looks at a graph before it is translated, after rewrites.
    fn prepare(&self, _graph: &SourceGraph, _rules: &RuleSet, _log: &Log<'_>) {}
    /// The error about nodes that nobody handles; `general` lists them.
    fn unhandled(&self, _nodes: &[&SourceNode], general: Error) -> Error {
        general
    }
    /// Looks at a node before it is translated by whom `origin` says.
    fn check_node(&self, _node: &SourceNode, _origin: Option<&Origin<'_>>, _log: &Log<'_>) -> Result<()> {
        Ok(())
    }
    /// Whether inputs that a built-in rule does not ask for are an error.
    fn checks_inputs(&self) -> bool {
        true
    }
    /// Whether an attribute says nothing that the graph does not say already, so that a rule need not read it.
    fn is_annotation(&self, _node: &SourceNode, _attribute: &str) -> bool {
        false
    }
    /// The error of a rule, with what the format knows about the node.
    fn node_failed(&self, _node: &SourceNode, e: Error) -> Error {
        e
    }
    /// The name under which a value is found too when a node passes it on and becomes nothing itself.
    fn passed_on<'n>(&self, _node: &'n SourceNode) -> Option<&'n str> {
        None
    }
    /// An element type by its number in the format.
    fn element_type(&self, _code: i64) -> Option<ElementType> {
        None
    }
    /// A value that a rewrite gave to an attribute, as the format would hold it.
    fn attribute(&self, value: AttrValue) -> Result<AttrValue> {
        Ok(value)
    }
    /// Reports what was noticed, after the translation.
    fn finish(&self, _log: &Log<'_>) {}
    /// The error of the whole translation, with what the format knows about the model.
    fn failed(&self, e: Error) -> Error {
        e
    }
}

impl Dialect for Words {
    fn words(&self) -> &Words {
        self
    }
}
