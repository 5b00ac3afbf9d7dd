//! What every model format shares: rules from source nodes to operations, the context a rule works in, and the gathering
//! of everything a model needs that nobody has. Values of a source model are [`Item`]s: tensors, and what formats wrap them
//! in. It knows no format.
//!
//! Without the feature `read` it is what a library of an author needs: rules, mappings and [`NodeCx`].

#![forbid(unsafe_code)]
#![warn(missing_docs)]
// What readers ask of a source graph has no user then.
#![cfg_attr(not(feature = "read"), allow(dead_code))]

mod builtin;
mod item;
mod mapping;
mod node_cx;
mod order;
mod rule;
mod source;

#[cfg(feature = "read")]
mod budget;
#[cfg(feature = "ops")]
mod compose;
#[cfg(feature = "read")]
mod cut;
#[cfg(feature = "read")]
mod cut_off;
#[cfg(feature = "read")]
mod decoded;
#[cfg(feature = "read")]
mod dialect;
#[cfg(feature = "read")]
mod explain;
#[cfg(feature = "read")]
mod format;
#[cfg(feature = "read")]
mod functions;
#[cfg(feature = "read")]
mod missing;
#[cfg(feature = "read")]
mod near;
#[cfg(feature = "read")]
mod options;
#[cfg(feature = "read")]
mod request;
#[cfg(feature = "read")]
mod rewrite;
#[cfg(feature = "read")]
mod scope;
#[cfg(feature = "read")]
mod scope_node;
#[cfg(feature = "read")]
mod telemetry;
#[cfg(feature = "read")]
mod trace;
#[cfg(feature = "read")]
mod translate;
#[cfg(feature = "read")]
mod unknown;
#[cfg(feature = "read")]
mod unread;

pub use carafe_graph::log::Level;
pub use item::{Item, join};
pub use mapping::{Mapping, split_name};
pub use node_cx::{Given, Host, NodeCx, Outputs, SubModel};
pub use rule::{Found, Origin, Rule, RuleSet, StaticRule, Translate, rule, rule_in};
pub use source::{
    Held, LeftOut, MARK, SourceFunction, SourceGraph, SourceNode, SourceTensor, SourceValue, Versions, shown,
};

#[cfg(feature = "ops")]
pub use compose::Compose;
#[cfg(feature = "read")]
pub use cut_off::take_cut_off;
#[cfg(feature = "read")]
pub use decoded::is_marker;
#[cfg(feature = "read")]
pub use dialect::{Dialect, Words};
#[cfg(feature = "read")]
pub use explain::Explained;
#[cfg(feature = "read")]
pub use format::{Format, Source, read, read_decoded};
#[cfg(feature = "ops")]
pub use item::pack;
#[cfg(feature = "read")]
pub use missing::generator;
#[cfg(feature = "read")]
pub use near::{is_near, nearest};
#[cfg(feature = "read")]
pub use options::{FormatOptions, Log, Progress};
#[cfg(feature = "read")]
pub use request::{Content, InputShape, ReadRequest};
#[cfg(feature = "read")]
pub use trace::describe;
