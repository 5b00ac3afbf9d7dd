//! RMSNorm: divides by the root of the mean of squares over the axes of input 1; the optional input is a factor that
//! broadcasts into the data. Made by devices, not meant for files.

use crate::index::{broadcast_strides, offsets};
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis};
use carafe_tensor::strides;

/// `x / sqrt(mean(x^2) + eps) * gamma`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "RMSNorm", opset = "carafe", inputs = "data, axes, gamma?", channel = "-1")]
pub struct RmsNorm {
    /// Added to the mean.
    pub eps: f32,
}

impl Op for RmsNorm {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        cx.require_integer(1)?;
        cx.require_rank(1, &[0, 1])?;
        let eps = self.eps;
        cx.require(eps >= 0.0, || format!("attribute `eps` must be at least 0, found {eps}"))?;
        if let (Some(axes), Some(rank)) = (cx.ints(1), cx.rank(0)) {
            axes.iter().try_for_each(|&a| normalize_axis(a, rank).map(|_| ()))?;
        }
        if cx.has(2) {
            cx.same_type(&[0, 2])?;
            if let (Some(x), Some(gamma)) = (cx.shape(0).to_static(), cx.shape(2).to_static()) {
                let lead = x.len().checked_sub(gamma.len());
                let fits = lead.is_some_and(|lead| x[lead..].iter().zip(&gamma).all(|(x, g)| *g == 1 || g == x));
                cx.require(fits, || format!("gamma {gamma:?} does not broadcast into {x:?}"))?;
            }
        }
        cx.output_like(0, 0);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let mut folded = vec![false; shape.len()];
        for axis in cx.ints(1)? {
            folded[normalize_axis(axis, shape.len())?] = true;
        }
        let kept: Vec<usize> = shape.iter().zip(&folded).map(|(&n, &f)| if f { 1 } else { n }).collect();
        let steps: Vec<usize> =
            strides(&kept).into_iter().zip(&folded).map(|(step, &f)| if f { 0 } else { step }).collect();
        let size: usize = shape.iter().zip(&folded).filter(|(_, f)| **f).map(|(n, _)| n).product();
        let mut x = cx.get::<f64>(0)?.into_owned();
        let mut sums = vec![0.0; kept.iter().product()];
        for (x, at) in x.iter().zip(offsets(&shape, &steps)) {
            sums[at] += x * x;
        }
        let scales: Vec<f64> = sums.iter().map(|s| 1.0 / (s / size as f64 + f64::from(self.eps)).sqrt()).collect();
        for (x, at) in x.iter_mut().zip(offsets(&shape, &steps)) {
            *x *= scales[at];
        }
        if cx.has(2) {
            let gamma = cx.get::<f64>(2)?;
            let steps = broadcast_strides(cx.shape(2), &shape);
            for (x, at) in x.iter_mut().zip(offsets(&shape, &steps)) {
                *x *= gamma[at];
            }
        }
        cx.put(0, &shape, x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_graph::Model;
    use carafe_tensor::{ElementType, PartialShape, Tensor};

    fn model(gamma: &[usize]) -> Result<Model> {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2, 2]))?;
        let axes = m.constant("axes", Tensor::from_slice(&[1], &[-1i64])?)?;
        let n: usize = gamma.iter().product();
        let gamma = m.constant("gamma", Tensor::from_slice(gamma, &vec![2.0f32; n])?)?;
        let y = m.add("y", RmsNorm { eps: 0.0 }, &[x, axes, gamma])?;
        m.result("r", y.into())?;
        Ok(m)
    }

    #[test]
    fn rows_get_a_mean_square_of_one_times_gamma() {
        let x = Tensor::from_slice(&[2, 2], &[3.0f32, -3.0, 1.0, 7.0]).unwrap();
        let y = model(&[2]).unwrap().evaluate(&[x]).unwrap();
        assert_eq!(y[0].as_slice::<f32>().unwrap(), [2.0, -2.0, 0.4, 2.8]);
    }

    #[test]
    fn a_factor_that_widens_is_refused() {
        assert!(model(&[3, 1, 2]).unwrap_err().to_string().contains("does not broadcast"));
    }
}
