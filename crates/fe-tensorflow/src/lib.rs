//! TensorFlow models. `wire` decodes messages, `expand` makes a `SourceGraph` of a graph with its functions, and the rules in
//! `ops` and `control` translate one node each.
//!
//! What a rule sees of TensorFlow: values are called `node` and `node:1`; element types in attributes are `Type`, or text
//! (`complex64`, `resource`, `variant`) where the engine has no such type; shapes are `Shape`; functions that an operation holds
//! are sub-graphs under the names of their attributes (`then_branch`, `body`; `branches/0` of a list). Resources never pass
//! through an operation with sub-graphs: the sub-graphs read them by name, and inputs, arguments and outputs are without them.
//! A variable is its value: the rules of `VarHandleOp` and `VariableV2` read it as input 0.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod attributes;
mod control;
mod dialect;
mod expand;
mod functions;
mod graph;
mod needed;
pub mod ops;
mod outputs;
mod recognise;
mod store;
mod tensor;
mod types;
mod unread;
mod variables;
mod wire;

use carafe_frontend::{Format, ReadRequest, RuleSet, Source};
use carafe_graph::{Error, Result};
use dialect::TensorFlowDialect;
use graph::{Ends, Sources};
use prost::Message;
use std::sync::LazyLock;
use store::Store;
use variables::NoVariables;
use wire::GraphDef;

/// The format TensorFlow: frozen graphs.
#[derive(Clone, Copy, Debug, Default)]
pub struct TensorFlow;

static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::new(ops::all().into_iter().chain(control::all())));

impl Format for TensorFlow {
    fn name(&self) -> &'static str {
        "TensorFlow"
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        recognise::is_graph(head)
    }
    fn decode(&self, request: &ReadRequest<'_>) -> Result<Source> {
        let store = Store::new(request.model.map()?);
        let def = GraphDef::decode(store.bytes())
            .map_err(|e| Error::invalid(format!("not a valid TensorFlow graph: {e}")))?;
        let user = RULES.with_user(self.framework(), request.rules, request.fallback);
        let sources = Sources { store: &store, variables: &NoVariables, is_users: &|op| user.is_user("", op) };
        let graph = graph::of_graph(&def, Ends::default(), &sources, request)?;
        Ok(Source::Graph(Box::new(graph), Box::new(TensorFlowDialect)))
    }
    fn framework(&self) -> &'static str {
        "tensorflow"
    }
    fn rules(&self) -> &RuleSet {
        &RULES
    }
    fn endings(&self) -> &'static [&'static str] {
        &["pb"]
    }
}
