//! Objects of OpenCL that a program shares by their addresses: a context, a queue, buffers. A build without the GPU device has
//! nobody who takes them.

use crate::status::{Failure, NOT_IMPLEMENTED, Outcome};
use carafe::{RemoteContext, Shared};

#[cfg(feature = "gpu")]
mod objects {
    use super::*;
    use crate::status::GENERAL_ERROR;
    use carafe::Tensor;
    use carafe::gpu::ClContext;
    use carafe::gpu::opencl::{Buffer, Context, Error, Queue};
    use std::any::Any;
    use std::sync::Arc;

    /// A queue of the program. An inference begins when all that was enqueued before it is done.
    #[derive(Debug)]
    pub struct SharedQueue(Queue);

    fn failure(e: Error) -> Failure {
        Failure::new(GENERAL_ERROR, e.to_string())
    }

    fn opencl(context: &dyn RemoteContext) -> Outcome<&ClContext> {
        let any: &dyn Any = context;
        let other = || format!("the context of {} is none of OpenCL", context.device());
        any.downcast_ref().ok_or_else(|| Failure::new(NOT_IMPLEMENTED, other()))
    }

    /// A `cl_context`.
    pub(crate) fn context(address: usize) -> Outcome<Shared> {
        // SAFETY: the API asks for a `cl_context` under this property, which the program keeps alive for the call.
        Ok(unsafe { Context::from_raw(address) }.map_err(failure)?)
    }

    /// A `cl_command_queue` of a context.
    pub(crate) fn queue(context: &dyn RemoteContext, address: usize) -> Outcome<SharedQueue> {
        // SAFETY: as above, of a `cl_command_queue`.
        Ok(SharedQueue(unsafe { Queue::from_raw(opencl(context)?.opencl(), address) }.map_err(failure)?))
    }

    /// A `cl_mem` of a context.
    pub(crate) fn buffer(context: &dyn RemoteContext, address: usize) -> Outcome<Shared> {
        // SAFETY: as above, of a `cl_mem`.
        Ok(unsafe { Buffer::from_raw(opencl(context)?.opencl(), address) }.map_err(failure)?)
    }

    /// The address of the `cl_mem` behind a tensor.
    pub(crate) fn address_of(context: &dyn RemoteContext, tensor: &Tensor) -> Option<usize> {
        let buffer: Arc<Buffer> = opencl(context).ok()?.buffer_of(tensor)?;
        Some(buffer.raw())
    }

    impl SharedQueue {
        /// Waits for what the program enqueued.
        pub(crate) fn finish(&self) -> Outcome<()> {
            self.0.finish().map_err(failure)
        }
        pub(crate) fn address(&self) -> usize {
            self.0.raw()
        }
    }
}

#[cfg(not(feature = "gpu"))]
mod objects {
    use super::*;

    /// There is none without the device.
    #[derive(Debug)]
    pub enum SharedQueue {}

    fn none<T>() -> Outcome<T> {
        Err(Failure::new(NOT_IMPLEMENTED, "this library was built without the device GPU"))
    }

    pub(crate) fn context(_: usize) -> Outcome<Shared> {
        none()
    }
    pub(crate) fn queue(_: &dyn RemoteContext, _: usize) -> Outcome<SharedQueue> {
        none()
    }
    pub(crate) fn buffer(_: &dyn RemoteContext, _: usize) -> Outcome<Shared> {
        none()
    }
    pub(crate) fn address_of(_: &dyn RemoteContext, _: &carafe::Tensor) -> Option<usize> {
        None
    }

    impl SharedQueue {
        pub(crate) fn finish(&self) -> Outcome<()> {
            match *self {}
        }
        pub(crate) fn address(&self) -> usize {
            match *self {}
        }
    }
}

pub use objects::SharedQueue;
pub(crate) use objects::{address_of, buffer, context, queue};
