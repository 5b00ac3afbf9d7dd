//! GatherTree: rebuilds beam-search sequences. Each beam is walked from its last step back to the first through the
//! parents; what lies behind an end token, or behind the sequence, is end tokens.

use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::Number;

/// Full sequences from the ids and parents of every step, all `[time, batch, beam]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "step_ids, parent_idx, max_seq_len, end_token")]
pub struct GatherTree;

impl Op for GatherTree {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = cx.same_type(&[0, 1, 2, 3])?;
        cx.require_number(0)?;
        for (i, rank) in [(0, 3), (1, 3), (2, 1), (3, 0)] {
            cx.require_rank(i, &[rank])?;
        }
        let shape = cx.shape(0).merge(cx.shape(1)).ok_or_else(|| {
            cx.fail(format!("step_ids and parent_idx must agree, found [{}] and [{}]", cx.shape(0), cx.shape(1)))
        })?;
        let (batch, lengths) = (shape.dim(1), cx.dim(2, 0));
        cx.require(batch.compatible(lengths), || format!("max_seq_len must have {batch} entries, found {lengths}"))?;
        cx.set(0, ty, shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        with_number!(cx.ty(0), T => {
            let shape = cx.out_shape(0)?;
            let sequences = {
                let (ids, parents, lengths, end) =
                    (cx.get::<T>(0)?, cx.get::<T>(1)?, cx.get::<T>(2)?, cx.get::<T>(3)?);
                walk(&shape, &ids, &parents, &lengths, end[0]).map_err(|m| cx.fail(m))?
            };
            cx.put(0, &shape, sequences)
        })
    }
}

fn walk<T: Number>(shape: &[usize], ids: &[T], parents: &[T], lengths: &[T], end: T) -> Result<Vec<T>, String> {
    let (time, batch, beams) = (shape[0], shape[1], shape[2]);
    let mut out = vec![end; ids.len()];
    let at = |t: usize, b: usize, beam: usize| (t * batch + b) * beams + beam;
    for b in 0..batch {
        let length = usize::try_from(lengths[b].to_i64()).unwrap_or(0).min(time);
        for beam in 0..beams {
            let mut from = beam;
            for t in (0..length).rev() {
                out[at(t, b, beam)] = ids[at(t, b, from)];
                if t == 0 {
                    break;
                }
                let parent = parents[at(t, b, from)].to_i64();
                from = usize::try_from(parent)
                    .ok()
                    .filter(|&p| p < beams)
                    .ok_or_else(|| format!("parent {parent} is outside of {beams} beams"))?;
            }
            let ended = (0..length).position(|t| out[at(t, b, beam)] == end);
            for t in ended.unwrap_or(length)..length {
                out[at(t, b, beam)] = end;
            }
        }
    }
    Ok(out)
}
