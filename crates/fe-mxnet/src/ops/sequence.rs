//! Sequences of different lengths in one tensor, `[time, batch, ..]` or `[batch, time, ..]`.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use super::search::rows_at;
use carafe_ops::movement::reverse::ReverseMode;
use carafe_ops::movement::{Reverse, ReverseSequence};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("SequenceLast", 0, last),
    rule("SequenceMask", 0, mask),
    rule("SequenceReverse", 0, reverse),
];

// The axis of time, and the lengths where they are given.
fn lengths(n: &mut NodeCx<'_>) -> Result<(i64, Option<Value>)> {
    let axis = n.int("axis", 0)?;
    let uses = n.flag("use_sequence_length", false)?;
    if !(0..=1).contains(&axis) {
        return Err(n.fail(format!("attribute `axis` must be 0 or 1, found {axis}")));
    }
    n.ignore_inputs(1);
    let lengths = if uses { Some(n.input(1)?) } else { None };
    let lengths = lengths.map(|l| n.convert(l, ElementType::I32)).transpose()?;
    Ok((axis, lengths))
}

fn mask(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let value = n.float("value", 0.0)?;
    let (axis, lengths) = lengths(n)?;
    let Some(lengths) = lengths else { return Ok(x.into()) };
    let rank = n.known_rank(x)?;
    let size = n.length(x, axis)?;
    let position = n.count_to(size, ElementType::I32)?;
    let position = n.along(position, axis as usize, rank)?;
    let lengths = n.along(lengths, 1 - axis as usize, rank)?;
    let inside = n.less(position, lengths)?;
    let value = n.scalar_like(x, value)?;
    Ok(n.choose(inside, x, value)?.into())
}

fn last(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (axis, lengths) = lengths(n)?;
    let Some(lengths) = lengths else {
        let at = n.i64(-1)?;
        return Ok(n.gather(x, at, axis)?.into());
    };
    let one = n.scalar_like(lengths, 1.0)?;
    let at = n.minus(lengths, one)?;
    // The batch in front, so that each sequence has its own index.
    let rank = n.known_rank(x)?;
    let mut order: Vec<i64> = (0..rank as i64).collect();
    if axis == 0 {
        order.swap(0, 1);
    }
    let x = if axis == 0 { n.transpose(x, &order)? } else { x };
    Ok(rows_at(n, x, at)?.into())
}

fn reverse(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (axis, lengths) = lengths(n)?;
    let y = match lengths {
        Some(lengths) => n.emit(ReverseSequence { batch_axis: 1 - axis, seq_axis: axis }, &[x, lengths])?,
        None => {
            let axes = n.i64s(&[axis])?;
            n.emit(Reverse { mode: ReverseMode::Index }, &[x, axes])?
        }
    };
    Ok(y.into())
}
