//! `x -> Reshape -> Squeeze -> Unsqueeze -> y` becomes `x -> Reshape -> y`. The pattern of the one Reshape is written from
//! the last shape: sizes that are always the same, 0 where the axis is one of `x` in its place, and at most one -1.

use crate::shared::{keeps_order, kind, same_dim};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::movement::Reshape;
use carafe_tensor::{Dim, PartialShape, Tensor};

/// Reshapes in a row become one.
#[derive(Clone, Copy, Debug)]
pub struct MergeReshapes;

impl Rewrite for MergeReshapes {
    fn name(&self) -> &'static str {
        "merge_reshapes"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        if !regroups(model, root) {
            return Ok(Outcome::NoMatch);
        }
        let between = model.node(root).inputs()[0];
        if !regroups(model, between.node) {
            return Ok(Outcome::NoMatch);
        }
        let x = model.node(between.node).inputs()[0];
        let Some(pattern) = pattern(&model.fact(x).shape, &model.fact(root.into()).shape) else {
            return Ok(Outcome::skip(format!(
                "the way from [{}] to [{}] is not known before the run",
                model.fact(x).shape,
                model.fact(root.into()).shape
            )));
        };
        reshape_to(model, root, x, &pattern)?;
        Ok(Outcome::Done)
    }
}

// A Transpose counts when it moves axes of size 1 alone.
fn regroups(model: &Model, id: NodeId) -> bool {
    match kind(model, id) {
        "Reshape" | "Squeeze" | "Unsqueeze" => true,
        "Transpose" => keeps_order(model, id),
        _ => false,
    }
}

/// Puts a Reshape of `x` with a fixed pattern in the place of `root`.
pub(crate) fn reshape_to(model: &mut Model, root: NodeId, x: Value, pattern: &[i64]) -> Result<()> {
    let name = model.node(root).name().to_string();
    let target = model.constant(&format!("{name}/shape"), Tensor::from_slice(&[pattern.len()], pattern)?)?;
    let new = model.add(format!("{name}/reshape"), Reshape { special_zero: true }, &[x, target])?;
    model.supersede(root, new);
    Ok(())
}

/// A pattern for a Reshape with `special_zero` that leads from one shape to the other in every run.
pub(crate) fn pattern(from: &PartialShape, to: &PartialShape) -> Option<Vec<i64>> {
    let (source, to) = (from.dims()?, to.dims()?);
    let mut rest = false;
    let entry = |(i, &d): (usize, &Dim)| match d.get() {
        Some(n) if n > 0 => Some(n),
        _ if source.get(i).is_some_and(|&s| same_dim(s, d)) => Some(0),
        // A size of 0 cannot be written, and makes -1 ambiguous.
        Some(_) => None,
        None if !rest => {
            rest = true;
            Some(-1)
        }
        None => None,
    };
    to.iter().enumerate().map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Draft;
    use carafe_ops::movement::{Squeeze, Unsqueeze};

    #[test]
    fn a_chain_becomes_one() {
        let mut d = Draft::new();
        let x = d.input("x", &[-1, 12]);
        let target = d.ints(&[0, 1, 3, 4]);
        let a = d.add("a", Reshape { special_zero: true }, &[x, target]);
        let one = d.ints(&[1]);
        let a = d.add("b", Squeeze { allow_axis_skip: false }, &[a, one]);
        let last = d.ints(&[3]);
        let a = d.add("c", Unsqueeze, &[a, last]);
        d.result(a);
        assert_eq!(d.run(&MergeReshapes).0, 2);
        assert_eq!((d.count("Reshape"), d.count("Squeeze"), d.count("Unsqueeze")), (1, 0, 0));
        let c = d.model.find_node("c").unwrap();
        assert_eq!(d.model.fact(d.model.node(c).inputs()[1]).ints(), Some(vec![0, 3, 4, 1]));
    }

    #[test]
    fn two_unknown_sizes_in_new_places_stay() {
        let mut d = Draft::new();
        let x = d.input("x", &[-1, -1]);
        let axes = d.ints(&[0]);
        let a = d.add("a", Unsqueeze, &[x, axes]);
        let a = d.add("b", Unsqueeze, &[a, axes]);
        d.result(a);
        let (fired, why) = d.run(&MergeReshapes);
        assert!(fired == 0 && why[0].contains("not known before the run"), "{why:?}");
    }

    #[test]
    fn a_size_of_zero_is_not_written() {
        assert_eq!(pattern(&"?,0".parse().unwrap(), &"0,2".parse().unwrap()), None);
        assert_eq!(pattern(&"2,0".parse().unwrap(), &"2,0".parse().unwrap()), Some(vec![2, 0]));
    }
}
