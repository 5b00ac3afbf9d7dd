//! GroupedMatMul: one matrix product for each group, as a mixture of experts needs it. The second matrix of a group is
//! stored by columns, `[N, K]`; offsets are the ends of the groups among the rows of the first.

use super::product::{Factor, Rows, add_product_of_rows, is_factor, with_factor, zeros};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, PartialShape};

/// Either `[G, M, K]` by `[G, N, K]`, or rows `[T, K]` cut into groups by `offsets`, by `[G, N, K]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 17, inputs = "mat_a, mat_b, offsets?", heavy)]
pub struct GroupedMatMul;

impl Op for GroupedMatMul {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = cx.same_type(&[0, 1])?;
        cx.require(is_factor(ty), || format!("mat_a and mat_b must be numeric, found {ty}"))?;
        cx.require_rank(0, &[2, 3])?;
        cx.require_rank(1, &[3])?;
        if cx.has(2) {
            let t = cx.ty(2);
            cx.require(matches!(t, ElementType::I32 | ElementType::I64 | ElementType::Dynamic), || {
                format!("offsets must be i32 or i64, found {t}")
            })?;
            cx.require_rank(2, &[1])?;
        }
        let Some(rank) = cx.rank(0) else {
            cx.set(0, ty, PartialShape::dynamic());
            return Ok(());
        };
        let (k_a, k_b) = (cx.dim(0, rank - 1), cx.dim(1, 2));
        cx.require(k_a.compatible(k_b), || {
            format!("mat_a [{}] has {k_a} columns, mat_b [{}] has {k_b}", cx.shape(0), cx.shape(1))
        })?;
        let (groups, n) = (cx.dim(1, 0), cx.dim(1, 1));
        if rank == 2 {
            cx.require(cx.has(2), || "rows without a group axis need the input offsets".to_string())?;
            let ends = cx.dim(2, 0);
            cx.require(ends.compatible(groups), || format!("offsets must have {groups} values, found {ends}"))?;
            cx.set(0, ty, PartialShape::new([cx.dim(0, 0), n]));
        } else {
            let groups = groups.merge(cx.dim(0, 0)).ok_or_else(|| {
                cx.fail(format!("mat_a [{}] and mat_b [{}] differ in their groups", cx.shape(0), cx.shape(1)))
            })?;
            cx.set(0, ty, PartialShape::new([groups, cx.dim(0, 1), n]));
        }
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        with_factor!(cx.ty(0), T => multiply::<T>(cx))
    }
}

fn multiply<T: Factor>(cx: &mut EvalCx<'_>) -> Result<()> {
    let (a, b) = (cx.get::<T>(0)?, cx.get::<T>(1)?);
    let out_shape = cx.out_shape(0)?;
    let &[groups, n, k] = cx.shape(1) else { return Err(cx.fail("mat_b must have rank 3")) };
    let ends = if let &[rows, _] = cx.shape(0) { group_ends(cx, rows)? } else { equal_ends(groups, cx.shape(0)[1]) };
    let mut out: Vec<T> = zeros(&out_shape)?;
    let mut start = 0;
    for (group, end) in ends.into_iter().enumerate() {
        let m = end - start;
        let mut sums: Vec<T::Sum> = zeros(&[m, n])?;
        add_product_of_rows(&mut sums, Rows::new(&a[start * k..], k), Rows::new(&b[group * n * k..], k), m, k, n);
        for (y, s) in out[start * n..end * n].iter_mut().zip(sums) {
            *y = T::narrow(s);
        }
        start = end;
    }
    cx.put(0, &out_shape, out)
}

fn equal_ends(groups: usize, rows: usize) -> Vec<usize> {
    (1..=groups).map(|g| g * rows).collect()
}

/// The ends from the input, which must grow and stay inside of the rows; rows after the last group give zeros.
fn group_ends(cx: &EvalCx<'_>, rows: usize) -> Result<Vec<usize>> {
    let mut last = 0;
    let mut ends = Vec::new();
    for end in cx.ints(2)? {
        let fitting = usize::try_from(end).ok().filter(|&e| e >= last && e <= rows);
        last = fitting.ok_or_else(|| cx.fail(format!("offsets must grow from 0 to {rows}, found {end} after {last}")))?;
        ends.push(last);
    }
    Ok(ends)
}
