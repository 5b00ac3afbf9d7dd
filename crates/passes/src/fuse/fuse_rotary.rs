//! ```text
//! x * cos + Concat(-x[h..], x[..h]) * sin                               ->  RotaryEmbedding(x, cos, sin)
//! Concat(x[..h] * cos - x[h..] * sin, x[h..] * cos + x[..h] * sin)      ->  RotaryEmbedding(x, cos, sin)
//! Concat(RotaryEmbedding(x[..r], cos, sin), x[r..])                     ->  RotaryEmbedding(x, cos, sin) {r}
//! ```
//!
//! The same with pairs of neighbours, `x[0::2]` and `x[1::2]`, or a reshape to pairs. For devices only. Tables must be the
//! same for all of one axis, that of the heads.

use super::look::{fuse, inputs_at, is_float, made_by, operands, value_of};
use super::slices::{cut, same_rows, width};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::arithmetic::{Add, Multiply, Subtract};
use carafe_ops::carafe::RotaryEmbedding;
use carafe_ops::math::Negative;
use carafe_ops::movement::{Concat, Reshape, Squeeze, Unsqueeze};

/// Rotation by positions becomes RotaryEmbedding.
#[derive(Clone, Copy, Debug)]
pub struct FuseRotary;

impl Rewrite for FuseRotary {
    fn name(&self) -> &'static str {
        "fuse_rotary"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let found = added(model, root).or_else(|| joined(model, root)).or_else(|| with_rest(model, root));
        let Some((op, [x, cos, sin])) = found else { return Ok(Outcome::NoMatch) };
        let wide = |table: Value| width(model, table).is_some_and(|w| w == op.rotated || w == op.rotated / 2);
        if !is_float(model, x) || !wide(cos) || !wide(sin) {
            return Ok(Outcome::NoMatch);
        }
        if ![cos, sin].iter().all(|&t| spares_heads(model, x, t)) {
            return Ok(Outcome::skip("the tables differ from head to head"));
        }
        fuse(model, root, &[x, cos, sin], op, &[x, cos, sin])
    }
}

type Found = (RotaryEmbedding, [Value; 3]);

/// Half of the numbers of `x`: the first or the second of each pair.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Half {
    x: Value,
    second: bool,
    interleaved: bool,
    size: usize,
}

// x * cos + turned(x) * sin
fn added(model: &Model, root: NodeId) -> Option<Found> {
    let turn = |v: Value| {
        operands::<Multiply, _>(model, v, |v| {
            let ([a, b], interleaved) = halves_in(model, v)?;
            let (b, a) = (half(model, negated(model, a)?)?, half(model, b)?);
            (a.x == b.x && !a.second && b.second && a.interleaved == interleaved && b.interleaved == interleaved)
                .then_some(a)
        })
    };
    let ((a, sin), other) = operands::<Add, _>(model, root.into(), turn)?;
    let ((), cos) = operands::<Multiply, _>(model, other, |v| (v == a.x).then_some(()))?;
    // A table of pairs would not broadcast as a whole.
    let full = |table: Value| width(model, table) == Some(a.size);
    (full(cos) && full(sin))
        .then_some((RotaryEmbedding { rotated: a.size, interleaved: a.interleaved }, [a.x, cos, sin]))
}

// Both numbers of the pairs apart, put together at the end.
fn joined(model: &Model, root: NodeId) -> Option<Found> {
    let ([first, second], interleaved) = halves_in(model, root.into())?;
    let &[ac, bs] = made_by::<Subtract>(model, first)? else { return None };
    let factor =
        |v: Value, wanted: bool| operands::<Multiply, _>(model, v, |v| half(model, v).filter(|h| h.second == wanted));
    let ((a, cos), (b, sin)) = (factor(ac, false)?, factor(bs, true)?);
    let other = |v: Value| factor(v, true).filter(|(h, table)| h.x == a.x && *table == cos);
    let (_, as_) = operands::<Add, _>(model, second, other)?;
    factor(as_, false).filter(|(h, table)| h.x == a.x && *table == sin)?;
    let alike = a.x == b.x && a.interleaved == interleaved && b.interleaved == interleaved;
    let paired = |table: Value| width(model, table) == Some(a.size / 2);
    (alike && paired(cos) && paired(sin)).then_some((RotaryEmbedding { rotated: a.size, interleaved }, [a.x, cos, sin]))
}

// Numbers that stay as they are, behind those that were turned.
fn with_rest(model: &Model, root: NodeId) -> Option<Found> {
    let ([first, rest], false) = halves_in(model, root.into())? else { return None };
    let (id, op) = model.producer::<RotaryEmbedding>(first)?;
    let &[x, cos, sin] = model.node(id).inputs() else { return None };
    let (moving, rest) = (cut(model, x)?, cut(model, rest)?);
    let whole = moving.first == 0 && rest.first == moving.len && rest.first + rest.len == rest.size;
    (whole && moving.of == rest.of && moving.step == 1 && rest.step == 1 && moving.len == op.rotated)
        .then(|| (op.clone(), [moving.of, cos, sin]))
}

fn negated(model: &Model, v: Value) -> Option<Value> {
    if let Some(&[x]) = made_by::<Negative>(model, v) {
        return Some(x);
    }
    let &[a, b] = made_by::<Multiply>(model, v)? else { return None };
    let minus = |n: Value, x: Value| (value_of(model, n, x) == Some(-1.0)).then_some(x);
    minus(b, a).or_else(|| minus(a, b))
}

// Two values that are joined along the last axis, one behind the other or number by number.
fn halves_in(model: &Model, v: Value) -> Option<([Value; 2], bool)> {
    if let Some(pair) = concatenated(model, v) {
        return Some((pair, false));
    }
    let &[pairs, _] = made_by::<Reshape>(model, v)? else { return None };
    let [a, b] = concatenated(model, pairs)?;
    let (a, b) = (unstacked(model, a)?, unstacked(model, b)?);
    let fits = same_rows(model, a, v) && same_rows(model, a, b);
    (fits && width(model, v)? == 2 * width(model, a)? && width(model, a) == width(model, b)).then_some(([a, b], true))
}

fn concatenated(model: &Model, v: Value) -> Option<[Value; 2]> {
    let (_, op) = model.producer::<Concat>(v)?;
    let rank = model.fact(v).shape.rank()? as i64;
    let &[a, b] = inputs_at::<Concat>(model, v.node)? else { return None };
    (op.axis == -1 || op.axis == rank - 1).then_some([a, b])
}

// What has an axis of one number behind it in `v`.
fn unstacked(model: &Model, v: Value) -> Option<Value> {
    let &[x, _] = made_by::<Unsqueeze>(model, v).or_else(|| made_by::<Reshape>(model, v))? else { return None };
    let (dims, own) = (model.fact(v).shape.dims()?, model.fact(x).shape.dims()?);
    let (last, lead) = dims.split_last()?;
    let same = lead.iter().zip(own).filter(|(a, b)| super::look::same_dim(**a, **b)).count();
    (last.get() == Some(1)
        && lead.len() == own.len()
        && lead.len() - same <= 1
        && lead.last()?.get() == own.last()?.get())
    .then_some(x)
}

fn half(model: &Model, v: Value) -> Option<Half> {
    if let Some(cut) = cut(model, v) {
        let n = cut.size / 2;
        let even = cut.size.is_multiple_of(2) && cut.len == n && n > 0;
        let (second, interleaved) = match (cut.step, cut.first) {
            (1, 0) => (false, false),
            (1, first) if first == n => (true, false),
            (2, 0) => (false, true),
            (2, 1) => (true, true),
            _ => return None,
        };
        return even.then_some(Half { x: cut.of, second, interleaved, size: cut.size });
    }
    // One of the two columns of all pairs.
    let &[column, ..] = squeezed(model, v)? else { return None };
    let cut = cut(model, column).filter(|c| c.size == 2 && c.len == 1)?;
    let &[x, _] = made_by::<Reshape>(model, cut.of)? else { return None };
    let (n, pairs) = (width(model, v)?, model.fact(cut.of).shape.dims()?);
    let by_pairs = pairs.len() >= 2 && pairs[pairs.len() - 2].size() == Some(n) && width(model, x) == Some(2 * n);
    (by_pairs && same_rows(model, x, v)).then_some(Half { x, second: cut.first == 1, interleaved: true, size: 2 * n })
}

fn squeezed(model: &Model, v: Value) -> Option<&[Value]> {
    made_by::<Squeeze>(model, v).or_else(|| made_by::<Reshape>(model, v))
}

// Whether one axis before the last surely has size 1 in the table, or is not there; data of few axes have one to spare.
fn spares_heads(model: &Model, x: Value, table: Value) -> bool {
    let (Some(x), Some(table)) = (model.fact(x).shape.dims(), model.fact(table).shape.dims()) else { return false };
    let lead = table.split_last().map_or(&[][..], |(_, lead)| lead);
    x.len() <= 4 && table.len() <= x.len() && (lead.len() < 3 || lead.iter().any(|d| d.get() == Some(1)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Sketch, fires_static, stays};
    use super::*;
    use carafe_ops::movement::{Slice, Split, VariadicSplit};

    const SHAPE: [usize; 4] = [2, 3, 5, 8];

    fn tables(g: &mut Sketch, width: usize) -> [Value; 2] {
        [(); 2].map(|()| g.noise(&[1, 1, 5, width], 0.0))
    }
    fn every(g: &mut Sketch, x: Value, from: i64, to: i64, step: i64) -> Value {
        let inputs = [x, g.ints(&[from]), g.ints(&[to]), g.ints(&[step]), g.ints(&[-1])];
        g.op(Slice, &inputs)
    }
    fn stacked(g: &mut Sketch, a: Value, b: Value, shape: &[i64]) -> Value {
        let last = g.ints(&[-1]);
        let (a, b) = (g.op(Unsqueeze, &[a, last]), g.op(Unsqueeze, &[b, last]));
        let pairs = g.op(Concat { axis: -1 }, &[a, b]);
        let shape = g.ints(shape);
        g.op(Reshape { special_zero: true }, &[pairs, shape])
    }
    fn llama(g: &mut Sketch, x: Value, half: i64, [cos, sin]: [Value; 2], minus: bool) -> Value {
        let (a, b) = (every(g, x, 0, half, 1), every(g, x, half, i64::MAX, 1));
        let n = g.c(-1.0);
        let b = if minus { g.op(Multiply::default(), &[b, n]) } else { g.op(Negative, &[b]) };
        let turned = g.op(Concat { axis: -1 }, &[b, a]);
        let (left, right) = (g.op(Multiply::default(), &[x, cos]), g.op(Multiply::default(), &[turned, sin]));
        g.op(Add::default(), &[left, right])
    }
    fn apart(g: &mut Sketch, a: Value, b: Value, [cos, sin]: [Value; 2]) -> [Value; 2] {
        let times = |g: &mut Sketch, a: Value, b: Value| g.op(Multiply::default(), &[a, b]);
        let (ac, bs, bc, as_) = (times(g, cos, a), times(g, sin, b), times(g, cos, b), times(g, sin, a));
        [g.op(Subtract::default(), &[ac, bs]), g.op(Add::default(), &[as_, bc])]
    }

    #[test]
    fn halves_of_a_head() {
        for minus in [false, true] {
            fires_static(&FuseRotary, "RotaryEmbedding", |g| {
                let (x, t) = (g.input(&SHAPE), tables(g, 8));
                llama(g, x, 4, t, minus)
            });
        }
        fires_static(&FuseRotary, "RotaryEmbedding", |g| {
            let (x, t, axis) = (g.input(&SHAPE), tables(g, 4), g.ints(&[3]));
            let shape = g.ints(&[4, 4]);
            let a = g.op(VariadicSplit, &[x, axis, shape]);
            let [y, z] = apart(g, a, Value { port: 1, ..a }, t);
            g.op(Concat { axis: 3 }, &[y, z])
        });
    }

    #[test]
    fn neighbours() {
        fires_static(&FuseRotary, "RotaryEmbedding", |g| {
            let (x, t) = (g.input(&SHAPE), tables(g, 8));
            let (a, b) = (every(g, x, 0, i64::MAX, 2), every(g, x, 1, i64::MAX, 2));
            let b = g.op(Negative, &[b]);
            let turned = stacked(g, b, a, &[0, 0, 0, -1]);
            let (left, right) = (g.op(Multiply::default(), &[x, t[0]]), g.op(Multiply::default(), &[turned, t[1]]));
            g.op(Add::default(), &[right, left])
        });
        fires_static(&FuseRotary, "RotaryEmbedding", |g| {
            let (x, t) = (g.input(&SHAPE), tables(g, 4));
            let (a, b) = (every(g, x, 0, i64::MAX, 2), every(g, x, 1, i64::MAX, 2));
            let [y, z] = apart(g, a, b, t);
            stacked(g, y, z, &[0, 0, 0, -1])
        });
        fires_static(&FuseRotary, "RotaryEmbedding", |g| {
            let (x, t, shape) = (g.input(&SHAPE), tables(g, 4), g.ints(&[0, 0, 0, 4, 2]));
            let pairs = g.op(Reshape { special_zero: true }, &[x, shape]);
            let (axis, last) = (g.int(-1), g.ints(&[-1]));
            let a = g.op(Split { num_splits: 2 }, &[pairs, axis]);
            let squeeze = Squeeze { allow_axis_skip: false };
            let (a, b) = (g.op(squeeze.clone(), &[a, last]), g.op(squeeze, &[Value { port: 1, ..a }, last]));
            let [y, z] = apart(g, a, b, t);
            stacked(g, y, z, &[0, 0, 0, -1])
        });
    }

    #[test]
    fn a_part_of_each_head() {
        fires_static(&FuseRotary, "RotaryEmbedding", |g| {
            let (x, t) = (g.input(&SHAPE), tables(g, 4));
            let (moving, rest) = (every(g, x, 0, 4, 1), every(g, x, 4, i64::MAX, 1));
            let turned = llama(g, moving, 2, t, false);
            g.op(Concat { axis: -1 }, &[turned, rest])
        });
    }

    #[test]
    fn other_halves_stay() {
        stays(&FuseRotary, "", |g| {
            let (x, t) = (g.input(&SHAPE), tables(g, 8));
            llama(g, x, 3, t, false)
        });
        stays(&FuseRotary, "differ from head to head", |g| {
            let (x, cos, sin) = (g.input(&SHAPE), g.noise(&SHAPE, 0.0), g.noise(&SHAPE, 0.0));
            llama(g, x, 4, [cos, sin], false)
        });
    }
}
