//! The rules, one file a family. Each file has its table in front: operation, first version, translator.

use carafe_frontend::StaticRule;

mod compose;
mod recurrent_steps;
mod resize_axis;
mod roi_align_max;
mod shapes;
mod volume_sample;

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
    activation, casts, constants, elementwise, indexing, legacy, logic, movement, random, reduce, slicing,
    control, optional, recurrent, scan, sequence, signal,
    attention, convolution, linear, losses, normalization, pooling, quantized, resize, vision,
}
