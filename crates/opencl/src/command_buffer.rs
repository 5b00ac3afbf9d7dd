//! Launches that are recorded once and enqueued as one command, where the driver has `cl_khr_command_buffer`.

use crate::api::{Handle, check};
use crate::buffer::Buffer;
use crate::context::{Context, Owned};
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::queue::Queue;
use std::ffi::{CStr, c_void};
use std::sync::Arc;

type Create = unsafe extern "C" fn(u32, *const Handle, *const u64, *mut i32) -> Handle;
type OfBuffer = unsafe extern "C" fn(Handle) -> i32;
type Launch = unsafe extern "C" fn(
    Handle,
    Handle,
    *const u64,
    Handle,
    u32,
    *const usize,
    *const usize,
    *const usize,
    u32,
    *const u32,
    *mut u32,
    *mut Handle,
) -> i32;
type Enqueue = unsafe extern "C" fn(u32, *const Handle, Handle, u32, *const Handle, *mut Handle) -> i32;

/// The functions of the extension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Functions {
    create: Create,
    finalize: OfBuffer,
    release: OfBuffer,
    launch: Launch,
    enqueue: Enqueue,
}

impl Functions {
    /// Those of a context's platform; `None` where the device does not say that it has the extension.
    pub(crate) fn of(context: &Context) -> Option<Functions> {
        if !context.device.info.has("cl_khr_command_buffer") {
            return None;
        }
        let api = context.api();
        let find = |name: &CStr| {
            // SAFETY: the platform is alive, and the name ends with a zero.
            let found = unsafe { (api.extension_function)(context.device.platform.0, name.as_ptr()) };
            Some(found).filter(|f| !f.is_null())
        };
        // SAFETY: the types are those of the extension for the function of this name; what is not there is null, which `find`
        // leaves out.
        unsafe {
            Some(Functions {
                create: std::mem::transmute::<Handle, Create>(find(c"clCreateCommandBufferKHR")?),
                finalize: std::mem::transmute::<Handle, OfBuffer>(find(c"clFinalizeCommandBufferKHR")?),
                release: std::mem::transmute::<Handle, OfBuffer>(find(c"clReleaseCommandBufferKHR")?),
                launch: std::mem::transmute::<Handle, Launch>(find(c"clCommandNDRangeKernelKHR")?),
                enqueue: std::mem::transmute::<Handle, Enqueue>(find(c"clEnqueueCommandBufferKHR")?),
            })
        }
    }
}

/// Launches in order, with the arguments that their kernels had when they were recorded.
#[derive(Debug)]
pub struct CommandBuffer {
    handle: Owned,
    context: Arc<Context>,
    /// What the launches read and write, and run: OpenCL does not keep all of it alive.
    _buffers: Vec<Arc<Buffer>>,
    _kernels: Vec<Owned>,
}

/// A kernel over so many items, as [`Queue::launch`] takes it.
#[derive(Debug)]
pub struct Recorded<'a> {
    /// The kernel with its arguments.
    pub kernel: &'a Kernel,
    /// Items along each axis.
    pub global: [usize; 3],
    /// Items of a group; the driver chooses when `None`.
    pub local: Option<[usize; 3]>,
}

impl CommandBuffer {
    /// Records launches for a queue, one behind the other. `None` where the driver has no such thing.
    pub fn record(queue: &Queue, launches: &[Recorded<'_>]) -> Result<Option<CommandBuffer>> {
        let context = queue.context();
        let Some(functions) = context.command_buffers() else { return Ok(None) };
        let api = context.api();
        let mut code = 0;
        // SAFETY: one queue, which is alive, and no properties.
        let raw = unsafe { (functions.create)(1, &queue.handle.raw, std::ptr::null(), &mut code) };
        check("clCreateCommandBufferKHR", code)?;
        let handle = Owned::new(raw, functions.release);
        let (mut buffers, mut kernels) = (vec![], vec![]);
        // One behind the other, whatever the queue is.
        let mut before: Option<u32> = None;
        for Recorded { kernel, global, local } in launches {
            if !Arc::ptr_eq(kernel.context(), context) {
                return Err(Error::Misuse("the kernel belongs to another OpenCL context".into()));
            }
            kernel.ready()?;
            // SAFETY: the kernel is alive.
            check("clRetainKernel", unsafe { (api.retain_kernel)(kernel.handle.raw) })?;
            kernels.push(Owned::new(kernel.handle.raw, api.release_kernel));
            buffers.extend(kernel.buffers());
            let local = local.as_ref().map_or(std::ptr::null(), |l| l.as_ptr());
            let (waits, first) =
                (u32::from(before.is_some()), before.as_ref().map_or(std::ptr::null(), |b| b as *const u32));
            let mut point = 0;
            // SAFETY: both lists have three numbers, all handles are alive, all arguments were set, and their buffers are kept;
            // the list of what to wait for has one entry or none.
            let code = unsafe {
                let (none, offset, changes) = (std::ptr::null_mut(), std::ptr::null(), std::ptr::null_mut());
                let (properties, sizes): (*const u64, _) = (none, global.as_ptr());
                let kernel = kernel.handle.raw;
                (functions.launch)(
                    raw,
                    std::ptr::null_mut(),
                    properties,
                    kernel,
                    3,
                    offset,
                    sizes,
                    local,
                    waits,
                    first,
                    &mut point,
                    changes,
                )
            };
            check("clCommandNDRangeKernelKHR", code)?;
            before = Some(point);
        }
        // SAFETY: the buffer is alive and not finalized yet.
        check("clFinalizeCommandBufferKHR", unsafe { (functions.finalize)(raw) })?;
        Ok(Some(CommandBuffer { handle, context: context.clone(), _buffers: buffers, _kernels: kernels }))
    }

    /// Enqueues all launches. They must not be under way from an earlier call; the driver may refuse that.
    pub fn enqueue(&self, queue: &Queue) -> Result<()> {
        if !Arc::ptr_eq(queue.context(), &self.context) {
            return Err(Error::Misuse("the queue belongs to another OpenCL context".into()));
        }
        let functions = self.context.command_buffers();
        let functions = functions.ok_or_else(|| Error::Misuse("the driver has no command buffers".into()))?;
        let (none, event): (*const *mut c_void, _) = (std::ptr::null(), std::ptr::null_mut());
        // SAFETY: one queue, both handles are alive, and what the launches use is kept by this object, which waits for the queue
        // before it goes where whoever enqueued it does.
        let code = unsafe { (functions.enqueue)(1, &queue.handle.raw, self.handle.raw, 0, none, event) };
        check("clEnqueueCommandBufferKHR", code)
    }
}
