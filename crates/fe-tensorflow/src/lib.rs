//! TensorFlow models. `wire` decodes messages, `expand` makes a `SourceGraph` of a graph with its functions, and the rules in
//! `ops` and `control` translate one node each.
//!
//! What a rule sees of TensorFlow: values are called `node` and `node:1`; element types in attributes are `Type`, or text
//! (`complex64`, `resource`, `variant`) where the engine has no such type; shapes are `Shape`; functions that an operation holds
//! are sub-graphs under the names of their attributes (`then_branch`, `body`; `branches/0` of a list). Resources never pass
//! through an operation with sub-graphs: the sub-graphs read them by name, and inputs, arguments and outputs are without them.
//! A variable is its value: the rules of `VarHandleOp` and `VariableV2` read it as input 0. A table is its content: the rules of
//! `HashTableV2` and `MutableHashTableV2` read its keys as input 0 and its values as input 1, where they are known.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod attributes;
mod checkpoint;
mod container;
mod control;
mod detection_api;
mod dialect;
mod expand;
mod functions;
mod graph;
mod initial;
mod needed;
pub mod ops;
mod outputs;
mod recognise;
mod resources;
mod schema;
mod signature;
pub mod single;
mod store;
mod table_file;
mod tensor;
mod text;
mod types;
mod unread;
mod wire;
mod writes;

pub use detection_api::replacements;

use carafe_frontend::{Format, ReadRequest, RuleSet, Source};
use carafe_graph::Result;
use std::path::Path;
use std::sync::LazyLock;

/// The format TensorFlow: frozen graphs, SavedModels, MetaGraphs, and graphs with checkpoints.
#[derive(Clone, Copy, Debug, Default)]
pub struct TensorFlow;

static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::new(ops::all().into_iter().chain(control::all())));

impl Format for TensorFlow {
    fn name(&self) -> &'static str {
        "TensorFlow"
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        recognise::recognise(head).is_some() || container::keras_file(head).is_some()
    }
    fn recognizes_folder(&self, folder: &Path) -> bool {
        container::saved_model_in(folder).is_some()
    }
    fn decode(&self, request: &ReadRequest<'_>) -> Result<Source> {
        let user = RULES.with_user(self.framework(), request.rules, request.fallback);
        container::decode(request, &|op| user.is_user("", op)).map_err(|e| e.with_code(42))
    }
    fn framework(&self) -> &'static str {
        "tensorflow"
    }
    fn rules(&self) -> &RuleSet {
        &RULES
    }
    fn endings(&self) -> &'static [&'static str] {
        &["pb", "pbtxt", "meta", "ckpt", "index", "h5", "hdf5", "keras"]
    }
    fn options(&self) -> &'static [&'static str] {
        &["input_checkpoint", "input_model_is_text", "saved_model_tags", "signature", "disable_nhwc_to_nchw"]
    }
}
