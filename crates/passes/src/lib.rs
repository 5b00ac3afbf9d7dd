//! Rewrites that are right for every device, one file a pass. The lists below are the pipelines, in order.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod compress_to_fp16;
mod compute_in_f32;
mod deduplicate_constants;
mod expand_einsum;
mod fold_constants;
pub mod fuse;
mod fuse_transpose_into_matmul;
mod integers_in_f32;
mod merge_convert_pairs;
mod merge_identical_nodes;
mod merge_reshapes;
mod move_transposes;
mod name_uniquely;
mod remove_no_ops;
mod remove_unused;
mod reordered;
mod shared;
mod simplify_shape_paths;
mod sink_transposes;
mod spell_out;
#[cfg(test)]
mod testing;
mod transposed_weights;

pub use compress_to_fp16::CompressToFp16;
pub use compute_in_f32::ComputeInF32;
pub use deduplicate_constants::DeduplicateConstants;
pub use expand_einsum::ExpandEinsum;
pub use fold_constants::FoldConstants;
pub use fuse::{DEVICE_FUSE, FUSE};
pub use fuse_transpose_into_matmul::FuseTransposeIntoMatmul;
pub use integers_in_f32::IntegersInF32;
pub use merge_convert_pairs::MergeConvertPairs;
pub use merge_identical_nodes::MergeIdenticalNodes;
pub use merge_reshapes::MergeReshapes;
pub use move_transposes::MoveTransposes;
pub use name_uniquely::NameUniquely;
pub use remove_no_ops::RemoveNoOps;
pub use remove_unused::RemoveUnused;
pub use simplify_shape_paths::SimplifyShapePaths;
pub use sink_transposes::SinkTransposes;
pub use spell_out::SpellOut;

use carafe_graph::{Model, Notes, Pass, Result, run_passes};

/// What every model goes through before it is written or compiled.
pub const COMMON: &[&dyn Pass] = &[&FoldConstants { decompression: false }, &RemoveUnused, &NameUniquely];

/// For devices without compressed weights: as `COMMON`, and weights stored in a smaller type are widened.
pub const COMMON_WIDENED: &[&dyn Pass] = &[&FoldConstants { decompression: true }, &RemoveUnused, &NameUniquely];

/// What a model goes through when it is converted: fewer nodes that compute the same. Every pass trusts the shapes it finds,
/// so a model that shall stay reshapable must not have them known when it comes here.
pub const TIDY: &[&dyn Pass] = &[
    &FoldConstants { decompression: false },
    &RemoveNoOps,
    &SimplifyShapePaths,
    // One constant first, so that nodes that read equal ones become equal.
    &DeduplicateConstants,
    &MergeIdenticalNodes,
    &SimplifyShapePaths,
    &FoldConstants { decompression: false },
    &MergeConvertPairs,
    &MergeReshapes,
    &MoveTransposes,
    &SinkTransposes,
    &FuseTransposeIntoMatmul,
    &RemoveNoOps,
    &FoldConstants { decompression: false },
    &DeduplicateConstants,
    &MergeIdenticalNodes,
    &RemoveUnused,
    &NameUniquely,
];

/// Runs the common passes.
pub fn clean(model: &mut Model, notes: &mut Notes) -> Result<()> {
    run_passes(model, COMMON, notes)
}
