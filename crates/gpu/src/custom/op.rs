//! An operation that a kernel of a user runs.

use carafe_custom_kernels::gpu::GpuLayer;
use carafe_custom_kernels::vpu::VpuLayer;
use carafe_graph::{
    AttrValue, Body, EvalCx, Fact, InferCx, Op, OpDecl, OpInfo, OpRef, OrderCx, Reordered, Result, RowsCx,
};
use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

/// The kernel of a node.
#[derive(Clone, Debug)]
pub(crate) enum Layer {
    Gpu(Arc<GpuLayer>),
    Vpu(Arc<VpuLayer>),
}

/// An operation with its kernel. It is inferred as what it was, and evaluated as that where shapes are known too late for a step.
#[derive(Clone)]
pub(crate) struct CustomOp {
    pub(crate) inner: OpRef,
    pub(crate) layer: Layer,
}

impl CustomOp {
    pub(crate) fn new(inner: OpRef, layer: Layer) -> CustomOp {
        CustomOp { inner, layer }
    }
}

impl std::fmt::Debug for CustomOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} by a custom kernel", self.inner.type_name())
    }
}

impl Op for CustomOp {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        self.inner.infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        self.inner.eval(cx)
    }
    fn has_eval(&self) -> bool {
        self.inner.has_eval()
    }
    fn keeps_zero(&self) -> bool {
        self.inner.keeps_zero()
    }
    fn needs_own_type(&self) -> bool {
        self.inner.needs_own_type()
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        self.inner.keeps_rows(cx)
    }
    // The kernel is for inputs as they are.
    fn reorder(&self, _: &OrderCx<'_>) -> Option<Reordered> {
        None
    }
    fn macs(&self, inputs: &[&Fact], outputs: &[&Fact]) -> Option<u64> {
        self.inner.macs(inputs, outputs)
    }
}

impl OpDecl for CustomOp {
    fn info(&self) -> &'static OpInfo {
        self.inner.info()
    }
    fn attrs(&self) -> Vec<(Cow<'static, str>, AttrValue)> {
        self.inner.attrs()
    }
    fn type_name(&self) -> &str {
        self.inner.type_name()
    }
    fn opset(&self) -> &str {
        self.inner.opset()
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn eq_op(&self, other: &dyn Op) -> bool {
        let same = |o: &CustomOp| {
            let layers = match (&self.layer, &o.layer) {
                (Layer::Gpu(a), Layer::Gpu(b)) => a == b,
                (Layer::Vpu(a), Layer::Vpu(b)) => a == b,
                _ => false,
            };
            layers && self.inner.eq_op(&*o.inner)
        };
        other.get::<CustomOp>().is_some_and(same)
    }
    fn bodies(&self) -> Vec<(&'static str, &Body)> {
        self.inner.bodies()
    }
    fn bodies_mut(&mut self) -> Vec<(&'static str, &mut Body)> {
        vec![]
    }
    fn clone_op(&self) -> Box<dyn Op> {
        Box::new(self.clone())
    }
}
