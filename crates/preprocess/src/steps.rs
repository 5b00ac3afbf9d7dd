//! What happens between a tensor as the program has it and the value that the model computes with, step by step. Each step
//! knows the layout and the colours that it is given, and what shape must come in for a shape to come out.

use crate::layout::Layout;
use crate::nodes::{along_axis, convert, multiply, reverse_channels, subtract, transpose};
use carafe_graph::{Error, Model, Result, Value};
use carafe_ops::activation::Clamp;
use carafe_ops::arithmetic::Multiply;
use carafe_ops::colour::{I420ToBgr, I420ToRgb, Nv12ToBgr, Nv12ToRgb};
use carafe_ops::movement::pad::PadMode;
use carafe_ops::movement::{Pad, Slice};
use carafe_ops::reduce::ReduceSum;
use carafe_ops::resize::interpolate::ShapeCalculation;
use carafe_ops::resize::{Coordinates, Interpolate, Mode, NearestMode};
use carafe_tensor::{Dim, ElementType, Tensor};
use std::fmt::{self, Display};
use std::sync::Arc;

/// How a picture is resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResizeAlgorithm {
    /// Bilinear.
    Linear,
    /// Bicubic.
    Cubic,
    /// The nearest pixel.
    Nearest,
    /// Bilinear as Pillow does it, with a wider filter when the picture shrinks.
    BilinearPillow,
    /// Bicubic as Pillow does it.
    BicubicPillow,
}

/// What the channels of a picture are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ColorFormat {
    /// Not known.
    #[default]
    Undefined,
    /// Red, green, blue.
    Rgb,
    /// Blue, green, red.
    Bgr,
    /// Brightness alone, one channel.
    Gray,
    /// A plane of brightness and one of interleaved chroma below it: `[N, H * 3 / 2, W, 1]`.
    Nv12SinglePlane,
    /// Three planes below each other: `[N, H * 3 / 2, W, 1]`.
    I420SinglePlane,
    /// Brightness `[N, H, W, 1]` and chroma `[N, H / 2, W / 2, 2]` as two inputs.
    Nv12TwoPlanes,
    /// Brightness `[N, H, W, 1]` and twice chroma `[N, H / 2, W / 2, 1]` as three inputs.
    I420ThreePlanes,
    /// Red, green, blue and a fourth channel that is not looked at.
    Rgbx,
    /// Blue, green, red and a fourth channel that is not looked at.
    Bgrx,
}

impl ColorFormat {
    /// How many inputs a picture in these colours comes as.
    pub fn planes(self) -> usize {
        match self {
            ColorFormat::Nv12TwoPlanes => 2,
            ColorFormat::I420ThreePlanes => 3,
            _ => 1,
        }
    }

    /// Whether a picture in these colours is channels last unless another layout is set.
    pub(crate) fn is_channels_last(self) -> bool {
        !matches!(self, ColorFormat::Undefined | ColorFormat::Gray)
    }

    /// How many channels a tensor has in these colours, where they say it and all lie in one tensor.
    pub(crate) fn channels(self) -> Option<i64> {
        match self {
            ColorFormat::Rgb | ColorFormat::Bgr => Some(3),
            ColorFormat::Rgbx | ColorFormat::Bgrx => Some(4),
            _ => None,
        }
    }

    // As OpenVINO prints it.
    fn name(self) -> &'static str {
        match self {
            ColorFormat::Undefined => "Unknown",
            ColorFormat::Rgb => "RGB",
            ColorFormat::Bgr => "BGR",
            ColorFormat::Gray => "GRAY",
            ColorFormat::Nv12SinglePlane => "NV12 (single plane)",
            ColorFormat::I420SinglePlane => "I420 (single plane)",
            ColorFormat::Nv12TwoPlanes => "NV12 (multi-plane)",
            ColorFormat::I420ThreePlanes => "I420 (multi-plane)",
            ColorFormat::Rgbx => "RGBX",
            ColorFormat::Bgrx => "BGRX",
        }
    }
}

/// What new elements of a padding are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaddingMode {
    /// The given value.
    Constant,
    /// The nearest element.
    Edge,
    /// Mirrored without repeating the border.
    Reflect,
    /// Mirrored with the border repeated.
    Symmetric,
}

/// Makes nodes of the user's own behind a value and returns the new value.
pub(crate) type Custom = Arc<dyn Fn(&mut Model, Value) -> Result<Value> + Send + Sync>;

#[derive(Clone)]
pub(crate) enum Step {
    Type(ElementType),
    /// To the type on the other side: of the model, or of the tensor that the program gets.
    TargetType,
    Layout(Layout),
    Order(Vec<usize>),
    Color(ColorFormat),
    ReverseChannels,
    /// To height and width, or to those of the model.
    Resize(ResizeAlgorithm, Option<(usize, usize)>),
    Crop(Vec<i64>, Vec<i64>),
    Pad(Vec<i64>, Vec<i64>, f32, PaddingMode),
    Mean(Vec<f64>),
    Scale(Vec<f64>),
    Clamp(f64, f64),
    Custom(Custom),
}

/// As OpenVINO prints a step.
impl Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Type(ty) => write!(f, "convert type ({ty})"),
            Step::TargetType => f.write_str("convert type (dynamic)"),
            Step::Layout(layout) => write!(f, "convert layout {layout}"),
            Step::Order(order) => write!(f, "convert layout {}", listed(order)),
            Step::Color(to) => write!(f, "convert color ({})", to.name()),
            Step::ReverseChannels => f.write_str("reverse channels"),
            Step::Resize(_, None) => f.write_str("resize to model width/height"),
            Step::Resize(_, Some((h, w))) => write!(f, "resize to ({h}, {w})"),
            Step::Crop(begin, end) => write!(f, "crop (begin {}, end {})", listed(begin), listed(end)),
            Step::Pad(begin, end, value, mode) => {
                write!(f, "pad(begin {}, end {}, ", listed(begin), listed(end))?;
                match mode {
                    PaddingMode::Constant => write!(f, "with ({value}))"),
                    PaddingMode::Edge => f.write_str("copied from edge)"),
                    PaddingMode::Reflect => f.write_str("reflected from tensor)"),
                    PaddingMode::Symmetric => f.write_str("symmetrically added from tensor)"),
                }
            }
            Step::Mean(values) => write!(f, "mean {}", listed(values)),
            Step::Scale(values) => write!(f, "scale {}", listed(values)),
            Step::Clamp(min, max) => write!(f, "clamp(min {min}, max {max})"),
            Step::Custom(_) => f.write_str("custom"),
        }
    }
}

fn listed<T: Display>(values: &[T]) -> String {
    let words: Vec<String> = values.iter().map(T::to_string).collect();
    format!("({})", words.join(","))
}

/// Where a sequence of steps stands.
pub(crate) struct State {
    pub value: Value,
    pub layout: Option<Layout>,
    pub color: ColorFormat,
    /// Height and width that the model takes, where they are known.
    pub target: Option<(i64, i64)>,
    /// Start of the names of new nodes.
    pub prefix: String,
    /// The planes of a picture that comes as several inputs, until its colours are converted.
    pub planes: Vec<Value>,
    /// The element type on the other side, where one is set.
    pub target_type: Option<ElementType>,
    /// What each step did, where somebody wants to read it.
    pub trace: Option<String>,
}

/// A tensor as OpenVINO prints it.
pub(crate) fn described(model: &Model, v: Value, layout: Option<&Layout>, color: ColorFormat) -> String {
    let fact = model.fact(v);
    let layout = layout.map_or("<no layout>".to_string(), Layout::to_string);
    let color = if color == ColorFormat::Undefined { String::new() } else { format!(", {}", color.name()) };
    format!("[{}], {layout}, {}{color}", fact.shape, fact.ty)
}

fn rank(model: &Model, v: Value) -> Result<usize> {
    model.fact(v).shape.rank().ok_or_else(|| Error::usage("the rank of the tensor is not known; set its shape"))
}

impl State {
    fn name(&self, model: &Model, what: &str) -> String {
        let wanted = format!("{}/{what}", self.prefix);
        let free = |n: &String| model.find_node(n).is_none();
        if free(&wanted) { wanted } else { (1..).map(|i| format!("{wanted}_{i}")).find(free).unwrap_or(wanted) }
    }

    fn axis(&self, model: &Model, name: &str) -> Result<usize> {
        let none = || Error::usage(format!("no axis is known to be {name}; set the layout of the tensor"));
        self.layout.as_ref().ok_or_else(none)?.axis(name, rank(model, self.value)?)?.ok_or_else(none)
    }

    fn require_float(&self, model: &Model, what: &str) -> Result<ElementType> {
        let ty = model.fact(self.value).ty;
        match ty.is_float() {
            true => Ok(ty),
            false => Err(Error::usage(format!("{what} needs floats, found {ty}; convert the element type first"))),
        }
    }

    // One value for all elements, or one for each channel.
    fn spread(&self, model: &Model, values: &[f64], ty: ElementType) -> Result<Tensor> {
        if let [one] = values {
            return Ok(Tensor::from_f64(ty, &[], &[*one])?);
        }
        let (axis, rank) = (self.axis(model, "C")?, rank(model, self.value)?);
        let channels = model.fact(self.value).shape.dim(axis);
        if channels.get().is_some_and(|n| n != values.len() as i64) {
            return Err(Error::usage(format!("found {} values, the tensor has {channels} channels", values.len())));
        }
        along_axis(values, ty, rank, axis)
    }

    pub(crate) fn convert_type(&mut self, model: &mut Model, ty: ElementType) -> Result<()> {
        if model.fact(self.value).ty != ty {
            self.value = convert(model, &self.name(model, &format!("to_{ty}")), self.value, ty)?;
        }
        Ok(())
    }

    pub(crate) fn convert_layout(&mut self, model: &mut Model, target: &Layout) -> Result<()> {
        if let Some(have) = &self.layout
            && let Some(order) = have.order_to(target, rank(model, self.value)?)?
        {
            self.value = transpose(model, &self.name(model, "layout"), self.value, &order)?;
        }
        self.layout = Some(target.clone());
        Ok(())
    }

    fn described(&self, model: &Model) -> String {
        let first = self.planes.first().copied().unwrap_or(self.value);
        described(model, first, self.layout.as_ref(), self.color)
    }

    /// Runs a step, and notes it where a trace is kept.
    pub(crate) fn run(&mut self, model: &mut Model, step: &Step) -> Result<()> {
        if self.trace.is_none() {
            return self.apply(model, step);
        }
        let before = self.described(model);
        self.apply(model, step)?;
        let after = self.described(model);
        self.trace.iter_mut().for_each(|t| t.push_str(&format!("      {step}: ({before}) -> ({after})\n")));
        Ok(())
    }

    fn apply(&mut self, model: &mut Model, step: &Step) -> Result<()> {
        if !self.planes.is_empty() {
            return self.run_on_planes(model, step);
        }
        match step {
            Step::Type(ty) => self.convert_type(model, *ty),
            Step::TargetType => self.convert_type(model, self.target_type()?),
            // Where nobody said what the axes are, they are taken to be in this order already.
            Step::Layout(layout) => self.convert_layout(model, layout),
            Step::Order(order) => {
                self.value = transpose(model, &self.name(model, "layout"), self.value, order)?;
                self.layout = self.layout.as_ref().map(|l| l.ordered(order)).transpose()?;
                Ok(())
            }
            Step::Color(to) => self.convert_color_to(model, *to),
            Step::ReverseChannels => self.reverse(model),
            Step::Resize(algorithm, size) => self.resize(model, *algorithm, *size),
            Step::Crop(begin, end) => self.crop(model, begin, end),
            Step::Pad(begin, end, value, mode) => self.pad(model, begin, end, *value, *mode),
            Step::Mean(values) => {
                let ty = self.require_float(model, "the mean")?;
                let mean = self.spread(model, values, ty)?;
                self.value = subtract(model, &self.name(model, "mean"), self.value, mean)?;
                Ok(())
            }
            Step::Scale(values) => {
                if values.iter().any(|s| *s == 0.0 || !s.is_finite()) {
                    return Err(Error::usage("the tensor is divided by the scale, so no value may be 0 or infinite"));
                }
                let ty = self.require_float(model, "the scale")?;
                let inverse: Vec<f64> = values.iter().map(|s| s.recip()).collect();
                let scale = self.spread(model, &inverse, ty)?;
                self.value = multiply(model, &self.name(model, "scale"), self.value, scale)?;
                Ok(())
            }
            Step::Clamp(min, max) => {
                self.value =
                    model.add(self.name(model, "clamp"), Clamp { min: *min, max: *max }, &[self.value])?.into();
                Ok(())
            }
            Step::Custom(make) => {
                self.value = make(model, self.value)?;
                Ok(())
            }
        }
    }

    fn target_type(&self) -> Result<ElementType> {
        let none = "the type to convert to is not known; give it, or set that of the tensor";
        self.target_type.filter(|ty| !ty.is_dynamic()).ok_or_else(|| Error::usage(none))
    }

    // Types of planes may change; everything else needs the picture.
    fn run_on_planes(&mut self, model: &mut Model, step: &Step) -> Result<()> {
        match step {
            Step::TargetType => self.run_on_planes(model, &Step::Type(self.target_type()?)),
            Step::Type(ty) => {
                for i in 0..self.planes.len() {
                    let plane = self.planes[i];
                    if model.fact(plane).ty != *ty {
                        self.planes[i] = convert(model, &self.name(model, &format!("plane_{i}_to_{ty}")), plane, *ty)?;
                    }
                }
                Ok(())
            }
            Step::Color(to) => self.convert_color_to(model, *to),
            _ => Err(Error::usage(format!("{:?} are planes; convert the colours before any other step", self.color))),
        }
    }

    fn reverse(&mut self, model: &mut Model) -> Result<()> {
        let axis = self.axis(model, "C")?;
        self.value = reverse_channels(model, &self.name(model, "reverse_channels"), self.value, axis)?;
        Ok(())
    }

    fn convert_color_to(&mut self, model: &mut Model, to: ColorFormat) -> Result<()> {
        use ColorFormat::{
            Bgr, Bgrx, Gray, I420SinglePlane, I420ThreePlanes, Nv12SinglePlane, Nv12TwoPlanes, Rgb, Rgbx,
        };
        let name = self.name(model, "color");
        let planes = std::mem::take(&mut self.planes);
        match (self.color, to) {
            (from, to) if from == to => {}
            (Rgb, Bgr) | (Bgr, Rgb) => self.reverse(model)?,
            (Nv12SinglePlane, Rgb) => self.value = model.add(name, Nv12ToRgb, &[self.value])?.into(),
            (Nv12SinglePlane, Bgr) => self.value = model.add(name, Nv12ToBgr, &[self.value])?.into(),
            (I420SinglePlane, Rgb) => self.value = model.add(name, I420ToRgb, &[self.value])?.into(),
            (I420SinglePlane, Bgr) => self.value = model.add(name, I420ToBgr, &[self.value])?.into(),
            (Nv12TwoPlanes, Rgb) => self.value = model.add(name, Nv12ToRgb, &planes)?.into(),
            (Nv12TwoPlanes, Bgr) => self.value = model.add(name, Nv12ToBgr, &planes)?.into(),
            (I420ThreePlanes, Rgb) => self.value = model.add(name, I420ToRgb, &planes)?.into(),
            (I420ThreePlanes, Bgr) => self.value = model.add(name, I420ToBgr, &planes)?.into(),
            (Rgbx, Rgb) | (Bgrx, Bgr) => self.drop_fourth_channel(model)?,
            (Rgbx, Bgr) | (Bgrx, Rgb) => {
                self.drop_fourth_channel(model)?;
                self.reverse(model)?;
            }
            (Rgb | Bgr, Gray) => {
                // The weights of BT.601.
                let mut weights = [0.299, 0.587, 0.114];
                if self.color == Bgr {
                    weights.reverse();
                }
                let ty = self.require_float(model, "brightness")?;
                let (axis, rank) = (self.axis(model, "C")?, rank(model, self.value)?);
                let weights = model.constant(&format!("{name}/weights"), along_axis(&weights, ty, rank, axis)?)?;
                let parts = model.add(format!("{name}/parts"), Multiply::default(), &[self.value, weights])?;
                let axes = model.constant(&format!("{name}/axes"), Tensor::from_slice(&[1], &[axis as i64])?)?;
                self.value = model.add(name, ReduceSum { keep_dims: true }, &[parts.into(), axes])?.into();
            }
            (from, to) => {
                return Err(Error::unsupported(format!("colours cannot be converted from {from:?} to {to:?}")));
            }
        }
        self.color = to;
        Ok(())
    }

    fn drop_fourth_channel(&mut self, model: &mut Model) -> Result<()> {
        let axis = self.axis(model, "C")?;
        let name = self.name(model, "three_channels");
        let mut list = |what: &str, n: i64| -> Result<Value> {
            model.constant(&format!("{name}/{what}"), Tensor::from_slice(&[1], &[n])?)
        };
        let parts = [list("begin", 0)?, list("end", 3)?, list("step", 1)?, list("axis", axis as i64)?];
        let [begin, end, step, axis] = parts;
        self.value = model.add(name, Slice, &[self.value, begin, end, step, axis])?.into();
        Ok(())
    }

    fn resize(&mut self, model: &mut Model, algorithm: ResizeAlgorithm, size: Option<(usize, usize)>) -> Result<()> {
        let mode = match algorithm {
            ResizeAlgorithm::Linear => Mode::Linear,
            ResizeAlgorithm::Cubic => Mode::Cubic,
            ResizeAlgorithm::Nearest => Mode::Nearest,
            ResizeAlgorithm::BilinearPillow => Mode::BilinearPillow,
            ResizeAlgorithm::BicubicPillow => Mode::BicubicPillow,
        };
        let size = size.map(|(h, w)| (h as i64, w as i64)).or(self.target);
        let (h, w) = size.ok_or_else(|| {
            Error::usage("height and width of the model are not known; set its layout, or give the size to resize to")
        })?;
        let axes = [self.axis(model, "H")? as i64, self.axis(model, "W")? as i64];
        let name = self.name(model, "resize");
        let sizes = model.constant(&format!("{name}/sizes"), Tensor::from_slice(&[2], &[h, w])?)?;
        let axes = model.constant(&format!("{name}/axes"), Tensor::from_slice(&[2], &axes)?)?;
        let op = Interpolate {
            mode,
            shape_calculation_mode: ShapeCalculation::Sizes,
            coordinate_transformation_mode: Coordinates::HalfPixel,
            nearest_mode: NearestMode::RoundPreferFloor,
            antialias: false,
            pads_begin: vec![0],
            pads_end: vec![0],
            cube_coeff: -0.75,
        };
        self.value = model.add(name, op, &[self.value, sizes, axes])?.into();
        Ok(())
    }

    fn crop(&mut self, model: &mut Model, begin: &[i64], end: &[i64]) -> Result<()> {
        let name = self.name(model, "crop");
        let mut list = |what: &str, values: &[i64]| -> Result<Value> {
            model.constant(&format!("{name}/{what}"), Tensor::from_slice(&[values.len()], values)?)
        };
        let axes: Vec<i64> = (0..begin.len() as i64).collect();
        let (step, axes) = (list("step", &vec![1; begin.len()])?, list("axes", &axes)?);
        let (begin, end) = (list("begin", begin)?, list("end", end)?);
        self.value = model.add(name, Slice, &[self.value, begin, end, step, axes])?.into();
        Ok(())
    }

    fn pad(&mut self, model: &mut Model, begin: &[i64], end: &[i64], value: f32, mode: PaddingMode) -> Result<()> {
        let pad_mode = match mode {
            PaddingMode::Constant => PadMode::Constant,
            PaddingMode::Edge => PadMode::Edge,
            PaddingMode::Reflect => PadMode::Reflect,
            PaddingMode::Symmetric => PadMode::Symmetric,
        };
        let name = self.name(model, "pad");
        let ty = model.fact(self.value).ty;
        let begin = model.constant(&format!("{name}/begin"), Tensor::from_slice(&[begin.len()], begin)?)?;
        let end = model.constant(&format!("{name}/end"), Tensor::from_slice(&[end.len()], end)?)?;
        let value = model.constant(&format!("{name}/value"), Tensor::from_f64(ty, &[], &[f64::from(value)])?)?;
        self.value = model.add(name, Pad { pad_mode }, &[self.value, begin, end, value])?.into();
        Ok(())
    }
}

/// The dimensions that must come into a step for these to come out; `before` and `after` are the layouts there.
pub(crate) fn dims_before(
    step: &Step,
    dims: &[Dim],
    color: (ColorFormat, ColorFormat),
    before: Option<&Layout>,
    after: Option<&Layout>,
) -> Result<Vec<Dim>> {
    let rank = dims.len();
    let mut all = dims.to_vec();
    let axis = |name: &str| before.map_or(Ok(None), |l| l.axis(name, rank));
    match step {
        Step::Type(_) | Step::TargetType | Step::ReverseChannels | Step::Mean(_) | Step::Scale(_) | Step::Clamp(..) => {
        }
        // Whoever changes sizes by these sets the shape of the tensor.
        Step::Crop(..) | Step::Pad(..) | Step::Custom(_) => {}
        Step::Layout(_) => {
            if let (Some(before), Some(after)) = (before, after) {
                all = reordered(dims, &before.order_to(after, rank)?);
            }
        }
        Step::Order(order) => all = reordered(dims, &Some(order.clone())),
        Step::Resize(..) => {
            for a in [axis("H")?, axis("W")?].into_iter().flatten() {
                all[a] = Dim::ANY;
            }
        }
        Step::Color(to) => {
            let planes = matches!(color.0, ColorFormat::Nv12SinglePlane | ColorFormat::I420SinglePlane);
            if let (Some(c), true) = (axis("C")?, *to == ColorFormat::Gray && color.0 != color.1) {
                all[c] = Dim::known(3);
            }
            let fourth = matches!(color.0, ColorFormat::Rgbx | ColorFormat::Bgrx);
            if let (Some(c), true) = (axis("C")?, fourth && color.0 != color.1) {
                all[c] = Dim::known(4);
            }
            if let (Some(c), Some(h), true) = (axis("C")?, axis("H")?, planes && color.0 != color.1) {
                all[c] = Dim::known(1);
                all[h] = all[h].get().map_or(Dim::ANY, |n| Dim::known(n / 2 * 3));
            }
        }
    }
    Ok(all)
}

// `dims[i]` of the result goes to axis `order[i]` of what comes in.
pub(crate) fn reordered(dims: &[Dim], order: &Option<Vec<usize>>) -> Vec<Dim> {
    let mut all = dims.to_vec();
    for (i, &from) in order.iter().flatten().enumerate() {
        if let (Some(to), Some(dim)) = (all.get_mut(from), dims.get(i)) {
            *to = *dim;
        }
    }
    all
}
