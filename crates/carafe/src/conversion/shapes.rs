//! `--static_shape`, and its opposite. What is computed from the shape of an input is known as soon as the shape is; folding
//! it makes a smaller model that can no longer be reshaped, so a conversion keeps these paths unless asked.

use carafe_graph::{Model, NodeId, Notes, Result, Value, run_passes};
use carafe_passes::FoldConstants;

const MARK: &str = "DisableConstantFolding";

/// Makes constants of all that is known from shapes.
pub(super) fn fold_shape_paths(model: &mut Model) -> Result<()> {
    run_passes(model, &[&FoldConstants { decompression: false }], &mut Notes::default())?;
    model.prune();
    Ok(())
}

/// Protects what is computed from shapes of tensors that are no constants; hand the answer to `release_shape_paths`.
pub fn keep_shape_paths(model: &mut Model) -> Vec<NodeId> {
    let order = model.topological_order().unwrap_or_default();
    let mut varies = vec![false; model.slots()];
    let mut path = vec![false; model.slots()];
    let mut marked = Vec::new();
    for id in order {
        let node = model.node(id);
        let at = id.0 as usize;
        let from = |list: &[bool]| node.inputs().iter().any(|v| list[v.node.0 as usize]);
        let (was_varying, on_path) = (from(&varies), from(&path));
        let source = node.inputs().is_empty() && node.op().info().name != "Constant";
        varies[at] = source || was_varying || node.op().info().stateful || node.op().info().random;
        path[at] = on_path || (was_varying && node.op().info().name == "ShapeOf");
        let known = (0..node.outputs().len()).any(|port| model.fact(Value { node: id, port }).tensor().is_some());
        if path[at] && known && !node.rt_info.has(MARK) {
            marked.push(id);
        }
    }
    for &id in &marked {
        model.rt_info_mut(id).mark(MARK);
    }
    marked
}

/// Takes the protection away again.
pub fn release_shape_paths(model: &mut Model, marked: &[NodeId]) {
    for &id in marked {
        if model.get(id).is_some() {
            model.rt_info_mut(id).remove(MARK);
        }
    }
}
