//! Elements in the memory of a device. A tensor over them is as any other: the device that has them uses them where they lie, and
//! whoever else asks for bytes gets a copy of the host.

use crate::{SharedBytes, TensorError};
use std::any::Any;
use std::fmt::Debug;
use std::sync::{Arc, OnceLock};

/// Memory of a device, behind a tensor. A device knows its own by asking for the type (it is [`Any`]).
pub trait RemoteMemory: Any + Debug + Send + Sync {
    /// The device that has it, for people: `GPU.0`.
    fn device(&self) -> String;
    /// Bytes.
    fn byte_len(&self) -> usize;
    /// Copies bytes from `start` on to the host. Waits until they are there.
    fn read(&self, start: usize, to: &mut [u8]) -> Result<(), TensorError>;
    /// Copies bytes of the host there, from `start` on. Waits until they are there.
    fn write(&self, start: usize, bytes: &[u8]) -> Result<(), TensorError>;
    /// Whether nobody writes to it any more, so that one copy on the host serves everyone. Otherwise each clone of a tensor makes
    /// its own when it is first asked for bytes.
    fn is_settled(&self) -> bool {
        false
    }
}

/// Memory of a device, and its copy on the host once somebody asked for bytes.
#[derive(Debug)]
pub(crate) struct Remote {
    pub(crate) memory: Arc<dyn RemoteMemory>,
    host: Arc<OnceLock<Result<SharedBytes, TensorError>>>,
}

impl Remote {
    pub(crate) fn new(memory: Arc<dyn RemoteMemory>) -> Remote {
        Remote { memory, host: Arc::default() }
    }
    /// The first `len` bytes, on the host.
    pub(crate) fn host(&self, len: usize) -> Result<&[u8], TensorError> {
        let read = || {
            let mut bytes = SharedBytes::zeroed(len)?;
            let to = bytes.unique_mut().expect("the bytes were just made");
            self.memory.read(0, to).map(|()| bytes)
        };
        self.host.get_or_init(read).as_ref().map(SharedBytes::as_slice).map_err(Clone::clone)
    }
}

impl Clone for Remote {
    fn clone(&self) -> Remote {
        let host = if self.memory.is_settled() { self.host.clone() } else { Arc::default() };
        Remote { memory: self.memory.clone(), host }
    }
}
