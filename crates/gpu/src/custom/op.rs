//! An operation that a kernel of a user runs.

use carafe_custom_kernels::gpu::GpuLayer;
use carafe_custom_kernels::vpu::VpuLayer;
use carafe_device::Around;
use carafe_graph::OpRef;
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

impl Around for CustomOp {
    fn inner(&self) -> &OpRef {
        &self.inner
    }
    fn is_same(&self, other: &CustomOp) -> bool {
        match (&self.layer, &other.layer) {
            (Layer::Gpu(a), Layer::Gpu(b)) => a == b,
            (Layer::Vpu(a), Layer::Vpu(b)) => a == b,
            _ => false,
        }
    }
}

carafe_device::op_around!(CustomOp);
