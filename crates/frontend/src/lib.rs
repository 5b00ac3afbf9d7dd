//! What every model format shares: rules from source nodes to operations, the context a rule works in, and the gathering
//! of everything a model needs that nobody has. It knows no format.

#![forbid(unsafe_code)]

mod mapping;
mod missing;
mod node_cx;
mod options;
mod rule;

pub use mapping::{Mapping, split_name};
pub use missing::Missing;
pub use node_cx::{Host, Item, NodeCx, Outputs, SourceNode, SubModel};
pub use options::{Progress, ReadOptions};
pub use rule::{Rule, RuleSet, StaticRule, Translate, rule, rule_in};
