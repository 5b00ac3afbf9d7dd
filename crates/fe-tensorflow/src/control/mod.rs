//! Control flow: rules of operations that hold sub-graphs, and what has to be done to a graph before it is translated.

use carafe_frontend::{SourceGraph, StaticRule};
use carafe_graph::Result;

/// Every built-in rule of control flow.
pub(crate) fn all() -> Vec<StaticRule> {
    vec![]
}

/// Looks at a graph as decoded, with the control inputs of its nodes, which are gone afterwards. Here control flow by tokens
/// (`Switch`, `Merge`, `Enter`) becomes operations with sub-graphs.
pub(crate) fn prepare(_graph: &mut SourceGraph) -> Result<()> {
    Ok(())
}
