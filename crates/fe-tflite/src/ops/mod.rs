//! The rules, one file a family. Each file has its table in front: operator, first version, translator.

use carafe_frontend::StaticRule;

mod fused;
mod recurrent_steps;
mod weights;

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
    activation,
    control,
    convolution,
    detection,
    elementwise,
    fourier,
    indexing,
    linear,
    mediapipe,
    movement,
    normalization,
    pooling,
    quantize,
    random,
    recurrent,
    reduce,
    resize,
    segments,
    shapes,
    slicing,
    stablehlo,
    state,
    suppression,
    tables,
}
