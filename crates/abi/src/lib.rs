//! The boundary to extension libraries and device plugins: `tables` is what crosses; the other files stand on one side of
//! it each. `*_import` uses what another side made, `*_export` offers what this side made; engine and libraries are both
//! at times. All `unsafe` that the boundary needs is here.
//!
//! Without the feature `engine` it is the half that a library of an author needs: what it exports. With it come the loading
//! of libraries, the use of what they export, and devices, which read and write models.

#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(clippy::undocumented_unsafe_blocks)]
// What both halves share is not all used by the smaller one.
#![cfg_attr(not(feature = "engine"), allow(dead_code))]

mod calls;
mod convert;
mod crossing;
mod export;
mod graph_import;
mod host;
mod kernel_export;
mod kernel_io;
mod memory;
mod op_export;
mod pass_export;
mod replacement;
mod rule_export;
mod status;
pub mod tables;
mod text;

#[cfg(feature = "engine")]
mod crash;
#[cfg(feature = "engine")]
mod device_export;
#[cfg(feature = "engine")]
mod device_import;
#[cfg(feature = "engine")]
mod eval_export;
#[cfg(feature = "engine")]
mod extension;
#[cfg(feature = "engine")]
mod foreign;
#[cfg(feature = "engine")]
mod graph_export;
#[cfg(feature = "engine")]
mod graph_ir;
#[cfg(feature = "engine")]
mod infer_export;
#[cfg(feature = "engine")]
mod kernel_eval;
#[cfg(feature = "engine")]
mod kernel_import;
#[cfg(feature = "engine")]
mod kernel_sets;
#[cfg(feature = "engine")]
mod library;
#[cfg(feature = "engine")]
mod library_calls;
#[cfg(feature = "engine")]
mod op_import;
#[cfg(feature = "engine")]
mod pass_import;
#[cfg(feature = "engine")]
mod registrar;
#[cfg(feature = "engine")]
mod replacement_import;
#[cfg(feature = "engine")]
mod rule_import;

pub use carafe_device::ClKernel;
pub use export::{ABI, Registration, create_extensions};
pub use graph_import::{Graph, GraphNode};
pub use host::{host, parallel_for, try_parallel_for};
pub use op_export::op_table;
pub use pass_export::{Matcher, ModelPass};
pub use replacement::Replacer;
pub use status::{guard, report, take_error};

#[cfg(feature = "engine")]
pub use crash::report_crashes;
#[cfg(feature = "engine")]
pub use device_export::create_plugin_engine;
#[cfg(feature = "engine")]
pub use device_import::{Plugin, load_plugin};
#[cfg(feature = "engine")]
pub use extension::{Extension, Progress, Telemetry};
#[cfg(feature = "engine")]
pub use library::{Library, LoadError};
#[cfg(feature = "engine")]
pub use op_import::import_op;
#[cfg(feature = "engine")]
pub use registrar::{load_extension, load_extension_if_one};
