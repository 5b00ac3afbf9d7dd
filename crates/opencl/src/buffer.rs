//! Memory of a device.

use crate::api::{check, info, num, number};
use crate::context::{Context, Owned};
use crate::error::{Error, Result};
use std::ffi::c_void;
use std::sync::Arc;

/// A buffer, or a part of one.
#[derive(Debug)]
pub struct Buffer {
    pub(crate) handle: Owned,
    pub(crate) context: Arc<Context>,
    len: usize,
    whole: Whole,
}

// What keeps the bytes.
#[derive(Debug)]
enum Whole {
    Own,
    PartOf(#[allow(dead_code, reason = "it is kept, not read")] Arc<Buffer>),
    Foreign,
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
        Ok(Arc::new(Buffer { handle, context: context.clone(), len, whole: Whole::Own }))
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
        // SAFETY: the buffer is alive and no part itself, and the region, an origin and a size, lies inside of it.
        let raw = unsafe {
            let region: *const c_void = region.as_ptr().cast();
            (api.create_sub_buffer)(self.handle.raw, 0, num::BUFFER_CREATE_TYPE_REGION, region, &mut code)
        };
        check("clCreateSubBuffer", code)?;
        let (handle, context) = (Owned::new(raw, api.release_mem), self.context.clone());
        Ok(Arc::new(Buffer { handle, context, len, whole: Whole::PartOf(self.clone()) }))
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
        Ok(Arc::new(Buffer { handle, context: context.clone(), len, whole: Whole::Foreign }))
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
        if let Whole::Own = self.whole {
            self.context.give_back(self.len);
        }
    }
}
