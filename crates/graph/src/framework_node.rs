//! A node of unknown type that is kept as it was found: type, opset, attribute texts and declared outputs. It lets a
//! model be inspected and written back, never run.

use crate::error::Result;
use crate::fact::Fact;
use crate::infer::InferCx;
use crate::op::{Op, OpDecl, OpInfo};
use crate::{AttrValue, Body, PortInfo};
use carafe_tensor::{ElementType, PartialShape};
use std::any::Any;
use std::borrow::Cow;

/// Stand-in for an operation nobody registered.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameworkNode {
    pub type_name: String,
    pub opset: String,
    pub attrs: Vec<(String, String)>,
    pub outputs: Vec<(ElementType, PartialShape)>,
}

static INFO: OpInfo = OpInfo {
    name: "FrameworkNode",
    xml_name: "FrameworkNode",
    opset: "util",
    since: 0,
    until: 0,
    inputs: &[PortInfo { name: "inputs", optional: false, variadic: true }],
    outputs: &[PortInfo { name: "outputs", optional: false, variadic: true }],
    attrs: &[],
    doc: "A node of unknown type, kept as it was found.",
    moves: &[],
    commutative: false,
    random: true,
    stateful: false,
    sink: false,
};

impl Op for FrameworkNode {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        for (i, (ty, shape)) in self.outputs.iter().enumerate() {
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
        self.attrs.iter().map(|(n, v)| (n.clone().into(), AttrValue::Text(v.clone()))).collect()
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
