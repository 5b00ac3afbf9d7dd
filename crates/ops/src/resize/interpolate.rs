//! Interpolate: resizes chosen axes. First the data is padded with zeros, then sizes and scales are found, then it is
//! sampled. With scales the size is rounded down, yet coordinates use the scale as it was given.

use super::resample::Resize;
use super::taps::{Coordinates, Mode, NearestMode};
use carafe_graph::{Error, EvalCx, InferCx, Op, Result, normalize_axis, RowsCx, Version, VersionCx, VersionInput};
use carafe_tensor::{Dim, PartialShape, Tensor};

carafe_graph::attr_enum! {
    /// What decides the size of the result.
    pub enum ShapeCalculation {
        /// The sizes themselves.
        Sizes = "sizes",
        /// Factors of the sizes.
        Scales = "scales",
    }
}

/// Resizes the given axes, all of them by default, to sizes or by scales.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 11, inputs = "data, sizes_or_scales, axes?", shape_inputs = "1, 2", heavy)]
pub struct Interpolate {
    /// How pixels are blended.
    pub mode: Mode,
    /// What input 1 holds.
    pub shape_calculation_mode: ShapeCalculation,
    /// Where an output pixel lies in the input.
    #[attr(default = Coordinates::HalfPixel)]
    pub coordinate_transformation_mode: Coordinates,
    /// Which pixel is the nearest, in mode `nearest`.
    #[attr(default = NearestMode::RoundPreferFloor)]
    pub nearest_mode: NearestMode,
    /// Widen the filter of mode `linear` when the image shrinks.
    #[attr(default = false)]
    pub antialias: bool,
    /// Zeros before each axis; missing ones are 0.
    #[attr(default = vec![0])]
    pub pads_begin: Vec<i64>,
    /// Zeros after each axis; missing ones are 0.
    #[attr(default = vec![0])]
    pub pads_end: Vec<i64>,
    /// Coefficient of the cubic filters.
    #[attr(default = -0.75)]
    pub cube_coeff: f32,
}

/// As the current version without the modes of Pillow; sizes and scales are both inputs, one of them is not looked at.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Interpolate", since = 4, until = 10, inputs = "data, sizes, scales, axes?", shape_inputs = "1, 2", heavy)]
pub struct InterpolateV4 {
    /// How pixels are blended.
    pub mode: Mode,
    /// Which input counts.
    pub shape_calculation_mode: ShapeCalculation,
    /// Where an output pixel lies in the input.
    #[attr(default = Coordinates::HalfPixel)]
    pub coordinate_transformation_mode: Coordinates,
    /// Which pixel is the nearest, in mode `nearest`.
    #[attr(default = NearestMode::RoundPreferFloor)]
    pub nearest_mode: NearestMode,
    /// Widen the filter of mode `linear` when the image shrinks.
    #[attr(default = false)]
    pub antialias: bool,
    /// Zeros before each axis; missing ones are 0.
    #[attr(default = vec![0])]
    pub pads_begin: Vec<i64>,
    /// Zeros after each axis; missing ones are 0.
    #[attr(default = vec![0])]
    pub pads_end: Vec<i64>,
    /// Coefficient of the cubic filter.
    #[attr(default = -0.75)]
    pub cube_coeff: f32,
}

carafe_graph::attr_enum! {
    /// How the first version blends pixels.
    pub enum ModeV1 {
        /// The nearest pixel.
        Nearest = "nearest",
        /// Neighbours, weighted by their distance.
        Linear = "linear",
        /// Neighbours, weighted by their distance, as ONNX defines it.
        LinearOnnx = "linear_onnx",
        /// Four neighbours with a cubic filter.
        Cubic = "cubic",
        /// Means of areas; cannot be evaluated, as nothing defines it.
        Area = "area",
    }
}

/// Resizes the given axes to sizes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "Interpolate", since = 1, until = 3, inputs = "data, sizes", shape_inputs = "1, 2", heavy)]
pub struct InterpolateV1 {
    /// Axes that the sizes are for, in ascending order.
    pub axes: Vec<i64>,
    /// How pixels are blended.
    pub mode: ModeV1,
    /// First and last pixels fall together.
    #[attr(default = true)]
    pub align_corners: bool,
    /// Widen the filter of mode `linear` when the image shrinks.
    #[attr(default = false)]
    pub antialias: bool,
    /// Zeros before each axis; missing ones are 0.
    #[attr(default = vec![0])]
    pub pads_begin: Vec<i64>,
    /// Zeros after each axis; missing ones are 0.
    #[attr(default = vec![0])]
    pub pads_end: Vec<i64>,
}

/// Where an operation has its inputs, and its pads.
struct Ports<'a> {
    /// The input of sizes or scales.
    target: usize,
    by_scales: bool,
    axes: Axes<'a>,
    pads_begin: &'a [i64],
    pads_end: &'a [i64],
}

enum Axes<'a> {
    All,
    Input(usize),
    Attribute(&'a [i64]),
}

impl Op for Interpolate {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        self.ports(cx.has(2)).infer(cx)?;
        if !matches!(self.mode, Mode::BilinearPillow | Mode::BicubicPillow) {
            return Ok(());
        }
        let axes = if cx.has(2) { cx.dim(2, 0) } else { cx.rank(0).map_or(Dim::ANY, Dim::from) };
        cx.require(axes.contains(2), || format!("the modes of Pillow resize two axes, found {axes}"))
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let like = Sampling {
            mode: self.mode,
            coordinates: self.coordinate_transformation_mode,
            nearest: self.nearest_mode,
            antialias: self.antialias,
            cube_coeff: self.cube_coeff,
        };
        self.ports(cx.has(2)).eval(cx, |_| like)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0]).and_then(|()| cx.axes_leave_rows(2))
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        // The input that is not looked at must have a value for each axis all the same.
        let n = cx.fact(1)?.shape.dim(0).size()?;
        if matches!(self.mode, Mode::BilinearPillow | Mode::BicubicPillow) {
            return None;
        }
        let unread = match self.shape_calculation_mode {
            ShapeCalculation::Sizes => Tensor::from_slice(&[n], &vec![1f32; n]).ok()?,
            ShapeCalculation::Scales => Tensor::from_slice(&[n], &vec![1i64; n]).ok()?,
        };
        let mut version = Version::of::<InterpolateV4>(self, cx)?;
        let at = if self.shape_calculation_mode == ShapeCalculation::Scales { 1 } else { 2 };
        version.inputs.insert(at, VersionInput::New(unread));
        Some(version)
    }
}

impl Interpolate {
    fn ports(&self, has_axes: bool) -> Ports<'_> {
        Ports {
            target: 1,
            by_scales: self.shape_calculation_mode == ShapeCalculation::Scales,
            axes: if has_axes { Axes::Input(2) } else { Axes::All },
            pads_begin: &self.pads_begin,
            pads_end: &self.pads_end,
        }
    }
}

impl Op for InterpolateV4 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require(!matches!(self.mode, Mode::BilinearPillow | Mode::BicubicPillow), || {
            format!("attribute `mode` is `{}`, which came with opset11", self.mode.text())
        })?;
        self.ports(cx.has(3)).infer(cx)
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let like = Sampling {
            mode: self.mode,
            coordinates: self.coordinate_transformation_mode,
            nearest: self.nearest_mode,
            antialias: self.antialias,
            cube_coeff: self.cube_coeff,
        };
        self.ports(cx.has(3)).eval(cx, |_| like)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0]).and_then(|()| cx.axes_leave_rows(3))
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        let target = if self.shape_calculation_mode == ShapeCalculation::Scales { 2 } else { 1 };
        let inputs = [0, target, 3];
        Version::of::<Interpolate>(self, cx).map(|v| v.picking(&inputs[..cx.n_inputs() - 1]))
    }
}

impl InterpolateV4 {
    fn ports(&self, has_axes: bool) -> Ports<'_> {
        let by_scales = self.shape_calculation_mode == ShapeCalculation::Scales;
        Ports {
            target: if by_scales { 2 } else { 1 },
            by_scales,
            axes: if has_axes { Axes::Input(3) } else { Axes::All },
            pads_begin: &self.pads_begin,
            pads_end: &self.pads_end,
        }
    }
}

impl Op for InterpolateV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        self.ports().infer(cx)
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        if self.mode == ModeV1::Area {
            return Err(carafe_graph::Error::unsupported("mode `area` cannot be evaluated"));
        }
        self.ports().eval(cx, |axes| self.sampling(axes))
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        // What the data has decides how it was sampled.
        let rank = cx.rank(0)?;
        if self.mode == ModeV1::Area {
            return None;
        }
        let axes = self.ports().known_axes(|_| None, rank).ok()??;
        let Sampling { mode, coordinates, nearest, antialias, cube_coeff } = self.sampling((&axes, rank));
        let axes: Vec<i64> = axes.into_iter().map(|a| a as i64).collect();
        let op = Interpolate {
            mode,
            shape_calculation_mode: ShapeCalculation::Sizes,
            coordinate_transformation_mode: coordinates,
            nearest_mode: nearest,
            antialias,
            pads_begin: self.pads_begin.clone(),
            pads_end: self.pads_end.clone(),
            cube_coeff,
        };
        Version::first(op, 2)?.with(&axes)
    }
}

impl InterpolateV1 {
    fn ports(&self) -> Ports<'_> {
        Ports {
            target: 1,
            by_scales: false,
            axes: Axes::Attribute(&self.axes),
            pads_begin: &self.pads_begin,
            pads_end: &self.pads_end,
        }
    }

    /// The same in words of the later versions; `axes` are those resized, out of `rank`.
    fn sampling(&self, (axes, rank): (&[usize], usize)) -> Sampling {
        let mode = match self.mode {
            ModeV1::Nearest | ModeV1::Area => Mode::Nearest,
            ModeV1::Linear if rank < 5 => Mode::LinearOnnx,
            ModeV1::Linear => Mode::Linear,
            ModeV1::LinearOnnx => Mode::LinearOnnx,
            ModeV1::Cubic => Mode::Cubic,
        };
        let linear = matches!(mode, Mode::Linear | Mode::LinearOnnx);
        let padded = self.pads_begin.iter().chain(&self.pads_end).any(|&p| p != 0);
        let image = rank == 4 && axes == [2, 3];
        let coordinates = match self.align_corners {
            true => Coordinates::AlignCorners,
            false if linear && !padded && !image => Coordinates::HalfPixel,
            false => Coordinates::Asymmetric,
        };
        let nearest = NearestMode::Simple;
        Sampling { mode, coordinates, nearest, antialias: self.antialias, cube_coeff: -0.75 }
    }
}

/// How pixels are found and blended.
#[derive(Clone, Copy)]
struct Sampling {
    mode: Mode,
    coordinates: Coordinates,
    nearest: NearestMode,
    antialias: bool,
    cube_coeff: f32,
}

impl Ports<'_> {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_number(0)?;
        if self.by_scales { cx.require_float(self.target)? } else { cx.require_integer(self.target)? }
        cx.require_rank(self.target, &[1])?;
        if let Axes::Input(i) = self.axes {
            cx.require_integer(i)?;
            cx.require_rank(i, &[1])?;
        }
        for (name, pads) in [("pads_begin", self.pads_begin), ("pads_end", self.pads_end)] {
            let fits = pads.iter().all(|p| (0..=i64::from(i32::MAX)).contains(p));
            cx.require(fits, || format!("attribute `{name}` must not be negative, found {pads:?}"))?;
        }
        let ty = cx.ty(0);
        let Some(dims) = cx.shape(0).dims() else {
            cx.set(0, ty, PartialShape::dynamic());
            return Ok(());
        };
        let Some(axes) = self.known_axes(|i| cx.ints(i), dims.len())? else {
            cx.set(0, ty, PartialShape::any_of_rank(dims.len()));
            return Ok(());
        };
        let padded = |i: usize, d: &Dim| d.add(Dim::known(pad(self.pads_begin, i) + pad(self.pads_end, i)));
        let mut dims: Vec<Dim> = dims.iter().enumerate().map(|(i, d)| padded(i, d)).collect();
        let enough = |count: usize| {
            cx.require(count >= axes.len(), || {
                format!("{} must have {} values, one for each axis, found {count}", cx.port_name(self.target), axes.len())
            })
        };
        if let Some(n) = cx.dim(self.target, 0).size() {
            enough(n)?;
        }
        let scales = cx.tensor(self.target).filter(|_| self.by_scales).and_then(|t| t.to_vec::<f32>().ok());
        let sizes = cx.dims_value(self.target).filter(|_| !self.by_scales);
        for (i, &axis) in axes.iter().enumerate() {
            dims[axis] = match (&sizes, &scales) {
                (Some(sizes), _) => {
                    cx.require(sizes[i].max().is_none_or(|m| m >= 0), || {
                        format!("size of axis {axis} must not be negative, found {}", sizes[i])
                    })?;
                    sizes[i].clamp_shape()
                }
                (None, Some(scales)) => {
                    let s = scales[i];
                    cx.require(s.is_finite() && s > 0.0, || format!("scale of axis {axis} must be above 0, found {s}"))?;
                    scaled(dims[axis], s)
                }
                (None, None) => Dim::ANY,
            };
        }
        cx.set(0, ty, PartialShape::new(dims));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>, sampling: impl FnOnce((&[usize], usize)) -> Sampling) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let out_shape = cx.out_shape(0)?;
        let axes = self.known_axes(|i| cx.ints(i).ok(), shape.len())?.unwrap_or_default();
        let pads_begin: Vec<usize> = (0..shape.len()).map(|i| pad(self.pads_begin, i) as usize).collect();
        let padded: Vec<usize> = (0..shape.len())
            .map(|i| shape[i].saturating_add(pads_begin[i]).saturating_add(pad(self.pads_end, i) as usize))
            .collect();
        let given = if self.by_scales { Some(cx.get::<f32>(self.target)?.into_owned()) } else { None };
        let scale = |(i, &axis): (usize, &usize)| {
            let quotient = || out_shape[axis] as f32 / padded[axis] as f32;
            (axis, given.as_ref().and_then(|g| g.get(i).copied()).unwrap_or_else(quotient))
        };
        let scales: Vec<(usize, f32)> = axes.iter().enumerate().map(scale).collect();
        let Sampling { mode, coordinates, nearest, antialias, cube_coeff } = sampling((&axes, shape.len()));
        if matches!(mode, Mode::BilinearPillow | Mode::BicubicPillow) && axes.len() != 2 {
            return Err(cx.fail(format!("the modes of Pillow resize two axes, found {axes:?}")));
        }
        let pads_begin = &pads_begin;
        let (padded, scales) = (&padded, &scales);
        Resize { mode, coordinates, nearest, antialias, cube_coeff, pads_begin, padded, scales }.run(cx)
    }

    /// The axes to resize; `None` when they are an input that is not known yet.
    fn known_axes(&self, input: impl Fn(usize) -> Option<Vec<i64>>, rank: usize) -> Result<Option<Vec<usize>>> {
        let normalized = |axes: &[i64]| axes.iter().map(|&a| normalize_axis(a, rank)).collect::<Result<Vec<_>>>();
        Ok(match self.axes {
            Axes::All => Some((0..rank).collect()),
            Axes::Input(i) => {
                let axes = input(i).map(|axes| normalized(&axes)).transpose()?;
                let all = axes.as_deref().unwrap_or_default();
                if let Some(k) = (1..all.len()).find(|&k| all[..k].contains(&all[k])) {
                    return Err(Error::invalid(format!("axis {} is listed twice", all[k])));
                }
                axes
            }
            Axes::Attribute(axes) => {
                let mut axes = normalized(axes)?;
                axes.sort_unstable();
                axes.dedup();
                Some(axes)
            }
        })
    }
}

fn pad(pads: &[i64], axis: usize) -> i64 {
    pads.get(axis).copied().unwrap_or(0)
}

/// Size after scaling, rounded down with a little help against scales like 0.99999994.
fn scaled(dim: Dim, scale: f32) -> Dim {
    let size = |n: i64| (n as f32 * (scale + 1e-6)) as i64;
    match dim.get() {
        Some(n) => Dim::known(size(n)),
        None => Dim::range(size(dim.min()), dim.max().map(size)),
    }
}
