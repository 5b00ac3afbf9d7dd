//! What every model format shares: rules from source nodes to operations, the context a rule works in, and the gathering
//! of everything a model needs that nobody has. Values of a source model are [`Item`]s: tensors, and what formats wrap them
//! in. It knows no format.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod budget;
mod compose;
mod cut;
mod cut_off;
mod decoded;
mod dialect;
mod explain;
mod format;
mod functions;
mod item;
mod mapping;
mod missing;
mod near;
mod node_cx;
mod options;
mod order;
mod request;
mod rewrite;
mod rule;
mod scope;
mod scope_node;
mod source;
mod telemetry;
mod trace;
mod translate;
mod unknown;
mod unread;

pub use carafe_graph::log::Level;
pub use compose::Compose;
pub use cut_off::take_cut_off;
pub use decoded::is_marker;
pub use dialect::{Dialect, Words};
pub use explain::Explained;
pub use format::{Format, Source, read, read_decoded};
pub use item::{Item, join, pack};
pub use mapping::{Mapping, split_name};
pub use near::{is_near, nearest};
pub use node_cx::{Given, Host, NodeCx, Outputs, SubModel};
pub use options::{FormatOptions, Log, Progress};
pub use request::{Content, InputShape, ReadRequest};
pub use rule::{Found, Origin, Rule, RuleSet, StaticRule, Translate, rule, rule_in};
pub use source::{
    Held, LeftOut, MARK, SourceFunction, SourceGraph, SourceNode, SourceTensor, SourceValue, Versions, shown,
};
pub use trace::describe;
