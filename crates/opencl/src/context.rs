//! A context: one device with its buffers, queues and programs, and how much of its memory is taken.

use crate::api::{Api, Handle, api, check, info, num};
use crate::command_buffer::Functions;
use crate::device::Device;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// A context of one device.
#[derive(Debug)]
pub struct Context {
    pub(crate) handle: Owned,
    /// The device.
    pub device: Device,
    /// Bytes of all buffers that are there.
    taken: AtomicUsize,
    command_buffers: OnceLock<Option<Functions>>,
}

/// A handle that is released when it goes.
pub(crate) struct Owned {
    pub(crate) raw: Handle,
    release: unsafe extern "C" fn(Handle) -> i32,
}

// SAFETY: the functions of OpenCL may be called from any thread at once, but for those that set arguments of one kernel, and
// `Kernel` takes `&mut self` for these.
unsafe impl Send for Owned {}
// SAFETY: as above.
unsafe impl Sync for Owned {}

impl Owned {
    /// Takes over a handle whose call answered without an error.
    pub(crate) fn new(raw: Handle, release: unsafe extern "C" fn(Handle) -> i32) -> Owned {
        Owned { raw, release }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the handle is alive, this is its only owner, and the function is that for its kind.
        unsafe { (self.release)(self.raw) };
    }
}

impl std::fmt::Debug for Owned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:p}", self.raw)
    }
}

impl Context {
    /// A context of a device.
    pub fn new(device: &Device) -> Result<Arc<Context>> {
        let api = api()?;
        const CONTEXT_PLATFORM: isize = 0x1084;
        let properties = [CONTEXT_PLATFORM, device.platform.0 as isize, 0];
        let mut code = 0;
        // SAFETY: the list of properties ends with a zero, and one device is named and given.
        let raw = unsafe {
            (api.create_context)(properties.as_ptr(), 1, &device.id.0, None, std::ptr::null_mut(), &mut code)
        };
        check("clCreateContext", code)?;
        let handle = Owned::new(raw, api.release_context);
        Ok(Arc::new(Context {
            handle,
            device: device.clone(),
            taken: AtomicUsize::new(0),
            command_buffers: OnceLock::new(),
        }))
    }

    /// A context that somebody else made, by the address of its `cl_context`, which is then shared with them. Of several devices the
    /// first is used.
    ///
    /// # Safety
    ///
    /// The address is that of a `cl_context` which is alive.
    pub unsafe fn from_raw(context: usize) -> Result<Arc<Context>> {
        let api = api()?;
        let raw = context as Handle;
        // SAFETY: the caller vouches for the handle, and `info` gives room for as many bytes as it says.
        let ask = |len, to, used| unsafe { (api.context_info)(raw, num::CONTEXT_DEVICES, len, to, used) };
        let devices = info("clGetContextInfo", ask)?;
        let first = devices.first_chunk().map(|bytes| usize::from_ne_bytes(*bytes));
        let none = || Error::Misuse("the context has no device".into());
        // SAFETY: the context is alive and has this device.
        let device = unsafe { Device::from_raw(first.ok_or_else(none)?) }?;
        // SAFETY: the caller vouches for the handle.
        check("clRetainContext", unsafe { (api.retain_context)(raw) })?;
        let handle = Owned::new(raw, api.release_context);
        Ok(Arc::new(Context { handle, device, taken: AtomicUsize::new(0), command_buffers: OnceLock::new() }))
    }

    /// The address of its `cl_context`, for code outside that shares it; good as long as this object is there.
    pub fn raw(&self) -> usize {
        self.handle.raw as usize
    }

    pub(crate) fn api(&self) -> &'static Api {
        match api() {
            Ok(api) => api,
            Err(_) => unreachable!("the library is never closed"),
        }
    }

    pub(crate) fn command_buffers(&self) -> Option<&Functions> {
        self.command_buffers.get_or_init(|| Functions::of(self)).as_ref()
    }
    /// Whether launches can be recorded, see [`crate::CommandBuffer`].
    pub fn has_command_buffers(&self) -> bool {
        self.command_buffers().is_some()
    }

    /// Bytes of all buffers that are there.
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }
    pub(crate) fn take(&self, bytes: usize) -> usize {
        self.taken.fetch_add(bytes, Ordering::Relaxed) + bytes
    }
    pub(crate) fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, CommandBuffer, Kernel, Program, Queue, Read, Recorded, devices};

    fn context() -> Arc<Context> {
        let device = devices().expect("these tests need an OpenCL device (apt-get install pocl-opencl-icd)").remove(0);
        Context::new(&device).unwrap()
    }

    fn bytes(queue: &Queue, from: &Buffer) -> Vec<u8> {
        let mut to = vec![0; from.len()];
        queue.read(&mut [Read { from, start: 0, to: &mut to }]).unwrap();
        to
    }

    #[test]
    fn a_context_and_a_buffer_are_shared_by_their_addresses() {
        let theirs = context();
        let memory = Buffer::new(&theirs, 4).unwrap();
        // SAFETY: the context is alive.
        let ours = unsafe { Context::from_raw(theirs.raw()) }.unwrap();
        // SAFETY: the buffer is alive.
        let shared = unsafe { Buffer::from_raw(&ours, memory.raw()) }.unwrap();
        assert_eq!((ours.device.info.name.as_str(), shared.len()), (theirs.device.info.name.as_str(), 4));
        Queue::new(&ours, false).unwrap().write(&shared, 0, &[1, 2, 3, 4]).unwrap();
        let queue = Queue::new(&theirs, false).unwrap();
        // SAFETY: the queue is alive.
        let own = unsafe { Queue::from_raw(&ours, queue.raw()) }.unwrap();
        own.finish().unwrap();
        // SAFETY: the queue is alive.
        let other = unsafe { Queue::from_raw(&context(), queue.raw()) };
        assert!(other.unwrap_err().to_string().contains("another OpenCL context"));
        drop((shared, own, ours));
        assert_eq!(bytes(&Queue::new(&theirs, false).unwrap(), &memory), [1, 2, 3, 4]);
        // SAFETY: the buffer is alive.
        let foreign = unsafe { Buffer::from_raw(&context(), memory.raw()) };
        assert!(foreign.unwrap_err().to_string().contains("another OpenCL context"));
    }

    #[test]
    fn recorded_launches_run_in_order_each_time_they_are_enqueued() {
        let context = context();
        if !context.has_command_buffers() {
            return;
        }
        let source =
            "__kernel void f(__global int *x, int a, int b) { x[get_global_id(0)] = x[get_global_id(0)] * a + b; }";
        let program = Program::from_source(&context, source, "").unwrap();
        let (queue, memory) = (Queue::new(&context, false).unwrap(), Buffer::new(&context, 16).unwrap());
        queue.fill(&memory, 0, 16, 0).unwrap();
        let kernel = |a: i32, b: i32| {
            let mut kernel = Kernel::new(&program, "f").unwrap();
            kernel.set_buffer(0, &memory).unwrap();
            kernel.set_value(1, &a.to_ne_bytes()).unwrap();
            kernel.set_value(2, &b.to_ne_bytes()).unwrap();
            kernel
        };
        let kernels = [kernel(1, 3), kernel(10, 0)];
        let launch = |kernel| Recorded { kernel, global: [4, 1, 1], local: None };
        let whole = CommandBuffer::record(&queue, &kernels.each_ref().map(launch)).unwrap().unwrap();
        drop(kernels);
        for wanted in [30, 330] {
            whole.enqueue(&queue).unwrap();
            assert_eq!(bytes(&queue, &memory)[..4], i32::to_ne_bytes(wanted));
        }
    }
}
