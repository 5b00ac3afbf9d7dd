//! MVN: subtracts the mean and divides by the standard deviation, both over chosen axes. The variance is biased, and
//! opset2 always adds `eps` under the root.

use super::moments::{Groups, check_axes_input, check_epsilon, normalize_axes};
use carafe_graph::{EvalCx, InferCx, Op, Result, RowsCx, Version, VersionCx, OrderCx, Reordered};
use carafe_tensor::ElementType;

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
#[op(name = "MVN", since = 6, inputs = "data, axes", keeps_shape, heavy, channel = "-1")]
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
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0]).and_then(|()| cx.axes_leave_rows(1))
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        let (axes, rank) = (cx.ints(1)?, cx.rank(0)? as i64);
        let from = *axes.first().filter(|a| matches!(a, 1 | 2))?;
        let spatial = axes.iter().copied().eq(from..rank) && cx.ty(1) == ElementType::I64;
        if !spatial || self.eps_mode != EpsMode::InsideSqrt {
            return None;
        }
        let op = MvnV2 {
            eps: self.eps,
            across_channels: from == 1,
            normalize_variance: self.normalize_variance,
            reduction_axes: vec![],
        };
        Version::first(op, 1)
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        Some(Reordered { op: Box::new(self.clone()), data: 1, ints: vec![(1, cx.axes(1)?)] })
    }
}

/// Mean-variance normalization over the spatial axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "MVN", since = 2, until = 5, keeps_shape, heavy, also = "opset1")]
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

impl MvnV2 {
    fn axes(&self, rank: usize) -> Result<Vec<usize>> {
        if self.reduction_axes.is_empty() {
            return Ok((if self.across_channels { 1 } else { 2 }..rank).collect());
        }
        normalize_axes(&self.reduction_axes, rank)
    }
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
        let axes = self.axes(cx.shape(0).len())?;
        normalize(cx, &axes, self.normalize_variance.then_some((self.eps, EpsMode::InsideSqrt)))
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        match normalize_axes(&self.reduction_axes, cx.rank(0)) {
            Ok(axes) if axes.contains(&0) => Err("it works along the rows".into()),
            Ok(_) => Ok(()),
            Err(e) => Err(e.to_string()),
        }
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        let rank = cx.rank(0)?;
        let axes = self.axes(rank).ok().filter(|axes| !axes.is_empty())?;
        let axes: Vec<i64> = axes.into_iter().map(|a| a as i64).collect();
        let op = Mvn { eps: self.eps, normalize_variance: self.normalize_variance, eps_mode: EpsMode::InsideSqrt };
        Version::first(op, 1)?.with(&axes)
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
