//! Multinomial: class numbers drawn from rows of probabilities, which need not sum to 1. A sample falls into the first class
//! whose cumulative probability is not below it. Every evaluation draws the same numbers from the same seeds.

use super::generator::{Generator, Philox, key};
use super::random_uniform::{Alignment, fill_floats};
use super::rounding::round_to;
use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Draws class numbers `[batch, samples]` from `[batch, classes]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 13, inputs = "probs, num_samples", random)]
pub struct Multinomial {
    /// Type of the class numbers: i32 or i64.
    pub convert_type: ElementType,
    /// A class may be drawn more than once.
    pub with_replacement: bool,
    /// The input holds logarithms of probabilities.
    pub log_probs: bool,
    /// Seed of the whole model; with both seeds 0 the numbers differ from run to run.
    #[attr(default = 0)]
    pub global_seed: u64,
    /// Seed of this operation.
    #[attr(default = 0)]
    pub op_seed: u64,
}

impl Op for Multinomial {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = self.convert_type;
        cx.require(matches!(ty, ElementType::I32 | ElementType::I64), || {
            format!("attribute `convert_type` must be i32 or i64, found {ty}")
        })?;
        cx.require_float(0)?;
        cx.require_integer(1)?;
        cx.require_rank(0, &[2])?;
        cx.require_rank(1, &[0, 1])?;
        cx.require(cx.shape(1).elements().is_none_or(|n| n == 1), || {
            format!("{} must have one element, found [{}]", cx.port_name(1), cx.shape(1))
        })?;
        let samples = cx.dims_value(1).and_then(|d| d.first().copied()).unwrap_or(Dim::ANY);
        cx.require(samples.max().is_none_or(|m| m >= 0), || {
            format!("num_samples must not be negative, found {samples}")
        })?;
        let classes = cx.dim(0, 1);
        let enough = self.with_replacement || classes.max().is_none_or(|c| samples.min() <= c);
        cx.require(enough, || format!("cannot draw {samples} of {classes} classes without replacement"))?;
        let shape = match cx.rank(0) {
            Some(_) => PartialShape::new([cx.dim(0, 0), samples.clamp_shape()]),
            None => PartialShape::dynamic(),
        };
        cx.set(0, ty, shape);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let ty = cx.ty(0);
        let (batch, classes) = (cx.shape(0)[0], cx.shape(0)[1]);
        let samples = usize::try_from(cx.int(1)?).map_err(|_| cx.fail("num_samples must not be negative"))?;
        let shape = [batch, samples];
        let mut uniform = filled(&shape, 0f64)?;
        let key = key(self.global_seed, self.op_seed);
        let mut generator = Generator::Philox(Philox::new(key, self.op_seed, [0, 0]));
        fill_floats(&mut generator, Alignment::Tensorflow, ty, (0.0, 1.0), &mut uniform);
        let mut out = filled(&shape, 0i64)?;
        let probs = cx.get::<f64>(0)?;
        for n in 0..if out.is_empty() { 0 } else { batch } {
            let mut cdf = self.cumulative(ty, &probs[n * classes..(n + 1) * classes]);
            for at in n * samples..(n + 1) * samples {
                // A row without any probability has no class to draw; it gives 0.
                let Some(class) = cdf.iter().position(|&c| uniform[at] <= c) else { continue };
                out[at] = class as i64;
                if !self.with_replacement {
                    remove(ty, &mut cdf, class);
                }
            }
        }
        drop(probs);
        cx.put(0, &shape, out)
    }
}

impl Multinomial {
    fn cumulative(&self, ty: ElementType, probs: &[f64]) -> Vec<f64> {
        let mut sum = 0.0;
        let mut cdf: Vec<f64> = probs
            .iter()
            .map(|&p| {
                sum = round_to(ty, sum + if self.log_probs { round_to(ty, p.exp()) } else { p });
                sum
            })
            .collect();
        cdf.iter_mut().for_each(|c| *c = round_to(ty, *c / sum));
        cdf
    }
}

// Takes a class out and scales the others up to 1 again.
fn remove(ty: ElementType, cdf: &mut [f64], class: usize) {
    let before = if class > 0 { cdf[class - 1] } else { 0.0 };
    let probability = round_to(ty, cdf[class] - before);
    let rest = round_to(ty, 1.0 - probability);
    for (k, c) in cdf.iter_mut().enumerate() {
        if k >= class {
            *c = round_to(ty, *c - probability);
        }
        *c = round_to(ty, *c / rest);
    }
}
