//! EmbeddingBagPacked: each row of a matrix of indices is a bag, so all bags have the same size.

use super::bags::{BagReduction, check_inputs, check_weights, eval, set_output};
use carafe_graph::{EvalCx, InferCx, Op, Result};

/// Joins the rows of each bag.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 15, inputs = "emb_table, indices, per_sample_weights?")]
pub struct EmbeddingBagPacked {
    /// How the rows of a bag are joined.
    #[attr(default = BagReduction::Sum)]
    pub reduction: BagReduction,
}

impl Op for EmbeddingBagPacked {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.reduction)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval_bags(cx, self.reduction)
    }
}

/// Adds up the rows of each bag.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 3, inputs = "emb_table, indices, per_sample_weights?")]
pub struct EmbeddingBagPackedSum;

impl Op for EmbeddingBagPackedSum {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, BagReduction::Sum)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval_bags(cx, BagReduction::Sum)
    }
}

fn infer(cx: &mut InferCx<'_>, reduction: BagReduction) -> Result<()> {
    check_inputs(cx, &[1])?;
    cx.require_rank(1, &[2])?;
    check_weights(cx, 2, reduction)?;
    set_output(cx, cx.dim(1, 0));
    Ok(())
}

fn eval_bags(cx: &mut EvalCx<'_>, reduction: BagReduction) -> Result<()> {
    let (n_bags, size) = (cx.shape(1)[0], cx.shape(1)[1]);
    let bags: Vec<_> = (0..n_bags).map(|bag| bag * size..(bag + 1) * size).collect();
    eval(cx, &bags, None, 2, reduction)
}
