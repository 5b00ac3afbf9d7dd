//! Two rewrites of TensorFlow's graph before it is translated. Behind them complex numbers are pairs in a last axis, and no
//! operation on complex numbers is left but the transform.

use carafe_sdk::prelude::*;

/// `Complex(x[..., 0], x[..., 1])` is `x`.
pub(crate) struct PairOfSlices;

impl Matcher for PairOfSlices {
    fn name(&self) -> &str {
        "mri_pair_of_slices"
    }
    fn root(&self) -> Option<&str> {
        Some("Complex")
    }
    fn at(&self, graph: &mut Graph<'_>, root: NodeId) -> Result<Outcome> {
        let (re, im) = (graph.input(root, 0)?.node, graph.input(root, 1)?.node);
        if last_index(graph, re)? != Some(0) || last_index(graph, im)? != Some(1) {
            return Ok(Outcome::NoMatch);
        }
        let x = graph.input(re, 0)?;
        if graph.input(im, 0)? != x {
            return Ok(Outcome::NoMatch);
        }
        graph.replace(Value { node: root, port: 0 }, x)?;
        Ok(Outcome::Done)
    }
}

// The index that a StridedSlice takes of the last axis, if that is all it does: `x[..., i]`.
fn last_index(graph: &Graph<'_>, slice: NodeId) -> Result<Option<i64>> {
    if graph.node(slice)?.op_type != "StridedSlice" {
        return Ok(None);
    }
    let attrs = graph.attrs(slice)?;
    let mask = |name: &str| attrs.read(name, Some(0i64));
    let masks = (mask("ellipsis_mask")?, mask("shrink_axis_mask")?, mask("new_axis_mask")?);
    let begin = graph.input(slice, 1)?.node;
    let begin = graph.attrs(begin)?.get("value").cloned();
    match (masks, begin) {
        ((1, 2, 0), Some(AttrValue::Tensor(begin))) => match begin.0.to_vec::<i64>()?[..] {
            [_, index] => Ok(Some(index)),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// `ComplexAbs(x)` is `Sqrt(Sum(Square(x), -1))`.
pub(crate) struct AbsOfPairs;

impl Matcher for AbsOfPairs {
    fn name(&self) -> &str {
        "mri_abs_of_pairs"
    }
    fn root(&self) -> Option<&str> {
        Some("ComplexAbs")
    }
    fn at(&self, graph: &mut Graph<'_>, root: NodeId) -> Result<Outcome> {
        let (x, name) = (graph.input(root, 0)?, graph.node(root)?.name);
        let none = AttrMap::new();
        let axis = graph.add_constant(&format!("{name}/axis"), &Tensor::scalar(-1i64))?;
        let square = graph.add(&format!("{name}/square"), "Square", &none, &[x])?;
        let sum = graph.add(&format!("{name}/sum"), "Sum", &none, &[square.into(), axis])?;
        let sqrt = graph.add(&name, "Sqrt", &none, &[sum.into()])?;
        graph.replace(Value { node: root, port: 0 }, sqrt.into())?;
        Ok(Outcome::Done)
    }
}
