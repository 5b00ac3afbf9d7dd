//! CTCGreedyDecoder: the likeliest class of every step, without blanks and repetitions. Rows of the result are sequences, as
//! the IR has them; Caffe writes them as columns. Caffe does not look at the mark of the first step, the operation does.

use super::cx::LayerCx;
use super::numbers::{dim, part};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::arithmetic::AutoBroadcast;
use carafe_ops::compare::GreaterEqual;
use carafe_ops::indexing::{Gather, Select};
use carafe_ops::recurrent::CtcGreedyDecoder;

pub(crate) const RULES: &[StaticRule] = &[rule("CTCGreedyDecoder", 0, ctc_greedy_decoder)];

fn ctc_greedy_decoder(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let bottoms = n.bottoms()?;
    let [mut scores, marks, ..] = bottoms[..] else {
        return Err(n.fail(format!("takes two bottoms, has {}", bottoms.len())));
    };
    let blank: i64 = n.attr("blank_index", -1)?;
    let ctc_merge_repeated: bool = n.attr("ctc_merge_repeated", true)?;
    let first = part(n, marks, &[0], &[0], &[1], &[1])?;
    let nothing = n.times_number(first, 0.0)?;
    let first = n.plus_number(nothing, 1.0)?;
    let rest = part(n, marks, &[0], &[1], &[i64::MAX], &[1])?;
    let marks = n.concat(&[first, rest], 0)?;
    // The operation takes the last class for the blank: another one goes there first.
    let classes = dim(n, scores, 2);
    let moved = blank >= 0 && classes.is_none_or(|c| blank != c - 1);
    if moved {
        let classes = classes.filter(|c| (1..=1 << 24).contains(c));
        let classes = classes.ok_or_else(|| n.unsupported("the number of classes must be known"))?;
        if blank >= classes {
            return Err(n.fail(format!("`blank_index` is {blank}, there are {classes} classes")));
        }
        let order: Vec<i64> = (0..classes).filter(|c| *c != blank).chain([blank]).collect();
        let (order, axis) = (n.i64s(&order)?, n.i64(2)?);
        scores = n.emit(Gather { batch_dims: 0 }, &[scores, order, axis])?;
    }
    let found = n.emit(CtcGreedyDecoder { ctc_merge_repeated }, &[scores, marks])?;
    if !moved {
        return Ok(found.into());
    }
    let least = n.scalar_like(found, blank as f64)?;
    let after = n.emit(GreaterEqual::default(), &[found, least])?;
    let next = n.plus_number(found, 1.0)?;
    let op = Select { auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None };
    Ok(n.emit(op, &[after, next, found])?.into())
}
