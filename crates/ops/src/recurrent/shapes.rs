//! Shapes of cells and sequences. The tensors decide; the `hidden_size` attribute, which old files have wrong, is asked by
//! LSTM cells alone and only when no tensor knows.

use super::Direction;
use super::cell::Kind;
use carafe_graph::{InferCx, Result};
use carafe_tensor::{Dim, PartialShape};

/// Inputs X, the states, W, R, B?. Every output is `[batch, hidden]`.
pub(super) fn infer_cell(cx: &mut InferCx<'_>, kind: Kind, hidden_size: Option<u64>) -> Result<()> {
    let states = kind.states();
    let n = (3 + states + usize::from(cx.has(3 + states))).min(cx.n_inputs());
    let typed: Vec<usize> = (0..n).collect();
    let ty = float_type(cx, &typed)?;
    for i in 0..3 + states {
        cx.require_rank(i, &[2])?;
    }
    let (w, r, b) = (states + 1, states + 2, states + 3);
    let mut batch = cx.dim(0, 0);
    let mut hidden = cx.dim(1, 1);
    for i in 1..=states {
        merge(cx, &mut batch, cx.dim(i, 0), "batch")?;
        merge(cx, &mut hidden, cx.dim(i, 1), "hidden")?;
    }
    merge(cx, &mut hidden, cx.dim(r, 1), "hidden")?;
    let mut input = cx.dim(0, 1);
    merge(cx, &mut input, cx.dim(w, 1), "input")?;
    weights(cx, kind, &mut hidden, &[cx.dim(w, 0), cx.dim(r, 0)])?;
    if cx.has(b) {
        cx.require_rank(b, &[1])?;
        blocks(cx, cx.dim(b, 0), hidden, kind.bias_blocks(), "bias")?;
    }
    if let (false, Some(n)) = (hidden.is_known(), hidden_size.and_then(|n| i64::try_from(n).ok())) {
        hidden = Dim::known(n);
    }
    for i in 0..states {
        cx.set(i, ty, PartialShape::new([batch, hidden]));
    }
    Ok(())
}

/// Inputs X, the states, seq_lengths, W, R, B. Outputs Y `[batch, directions, time, hidden]`, then the last states
/// `[batch, directions, hidden]`.
pub(super) fn infer_sequence(cx: &mut InferCx<'_>, kind: Kind, direction: Direction) -> Result<()> {
    let states = kind.states();
    let (lengths, w, r, b) = (states + 1, states + 2, states + 3, states + 4);
    let typed: Vec<usize> = (0..=states).chain(w..=b).collect();
    let ty = float_type(cx, &typed)?;
    cx.require_integer(lengths)?;
    cx.require_rank(lengths, &[1])?;
    cx.require_rank(b, &[2])?;
    for i in (0..=states).chain([w, r]) {
        cx.require_rank(i, &[3])?;
    }
    let mut batch = cx.dim(0, 0);
    let mut hidden = cx.dim(1, 2);
    let mut directions = Dim::known(if direction == Direction::Bidirectional { 2 } else { 1 });
    for i in 1..=states {
        merge(cx, &mut batch, cx.dim(i, 0), "batch")?;
        merge(cx, &mut directions, cx.dim(i, 1), "direction")?;
        merge(cx, &mut hidden, cx.dim(i, 2), "hidden")?;
    }
    merge(cx, &mut batch, cx.dim(lengths, 0), "batch")?;
    for i in w..=b {
        merge(cx, &mut directions, cx.dim(i, 0), "direction")?;
    }
    merge(cx, &mut hidden, cx.dim(r, 2), "hidden")?;
    let mut input = cx.dim(0, 2);
    merge(cx, &mut input, cx.dim(w, 2), "input")?;
    weights(cx, kind, &mut hidden, &[cx.dim(w, 1), cx.dim(r, 1)])?;
    blocks(cx, cx.dim(b, 1), hidden, kind.bias_blocks(), "bias")?;
    cx.set(0, ty, PartialShape::new([batch, directions, cx.dim(0, 1), hidden]));
    for i in 1..=states {
        cx.set(i, ty, PartialShape::new([batch, directions, hidden]));
    }
    Ok(())
}

pub(super) fn float_type(cx: &InferCx<'_>, inputs: &[usize]) -> Result<carafe_tensor::ElementType> {
    inputs.iter().try_for_each(|&i| cx.require_float(i))?;
    cx.same_type(inputs)
}

pub(super) fn merge(cx: &InferCx<'_>, into: &mut Dim, found: Dim, what: &str) -> Result<()> {
    let merged = into.merge(found);
    *into = merged.ok_or_else(|| cx.fail(format!("inputs need one {what} size, found {into} and {found}")))?;
    Ok(())
}

// The first axis of W and R holds one block per gate; it also tells the hidden size where nothing else does.
fn weights(cx: &InferCx<'_>, kind: Kind, hidden: &mut Dim, rows: &[Dim]) -> Result<()> {
    for &rows in rows {
        if let (false, Some(n)) = (hidden.is_known(), rows.get()) {
            merge(cx, hidden, Dim::known(n / kind.gates() as i64), "hidden")?;
        }
        blocks(cx, rows, *hidden, kind.gates(), "weights")?;
    }
    Ok(())
}

fn blocks(cx: &InferCx<'_>, found: Dim, hidden: Dim, blocks: usize, what: &str) -> Result<()> {
    let wanted = hidden.mul(Dim::from(blocks));
    cx.require(wanted.compatible(found), || {
        format!("{what} need {blocks} blocks of hidden size {hidden}, found {found} rows")
    })
}
