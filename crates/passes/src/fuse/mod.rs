//! Groups of operations that are one operation written out, recognised and put together. One file a pass, whose head shows
//! the rewrite. Nothing is fused whose inner values are read elsewhere.

mod linear;
mod look;
mod parts;
mod poly;
#[cfg(test)]
mod testing;
mod weights;

mod fold_batch_norm;
mod fold_scale;
mod fuse_clamp;
mod fuse_gelu;
mod fuse_hsigmoid;
mod fuse_hswish;
mod fuse_layer_norm;
mod fuse_linear;
mod fuse_mish;
mod fuse_normalize_l2;
mod fuse_pad;
mod fuse_prelu;
mod fuse_qdq;
mod fuse_rms_norm;
mod fuse_sdpa;
mod fuse_shuffle;
mod fuse_silu;
mod fuse_softmax;
mod fuse_softplus;

pub use fold_batch_norm::FoldBatchNorm;
pub use fold_scale::FoldScale;
pub use fuse_clamp::FuseClamp;
pub use fuse_gelu::FuseGelu;
pub use fuse_hsigmoid::FuseHSigmoid;
pub use fuse_hswish::FuseHSwish;
pub use fuse_layer_norm::FuseLayerNorm;
pub use fuse_linear::FuseLinear;
pub use fuse_mish::FuseMish;
pub use fuse_normalize_l2::FuseNormalizeL2;
pub use fuse_pad::FusePad;
pub use fuse_prelu::FusePRelu;
pub use fuse_qdq::FuseQdq;
pub(crate) use fuse_qdq::dequantizes_weights;
pub use fuse_rms_norm::FuseRmsNorm;
pub use fuse_sdpa::FuseSdpa;
pub use fuse_shuffle::{FuseDepthToSpace, FuseShuffleChannels};
pub use fuse_silu::FuseSilu;
pub use fuse_softmax::FuseSoftmax;
pub use fuse_softplus::FuseSoftPlus;

use carafe_graph::Pass;

/// Recognisers whose results every reader of the numbered opsets knows, in order.
pub const FUSE: &[&dyn Pass] = &[
    &FuseQdq,
    &FuseClamp,
    &FuseSoftPlus,
    &FuseMish,
    &FuseGelu,
    &FuseHSigmoid,
    &FuseHSwish,
    &FuseSilu,
    &FusePRelu,
    &FuseLayerNorm,
    &FuseNormalizeL2,
    &FuseSoftmax,
    &FuseSdpa,
    &FuseDepthToSpace,
    &FuseShuffleChannels,
    &FusePad,
    &FoldBatchNorm,
    &FuseLinear,
    &FoldScale,
];

/// Recognisers whose results have no place in a file; for devices that have kernels for them.
pub const DEVICE_FUSE: &[&dyn Pass] = &[&FuseRmsNorm];
