//! Shape arithmetic in fewer nodes, and still computed from the inputs so that the model can be reshaped:
//! - `ShapeOf(f(x))` becomes `ShapeOf(x)` where f keeps the shape;
//! - `Reshape(x, Concat(Gather(ShapeOf(x), 0), 12, ...))` becomes `Reshape(x, [0, 12, -1])`;
//!   a pattern with one computed size takes -1 for it; where the tensor may be empty by another size, which leaves -1 open,
//!   only if it is computed from sizes of the tensor itself;
//! - `Unsqueeze(Gather(s, 1), 0)` becomes `Gather(s, [1])`, and a Concat of Gathers from one shape becomes one Gather; a
//!   Slice of a shape counts as a Gather.

use crate::shared::{axes_of, ints, kind, same_dim, same_shape};
use carafe_graph::{Elementwise, EvalEnv, Model, NodeId, Outcome, Result, Rewrite, Value, eval_node};
use carafe_ops::indexing::Gather;
use carafe_ops::movement::{Concat, Reshape};
use carafe_tensor::Tensor;
use std::collections::HashSet;

/// Nodes that a ShapeOf climbs in one visit; keeps the pass linear.
const CLIMB: usize = 64;
/// Longer vectors are no shapes.
const LONGEST: usize = 64;

/// Computes shapes in fewer nodes, still from the inputs.
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
            "Gather" | "Slice" | "StridedSlice" => pick_once(model, root),
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
        let info = node.op().info();
        let keeps = info.keeps_shape || info.elementwise == Elementwise::First;
        if !keeps && !same_shape(&model.fact(x).shape, &model.fact(at).shape) {
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
    let empty = |(i, &n): (usize, &i64)| n == 0 && data.get(i).is_some_and(|d| d.contains(0));
    if pattern.contains(&-1) && pattern.iter().enumerate().any(empty) && !is_of_shape(model, target, x) {
        return Ok(Outcome::skip(
            "a size of another tensor is computed, which -1 does not say when there are no elements",
        ));
    }
    crate::merge_reshapes::reshape_to(model, root, x, &pattern)?;
    Ok(Outcome::Done)
}

// Whether numbers are computed from constants and from sizes of `x` alone.
fn is_of_shape(model: &Model, numbers: Value, x: Value) -> bool {
    let (mut open, mut seen) = (vec![numbers], HashSet::new());
    while let Some(v) = open.pop() {
        if !seen.insert(v.node) || model.constant_of(v).is_some() {
            continue;
        }
        let node = model.node(v.node);
        if kind(model, v.node) == "ShapeOf" {
            if !same_shape(&model.fact(node.inputs()[0]).shape, &model.fact(x).shape) {
                return false;
            }
        } else if node.inputs().is_empty() || seen.len() > LONGEST {
            return false;
        } else {
            open.extend(node.inputs());
        }
    }
    true
}

/// A vector whose elements are picked out by constant indices.
struct Picked {
    source: Value,
    indices: Vec<i64>,
    // 0 or 1.
    rank: usize,
}

// Any operation that moves elements tells which ones when it is given their numbers instead.
fn picks(model: &Model, id: NodeId) -> Option<Picked> {
    if !matches!(kind(model, id), "Gather" | "Slice" | "StridedSlice") {
        return None;
    }
    let (&source, rest) = model.node(id).inputs().split_first()?;
    let length = match model.fact(source).shape.to_static()?[..] {
        [n] if n <= LONGEST => n,
        _ => return None,
    };
    let numbers: Vec<i64> = (0..length as i64).collect();
    let mut inputs = vec![Tensor::from_slice(&[length], &numbers).ok()?];
    for v in rest {
        inputs.push(model.constant_of(*v)?.clone());
    }
    let found = eval_node(model, id, inputs, &mut EvalEnv::default()).ok()?;
    let [found] = &found[..] else { return None };
    (found.rank() <= 1).then(|| found.as_slice().ok().map(<[i64]>::to_vec)).flatten().map(|indices| Picked {
        source,
        indices,
        rank: found.rank(),
    })
}

// `Gather(Slice(s, 1, 3), 0)` becomes `Gather(s, 1)`.
fn pick_once(model: &mut Model, root: NodeId) -> Result<Outcome> {
    let Some(lower) = picks(model, root) else { return Ok(Outcome::NoMatch) };
    let Some(upper) = picks(model, lower.source.node).filter(|p| p.rank == 1 && lower.source.port == 0) else {
        return Ok(Outcome::NoMatch);
    };
    let both: Option<Vec<i64>> =
        lower.indices.iter().map(|&i| upper.indices.get(usize::try_from(i).ok()?).copied()).collect();
    let Some(both) = both else { return Ok(Outcome::NoMatch) };
    let shape: &[usize] = if lower.rank == 0 { &[] } else { &[both.len()] };
    gather_instead(model, root, upper.source, Tensor::from_slice(shape, &both)?)?;
    Ok(Outcome::Done)
}

// `Unsqueeze(Gather(s, 1), 0)` and `Squeeze(Gather(s, [1]), 0)`.
fn one_index(model: &mut Model, root: NodeId) -> Result<Outcome> {
    let gather = model.node(root).inputs()[0];
    let Some(Picked { source, indices: list, rank }) = picks(model, gather.node) else { return Ok(Outcome::NoMatch) };
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
        let own = picks(model, v.node).filter(|p| p.rank == 1).map(|p| (p.source, p.indices));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draft;
    use carafe_ops::arithmetic::Multiply;
    use carafe_ops::math::{Exp, Tanh};
    use carafe_ops::movement::Unsqueeze;
    use carafe_ops::shape::ShapeOf;
    use carafe_tensor::{ElementType, PartialShape};
    use std::collections::HashMap;

    fn size(d: &mut Draft, shape: Value, at: i64) -> Value {
        let (at, zero) = (d.int(at), d.int(0));
        let one = d.add("size", Gather { batch_dims: 0 }, &[shape, at, zero]);
        d.add("wide", Unsqueeze, &[one, zero])
    }

    fn flattened() -> (Draft, NodeId) {
        let mut d = Draft::new();
        let x = d.input("x", &[-1, -1, 4]);
        let y = d.add("tanh", Tanh, &[x]);
        let y = d.add("exp", Exp, &[y]);
        let shape = d.add("shape", ShapeOf { output_type: ElementType::I64 }, &[y]);
        let (a, rest) = (size(&mut d, shape, 0), d.ints(&[2]));
        let b = size(&mut d, shape, 1);
        let target = d.add("target", Concat { axis: 0 }, &[a, b, rest, rest]);
        let out = d.add("out", Reshape { special_zero: false }, &[x, target]);
        let r = d.result(out);
        (d, r)
    }

    #[test]
    fn a_target_made_of_sizes_becomes_a_pattern() {
        let (mut d, r) = flattened();
        assert!(d.run(&SimplifyShapePaths).0 >= 4);
        assert_eq!(d.count("ShapeOf") + d.count("Gather") + d.count("Concat"), 0);
        let out = d.model.result_value(r).node;
        assert_eq!(d.model.fact(d.model.node(out).inputs()[1]).ints(), Some(vec![0, 0, 2, 2]));
        // Still of any size.
        d.model.reshape(&HashMap::from([(0, PartialShape::of(&[7, 5, 4]))])).unwrap();
        assert_eq!(d.model.fact(out.into()).shape, PartialShape::of(&[7, 5, 2, 2]));
    }

    #[test]
    fn sizes_of_one_shape_are_taken_at_once() {
        let mut d = Draft::new();
        let x = d.input("x", &[-1, -1, -1]);
        let shape = d.add("shape", ShapeOf { output_type: ElementType::I64 }, &[x]);
        let (a, b) = (size(&mut d, shape, 2), size(&mut d, shape, 0));
        let one = d.ints(&[1]);
        let c = d.add("c", Concat { axis: 0 }, &[a, b, one]);
        d.result(c);
        assert!(d.run(&SimplifyShapePaths).0 >= 3);
        assert_eq!((d.count("Gather"), d.count("Unsqueeze")), (1, 0));
        let x = carafe_tensor::Tensor::zeros(ElementType::F32, &[5, 6, 7]).unwrap();
        assert_eq!(d.model.evaluate(&[x]).unwrap()[0].as_slice::<i64>().unwrap(), [7, 5, 1]);
    }

    // Reshapes `x` of [a, b] to [first size of `y`, b].
    fn beside_another() -> Draft {
        let mut d = Draft::new();
        let (x, y) = (d.input("x", &[-1, -1]), d.input("y", &[-1]));
        let own = d.add("own", ShapeOf { output_type: ElementType::I64 }, &[x]);
        let other = d.add("other", ShapeOf { output_type: ElementType::I64 }, &[y]);
        let b = size(&mut d, own, 1);
        let target = d.add("target", Concat { axis: 0 }, &[other, b]);
        let out = d.add("out", Reshape { special_zero: false }, &[x, target]);
        d.result(out);
        d
    }

    #[test]
    fn a_size_of_another_tensor_is_kept_where_the_data_may_be_empty() {
        let mut d = beside_another();
        let (_, why) = d.run(&SimplifyShapePaths);
        assert!(why.iter().any(|w| w.contains("when there are no elements")), "{why:?}");
        let zeros = |shape: &[usize]| carafe_tensor::Tensor::zeros(ElementType::F32, shape).unwrap();
        assert_eq!(d.model.evaluate(&[zeros(&[3, 0]), zeros(&[5])]).unwrap()[0].shape(), [5, 0]);
    }

    #[test]
    fn a_computed_size_of_the_tensor_itself_becomes_the_rest() {
        let mut d = Draft::new();
        let x = d.input("x", &[-1, -1, -1]);
        let shape = d.add("shape", ShapeOf { output_type: ElementType::I64 }, &[x]);
        let (a, b, c) = (size(&mut d, shape, 0), size(&mut d, shape, 1), size(&mut d, shape, 2));
        let rest = d.add("rest", Multiply::default(), &[b, c]);
        let target = d.add("target", Concat { axis: 0 }, &[a, rest]);
        let out = d.add("out", Reshape { special_zero: false }, &[x, target]);
        d.result(out);
        d.run(&SimplifyShapePaths);
        assert_eq!(d.count("Multiply"), 0);
        let x = carafe_tensor::Tensor::zeros(ElementType::F32, &[0, 6, 7]).unwrap();
        assert_eq!(d.model.evaluate(&[x]).unwrap()[0].shape(), [0, 42]);
    }

    #[test]
    fn two_computed_sizes_stay() {
        let mut d = Draft::new();
        let (x, y) = (d.input("x", &[-1, -1]), d.input("y", &[-1, -1]));
        let target = d.add("shape", ShapeOf { output_type: ElementType::I64 }, &[y]);
        let out = d.add("out", Reshape { special_zero: false }, &[x, target]);
        d.result(out);
        let (fired, why) = d.run(&SimplifyShapePaths);
        assert!(fired == 0 && why[0].contains("more than one size"), "{why:?}");
    }
}
