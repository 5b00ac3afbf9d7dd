//! Broadcast: stretches data to a target shape. `numpy` goes one way, the target must hold the data; `bidirectional` also
//! stretches the target; `explicit` says where each data axis goes.

use super::axes::of_rank;
use super::view::View;
use carafe_graph::{EvalCx, InferCx, Op, Result, Version, VersionCx, OrderCx, Reordered};
use carafe_tensor::{Dim, PartialShape};

carafe_graph::attr_enum! {
    /// How data axes meet target axes.
    pub enum BroadcastMode {
        /// Aligned at the last axis; the target is not stretched.
        Numpy = "numpy",
        /// By the list of the third input.
        Explicit = "explicit",
        /// Aligned at the last axis, both are stretched.
        Bidirectional = "bidirectional",
        /// Aligned at the first axis; trailing ones of the data are dropped.
        Pdpd = "pdpd",
    }
}

/// Stretches the data to a shape.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 3, inputs = "data, target_shape, axes_mapping?", moves = "0", shape_inputs = "1, 2")]
pub struct Broadcast {
    /// How data axes meet target axes.
    #[attr(default = BroadcastMode::Numpy)]
    pub mode: BroadcastMode,
}

impl Op for Broadcast {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let explicit = self.mode == BroadcastMode::Explicit;
        cx.require(cx.has(2) == explicit, || {
            let needed = if explicit { "needs" } else { "does not take" };
            format!("mode {} {needed} the input `axes_mapping`", self.mode.text())
        })?;
        infer(cx, self.mode, 0)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.mode, 0)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        let mode = match self.mode {
            BroadcastMode::Numpy => BroadcastModeV1::Numpy,
            BroadcastMode::Explicit => BroadcastModeV1::Explicit,
            BroadcastMode::Pdpd => BroadcastModeV1::Pdpd,
            BroadcastMode::Bidirectional => return None,
        };
        Version::same(BroadcastV1 { mode, axis: None }, cx)
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        let aligned = matches!(self.mode, BroadcastMode::Numpy | BroadcastMode::Bidirectional) && cx.n_inputs == 2;
        let ints = vec![(1, cx.list(1)?)];
        aligned.then(|| Reordered { op: Box::new(self.clone()), data: 1, ints })
    }
}

carafe_graph::attr_enum! {
    /// How data axes meet target axes in opset1.
    pub enum BroadcastModeV1 {
        /// By the third input; as `numpy` without it.
        Explicit = "explicit" | "none",
        /// Aligned at the last axis; a third input is ignored.
        Numpy = "numpy",
        /// Aligned at an axis; trailing ones of the data are dropped.
        Pdpd = "pdpd",
    }
}

/// Stretches the data to a shape.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Broadcast", since = 1, until = 2, inputs = "data, target_shape, axes_mapping?", moves = "0", shape_inputs = "1, 2")]
pub struct BroadcastV1 {
    /// How data axes meet target axes.
    #[attr(default = BroadcastModeV1::Explicit)]
    pub mode: BroadcastModeV1,
    /// Target axis of the first data axis in mode `pdpd`: 0 when left out, -1 aligns the last axes.
    #[attr(name = "mode.auto_broadcast_axis", default = None)]
    pub axis: Option<i64>,
}

impl BroadcastV1 {
    fn mode(&self, has_axes: bool) -> BroadcastMode {
        match self.mode {
            BroadcastModeV1::Explicit if has_axes => BroadcastMode::Explicit,
            BroadcastModeV1::Pdpd => BroadcastMode::Pdpd,
            _ => BroadcastMode::Numpy,
        }
    }
}

impl Op for BroadcastV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.mode(cx.has(2)), self.axis.unwrap_or(0))
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.mode(cx.has(2)), self.axis.unwrap_or(0))
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        let mode = self.mode(cx.n_inputs() > 2);
        if mode == BroadcastMode::Pdpd && self.axis.unwrap_or(0) != 0 {
            return None;
        }
        Version::first(Broadcast { mode }, if mode == BroadcastMode::Explicit { 3 } else { 2 })
    }
}

fn infer(cx: &mut InferCx<'_>, mode: BroadcastMode, axis: i64) -> Result<()> {
    cx.require_integer(1)?;
    cx.require_rank(1, &[1])?;
    if mode == BroadcastMode::Explicit {
        cx.require_integer(2)?;
        cx.require_rank(2, &[1])?;
    }
    let target = match cx.dims_value(1) {
        Some(dims) => {
            let negative = dims.iter().find(|d| d.max().is_some_and(|m| m < 0));
            cx.require(negative.is_none(), || format!("target_shape holds {}", negative.copied().unwrap_or(Dim::ANY)))?;
            PartialShape::new(dims.into_iter().map(Dim::clamp_shape))
        }
        None => of_rank(cx.dim(1, 0)),
    };
    let shape = match (target.dims(), cx.shape(0).dims()) {
        (Some(target), Some(data)) => stretched(cx, mode, axis, target, data)?,
        // The data could be the longer one.
        (Some(_), None) if mode == BroadcastMode::Bidirectional => PartialShape::dynamic(),
        _ => target,
    };
    cx.set(0, cx.ty(0), shape);
    Ok(())
}

fn stretched(cx: &InferCx<'_>, mode: BroadcastMode, axis: i64, target: &[Dim], data: &[Dim]) -> Result<PartialShape> {
    let whole = || PartialShape::new(target.to_vec());
    let mismatch = || cx.fail(format!("data [{}] does not broadcast to [{}]", cx.shape(0), whole()));
    if mode == BroadcastMode::Bidirectional {
        return whole().broadcast(cx.shape(0)).ok_or_else(mismatch);
    }
    let axes = match mode {
        BroadcastMode::Explicit => {
            let count = cx.dim(2, 0);
            cx.require(count.contains(data.len() as i64), || {
                format!("axes_mapping must list {} axes, found {count}", data.len())
            })?;
            match cx.ints(2) {
                Some(axes) => mapping(&axes, target.len()).ok_or_else(|| {
                    cx.fail(format!("axes_mapping must rise within 0..{}, found {axes:?}", target.len()))
                })?,
                None => return Ok(whole()),
            }
        }
        BroadcastMode::Pdpd => {
            let Some(kept) = without_ones(data) else {
                // A 1 in the target gives way to the data.
                return Ok(PartialShape::new(target.iter().map(|d| if d.contains(1) { Dim::ANY } else { *d })));
            };
            pdpd_axes(axis, kept, data.len(), target.len()).ok_or_else(mismatch)?
        }
        _ => {
            let lead = target.len().checked_sub(data.len()).ok_or_else(mismatch)?;
            (lead..target.len()).collect()
        }
    };
    let mut out = target.to_vec();
    for (&axis, &dim) in axes.iter().zip(data) {
        if mode == BroadcastMode::Pdpd && out[axis].contains(1) {
            out[axis] = if out[axis].is_known() { dim } else { Dim::ANY };
        } else if !dim.contains(1) {
            out[axis] = out[axis].merge(dim).ok_or_else(mismatch)?;
        }
    }
    Ok(PartialShape::new(out))
}

fn mapping(axes: &[i64], rank: usize) -> Option<Vec<usize>> {
    let axes: Vec<usize> = axes.iter().map(|&a| usize::try_from(a).ok()).collect::<Option<_>>()?;
    (axes.is_sorted_by(|a, b| a < b) && axes.last().is_none_or(|&a| a < rank)).then_some(axes)
}

// Number of data axes left when trailing ones are dropped; `None` when a dimension decides that is not known.
fn without_ones(data: &[Dim]) -> Option<usize> {
    match data.iter().rposition(|d| d.get() != Some(1)) {
        Some(i) => (!data[i].contains(1)).then_some(i + 1),
        None => Some(0),
    }
}

fn pdpd_axes(axis: i64, kept: usize, rank: usize, target: usize) -> Option<Vec<usize>> {
    let first = if axis == -1 { target.checked_sub(rank)? } else { usize::try_from(axis).ok()? };
    (first.checked_add(kept)? <= target).then(|| (first..first + kept).collect())
}

fn eval(cx: &mut EvalCx<'_>, mode: BroadcastMode, axis: i64) -> Result<()> {
    let out = cx.out_shape(0)?;
    let shape = cx.shape(0);
    let (shape, axes) = match mode {
        BroadcastMode::Explicit => {
            let axes = mapping(&cx.ints(2)?, out.len()).ok_or_else(|| cx.fail("axes_mapping must rise"))?;
            (shape, axes)
        }
        BroadcastMode::Pdpd => {
            let dims: Vec<Dim> = shape.iter().map(|&n| Dim::from(n)).collect();
            let kept = without_ones(&dims).unwrap_or(dims.len());
            let axes = pdpd_axes(axis, kept, shape.len(), out.len()).ok_or_else(|| cx.fail("axes do not fit"))?;
            (&shape[..kept], axes)
        }
        _ => {
            let lead = out.len().saturating_sub(shape.len());
            (shape, (lead..out.len()).collect())
        }
    };
    let stretched = View::broadcast(shape, &out, &axes).copy(cx.input(0))?;
    cx.set(0, stretched)
}
