//! Control flow and what lives in it: conditionals, loops, lists of tensors, recurrent cells. The first generation of control
//! flow (Switch, Merge, Enter, Exit) is turned into the second, If and While over sub-graphs, before anything is translated
//! (`first/`), so that one set of rules serves both.

mod array;
mod branch;
mod first;
mod list;
mod loop_body;
mod ports;
mod repeat;
mod stack;
mod truth;

use carafe_frontend::StaticRule;

pub(crate) use first::prepare;

/// Every built-in rule of control flow.
pub(crate) fn all() -> Vec<StaticRule> {
    [array::RULES, branch::RULES, first::RULES, list::RULES, repeat::RULES].concat()
}
