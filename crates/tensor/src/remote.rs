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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ElementType, Tensor};
    use std::sync::Mutex;

    #[derive(Debug)]
    struct Far(Mutex<Vec<u8>>, bool);

    impl RemoteMemory for Far {
        fn device(&self) -> String {
            "FAR".into()
        }
        fn byte_len(&self) -> usize {
            self.0.lock().unwrap().len()
        }
        fn read(&self, start: usize, to: &mut [u8]) -> Result<(), TensorError> {
            to.copy_from_slice(&self.0.lock().unwrap()[start..start + to.len()]);
            Ok(())
        }
        fn write(&self, start: usize, bytes: &[u8]) -> Result<(), TensorError> {
            self.0.lock().unwrap()[start..start + bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
        fn is_settled(&self) -> bool {
            self.1
        }
    }

    fn far(settled: bool) -> (Arc<Far>, Tensor) {
        let memory = Arc::new(Far(Mutex::new(vec![1, 2, 3, 4]), settled));
        (memory.clone(), Tensor::remote(ElementType::U8, &[3], memory).unwrap())
    }

    #[test]
    fn whoever_asks_for_bytes_gets_a_copy_of_then() {
        let (memory, tensor) = far(false);
        assert_eq!(tensor.as_slice::<u8>().unwrap(), [1, 2, 3]);
        memory.write(0, &[9]).unwrap();
        assert_eq!(tensor.bytes(), [1, 2, 3]);
        assert_eq!(tensor.clone().bytes(), [9, 2, 3]);
        assert_eq!(tensor.to_host().unwrap().bytes(), [9, 2, 3]);
        assert_eq!(format!("{tensor:?}"), "Tensor(u8[3], on FAR)");
    }

    #[test]
    fn clones_of_what_nobody_writes_to_share_one_copy() {
        let (_, tensor) = far(true);
        let other = tensor.clone();
        assert_eq!(tensor.bytes().as_ptr(), other.bytes().as_ptr());
    }

    #[test]
    fn elements_are_copied_there_and_writing_as_bytes_leaves_it() {
        let (memory, mut tensor) = far(false);
        tensor.copy_elements(1, &Tensor::from_slice(&[2], &[7u8, 8]).unwrap(), 0, 2).unwrap();
        assert_eq!(*memory.0.lock().unwrap(), [1, 7, 8, 4]);
        assert_eq!(tensor.bytes(), [1, 7, 8]);
        tensor.bytes_mut()[0] = 5;
        assert!(tensor.remote_memory().is_none());
        assert_eq!((memory.0.lock().unwrap()[0], tensor.bytes()[0]), (1, 5));
    }

    #[test]
    fn memory_that_is_too_small_is_refused() {
        let (memory, _) = far(false);
        assert!(Tensor::remote(ElementType::F32, &[2], memory).is_err());
    }
}
