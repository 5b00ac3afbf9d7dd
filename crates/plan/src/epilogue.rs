//! Elementwise work inside another step: the epilogue of a convolution or a matrix product, or a whole group of elementwise
//! nodes.

use crate::elementwise::Elt;
use carafe_tensor::ElementType;

/// Where an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// An input of the step.
    Input(usize),
    /// An earlier result: of the main operation (0), or of the `k`-th elementwise one. In a group without a main operation
    /// results count from 0.
    Result(usize),
}

/// One elementwise operation.
#[derive(Clone, Debug)]
pub struct ElementwiseOp {
    /// What it computes.
    pub elt: Elt,
    /// Type of its operands and of its result.
    pub ty: ElementType,
    /// Its operands.
    pub sources: Vec<Source>,
}

/// Elementwise work behind the first `taken` as a group of its own, and the inputs it has: what it follows is input `result`.
pub(crate) fn as_group(ops: &[ElementwiseOp], taken: usize, result: usize) -> (Vec<ElementwiseOp>, Vec<usize>) {
    let mut used: Vec<usize> = vec![];
    let mut input = |i: usize| match used.iter().position(|&u| u == i) {
        Some(at) => Source::Input(at),
        None => {
            used.push(i);
            Source::Input(used.len() - 1)
        }
    };
    let mut source = |s: &Source| match *s {
        Source::Result(k) if k <= taken => input(result),
        Source::Result(k) => Source::Result(k - taken - 1),
        Source::Input(i) => input(i),
    };
    let ops = ops.iter().map(|op| ElementwiseOp { sources: op.sources.iter().map(&mut source).collect(), ..*op });
    (ops.collect(), used)
}
