//! Inputs that lost their readers because the reader of a file left out what nobody wanted (`ReadRequest::wanted`). They stay
//! in the model, so that options may speak of them, and carry a mark, so that whoever cuts takes them out.

use carafe_graph::{Model, NodeId, RtTree};

const KEY: &str = "carafe_cut_off";

/// Marks an input whose readers were left out.
pub(crate) fn mark_cut_off(model: &mut Model, parameter: NodeId) {
    model.rt_info_mut(parameter).user.push(RtTree::leaf(KEY, "true"));
}

/// Takes the marks off; gives the inputs that had one.
pub fn take_cut_off(model: &mut Model) -> Vec<NodeId> {
    let is_marked = |id: &NodeId| model.node(*id).rt_info.user.iter().any(|t| t.key == KEY);
    let marked: Vec<NodeId> = model.parameters().iter().copied().filter(is_marked).collect();
    for id in &marked {
        model.rt_info_mut(*id).user.retain(|t| t.key != KEY);
    }
    marked
}
