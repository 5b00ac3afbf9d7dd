//! Rewrites that are right for every device, one file a pass. The lists below are the pipelines, in order.

#![forbid(unsafe_code)]

mod compress_to_fp16;
mod fold_constants;
pub mod fuse;
mod name_uniquely;
mod remove_no_ops;
mod remove_unused;

pub use compress_to_fp16::CompressToFp16;
pub use fold_constants::FoldConstants;
pub use fuse::{DEVICE_FUSE, FUSE};
pub use name_uniquely::NameUniquely;
pub use remove_no_ops::RemoveNoOps;
pub use remove_unused::RemoveUnused;

use carafe_graph::{Model, Notes, Pass, Result, run_passes};

/// What every model goes through before it is written or compiled.
pub const COMMON: &[&dyn Pass] = &[&FoldConstants { decompression: false }, &RemoveUnused, &NameUniquely];

/// For devices without compressed weights: as `COMMON`, and weights stored in a smaller type are widened.
pub const COMMON_WIDENED: &[&dyn Pass] = &[&FoldConstants { decompression: true }, &RemoveUnused, &NameUniquely];

/// Runs the common passes.
pub fn clean(model: &mut Model, notes: &mut Notes) -> Result<()> {
    run_passes(model, COMMON, notes)
}
