//! The builder: what the program has on one side, what the model takes on the other, and the steps between.

use crate::layout::Layout;
use crate::nodes::redirect;
use crate::steps::{ColorFormat, Custom, PaddingMode, ResizeAlgorithm, State, Step, described, dims_before, reordered};
use carafe_device::{Port, PortKey};
use carafe_graph::{Error, Model, NodeId, Parameter, Result, Value};
use carafe_tensor::{Dim, ElementType, PartialShape};
use std::fmt;
use std::sync::Arc;

/// Puts pre- and postprocessing into a model: `new`, describe inputs and outputs, `build`. A type or layout that differs
/// between tensor and model is converted at the end of the steps, asked for or not.
#[derive(Debug)]
pub struct PrePostProcessor {
    model: Model,
    inputs: Vec<InputInfo>,
    outputs: Vec<OutputInfo>,
}

/// One input: the tensor that the program gives, the steps, and what the model says of it.
#[derive(Debug, Default)]
pub struct InputInfo {
    tensor: InputTensorInfo,
    steps: PreProcessSteps,
    model: ModelInfo,
}

/// One output: what the model says of it, the steps, and the tensor that the program gets.
#[derive(Debug, Default)]
pub struct OutputInfo {
    model: ModelInfo,
    steps: PostProcessSteps,
    tensor: OutputTensorInfo,
}

/// The tensor that the program gives; what is not set is as in the model.
#[derive(Debug, Default)]
pub struct InputTensorInfo {
    ty: Option<ElementType>,
    layout: Option<Layout>,
    shape: Option<PartialShape>,
    spatial: Option<[Dim; 2]>,
    color: ColorFormat,
    /// Names of the planes behind that of the input; numbers where there are none.
    plane_names: Vec<String>,
}

/// The tensor that the program gets; what is not set is as in the model.
#[derive(Debug, Default)]
pub struct OutputTensorInfo {
    ty: Option<ElementType>,
    layout: Option<Layout>,
}

/// What the model does not say itself.
#[derive(Debug, Default)]
pub struct ModelInfo {
    layout: Option<Layout>,
}

/// Steps in front of the model, in the order they are asked for.
#[derive(Default)]
pub struct PreProcessSteps(Vec<Step>);

/// Steps behind the model, in the order they are asked for.
#[derive(Default)]
pub struct PostProcessSteps(Vec<Step>);

impl PrePostProcessor {
    /// Of a model as it was read.
    pub fn new(model: Model) -> PrePostProcessor {
        let inputs = model.parameters().iter().map(|_| InputInfo::default()).collect();
        let outputs = model.results().iter().map(|_| OutputInfo::default()).collect();
        PrePostProcessor { model, inputs, outputs }
    }

    /// An input by index, name or port.
    pub fn input<'k>(&mut self, key: impl Into<PortKey<'k>>) -> Result<&mut InputInfo> {
        let at = key.into().find(&Port::inputs_of(&self.model), "input")?;
        Ok(&mut self.inputs[at])
    }

    /// An output by index, name or port.
    pub fn output<'k>(&mut self, key: impl Into<PortKey<'k>>) -> Result<&mut OutputInfo> {
        let at = key.into().find(&Port::outputs_of(&self.model), "output")?;
        Ok(&mut self.outputs[at])
    }

    /// The model with everything in it.
    pub fn build(self) -> Result<Model> {
        let mut model = self.model;
        let (parameters, results) = (model.parameters().to_vec(), model.results().to_vec());
        for (info, id) in self.inputs.iter().zip(parameters) {
            let location = format!("preprocessing of input `{}`", model.parameter_name(id));
            info.apply(&mut model, id, None).map_err(|e| e.at(location))?;
        }
        for (info, id) in self.outputs.iter().zip(results) {
            let location = format!("postprocessing of output `{}`", model.result_name(id));
            info.apply(&mut model, id, None).map_err(|e| e.at(location))?;
        }
        model.infer()?;
        Ok(model)
    }
}

/// Every input and output that something is done with: its tensor on both sides, and each step with what goes in and comes out. A
/// step that cannot be done ends the text with the error.
impl fmt::Display for PrePostProcessor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut model = self.model.clone();
        let (parameters, results) = (model.parameters().to_vec(), model.results().to_vec());
        let mut text = String::new();
        let inputs = self.inputs.iter().zip(parameters);
        let mut done = Ok(());
        for (info, id) in inputs.filter(|(info, _)| !info.is_untouched() || info.model.layout.is_some()) {
            text.push_str(&format!("Input \"{}\":\n", model.parameter_name(id)));
            done = done.and_then(|()| info.apply(&mut model, id, Some(&mut text)));
        }
        for (info, id) in self.outputs.iter().zip(results).filter(|(info, _)| !info.is_untouched()) {
            text.push_str(&format!("Output \"{}\":\n", model.result_name(id)));
            done = done.and_then(|()| info.apply(&mut model, id, Some(&mut text)));
        }
        f.write_str(&text)?;
        done.map_or_else(|e| writeln!(f, "    {e}"), |()| Ok(()))
    }
}

impl InputInfo {
    /// What the program gives.
    pub fn tensor(&mut self) -> &mut InputTensorInfo {
        &mut self.tensor
    }
    /// The steps between tensor and model.
    pub fn preprocess(&mut self) -> &mut PreProcessSteps {
        &mut self.steps
    }
    /// What the model takes.
    pub fn model(&mut self) -> &mut ModelInfo {
        &mut self.model
    }

    fn is_untouched(&self) -> bool {
        let t = &self.tensor;
        let plain = t.ty.is_none() && t.layout.is_none() && t.shape.is_none() && t.spatial.is_none();
        plain && self.steps.0.is_empty() && t.color == ColorFormat::Undefined
    }

    fn apply(&self, model: &mut Model, id: NodeId, text: Option<&mut String>) -> Result<()> {
        let v = Value::from(id);
        let inside = self.model.layout.clone().map_or_else(|| Layout::of(model, v), |l| Ok(Some(l)))?;
        if self.is_untouched() && text.is_none() {
            inside.iter().for_each(|l| l.note(model, v));
            return Ok(());
        }
        let old = model.node(id).op().get::<Parameter>().cloned().ok_or_else(|| Error::usage("it is no Parameter"))?;
        let rank = old.shape.rank();
        let picture = self.tensor.color.is_channels_last() && rank.is_none_or(|n| n == 4);
        let channels_last = picture.then(|| "NHWC".parse::<Layout>()).transpose()?;
        let outside = self.tensor.layout.clone().or(channels_last).or_else(|| inside.clone());
        let shape = match &self.tensor.shape {
            Some(shape) => shape.clone(),
            None => self.shape(&old.shape, inside.as_ref(), outside.as_ref())?,
        };
        let size = |axis: &str| -> Option<i64> { old.shape.dim(inside.as_ref()?.axis(axis, rank?).ok()??).get() };
        let target = size("H").zip(size("W"));
        let readers = model.users(v).to_vec();
        let ty = self.tensor.ty.unwrap_or(old.element_type);
        let prefix = model.node(id).name().to_string();
        let (color, several) = (self.tensor.color, self.tensor.color.planes() > 1);
        let planes = match several {
            true => self.plane_parameters(model, id, ty, &shape, outside.as_ref())?,
            false => {
                model.set_op(id, Arc::new(Parameter { shape, element_type: ty }))?;
                vec![]
            }
        };
        let (target_type, trace) = (Some(old.element_type), text.is_some().then(String::new));
        let mut state = State { value: v, layout: outside.clone(), color, target, prefix, planes, target_type, trace };
        let head = state.trace.as_ref().map(|_| {
            let user = described(model, state.planes.first().copied().unwrap_or(v), outside.as_ref(), color);
            let taken = inside.as_ref().map_or("<no layout>".to_string(), Layout::to_string);
            let (shape, ty) = (&old.shape, old.element_type);
            format!("    User's input tensor: {user}\n    Model's expected tensor: [{shape}], {taken}, {ty}\n")
        });
        for step in &self.steps.0 {
            state.run(model, step)?;
        }
        if !state.planes.is_empty() {
            return Err(Error::usage(format!("the model takes no {color:?}; convert the colours")));
        }
        let explicit = state.trace.as_mut().map(std::mem::take);
        let mut implicit = Vec::new();
        if let Some(inside) = inside.as_ref().filter(|l| state.layout.as_ref() != Some(l)) {
            implicit.push(Step::Layout(inside.clone()));
        }
        if model.fact(state.value).ty != old.element_type {
            implicit.push(Step::Type(old.element_type));
        }
        for step in &implicit {
            state.run(model, step)?;
        }
        if let (Some(text), Some(head), Some(explicit), Some(trace)) = (text, head, explicit, &state.trace) {
            text.push_str(&head);
            list_steps(text, "Pre-processing steps", self.steps.0.len(), &explicit);
            list_steps(text, "Implicit pre-processing steps", implicit.len(), trace);
        }
        let made = model.fact(state.value).shape.clone();
        if !made.compatible(&old.shape) {
            return Err(Error::usage(format!("the steps make [{made}], the model takes [{}]", old.shape)));
        }
        redirect(model, &readers, state.value);
        match several {
            true => model.remove(id)?,
            false => outside.iter().for_each(|l| l.note(model, v)),
        }
        Ok(())
    }

    // An input for each plane in the place of the one for the picture, which keeps its readers for now.
    fn plane_parameters(
        &self,
        model: &mut Model,
        id: NodeId,
        ty: ElementType,
        shape: &PartialShape,
        layout: Option<&Layout>,
    ) -> Result<Vec<Value>> {
        let rank = shape.rank().filter(|r| *r == 4);
        let (rank, layout) = rank.zip(layout).ok_or_else(|| Error::usage("a picture in planes has four axes"))?;
        let dim = |axis: &str| -> Result<Dim> { Ok(layout.axis(axis, rank)?.map_or(Dim::ANY, |a| shape.dim(a))) };
        let (n, h, w) = (dim("N")?, dim("H")?, dim("W")?);
        let half = |d: Dim| d.get().map_or(Dim::ANY, |n| Dim::known(n / 2));
        let chroma = |channels| PartialShape::new([n, half(h), half(w), Dim::known(channels)]);
        let first = PartialShape::new([n, h, w, Dim::known(1)]);
        let shapes = match self.tensor.color {
            ColorFormat::Nv12TwoPlanes => vec![first, chroma(2)],
            _ => vec![first, chroma(1), chroma(1)],
        };
        let (name, names) = (model.node(id).name().to_string(), model.node(id).outputs()[0].names.clone());
        let mut values = Vec::new();
        for (i, shape) in shapes.into_iter().enumerate() {
            let plane = self.tensor.plane_names.get(i).cloned().unwrap_or_else(|| i.to_string());
            let value = model.parameter(&format!("{name}/{plane}"), ty, shape)?;
            if !names.is_empty() {
                model.set_tensor_names(value, names.iter().map(|n| format!("{n}/{plane}")).collect());
            }
            layout.note(model, value);
            values.push(value);
        }
        // The new ones stand at the end; they belong where the old one is.
        let all = model.parameters().to_vec();
        let (old, new) = all.split_at(all.len() - values.len());
        let order = old.iter().flat_map(|&p| if p == id { [new, &[p]].concat() } else { vec![p] }).collect();
        model.order_parameters(order);
        Ok(values)
    }

    // The shape of the tensor that leads to the shape of the model.
    fn shape(&self, model: &PartialShape, inside: Option<&Layout>, outside: Option<&Layout>) -> Result<PartialShape> {
        let Some(dims) = model.dims() else { return Ok(PartialShape::dynamic()) };
        let rank = dims.len();
        // Layouts and colours in front of each step, and behind the last.
        let mut layouts = vec![outside.cloned()];
        let mut colors = vec![self.tensor.color];
        for step in &self.steps.0 {
            let (layout, color) = (layouts.last().cloned().flatten(), colors.last().copied().unwrap_or_default());
            layouts.push(match step {
                Step::Layout(to) => Some(to.clone()),
                Step::Order(order) => layout.map(|l| l.ordered(order)).transpose()?,
                _ => layout,
            });
            colors.push(if let Step::Color(to) = step { *to } else { color });
        }
        let mut dims = dims.to_vec();
        if let (Some(last), Some(inside)) = (layouts.last().cloned().flatten(), inside) {
            dims = reordered(&dims, &last.order_to(inside, rank)?);
        }
        for (i, step) in self.steps.0.iter().enumerate().rev() {
            let (before, after) = (layouts[i].as_ref(), layouts[i + 1].as_ref());
            dims = dims_before(step, &dims, (colors[i], colors[i + 1]), before, after)?;
        }
        let channels = self.tensor.color.channels();
        if let (Some(channels), Some(layout)) = (channels, outside)
            && let Some(c) = layout.axis("C", rank)?
        {
            dims[c] = Dim::known(channels);
        }
        if let Some(spatial) = self.tensor.spatial {
            let none = || Error::usage("height and width of the tensor are set, but not its layout");
            let layout = outside.ok_or_else(none)?;
            // Height and width are those of the picture; planes in one tensor lie below each other.
            let below = matches!(self.tensor.color, ColorFormat::Nv12SinglePlane | ColorFormat::I420SinglePlane);
            let [h, w] = spatial;
            let h = if below { h.get().map_or(Dim::ANY, |n| Dim::known(n / 2 * 3)) } else { h };
            for (axis, dim) in [("H", h), ("W", w)] {
                dims[layout.axis(axis, rank)?.ok_or_else(none)?] = dim;
            }
        }
        Ok(PartialShape::new(dims))
    }
}

impl OutputInfo {
    /// What the model gives.
    pub fn model(&mut self) -> &mut ModelInfo {
        &mut self.model
    }
    /// The steps between model and tensor.
    pub fn postprocess(&mut self) -> &mut PostProcessSteps {
        &mut self.steps
    }
    /// What the program gets.
    pub fn tensor(&mut self) -> &mut OutputTensorInfo {
        &mut self.tensor
    }

    fn is_untouched(&self) -> bool {
        self.steps.0.is_empty() && self.tensor.ty.is_none() && self.tensor.layout.is_none()
    }

    fn apply(&self, model: &mut Model, id: NodeId, text: Option<&mut String>) -> Result<()> {
        let v = model.result_value(id);
        let inside = self.model.layout.clone().map_or_else(|| Layout::of(model, v), |l| Ok(Some(l)))?;
        let name = model.result_name(id);
        let (color, prefix) = (ColorFormat::Undefined, name.clone());
        let (target_type, trace) = (self.tensor.ty, text.is_some().then(String::new));
        let head = format!("    Model's data tensor: {}\n", described(model, v, inside.as_ref(), color));
        let mut state =
            State { value: v, layout: inside, color, target: None, prefix, planes: vec![], target_type, trace };
        for step in &self.steps.0 {
            state.run(model, step)?;
        }
        let explicit = state.trace.as_mut().map(std::mem::take);
        let mut implicit = Vec::new();
        if let Some(layout) = &self.tensor.layout {
            if state.layout.is_none() {
                return Err(Error::usage(format!("the layout before {layout} is not known; set that of the model")));
            }
            if state.layout.as_ref() != Some(layout) {
                implicit.push(Step::Layout(layout.clone()));
            }
        }
        if let Some(ty) = self.tensor.ty.filter(|ty| *ty != model.fact(state.value).ty) {
            implicit.push(Step::Type(ty));
        }
        for step in &implicit {
            state.run(model, step)?;
        }
        if let (Some(text), Some(explicit), Some(trace)) = (text, explicit, &state.trace) {
            text.push_str(&head);
            list_steps(text, "Post-processing steps", self.steps.0.len(), &explicit);
            list_steps(text, "Post-processing implicit steps", implicit.len(), trace);
            let user = described(model, state.value, state.layout.as_ref(), color);
            text.push_str(&format!("    User's output tensor: {user}\n"));
        }
        if state.value != v {
            // The output keeps its name; the tensor inside is another one now.
            let mut names = model.output(v).names.clone();
            if names.is_empty() {
                names.insert(name);
            }
            model.set_tensor_names(v, Default::default());
            model.set_tensor_names(state.value, names);
            model.set_input(id, 0, state.value);
        }
        state.layout.iter().for_each(|l| l.note(model, state.value));
        Ok(())
    }
}

fn list_steps(text: &mut String, title: &str, count: usize, steps: &str) {
    if count > 0 {
        text.push_str(&format!("    {title} ({count}):\n{steps}"));
    }
}

impl InputTensorInfo {
    /// Its element type.
    pub fn element_type(&mut self, ty: ElementType) -> &mut Self {
        self.ty = Some(ty);
        self
    }
    /// What its axes are.
    pub fn layout(&mut self, layout: Layout) -> &mut Self {
        self.layout = Some(layout);
        self
    }
    /// Its shape, in its own layout.
    pub fn shape(&mut self, shape: PartialShape) -> &mut Self {
        self.shape = Some(shape);
        self
    }
    /// Its height and width, where a resize step makes those of the model of them.
    pub fn spatial_static_shape(&mut self, height: usize, width: usize) -> &mut Self {
        self.spatial = Some([Dim::from(height), Dim::from(width)]);
        self
    }
    /// Height and width may be any.
    pub fn spatial_dynamic_shape(&mut self) -> &mut Self {
        self.spatial = Some([Dim::ANY, Dim::ANY]);
        self
    }
    /// What its channels are. One of several planes becomes an input for each; `input/0`, `input/1` and so on.
    pub fn color_format(&mut self, color: ColorFormat) -> &mut Self {
        self.color_planes(color, &[] as &[&str])
    }
    /// As [`InputTensorInfo::color_format`], with a name for each plane: the inputs are `input/name`.
    pub fn color_planes(&mut self, color: ColorFormat, names: &[impl AsRef<str>]) -> &mut Self {
        self.color = color;
        self.plane_names = names.iter().map(|n| n.as_ref().to_string()).collect();
        self
    }
}

impl OutputTensorInfo {
    /// The element type that the program gets.
    pub fn element_type(&mut self, ty: ElementType) -> &mut Self {
        self.ty = Some(ty);
        self
    }
    /// The order of axes that the program gets.
    pub fn layout(&mut self, layout: Layout) -> &mut Self {
        self.layout = Some(layout);
        self
    }
}

impl ModelInfo {
    /// What the axes are inside of the model.
    pub fn layout(&mut self, layout: Layout) -> &mut Self {
        self.layout = Some(layout);
        self
    }
}

macro_rules! common_steps {
    ($steps:ident) => {
        impl $steps {
            fn push(&mut self, step: Step) -> &mut Self {
                self.0.push(step);
                self
            }
            /// Converts to another element type.
            pub fn convert_element_type(&mut self, ty: ElementType) -> &mut Self {
                self.push(Step::Type(ty))
            }
            /// Converts to the type on the other side: that of the model's input, or that which the program gets.
            pub fn convert_to_target_type(&mut self) -> &mut Self {
                self.push(Step::TargetType)
            }
            /// Puts the axes into another order; the layout before must be known.
            pub fn convert_layout(&mut self, layout: Layout) -> &mut Self {
                self.push(Step::Layout(layout))
            }
            /// Puts the axes into another order: axis `i` becomes what was axis `order[i]`.
            pub fn convert_layout_order(&mut self, order: impl Into<Vec<usize>>) -> &mut Self {
                self.push(Step::Order(order.into()))
            }
            /// Limits every element to `min..=max`.
            pub fn clamp(&mut self, min: f64, max: f64) -> &mut Self {
                self.push(Step::Clamp(min, max))
            }
            /// Nodes of your own: gets the model and the value so far, gives the new value. Printing the processor calls it too.
            pub fn custom(
                &mut self,
                make: impl Fn(&mut Model, Value) -> Result<Value> + Send + Sync + 'static,
            ) -> &mut Self {
                let make: Custom = Arc::new(make);
                self.push(Step::Custom(make))
            }
        }

        impl fmt::Debug for $steps {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($steps), "({} steps)"), self.0.len())
            }
        }
    };
}
common_steps!(PreProcessSteps);
common_steps!(PostProcessSteps);

impl PreProcessSteps {
    /// Converts between colours; the tensor's `color_format` is where it starts.
    pub fn convert_color(&mut self, to: ColorFormat) -> &mut Self {
        self.push(Step::Color(to))
    }
    /// Puts the channels into the opposite order.
    pub fn reverse_channels(&mut self) -> &mut Self {
        self.push(Step::ReverseChannels)
    }
    /// Resizes to the height and width of the model.
    pub fn resize(&mut self, algorithm: ResizeAlgorithm) -> &mut Self {
        self.push(Step::Resize(algorithm, None))
    }
    /// Resizes to this height and width.
    pub fn resize_to(&mut self, algorithm: ResizeAlgorithm, height: usize, width: usize) -> &mut Self {
        self.push(Step::Resize(algorithm, Some((height, width))))
    }
    /// Keeps elements `begin[i]..end[i]` of every axis; negative numbers count from its end. Set the shape of the tensor too.
    pub fn crop(&mut self, begin: impl Into<Vec<i64>>, end: impl Into<Vec<i64>>) -> &mut Self {
        self.push(Step::Crop(begin.into(), end.into()))
    }
    /// Adds elements before and after every axis. Set the shape of the tensor too.
    pub fn pad(
        &mut self,
        begin: impl Into<Vec<i64>>,
        end: impl Into<Vec<i64>>,
        value: f32,
        mode: PaddingMode,
    ) -> &mut Self {
        self.push(Step::Pad(begin.into(), end.into(), value, mode))
    }
    /// Subtracts one value, or one for each channel.
    pub fn mean(&mut self, values: impl Into<Vec<f64>>) -> &mut Self {
        self.push(Step::Mean(values.into()))
    }
    /// Divides by one value, or by one for each channel.
    pub fn scale(&mut self, values: impl Into<Vec<f64>>) -> &mut Self {
        self.push(Step::Scale(values.into()))
    }
}
