//! Attention of `com.microsoft`: Attention with its own projections, MultiHeadAttention, GroupQueryAttention with a cache,
//! and RotaryEmbedding. Masks add `mask_filter_value`, they do not cut off.

use super::attend::{Attend, bias_of, both, causal, heads, joined, keep, lowest, repeated, rotated};
use super::compose::Compose;
use super::contrib::MS;
use super::contrib_quantized::dequantized;
use carafe_frontend::{Item, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::indexing::Gather;
use carafe_ops::movement::VariadicSplit;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(MS, "Attention", 1, attention),
    rule_in(MS, "GroupQueryAttention", 1, group_query_attention),
    rule_in(MS, "MultiHeadAttention", 1, multi_head_attention),
    rule_in(MS, "QAttention", 1, quantized_attention),
    rule_in(MS, "RotaryEmbedding", 1, rotary_embedding),
];

fn scale(n: &NodeCx<'_>) -> Result<Option<f64>> {
    let scale: f32 = n.attr("scale", 0.0)?;
    Ok((scale != 0.0).then_some(f64::from(scale)))
}

fn flag(n: &NodeCx<'_>, name: &str) -> Result<bool> {
    Ok(n.attr(name, 0i64)? != 0)
}

// What a node gives besides the attention itself.
struct Given {
    mask: Option<Value>,
    past: Option<Value>,
    bias: Option<Value>,
}

fn attention(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, weights, bias) = (n.input(0)?, n.input(1)?, n.opt(2)?);
    let given = Given { mask: n.opt(3)?, past: n.opt(4)?, bias: n.opt(5)? };
    projected_attention(n, x, weights, bias, &given)
}

fn quantized_attention(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, weights, bias) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (x_scale, w_scale) = (n.input(3)?, n.input(4)?);
    let given = Given { mask: n.opt(5)?, past: n.opt(8)?, bias: None };
    let (x_zero, w_zero) = (n.opt(6)?, n.opt(7)?);
    let x = dequantized(n, x, x_scale, x_zero, None)?;
    let weights = dequantized(n, weights, w_scale, w_zero, None)?;
    projected_attention(n, x, weights, Some(bias), &given)
}

fn projected_attention(
    n: &mut NodeCx<'_>,
    x: Value,
    weights: Value,
    bias: Option<Value>,
    given: &Given,
) -> Result<Outputs> {
    let num_heads: i64 = n.required("num_heads")?;
    let low: f32 = n.attr("mask_filter_value", -10000.0)?;
    let sizes: Vec<i64> = n.attr("qkv_hidden_sizes", vec![])?;
    let (scale, unidirectional) = (scale(n)?, flag(n, "unidirectional")?);
    if flag(n, "do_rotary")? || flag(n, "past_present_share_buffer")? {
        return Err(n.unsupported("do_rotary and past_present_share_buffer are not supported"));
    }
    n.ignore(&["rotary_embedding_dim"]);
    let mut all = n.product(x, weights, false)?;
    if let Some(bias) = bias {
        all = n.plus(all, bias)?;
    }
    let parts = match sizes.len() {
        3 => {
            let (axis, sizes) = (n.i64(2)?, n.i64s(&sizes)?);
            n.emit_all(VariadicSplit, &[all, axis, sizes])?
        }
        _ => n.split_equally(all, 2, 3)?,
    };
    let q = heads(n, parts[0], num_heads)?;
    let (mut k, mut v) = (heads(n, parts[1], num_heads)?, heads(n, parts[2], num_heads)?);
    if let Some(past) = given.past {
        let halves = n.split_equally(past, 0, 2)?;
        let (past_k, past_v) = (n.squeeze(halves[0], &[0])?, n.squeeze(halves[1], &[0])?);
        k = n.concat(&[past_k, k], 2)?;
        v = n.concat(&[past_v, v], 2)?;
    }
    let mut bias = given.bias;
    if let Some(mask) = given.mask {
        let keep = keep(n, mask, q, k)?;
        let masked = bias_of(n, keep, q, f64::from(low))?;
        bias = both(n, Some(masked), bias)?;
    }
    if unidirectional {
        let keep = causal(n, q, k)?;
        let low = lowest(n, q);
        let masked = bias_of(n, keep, q, low)?;
        bias = both(n, Some(masked), bias)?;
    }
    let y = Attend { bias, scale, ..Attend::default() }.emit(n, q, k, v)?;
    let y = joined(n, y)?;
    if !n.wants_output(1) {
        return Ok(y.into());
    }
    let (k, v) = (n.unsqueeze(k, &[0])?, n.unsqueeze(v, &[0])?);
    let present = n.concat(&[k, v], 0)?;
    Ok(vec![y, present].into())
}

fn multi_head_attention(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let num_heads: i64 = n.required("num_heads")?;
    let low: f32 = n.attr("mask_filter_value", -10000.0)?;
    let (scale, unidirectional) = (scale(n)?, flag(n, "unidirectional")?);
    if n.has(8) || n.has(9) {
        return Err(n.unsupported("a cache in one buffer with past_sequence_length is not supported"));
    }
    let (q, mut k, mut v) = projections(n, num_heads)?;
    if let (Some(past_k), Some(past_v)) = (n.opt(6)?, n.opt(7)?) {
        k = n.concat(&[past_k, k], 2)?;
        v = n.concat(&[past_v, v], 2)?;
    }
    let mut bias = n.opt(5)?;
    if let Some(mask) = n.opt(4)? {
        let keep = keep(n, mask, q, k)?;
        let masked = bias_of(n, keep, q, f64::from(low))?;
        bias = both(n, Some(masked), bias)?;
    }
    if unidirectional {
        let keep = causal(n, q, k)?;
        let low = lowest(n, q);
        let masked = bias_of(n, keep, q, low)?;
        bias = both(n, Some(masked), bias)?;
    }
    let y = Attend { bias, scale, ..Attend::default() }.emit(n, q, k, v)?;
    let y = joined(n, y)?;
    Ok(vec![y, k, v].into())
}

// Query, key and value with heads, from any way they may be packed.
fn projections(n: &mut NodeCx<'_>, num_heads: i64) -> Result<(Value, Value, Value)> {
    let q = n.input(0)?;
    let (key, value) = (n.opt(1)?, n.opt(2)?);
    let Some(key) = key else {
        if n.rank(q) != Some(5) {
            return Err(n.unsupported("query without key must be packed as [batch, time, head, 3, size]"));
        }
        if n.has(3) {
            return Err(n.unsupported("a bias of a packed query is not supported"));
        }
        let parts = n.split_equally(q, 3, 3)?;
        let [q, k, v] = [0, 1, 2].map(|i| n.squeeze(parts[i], &[3]).and_then(|p| n.transpose(p, &[0, 2, 1, 3])));
        return Ok((q?, k?, v?));
    };
    let mut biases = [None; 3];
    if let Some(bias) = n.opt(3)? {
        let width = n.shape(q).dim(2).get().ok_or_else(|| n.unsupported("the width of the query must be known"))?;
        let (axis, sizes) = (n.i64(0)?, n.i64s(&[width, width, -1])?);
        let parts = n.emit_all(VariadicSplit, &[bias, axis, sizes])?;
        biases = [0, 1, 2].map(|i| Some(parts[i]));
    }
    let apart = |n: &mut NodeCx<'_>, x: Value, i: usize| -> Result<Value> {
        if n.rank(x) == Some(4) {
            return Ok(x);
        }
        let x = match biases[i] {
            Some(b) => n.plus(x, b)?,
            None => x,
        };
        heads(n, x, num_heads)
    };
    let q = apart(n, q, 0)?;
    match value {
        Some(value) => Ok((q, apart(n, key, 1)?, apart(n, value, 2)?)),
        None if n.rank(key) == Some(5) => {
            let parts = n.split_equally(key, 3, 2)?;
            let [k, v] = [0, 1].map(|i| n.squeeze(parts[i], &[3]).and_then(|p| n.transpose(p, &[0, 2, 1, 3])));
            Ok((q, k?, v?))
        }
        None => Err(n.fail("input 2 (value) is required unless the key is packed")),
    }
}

fn rotary_embedding(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (interleaved, num_heads) = (flag(n, "interleaved")?, n.attr("num_heads", 0i64)?);
    let size: i64 = n.attr("rotary_embedding_dim", 0)?;
    n.ignore(&["scale", "is_packed_batching"]);
    let (x, positions) = (n.input(0)?, n.input(1)?);
    let (cos, sin) = (n.input(2)?, n.input(3)?);
    let flat = n.known_rank(x)? == 3;
    let apart = match (flat, num_heads, n.shape(cos).dim(1).get()) {
        (false, ..) => x,
        (true, h, _) if h > 0 => heads(n, x, h)?,
        (true, _, Some(pairs)) => {
            let x = n.reshape(x, &[0, 0, -1, pairs.saturating_mul(2)])?;
            n.transpose(x, &[0, 2, 1, 3])?
        }
        _ => return Err(n.unsupported("num_heads is needed when the cache has no known width")),
    };
    let positions = if n.rank(positions) == Some(1) {
        let time = n.length(apart, 2)?;
        let steps = n.count_to(time, ElementType::I64)?;
        let start = n.convert(positions, ElementType::I64)?;
        let steps = n.plus(steps, start)?;
        n.unsqueeze(steps, &[0])?
    } else {
        positions
    };
    let (cos, sin) = (n.gather(cos, positions, 0)?, n.gather(sin, positions, 0)?);
    let y = rotated(n, apart, [cos, sin], interleaved, size)?;
    Ok(if flat { joined(n, y)? } else { y }.into())
}

fn group_query_attention(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (num_heads, kv_heads): (i64, i64) = (n.required("num_heads")?, n.required("kv_num_heads")?);
    if kv_heads < 1 || num_heads % kv_heads != 0 {
        return Err(n.fail(format!("{num_heads} heads cannot share {kv_heads} keys equally")));
    }
    let (rotary, interleaved) = (flag(n, "do_rotary")?, flag(n, "rotary_interleaved")?);
    let window: i64 = n.attr("local_window_size", -1)?;
    let softcap: f32 = n.attr("softcap", 0.0)?;
    let (scale, smooth) = (scale(n)?, n.attr("smooth_softmax", 0i64)? == 1);
    if n.attr("qk_output", 0i64)? != 0 {
        return Err(n.unsupported("qk_output is not supported"));
    }
    for name in ["k_quant_type", "v_quant_type"] {
        if n.attr(name, "NONE".to_string())? != "NONE" {
            return Err(n.unsupported("a quantized cache is not supported"));
        }
    }
    n.ignore(&["kv_cache_bit_width"]);
    let (mut q, mut k, v) = grouped_projections(n, num_heads, kv_heads)?;

    // Every row has its own number of keys; new ones come behind those of the past.
    let ends = n.input(5)?;
    let ends = n.convert(ends, ElementType::I64)?;
    let ends = n.reshape(ends, &[-1, 1])?;
    let one = n.i64(1)?;
    let ends = n.plus(ends, one)?;
    let fresh = n.size(q, 2)?;
    let zero = n.i64(0)?;
    let past = n.minus(ends, fresh)?;
    let past = n.max(past, zero)?;
    let steps = n.length(q, 2)?;
    let steps = n.count_to(steps, ElementType::I64)?;
    let places = n.plus(past, steps)?;
    if rotary {
        let (cos, sin) = (n.input(7)?, n.input(8)?);
        let size = n.shape(cos).dim(1).get().map_or(0, |pairs| pairs.saturating_mul(2));
        let at = match n.opt(9)? {
            Some(at) => at,
            None => places,
        };
        let turn = [n.gather(cos, at, 0)?, n.gather(sin, at, 0)?];
        q = rotated(n, q, turn, interleaved, size)?;
        k = rotated(n, k, turn, interleaved, size)?;
    }
    let (k, v) = match (n.opt(3)?, n.opt(4)?) {
        (Some(past_k), Some(past_v)) => {
            let order = cache_order(n, past_k, past)?;
            let filled = n.plus(past, fresh)?;
            (appended(n, past_k, k, order, filled)?, appended(n, past_v, v, order, filled)?)
        }
        _ => (k, v),
    };
    let keys = n.length(k, 2)?;
    let t = n.count_to(keys, ElementType::I64)?;
    let rows = n.unsqueeze(places, &[1, 3])?;
    let mut seen = n.less_equal(t, rows)?;
    // Queries behind the end of a shorter row see the keys of that row alone.
    let row_ends = n.unsqueeze(ends, &[1, 3])?;
    let within = n.less(t, row_ends)?;
    seen = n.and(seen, within)?;
    if window > 0 {
        let reach = n.i64(window)?;
        let first = n.minus(rows, reach)?;
        let near = n.greater(t, first)?;
        seen = n.and(seen, near)?;
    }
    let low = lowest(n, q);
    let masked = bias_of(n, seen, q, low)?;
    let extra = n.opt(10)?;
    let bias = both(n, Some(masked), extra)?;
    let sink = match n.opt(11)? {
        Some(s) => Some(n.reshape(s, &[1, -1, 1, 1])?),
        None if smooth => Some(n.scalar_like(q, 0.0)?),
        None => None,
    };
    let groups = num_heads / kv_heads;
    let (all_k, all_v) = (repeated(n, k, groups)?, repeated(n, v, groups)?);
    let y = Attend { bias, scale, softcap: f64::from(softcap), sink }.emit(n, q, all_k, all_v)?;
    let y = joined(n, y)?;
    Ok(Outputs(vec![y.into(), Item::Tensor(k), Item::Tensor(v)]))
}

fn grouped_projections(n: &mut NodeCx<'_>, num_heads: i64, kv_heads: i64) -> Result<(Value, Value, Value)> {
    let q = n.input(0)?;
    let (q, k, v) = match (n.opt(1)?, n.opt(2)?) {
        (Some(k), Some(v)) => (q, k, v),
        _ => {
            let width = n.shape(q).dim(2).get().ok_or_else(|| n.unsupported("the width of the query must be known"))?;
            let size = width / (num_heads + 2 * kv_heads);
            let (axis, sizes) = (n.i64(2)?, n.i64s(&[num_heads * size, kv_heads * size, kv_heads * size])?);
            let parts = n.emit_all(VariadicSplit, &[q, axis, sizes])?;
            (parts[0], parts[1], parts[2])
        }
    };
    let apart = |n: &mut NodeCx<'_>, x: Value, count: i64| -> Result<Value> {
        if n.rank(x) == Some(4) { Ok(x) } else { heads(n, x, count) }
    };
    Ok((apart(n, q, num_heads)?, apart(n, k, kv_heads)?, apart(n, v, kv_heads)?))
}

// For each key to be: its place in the past followed by the new ones. `[batch, key]`
fn cache_order(n: &mut NodeCx<'_>, cache: Value, past: Value) -> Result<Value> {
    let total = n.input(6)?;
    let total = n.convert(total, ElementType::I64)?;
    let total = n.reshape(total, &[])?;
    let room = n.length(cache, 2)?;
    let total = n.max(total, room)?;
    let t = n.count_to(total, ElementType::I64)?;
    let old = n.less(t, past)?;
    let shift = n.minus(room, past)?;
    let new = n.plus(t, shift)?;
    n.choose(old, t, new)
}

// Places behind the last key hold zeros. `filled` is `[batch, 1]`.
fn appended(n: &mut NodeCx<'_>, cache: Value, new: Value, order: Value, filled: Value) -> Result<Value> {
    let all = n.concat(&[cache, new], 2)?;
    let length = n.length(all, 2)?;
    let one = n.i64(1)?;
    let last = n.minus(length, one)?;
    let order = n.min(order, last)?;
    let axis = n.i64(2)?;
    let all = n.emit(Gather { batch_dims: 1 }, &[all, order, axis])?;
    let keys = n.length(all, 2)?;
    let t = n.count_to(keys, ElementType::I64)?;
    let there = n.less(t, filled)?;
    let there = n.unsqueeze(there, &[1, 3])?;
    let zero = n.scalar_like(all, 0.0)?;
    n.choose(there, all, zero)
}
