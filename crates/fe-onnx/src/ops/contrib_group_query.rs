//! GroupQueryAttention of `com.microsoft`: several heads of queries share one of keys and values, which are kept in a cache.
//! Every row of the batch has its own number of keys.

use super::attend::{Attend, bias_of, both, flag, heads, joined, lowest, repeated, rotated, scale};
use super::contrib::MS;
use super::kv_cache::{Append, Quantized, Sliding};
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::Gather;
use carafe_ops::movement::pad::PadMode;
use carafe_ops::movement::{Pad, VariadicSplit};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[rule_in(MS, "GroupQueryAttention", 1, group_query_attention)];

fn group_query_attention(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (num_heads, kv_heads): (i64, i64) = (n.required("num_heads")?, n.required("kv_num_heads")?);
    if kv_heads < 1 || num_heads % kv_heads != 0 {
        return Err(n.fail(format!("{num_heads} heads cannot share {kv_heads} keys equally")));
    }
    let softcap: f32 = n.attr("softcap", 0.0)?;
    let scale = scale(n)?;
    let sees = Sees::read(n)?;
    let shown: i64 = n.attr("qk_output", 0)?;
    n.ignore(&["kv_cache_bit_width"]);
    let (mut q, mut k, v) = projections(n, num_heads, kv_heads)?;
    if let (Some(of_q), Some(of_k)) = (n.opt(14)?, n.opt(15)?) {
        let epsilon: f32 = n.attr("qk_norm_epsilon", 1e-6)?;
        q = normalized(n, q, of_q, epsilon)?;
        k = normalized(n, k, of_k, epsilon)?;
    }
    n.ignore(&["qk_norm_epsilon"]);
    let tokens = Tokens::read(n, q, k)?;
    if flag(n, "do_rotary")? {
        let turn = tokens.angles(n)?;
        let (interleaved, size) = (flag(n, "rotary_interleaved")?, turned_size(n)?);
        q = rotated(n, q, turn, interleaved, size)?;
        // Keys that are all in the cache were turned when they came.
        if n.shape(k).dim(2).get() != Some(0) {
            k = rotated(n, k, turn, interleaved, size)?;
        }
    }
    n.ignore(&["rotary_interleaved"]);
    let kept = tokens.kept(n, &sees, k, v)?;

    let rows = n.plus(kept.first, tokens.steps)?;
    let count = n.length(kept.keys, 2)?;
    let keys = n.count_to(count, ElementType::I64)?;
    let seen = sees.mask(n, keys, rows, kept.end)?;
    let low = lowest(n, q);
    let masked = bias_of(n, seen, q, low)?;
    let extra = match (n.opt(10)?, kept.dropped) {
        (Some(bias), Some(dropped)) => Some(of_kept_keys(n, bias, keys, dropped, kept.end)?),
        (Some(bias), None) => Some(as_many_keys(n, bias, kept.keys)?),
        (None, _) => None,
    };
    let bias = both(n, Some(masked), extra)?;
    let sink = match n.opt(11)? {
        Some(s) => Some(n.reshape(s, &[1, -1, 1, 1])?),
        None if n.attr("smooth_softmax", 0i64)? == 1 => Some(n.scalar_like(q, 0.0)?),
        None => None,
    };
    n.ignore(&["smooth_softmax"]);
    let groups = num_heads / kv_heads;
    let (all_k, all_v) = (repeated(n, kept.keys, groups)?, repeated(n, kept.values, groups)?);
    let attend = Attend { bias, scale, softcap: f64::from(softcap), sink };
    if shown == 0 || !n.wants_output(3) {
        let y = attend.emit(n, q, all_k, all_v)?;
        let y = joined(n, y)?;
        return Ok(vec![y, kept.present_keys, kept.present_values].into());
    }
    let steps = attend.emit_steps(n, q, all_k, all_v)?;
    let qk = match shown {
        1 => steps.scores,
        2 => steps.weights,
        _ => return Err(n.fail(format!("qk_output must be 0, 1 or 2, found {shown}"))),
    };
    let zero = n.scalar_like(qk, 0.0)?;
    let qk = n.choose(seen, qk, zero)?;
    let (start, stop) = (n.i64s(&[0])?, n.reshape(tokens.total, &[1])?);
    let qk = n.cut(qk, start, stop, 3)?;
    let y = joined(n, steps.output)?;
    Ok(Outputs([y, kept.present_keys, kept.present_values, qk].map(Item::Tensor).to_vec()))
}

fn projections(n: &mut NodeCx<'_>, num_heads: i64, kv_heads: i64) -> Result<(Value, Value, Value)> {
    let q = n.input(0)?;
    let (q, k, v) = match (n.opt(1)?, n.opt(2)?) {
        (Some(k), Some(v)) => (q, k, v),
        (None, None) => {
            let width = n.shape(q).dim(2).get().ok_or_else(|| n.unsupported("the width of the query must be known"))?;
            let size = width / (num_heads + 2 * kv_heads);
            let (axis, sizes) = (n.i64(2)?, n.i64s(&[num_heads * size, kv_heads * size, kv_heads * size])?);
            let parts = n.emit_all(VariadicSplit, &[q, axis, sizes])?;
            (parts[0], parts[1], parts[2])
        }
        _ => return Err(n.fail("key and value must be given both, or none when the query holds all three")),
    };
    let apart = |n: &mut NodeCx<'_>, x: Value, count: i64| -> Result<Value> {
        if n.rank(x) == Some(4) { Ok(x) } else { heads(n, x, count) }
    };
    Ok((apart(n, q, num_heads)?, apart(n, k, kv_heads)?, apart(n, v, kv_heads)?))
}

// Each head by the root of its mean square.
fn normalized(n: &mut NodeCx<'_>, x: Value, weight: Value, epsilon: f32) -> Result<Value> {
    let wide = n.convert(x, ElementType::F32)?;
    let square = n.times(wide, wide)?;
    let mean = n.mean_over(square, &[-1], true)?;
    let mean = n.plus_number(mean, f64::from(epsilon))?;
    let root = n.sqrt(mean)?;
    let y = n.over(wide, root)?;
    let weight = n.convert(weight, ElementType::F32)?;
    let y = n.times(y, weight)?;
    n.convert_like(y, x)
}

fn turned_size(n: &mut NodeCx<'_>) -> Result<i64> {
    let cos = n.input(7)?;
    Ok(n.shape(cos).dim(1).get().map_or(0, |pairs| pairs.saturating_mul(2)))
}

/// Which keys a query sees besides those that are there at all.
struct Sees {
    causal: bool,
    /// The last so many keys, itself among them; all when below 1.
    window: i64,
    /// The cache holds a window, not the sequence.
    sliding: bool,
}

impl Sees {
    fn read(n: &mut NodeCx<'_>) -> Result<Sees> {
        let window: i64 = n.attr("local_window_size", -1)?;
        let sees = Sees { causal: n.attr("causal", 1i64)? != 0, window, sliding: flag(n, "sliding_window_cache")? };
        if window == 0 || window < -1 {
            return Err(n.fail(format!("local_window_size must be -1 or above 0, found {window}")));
        }
        if window > 0 && !sees.causal {
            return Err(n.fail("local_window_size must be -1 when causal is 0"));
        }
        if sees.sliding && window < 1 {
            return Err(n.fail("sliding_window_cache needs local_window_size above 0"));
        }
        if sees.sliding && (!n.has(3) || !n.has(4)) {
            return Err(n.fail("sliding_window_cache needs past_key and past_value"));
        }
        if sees.sliding && n.attr("qk_output", 0i64)? != 0 {
            return Err(n.unsupported("qk_output with sliding_window_cache is not supported"));
        }
        Ok(sees)
    }

    /// `[batch, 1, query, key]`; `rows` are the positions of the queries, `end` the number of keys of each row.
    fn mask(&self, n: &mut NodeCx<'_>, keys: Value, rows: Value, end: Value) -> Result<Value> {
        let end = n.unsqueeze(end, &[1, 3])?;
        let within = n.less(keys, end)?;
        if !self.causal {
            return Ok(within);
        }
        let rows = n.unsqueeze(rows, &[1, 3])?;
        let not_after = n.less_equal(keys, rows)?;
        // Queries behind the end of a shorter row see the keys of that row alone.
        let mut seen = n.and(not_after, within)?;
        if self.window > 0 {
            let last = n.plus_number(end, -1.0)?;
            let rows = n.min(rows, last)?;
            let first = n.plus_number(rows, -self.window as f64)?;
            let near = n.greater(keys, first)?;
            seen = n.and(seen, near)?;
        }
        Ok(seen)
    }
}

/// How many tokens there are.
struct Tokens {
    /// After this step; `[batch, 1]`.
    ends: Value,
    /// Before it.
    before: Value,
    /// `0, 1, ...` for the queries.
    steps: Value,
    /// New queries and keys, vectors of one.
    queries: Value,
    fresh: Value,
    /// In the longest row, a scalar.
    total: Value,
}

/// Keys and values of a step, and the cache behind it.
struct Kept {
    keys: Value,
    values: Value,
    present_keys: Value,
    present_values: Value,
    /// Row of the first query among the keys; `[batch, 1]`.
    first: Value,
    /// Number of keys; `[batch, 1]`.
    end: Value,
    /// Keys of the sequence that came before the first one and are gone; `[batch, 1]`.
    dropped: Option<Value>,
}

impl Tokens {
    fn read(n: &mut NodeCx<'_>, q: Value, k: Value) -> Result<Tokens> {
        let ends = n.input(5)?;
        let ends = n.convert(ends, ElementType::I64)?;
        let ends = n.reshape(ends, &[-1, 1])?;
        let one = n.i64(1)?;
        let ends = n.plus(ends, one)?;
        let zero = n.i64(0)?;
        let (queries, fresh) = (n.size(q, 2)?, n.size(k, 2)?);
        let before = n.minus(ends, queries)?;
        let before = n.max(before, zero)?;
        let steps = n.length(q, 2)?;
        let steps = n.count_to(steps, ElementType::I64)?;
        let total = match n.opt(6)? {
            Some(total) => {
                let total = n.convert(total, ElementType::I64)?;
                n.reshape(total, &[])?
            }
            None => n.max_over(ends, &[0, 1], false)?,
        };
        Ok(Tokens { ends, before, steps, queries, fresh, total })
    }

    /// Cosines and sines at the positions of the new tokens.
    fn angles(&self, n: &mut NodeCx<'_>) -> Result<[Value; 2]> {
        let (cos, sin) = (n.input(7)?, n.input(8)?);
        let counted = n.plus(self.before, self.steps)?;
        let at = match n.opt(9)? {
            None => counted,
            Some(given) => {
                // A first prompt counts on from the first position that is given.
                let given = n.convert(given, ElementType::I64)?;
                let flat = n.reshape(given, &[-1])?;
                let start = n.part(flat, 0, 1, 0)?;
                let whole = n.plus(start, self.steps)?;
                let prompt = n.equal(self.total, self.queries)?;
                n.choose(prompt, whole, given)?
            }
        };
        Ok([n.gather(cos, at, 0)?, n.gather(sin, at, 0)?])
    }

    fn kept(&self, n: &mut NodeCx<'_>, sees: &Sees, k: Value, v: Value) -> Result<Kept> {
        let (past_k, past_v) = (n.opt(3)?, n.opt(4)?);
        let k_form = Quantized::read(n, "k_quant_type", 12, k, past_k)?;
        let v_form = Quantized::read(n, "v_quant_type", 13, v, past_v)?;
        let encode = |n: &mut NodeCx<'_>, form: Option<Quantized>, x| form.map_or(Ok(x), |f| f.encoded(n, x));
        let widen = |n: &mut NodeCx<'_>, form: Option<Quantized>, x| form.map_or(Ok(x), |f| f.widened(n, x));
        let store = |n: &mut NodeCx<'_>, form: Option<Quantized>, x| form.map_or(Ok(x), |f| f.stored(n, x));
        let (mut keys, mut values) = (encode(n, k_form, k)?, encode(n, v_form, v)?);
        let (mut first, mut end, mut dropped) = (self.before, self.ends, None);
        let (mut present_keys, mut present_values) = (keys, values);
        if let (Some(past_k), Some(past_v)) = (past_k, past_v) {
            let (past_k, past_v) = (widen(n, k_form, past_k)?, widen(n, v_form, past_v)?);
            let room = n.size(past_k, 2)?;
            let sliding = if sees.sliding { Some(Sliding::new(n, past_k, sees.window)?) } else { None };
            let (stored, total) = match sliding {
                Some(sliding) => (sliding.in_use(n, self.before)?, n.plus(room, self.fresh)?),
                None => {
                    let zero = n.i64(0)?;
                    let stored = n.minus(self.ends, self.fresh)?;
                    (n.max(stored, zero)?, n.max(self.total, room)?)
                }
            };
            let append = Append::new(n, stored, [room, self.fresh, total])?;
            (keys, values) = (append.rows(n, past_k, keys)?, append.rows(n, past_v, values)?);
            (present_keys, present_values) = (keys, values);
            if let Some(sliding) = sliding {
                let filled = n.plus(stored, self.fresh)?;
                let left = sliding.in_use(n, self.ends)?;
                present_keys = sliding.rest(n, keys, filled, left)?;
                present_values = sliding.rest(n, values, filled, left)?;
                (first, end, dropped) = (stored, filled, Some(n.minus(self.ends, filled)?));
            }
        }
        let (present_keys, present_values) = (store(n, k_form, present_keys)?, store(n, v_form, present_values)?);
        let keys = k_form.map_or(Ok(keys), |f| f.decoded(n, keys, k))?;
        let values = v_form.map_or(Ok(values), |f| f.decoded(n, values, v))?;
        Ok(Kept { keys, values, present_keys, present_values, first, end, dropped })
    }
}

// A bias counts the keys of the sequence, some of which a cache has dropped.
fn of_kept_keys(n: &mut NodeCx<'_>, bias: Value, keys: Value, dropped: Value, end: Value) -> Result<Value> {
    let at = n.plus(keys, dropped)?;
    let last = n.length(bias, 3)?;
    let last = n.plus_number(last, -1.0)?;
    let at = n.min(at, last)?;
    let (batch, ones) = (n.size(end, 0)?, n.i64s(&[1, 1, 1])?);
    let shape = n.concat(&[batch, ones], 0)?;
    let bias = n.stretch(bias, shape)?;
    let axis = n.i64(3)?;
    n.emit(Gather { batch_dims: 1 }, &[bias, at, axis])
}

// A bias is as long as the longest row; a cache may have more room.
fn as_many_keys(n: &mut NodeCx<'_>, bias: Value, keys: Value) -> Result<Value> {
    let (have, want) = (n.shape(bias).dim(3).get(), n.shape(keys).dim(2).get());
    if have.is_some() && have == want {
        return Ok(bias);
    }
    let (have, want) = (n.size(bias, 3)?, n.size(keys, 2)?);
    let (missing, none) = (n.minus(want, have)?, n.i64s(&[0])?);
    let missing = n.max(missing, none)?;
    let (begin, front) = (n.i64s(&[0; 4])?, n.i64s(&[0; 3])?);
    let end = n.concat(&[front, missing], 0)?;
    let zero = n.scalar_like(bias, 0.0)?;
    let bias = n.emit(Pad { pad_mode: PadMode::Constant }, &[bias, begin, end, zero])?;
    n.cut(bias, none, want, 3)
}
