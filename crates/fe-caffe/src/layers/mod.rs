//! The rules, one file a family. Each file has its table in front: layer type and translator. Types that a fork spells in
//! another way than case and underscores have a line of their own.
//!
//! A rule reads its bottoms by [`LayerCx::bottom`](cx::LayerCx::bottom) and its stored blobs by
//! [`LayerCx::blob`](cx::LayerCx::blob), in the shape it needs them. Parameters that say nothing about the result must be
//! ignored by name, the others read: what is left over is an error.

use carafe_frontend::StaticRule;

mod cx;
mod fillers;
mod numbers;

macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(mod $family;)*
        /// Every built-in rule.
        pub(crate) fn all() -> Vec<StaticRule> {
            [$($family::RULES),*].concat()
        }
    };
}

families! {
    accum,
    activation,
    binary,
    convolution,
    correlation,
    ctc,
    detection_output,
    eltwise,
    identity,
    inner_product,
    joining,
    normalization,
    normalize,
    pooling,
    preprocessing,
    prior_box,
    proposal,
    recurrent,
    reduction,
    regions,
    resize,
    sampling,
    scale,
    shapes,
    shuffle_channel,
    sources,
    upsample,
    windows,
    yolo,
}
