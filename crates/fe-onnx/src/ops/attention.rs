//! Attention and rotary embedding. The mask is built as numbers that are added to the scores; a query that may see no key
//! at all gives zeros, where a softmax would give NaN.

use crate::tensor::element_type;
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::Softmax;
use carafe_ops::linear::{MatMul, ScaledDotProductAttention};
use carafe_ops::math::Tanh;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::pad::PadMode;
use carafe_ops::movement::{Broadcast, Pad, Slice, Split};
use carafe_ops::reduce::ReduceLogicalOr;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] =
    &[rule("Attention", 23, attention), rule("RotaryEmbedding", 23, rotary_embedding)];

/// `[B, L, heads * E]` as `[B, heads, L, E]`.
fn split_heads(n: &mut NodeCx<'_>, v: Value, heads: Option<i64>) -> Result<Value> {
    match (n.known_rank(v)?, heads) {
        (4, _) => Ok(v),
        (3, Some(heads)) => {
            let v = n.reshape(v, &[0, 0, heads, -1])?;
            n.transpose(v, &[0, 2, 1, 3])
        }
        (3, None) => Err(n.fail("inputs of rank 3 need the number of heads")),
        (rank, _) => Err(n.fail(format!("inputs must have rank 3 or 4, found {rank}"))),
    }
}

fn attention(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (q_heads, kv_heads) = (n.opt_attr("q_num_heads")?, n.opt_attr("kv_num_heads")?);
    let scale: Option<f64> = n.opt_attr("scale")?;
    let softcap: f64 = n.attr("softcap", 0.0)?;
    let shown: i64 = n.attr("qk_matmul_output_mode", 0)?;
    let precision = match n.attr("softmax_precision", 0_i32)? {
        0 => None,
        number => Some(element_type(number)?),
    };
    let (q, k, v) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let flat = n.known_rank(q)? == 3;
    let q = split_heads(n, q, q_heads)?;
    let (mut k, mut v) = (split_heads(n, k, kv_heads)?, split_heads(n, v, kv_heads)?);
    let (past_k, past_v) = (n.opt(4)?, n.opt(5)?);
    if let (Some(past_k), Some(past_v)) = (past_k, past_v) {
        k = n.concat(&[past_k, k], 2)?;
        v = n.concat(&[past_v, v], 2)?;
    }
    let (present_k, present_v) = (k, v);
    let visible = Visible { q, k, past: past_k };
    let simple = softcap == 0.0 && precision.is_none() && !n.wants_output(3);
    let causal_alone = visible.only_causal(n)?;
    let bias = if causal_alone && simple { None } else { visible.bias(n)? };
    let k = repeat_heads(n, k, q)?;
    let v = repeat_heads(n, v, q)?;
    let v = n.convert_like(v, q)?;

    let mut qk = None;
    let mut y = if simple {
        let mut inputs = vec![q, k, v];
        inputs.extend(bias);
        if let Some(scale) = scale {
            if bias.is_none() {
                inputs.push(n.scalar_like(q, 0.0)?);
            }
            inputs.push(n.scalar_like(q, scale)?);
        }
        let y = n.emit(ScaledDotProductAttention { causal: causal_alone }, &inputs)?;
        without_blind_rows(n, y, bias)?
    } else {
        let root = match scale {
            Some(scale) => n.scalar_like(q, scale.sqrt())?,
            None => {
                let size = n.length(q, 3)?;
                let size = n.convert(size, ElementType::F32)?;
                let root = n.power_number(size, -0.25)?;
                n.convert_like(root, q)?
            }
        };
        let (q, k) = (n.times(q, root)?, n.times(k, root)?);
        let mut scores = n.emit(MatMul { transpose_a: false, transpose_b: true }, &[q, k])?;
        qk = Some(scores);
        if softcap > 0.0 {
            let capped = n.over_number(scores, softcap)?;
            let capped = n.emit(Tanh, &[capped])?;
            scores = n.times_number(capped, softcap)?;
            // What mode 0 shows has the cap too.
            qk = Some(scores);
        }
        if let Some(bias) = bias {
            scores = n.plus(scores, bias)?;
        }
        if shown == 2 {
            qk = Some(scores);
        }
        if let Some(ty) = precision {
            scores = n.convert(scores, ty)?;
        }
        let weights = n.emit(Softmax { axis: 3 }, &[scores])?;
        let weights = n.convert_like(weights, q)?;
        let weights = without_blind_rows(n, weights, bias)?;
        if shown == 3 {
            qk = Some(weights);
        }
        n.product(weights, v, false)?
    };
    if flat {
        y = n.transpose(y, &[0, 2, 1, 3])?;
        y = n.reshape(y, &[0, 0, -1])?;
    }
    let mut outputs: Vec<Item> = vec![y.into(), present_k.into(), present_v.into()];
    outputs.extend(qk.map(Item::from));
    outputs.truncate(n.n_outputs());
    Ok(Outputs(outputs))
}

/// Every head of keys and values serves several heads of queries.
pub(super) fn repeat_heads(n: &mut NodeCx<'_>, v: Value, q: Value) -> Result<Value> {
    let heads = |v| n.shape(v).dims().and_then(|d| d[1].get());
    if heads(v).is_some() && heads(v) == heads(q) {
        return Ok(v);
    }
    let (own, wanted) = (n.size(v, 1)?, n.size(q, 1)?);
    let times = n.over(wanted, own)?;
    let one = n.i64s(&[1])?;
    let shape = n.concat(&[one, one, times, one, one], 0)?;
    let wide = n.unsqueeze(v, &[2])?;
    let wide = n.emit(Broadcast { mode: BroadcastMode::Bidirectional }, &[wide, shape])?;
    let mut dims = vec![n.size(v, 0)?, wanted];
    dims.extend([n.size(v, 2)?, n.size(v, 3)?]);
    let shape = n.concat(&dims, 0)?;
    n.reshaped(wide, shape, false)
}

// Zeros where no key may be seen. A largest number cannot tell: over nothing but minus infinity it is finite.
fn without_blind_rows(n: &mut NodeCx<'_>, y: Value, bias: Option<Value>) -> Result<Value> {
    let Some(bias) = bias else { return Ok(y) };
    let never = n.scalar_like(bias, f64::NEG_INFINITY)?;
    let seen = n.greater(bias, never)?;
    let last = n.i64s(&[-1])?;
    let seen = n.emit(ReduceLogicalOr { keep_dims: true }, &[seen, last])?;
    let zero = n.scalar_like(y, 0.0)?;
    n.choose(seen, y, zero)
}

/// Which keys a query may see.
struct Visible {
    q: Value,
    k: Value,
    past: Option<Value>,
}

impl Visible {
    /// Whether the causal rule is the only one, with queries and keys that begin together.
    fn only_causal(&self, n: &mut NodeCx<'_>) -> Result<bool> {
        let (left, right) = windows(n)?;
        Ok(n.attr("is_causal", false)? && self.past.is_none() && !n.has(3) && !n.has(6) && left < 0 && right < 0)
    }

    /// What is added to the scores; nothing when all is visible.
    fn bias(&self, n: &mut NodeCx<'_>) -> Result<Option<Value>> {
        let causal: bool = n.attr("is_causal", false)?;
        let (left, right) = windows(n)?;
        let (mask, filled) = (n.opt(3)?, n.opt(6)?);
        let mut bias = match mask {
            Some(mask) => Some(self.mask(n, mask)?),
            None => None,
        };
        let mut allowed: Option<Value> = None;
        let mut allow = |n: &mut NodeCx<'_>, rule: Value| -> Result<()> {
            allowed = Some(match allowed {
                Some(a) => n.and(a, rule)?,
                None => rule,
            });
            Ok(())
        };
        let n_keys = n.length(self.k, 2)?;
        let keys = n.count_to(n_keys, ElementType::I64)?;
        if causal || left >= 0 || right >= 0 {
            let n_queries = n.length(self.q, 2)?;
            let queries = n.count_to(n_queries, ElementType::I64)?;
            let queries = n.unsqueeze(queries, &[1])?;
            let positions = match (self.past, filled) {
                (Some(past), _) => {
                    let offset = n.length(past, 2)?;
                    n.plus(queries, offset)?
                }
                (None, Some(filled)) => {
                    let offset = n.minus(filled, n_queries)?;
                    let offset = n.reshape(offset, &[-1, 1, 1, 1])?;
                    n.plus(queries, offset)?
                }
                (None, None) => queries,
            };
            if causal {
                let rule = n.less_equal(keys, positions)?;
                allow(n, rule)?;
            }
            if left >= 0 {
                let first = n.plus_number(positions, -left as f64)?;
                let rule = n.less_equal(first, keys)?;
                allow(n, rule)?;
            }
            if right >= 0 {
                let last = n.plus_number(positions, right as f64)?;
                let rule = n.less_equal(keys, last)?;
                allow(n, rule)?;
            }
        }
        if let Some(filled) = filled {
            let filled = n.reshape(filled, &[-1, 1, 1, 1])?;
            let rule = n.less(keys, filled)?;
            allow(n, rule)?;
        }
        if let Some(allowed) = allowed {
            let rules = as_bias(n, allowed, self.q)?;
            bias = Some(match bias {
                Some(bias) => n.plus(bias, rules)?,
                None => rules,
            });
        }
        Ok(bias)
    }

    // The mask as numbers, as long as the keys are many.
    fn mask(&self, n: &mut NodeCx<'_>, mask: Value) -> Result<Value> {
        let mask = if n.ty(mask) == ElementType::Boolean { as_bias(n, mask, self.q)? } else { n.convert_like(mask, self.q)? };
        let rank = n.known_rank(mask)?;
        let Some(last) = rank.checked_sub(1) else { return Ok(mask) };
        let size = |v, axis: usize| n.shape(v).dims().and_then(|d| d[axis].get());
        let (have, want) = (size(mask, last), size(self.k, 2));
        if have.is_some() && (have == want || have == Some(1)) {
            return Ok(mask);
        }
        let (have, want) = (n.size(mask, last as i64)?, n.size(self.k, 2)?);
        let missing = n.minus(want, have)?;
        let none = n.i64s(&[0])?;
        let missing = n.max(missing, none)?;
        let begin = n.i64s(&vec![0; rank])?;
        let end = if last == 0 {
            missing
        } else {
            let front = n.i64s(&vec![0; last])?;
            n.concat(&[front, missing], 0)?
        };
        let never = n.scalar_like(mask, f64::NEG_INFINITY)?;
        n.emit(Pad { pad_mode: PadMode::Constant }, &[mask, begin, end, never])
    }
}

fn windows(n: &NodeCx<'_>) -> Result<(i64, i64)> {
    Ok((n.attr("left_window_size", -1)?, n.attr("right_window_size", -1)?))
}

fn as_bias(n: &mut NodeCx<'_>, allowed: Value, like: Value) -> Result<Value> {
    let (zero, never) = (n.scalar_like(like, 0.0)?, n.scalar_like(like, f64::NEG_INFINITY)?);
    n.choose(allowed, zero, never)
}

fn rotary_embedding(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let heads = n.opt_attr("num_heads")?.filter(|&h: &i64| h > 0);
    let interleaved: bool = n.attr("interleaved", false)?;
    let turned: i64 = n.attr("rotary_embedding_dim", 0)?;
    let (x, mut cosines, mut sines) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let flat = n.known_rank(x)? == 3;
    let data = split_heads(n, x, heads)?;
    if let Some(positions) = n.opt(3)? {
        cosines = n.gather(cosines, positions, 0)?;
        sines = n.gather(sines, positions, 0)?;
    }
    let (cosines, sines) = (n.unsqueeze(cosines, &[1])?, n.unsqueeze(sines, &[1])?);
    let (moving, rest) = match turned {
        0 => (data, None),
        turned => (n.part(data, 0, turned, 3)?, Some(n.part(data, turned, i64::MAX, 3)?)),
    };
    let halves = if interleaved {
        let mut every_second = |first: i64| -> Result<Value> {
            let inputs =
                [moving, n.i64s(&[first])?, n.i64s(&[i64::MAX])?, n.i64s(&[2])?, n.i64s(&[3])?];
            n.emit(Slice, &inputs)
        };
        vec![every_second(0)?, every_second(1)?]
    } else {
        let axis = n.i64(3)?;
        n.emit_all(Split { num_splits: 2 }, &[moving, axis])?
    };
    let [a, b] = halves[..] else { return Err(n.fail("the embedding must have two halves")) };
    let (cos_a, sin_b) = (n.times(cosines, a)?, n.times(sines, b)?);
    let (sin_a, cos_b) = (n.times(sines, a)?, n.times(cosines, b)?);
    let (real, imaginary) = (n.minus(cos_a, sin_b)?, n.plus(sin_a, cos_b)?);
    let mut y = if interleaved {
        let (real, imaginary) = (n.unsqueeze(real, &[-1])?, n.unsqueeze(imaginary, &[-1])?);
        let pairs = n.concat(&[real, imaginary], -1)?;
        n.reshape(pairs, &[0, 0, 0, -1])?
    } else {
        n.concat(&[real, imaginary], 3)?
    };
    if let Some(rest) = rest {
        y = n.concat(&[y, rest], 3)?;
    }
    if flat {
        y = n.transpose(y, &[0, 2, 1, 3])?;
        y = n.reshape(y, &[0, 0, -1])?;
    }
    Ok(y.into())
}
