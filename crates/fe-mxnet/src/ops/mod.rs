//! The rules, one file a family. Each file has its table in front, by the first name of an operator; other names of it are
//! listed in `aliases.rs`. Settings that say nothing about the result must be ignored by name, the others read: what is left
//! over is an error. Numbers and defaults are MXNet's own.

use carafe_frontend::StaticRule;

mod cx;
mod suppress;

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
    arithmetic,
    attention,
    boxes,
    compare,
    constants,
    control,
    convolution,
    deformable,
    fourier,
    identity,
    indexing,
    joining,
    linear,
    multibox,
    normalization,
    numpy,
    pooling,
    proposal,
    random,
    recurrent,
    reduce,
    regions,
    reshaping,
    resize,
    sampling,
    scalars,
    search,
    sequence,
    shapes,
    slicing,
    softmax,
    unary,
}
