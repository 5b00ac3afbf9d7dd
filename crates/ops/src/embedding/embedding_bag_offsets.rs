//! EmbeddingBagOffsets: bags are consecutive parts of one list of indices, each from its offset to the next one.

use super::bags::{BagReduction, check_inputs, check_weights, eval, set_output};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use std::ops::Range;

/// Joins the rows of each bag.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 15, inputs = "emb_table, indices, offsets, default_index?, per_sample_weights?")]
pub struct EmbeddingBagOffsets {
    /// How the rows of a bag are joined.
    #[attr(default = BagReduction::Sum)]
    pub reduction: BagReduction,
}

impl Op for EmbeddingBagOffsets {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.reduction)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval_bags(cx, self.reduction)
    }
}

/// Adds up the rows of each bag.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 3, inputs = "emb_table, indices, offsets, default_index?, per_sample_weights?")]
pub struct EmbeddingBagOffsetsSum;

impl Op for EmbeddingBagOffsetsSum {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, BagReduction::Sum)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval_bags(cx, BagReduction::Sum)
    }
}

fn infer(cx: &mut InferCx<'_>, reduction: BagReduction) -> Result<()> {
    check_inputs(cx, if cx.has(3) { &[1, 2, 3] } else { &[1, 2] })?;
    cx.require_rank(1, &[1])?;
    cx.require_rank(2, &[1])?;
    if cx.has(3) {
        cx.require_rank(3, &[0])?;
    }
    check_weights(cx, 4, reduction)?;
    set_output(cx, cx.dim(2, 0));
    Ok(())
}

fn eval_bags(cx: &mut EvalCx<'_>, reduction: BagReduction) -> Result<()> {
    let default = if cx.has(3) { Some(cx.int(3)?) } else { None };
    let bags = bags(&cx.ints(2)?, cx.shape(1)[0]).map_err(|m| cx.fail(m))?;
    eval(cx, &bags, default, 4, reduction)
}

fn bags(offsets: &[i64], n_indices: usize) -> Result<Vec<Range<usize>>, String> {
    let position = |&offset: &i64| {
        let position = usize::try_from(offset).ok().filter(|&o| o < n_indices);
        position.ok_or_else(|| format!("offset {offset} is outside of {n_indices} indices"))
    };
    let starts = offsets.iter().map(position).collect::<Result<Vec<usize>, String>>()?;
    let ends = starts.iter().skip(1).copied().chain([n_indices]);
    let bag = |(start, end): (usize, usize)| match start <= end {
        true => Ok(start..end),
        false => Err(format!("offsets must not fall, found {start} before {end}")),
    };
    starts.iter().copied().zip(ends).map(bag).collect()
}
