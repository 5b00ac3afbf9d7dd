//! The rules, one file a family. Each file has its table in front: operation, first version (always 0), translator.

use carafe_frontend::StaticRule;

pub mod common;
pub(crate) mod types;

macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(mod $family;)*
        /// Every built-in rule but those of control flow.
        pub(crate) fn all() -> Vec<StaticRule> {
            [$($family::RULES),*].concat()
        }
    };
}

families! {
    binary,
    complex,
    convolution,
    counting,
    detection,
    fourier,
    images,
    indexing,
    linear,
    movement,
    normalization,
    pass_through,
    pooling,
    quantize,
    random,
    recurrent,
    reduce,
    resample,
    segments,
    shape,
    sources,
    sparse,
    strings,
    tables,
    unary,
    xla,
}
