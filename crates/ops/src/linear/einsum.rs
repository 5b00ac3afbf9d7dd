//! Einsum: products of tensors whose axes are named, summed over the names that the result does not have. A name may
//! have size 1 in one operand and another size elsewhere; twice in one operand it takes the diagonal.

use super::contraction::{Labelled, contract, sum_out};
use super::equation::{ELLIPSIS, Equation, Label};
use super::product::{Factor, is_factor};
use carafe_graph::{Error, EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};
use std::collections::BTreeMap;

/// Einstein summation.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 7, inputs = "inputs...")]
pub struct Einsum {
    /// Such as `bij,bjk->bik`.
    pub equation: String,
}

impl Op for Einsum {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let equation = Equation::parse(&self.equation)?;
        let n = cx.n_inputs();
        cx.require(n == equation.inputs.len(), || {
            format!("equation `{}` has {} operands, found {n} inputs", self.equation, equation.inputs.len())
        })?;
        let ty = cx.same_type(&(0..n).collect::<Vec<_>>())?;
        cx.require(is_factor(ty), || format!("inputs must be numeric, found {ty}"))?;
        let (sizes, ellipsis) = label_sizes(cx, &equation)?;
        let mut dims = Vec::new();
        for label in &equation.output {
            match (label, &ellipsis) {
                (&ELLIPSIS, Some(shape)) => match shape.dims() {
                    Some(d) => dims.extend(d),
                    None => {
                        cx.set(0, ty, PartialShape::dynamic());
                        return Ok(());
                    }
                },
                (&ELLIPSIS, None) => {}
                (label, _) => dims.push(sizes.get(label).copied().unwrap_or(Dim::ANY)),
            }
        }
        cx.set(0, ty, PartialShape::new(dims));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        if cx.ty(0).is_float() { self.evaluate::<f64>(cx) } else { self.evaluate::<i64>(cx) }
    }
}

impl Einsum {
    /// The name of every axis of the operands, which have these ranks, and of the result. Axes behind an ellipsis have names
    /// of their own.
    pub fn labels(&self, ranks: &[usize]) -> Result<(Vec<Vec<u32>>, Vec<u32>)> {
        let equation = Equation::parse(&self.equation)?;
        let mut inputs = vec![];
        let mut most = 0;
        for (i, labels) in equation.inputs.iter().enumerate() {
            let named = labels.iter().filter(|&&l| l != ELLIPSIS).count();
            let rank = ranks.get(i).copied().unwrap_or(named);
            let hidden = if named < labels.len() { rank.checked_sub(named) } else { (rank == named).then_some(0) };
            let hidden = hidden.ok_or_else(|| {
                Error::invalid(format!("operand {i} of `{}` has {named} labels, found {rank} axes", self.equation))
            })?;
            most = most.max(hidden);
            inputs.push(spell_out(labels, hidden));
        }
        Ok((inputs, spell_out(&equation.output, most)))
    }

    fn evaluate<S: Factor<Sum = S>>(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let ranks: Vec<usize> = (0..cx.n_inputs()).map(|i| cx.shape(i).len()).collect();
        let (inputs, output) = self.labels(&ranks)?;
        let mut operands = Vec::with_capacity(inputs.len());
        for (i, labels) in inputs.iter().enumerate() {
            operands.push(Labelled::new(&cx.get::<S>(i)?, cx.shape(i), labels));
        }
        let mut operands = operands.into_iter();
        let Some(mut result) = operands.next() else { return Err(cx.fail("takes at least 1 input, found 0")) };
        while let Some(next) = operands.next() {
            let needed = |label: &u32| {
                output.contains(label) || operands.as_slice().iter().any(|o| o.labels.contains(label))
            };
            result = contract(result, next, needed)?;
        }
        let result = sum_out(result, |label| output.contains(label))?;
        let out_shape = cx.out_shape(0)?;
        cx.put(0, &out_shape, result.arranged(&output))
    }
}

/// Labels as numbers, with the axes of the ellipsis numbered from the last one, so that they align to the right.
fn spell_out(labels: &[Label], n_hidden: usize) -> Vec<u32> {
    let one = |&label: &Label| -> Vec<u32> {
        if label == ELLIPSIS { (0..n_hidden as u32).rev().map(|i| 256 + i).collect() } else { vec![label as u32] }
    };
    labels.iter().flat_map(one).collect()
}

/// The size of every label and the axes behind the ellipsis, both broadcast over the operands.
fn label_sizes(cx: &InferCx<'_>, equation: &Equation) -> Result<(BTreeMap<Label, Dim>, Option<PartialShape>)> {
    let mut sizes: BTreeMap<Label, Dim> = BTreeMap::new();
    let mut ellipsis: Option<PartialShape> = None;
    for (i, labels) in equation.inputs.iter().enumerate() {
        let named = labels.iter().filter(|&&l| l != ELLIPSIS).count();
        let has_ellipsis = named != labels.len();
        let mut own: BTreeMap<Label, Dim> = BTreeMap::new();
        let mut hidden = PartialShape::dynamic();
        if let Some(dims) = cx.shape(i).dims() {
            let fits = if has_ellipsis { dims.len() >= named } else { dims.len() == named };
            cx.require(fits, || {
                format!("operand {i} of `{}` has {named} labels, found [{}]", text(equation), cx.shape(i))
            })?;
            let mut rest = dims;
            for &label in labels {
                if label == ELLIPSIS {
                    let (behind, after) = rest.split_at(dims.len() - named);
                    hidden = PartialShape::new(behind.iter().copied());
                    rest = after;
                    continue;
                }
                let Some((&dim, after)) = rest.split_first() else { break };
                rest = after;
                let known = own.get(&label).copied().unwrap_or(Dim::ANY);
                let both = known.merge(dim).ok_or_else(|| {
                    cx.fail(format!("label `{label}` is {known} and {dim} in operand {i} [{}]", cx.shape(i)))
                })?;
                own.insert(label, both);
            }
        } else {
            own.extend(labels.iter().filter(|&&l| l != ELLIPSIS).map(|&l| (l, Dim::ANY)));
        }
        for (label, dim) in own {
            let known = sizes.get(&label).copied().unwrap_or(Dim::known(1));
            let both = known.broadcast(dim).ok_or_else(|| {
                cx.fail(format!("label `{label}` is {known} in an operand and {dim} in operand {i} [{}]", cx.shape(i)))
            })?;
            sizes.insert(label, both);
        }
        if has_ellipsis {
            let known = ellipsis.unwrap_or_else(PartialShape::scalar);
            let both = known.broadcast(&hidden).ok_or_else(|| {
                cx.fail(format!("axes [{hidden}] behind the ellipsis of operand {i} do not broadcast with [{known}]"))
            })?;
            ellipsis = Some(both);
        }
    }
    Ok((sizes, ellipsis))
}

fn text(equation: &Equation) -> String {
    equation.inputs.iter().map(|l| l.iter().collect::<String>()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ellipses_align_at_their_last_axis() {
        assert_eq!(spell_out(&['.', 'a'], 2), [257, 256, 97]);
        assert_eq!(spell_out(&['a', '.'], 1), [97, 256]);
    }
}
