//! `Core`: finds the reader for a file and the device for a name, and hands models from one to the other. It knows no
//! concrete format and no concrete device; the facade registers them.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod cache;
mod compiled;
mod core;
mod device_name;
mod explain;
mod extensions;
mod inputs;
mod kernels;
mod log;
mod model_source;
mod plugins;
mod queue;
mod request;

pub use crate::cache::{CACHE_PROPERTIES, CacheEntry, CacheStore, EntryInfo, Removed, parse_size};
pub use crate::core::{Core, WeakCore};
pub use compiled::CompiledModel;
pub use device_name::DeviceName;
pub use explain::NodeExplained;
pub use extensions::IntoExtensions;
pub use inputs::{IntoInputs, Outputs};
pub use model_source::ModelSource;
pub use queue::{AsyncInferQueue, Finished};
pub use request::{InferRequest, VariableState};
