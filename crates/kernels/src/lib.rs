//! Kernels of the CPU device. Every public function is safe: it checks the lengths it is given at the door and panics on a
//! caller's mistake; what runs behind it is chosen by [`Isa`] at run time. Data is row-major; images lie channels last.
//!
//! This crate knows neither graphs nor tensors: it takes slices and numbers.

mod arena;
mod attention;
mod buffer;
pub mod cast;
mod conv;
mod deconv;
mod denormals;
mod depthwise;
mod depthwise_bytes;
pub mod eltwise;
mod embedding;
mod embedding_compressed;
mod epilogue;
mod exec;
mod fold;
mod forks;
mod gemm;
mod halves;
mod interpolate;
mod isa;
mod machine;
pub mod movement;
pub mod norm;
mod pool;
mod quantize;
mod recurrent;
pub mod reduce;
mod roi;
mod rope;
mod sample;
pub mod select;
mod separable;
mod shared;
mod simd;
pub mod softmax;
mod spatial_pool;
mod split;
mod trees;
pub mod vmath;
pub mod winograd;

pub use arena::{Arena, MAX_PARTS, Part};
pub use attention::{Attention, AttentionInputs, AttentionParams, Mask};
pub use buffer::Buffer;
pub use conv::{Conv, ConvPlanar, ConvShape};
pub use deconv::{Deconv, DeconvCells, DeconvShape, TouchingDeconv};
pub use denormals::{DenormalsGuard, flush_denormals, flushes_denormals, keep_denormals};
pub use depthwise::Depthwise;
pub use depthwise_bytes::{BytesEpilogue, DepthwiseBytes};
pub use embedding::{EmbeddingTerm, embedding_sum};
pub use embedding_compressed::CompressedRows;
pub use epilogue::{Act, Addend, Epilogue, Finish, Quantizer, RoundTrip, Tile, TypedEpilogue, TypedOut};
pub use exec::{Exec, Scratch};
pub use fold::Fold;
pub use gemm::{
    BatchMatMul, BytesMatMul, Codes, CompressedGemm, CompressedMatrix, Compression, Gemm, LONGEST_INTEGER_SUM, Numbers,
    Operand, RoundedGemm, Stored,
};
pub use halves::Halves;
pub use interpolate::{Resize, ResizeAxis};
pub use isa::Isa;
#[cfg(target_arch = "aarch64")]
pub use isa::Neon;
#[cfg(target_arch = "x86_64")]
pub use isa::{Amx, Avx2, Avx512};
pub use machine::Machine;
pub use pool::{Pool, PoolOptions, Stopped};
pub use quantize::{dequantize, map_bytes, map_bytes_in_place, quantize, quantize_planes, weave_planes};
pub use recurrent::{
    CellKind, Direction, Lengths, Recurrent, RecurrentInputs, RecurrentOutputs, RecurrentParams, RecurrentWeights,
};
pub use roi::{RoiGrid, RoiMap, RoiMode, RoiRegion};
pub use rope::{Rope, RopeForm, RopeParams};
pub use sample::{Deformable, DeformableShape, GridSample, Moves, SampleMode, SamplePadding};
pub use separable::{Behind, Separable, Stage};
pub use shared::{SharedMut, part_of};
pub use spatial_pool::{MaxPositions, Places, PoolKind, PoolShape, SpatialPool, max_pool_bytes};
pub use trees::{TreeNodes, TreeTest, TreeWalk};
pub use winograd::{Winograd, WinogradPairs};
