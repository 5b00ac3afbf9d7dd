//! `Core`: finds the reader for a file and the device for a name, and hands models from one to the other. It knows no
//! concrete format and no concrete device; the facade registers them.

#![forbid(unsafe_code)]

mod cache;
mod compiled;
mod core;
mod device_name;
mod explain;
mod extensions;
mod kernels;
mod log;
mod plugins;

pub use crate::cache::{CACHE_PROPERTIES, CacheEntry, CacheStore, EntryInfo, Removed, parse_size};
pub use crate::core::{Core, WeakCore};
pub use device_name::DeviceName;
pub use explain::NodeExplained;
pub use extensions::IntoExtensions;
