//! The rules, one file a family. Each file has its table in front: operation, first version (always 0), translator.

pub mod common;

use carafe_frontend::StaticRule;

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
    pass_through,
    sources,
}
