//! Transpose: output axis `i` is the data axis `order[i]`. An empty order reverses the axes.

use super::axes::of_rank;
use super::view::View;
use carafe_graph::{EvalCx, InferCx, Op, Result, RowsCx};
use carafe_tensor::{Dim, PartialShape};

/// Permutes the axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, order", moves = "0")]
pub struct Transpose;

impl Op for Transpose {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_integer(1)?;
        cx.require_rank(1, &[1])?;
        let (rank, length) = (cx.rank(0), cx.dim(1, 0));
        if let (Some(r), Some(n)) = (rank, length.size()) {
            cx.require(n == r || n == 0, || format!("order must list all {r} axes or be empty, found {n} entries"))?;
        }
        let shape = match (cx.ints(1), rank) {
            (Some(order), None) if order.is_empty() => PartialShape::dynamic(),
            (Some(order), None) => {
                permutation(&order, order.len()).ok_or_else(|| cx.fail(not_a_permutation(&order)))?;
                of_rank(length)
            }
            (Some(order), Some(r)) => {
                let order = permutation(&order, r).ok_or_else(|| cx.fail(not_a_permutation(&order)))?;
                PartialShape::new(order.iter().map(|&a| cx.dim(0, a)))
            }
            (None, Some(r)) => of_rank(Dim::from(r)),
            (None, None) => PartialShape::dynamic(),
        };
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let order = cx.ints(1)?;
        let shape = cx.shape(0);
        let order = permutation(&order, shape.len()).ok_or_else(|| cx.fail(not_a_permutation(&order)))?;
        let out = View::whole(shape).permuted(&order).copy(cx.input(0))?;
        cx.set(0, out)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0])?;
        match cx.ints(1).and_then(|order| order.first().copied()) {
            Some(0) => Ok(()),
            _ => Err("the first dimension moves".into()),
        }
    }
}

fn permutation(order: &[i64], rank: usize) -> Option<Vec<usize>> {
    if order.is_empty() {
        return Some((0..rank).rev().collect());
    }
    let mut seen = vec![false; rank];
    let order: Vec<usize> = order.iter().map(|&a| usize::try_from(a).ok()).collect::<Option<_>>()?;
    for &a in &order {
        if std::mem::replace(seen.get_mut(a)?, true) {
            return None;
        }
    }
    (order.len() == rank).then_some(order)
}

fn not_a_permutation(order: &[i64]) -> String {
    format!("order must be a permutation of 0..{}, found {order:?}", order.len())
}
