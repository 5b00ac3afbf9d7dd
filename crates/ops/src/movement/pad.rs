//! Pad: adds elements before and after the data on each axis; negative amounts crop. Reflections are taken from the whole
//! data, before anything is cropped.

use super::view::map_axes;
use carafe_graph::{EvalCx, InferCx, Op, Result, RowsCx, OrderCx, OpDecl, Reordered, Version, VersionCx};
use carafe_tensor::{Dim, PartialShape, Tensor};

carafe_graph::attr_enum! {
    /// What new elements are.
    pub enum PadMode {
        /// The pad value, or zero.
        Constant = "constant",
        /// The nearest element.
        Edge = "edge",
        /// Mirrored without repeating the border.
        Reflect = "reflect",
        /// Mirrored with the border repeated.
        Symmetric = "symmetric",
    }
}

/// Widens or crops the axes by given amounts.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 12, inputs = "data, pads_begin, pads_end, pad_value?", moves = "0, 3", shape_inputs = "1, 2")]
pub struct Pad {
    /// How new elements are made.
    pub pad_mode: PadMode,
}

impl Op for Pad {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.pad_mode)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.pad_mode)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0])?;
        let none = |input| cx.ints(input).is_some_and(|p| p.first() == Some(&0));
        if none(1) && none(2) { Ok(()) } else { Err("it adds rows".into()) }
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        let ints = vec![(1, cx.list(1)?), (2, cx.list(2)?)];
        Some(Reordered { op: self.clone_op(), data: 1, ints })
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        // Before opset 12 nothing could be cropped.
        let widens = |input| cx.ints(input).is_some_and(|pads| pads.iter().all(|&n| n >= 0));
        if widens(1) && widens(2) { Version::of::<PadV1>(self, cx) } else { None }
    }
}

/// Widens the axes by given amounts.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Pad", since = 1, until = 11, inputs = "data, pads_begin, pads_end, pad_value?", moves = "0, 3", shape_inputs = "1, 2")]
pub struct PadV1 {
    /// How new elements are made.
    pub pad_mode: PadMode,
}

impl Op for PadV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.pad_mode)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.pad_mode)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<Pad>(self, cx)
    }
}

fn infer(cx: &mut InferCx<'_>, mode: PadMode) -> Result<()> {
    let mut count = Dim::ANY;
    for i in [1, 2] {
        cx.require_integer(i)?;
        cx.require_rank(i, &[1])?;
        count = count.merge(cx.dim(i, 0)).ok_or_else(|| {
            cx.fail(format!("pads_begin and pads_end must have one length, found {count} and {}", cx.dim(i, 0)))
        })?;
    }
    let mut ty = cx.ty(0);
    if cx.has(3) {
        ty = cx.same_type(&[0, 3])?;
        cx.require_rank(3, &[0])?;
    }
    let shape = match cx.shape(0).dims() {
        Some(dims) => {
            cx.require(count.contains(dims.len() as i64), || {
                format!("pads are given for {count} axes, the data has {}", dims.len())
            })?;
            let pads = |input: usize| {
                let unknown = || vec![Dim::range(i64::MIN, None); dims.len()];
                cx.dims_value(input).unwrap_or_else(unknown)
            };
            let (begins, ends) = (pads(1), pads(2));
            let mut out = Vec::with_capacity(dims.len());
            for ((&dim, &begin), &end) in dims.iter().zip(&begins).zip(&ends) {
                for pad in [begin, end] {
                    check_width(cx, mode, dim, pad)?;
                }
                let padded = dim.add(begin.add(end));
                cx.require(padded.max().is_none_or(|m| m >= 0), || {
                    format!("an axis of {dim} cannot be cropped by {begin} and {end}")
                })?;
                out.push(padded.clamp_shape());
            }
            PartialShape::new(out)
        }
        None => PartialShape::dynamic(),
    };
    cx.set(0, ty, shape);
    Ok(())
}

// A mirror must be at least as wide as what it shows.
fn check_width(cx: &InferCx<'_>, mode: PadMode, dim: Dim, pad: Dim) -> Result<()> {
    let (needed, what) = match mode {
        PadMode::Constant => return Ok(()),
        PadMode::Edge => (1, "a border"),
        PadMode::Reflect => (pad.min().saturating_add(1), "reflection"),
        PadMode::Symmetric => (pad.min(), "symmetric padding"),
    };
    let fits = pad.min() <= 0 || dim.max().is_none_or(|n| n >= needed);
    cx.require(fits, || format!("{what} by {} needs an axis of at least {needed}, found {dim}", pad.min()))
}

fn eval(cx: &mut EvalCx<'_>, mode: PadMode) -> Result<()> {
    let data = cx.input(0);
    let shape = data.shape();
    let begins = cx.ints(1)?;
    let source = |axis: usize, i: usize| {
        let n = shape[axis] as i64;
        let c = (i as i64).checked_sub(begins[axis])?;
        let from = match mode {
            PadMode::Constant => c,
            PadMode::Edge => c.clamp(0, n - 1),
            PadMode::Reflect if c < 0 => -c,
            PadMode::Reflect if c >= n => 2 * (n - 1) - c,
            PadMode::Symmetric if c < 0 => -1 - c,
            PadMode::Symmetric if c >= n => 2 * n - 1 - c,
            _ => c,
        };
        usize::try_from(from).ok().filter(|&f| f < shape[axis])
    };
    let out_shape = cx.out_shape(0)?;
    let out = if mode == PadMode::Constant && cx.has(3) {
        // The pad value sits one place behind the data.
        let n = data.len();
        let mut with_value = Tensor::zeros(data.element_type(), &[n + 1])?;
        with_value.copy_elements(0, data, 0, n)?;
        with_value.copy_elements(n, cx.input(3), 0, 1)?;
        map_axes(&with_value, shape, &out_shape, Some(n), source)?
    } else {
        map_axes(data, shape, &out_shape, None, source)?
    };
    cx.set(0, out)
}
