//! EmbeddingSegmentsSum: every index says which segment it belongs to. Segment ids rise; those beyond `num_segments` are
//! dropped.

use super::bags::{BagReduction, check_inputs, check_weights, eval, set_output};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::Dim;
use std::ops::Range;

/// Adds up the rows of each segment.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 3, inputs = "emb_table, indices, segment_ids, num_segments, default_index?, per_sample_weights?")]
pub struct EmbeddingSegmentsSum;

impl Op for EmbeddingSegmentsSum {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        check_inputs(cx, if cx.has(4) { &[1, 2, 3, 4] } else { &[1, 2, 3] })?;
        cx.require_rank(1, &[1])?;
        cx.require(cx.shape(2).compatible(cx.shape(1)), || {
            format!("segment_ids must have the shape of the indices, [{}], found [{}]", cx.shape(1), cx.shape(2))
        })?;
        for i in (3..5).filter(|&i| cx.has(i)) {
            cx.require_rank(i, &[0])?;
        }
        check_weights(cx, 5, BagReduction::Sum)?;
        let n = cx.dims_value(3).and_then(|v| v.first().copied()).unwrap_or(Dim::ANY);
        cx.require(n.max().is_none_or(|m| m >= 0), || format!("num_segments must not be negative, found {n}"))?;
        set_output(cx, n.clamp_shape());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let n_segments = cx.out_shape(0)?[0];
        let default = if cx.has(4) { Some(cx.int(4)?) } else { None };
        let bags = segments(&cx.ints(2)?, n_segments).map_err(|m| cx.fail(m))?;
        eval(cx, &bags, default, 5, BagReduction::Sum)
    }
}

fn segments(ids: &[i64], n_segments: usize) -> Result<Vec<Range<usize>>, String> {
    if let Some(pair) = ids.windows(2).find(|pair| pair[0] > pair[1]) {
        return Err(format!("segment ids must rise, found {} before {}", pair[0], pair[1]));
    }
    if let Some(&id) = ids.first().filter(|&&id| id < 0) {
        return Err(format!("segment ids must not be negative, found {id}"));
    }
    let begin = |segment: usize| ids.partition_point(|&id| id < segment as i64);
    let mut bags = Vec::new();
    bags.try_reserve_exact(n_segments).map_err(|_| format!("{n_segments} segments do not fit into memory"))?;
    bags.extend((0..n_segments).map(|s| begin(s)..begin(s + 1)));
    Ok(bags)
}
