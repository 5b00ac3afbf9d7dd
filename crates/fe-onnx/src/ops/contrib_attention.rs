//! Attention of `com.microsoft` with its own projections, and RotaryEmbedding. Masks add `mask_filter_value`, they do not
//! cut off.

use super::attend::{Attend, bias_of, both, causal, flag, heads, joined, keep, lowest, rotated, scale};
use super::contrib::MS;
use super::contrib_quantized::dequantized;
use super::quantized::check_scale;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::movement::VariadicSplit;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(MS, "Attention", 1, attention),
    rule_in(MS, "QAttention", 1, quantized_attention),
    rule_in(MS, "RotaryEmbedding", 1, rotary_embedding),
];

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
    check_scale(n, 3, false)?;
    check_scale(n, 4, false)?;
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
