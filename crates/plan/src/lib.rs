//! From a model to something that runs, for any device. A model is lowered for one set of input shapes to a [`Plan`]: steps in
//! order over values with slots in planned memory (`lower/`). A [`Planner`] keeps plans by shapes; [`run`] runs one.
//!
//! A device is a [`Backend`]: builders that know its kernels, layouts, element types, and its [`Memory`]. What no builder
//! takes is evaluated on the host, so every model runs.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod backend;
mod blob;
mod bodies;
mod compressed;
pub mod elementwise;
mod epilogue;
mod extension;
mod grid;
mod layout;
mod lower;
mod plan;
mod planner;
mod report;
mod request;
mod run;
mod segments;
pub mod settled;
mod site;
mod streams;
mod strided;
mod views;
pub mod windows;

pub use backend::{
    Backend, DynamicOutput, Fusing, Host, Known, Memory, MemoryKind, Step, StepRun, TransposedReads, model_precision,
};
pub use blob::{put_model, take_model};
pub use bodies::Bodies;
pub use compressed::Compressed;
pub use epilogue::{ElementwiseOp, Source};
pub use extension::PlannedKernel;
pub use grid::{Grid, Integers};
pub use layout::{AxisOrder, Block, Form, Layout};
pub use lower::lower;
pub use lower::separable::Before;
pub use plan::{Action, Plan, PlanStep, PlanValue, Region, Slot};
pub use planner::{PlanCache, Planner, SHAPED};
pub use report::{annotate, profile};
pub use request::{Prepared, Request};
pub use run::{RunCx, RunMemory, cancelled, run};
pub use site::{Built, Port, Site, Work};
pub use streams::{Lease, Streams};
pub use strided::{Operand, Parts, RowStrides, Rows};
pub use views::{Strided, View, common_layout, kept_layout, roll_shifts, slice_of};
pub use windows::{WindowAttrs, Windows};
