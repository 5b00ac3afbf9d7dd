//! Rules, one file a family. They know the names of a `ProgramDesc`; those of Paddle 3 are turned into them before (`pir/names.rs`).

mod activation;
mod slots;
mod unary;

use carafe_frontend::StaticRule;

/// All rules.
pub(crate) fn all() -> Vec<StaticRule> {
    [activation::RULES, unary::RULES].concat()
}
