//! RotaryEmbedding: pairs of numbers along the last axis are turned by the angles whose cosines and sines are given. Made by
//! devices, not meant for files.

use crate::index::{broadcast_strides, offsets};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::PartialShape;

/// `(a * cos - b * sin, b * cos + a * sin)` for each pair `a`, `b`. The tables broadcast to the data on all axes but the
/// last, on which they have a number for each pair, or for each number that is turned.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data, cos, sin")]
pub struct RotaryEmbedding {
    /// So many numbers from the start of the last axis are turned, an even count; the others stay.
    pub rotated: usize,
    /// A pair is two neighbours; otherwise the second is half of `rotated` further.
    pub interleaved: bool,
}

impl RotaryEmbedding {
    // Whether a table has a number for each number.
    fn is_full(&self, width: usize) -> bool {
        width == self.rotated
    }
}

impl Op for RotaryEmbedding {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        let ty = cx.same_type(&[0, 1, 2])?;
        let n = self.rotated;
        cx.require(n > 0 && n.is_multiple_of(2), || {
            format!("attribute `rotated` must be even and positive, found {n}")
        })?;
        let mut lead: Option<PartialShape> = None;
        for i in 0..3 {
            let Some(dims) = cx.shape(i).dims() else {
                cx.set(0, ty, PartialShape::dynamic());
                return Ok(());
            };
            let Some((last, own)) = dims.split_last() else {
                return Err(cx.fail(format!("{} must not be a scalar", cx.port_name(i))));
            };
            let fits = |size: usize| if i == 0 { size >= n } else { size == n || size == n / 2 };
            cx.require(last.size().is_none_or(fits), || {
                format!("{} of width {last} does not fit {n} turned numbers", cx.port_name(i))
            })?;
            let own = PartialShape::new(own.iter().copied());
            lead = match lead {
                None => Some(own),
                Some(before) => Some(before.broadcast(&own).ok_or_else(|| {
                    cx.fail(format!("shapes [{before}] and [{own}] do not broadcast"))
                })?),
            };
        }
        let lead = lead.as_ref().and_then(PartialShape::dims).unwrap_or_default().to_vec();
        let last = cx.shape(0).dims().and_then(|d| d.last().copied());
        cx.set(0, ty, PartialShape::new(lead.into_iter().chain(last)));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let width = cx.shape(0).last().copied().unwrap_or(0);
        let mut lead: Vec<usize> = vec![];
        for i in 0..3 {
            let own = PartialShape::of(cx.shape(i).split_last().map_or(&[][..], |(_, own)| own));
            let both = PartialShape::of(&lead).broadcast(&own).and_then(|s| s.to_static());
            lead = both.ok_or_else(|| cx.fail("tables that do not broadcast"))?;
        }
        let (n, half) = (self.rotated, self.rotated / 2);
        if width < n || (1..3).any(|i| !matches!(cx.shape(i).last(), Some(&w) if w == n || w == half)) {
            return Err(cx.fail(format!("sizes that do not fit {n} turned numbers")));
        }
        // Where the rows of each input begin.
        let rows = |i: usize| {
            let shape = cx.shape(i);
            let own = &shape[..shape.len() - 1];
            let step = shape[shape.len() - 1];
            offsets(&lead, &broadcast_strides(own, &lead)).map(move |at| at * step)
        };
        let (x, cos, sin) = (cx.get::<f64>(0)?, cx.get::<f64>(1)?, cx.get::<f64>(2)?);
        let full = [1, 2].map(|i| self.is_full(cx.shape(i).last().copied().unwrap_or(0)));
        let mut y = Vec::with_capacity(lead.iter().product::<usize>() * width);
        for ((x_at, cos_at), sin_at) in rows(0).zip(rows(1)).zip(rows(2)) {
            let (x, start) = (&x[x_at..x_at + width], y.len());
            y.extend_from_slice(x);
            for pair in 0..half {
                let (a, b) = if self.interleaved { (2 * pair, 2 * pair + 1) } else { (pair, half + pair) };
                let cos = |i: usize| cos[cos_at + if full[0] { i } else { pair }];
                let sin = |i: usize| sin[sin_at + if full[1] { i } else { pair }];
                y[start + a] = x[a] * cos(a) - x[b] * sin(a);
                y[start + b] = x[b] * cos(b) + x[a] * sin(b);
            }
        }
        lead.push(width);
        cx.put(0, &lead, y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_graph::Model;
    use carafe_tensor::{ElementType, Tensor};

    fn turned(interleaved: bool, width: usize) -> Result<Vec<f32>> {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2, 5]))?;
        let table = |m: &mut Model, name: &str, v: f32| m.constant(name, Tensor::from_slice(&[width], &vec![v; width])?);
        let (cos, sin) = (table(&mut m, "cos", 0.0)?, table(&mut m, "sin", 1.0)?);
        let y = m.add("y", RotaryEmbedding { rotated: 4, interleaved }, &[x, cos, sin])?;
        m.result("r", y.into())?;
        let x: Vec<f32> = (0..10).map(|i| i as f32).collect();
        Ok(m.evaluate(&[Tensor::from_slice(&[2, 5], &x)?])?[0].to_vec::<f32>()?.into_owned())
    }

    #[test]
    fn a_quarter_turn_swaps_the_numbers_of_a_pair() {
        for width in [2, 4] {
            assert_eq!(turned(false, width).unwrap(), [-2.0, -3.0, 0.0, 1.0, 4.0, -7.0, -8.0, 5.0, 6.0, 9.0]);
            assert_eq!(turned(true, width).unwrap(), [-1.0, 0.0, -3.0, 2.0, 4.0, -6.0, 5.0, -8.0, 7.0, 9.0]);
        }
    }

    #[test]
    fn tables_of_another_width_are_refused() {
        assert!(turned(false, 3).unwrap_err().to_string().contains("does not fit 4"));
    }
}
