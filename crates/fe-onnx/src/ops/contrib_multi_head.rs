//! MultiHeadAttention of `com.microsoft` and its form for one token, DecoderMaskedMultiHeadAttention. Keys and values of the
//! past either are joined to the new ones, or lie in a buffer that the new ones are written to.

use super::attend::{Attend, bias_of, both, causal, flag, heads, joined, keep, lowest, scale};
use super::contrib::MS;
use super::kv_cache::{of_beams, overwritten};
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::{Result, Value};
use carafe_ops::movement::VariadicSplit;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(MS, "DecoderMaskedMultiHeadAttention", 1, |n| {
        let unidirectional = false;
        n.ignore(&["past_present_share_buffer", "output_qk"]);
        // The beam width of input 8 is that of the buffer of beams too.
        let positions = Places { bias: 10, mask: 3, attention_bias: 4, past: 5, past_length: 7, beams: 9 };
        n.opt(8)?;
        attention(n, &positions, unidirectional)
    }),
    rule_in(MS, "MultiHeadAttention", 1, |n| {
        let unidirectional = flag(n, "unidirectional")?;
        let positions = Places { bias: 3, mask: 4, attention_bias: 5, past: 6, past_length: 8, beams: 9 };
        attention(n, &positions, unidirectional)
    }),
];

/// Which input is what, besides query, key and value.
struct Places {
    bias: usize,
    mask: usize,
    attention_bias: usize,
    /// Keys, then values.
    past: usize,
    past_length: usize,
    beams: usize,
}

fn attention(n: &mut NodeCx<'_>, positions: &Places, unidirectional: bool) -> Result<Outputs> {
    let num_heads: i64 = n.required("num_heads")?;
    let low: f32 = n.attr("mask_filter_value", -10000.0)?;
    let scale = scale(n)?;
    let bias = n.opt(positions.bias)?;
    let (q, k, v) = projections(n, num_heads, bias)?;
    let (past_k, past_v) = (n.opt(positions.past)?, n.opt(positions.past + 1)?);
    let (length, beams) = (n.opt(positions.past_length)?, n.opt(positions.beams)?);
    let (mut k, mut v) = (Cached::new(k), Cached::new(v));
    if let (Some(past_k), Some(past_v)) = (past_k, past_v) {
        match length {
            Some(length) => {
                let length = n.convert(length, ElementType::I64)?;
                let length = n.reshape(length, &[1])?;
                k = k.written(n, past_k, length, beams)?;
                v = v.written(n, past_v, length, beams)?;
            }
            None => {
                k = k.joined(n, past_k)?;
                v = v.joined(n, past_v)?;
            }
        }
    }
    let mut bias = n.opt(positions.attention_bias)?;
    if let Some(mask) = n.opt(positions.mask)? {
        let keep = keep(n, mask, q, k.seen)?;
        let masked = bias_of(n, keep, q, f64::from(low))?;
        bias = both(n, Some(masked), bias)?;
    }
    if unidirectional {
        let keep = causal(n, q, k.seen)?;
        let low = lowest(n, q);
        let masked = bias_of(n, keep, q, low)?;
        bias = both(n, Some(masked), bias)?;
    }
    let attend = Attend { bias, scale, ..Attend::default() };
    if !n.wants_output(3) {
        let y = attend.emit(n, q, k.seen, v.seen)?;
        let y = joined(n, y)?;
        return Ok(vec![y, k.present, v.present].into());
    }
    let steps = attend.emit_steps(n, q, k.seen, v.seen)?;
    let y = joined(n, steps.output)?;
    Ok(Outputs([y, k.present, v.present, steps.scores].map(Item::Tensor).to_vec()))
}

/// Keys or values: what a query sees, and what is kept for the next step.
#[derive(Clone, Copy)]
struct Cached {
    seen: Value,
    present: Value,
}

impl Cached {
    fn new(rows: Value) -> Cached {
        Cached { seen: rows, present: rows }
    }

    fn joined(self, n: &mut NodeCx<'_>, past: Value) -> Result<Cached> {
        Ok(Cached::new(n.concat(&[past, self.seen], 2)?))
    }

    /// In a buffer of which `length` rows are in use.
    fn written(self, n: &mut NodeCx<'_>, buffer: Value, length: Value, beams: Option<Value>) -> Result<Cached> {
        let present = overwritten(n, buffer, self.seen, length)?;
        let all = match beams {
            Some(beams) => of_beams(n, present, beams, length)?,
            None => present,
        };
        let fresh = n.size(self.seen, 2)?;
        let (start, stop) = (n.i64s(&[0])?, n.plus(length, fresh)?);
        Ok(Cached { seen: n.cut(all, start, stop, 2)?, present })
    }
}

// Query, key and value with heads, from any way they may be packed.
fn projections(n: &mut NodeCx<'_>, num_heads: i64, bias: Option<Value>) -> Result<(Value, Value, Value)> {
    let q = n.input(0)?;
    let (key, value) = (n.opt(1)?, n.opt(2)?);
    let width = match n.rank(q) {
        Some(5) => n.shape(q).dim(2).get().zip(n.shape(q).dim(4).get()).map(|(heads, size)| heads * size),
        _ if key.is_none() => None,
        _ => n.shape(q).dim(2).get(),
    };
    let mut biases = [None; 3];
    if let Some(bias) = bias {
        let sizes = match width {
            Some(width) => [width, width, -1],
            None => match n.shape(bias).dim(0).get().filter(|width| width % 3 == 0) {
                Some(all) => [all / 3; 3],
                None => return Err(n.unsupported("the width of the query must be known when there is a bias")),
            },
        };
        let (axis, sizes) = (n.i64(0)?, n.i64s(&sizes)?);
        let parts = n.emit_all(VariadicSplit, &[bias, axis, sizes])?;
        biases = [0, 1, 2].map(|i| Some(parts[i]));
    }
    let biased = |n: &mut NodeCx<'_>, x: Value, i: usize| -> Result<Value> {
        match biases[i] {
            Some(b) => {
                let b = n.reshape(b, &[num_heads, 1, -1])?;
                n.plus(x, b)
            }
            None => Ok(x),
        }
    };
    // One of several that lie before the last axis.
    let unpacked = |n: &mut NodeCx<'_>, part: Value, i: usize| -> Result<Value> {
        let part = n.squeeze(part, &[3])?;
        let part = n.transpose(part, &[0, 2, 1, 3])?;
        biased(n, part, i)
    };
    let apart = |n: &mut NodeCx<'_>, x: Value, i: usize| -> Result<Value> {
        // Keys and values of another sequence come with their heads, and with their bias.
        if n.rank(x) == Some(4) {
            return Ok(x);
        }
        let x = heads(n, x, num_heads)?;
        biased(n, x, i)
    };
    let Some(key) = key else {
        let parts = match n.rank(q) {
            Some(5) => {
                let parts = n.split_equally(q, 3, 3)?;
                return Ok((unpacked(n, parts[0], 0)?, unpacked(n, parts[1], 1)?, unpacked(n, parts[2], 2)?));
            }
            Some(3) => n.split_equally(q, 2, 3)?,
            _ => return Err(n.fail("a query without key must have 3 or 5 axes")),
        };
        return Ok((apart(n, parts[0], 0)?, apart(n, parts[1], 1)?, apart(n, parts[2], 2)?));
    };
    let q = apart(n, q, 0)?;
    match value {
        Some(value) => Ok((q, apart(n, key, 1)?, apart(n, value, 2)?)),
        None if n.rank(key) == Some(5) => {
            let parts = n.split_equally(key, 3, 2)?;
            Ok((q, unpacked(n, parts[0], 1)?, unpacked(n, parts[1], 2)?))
        }
        None => Err(n.fail("input 2 (value) is required unless the key is packed")),
    }
}
