//! A queue: commands that run one after the other, in the order in which they came.

use crate::api::{check, info, num, number};
use crate::buffer::Buffer;
use crate::context::{Context, Owned};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Commands of one device, in order.
#[derive(Debug)]
pub struct Queue {
    pub(crate) handle: Owned,
    context: Arc<Context>,
    profiled: bool,
    /// Host memory that commands still read.
    lent: Mutex<Lent>,
}

#[derive(Default)]
struct Lent(Vec<Box<dyn AsRef<[u8]> + Send + Sync>>);

impl std::fmt::Debug for Lent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} lent", self.0.len())
    }
}

/// Bytes that are to come back from a device.
#[derive(Debug)]
pub struct Read<'a> {
    /// From where.
    pub from: &'a Buffer,
    /// The first of them.
    pub start: usize,
    /// To where.
    pub to: &'a mut [u8],
}

/// When a command ran; of queues that measure.
#[derive(Debug)]
pub struct Event {
    handle: Owned,
    context: Arc<Context>,
}

impl Event {
    /// How long the command ran. Waits until it is over.
    pub fn time(&self) -> Result<Duration> {
        let api = self.context.api();
        // SAFETY: a list of one event, which is alive.
        check("clWaitForEvents", unsafe { (api.wait_for_events)(1, &self.handle.raw) })?;
        let at = |what: u32| {
            // SAFETY: the event is alive, and `info` gives room for as many bytes as it says.
            let ask = |len, to, used| unsafe { (api.profiling_info)(self.handle.raw, what, len, to, used) };
            info("clGetEventProfilingInfo", ask).map(|b| number(&b))
        };
        let (start, end) = (at(num::PROFILING_COMMAND_START)?, at(num::PROFILING_COMMAND_END)?);
        Ok(Duration::from_nanos(end.saturating_sub(start)))
    }
}

impl Queue {
    /// A queue of a context's device. With `profiled`, launches give events that know their times.
    pub fn new(context: &Arc<Context>, profiled: bool) -> Result<Queue> {
        let api = context.api();
        let flags = if profiled { num::QUEUE_PROFILING_ENABLE } else { 0 };
        let mut code = 0;
        // SAFETY: the context is alive, and the device is its own.
        let raw = unsafe { (api.create_queue)(context.handle.raw, context.device.id.0, flags, &mut code) };
        check("clCreateCommandQueue", code)?;
        let handle = Owned::new(raw, api.release_queue);
        Ok(Queue { handle, context: context.clone(), profiled, lent: Mutex::default() })
    }

    /// A queue that somebody else made, by the address of its `cl_command_queue`, which is then shared with them.
    ///
    /// # Safety
    ///
    /// The address is that of a `cl_command_queue` which is alive.
    pub unsafe fn from_raw(context: &Arc<Context>, queue: usize) -> Result<Queue> {
        let api = context.api();
        let raw = queue as *mut c_void;
        // SAFETY: the caller vouches for the handle, and `info` gives room for as many bytes as it says.
        let ask = |len, to, used| unsafe { (api.queue_info)(raw, num::QUEUE_CONTEXT, len, to, used) };
        if number(&info("clGetCommandQueueInfo", ask)?) as usize != context.handle.raw as usize {
            return Err(Error::Misuse("the queue belongs to another OpenCL context".into()));
        }
        // SAFETY: the caller vouches for the handle.
        check("clRetainCommandQueue", unsafe { (api.retain_queue)(raw) })?;
        let handle = Owned::new(raw, api.release_queue);
        Ok(Queue { handle, context: context.clone(), profiled: false, lent: Mutex::default() })
    }

    /// The context it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }
    /// The address of its `cl_command_queue`, for code outside that shares it; good as long as this object is there.
    pub fn raw(&self) -> usize {
        self.handle.raw as usize
    }
    /// Whether launches give events.
    pub fn is_profiled(&self) -> bool {
        self.profiled
    }

    fn lent(&self) -> MutexGuard<'_, Lent> {
        self.lent.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn own(&self, buffer: &Buffer, start: usize, len: usize) -> Result<()> {
        if !Arc::ptr_eq(&buffer.context, &self.context) {
            return Err(Error::Misuse("the buffer belongs to another OpenCL context".into()));
        }
        match start.checked_add(len).is_some_and(|end| end <= buffer.len()) {
            true => Ok(()),
            false => {
                Err(Error::Misuse(format!("{len} bytes from {start} on are no part of a buffer of {}", buffer.len())))
            }
        }
    }

    /// Copies bytes of the host into a buffer and waits until they are there, for commands of every queue: a write that blocks
    /// promises only that the bytes were read.
    pub fn write(&self, to: &Buffer, start: usize, bytes: &[u8]) -> Result<()> {
        self.own(to, start, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        const WAIT: u32 = 1;
        // SAFETY: the range lies in the buffer, and the bytes are there until the call returns, which is when they are read.
        let code = unsafe { self.enqueue_write(to, WAIT, start, bytes) };
        check("clEnqueueWriteBuffer", code)?;
        self.finish()
    }

    /// Copies bytes of the host into a buffer some time before the next command runs. They are kept until [`Queue::finish`].
    pub fn write_later(
        &self,
        to: &Buffer,
        start: usize,
        owner: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> Result<()> {
        let owner: Box<dyn AsRef<[u8]> + Send + Sync> = Box::new(owner);
        let bytes = (*owner).as_ref();
        self.own(to, start, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the range lies in the buffer, and the owner of the bytes is kept until the queue has come to its end.
        let code = unsafe { self.enqueue_write(to, 0, start, bytes) };
        let done = check("clEnqueueWriteBuffer", code);
        self.lent().0.push(owner);
        done
    }

    // SAFETY: the range must lie in the buffer, and the bytes must stay until the command is done.
    unsafe fn enqueue_write(&self, to: &Buffer, wait: u32, start: usize, bytes: &[u8]) -> i32 {
        let (api, from): (_, *const c_void) = (self.context.api(), bytes.as_ptr().cast());
        let (none, event) = (std::ptr::null(), std::ptr::null_mut());
        // SAFETY: the caller vouches for the bytes and the range; the handles are alive.
        unsafe { (api.write_buffer)(self.handle.raw, to.handle.raw, wait, start, bytes.len(), from, 0, none, event) }
    }

    /// Copies ranges of buffers to the host and waits for all that was enqueued.
    pub fn read(&self, reads: &mut [Read<'_>]) -> Result<()> {
        let api = self.context.api();
        let mut done = Ok(());
        for Read { from, start, to } in reads.iter_mut().filter(|r| !r.to.is_empty()) {
            done = self.own(from, *start, to.len()).and_then(|()| {
                let (none, event, bytes) = (std::ptr::null(), std::ptr::null_mut(), to.len());
                let to: *mut c_void = to.as_mut_ptr().cast();
                // SAFETY: the range lies in the buffer, and the memory is borrowed until `finish` below has waited.
                let code = unsafe {
                    (api.read_buffer)(self.handle.raw, from.handle.raw, 0, *start, bytes, to, 0, none, event)
                };
                check("clEnqueueReadBuffer", code)
            });
            if done.is_err() {
                break;
            }
        }
        self.finish().and(done)
    }

    /// Copies bytes from one buffer to another.
    pub fn copy(&self, from: &Buffer, start: usize, to: &Buffer, at: usize, len: usize) -> Result<()> {
        self.own(from, start, len)?;
        self.own(to, at, len)?;
        let (api, none, event) = (self.context.api(), std::ptr::null(), std::ptr::null_mut());
        // SAFETY: both ranges lie in their buffers, and the handles are alive.
        let code = unsafe {
            (api.copy_buffer)(self.handle.raw, from.handle.raw, to.handle.raw, start, at, len, 0, none, event)
        };
        check("clEnqueueCopyBuffer", code)
    }

    /// Fills a range of a buffer with a byte.
    pub fn fill(&self, to: &Buffer, start: usize, len: usize, byte: u8) -> Result<()> {
        self.own(to, start, len)?;
        let (api, none, event) = (self.context.api(), std::ptr::null(), std::ptr::null_mut());
        let pattern: *const c_void = std::ptr::from_ref(&byte).cast();
        // SAFETY: the range lies in the buffer, the pattern is one byte, read before the call returns.
        let code = unsafe { (api.fill_buffer)(self.handle.raw, to.handle.raw, pattern, 1, start, len, 0, none, event) };
        check("clEnqueueFillBuffer", code)
    }

    /// Runs a kernel over so many items, in groups of that size or one that the driver chooses. The event is there when
    /// the queue is profiled.
    pub fn launch(&self, kernel: &Kernel, global: [usize; 3], local: Option<[usize; 3]>) -> Result<Option<Event>> {
        if !Arc::ptr_eq(kernel.context(), &self.context) {
            return Err(Error::Misuse("the kernel belongs to another OpenCL context".into()));
        }
        kernel.ready()?;
        let api = self.context.api();
        let used = |axis: usize| global[axis] != 1 || local.is_some_and(|l| l[axis] != 1);
        let axes = (1..3).rev().find(|&axis| used(axis)).map_or(1, |axis| axis as u32 + 1);
        let local = local.as_ref().map_or(std::ptr::null(), |l| l.as_ptr());
        let mut event = std::ptr::null_mut();
        let asked: *mut *mut c_void = if self.profiled { &mut event } else { std::ptr::null_mut() };
        // SAFETY: both lists have as many numbers as there are axes, the handles are alive, and all arguments were set, whose
        // buffers the kernel keeps.
        let code = unsafe {
            let (offset, none) = (std::ptr::null(), std::ptr::null());
            (api.launch)(self.handle.raw, kernel.handle.raw, axes, offset, global.as_ptr(), local, 0, none, asked)
        };
        check("clEnqueueNDRangeKernel", code)?;
        let owned = |raw| Event { handle: Owned::new(raw, api.release_event), context: self.context.clone() };
        Ok(Some(event).filter(|e| !e.is_null()).map(owned))
    }

    /// Hands what was enqueued to the device.
    pub fn flush(&self) -> Result<()> {
        // SAFETY: the queue is alive.
        check("clFlush", unsafe { (self.context.api().flush)(self.handle.raw) })
    }

    /// Waits for all that was enqueued.
    pub fn finish(&self) -> Result<()> {
        // What another thread enqueues from now on is waited for by the next call.
        let lent = std::mem::take(&mut *self.lent());
        // SAFETY: the queue is alive.
        let done = check("clFinish", unsafe { (self.context.api().finish)(self.handle.raw) });
        // A queue that failed runs nothing any more.
        drop(lent);
        done
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // What commands read must outlive them.
        let _ = self.finish();
    }
}
