//! Shape arithmetic in fewer nodes, and still computed from the inputs so that the model can be reshaped:
//! - `ShapeOf(f(x))` becomes `ShapeOf(x)` where f keeps the shape;
//! - `Reshape(x, Concat(Gather(ShapeOf(x), 0), 12, ...))` becomes `Reshape(x, [0, 12, -1])`;
//! - `Unsqueeze(Gather(s, 1), 0)` becomes `Gather(s, [1])`, and a Concat of Gathers from one shape becomes one Gather.

use crate::shared::{axes_of, ints, kind, same_dim, same_shape};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::indexing::Gather;
use carafe_ops::movement::{Concat, Reshape};
use carafe_tensor::Tensor;

/// Nodes that a ShapeOf climbs in one visit; keeps the pass linear.
const CLIMB: usize = 64;

#[derive(Clone, Copy, Debug)]
pub struct SimplifyShapePaths;

impl Rewrite for SimplifyShapePaths {
    fn name(&self) -> &'static str {
        "simplify_shape_paths"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        match kind(model, root) {
            "ShapeOf" => Ok(climb(model, root)),
            "Reshape" => fix_pattern(model, root),
            "Unsqueeze" | "Squeeze" => one_index(model, root),
            "Concat" => group_gathers(model, root),
            _ => Ok(Outcome::NoMatch),
        }
    }
}

fn climb(model: &mut Model, root: NodeId) -> Outcome {
    let start = model.node(root).inputs()[0];
    let mut at = start;
    for _ in 0..CLIMB {
        let node = model.node(at.node);
        let Some(&x) = node.inputs().first() else { break };
        // A climb out of a node with state would read the shape of another moment.
        if node.op().info().stateful || node.outputs().len() != 1 {
            break;
        }
        let keeps = same_shape(&model.fact(x).shape, &model.fact(at).shape) || keeps_shape(kind(model, at.node));
        if !keeps {
            break;
        }
        at = x;
    }
    if at == start {
        return Outcome::NoMatch;
    }
    model.set_input(root, 0, at);
    Outcome::Done
}

/// One input, and an output of its shape.
pub(crate) fn keeps_shape(kind: &str) -> bool {
    is_unary(kind) || matches!(kind, "Softmax" | "LogSoftmax" | "CumSum" | "Identity" | "MVN" | "NormalizeL2" | "LRN")
}

/// Works on every element alone, whatever stands beside it; further inputs are single numbers.
pub(crate) fn is_unary(kind: &str) -> bool {
    const ALL: &[&str] = &[
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceiling",
        "Clamp",
        "Convert",
        "ConvertLike",
        "Cos",
        "Cosh",
        "Elu",
        "Erf",
        "ErfInv",
        "Exp",
        "Floor",
        "Gelu",
        "HSigmoid",
        "HSwish",
        "HardSigmoid",
        "IsFinite",
        "IsInf",
        "IsNaN",
        "Log",
        "LogicalNot",
        "BitwiseNot",
        "Mish",
        "Negative",
        "Relu",
        "Round",
        "Selu",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "SoftPlus",
        "SoftSign",
        "Sqrt",
        "Swish",
        "Tan",
        "Tanh",
    ];
    ALL.contains(&kind)
}

fn fix_pattern(model: &mut Model, root: NodeId) -> Result<Outcome> {
    let &[x, target] = model.node(root).inputs() else { return Ok(Outcome::NoMatch) };
    if model.constant_of(target).is_some() {
        return Ok(Outcome::NoMatch);
    }
    let special = model.op_at::<Reshape>(root).is_some_and(|r| r.special_zero);
    let (Some(data), Some(entries)) = (model.fact(x).shape.dims(), model.fact(target).dims()) else {
        return Ok(Outcome::skip("the pattern is not known from shapes"));
    };
    let mut pattern = Vec::with_capacity(entries.len());
    for (i, entry) in entries.iter().enumerate() {
        let copies = data.get(i).is_some_and(|&d| same_dim(d, *entry));
        pattern.push(match entry.get() {
            Some(n) if n != 0 => n,
            Some(_) if special || copies => 0,
            Some(_) => return Ok(Outcome::skip("the pattern holds a size of 0")),
            None if copies => 0,
            None => -1,
        });
    }
    if pattern.iter().filter(|&&n| n == -1).count() > 1 {
        let text: Vec<String> = entries.iter().map(|e| e.to_string()).collect();
        return Ok(Outcome::skip(format!("more than one size is computed: [{}]", text.join(","))));
    }
    crate::merge_reshapes::reshape_to(model, root, x, &pattern)?;
    Ok(Outcome::Done)
}

// The scalar or one-element index of a Gather from a vector along its only axis: source and index.
fn picks(model: &Model, id: NodeId) -> Option<(Value, Vec<i64>, usize)> {
    if kind(model, id) != "Gather" {
        return None;
    }
    let &[source, indices, _] = model.node(id).inputs() else { return None };
    let list = model.fact(indices).ints()?;
    let rank = model.fact(indices).shape.rank()?;
    (model.fact(source).shape.rank() == Some(1) && rank <= 1).then_some((source, list, rank))
}

// `Unsqueeze(Gather(s, 1), 0)` and `Squeeze(Gather(s, [1]), 0)`.
fn one_index(model: &mut Model, root: NodeId) -> Result<Outcome> {
    let gather = model.node(root).inputs()[0];
    let Some((source, list, rank)) = picks(model, gather.node) else { return Ok(Outcome::NoMatch) };
    let widens = kind(model, root) == "Unsqueeze";
    let wanted = usize::from(widens);
    if list.len() != 1 || rank == wanted || model.fact(root.into()).shape.rank() != Some(wanted) {
        return Ok(Outcome::NoMatch);
    }
    if !widens && ints(model, root, 1).is_some_and(|a| axes_of(&a, 1) != Some(vec![0])) {
        return Ok(Outcome::NoMatch);
    }
    let shape: &[usize] = if widens { &[1] } else { &[] };
    gather_instead(model, root, source, Tensor::from_slice(shape, &list)?)?;
    Ok(Outcome::Done)
}

fn gather_instead(model: &mut Model, root: NodeId, source: Value, indices: Tensor) -> Result<()> {
    let name = model.node(root).name().to_string();
    let indices = model.constant(&format!("{name}/indices"), indices)?;
    let axis = model.constant(&format!("{name}/axis"), Tensor::scalar(0i64))?;
    let new = model.add(format!("{name}/gather"), Gather { batch_dims: 0 }, &[source, indices, axis])?;
    model.supersede(root, new);
    Ok(())
}

// Neighbours in a Concat that come from one vector are taken at once.
fn group_gathers(model: &mut Model, root: NodeId) -> Result<Outcome> {
    if model.fact(root.into()).shape.rank() != Some(1) {
        return Ok(Outcome::NoMatch);
    }
    let inputs = model.node(root).inputs().to_vec();
    let mut groups: Vec<(Value, Option<(Value, Vec<i64>)>)> = Vec::with_capacity(inputs.len());
    for &v in &inputs {
        let own = picks(model, v.node).filter(|(_, _, rank)| *rank == 1).map(|(source, list, _)| (source, list));
        match (groups.last_mut(), own) {
            (Some((joined, Some((source, list)))), Some((other, more))) if *source == other => {
                list.extend(more);
                // No longer one of the inputs.
                joined.port = usize::MAX;
            }
            (_, own) => groups.push((v, own)),
        }
    }
    if groups.len() == inputs.len() {
        return Ok(Outcome::NoMatch);
    }
    let name = model.node(root).name().to_string();
    if let [(_, Some((source, list)))] = &groups[..] {
        let indices = Tensor::from_slice(&[list.len()], list)?;
        gather_instead(model, root, *source, indices)?;
        return Ok(Outcome::Done);
    }
    let mut parts = Vec::with_capacity(groups.len());
    for (i, (v, from)) in groups.into_iter().enumerate() {
        parts.push(match from {
            Some((source, list)) if v.port == usize::MAX => {
                let indices =
                    model.constant(&format!("{name}/indices_{i}"), Tensor::from_slice(&[list.len()], &list)?)?;
                let axis = model.constant(&format!("{name}/axis_{i}"), Tensor::scalar(0i64))?;
                model.add(format!("{name}/gather_{i}"), Gather { batch_dims: 0 }, &[source, indices, axis])?.into()
            }
            _ => v,
        });
    }
    let new = model.add(format!("{name}/concat"), Concat { axis: 0 }, &parts)?;
    model.supersede(root, new);
    Ok(Outcome::Done)
}
