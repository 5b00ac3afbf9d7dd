//! Whether a model may be run with many rows at once: every row must come out as if it were alone. Two things are
//! checked, and what is not known to be right is refused with the reason. With `n` rows, every value that depends on
//! inputs must have its old shape but for the first dimension, which was 1 and is `n`; and every operation that touches
//! such a value must say that it keeps rows apart (`Op::keeps_rows`).

use carafe_graph::{Constant, Error, Model, Node, NodeId, Parameter, Result, ResultOp, RowKind, RowsCx};
use carafe_tensor::PartialShape;
use std::collections::HashMap;

/// The model with `n` rows.
pub(crate) fn batched(model: &Model, n: usize) -> Result<Model> {
    let refuse = |why: String| Err(Error::unsupported(format!("cannot run {n} requests as one batch: {why}")));
    if model.parameters().is_empty() {
        return refuse("the model has no inputs".into());
    }
    let inputs = model.parameters().iter().map(|p| ("input", model.parameter_name(*p), model.fact((*p).into())));
    let outputs = model.results().iter().map(|r| ("output", model.result_name(*r), model.fact(model.result_value(*r))));
    for (what, name, fact) in inputs.chain(outputs) {
        let Some(shape) = fact.shape.to_static() else {
            return refuse(format!("{what} `{name}` has the dynamic shape [{}]", fact.shape));
        };
        if shape.first() != Some(&1) {
            return refuse(format!("{what} `{name}` has shape {shape:?}, whose first dimension is not a batch of 1"));
        }
    }
    let mut many = model.clone();
    many.prune();
    let one = many.clone();
    let mut shapes = HashMap::new();
    for (i, p) in many.parameters().iter().enumerate() {
        let mut shape = many.fact((*p).into()).shape.to_static().unwrap_or_default();
        shape[0] = n;
        shapes.insert(i, PartialShape::of(&shape));
    }
    if let Err(e) = many.reshape(&shapes) {
        return refuse(format!("the model does not take such a batch: {e}"));
    }
    match check(&one, &many, n) {
        Ok(()) => Ok(many),
        Err((id, why)) => refuse(format!("{}: {why}", many.node(id).location())),
    }
}

fn check(one: &Model, many: &Model, n: usize) -> Result<(), (NodeId, String)> {
    let order = many.topological_order().map_err(|e| (NodeId(0), e.to_string()))?;
    let mut kinds = vec![RowKind::Fixed; many.slots()];
    for id in order {
        let node = many.node(id);
        let kind = kind_of(many, id, &kinds).map_err(|why| (id, why))?;
        kinds[id.0 as usize] = match kind {
            RowKind::Rows => {
                rows_only(one.node(id), node, n).map_err(|why| (id, why))?;
                RowKind::Rows
            }
            RowKind::Count if same_values(one.node(id), node) => RowKind::Fixed,
            other => other,
        };
        if node.op().is::<ResultOp>() && kind != RowKind::Rows {
            return Err((id, "an output does not depend on the inputs".into()));
        }
    }
    Ok(())
}

fn same_values(one: &Node, many: &Node) -> bool {
    let same = |(a, b): (&carafe_graph::Output, &carafe_graph::Output)| match (a.fact.tensor(), b.fact.tensor()) {
        (Some(a), Some(b)) => a.content_eq(b),
        _ => false,
    };
    one.outputs().len() == many.outputs().len() && one.outputs().iter().zip(many.outputs()).all(same)
}

// The shape of before, with `n` in place of the first 1.
fn rows_only(one: &Node, many: &Node, n: usize) -> Result<(), String> {
    for (before, after) in one.outputs().iter().zip(many.outputs()) {
        let (before, after) = (&before.fact.shape, &after.fact.shape);
        let expected = before.to_static().filter(|s| s.first() == Some(&1)).map(|mut s| {
            s[0] = n;
            s
        });
        if expected.is_none() || expected != after.to_static() {
            return Err(format!("its output [{before}] becomes [{after}], which is not the same with {n} rows"));
        }
    }
    Ok(())
}

fn kind_of(model: &Model, id: NodeId, kinds: &[RowKind]) -> Result<RowKind, String> {
    let node = model.node(id);
    let (op, info) = (node.op(), node.op().info());
    if op.is::<Parameter>() {
        return Ok(RowKind::Rows);
    }
    if op.is::<Constant>() {
        return Ok(RowKind::Fixed);
    }
    if info.random || info.stateful || info.sink {
        return Err("it remembers or draws something, which rows would share".into());
    }
    let inputs: Vec<RowKind> = node.inputs().iter().map(|v| kinds[v.node.0 as usize]).collect();
    if op.is::<ResultOp>() {
        return Ok(inputs[0]);
    }
    if inputs.iter().all(|k| *k != RowKind::Rows) {
        return Ok(if inputs.contains(&RowKind::Count) { RowKind::Count } else { RowKind::Fixed });
    }
    if info.shape_only {
        return Ok(RowKind::Count);
    }
    op.keeps_rows(&RowsCx::new(model, id, inputs))?;
    Ok(RowKind::Rows)
}
