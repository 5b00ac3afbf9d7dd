//! RandomUniform: numbers in `[min, max)`. With alignment `tensorflow` one evaluation continues where the one before
//! stopped; with `pytorch` every evaluation starts again from the seed.

use super::generator::{Generator, Philox, Twister, key};
use super::rounding::round_to;
use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

carafe_graph::attr_enum! {
    /// Whose numbers come out.
    pub enum Alignment { Tensorflow = "tensorflow", Pytorch = "pytorch" }
}

/// Uniformly distributed random numbers.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 8, inputs = "out_shape, min_val, max_val", random, shape_inputs = "0")]
pub struct RandomUniform {
    /// Type of the numbers: a float, i32 or i64.
    pub output_type: ElementType,
    /// Seed of this operation.
    #[attr(default = 0)]
    pub op_seed: u64,
    /// Seed of the whole model; with both seeds 0 the numbers differ from run to run.
    #[attr(default = 0)]
    pub global_seed: u64,
    /// Whose generator and conversion to use.
    #[attr(default = Alignment::Tensorflow)]
    pub alignment: Alignment,
}

impl Op for RandomUniform {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = self.output_type;
        let fits = matches!(
            ty,
            ElementType::F32
                | ElementType::F16
                | ElementType::Bf16
                | ElementType::F64
                | ElementType::I32
                | ElementType::I64
        );
        cx.require(fits, || format!("attribute `output_type` must be f16, bf16, f32, f64, i32 or i64, found {ty}"))?;
        cx.require_integer(0)?;
        cx.require_rank(0, &[1])?;
        for i in 1..3 {
            let found = cx.ty(i);
            cx.require(ElementType::merge(found, ty).is_some(), || {
                format!("{} must have the output type {ty}, found {found}", cx.port_name(i))
            })?;
            cx.require_rank(i, &[0, 1])?;
            cx.require(cx.shape(i).elements().is_none_or(|n| n == 1), || {
                format!("{} must have one element, found [{}]", cx.port_name(i), cx.shape(i))
            })?;
        }
        let bounds = match ty.is_integer() {
            true => cx.int(1).zip(cx.int(2)).map(|(a, b)| (a < b, format!("{a} and {b}"))),
            false => cx.float(1).zip(cx.float(2)).map(|(a, b)| (a < b, format!("{a} and {b}"))),
        };
        if let Some((ordered, found)) = bounds {
            cx.require(ordered, || format!("min_val must be below max_val, found {found}"))?;
        }
        let shape = match (cx.dims_value(0), cx.dim(0, 0).size()) {
            (Some(dims), _) => {
                let negative = dims.iter().find(|d| d.max().is_some_and(|m| m < 0));
                cx.require(negative.is_none(), || "out_shape must not be negative".to_string())?;
                PartialShape::new(dims.into_iter().map(Dim::clamp_shape))
            }
            (None, Some(rank)) if rank <= 64 => PartialShape::any_of_rank(rank),
            _ => PartialShape::dynamic(),
        };
        cx.set(0, ty, shape);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.out_shape(0)?;
        let key = key(self.global_seed, self.op_seed);
        let mut generator = match self.alignment {
            Alignment::Tensorflow => Generator::Philox(Philox::new(key, self.op_seed, *cx.random_state())),
            Alignment::Pytorch => Generator::Twister(Box::new(Twister::new(key))),
        };
        if self.output_type.is_integer() {
            let (min, max) = (cx.int(1)?, cx.int(2)?);
            let mut out = filled(&shape, 0i64)?;
            self.integers(&mut generator, min, max, &mut out);
            cx.put(0, &shape, out)?;
        } else {
            let (min, max) = (cx.float(1)?, cx.float(2)?);
            let mut out = filled(&shape, 0f64)?;
            fill_floats(&mut generator, self.alignment, self.output_type, (min, max), &mut out);
            cx.put(0, &shape, out)?;
        }
        if let Generator::Philox(g) = &generator {
            *cx.random_state() = g.next_state(shape.iter().product::<usize>() as u64);
        }
        Ok(())
    }
}

impl RandomUniform {
    // Remainders by an unsigned range, then shifted: with a range beyond the signed type this wraps, as it does elsewhere.
    fn integers(&self, g: &mut Generator, min: i64, max: i64, out: &mut [i64]) {
        let range = max.wrapping_sub(min);
        let narrow = self.output_type == ElementType::I32;
        // PyTorch draws one word for a 64-bit number whose bounds fit into 32 bits.
        let one_word = self.alignment == Alignment::Pytorch && min.max(max) <= u32::MAX as i64;
        for chunk in out.chunks_mut(if narrow || one_word { 4 } else { 2 }) {
            let words = g.next();
            for (i, slot) in chunk.iter_mut().enumerate() {
                let shifted = |x: u64| ((x % range as u64) as i64).wrapping_add(min);
                *slot = if narrow {
                    (words[i] % range as u32).wrapping_add(min as u32) as i32 as i64
                } else if one_word {
                    (words[i] as i64).wrapping_rem(range).wrapping_add(min)
                } else if self.alignment == Alignment::Pytorch {
                    shifted(joined(words[2 * i], words[2 * i + 1]))
                } else {
                    shifted(joined(words[2 * i + 1], words[2 * i]))
                };
            }
        }
    }
}

/// Fills with floats of the given type in `[bounds.0, bounds.1)`.
pub(super) fn fill_floats(
    g: &mut Generator,
    alignment: Alignment,
    ty: ElementType,
    bounds: (f64, f64),
    out: &mut [f64],
) {
    let (min, max) = bounds;
    let range = round_to(ty, max - min);
    // PyTorch scales halves in f32 and rounds once.
    let step = if alignment == Alignment::Pytorch && ty != ElementType::F64 { ElementType::F32 } else { ty };
    let scaled = |unit: f64| round_to(ty, round_to(step, round_to(step, unit * range) + min));
    for chunk in out.chunks_mut(if ty == ElementType::F64 { 2 } else { 4 }) {
        let words = g.next();
        for (i, slot) in chunk.iter_mut().enumerate() {
            let unit = match (alignment, ty) {
                (Alignment::Tensorflow, ElementType::F64) => {
                    low_bits(joined(words[2 * i] & 0xF_FFFF, words[2 * i + 1]), 52)
                }
                (Alignment::Tensorflow, ElementType::F16) => low_bits(words[i] as u64, 10),
                (Alignment::Tensorflow, ElementType::Bf16) => low_bits(words[i] as u64, 7),
                (Alignment::Tensorflow, _) => low_bits(words[i] as u64, 23),
                (Alignment::Pytorch, ElementType::F64) => low_bits(joined(words[2 * i], words[2 * i + 1]), 53),
                (Alignment::Pytorch, ElementType::F16) => low_bits(words[i] as u64, 11),
                (Alignment::Pytorch, ElementType::Bf16) => low_bits(words[i] as u64, 8),
                (Alignment::Pytorch, _) => low_bits(words[i] as u64, 24),
            };
            *slot = scaled(unit);
        }
    }
}

fn joined(high: u32, low: u32) -> u64 {
    ((high as u64) << 32) | low as u64
}

// The lowest bits as a fraction of one; exact, since no more than 53 are used.
fn low_bits(x: u64, bits: u32) -> f64 {
    (x & ((1 << bits) - 1)) as f64 / (1u64 << bits) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_graph::{EvalEnv, Model, run};
    use carafe_tensor::Tensor;

    // What two runs with one memory give.
    fn twice(alignment: Alignment) -> [Vec<f32>; 2] {
        let mut m = Model::new("m");
        let shape = m.constant("shape", Tensor::from_slice(&[1], &[7i64]).unwrap()).unwrap();
        let (min, max) = (m.constant("min", Tensor::scalar(0f32)), m.constant("max", Tensor::scalar(1f32)));
        let op = RandomUniform { output_type: ElementType::F32, op_seed: 10, global_seed: 150, alignment };
        let r = m.add("random", op, &[shape, min.unwrap(), max.unwrap()]).unwrap();
        m.result("result", r.into()).unwrap();
        let mut env = EvalEnv::default();
        [(); 2].map(|()| run(&m, &[], &mut env).unwrap()[0].as_slice::<f32>().unwrap().to_vec())
    }

    #[test]
    fn a_second_run_goes_on_where_openvino_goes_on() {
        let [first, second] = twice(Alignment::Tensorflow);
        assert_eq!(first, [0.7011236, 0.30539632, 0.93931055, 0.9456035, 0.11694777, 0.50770056, 0.5197197]);
        assert_eq!(second, [0.2798251, 0.28480327, 0.03546655, 0.9141202, 0.015092254, 0.87527406, 0.71739197]);
    }

    #[test]
    fn a_second_run_repeats_the_numbers_of_pytorch() {
        let [first, second] = twice(Alignment::Pytorch);
        assert_eq!(first, second);
    }
}
