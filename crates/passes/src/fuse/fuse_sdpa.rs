//! Attention written out becomes ScaledDotProductAttention:
//!
//! ```text
//! MatMul(Softmax(MatMul(q * a, k^T * b) * c + mask), v)   ->  ScaledDotProductAttention(q, k, v, mask, a * b * c)
//! ```
//!
//! Every factor may be missing and may be a division; `k^T` may be a Transpose or an attribute of the product. The mask is
//! a term, the sum of several, or `Select(keep, scores, -inf)`. Attention in windows adds a term of its own to each window, for
//! which the scores are reshaped and reshaped back; the term then takes the shape of the scores instead. The scale is always
//! given, for the operation has its own idea of a missing one. A factor that is computed stays outside, before the operation.

use super::look::{
    integers, is_float, is_stored, made_by, put_in_place, read_outside, same_dim, scalar, transposed, value_of,
};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::activation::Softmax;
use carafe_ops::arithmetic::{Add, Divide, Multiply};
use carafe_ops::indexing::Select;
use carafe_ops::linear::{MatMul, ScaledDotProductAttention};
use carafe_ops::logic::LogicalNot;
use carafe_ops::movement::{Reshape, Tile, Transpose};

/// Attention written out becomes ScaledDotProductAttention.
#[derive(Clone, Copy, Debug)]
pub struct FuseSdpa;

enum Mask {
    /// Added to the scores, one after the other.
    Terms(Vec<Term>),
    /// Scores stay where it holds (or where it does not), and are minus infinity elsewhere.
    Keep { condition: Value, inverted: bool },
}

struct Term {
    value: Value,
    /// Shape of the scores where they meet it, if that is not their own.
    within: Option<Vec<usize>>,
}

struct Attention {
    query: Value,
    /// With the last two axes as they are, or swapped.
    key: (Value, bool),
    value: (Value, bool),
    mask: Mask,
    scale: f64,
}

impl Rewrite for FuseSdpa {
    fn name(&self) -> &'static str {
        "fuse_sdpa"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let found = match find(model, root) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(Outcome::NoMatch),
            Err(skip) => return Ok(skip),
        };
        let Attention { query, key, value, mask, scale } = found;
        if let Some(skip) = misfit(model, query, key, value) {
            return Ok(skip);
        }
        let mut leaves = vec![query, key.0, value.0];
        let masks = match &mask {
            Mask::Terms(terms) => terms.iter().map(|t| (t.value, t.within.is_some())).collect(),
            Mask::Keep { condition, .. } => vec![(*condition, false)],
        };
        for (m, reshaped) in masks {
            if !reshaped && model.fact(m).shape.rank() > model.fact(query).shape.rank() {
                return Ok(Outcome::skip("the mask has more axes than the query"));
            }
            leaves.push(m);
        }
        if let Some(skip) = read_outside(model, root, &leaves) {
            return Ok(skip);
        }
        let key = straight(model, root, "key", key)?;
        let value = straight(model, root, "value", value)?;
        let mask = match mask {
            Mask::Terms(terms) => sum_of(model, root, query, terms)?,
            Mask::Keep { condition, inverted: false } => condition,
            Mask::Keep { condition, inverted: true } => {
                let name = format!("{}/keep", model.node(root).name());
                model.add(name, LogicalNot, &[condition])?.into()
            }
        };
        let scale = scalar(model, root, "scale", query, scale)?;
        let name = format!("{}/attention", model.node(root).name());
        let op = ScaledDotProductAttention { causal: false };
        let new = model.add(name, op, &[query, key, value, mask, scale])?;
        put_in_place(model, root, new)
    }
}

fn find(model: &Model, root: NodeId) -> std::result::Result<Option<Attention>, Outcome> {
    let Some((_, last)) = model.producer::<MatMul>(root.into()) else { return Ok(None) };
    let &[weights, value] = model.node(root).inputs() else { return Ok(None) };
    let Some((scores, axis)) = softmax(model, weights) else { return Ok(None) };
    if !is_float(model, scores) || last.transpose_a {
        return Ok(None);
    }
    let Some(rank) = model.fact(scores).shape.rank() else {
        return Err(Outcome::skip("the rank of the scores is unknown"));
    };
    if axis != -1 && axis != rank as i64 - 1 {
        return Err(Outcome::skip("the softmax is not along the last axis"));
    }
    let (scores, mask) = unmasked(model, scores)?;
    let (product, after) = unscaled(model, scores);
    let Some((id, op)) = model.producer::<MatMul>(product) else { return Ok(None) };
    let &[query, key] = model.node(id).inputs() else { return Ok(None) };
    if op.transpose_a {
        return Err(Outcome::skip("the query is transposed in the product"));
    }
    let (query, of_query) = unscaled(model, query);
    // `k^T * b` as well as `(k * b)^T`.
    let (key, of_key) = unscaled(model, key);
    let mut key = (key, !op.transpose_b);
    let mut scale = after * of_query * of_key;
    if let Some((inside, order)) = transposed(model, key.0)
        && key.1
        && swaps_last(&order)
    {
        let (inside, factor) = unscaled(model, inside);
        scale *= factor;
        key = (inside, false);
    }
    if !scale.is_finite() {
        return Err(Outcome::skip("the scale is not finite"));
    }
    Ok(Some(Attention { query, key, value: (value, last.transpose_b), mask, scale }))
}

fn softmax(model: &Model, v: Value) -> Option<(Value, i64)> {
    let (id, op) = model.producer::<Softmax>(v)?;
    Some((model.input(id, 0)?, op.axis))
}

// What is multiplied by numbers, and their product.
fn unscaled(model: &Model, mut v: Value) -> (Value, f64) {
    let mut scale = 1.0;
    loop {
        let step = if let Some(&[a, b]) = made_by::<Multiply>(model, v) {
            let with = |x: Value, n: Value| value_of(model, n, x).filter(|_| !is_stored(model, x)).map(|n| (x, n));
            with(a, b).or_else(|| with(b, a))
        } else if let Some(&[a, b]) = made_by::<Divide>(model, v) {
            value_of(model, b, a).map(|n| (a, 1.0 / n))
        } else {
            None
        };
        let Some((x, factor)) = step else { return (v, scale) };
        (v, scale) = (x, scale * factor);
    }
}

fn unmasked(model: &Model, v: Value) -> std::result::Result<(Value, Mask), Outcome> {
    let Some(&[condition, then, other]) = made_by::<Select>(model, v) else {
        return terms(model, v).map(|(v, terms)| (v, Mask::Terms(terms)));
    };
    let (scores, fill, inverted) = if is_stored(model, other) { (then, other, false) } else { (other, then, true) };
    if value_of(model, fill, scores) != Some(f64::NEG_INFINITY) {
        return Err(Outcome::skip("masked scores are replaced by something else than minus infinity"));
    }
    match model.fact(condition).shape.rank() {
        Some(2..) => Ok((scores, Mask::Keep { condition, inverted })),
        _ => Err(Outcome::skip("the mask has no two axes")),
    }
}

/// Sums and reshapes between a softmax and its product that are looked through.
const MOST_TERMS: usize = 6;

// Scores without what is added to them.
fn terms(model: &Model, mut v: Value) -> std::result::Result<(Value, Vec<Term>), Outcome> {
    let own = model.fact(v).shape.to_static();
    let (mut terms, mut reshaped) = (vec![], false);
    for _ in 0..MOST_TERMS {
        if let Some(&[a, b]) = made_by::<Add>(model, v) {
            let (scores, term) = if is_scores(model, a, MOST_TERMS) { (a, b) } else { (b, a) };
            match model.fact(term).shape.rank() {
                Some(0 | 2..) => {}
                Some(_) => return Err(Outcome::skip("the mask is a vector")),
                None => return Err(Outcome::skip("the rank of the mask is unknown")),
            }
            let here = model.fact(v).shape.to_static();
            let within = if here == own { None } else { here };
            if let (Some(own), Some(here)) = (&own, &within)
                && merged(own, here, &model.fact(term).shape.to_static().unwrap_or_default()).is_none()
            {
                return Err(Outcome::skip("a mask of reshaped scores does not fit the scores themselves"));
            }
            terms.push(Term { value: term, within });
            v = scores;
        } else if let Some(inside) = model.producer::<Reshape>(v).and_then(|(id, _)| model.input(id, 0))
            && own.is_some()
            && model.fact(inside).shape.is_static()
            && is_scores(model, inside, MOST_TERMS)
        {
            (v, reshaped) = (inside, true);
        } else {
            break;
        }
    }
    if reshaped && model.fact(v).shape.to_static() != own {
        return Err(Outcome::skip("the scores are reshaped before the softmax"));
    }
    Ok((v, terms))
}

// Whether the value is a product, scaled, with terms added.
fn is_scores(model: &Model, v: Value, depth: usize) -> bool {
    if model.producer::<MatMul>(unscaled(model, v).0).is_some() {
        return true;
    }
    if depth == 0 {
        return false;
    }
    if let Some(&[a, b]) = made_by::<Add>(model, v) {
        return is_scores(model, a, depth - 1) || is_scores(model, b, depth - 1);
    }
    let inside = model.producer::<Reshape>(v).and_then(|(id, _)| model.input(id, 0));
    inside.is_some_and(|inside| is_scores(model, inside, depth - 1))
}

// A term of scores of shape `within`, which are `own` with the first axis cut up: how often each of its axes is repeated, and
// its shape for the scores themselves.
fn merged(own: &[usize], within: &[usize], term: &[usize]) -> Option<(Vec<usize>, Vec<usize>)> {
    let cut = within.len().checked_sub(own.len() - 1)?;
    if own.is_empty() || cut == 0 || within[cut..] != own[1..] || term.len() > within.len() {
        return None;
    }
    let mut full = vec![1; within.len() - term.len()];
    full.extend_from_slice(term);
    if full.iter().zip(within).any(|(&t, &n)| t != 1 && t != n) {
        return None;
    }
    let mut repeats = vec![1; within.len()];
    if full[..cut].iter().any(|&t| t != 1) {
        (0..cut).filter(|&i| full[i] == 1).for_each(|i| repeats[i] = within[i]);
    }
    let first: usize = (0..cut).map(|i| full[i] * repeats[i]).product();
    Some((repeats, std::iter::once(first).chain(full[cut..].iter().copied()).collect()))
}

// All terms as one, in the shape of the scores.
fn sum_of(model: &mut Model, root: NodeId, query: Value, terms: Vec<Term>) -> Result<Value> {
    let own = model.node(root).inputs()[0];
    let own = model.fact(own).shape.to_static();
    let mut sum: Option<Value> = None;
    for (i, term) in terms.into_iter().enumerate() {
        let mut value = term.value;
        let name = model.node(root).name().to_string();
        let shape = model.fact(value).shape.to_static();
        if let (Some(own), Some(within), Some(shape)) = (&own, &term.within, shape)
            && let Some((repeats, last)) = merged(own, within, &shape)
        {
            let numbers = |list: &[usize]| list.iter().map(|&n| n as i64).collect::<Vec<_>>();
            if repeats.iter().any(|&n| n > 1) {
                let repeats = integers(model, root, &format!("mask_{i}_repeats"), &numbers(&repeats))?;
                value = model.add(format!("{name}/mask_{i}_repeated"), Tile, &[value, repeats])?.into();
            }
            let last = integers(model, root, &format!("mask_{i}_shape"), &numbers(&last))?;
            let reshape = Reshape { special_zero: false };
            value = model.add(format!("{name}/mask_{i}"), reshape, &[value, last])?.into();
        }
        sum = Some(match sum {
            None => value,
            Some(sum) => model.add(format!("{name}/masks_{i}"), Add::default(), &[sum, value])?.into(),
        });
    }
    sum.map_or_else(|| scalar(model, root, "mask", query, 0.0), Ok)
}

fn swaps_last(order: &[i64]) -> bool {
    let n = order.len() as i64;
    n >= 2 && order.iter().zip(0..).all(|(&a, i)| a == if i >= n - 2 { 2 * n - 3 - i } else { i })
}

// Ranks must agree and batches be equal: the operation does not repeat keys for queries.
fn misfit(model: &Model, query: Value, key: (Value, bool), value: (Value, bool)) -> Option<Outcome> {
    let shape = |v: Value| model.fact(v).shape.dims().map(<[_]>::to_vec);
    let (Some(q), Some(k), Some(v)) = (shape(query), shape(key.0), shape(value.0)) else {
        return Some(Outcome::skip("the rank of query, key or value is unknown"));
    };
    if q.len() < 3 || q.len() != k.len() || q.len() != v.len() {
        return Some(Outcome::skip(format!(
            "ranks {}, {} and {} are not alike and at least 3",
            q.len(),
            k.len(),
            v.len()
        )));
    }
    let batch = q.len() - 2;
    let alike = (0..batch).all(|i| same_dim(q[i], k[i]) && same_dim(q[i], v[i]));
    (!alike).then(|| Outcome::skip("the batches of query, key and value may differ"))
}

// The value with its last two axes swapped where that is asked for; a Transpose before it takes the swap in.
fn straight(model: &mut Model, root: NodeId, what: &str, (v, swapped): (Value, bool)) -> Result<Value> {
    if !swapped {
        return Ok(v);
    }
    let rank = model.fact(v).shape.rank().unwrap_or(0);
    let (x, mut order) = transposed(model, v).unwrap_or((v, (0..rank as i64).collect()));
    order.swap(rank - 2, rank - 1);
    if order.iter().zip(0..).all(|(&a, i)| a == i) {
        return Ok(x);
    }
    let order = integers(model, root, &format!("{what}_order"), &order)?;
    Ok(model.add(format!("{}/{what}", model.node(root).name()), Transpose, &[x, order])?.into())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Sketch, fires, fires_static, stays};
    use super::*;
    use carafe_ops::arithmetic::AutoBroadcast;
    use carafe_ops::compare::Greater;

    fn product(g: &mut Sketch, a: Value, b: Value, transpose_b: bool) -> Value {
        g.op(MatMul { transpose_a: false, transpose_b }, &[a, b])
    }

    fn three(g: &mut Sketch) -> (Value, Value, Value) {
        (g.input(&[2, 3, 4, 8]), g.input(&[2, 3, 5, 8]), g.input(&[2, 3, 5, 6]))
    }

    fn turn(g: &mut Sketch, x: Value, order: &[i64]) -> Value {
        let order = g.ints(order);
        g.op(Transpose, &[x, order])
    }

    #[test]
    fn the_scale_may_stand_anywhere() {
        for location in 0..5 {
            fires_static(&FuseSdpa, "ScaledDotProductAttention", |g| {
                let (q, k, v) = three(g);
                let c = g.c(0.25);
                let (mut q, mut k) = (q, k);
                if location == 1 || location == 3 {
                    q = g.op(Multiply::default(), &[q, c]);
                }
                if location == 3 {
                    k = g.op(Multiply::default(), &[c, k]);
                }
                let kt = turn(g, k, &[0, 1, 3, 2]);
                let kt = if location == 4 { g.op(Multiply::default(), &[kt, c]) } else { kt };
                let mut s = product(g, q, kt, false);
                if location == 2 {
                    let four = g.c(4.0);
                    s = g.op(Divide::default(), &[s, four]);
                }
                let p = g.op(Softmax { axis: -1 }, &[s]);
                product(g, p, v, false)
            });
        }
    }

    #[test]
    fn the_key_may_be_turned_with_the_heads() {
        fires_static(&FuseSdpa, "Transpose ScaledDotProductAttention", |g| {
            let (q, k, v) = (g.input(&[2, 3, 4, 8]), g.input(&[2, 5, 3, 8]), g.input(&[2, 3, 5, 6]));
            let kt = turn(g, k, &[0, 2, 3, 1]);
            let s = product(g, q, kt, false);
            let p = g.op(Softmax { axis: 3 }, &[s]);
            product(g, p, v, false)
        });
        fires_static(&FuseSdpa, "Transpose ScaledDotProductAttention", |g| {
            let (q, kt, v) = (g.input(&[2, 4, 8]), g.input(&[2, 8, 5]), g.input(&[2, 5, 6]));
            let s = product(g, q, kt, false);
            let p = g.op(Softmax { axis: -1 }, &[s]);
            product(g, p, v, false)
        });
        fires_static(&FuseSdpa, "ScaledDotProductAttention", |g| {
            let (q, k, v) = three(g);
            let s = product(g, q, k, true);
            let p = g.op(Softmax { axis: -1 }, &[s]);
            product(g, p, v, false)
        });
    }

    #[test]
    fn masks_as_terms_and_as_choices() {
        for (kind, before) in ["", "Greater ", "Greater LogicalNot "].into_iter().enumerate() {
            fires_static(&FuseSdpa, &format!("{before}ScaledDotProductAttention"), |g| {
                let (q, k, v) = three(g);
                let c = g.c(0.3);
                let s = product(g, q, k, true);
                let s = g.op(Multiply::default(), &[c, s]);
                let s = if kind == 0 {
                    let mask = g.input(&[2, 1, 1, 5]);
                    g.op(Add::default(), &[mask, s])
                } else {
                    let (m, zero, never) = (g.input(&[4, 5]), g.c(-4.0), g.c(f64::NEG_INFINITY));
                    let keep = g.op(Greater::default(), &[m, zero]);
                    let select = Select { auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None };
                    g.op(select, &if kind == 1 { [keep, s, never] } else { [keep, never, s] })
                };
                let p = g.op(Softmax { axis: -1 }, &[s]);
                product(g, p, v, false)
            });
        }
    }

    #[test]
    fn several_terms_are_added_up_first() {
        for order in 0..4 {
            fires_static(&FuseSdpa, "Add ScaledDotProductAttention", |g| {
                let (q, k, v) = three(g);
                let s = product(g, q, k, true);
                let (bias, mask) = (g.input(&[1, 3, 4, 5]), g.input(&[2, 1, 4, 5]));
                let s = g.op(Add::default(), &if order % 2 == 0 { [s, bias] } else { [bias, s] });
                let s = g.op(Add::default(), &if order / 2 == 0 { [s, mask] } else { [mask, s] });
                let p = g.op(Softmax { axis: -1 }, &[s]);
                product(g, p, v, false)
            });
        }
    }

    fn reshaped(g: &mut Sketch, x: Value, shape: &[i64]) -> Value {
        let shape = g.ints(shape);
        g.op(Reshape { special_zero: false }, &[x, shape])
    }

    // Six windows, of one image or of two.
    fn windows(g: &mut Sketch, images: i64, mask: &[usize]) -> Value {
        let (q, k, v) = (g.input(&[6, 2, 4, 8]), g.input(&[6, 2, 4, 8]), g.input(&[6, 2, 4, 8]));
        let s = product(g, q, k, true);
        let bias = g.input(&[1, 2, 4, 4]);
        let s = g.op(Add::default(), &[s, bias]);
        let s = reshaped(g, s, &[images, 6 / images, 2, 4, 4]);
        let mask = g.input(mask);
        let s = g.op(Add::default(), &[s, mask]);
        let s = reshaped(g, s, &[-1, 2, 4, 4]);
        let p = g.op(Softmax { axis: -1 }, &[s]);
        product(g, p, v, false)
    }

    #[test]
    fn a_term_of_each_window_and_a_term_of_all() {
        let one = "Reshape Add ScaledDotProductAttention";
        fires_static(&FuseSdpa, one, |g| windows(g, 1, &[1, 6, 1, 4, 4]));
        fires_static(&FuseSdpa, one, |g| windows(g, 1, &[6, 1, 1, 4]));
        fires_static(&FuseSdpa, one, |g| windows(g, 2, &[2, 3, 2, 4, 4]));
        fires_static(&FuseSdpa, one, |g| windows(g, 2, &[1, 1, 2, 4, 1]));
    }

    #[test]
    fn a_term_of_the_windows_of_one_image_is_repeated_for_the_others() {
        fires_static(&FuseSdpa, "Tile Reshape Add ScaledDotProductAttention", |g| windows(g, 2, &[1, 3, 1, 4, 4]));
        fires_static(&FuseSdpa, "Tile Reshape Add ScaledDotProductAttention", |g| windows(g, 2, &[2, 1, 1, 4, 4]));
    }

    #[test]
    fn unknown_dimensions_that_come_from_one_place() {
        fires(&FuseSdpa, "ScaledDotProductAttention", |g| {
            let x = g.input(&[2, 4, 8]);
            let s = product(g, x, x, true);
            let p = g.op(Softmax { axis: 2 }, &[s]);
            product(g, p, x, false)
        });
    }

    #[test]
    fn others_stay() {
        stays(&FuseSdpa, "not along the last axis", |g| {
            let (q, k, v) = three(g);
            let s = product(g, q, k, true);
            let p = g.op(Softmax { axis: 2 }, &[s]);
            product(g, p, v, false)
        });
        stays(&FuseSdpa, "else than minus infinity", |g| {
            let (q, k, v) = three(g);
            let s = product(g, q, k, true);
            let (m, zero, low) = (g.input(&[4, 5]), g.c(-4.0), g.c(-1e9));
            let keep = g.op(Greater::default(), &[m, zero]);
            let select = Select { auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None };
            let s = g.op(select, &[keep, s, low]);
            let p = g.op(Softmax { axis: -1 }, &[s]);
            product(g, p, v, false)
        });
        stays(&FuseSdpa, "batches of query, key and value may differ", |g| {
            let (q, k, v) = (g.input(&[2, 3, 4, 8]), g.input(&[2, 1, 5, 8]), g.input(&[2, 1, 5, 6]));
            let s = product(g, q, k, true);
            let p = g.op(Softmax { axis: -1 }, &[s]);
            product(g, p, v, false)
        });
        stays(&FuseSdpa, "has another user", |g| {
            let (q, k, v) = (g.input(&[2, 4, 8]), g.input(&[2, 5, 8]), g.input(&[2, 5, 5]));
            let s = product(g, q, k, true);
            let p = g.op(Softmax { axis: -1 }, &[s]);
            let y = product(g, p, v, false);
            g.op(Add::default(), &[y, p])
        });
        stays(&FuseSdpa, "does not fit the scores themselves", |g| {
            let (q, k, v) = three(g);
            let s = product(g, q, k, true);
            let s = reshaped(g, s, &[2, 3, 2, 10]);
            let mask = g.input(&[2, 10]);
            let s = g.op(Add::default(), &[s, mask]);
            let s = reshaped(g, s, &[2, 3, 4, 5]);
            let p = g.op(Softmax { axis: -1 }, &[s]);
            product(g, p, v, false)
        });
        stays(&FuseSdpa, "reshaped before the softmax", |g| {
            let (q, k, v) = (g.input(&[2, 3, 4, 8]), g.input(&[2, 3, 5, 8]), g.input(&[2, 3, 2, 10, 6]));
            let s = product(g, q, k, true);
            let s = reshaped(g, s, &[2, 3, 1, 2, 10]);
            let p = g.op(Softmax { axis: -1 }, &[s]);
            product(g, p, v, false)
        });
        stays(&FuseSdpa, "ranks 2, 2 and 2", |g| {
            let (q, k, v) = (g.input(&[4, 8]), g.input(&[5, 8]), g.input(&[5, 6]));
            let s = product(g, q, k, true);
            let p = g.op(Softmax { axis: -1 }, &[s]);
            product(g, p, v, false)
        });
    }
}
