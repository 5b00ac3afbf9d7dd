//! What only ONNX has: opsets in messages, numbers for element types, tensors outside of the file.

use crate::file::Files;
use crate::imports::NEWEST;
use crate::tensor::element_type;
use carafe_frontend::{Dialect, Log, SourceNode, Words};
use carafe_graph::{AttrValue, Error, Result};
use carafe_tensor::ElementType;
use std::rc::Rc;

static WORDS: Words = Words {
    node: "node",
    operation: "operation",
    output: "output",
    value: "value",
    graph: "graph",
    wants: "the model reads",
    version: "opset",
    domain: "ai.onnx",
    input_port: "",
    output_port: "",
};

pub(crate) struct OnnxDialect {
    pub(crate) files: Rc<Files>,
    /// Version of the default domain that the model imports.
    pub(crate) opset: i64,
}

impl Dialect for OnnxDialect {
    fn words(&self) -> &Words {
        &WORDS
    }
    fn location(&self, node: &SourceNode) -> String {
        let (name, op_type, version) = (node.label(), &node.op_type, node.version);
        match node.domain.as_str() {
            "" => format!("node `{name}` ({op_type}, opset {version})"),
            domain => format!("node `{name}` ({op_type}, {domain} {version})"),
        }
    }
    fn element_type(&self, code: i64) -> Option<ElementType> {
        element_type(i32::try_from(code).ok()?).ok()
    }
    // Types and switches are numbers in attributes, and there are no shapes.
    fn attribute(&self, value: AttrValue) -> Result<AttrValue> {
        Ok(match value {
            AttrValue::Bool(b) => AttrValue::Int(i64::from(b)),
            AttrValue::Text(s) => AttrValue::Str(s),
            AttrValue::Type(ty) => AttrValue::Int(number(ty)?),
            AttrValue::Types(list) => AttrValue::Ints(list.into_iter().map(number).collect::<Result<_>>()?),
            AttrValue::Shape(shape) => {
                let dims = shape.to_static().ok_or_else(|| Error::unsupported(format!("[{shape}] is not fixed")))?;
                AttrValue::Ints(dims.iter().map(|d| *d as i64).collect())
            }
            AttrValue::Body(_) => return Err(Error::unsupported("a body cannot be an attribute before translation")),
            value => value,
        })
    }
    fn finish(&self, log: &Log<'_>) {
        self.files.take_notes().iter().for_each(|note| log.warn(note));
    }
    fn failed(&self, e: Error) -> Error {
        match self.opset {
            n if n > NEWEST => e.at(format!("the model was written for opset {n}, the newest known here is {NEWEST}")),
            _ => e,
        }
    }
}

fn number(ty: ElementType) -> Result<i64> {
    let found = (0..=26).find(|n| element_type(*n).is_ok_and(|t| t == ty));
    found.map(i64::from).ok_or_else(|| Error::unsupported(format!("ONNX has no element type {ty}")))
}
