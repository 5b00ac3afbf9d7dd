//! Tests of every kernel against a naive loop, in one binary: linking costs more than running.

mod attention;
mod conv;
mod deconv;
mod depthwise;
mod eltwise;
mod embedding;
mod fold;
mod gemm;
mod interpolate;
mod max_positions;
mod movement;
mod norm;
mod products;
mod recurrent;
mod reduce;
mod roi;
mod sample;
mod select;
mod separable;
mod simd_layer;
mod softmax;
mod spatial_common;
mod spatial_pool;
mod trees;
mod vmath;
mod winograd;
