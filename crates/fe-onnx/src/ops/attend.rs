//! The parts attention operations share: heads in and out, masks, rotation by position, and attention itself. Tensors with
//! heads are `[batch, head, time, size]`.

use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::activation::Softmax;
use carafe_ops::linear::ScaledDotProductAttention;
use carafe_ops::math::Tanh;
use carafe_tensor::ElementType;

/// What attribute `scale` gives; 0 stands for the default.
pub(super) fn scale(n: &NodeCx<'_>) -> Result<Option<f64>> {
    let scale: f32 = n.attr("scale", 0.0)?;
    Ok((scale != 0.0).then_some(f64::from(scale)))
}

/// An integer attribute that is a switch, off unless given.
pub(super) fn flag(n: &NodeCx<'_>, name: &str) -> Result<bool> {
    Ok(n.attr(name, 0i64)? != 0)
}

/// `[batch, time, heads * size]` with the heads apart.
pub(super) fn heads(n: &mut NodeCx<'_>, x: Value, heads: i64) -> Result<Value> {
    if heads < 1 {
        return Err(n.fail(format!("the number of heads must be 1 or more, found {heads}")));
    }
    // A tensor without any time has nothing to tell the size of a head from.
    let size = n.shape(x).dim(2).get().filter(|width| width % heads == 0).map_or(-1, |width| width / heads);
    let apart = n.reshape(x, &[0, 0, heads, size])?;
    n.transpose(apart, &[0, 2, 1, 3])
}

/// The heads joined again.
pub(super) fn joined(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let x = n.transpose(x, &[0, 2, 1, 3])?;
    n.reshape(x, &[0, 0, -1])
}

/// Every head `times` times in a row.
pub(super) fn repeated(n: &mut NodeCx<'_>, x: Value, times: i64) -> Result<Value> {
    if times == 1 {
        return Ok(x);
    }
    let (batch, heads, rest) = (n.size(x, 0)?, n.size(x, 1)?, [n.size(x, 2)?, n.size(x, 3)?]);
    let factor = n.i64s(&[times])?;
    let heads = n.times(heads, factor)?;
    let shape = n.concat(&[batch, heads, rest[0], rest[1]], 0)?;
    let x = n.unsqueeze(x, &[2])?;
    let stretch = n.i64s(&[1, 1, times, 1, 1])?;
    let x = n.stretch(x, stretch)?;
    n.reshaped(x, shape, false)
}

/// How attention is computed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attend {
    /// Added to the scores; `[batch, head, query, key]` or what stretches to it.
    pub bias: Option<Value>,
    /// `1 / sqrt(size)` unless given.
    pub scale: Option<f64>,
    /// Scores are bent into this range; 0 is none.
    pub softcap: f64,
    /// A score per head that takes part in the softmax alone.
    pub sink: Option<Value>,
}

impl Attend {
    pub(super) fn emit(self, n: &mut NodeCx<'_>, q: Value, k: Value, v: Value) -> Result<Value> {
        if self.softcap == 0.0 && self.sink.is_none() {
            let bias = match self.bias {
                Some(b) => n.convert_like(b, q)?,
                None => n.scalar_like(q, 0.0)?,
            };
            let mut inputs = vec![q, k, v, bias];
            if let Some(scale) = self.scale {
                inputs.push(n.scalar_like(q, scale)?);
            }
            return n.emit(ScaledDotProductAttention { causal: false }, &inputs);
        }
        Ok(self.emit_steps(n, q, k, v)?.output)
    }

    /// As `emit`, with what lies between the products.
    pub(super) fn emit_steps(self, n: &mut NodeCx<'_>, q: Value, k: Value, v: Value) -> Result<Attended> {
        let q = match self.scale {
            Some(scale) => n.times_number(q, scale)?,
            None => {
                let size = n.size(q, -1)?;
                let size = n.convert_like(size, q)?;
                let root = n.sqrt(size)?;
                n.over(q, root)?
            }
        };
        let mut scores = n.product(q, k, true)?;
        if self.softcap != 0.0 {
            let small = n.times_number(scores, 1.0 / self.softcap)?;
            let bent = n.emit(Tanh, &[small])?;
            scores = n.times_number(bent, self.softcap)?;
        }
        if let Some(bias) = self.bias {
            let bias = n.convert_like(bias, scores)?;
            scores = n.plus(scores, bias)?;
        }
        let Some(sink) = self.sink else {
            let weights = n.emit(Softmax { axis: -1 }, &[scores])?;
            return Ok(Attended { scores, weights, output: n.product(weights, v, false)? });
        };
        let sink = n.convert_like(sink, scores)?;
        let column = n.part(scores, 0, 1, -1)?;
        let shape = n.shape_of(column)?;
        let sink = n.stretch(sink, shape)?;
        let all = n.concat(&[sink, scores], -1)?;
        let weights = n.emit(Softmax { axis: -1 }, &[all])?;
        let weights = n.part(weights, 1, i64::MAX, -1)?;
        Ok(Attended { scores, weights, output: n.product(weights, v, false)? })
    }
}

/// The steps of attention.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attended {
    /// Scaled products of queries and keys with the cap and the bias: what the softmax takes.
    pub scores: Value,
    /// What the softmax gives.
    pub weights: Value,
    pub output: Value,
}

/// 0 where a boolean mask is true and `low` elsewhere.
pub(super) fn bias_of(n: &mut NodeCx<'_>, keep: Value, like: Value, low: f64) -> Result<Value> {
    let (zero, low) = (n.scalar_like(like, 0.0)?, n.scalar_like(like, low)?);
    n.choose(keep, zero, low)
}

/// The lowest finite number a mask may use in this type.
pub(super) fn lowest(n: &NodeCx<'_>, like: Value) -> f64 {
    match n.ty(like) {
        ElementType::F16 => -65504.0,
        _ => f64::from(f32::MIN),
    }
}

/// Adds two biases that may be missing.
pub(super) fn both(n: &mut NodeCx<'_>, a: Option<Value>, b: Option<Value>) -> Result<Option<Value>> {
    Ok(match (a, b) {
        (Some(a), Some(b)) => {
            let b = n.convert_like(b, a)?;
            Some(n.plus(a, b)?)
        }
        (a, b) => a.or(b),
    })
}

/// True where key `t` is not after query `i`; the last query stands at the last key. `[query, key]`
pub(super) fn causal(n: &mut NodeCx<'_>, q: Value, k: Value) -> Result<Value> {
    let (queries, keys) = (n.length(q, 2)?, n.length(k, 2)?);
    let past = n.minus(keys, queries)?;
    let i = n.count_to(queries, ElementType::I64)?;
    let i = n.plus(i, past)?;
    let i = n.unsqueeze(i, &[1])?;
    let t = n.count_to(keys, ElementType::I64)?;
    n.less_equal(t, i)
}

/// Which keys a mask of any of its forms leaves: lengths `[batch]`, ends and starts `[2 * batch]`, lengths followed by the
/// cumulated lengths of queries and keys `[3 * batch + 2]`, `[batch, key]`, `[batch, query, key]` or `[batch, 1, max, max]`.
pub(super) fn keep(n: &mut NodeCx<'_>, mask: Value, q: Value, k: Value) -> Result<Value> {
    let keys = n.length(k, 2)?;
    let rank = n.known_rank(mask)?;
    if rank == 1 {
        let mut mask = n.convert(mask, ElementType::I64)?;
        let t = n.count_to(keys, ElementType::I64)?;
        let (batch, entries) = (n.shape(q).dim(0).get(), n.shape(mask).dim(0).get());
        let ends_only = match (batch, entries) {
            (Some(b), Some(e)) if e == 2 * b => false,
            (Some(b), Some(e)) if e == 3 * b + 2 && b > 0 => {
                mask = n.part(mask, 0, b, 0)?;
                true
            }
            _ => true,
        };
        if ends_only {
            let ends = n.unsqueeze(mask, &[1, 2, 3])?;
            return n.less(t, ends);
        }
        let halves = n.split_equally(mask, 0, 2)?;
        let (ends, starts) = (n.unsqueeze(halves[0], &[1, 2, 3])?, n.unsqueeze(halves[1], &[1, 2, 3])?);
        let (before, after) = (n.less(t, ends)?, n.greater_equal(t, starts)?);
        return n.and(before, after);
    }
    let keep = n.convert(mask, ElementType::Boolean)?;
    match rank {
        2 => n.unsqueeze(keep, &[1, 2]),
        3 => n.unsqueeze(keep, &[1]),
        4 => {
            // Rows and columns of a square for the longest time.
            let (queries, keys) = (n.size(q, 2)?, n.size(k, 2)?);
            let past = n.minus(keys, queries)?;
            let rows = n.cut(keep, past, keys, 2)?;
            let zero = n.i64s(&[0])?;
            n.cut(rows, zero, keys, 3)
        }
        _ => Err(n.fail(format!("a mask has 1 to 4 axes, found {rank}"))),
    }
}

/// Turns pairs of elements by the angle of their position. `cos` and `sin` are `[batch or 1, time, pairs]`; elements behind
/// `size` (0 is all) stay.
pub(super) fn rotated(
    n: &mut NodeCx<'_>,
    x: Value,
    [cos, sin]: [Value; 2],
    interleaved: bool,
    size: i64,
) -> Result<Value> {
    let (cos, sin) = (n.unsqueeze(cos, &[1])?, n.unsqueeze(sin, &[1])?);
    let (cos, sin) = (n.convert_like(cos, x)?, n.convert_like(sin, x)?);
    let whole = size == 0 || n.shape(x).dim(3).get() == Some(size);
    let turning = if whole { x } else { n.part(x, 0, size, -1)? };
    let (a, b) = if interleaved {
        let pairs = n.reshape(turning, &[0, 0, 0, -1, 2])?;
        let halves = n.split_equally(pairs, -1, 2)?;
        (n.squeeze(halves[0], &[-1])?, n.squeeze(halves[1], &[-1])?)
    } else {
        let halves = n.split_equally(turning, -1, 2)?;
        (halves[0], halves[1])
    };
    let (ac, bs, bc, as_) = (n.times(a, cos)?, n.times(b, sin)?, n.times(b, cos)?, n.times(a, sin)?);
    let (a, b) = (n.minus(ac, bs)?, n.plus(bc, as_)?);
    let y = if interleaved {
        let (a, b) = (n.unsqueeze(a, &[-1])?, n.unsqueeze(b, &[-1])?);
        let pairs = n.concat(&[a, b], -1)?;
        n.reshape(pairs, &[0, 0, 0, -1])?
    } else {
        n.concat(&[a, b], -1)?
    };
    if whole {
        return Ok(y);
    }
    let rest = n.part(x, size, i64::MAX, -1)?;
    n.concat(&[y, rest], -1)
}
