//! Shared by the embedding operations: a bag is a list of rows of a table that are added up or averaged, each with a
//! weight where there are weights. An empty bag is the default row, which no weight touches, or zeros.

use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::{Dim, Number, PartialShape};

carafe_graph::attr_enum! {
    /// How the rows of a bag are joined.
    pub enum BagReduction {
        /// Added up.
        Sum = "sum",
        /// Averaged; takes no weights.
        Mean = "mean",
    }
}

/// Checks the table, and that these inputs have one integer type.
pub(super) fn check_inputs(cx: &InferCx<'_>, integers: &[usize]) -> Result<()> {
    cx.require_number(0)?;
    cx.require(cx.rank(0) != Some(0), || "the table must not be a scalar".to_string())?;
    for &i in integers {
        cx.require_integer(i)?;
    }
    cx.same_type(integers)?;
    Ok(())
}

/// Checks weights: the type of the table, the shape of the indices, and no mean.
pub(super) fn check_weights(cx: &InferCx<'_>, weights: usize, reduction: BagReduction) -> Result<()> {
    if !cx.has(weights) {
        return Ok(());
    }
    cx.require(reduction == BagReduction::Sum, || "weights need the reduction sum, found mean".to_string())?;
    cx.same_type(&[0, weights])?;
    cx.require(cx.shape(weights).compatible(cx.shape(1)), || {
        format!("weights must have the shape of the indices, [{}], found [{}]", cx.shape(1), cx.shape(weights))
    })
}

/// Output of `bags` rows of the table.
pub(super) fn set_output(cx: &mut InferCx<'_>, bags: Dim) {
    let shape = match cx.shape(0).dims() {
        Some(dims) => PartialShape::new([bags].into_iter().chain(dims.iter().skip(1).copied())),
        None => PartialShape::dynamic(),
    };
    cx.set(0, cx.ty(0), shape);
}

/// Adds up bags. `bags` holds the range of indices of each; `default` is the row of an empty bag.
pub(super) fn eval(
    cx: &mut EvalCx<'_>,
    bags: &[std::ops::Range<usize>],
    default: Option<i64>,
    weights: usize,
    reduction: BagReduction,
) -> Result<()> {
    let out = cx.out_shape(0)?;
    let default = default.filter(|&d| d != -1);
    if cx.ty(0).is_float() {
        let rows = rows::<f64>(cx, bags, default, weights, reduction)?;
        cx.put(0, &out, rows)
    } else {
        with_number!(cx.ty(0), T => {
            let rows = rows::<T>(cx, bags, default, weights, reduction)?;
            cx.put(0, &out, rows)
        })
    }
}

fn rows<T: Number>(
    cx: &EvalCx<'_>,
    bags: &[std::ops::Range<usize>],
    default: Option<i64>,
    weights: usize,
    reduction: BagReduction,
) -> Result<Vec<T>> {
    let table = cx.get::<T>(0)?;
    let indices = cx.get::<i64>(1)?;
    let weights = if cx.has(weights) { Some(cx.get::<T>(weights)?) } else { None };
    let shape = cx.shape(0);
    let (n_rows, width) = (shape[0], shape[1..].iter().product::<usize>());
    let row = |index: i64| {
        let i = usize::try_from(index).ok().filter(|&i| i < n_rows);
        let i = i.ok_or_else(|| cx.fail(format!("index {index} is outside of a table of {n_rows} rows")))?;
        Ok::<&[T], carafe_graph::Error>(&table[i * width..(i + 1) * width])
    };
    let mut out = filled(&cx.out_shape(0)?, T::zero())?;
    for (bag, range) in bags.iter().enumerate() {
        let sum = &mut out[bag * width..(bag + 1) * width];
        if let (true, Some(default)) = (range.is_empty(), default) {
            sum.copy_from_slice(row(default)?);
        }
        for i in range.clone() {
            let weight = weights.as_ref().map(|w| w[i]);
            for (s, &x) in sum.iter_mut().zip(row(indices[i])?) {
                *s = s.wrapping_add(weight.map_or(x, |w| x.wrapping_mul(w)));
            }
        }
        if reduction == BagReduction::Mean && !range.is_empty() {
            let n = T::from_i64(range.len() as i64);
            sum.iter_mut().for_each(|s| *s = *s / n);
        }
    }
    Ok(out)
}
