//! What every model format shares: rules from source nodes to operations, the context a rule works in, and the gathering
//! of everything a model needs that nobody has. Values of a source model are [`Item`]s: tensors, and what formats wrap them
//! in. It knows no format.

#![forbid(unsafe_code)]

mod cut_off;
mod explain;
mod format;
mod item;
mod mapping;
mod missing;
mod near;
mod node_cx;
mod options;
mod request;
mod rule;
mod telemetry;
mod trace;
mod unread;

pub use carafe_graph::log::Level;
pub use cut_off::{mark_cut_off, take_cut_off};
pub use explain::Explained;
pub use format::{Format, read, read_decoded};
pub use item::{Item, join, pack};
pub use mapping::{Mapping, split_name};
pub use missing::Missing;
pub use near::{is_near, nearest};
pub use node_cx::{Given, Host, NodeCx, Outputs, SourceNode, SubModel};
pub use options::{FormatOptions, Log, Progress};
pub use request::{Content, InputShape, ReadRequest};
pub use rule::{Found, Origin, Rule, RuleSet, StaticRule, Translate, rule, rule_in};
pub use telemetry::{send_error, send_event};
pub use trace::{describe, trace_inputs, trace_outputs};
pub use unread::Unread;
