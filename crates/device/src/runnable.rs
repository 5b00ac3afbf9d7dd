//! What a device answers to `query` that runs kernels of extensions and evaluates everything else.

use crate::kernel::Kernel;
use crate::kernel_choice::{Asked, ask};
use crate::kernel_layout::Layout;
use crate::kernel_op::{is_known, kernels_for, site_at};
use crate::{Query, Unsupported};
use carafe_graph::{FrameworkNode, Model, NodeId};
use std::sync::Arc;

/// Which nodes of a model can run: those with an evaluation, and those that one of these kernels of the device takes.
pub fn query_runnable(model: &Model, device: &str, layouts: &[Layout], kernels: &[Arc<dyn Kernel>]) -> Query {
    let mut query = Query::default();
    for (id, node) in model.nodes() {
        match why_not(model, id, device, layouts, kernels) {
            None => query.supported.push(node.name().to_string()),
            Some(reason) => query.unsupported.push(Unsupported {
                name: node.name().to_string(),
                type_name: node.op().type_name().to_string(),
                reason,
            }),
        }
    }
    query
}

// Why neither a kernel nor an evaluation runs a node; `None` when one does.
fn why_not(model: &Model, id: NodeId, device: &str, layouts: &[Layout], kernels: &[Arc<dyn Kernel>]) -> Option<String> {
    let op = model.node(id).op();
    if op.is::<FrameworkNode>() {
        return Some(format!("no operation of opset `{}` has this name", op.opset()));
    }
    for (_, body) in op.bodies() {
        // Kernels of extensions do not reach into bodies.
        let mut inner =
            body.model.nodes().filter_map(|(id, n)| Some((n, why_not(&body.model, id, device, layouts, &[])?)));
        if let Some((node, reason)) = inner.next() {
            return Some(format!("{} in its body: {reason}", node.location()));
        }
    }
    if op.has_eval() {
        return None;
    }
    let candidates = kernels_for(kernels, op);
    if candidates.is_empty() {
        return Some(format!("the operation has no evaluation, and there is no kernel of it for {device}"));
    }
    let site = site_at(model, id, op, layouts);
    match ask(&candidates, &site) {
        Asked { chosen: Some(_), .. } => None,
        Asked { trouble: Some(trouble), .. } => Some(format!("the operation has no evaluation, and {trouble}")),
        // With the shapes of a run kernels are asked again.
        Asked { .. } if !is_known(&site) => None,
        Asked { .. } => {
            let names: Vec<String> = candidates.iter().map(|k| format!("`{}`", k.name())).collect();
            Some(format!("the operation has no evaluation, and kernel {} declines it", names.join(", ")))
        }
    }
}
