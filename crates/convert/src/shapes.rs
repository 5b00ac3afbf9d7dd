//! `--static_shape`, and its opposite. What is computed from the shape of an input is known as soon as the shape is; folding
//! it makes a smaller model that can no longer be reshaped. A conversion therefore forgets the sizes of inputs while its
//! passes run, ranks left alone, and tells them again afterwards.

use carafe_graph::{Constant, Error, Model, NodeId, Notes, Parameter, Pass, Result, Value, run_passes};
use carafe_passes::{COMMON, FoldConstants};
use carafe_tensor::PartialShape;
use std::sync::Arc;

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
        let source = node.inputs().is_empty() && !node.op().is::<Constant>();
        varies[at] = source || was_varying || node.op().info().stateful || node.op().info().random;
        path[at] = on_path || (was_varying && node.op().info().shape_only);
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

/// Runs passes so that the model can be reshaped afterwards as well as before. A model that cannot be inferred without the
/// sizes of its inputs gets the common passes alone, and `notes` say why.
pub fn run_reshapable(model: &mut Model, passes: &[&dyn Pass], notes: &mut Notes) -> Result<()> {
    let mut open = model.clone();
    let attempt = forget_sizes(&mut open)
        .and_then(|saved| {
            open.infer()?;
            foreseen(model, &open).map(|()| saved)
        })
        .and_then(|saved| {
            run_passes(&mut open, passes, notes)?;
            tell_sizes(&mut open, &saved)?;
            open.infer()
        });
    match attempt {
        Ok(()) => *model = open,
        Err(e) => {
            notes.add(|| format!("only the common passes run: without sizes of inputs, {e}"));
            let kept = keep_shape_paths(model);
            run_passes(model, COMMON, notes)?;
            release_shape_paths(model, &kept);
        }
    }
    Ok(())
}

/// The inputs of a model as they were declared, and those of its bodies.
struct Saved {
    own: Vec<(NodeId, Parameter)>,
    bodies: Vec<(NodeId, Vec<Saved>)>,
}

fn forget_sizes(model: &mut Model) -> Result<Saved> {
    let mut saved = Saved { own: vec![], bodies: vec![] };
    for id in model.parameters().to_vec() {
        let Some(old) = model.op_at::<Parameter>(id).cloned() else { continue };
        let shape = old.shape.rank().map_or_else(PartialShape::dynamic, PartialShape::any_of_rank);
        model.set_op(id, Arc::new(Parameter { shape, element_type: old.element_type }))?;
        saved.own.push((id, old));
    }
    let with_bodies: Vec<NodeId> = model.nodes().filter(|(_, n)| n.op().has_body()).map(|(id, _)| id).collect();
    for id in with_bodies {
        let mut op = model.node(id).op().clone_op();
        let mut list = Vec::new();
        for (_, body) in op.bodies_mut() {
            list.push(forget_sizes(&mut body.model)?);
            body.model.infer()?;
        }
        model.set_op(id, Arc::from(op))?;
        saved.bodies.push((id, list));
    }
    Ok(saved)
}

fn tell_sizes(model: &mut Model, saved: &Saved) -> Result<()> {
    for (id, old) in &saved.own {
        model.set_op(*id, Arc::new(old.clone()))?;
    }
    for (id, list) in &saved.bodies {
        let Some(node) = model.get(*id) else { continue };
        let mut op = node.op().clone_op();
        for ((_, body), saved) in op.bodies_mut().into_iter().zip(list) {
            tell_sizes(&mut body.model, saved)?;
            body.model.infer()?;
        }
        model.set_op(*id, Arc::from(op))?;
    }
    Ok(())
}

// What is inferred without sizes must hold for the sizes there were. A Squeeze lets a listed axis stay that is not 1, which
// cannot be foreseen.
fn foreseen(model: &Model, open: &Model) -> Result<()> {
    for (id, node) in model.nodes() {
        for (port, output) in node.outputs().iter().enumerate() {
            let inferred = open.get(id).and_then(|n| n.outputs().get(port)).map(|o| &o.fact.shape);
            if inferred.is_none_or(|shape| !shape.compatible(&output.fact.shape)) {
                let text = format!("output {port} would not be [{}]", output.fact.shape);
                return Err(Error::unsupported(text).at(node.location()));
            }
        }
    }
    Ok(())
}
