//! Memory of a device.

use crate::api::{Handle, check, info, num, number};
use crate::context::{Context, Owned};
use crate::error::{Error, Result};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard};

/// A buffer, or a part of one.
///
/// The parts of a buffer are released in the opposite order of their making, whichever goes first: NVIDIA's driver does not survive
/// another order where parts overlap.
#[derive(Debug)]
pub struct Buffer {
    pub(crate) handle: Owned,
    pub(crate) context: Arc<Context>,
    len: usize,
    whole: Whole,
    /// The handles of its parts, the latest last.
    parts: Mutex<Vec<Part>>,
}

// What keeps the bytes.
#[derive(Debug)]
enum Whole {
    Own,
    PartOf(Arc<Buffer>),
    Foreign,
}

#[derive(Debug)]
struct Part {
    handle: Owned,
    is_used: bool,
}

// The handle of a part is released by the whole.
unsafe extern "C" fn keep(_: Handle) -> i32 {
    0
}

impl Buffer {
    /// So many bytes of the device's memory, of no particular content.
    pub fn new(context: &Arc<Context>, len: usize) -> Result<Arc<Buffer>> {
        let (api, info) = (context.api(), &context.device.info);
        let len = len.max(1);
        if len > info.largest_buffer {
            let why = format!("one buffer of {} has at most {}", info.name, info.largest_buffer);
            return Err(Error::NoMemory { wanted: len, why });
        }
        if context.take(len) > info.global_memory {
            context.give_back(len);
            let why = format!("{} has {}, and {} are taken", info.name, info.global_memory, context.taken());
            return Err(Error::NoMemory { wanted: len, why });
        }
        let mut code = 0;
        let flags = num::MEM_READ_WRITE;
        // SAFETY: the context is alive, and no memory of the host is named.
        let raw = unsafe { (api.create_buffer)(context.handle.raw, flags, len, std::ptr::null_mut(), &mut code) };
        if let Err(e) = check("clCreateBuffer", code) {
            context.give_back(len);
            return Err(Error::NoMemory { wanted: len, why: e.to_string() });
        }
        let handle = Owned::new(raw, api.release_mem);
        Ok(Arc::new(Buffer { handle, context: context.clone(), len, whole: Whole::Own, parts: Mutex::default() }))
    }

    fn parts(&self) -> MutexGuard<'_, Vec<Part>> {
        self.parts.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// A range of bytes of a buffer as one of its own. It begins at a multiple of the device's alignment.
    pub fn part(self: &Arc<Buffer>, start: usize, len: usize) -> Result<Arc<Buffer>> {
        if start == 0 && len == self.len {
            return Ok(self.clone());
        }
        if let Whole::PartOf(_) = self.whole {
            return Err(Error::Misuse("a part of a buffer has no parts".into()));
        }
        if len == 0 || start.checked_add(len).is_none_or(|end| end > self.len) {
            return Err(Error::Misuse(format!(
                "bytes {start} to {start} + {len} are no part of a buffer of {}",
                self.len
            )));
        }
        let api = self.context.api();
        let region = [start, len];
        let mut code = 0;
        // Held while the part is made, so that the list has the order of making.
        let mut parts = self.parts();
        // SAFETY: the buffer is alive and no part itself, and the region, an origin and a size, lies inside of it.
        let raw = unsafe {
            let region: *const c_void = region.as_ptr().cast();
            (api.create_sub_buffer)(self.handle.raw, 0, num::BUFFER_CREATE_TYPE_REGION, region, &mut code)
        };
        check("clCreateSubBuffer", code)?;
        parts.push(Part { handle: Owned::new(raw, api.release_mem), is_used: true });
        let (handle, context, whole) = (Owned::new(raw, keep), self.context.clone(), Whole::PartOf(self.clone()));
        Ok(Arc::new(Buffer { handle, context, len, whole, parts: Mutex::default() }))
    }

    /// A buffer that somebody else made, by the address of its `cl_mem`, which is then shared with them.
    ///
    /// # Safety
    ///
    /// The address is that of a `cl_mem` which is alive.
    pub unsafe fn from_raw(context: &Arc<Context>, mem: usize) -> Result<Arc<Buffer>> {
        let api = context.api();
        let raw = mem as *mut c_void;
        let ask = |what: u32| {
            // SAFETY: the caller vouches for the handle, and `info` gives room for as many bytes as it says.
            let ask = |len, to, used| unsafe { (api.mem_info)(raw, what, len, to, used) };
            info("clGetMemObjectInfo", ask).map(|b| number(&b) as usize)
        };
        if ask(num::MEM_CONTEXT)? != context.handle.raw as usize {
            return Err(Error::Misuse("the buffer belongs to another OpenCL context".into()));
        }
        let len = ask(num::MEM_SIZE)?;
        // SAFETY: the caller vouches for the handle.
        check("clRetainMemObject", unsafe { (api.retain_mem)(raw) })?;
        let handle = Owned::new(raw, api.release_mem);
        Ok(Arc::new(Buffer { handle, context: context.clone(), len, whole: Whole::Foreign, parts: Mutex::default() }))
    }

    /// The address of its `cl_mem`, for code outside that shares it; good as long as this object is there.
    pub fn raw(&self) -> usize {
        self.handle.raw as usize
    }
    /// Bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }
    /// The context it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        match &self.whole {
            Whole::Own => self.context.give_back(self.len),
            Whole::PartOf(whole) => {
                let mut parts = whole.parts();
                if let Some(part) = parts.iter_mut().rfind(|p| p.handle.raw == self.handle.raw) {
                    part.is_used = false;
                }
                while parts.pop_if(|p| !p.is_used).is_some() {}
            }
            Whole::Foreign => {}
        }
    }
}
