//! ScaledDotProductAttention: `softmax(scale * Q K^T + mask) V`. With `causal` the mask input is ignored, and row `i` sees
//! keys `0..=i` however many keys there are. A row that sees no key is NaN.

use super::product::{Rows, add_product, add_product_of_rows, zeros};
use crate::index::{broadcast_strides, offsets};
use crate::cost::product;
use carafe_graph::{EvalCx, InferCx, Op, Result, RowsCx, RowKind, Fact};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Attention of queries `[..., L, E]` to keys `[..., S, E]` with values `[..., S, Ev]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 13, inputs = "query, key, value, attention_mask?, scale?, sink?", heavy)]
pub struct ScaledDotProductAttention {
    /// No query sees a later key.
    pub causal: bool,
}

impl Op for ScaledDotProductAttention {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let mut same: Vec<usize> = vec![0, 1, 2];
        if cx.has(3) && !self.causal {
            let t = cx.ty(3);
            cx.require(t.is_float() || matches!(t, ElementType::Boolean | ElementType::Dynamic), || {
                format!("attention_mask must be float or boolean, found {t}")
            })?;
            if t.is_float() {
                same.push(3);
            }
        }
        same.extend((4..cx.n_inputs()).filter(|&i| i < 6));
        let ty = cx.same_type(&same)?;
        cx.require_float(0)?;
        let shape = self.output_shape(cx)?;
        cx.set(0, ty, shape);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out_shape = cx.out_shape(0)?;
        let (q, k, v) = (cx.get::<f64>(0)?, cx.get::<f64>(1)?, cx.get::<f64>(2)?);
        let (Some((batch_q, l_q, e)), Some((batch_k, s, _)), Some((batch_v, _, e_v)), Some((batch, l, _))) =
            (matrices(cx.shape(0)), matrices(cx.shape(1)), matrices(cx.shape(2)), matrices(&out_shape))
        else {
            return Err(cx.fail("query, key and value must have at least rank 3"));
        };
        let scale = if cx.has(4) { cx.float(4)? } else { 1.0 / (e as f64).sqrt() };
        let mask = self.mask(cx, &[batch, &[l, s]].concat())?;
        let sink = cx.has(5).then(|| expand(cx, 5, &[batch, &[l, 1]].concat())).transpose()?;

        let mut out: Vec<f64> = zeros(&out_shape)?;
        if out.is_empty() {
            drop((q, k, v));
            return cx.put(0, &out_shape, out);
        }
        let starts = |own: &[usize]| offsets(batch, &broadcast_strides(own, batch));
        let starts = starts(batch_q).zip(starts(batch_k)).zip(starts(batch_v));
        let mut products: Vec<f64> = zeros(&[l_q, s])?;
        let mut scores: Vec<f64> = zeros(&[l, s])?;
        for (i, (out, ((at_q, at_k), at_v))) in out.chunks_exact_mut(l * e_v).zip(starts).enumerate() {
            let (q, k) = (Rows::new(&q[at_q * l_q * e..], e), Rows::new(&k[at_k * s * e..], e));
            products.fill(0.0);
            add_product_of_rows(&mut products, q, k, l_q, e, s);
            for row in 0..l {
                let scores = &mut scores[row * s..][..s];
                // A mask may have more rows than there are queries, when there is one query.
                scores.copy_from_slice(&products[if l_q == 1 { 0 } else { row } * s..][..s]);
                let hidden = |column: usize| self.causal && column > row;
                for (column, x) in scores.iter_mut().enumerate() {
                    let shift = mask.as_ref().map_or(0.0, |m| m[(i * l + row) * s + column]);
                    *x = if hidden(column) { f64::NEG_INFINITY } else { *x * scale + shift };
                }
                softmax(scores, sink.as_ref().map(|sink| sink[i * l + row]));
            }
            add_product(out, Rows::new(&scores, s), Rows::new(&v[at_v * s * e_v..], e_v), l, s, e_v);
        }
        drop((q, k, v));
        cx.put(0, &out_shape, out)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        let all = (0..3).all(|i| cx.kinds()[i] == RowKind::Rows && cx.rank(i) >= 3);
        match all && cx.kinds().len() == 3 {
            true => Ok(()),
            false => Err("only query, key and value may be rows, with at least 3 dimensions".into()),
        }
    }
    fn macs(&self, inputs: &[&Fact], _: &[&Fact]) -> Option<u64> {
        let shape = |i: usize| inputs.get(i)?.shape.to_static();
        let (q, k, v) = (shape(0)?, shape(1)?, shape(2)?);
        let length = *k.get(k.len().checked_sub(2)?)? as u64;
        let scores = product(&q)?.checked_mul(length)?;
        let read = product(q.get(..q.len().checked_sub(1)?)?)?.checked_mul(length)?.checked_mul(*v.last()? as u64)?;
        scores.checked_add(read)
    }
}

impl ScaledDotProductAttention {
    fn output_shape(&self, cx: &InferCx<'_>) -> Result<PartialShape> {
        let fail = |input: usize| {
            cx.fail(format!("{} [{}] does not fit query [{}]", cx.port_name(input), cx.shape(input), cx.shape(0)))
        };
        let (mut batch, mut l, mut e) = (PartialShape::dynamic(), Dim::ANY, Dim::ANY);
        let (mut s, mut e_v) = (Dim::ANY, Dim::ANY);
        for input in 0..3 {
            let Some(dims) = cx.shape(input).dims() else {
                batch = PartialShape::dynamic();
                continue;
            };
            let Some((own_batch, rows, columns)) = matrices(dims) else {
                return Err(cx.fail(format!(
                    "{} must have at least rank 3, found [{}]",
                    cx.port_name(input),
                    cx.shape(input)
                )));
            };
            let own = PartialShape::new(own_batch.iter().copied());
            // Until the query is seen, or where a rank is unknown, nothing is known of the batch.
            batch = match (input, batch.rank()) {
                (0, _) => own,
                (_, None) => PartialShape::dynamic(),
                _ => batch.broadcast(&own).ok_or_else(|| fail(input))?,
            };
            match input {
                0 => (l, e) = (rows, columns),
                1 => (s, e) = (rows, e.merge(columns).ok_or_else(|| fail(1))?),
                _ => (s, e_v) = (s.merge(rows).ok_or_else(|| fail(2))?, columns),
            }
        }
        let mask = (cx.has(3) && !self.causal).then(|| cx.shape(3));
        if mask.is_some_and(|m| m.rank().is_none()) {
            // It may stretch the batch and even have more axes than the query.
            batch = PartialShape::dynamic();
        }
        if let Some(dims) = mask.and_then(PartialShape::dims).filter(|d| !d.is_empty()) {
            let [own @ .., rows, columns] = dims else { return Err(fail(3)) };
            l = l.broadcast(*rows).ok_or_else(|| fail(3))?;
            // Only the mask stretches here: it cannot bring keys that are not there.
            cx.require(columns.contains(1) || s.compatible(*columns), || fail(3).message().to_string())?;
            batch = batch.broadcast(&PartialShape::new(own.iter().copied())).ok_or_else(|| fail(3))?;
        }
        if cx.has(4) {
            let one = cx.shape(4).dims().is_none_or(|d| d.len() <= 1 && d.iter().all(|d| d.contains(1)));
            cx.require(one, || format!("scale must have one element, found [{}]", cx.shape(4)))?;
        }
        if cx.has(5) {
            self.check_sink(cx, &batch, l)?;
        }
        let Some(dims) = batch.dims() else { return Ok(PartialShape::dynamic()) };
        Ok(PartialShape::new(dims.iter().copied().chain([l, e_v])))
    }

    fn check_sink(&self, cx: &InferCx<'_>, batch: &PartialShape, l: Dim) -> Result<()> {
        let (Some(sink), Some(batch)) = (cx.shape(5).dims(), batch.dims()) else { return Ok(()) };
        let wanted: Vec<Dim> = batch.iter().copied().chain([l, Dim::known(1)]).collect();
        let fits = sink.len() == wanted.len()
            && sink.iter().zip(&wanted).all(|(own, wanted)| own.contains(1) || own.compatible(*wanted));
        cx.require(fits && sink.last().is_some_and(|d| d.contains(1)), || {
            format!("sink must broadcast to [{}], found [{}]", PartialShape::new(wanted), cx.shape(5))
        })
    }

    /// What is added to the scores, in their full shape.
    fn mask(&self, cx: &EvalCx<'_>, scores: &[usize]) -> Result<Option<Vec<f64>>> {
        if self.causal || !cx.has(3) {
            return Ok(None);
        }
        let mut mask = expand(cx, 3, scores)?;
        if cx.ty(3) == ElementType::Boolean {
            mask.iter_mut().for_each(|m| *m = if *m == 0.0 { f64::NEG_INFINITY } else { 0.0 });
        }
        Ok(Some(mask))
    }
}

/// Dimensions before the last two, rows and columns.
fn matrices<D: Copy>(dims: &[D]) -> Option<(&[D], D, D)> {
    match dims {
        [batch @ .., rows, columns] if !batch.is_empty() => Some((batch, *rows, *columns)),
        _ => None,
    }
}

/// An input repeated to the given shape.
fn expand(cx: &EvalCx<'_>, input: usize, shape: &[usize]) -> Result<Vec<f64>> {
    let mut out: Vec<f64> = zeros(shape)?;
    let data = cx.get::<f64>(input)?;
    for (y, i) in out.iter_mut().zip(offsets(shape, &broadcast_strides(cx.shape(input), shape))) {
        *y = data[i];
    }
    Ok(out)
}

/// Softmax in place; the sink takes a share that belongs to no key.
fn softmax(scores: &mut [f64], sink: Option<f64>) {
    let largest = scores.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
    let mut sum = sink.map_or(0.0, |sink| (sink - largest).exp());
    for x in scores.iter_mut() {
        *x = (*x - largest).exp();
        sum += *x;
    }
    scores.iter_mut().for_each(|x| *x /= sum);
}
