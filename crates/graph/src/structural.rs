//! The three operations a graph cannot do without: where values come in, where they are stored, where they go out.

use crate::error::Result;
use crate::eval::EvalCx;
use crate::fact::{Content, Fact};
use crate::framework_node::opaque_clone;
use crate::infer::InferCx;
use crate::op::{Op, OpDecl, OpInfo};
use crate::{AttrMap, AttrValue, Body, OpNew};
use carafe_derive::Op;
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::any::Any;
use std::borrow::Cow;

/// Input of a model or of a body.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "")]
pub struct Parameter {
    /// Shape that a caller must give.
    pub shape: PartialShape,
    /// Type that a caller must give.
    pub element_type: ElementType,
}

impl Op for Parameter {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let mut shape = self.shape.clone();
        if let Some(dims) = shape.dims_mut() {
            for (axis, d) in dims.iter_mut().enumerate().filter(|(_, d)| !d.is_known()) {
                *d = d.with_symbol(cx.symbol(axis));
            }
        }
        cx.set(0, self.element_type, shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        Err(cx.fail("a parameter has no value of its own"))
    }
}

/// Output of a model or of a body.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Result", since = 1)]
pub struct ResultOp {}

impl Op for ResultOp {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.pass_through(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let t = cx.input(0).clone();
        cx.set(0, t)
    }
}

/// A tensor stored in the model.
#[derive(Clone, Debug)]
pub struct Constant {
    tensor: Tensor,
}

impl Constant {
    /// Of a tensor.
    pub fn new(tensor: Tensor) -> Constant {
        Constant { tensor }
    }
    /// The tensor.
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }
}

impl Op for Constant {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let fact = Fact::of(&self.tensor);
        cx.set(0, fact.ty, fact.shape);
        cx.set_content(0, Content::Known(self.tensor.clone()));
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        cx.set(0, self.tensor.clone())
    }
}

static CONSTANT: OpInfo = OpInfo {
    name: "Constant",
    xml_name: "Const",
    opset: "opset1",
    since: 1,
    until: crate::NEWEST_OPSET,
    outputs: &[crate::PortInfo { name: "output", optional: false, variadic: false }],
    attrs: &[crate::AttrInfo {
        name: "value",
        kind: crate::AttrKind::Tensor,
        default: None,
        doc: "The stored tensor.",
        internal: false,
    }],
    doc: "A tensor stored in the model.",
    builtin: true,
    ..OpInfo::PLAIN
};

// By hand: its one attribute is a tensor, which files keep beside the attributes.
impl OpDecl for Constant {
    fn info(&self) -> &'static OpInfo {
        &CONSTANT
    }
    fn attrs(&self) -> Vec<(Cow<'static, str>, AttrValue)> {
        vec![("value".into(), AttrValue::Tensor(crate::TensorAttr(self.tensor.clone())))]
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn eq_op(&self, other: &dyn Op) -> bool {
        other.get::<Constant>().is_some_and(|o| o.tensor.content_eq(&self.tensor))
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

impl OpNew for Constant {
    const INFO: &'static OpInfo = &CONSTANT;
    fn from_attrs(attrs: &AttrMap) -> Result<Constant> {
        Ok(Constant::new(attrs.read::<crate::TensorAttr>("value", None)?.0))
    }
}
