//! The rules, one file a family. Each file has its table in front: operation, first version, translator.

use carafe_frontend::StaticRule;

macro_rules! families {
    ($($family:ident),* $(,)?) => {
        $(mod $family;)*
        /// Every built-in rule.
        pub(crate) fn all() -> Vec<StaticRule> {
            [$($family::RULES),*].concat()
        }
    };
}

mod arith;
mod resize_axis;

families! { attention, convolution, elementwise, linear, losses, normalization, pooling, quantized, resize }
