//! Memory of a device in the hands of a user: tensors that lie there from one inference to the next, and memory that other code
//! made. Tensors over it go where any tensor goes; only the device that has the memory uses it without a copy.

use crate::Properties;
use carafe_graph::{Error, Result};
use carafe_tensor::{ElementType, Tensor};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// An object of a device's library that somebody else made, such as a buffer. The device says which types it knows.
pub type Shared = Arc<dyn Any + Send + Sync>;

/// The memory of a device that compiled models work in.
pub trait RemoteContext: Any + Debug + Send + Sync {
    /// The device, for people: `GPU.0`.
    fn device(&self) -> String;
    /// What compiles a model for this very memory.
    fn properties(&self) -> Properties;
    /// Addresses of the objects behind it, under names that the device's documentation explains. Good as long as this is there.
    fn handles(&self) -> Vec<(&'static str, usize)>;
    /// A tensor in this memory, of zeros.
    fn create_tensor(&self, ty: ElementType, shape: &[usize]) -> Result<Tensor>;
    /// A tensor over memory that somebody else made.
    fn share_tensor(&self, ty: ElementType, shape: &[usize], memory: Shared) -> Result<Tensor>;
}

/// What a device says that has no memory but the host's.
pub(crate) fn none() -> Error {
    Error::unsupported("the device has no memory of its own to share; plain tensors are used as they lie")
}
