//! A limit to the opsets of a file: nodes that need a newer one are listed in one error.

use super::layer_order;
use carafe_graph::{Error, Model, Result};

/// Nodes that the error lists by name.
const SHOWN: usize = 10;

/// An error unless every operation of the library is in a numbered opset up to `limit`. Operations of extensions have opsets
/// of their own, which no number limits.
pub(super) fn check(model: &Model, limit: u32) -> Result<()> {
    let mut above = Vec::new();
    collect(model, limit, "", &mut above)?;
    if above.is_empty() {
        return Ok(());
    }
    let nodes = if above.len() == 1 { "1 node needs".to_string() } else { format!("{} nodes need", above.len()) };
    let more = match above.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    above.truncate(SHOWN);
    Err(Error::unsupported(format!("{nodes} a newer opset than opset{limit}: {}{more}", above.join(", "))))
}

fn collect(model: &Model, limit: u32, inside: &str, above: &mut Vec<String>) -> Result<()> {
    for id in layer_order(model)? {
        let (node, info) = (model.node(id), model.node(id).op().info());
        if info.builtin && (info.since == 0 || info.since > limit) {
            above.push(format!("`{inside}{}` ({}, {})", node.name(), info.xml_name, info.opset));
        }
        for (_, body) in node.op().bodies() {
            collect(&body.model, limit, &format!("{inside}{}/", node.name()), above)?;
        }
    }
    Ok(())
}
