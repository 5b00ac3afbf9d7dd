//! Memory of the device behind tensors: what users make or share through a context, and what plans leave there for one another.

use crate::Kind;
use crate::error::told;
use crate::machine::{self, Found, Machine};
use crate::properties::ID;
use crate::streams::Stream;
use carafe_device::{Properties, RemoteContext, Shared};
use carafe_graph::{Error, Result};
use carafe_opencl::{Buffer, Context, Queue, Read};
use carafe_tensor::{ElementType, RemoteMemory, Tensor, TensorError};
use std::sync::Arc;

/// A buffer behind a tensor.
#[derive(Debug)]
pub(crate) struct DeviceMemory {
    pub(crate) buffer: Arc<Buffer>,
    on: On,
}

// Where bytes are read and written.
#[derive(Debug)]
enum On {
    /// A user's: written by whoever has it, while nothing runs.
    Machine(Arc<Machine>),
    /// What a plan left behind, in the queue that it ran in.
    Stream(Arc<Stream>),
}

impl DeviceMemory {
    /// What a plan left behind.
    pub(crate) fn left(buffer: Arc<Buffer>, stream: &Arc<Stream>) -> DeviceMemory {
        DeviceMemory { buffer, on: On::Stream(stream.clone()) }
    }
    /// Whether its bytes are read and written in the order of this stream.
    pub(crate) fn is_of(&self, stream: &Arc<Stream>) -> bool {
        matches!(&self.on, On::Stream(own) if Arc::ptr_eq(own, stream))
    }
    fn queue(&self) -> &Queue {
        match &self.on {
            On::Machine(machine) => &machine.uploads,
            On::Stream(stream) => &stream.queue,
        }
    }
    fn failed(&self, e: carafe_opencl::Error) -> TensorError {
        TensorError::Remote { device: self.device(), reason: e.to_string() }
    }
    /// The memory of a tensor, if it is of this context.
    pub(crate) fn of<'a>(tensor: &'a Tensor, context: &Arc<Context>) -> Option<&'a DeviceMemory> {
        DeviceMemory::known(&**tensor.remote_memory()?, context)
    }
    /// The same of memory.
    pub(crate) fn known<'a>(memory: &'a dyn RemoteMemory, context: &Arc<Context>) -> Option<&'a DeviceMemory> {
        let any: &dyn std::any::Any = memory;
        any.downcast_ref::<DeviceMemory>().filter(|m| Arc::ptr_eq(m.buffer.context(), context))
    }
}

impl RemoteMemory for DeviceMemory {
    fn device(&self) -> String {
        self.buffer.context().device.info.name.clone()
    }
    fn byte_len(&self) -> usize {
        self.buffer.len()
    }
    fn read(&self, start: usize, to: &mut [u8]) -> std::result::Result<(), TensorError> {
        self.queue().read(&mut [Read { from: &self.buffer, start, to }]).map_err(|e| self.failed(e))
    }
    fn write(&self, start: usize, bytes: &[u8]) -> std::result::Result<(), TensorError> {
        self.queue().write(&self.buffer, start, bytes).map_err(|e| self.failed(e))
    }
    fn is_settled(&self) -> bool {
        matches!(self.on, On::Stream(_))
    }
}

/// A context of OpenCL that models are compiled for and tensors are made in. `RemoteContext::handles` has its `OCL_CONTEXT`, and as
/// `OCL_QUEUE` a queue of it.
#[derive(Debug)]
pub struct ClContext {
    kind: Kind,
    found: Arc<Found>,
    machine: Arc<Machine>,
}

impl ClContext {
    pub(crate) fn of(kind: Kind, found: Arc<Found>) -> Result<ClContext> {
        Ok(ClContext { kind, machine: found.open()?, found })
    }

    /// Of a context that somebody else made.
    pub(crate) fn shared(kind: Kind, context: Shared) -> Result<ClContext> {
        let other = |_| Error::usage("the device shares an `opencl::Context`, found an object of another type");
        ClContext::of(kind, machine::share(context.downcast::<Context>().map_err(other)?)?)
    }

    /// The context as the `opencl` crate has it, for buffers and programs of your own.
    pub fn opencl(&self) -> &Arc<Context> {
        &self.machine.context
    }

    /// A tensor over a buffer of this context. Whoever else writes to it waits for that before an inference begins.
    pub fn tensor_of(&self, ty: ElementType, shape: &[usize], buffer: Arc<Buffer>) -> Result<Tensor> {
        if !Arc::ptr_eq(buffer.context(), &self.machine.context) {
            return Err(Error::usage("the buffer belongs to another OpenCL context"));
        }
        Ok(Tensor::remote(ty, shape, Arc::new(DeviceMemory { buffer, on: On::Machine(self.machine.clone()) }))?)
    }

    /// The buffer that a tensor of this context lies in.
    pub fn buffer_of(&self, tensor: &Tensor) -> Option<Arc<Buffer>> {
        DeviceMemory::of(tensor, &self.machine.context).map(|m| m.buffer.clone())
    }
}

impl RemoteContext for ClContext {
    fn device(&self) -> String {
        format!("{}.{}", self.kind.name(), self.found.id)
    }
    fn properties(&self) -> Properties {
        Properties::new().with(ID, self.found.id.clone())
    }
    fn handles(&self) -> Vec<(&'static str, usize)> {
        vec![("OCL_CONTEXT", self.machine.context.raw()), ("OCL_QUEUE", self.machine.uploads.raw())]
    }
    fn create_tensor(&self, ty: ElementType, shape: &[usize]) -> Result<Tensor> {
        let count = carafe_tensor::elements(shape).and_then(|n| ty.byte_len(n));
        let bytes = count.ok_or_else(|| Error::invalid(format!("a tensor of {ty}{shape:?} has no size in bytes")))?;
        let buffer = Buffer::new(&self.machine.context, bytes).map_err(told)?;
        self.machine.uploads.fill(&buffer, 0, buffer.len(), 0).map_err(told)?;
        self.machine.uploads.finish().map_err(told)?;
        self.tensor_of(ty, shape, buffer)
    }
    fn share_tensor(&self, ty: ElementType, shape: &[usize], memory: Shared) -> Result<Tensor> {
        let other = |_| Error::usage("the device shares an `opencl::Buffer`, found an object of another type");
        self.tensor_of(ty, shape, memory.downcast::<Buffer>().map_err(other)?)
    }
}
