//! A kernel with its arguments. Each object has arguments of its own, so whoever runs one with others makes another.

use crate::api::{check, info, num, number};
use crate::buffer::Buffer;
use crate::context::{Context, Owned};
use crate::error::{Error, Result};
use crate::program::Program;
use std::ffi::c_void;
use std::sync::Arc;

/// A function of a program, and its arguments.
#[derive(Debug)]
pub struct Kernel {
    pub(crate) handle: Owned,
    program: Arc<Program>,
    name: String,
    args: Vec<Arg>,
}

#[derive(Debug)]
struct Arg {
    kind: Kind,
    set: bool,
    /// What a buffer argument is set to: OpenCL does not keep it alive.
    buffer: Option<Arc<Buffer>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Buffer,
    Local,
    Value,
    /// A program that came as a binary may not know.
    Unknown,
}

impl Kernel {
    /// A kernel of a program by name.
    pub fn new(program: &Arc<Program>, name: &str) -> Result<Kernel> {
        let api = program.context.api();
        let c_name = Program::kernel_name(name)?;
        let mut code = 0;
        // SAFETY: the program is alive and built, the name ends with a zero.
        let raw = unsafe { (api.create_kernel)(program.handle.raw, c_name.as_ptr(), &mut code) };
        check("clCreateKernel", code).map_err(|e| Error::Misuse(format!("kernel `{name}`: {e}")))?;
        let handle = Owned::new(raw, api.release_kernel);
        // SAFETY: the kernel is alive, and `info` gives room for as many bytes as it says.
        let ask = |len, to, used| unsafe { (api.kernel_info)(raw, num::KERNEL_NUM_ARGS, len, to, used) };
        let count = number(&info("clGetKernelInfo", ask)?);
        let arg = |i: u64| {
            let what = num::KERNEL_ARG_ADDRESS_QUALIFIER;
            // SAFETY: as above, and the argument is one of the kernel's.
            let ask = |len, to, used| unsafe { (api.kernel_arg_info)(raw, i as u32, what, len, to, used) };
            let kind = match info("clGetKernelArgInfo", ask).map(|b| number(&b) as u32) {
                Ok(num::ADDRESS_GLOBAL | num::ADDRESS_CONSTANT) => Kind::Buffer,
                Ok(num::ADDRESS_LOCAL) => Kind::Local,
                Ok(_) => Kind::Value,
                Err(_) => Kind::Unknown,
            };
            Arg { kind, set: false, buffer: None }
        };
        let args = (0..count).map(arg).collect();
        Ok(Kernel { handle, program: program.clone(), name: name.to_string(), args })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Number of its arguments.
    pub fn arguments(&self) -> usize {
        self.args.len()
    }
    /// The context it belongs to.
    pub fn context(&self) -> &Arc<Context> {
        &self.program.context
    }

    /// Most items of a group for this kernel on its device.
    pub fn group_size(&self) -> Result<usize> {
        let (api, context) = (self.context().api(), self.context());
        let what = num::KERNEL_WORK_GROUP_SIZE;
        // SAFETY: the kernel is alive, the device is its own, and `info` gives room for as many bytes as it says.
        let ask = |len, to, used| unsafe {
            (api.kernel_work_group_info)(self.handle.raw, context.device.id.0, what, len, to, used)
        };
        info("clGetKernelWorkGroupInfo", ask).map(|b| number(&b) as usize)
    }

    fn check_kind(&self, index: usize, given: Kind, what: &str) -> Result<()> {
        let misuse = |why: String| Err(Error::Misuse(format!("argument {index} of kernel `{}` {why}", self.name)));
        match self.args.get(index).map(|a| a.kind) {
            None => misuse(format!("does not exist; it has {}", self.args.len())),
            Some(kind) if kind == given || kind == Kind::Unknown => Ok(()),
            Some(kind) => misuse(format!("is a {kind:?}, found {what}").to_ascii_lowercase()),
        }
    }

    /// Sets an argument to a buffer.
    pub fn set_buffer(&mut self, index: usize, buffer: &Arc<Buffer>) -> Result<()> {
        self.check_kind(index, Kind::Buffer, "a buffer")?;
        if !Arc::ptr_eq(&buffer.context, self.context()) {
            return Err(Error::Misuse("the buffer belongs to another OpenCL context".into()));
        }
        let handle: *const c_void = std::ptr::from_ref(&buffer.handle.raw).cast();
        // SAFETY: the argument is a buffer and its value the handle of one that is alive; it is kept below.
        unsafe { self.set(index, size_of::<*mut c_void>(), handle) }?;
        self.args[index].buffer = Some(buffer.clone());
        Ok(())
    }

    /// Sets an argument to a value of these bytes. The driver refuses a wrong number of them.
    pub fn set_value(&mut self, index: usize, bytes: &[u8]) -> Result<()> {
        self.check_kind(index, Kind::Value, "a value")?;
        // SAFETY: the argument is no address, and so many bytes are there.
        unsafe { self.set(index, bytes.len(), bytes.as_ptr().cast()) }
    }

    /// Gives an argument so many bytes of the memory that a group shares.
    pub fn set_local(&mut self, index: usize, bytes: usize) -> Result<()> {
        self.check_kind(index, Kind::Local, "local memory")?;
        // SAFETY: the argument is local memory, which has a size and no value.
        unsafe { self.set(index, bytes, std::ptr::null()) }
    }

    // SAFETY: so many bytes must lie at the address, and they must be a value of the argument's kind.
    unsafe fn set(&mut self, index: usize, len: usize, value: *const c_void) -> Result<()> {
        let api = self.context().api();
        // SAFETY: the caller vouches for the value, and `&mut self` keeps other threads away from the kernel.
        let code = unsafe { (api.set_arg)(self.handle.raw, index as u32, len, value) };
        let named = |e: Error| Error::Misuse(format!("argument {index} of kernel `{}`: {e}", self.name));
        check("clSetKernelArg", code).map_err(named)?;
        self.args[index].set = true;
        Ok(())
    }

    pub(crate) fn buffers(&self) -> impl Iterator<Item = Arc<Buffer>> {
        self.args.iter().filter_map(|a| a.buffer.clone())
    }

    pub(crate) fn ready(&self) -> Result<()> {
        match self.args.iter().position(|a| !a.set) {
            None => Ok(()),
            Some(i) => Err(Error::Misuse(format!("argument {i} of kernel `{}` is not set", self.name))),
        }
    }
}
