//! A node that is known by name alone: type, opset, attributes and declared outputs. Unknown layers are kept as such, to be
//! inspected and written back; and a graph as decoded consists of them, until it is translated. It never runs.

use crate::error::Result;
use crate::fact::Fact;
use crate::infer::InferCx;
use crate::op::{Op, OpDecl, OpInfo};
use crate::{AttrMap, AttrValue, Body, PortInfo};
use carafe_tensor::{ElementType, PartialShape};
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

/// Stand-in for an operation nobody registered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrameworkNode {
    /// Type in the file.
    pub type_name: String,
    /// Opset of a file, or domain of a source format.
    pub opset: String,
    /// Attributes in the file.
    pub attrs: AttrMap,
    /// Types and shapes of its outputs.
    pub outputs: Vec<(ElementType, PartialShape)>,
    /// Where somebody knows how its shapes follow from those of its inputs; `outputs` then says the types alone.
    pub rule: Option<ShapeRule>,
}

/// From the shapes of all inputs to those of all outputs.
#[derive(Clone)]
pub struct ShapeRule(pub Arc<ShapeFn>);

/// What a [`ShapeRule`] holds.
pub type ShapeFn = dyn Fn(&[PartialShape]) -> Result<Vec<PartialShape>> + Send + Sync;

impl std::fmt::Debug for ShapeRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ShapeRule")
    }
}

impl PartialEq for ShapeRule {
    fn eq(&self, other: &ShapeRule) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl FrameworkNode {
    /// With one output of which nothing is known.
    pub fn new(opset: impl Into<String>, type_name: impl Into<String>) -> FrameworkNode {
        let node = FrameworkNode { type_name: type_name.into(), opset: opset.into(), ..FrameworkNode::default() };
        node.with_outputs(1)
    }
    /// With one more attribute.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: AttrValue) -> FrameworkNode {
        self.attrs.set(name, value);
        self
    }
    /// With this many outputs of which nothing is known.
    #[must_use]
    pub fn with_outputs(mut self, n: usize) -> FrameworkNode {
        self.outputs = vec![(ElementType::Dynamic, PartialShape::dynamic()); n];
        self
    }
}

static INFO: OpInfo = OpInfo {
    name: "FrameworkNode",
    xml_name: "FrameworkNode",
    opset: "util",
    inputs: &[PortInfo { name: "inputs", optional: false, variadic: true }],
    outputs: &[PortInfo { name: "outputs", optional: false, variadic: true }],
    doc: "A node of unknown type, kept as it was found.",
    random: true,
    no_eval: true,
    ..OpInfo::PLAIN
};

impl Op for FrameworkNode {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ruled = match &self.rule {
            None => None,
            Some(rule) => {
                let inputs: Vec<PartialShape> = (0..cx.n_inputs()).map(|i| cx.shape(i).clone()).collect();
                Some((rule.0)(&inputs)?)
            }
        };
        for (i, (ty, shape)) in self.outputs.iter().enumerate() {
            let shape = ruled.as_ref().and_then(|r| r.get(i)).unwrap_or(shape);
            cx.set_fact(i, Fact::new(*ty, shape.clone()));
        }
        Ok(())
    }
}

impl OpDecl for FrameworkNode {
    fn info(&self) -> &'static OpInfo {
        &INFO
    }
    fn attrs(&self) -> Vec<(Cow<'static, str>, AttrValue)> {
        self.attrs.iter().map(|(n, v)| (n.to_string().into(), v.clone())).collect()
    }
    fn type_name(&self) -> &str {
        &self.type_name
    }
    fn opset(&self) -> &str {
        &self.opset
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn eq_op(&self, other: &dyn Op) -> bool {
        other.get::<FrameworkNode>() == Some(self)
    }
    fn bodies(&self) -> Vec<(&'static str, &Body)> {
        vec![]
    }
    fn bodies_mut(&mut self) -> Vec<(&'static str, &mut Body)> {
        vec![]
    }
    fn clone_op(&self) -> Box<dyn Op> {
        opaque_clone(self)
    }
}

pub(crate) fn opaque_clone<T: Op + Clone>(op: &T) -> Box<dyn Op> {
    Box::new(op.clone())
}
