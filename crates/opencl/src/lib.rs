//! OpenCL 1.2, loaded at run time: owned handles and calls that check what they are given. A machine without the library, or
//! without a device, is told by [`devices`] in words; nothing is needed to build.
//!
//! Calls are safe as far as the memory of this process goes: lengths are checked, host memory outlives what reads or writes
//! it, and arguments of kernels are of the kind that the kernel declares. What a kernel does on the device is up to its source.

#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(clippy::undocumented_unsafe_blocks)]
#![warn(missing_docs)]

mod api;
mod buffer;
mod command_buffer;
mod context;
mod device;
mod error;
mod kernel;
mod program;
mod queue;

pub use buffer::Buffer;
pub use command_buffer::{CommandBuffer, Recorded};
pub use context::Context;
pub use device::{Device, DeviceInfo, DeviceKind, devices};
pub use error::{Code, Error, Result};
pub use kernel::Kernel;
pub use program::Program;
pub use queue::{Event, Queue, Read};
