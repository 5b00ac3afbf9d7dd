//! FakeQuantize: limits data to an input range, rounds it to one of `levels` equal steps, and stretches the steps over an
//! output range. Every step is rounded to f32 in the order written here: in f64, ties such as 0.015 in 0..2.55 fall the
//! other way. The input range may be inverted or empty; limits that are known are no NaN.

use crate::arithmetic::{AutoBroadcast, Meeting};
use crate::index::offsets;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::Number;

/// Rounds data to equal steps of a range.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, input_low, input_high, output_low, output_high", broadcasts, quantizes)]
pub struct FakeQuantize {
    /// How many values the output can take, at least 2.
    pub levels: u64,
    /// How the shapes of the limits meet that of the data.
    #[attr(default = AutoBroadcast::Numpy)]
    pub auto_broadcast: AutoBroadcast,
    /// Axis of the data where the limits begin, with `pdpd` only: 0 when left out, -1 aligns the last axes.
    #[attr(name = "auto_broadcast.auto_broadcast_axis", default = None)]
    pub auto_broadcast_axis: Option<i64>,
}

impl FakeQuantize {
    fn meeting(&self) -> Meeting {
        Meeting::new(self.auto_broadcast, self.auto_broadcast_axis)
    }

    /// Steps of a limit along the axes of the data. Leading ones beyond the rank of the data are ignored, and no limit widens
    /// the data.
    fn steps(&self, data: &[usize], limit: &[usize]) -> Option<Vec<usize>> {
        let extra = match self.auto_broadcast {
            AutoBroadcast::Numpy => limit.len().saturating_sub(data.len()),
            _ => 0,
        };
        match self.auto_broadcast {
            _ if limit[..extra].iter().any(|&n| n != 1) => None,
            AutoBroadcast::None if data != limit => None,
            _ => self.meeting().strides(&limit[extra..], data, false),
        }
    }
}

impl Op for FakeQuantize {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let levels = self.levels;
        cx.require(levels >= 2, || format!("attribute `levels` must be at least 2, found {levels}"))?;
        cx.require_number(0)?;
        for input in 1..5 {
            cx.require_number(input)?;
            let (data, limit) = (cx.shape(0), cx.shape(input));
            let fits = match (data.to_static(), limit.to_static()) {
                (Some(data), Some(limit)) => self.steps(&data, &limit).is_some(),
                _ => self.meeting().shape(data, limit).is_some(),
            };
            cx.require(fits, || {
                format!("{} of shape [{limit}] does not fit data of shape [{data}]", cx.port_name(input))
            })?;
            // An infinite limit has a meaning, such as one step for all; this has none.
            let known = cx.tensor(input).and_then(|t| t.to_vec::<f64>().ok());
            if let Some((at, x)) = known.iter().flat_map(|all| all.iter().enumerate()).find(|(_, x)| x.is_nan()) {
                let about = format!("{} holds {x} at position {at}", cx.port_name(input));
                return Err(cx.fail(format!("{about}; expected a number")));
            }
        }
        cx.output_like(0, 0);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        with_float!(cx.ty(0), T => {
            let data = self.quantized::<T>(cx, &shape)?;
            cx.put(0, &shape, data)
        })
    }
}

impl FakeQuantize {
    fn quantized<T: Number>(&self, cx: &EvalCx<'_>, shape: &[usize]) -> Result<Vec<T>> {
        let mut limits = Vec::with_capacity(4);
        for input in 1..5 {
            let steps = self.steps(shape, cx.shape(input)).ok_or_else(|| {
                cx.fail(format!("limits of shape {:?} do not fit data of shape {shape:?}", cx.shape(input)))
            })?;
            limits.push((cx.get::<T>(input)?, offsets(shape, &steps)));
        }
        let steps = T::from_u64(self.levels - 1);
        let data = cx.get::<T>(0)?;
        let quantized = data.iter().map(|&x| {
            // Every walk is as long as the data.
            let mut next = |i: usize| limits[i].1.next().map_or(x, |at| limits[i].0[at]);
            quantize(x, [next(0), next(1)], [next(2), next(3)], steps)
        });
        Ok(quantized.collect())
    }
}

fn quantize<T: Number>(x: T, [il, ih]: [T; 2], [ol, oh]: [T; 2], steps: T) -> T {
    let (low, high) = if il < ih { (il, ih) } else { (ih, il) };
    if x <= low {
        ol
    } else if x > high {
        oh
    } else {
        let step = ((x - il) / (ih - il) * steps).to_f64().round_ties_even();
        T::from_f64(step) / steps * (oh - ol) + ol
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_go_to_the_even_step() {
        let y = [0.5, 1.5, 2.5, -1.0, 3.5].map(|x| quantize(x, [0.0, 3.0], [10.0, 40.0], 3.0));
        assert_eq!(y, [10.0, 30.0, 30.0, 10.0, 40.0]);
        assert_eq!(quantize(0.015, [0.0, 2.55], [0.0, 2.55], 255.0), 0.020000001f32);
    }

    #[test]
    fn ranges_may_be_inverted_or_empty() {
        assert_eq!([0.0, 0.5, 1.0, 2.0].map(|x| quantize(x, [1.0, 0.0], [0.0, 10.0], 2.0)), [0.0, 5.0, 0.0, 10.0]);
        assert_eq!([0.5, 1.0, 2.0].map(|x| quantize(x, [1.0, 1.0], [0.0, 10.0], 2.0)), [0.0, 0.0, 10.0]);
    }
}
