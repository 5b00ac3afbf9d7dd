//! The boundary to extension libraries and device plugins: `tables` is what crosses; the other files stand on one side of
//! it each. `*_import` uses what another side made, `*_export` offers what this side made; engine and libraries are both
//! at times. All `unsafe` that the boundary needs is here.

#![allow(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn)]
#![warn(clippy::undocumented_unsafe_blocks)]

mod calls;
mod convert;
mod crash;
mod crossing;
mod device_export;
mod device_import;
mod eval_export;
mod export;
mod extension;
mod graph_export;
mod graph_import;
mod graph_ir;
mod host;
mod infer_export;
mod kernel_eval;
mod kernel_export;
mod kernel_import;
mod kernel_io;
mod kernel_sets;
mod library;
mod memory;
mod op_export;
mod op_import;
mod pass_export;
mod pass_import;
mod registrar;
mod replacement;
mod rule_export;
mod rule_import;
mod status;
pub mod tables;
mod text;

pub use carafe_device::ClKernel;
pub use crash::report_crashes;
pub use device_export::create_plugin_engine;
pub use device_import::{Plugin, load_plugin};
pub use export::{ABI, Registration, create_extensions};
pub use extension::{Extension, Progress, Telemetry};
pub use graph_import::{Graph, GraphNode};
pub use host::{host, parallel_for, try_parallel_for};
pub use library::{Library, LoadError};
pub use op_export::op_table;
pub use op_import::import_op;
pub use pass_export::{Matcher, ModelPass};
pub use registrar::{load_extension, load_extension_if_one};
pub use replacement::Replacer;
pub use status::{guard, report, take_error};
