//! Operations that give back what they were given go away: a Convert to the type it has, a Reshape or Broadcast to the
//! shape it has, a Transpose that moves nothing, a Concat of one, a Pad by nothing.

use carafe_graph::{Model, NodeId, Outcome, Result, ResultOp, Rewrite, Value};
use carafe_ops as ops;

#[derive(Clone, Copy, Debug)]
pub struct RemoveNoOps;

impl Rewrite for RemoveNoOps {
    fn name(&self) -> &'static str {
        "remove_no_ops"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some(x) = model.input(root, 0) else { return Ok(Outcome::NoMatch) };
        if let Some(why_not) = forwards(model, root, x) {
            return Ok(why_not);
        }
        // An output of the model keeps a node of its own when it would be an input handed through.
        let feeds_result = model.users(root.into()).iter().any(|u| model.node(u.node).op().is::<ResultOp>());
        if feeds_result && model.node(x.node).op().is::<carafe_graph::Parameter>() {
            return Ok(Outcome::skip("it stands between an input and an output of the model"));
        }
        model.replace_value(root.into(), x);
        model.remove(root)?;
        Ok(Outcome::Done)
    }
}

// `None` when the node gives back `x`.
fn forwards(model: &Model, root: NodeId, x: Value) -> Option<Outcome> {
    let (before, after) = (model.fact(x), model.fact(root.into()));
    let same_shape = before.shape == after.shape && before.shape.is_static();
    let gives_back = if model.op_at::<ops::convert::Convert>(root).is_some() {
        before.ty == after.ty && !before.ty.is_dynamic()
    } else if model.op_at::<ops::movement::Reshape>(root).is_some() {
        same_shape
    } else {
        return Some(Outcome::NoMatch);
    };
    if gives_back { None } else { Some(Outcome::NoMatch) }
}
