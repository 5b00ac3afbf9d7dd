//! MVN: subtracts the mean and divides by the standard deviation, both over chosen axes. The variance is biased, and
//! opset2 always adds `eps` under the root.

use super::moments::{Groups, check_axes_input, check_epsilon, normalize_axes};
use carafe_graph::{EvalCx, InferCx, Op, Result};

carafe_graph::attr_enum! {
    /// Where `eps` is added.
    pub enum EpsMode {
        /// To the variance.
        InsideSqrt = "INSIDE_SQRT",
        /// To the standard deviation.
        OutsideSqrt = "OUTSIDE_SQRT",
    }
}

/// Mean-variance normalization over the axes of input 1.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "MVN", since = 6, inputs = "data, axes")]
pub struct Mvn {
    /// Keeps the division finite.
    pub eps: f32,
    /// Divide by the standard deviation.
    pub normalize_variance: bool,
    /// Where `eps` is added.
    pub eps_mode: EpsMode,
}

impl Op for Mvn {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_number(0)?;
        check_epsilon(cx, "eps", self.eps)?;
        check_axes_input(cx, 1)?;
        cx.output_like(0, 0);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let axes = normalize_axes(&cx.ints(1)?, cx.shape(0).len())?;
        normalize(cx, &axes, self.normalize_variance.then_some((self.eps, self.eps_mode)))
    }
}

/// Mean-variance normalization over the spatial axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "MVN", since = 2, until = 5)]
pub struct MvnV2 {
    /// Keeps the division finite.
    pub eps: f32,
    /// Over the channels too.
    pub across_channels: bool,
    /// Divide by the standard deviation.
    pub normalize_variance: bool,
    /// The axes themselves; replaces what `across_channels` says.
    #[attr(default = Vec::new())]
    pub reduction_axes: Vec<i64>,
}

impl Op for MvnV2 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_number(0)?;
        check_epsilon(cx, "eps", self.eps)?;
        if let Some(rank) = cx.rank(0) {
            normalize_axes(&self.reduction_axes, rank)?;
        }
        cx.output_like(0, 0);
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let rank = cx.shape(0).len();
        let axes = if self.reduction_axes.is_empty() {
            (if self.across_channels { 1 } else { 2 }..rank).collect()
        } else {
            normalize_axes(&self.reduction_axes, rank)?
        };
        normalize(cx, &axes, self.normalize_variance.then_some((self.eps, EpsMode::InsideSqrt)))
    }
}

fn normalize(cx: &mut EvalCx<'_>, axes: &[usize], variance: Option<(f32, EpsMode)>) -> Result<()> {
    let shape = cx.shape(0).to_vec();
    let mut data = cx.get::<f64>(0)?.into_owned();
    let groups = Groups::over(&shape, axes);
    let means = groups.means(&data);
    let deviations = variance.map(|(eps, mode)| {
        let mut v = groups.variances(&data, &means);
        v.iter_mut().for_each(|v| {
            *v = match mode {
                EpsMode::InsideSqrt => (*v + f64::from(eps)).sqrt(),
                EpsMode::OutsideSqrt => v.sqrt() + f64::from(eps),
            }
        });
        v
    });
    for (x, group) in data.iter_mut().zip(groups.of_elements()) {
        *x -= means[group];
        if let Some(deviations) = &deviations {
            *x /= deviations[group];
        }
    }
    cx.put(0, &shape, data)
}
