//! `preprocess`: steps between what a program has and what a model takes. Objects of parts point into the one processor.

use crate::errors::{OrRaise, failure};
use crate::layout::{Layout, layout_of};
use crate::model;
use crate::numpy;
use crate::shapes::{PartialShape, shape_of};
use crate::tensor::Tensor;
use crate::types::Type;
use carafe::preprocess::{
    ColorFormat, InputInfo, OutputInfo, PaddingMode, PrePostProcessor as Engine, ResizeAlgorithm,
};
use carafe::{Model, NodeId, Parameter, Port, PortKey, ResultOp, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

struct Steps {
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    /// `None` once it was built.
    engine: Mutex<Option<Engine>>,
    /// Kinds of memory that inputs shall lie in, by name of the input.
    memory: Mutex<Vec<(String, String)>>,
    /// What a step of the program raised while the model was built.
    raised: Arc<Mutex<Option<PyErr>>>,
}

impl Steps {
    fn with<T>(&self, body: impl FnOnce(&mut Engine) -> carafe::Result<T>) -> PyResult<T> {
        let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        body(engine.as_mut().ok_or_else(|| failure("the model of this processor is built already"))?).or_raise()
    }
    fn find(&self, ports: &[Port], what: &str, key: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
        match key {
            None if ports.len() == 1 => Ok(0),
            None => Err(failure(format!("the model has {} {what}s, name one", ports.len()))),
            Some(key) => match key.cast::<PyString>() {
                Ok(name) => PortKey::Name(&name.to_cow()?).find(ports, what).or_raise(),
                Err(_) => PortKey::Index(key.extract()?).find(ports, what).or_raise(),
            },
        }
    }
}

/// Puts pre- and postprocessing into a model.
#[pyclass(name = "PrePostProcessor", module = "carafe.preprocess", frozen, subclass)]
pub(crate) struct PrePostProcessor(Arc<Steps>);

#[pymethods]
impl PrePostProcessor {
    #[new]
    fn new(model: &Bound<'_, PyAny>) -> PyResult<PrePostProcessor> {
        let engine = model::to_engine(model)?;
        let (inputs, outputs) = (Port::inputs_of(&engine), Port::outputs_of(&engine));
        Ok(PrePostProcessor(Arc::new(Steps {
            inputs,
            outputs,
            engine: Mutex::new(Some(Engine::new(engine))),
            memory: Mutex::default(),
            raised: Arc::default(),
        })))
    }
    #[pyo3(signature = (key=None))]
    fn input(&self, key: Option<&Bound<'_, PyAny>>) -> PyResult<PyInput> {
        let index = self.0.find(&self.0.inputs, "input", key)?;
        Ok(PyInput { steps: self.0.clone(), index })
    }
    #[pyo3(signature = (key=None))]
    fn output(&self, key: Option<&Bound<'_, PyAny>>) -> PyResult<PyOutput> {
        let index = self.0.find(&self.0.outputs, "output", key)?;
        Ok(PyOutput { steps: self.0.clone(), index })
    }
    /// The model with everything in it.
    fn build<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let engine = self.0.engine.lock().unwrap_or_else(PoisonError::into_inner).take();
        let engine = engine.ok_or_else(|| failure("the model of this processor is built already"))?;
        let built = engine.build();
        if let Some(raised) = self.0.raised.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(raised);
        }
        let mut built = built.or_raise()?;
        for (input, kind) in self.0.memory.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            if let Some(index) = built.find_parameter(&input) {
                let value = Value::from(built.parameters()[index]);
                built.output_rt_info_mut(value).set("memory_type", "0", vec![("value".to_string(), kind)]);
            }
        }
        model::from_engine(py, built)
    }
    /// What is done with each input and output, step by step.
    fn __str__(&self) -> String {
        // Steps of the program run meanwhile: no lock may be held.
        let engine = self.0.engine.lock().unwrap_or_else(PoisonError::into_inner).take();
        let text = engine.as_ref().map(ToString::to_string).unwrap_or_default();
        *self.0.engine.lock().unwrap_or_else(PoisonError::into_inner) = engine;
        // What a step raised is in the text.
        self.0.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        text
    }
    fn __repr__(&self) -> String {
        format!("<PrePostProcessor: {}>", self.__str__())
    }
}

macro_rules! parts {
    ($($part:ident = $name:literal;)*) => { $(
        #[doc = concat!("`", $name, "`: a part of a processor.")]
        #[pyclass(name = $name, module = "carafe.preprocess", frozen)]
        pub(crate) struct $part {
            steps: Arc<Steps>,
            index: usize,
        }
    )* };
}

parts! {
    PyInput = "InputInfo";
    PyInputTensor = "InputTensorInfo";
    PyInputModel = "InputModelInfo";
    PyPreSteps = "PreProcessSteps";
    PyOutput = "OutputInfo";
    PyOutputTensor = "OutputTensorInfo";
    PyOutputModel = "OutputModelInfo";
    PyPostSteps = "PostProcessSteps";
}

#[pymethods]
impl PyInput {
    fn tensor(&self) -> PyInputTensor {
        PyInputTensor { steps: self.steps.clone(), index: self.index }
    }
    fn preprocess(&self) -> PyPreSteps {
        PyPreSteps { steps: self.steps.clone(), index: self.index }
    }
    fn model(&self) -> PyInputModel {
        PyInputModel { steps: self.steps.clone(), index: self.index }
    }
}

#[pymethods]
impl PyOutput {
    fn tensor(&self) -> PyOutputTensor {
        PyOutputTensor { steps: self.steps.clone(), index: self.index }
    }
    fn postprocess(&self) -> PyPostSteps {
        PyPostSteps { steps: self.steps.clone(), index: self.index }
    }
    fn model(&self) -> PyOutputModel {
        PyOutputModel { steps: self.steps.clone(), index: self.index }
    }
}

macro_rules! with {
    ($($part:ident: $side:ident $info:ident;)*) => { $(
        impl $part {
            fn with(&self, body: impl FnOnce(&mut $info)) -> PyResult<()> {
                self.steps.with(|engine| engine.$side(self.index).map(body))
            }
        }
    )* };
}

with! {
    PyInputTensor: input InputInfo;
    PyInputModel: input InputInfo;
    PyPreSteps: input InputInfo;
    PyOutputTensor: output OutputInfo;
    PyOutputModel: output OutputInfo;
    PyPostSteps: output OutputInfo;
}

// The engine's layout; one that says nothing is not set.
fn known(layout: &Bound<'_, PyAny>) -> PyResult<Option<carafe::preprocess::Layout>> {
    Ok(layout_of(layout)?.known())
}

fn element_type(ty: &Bound<'_, PyAny>) -> PyResult<carafe::ElementType> {
    match ty.cast::<Type>() {
        Ok(ty) => Ok(ty.get().0),
        Err(_) => Err(PyTypeError::new_err(format!(
            "incompatible function arguments: a Type is expected, found {}",
            ty.get_type()
        ))),
    }
}

type Me<'py, T> = PyResult<Bound<'py, T>>;

#[pymethods]
impl PyInputTensor {
    fn set_element_type<'py>(slf: Bound<'py, Self>, r#type: &Bound<'py, PyAny>) -> Me<'py, Self> {
        let ty = element_type(r#type)?;
        slf.get().with(|info| {
            info.tensor().element_type(ty);
        })?;
        Ok(slf)
    }
    fn set_layout<'py>(slf: Bound<'py, Self>, layout: &Bound<'py, PyAny>) -> Me<'py, Self> {
        if let Some(layout) = known(layout)? {
            slf.get().with(|info| {
                info.tensor().layout(layout);
            })?;
        }
        Ok(slf)
    }
    fn set_shape<'py>(slf: Bound<'py, Self>, shape: &Bound<'py, PyAny>) -> Me<'py, Self> {
        let shape = shape_of(shape)?;
        slf.get().with(|info| {
            info.tensor().shape(shape);
        })?;
        Ok(slf)
    }
    /// Type and shape are those of a tensor or array.
    fn set_from<'py>(slf: Bound<'py, Self>, tensor: &Bound<'py, PyAny>) -> Me<'py, Self> {
        let (ty, shape) = match tensor.cast::<Tensor>() {
            Ok(tensor) => (tensor.get().cell.element_type(), tensor.get().cell.shape()),
            Err(_) if numpy::numpy(tensor.py())?.is_array(tensor) => {
                let seen = numpy::look(tensor)?;
                (seen.ty.ok_or_else(|| failure("no element type is like the dtype of the array"))?, seen.shape)
            }
            Err(_) => {
                return Err(PyTypeError::new_err(format!(
                    "incompatible function arguments: a Tensor or an array is expected, found {}",
                    tensor.get_type()
                )));
            }
        };
        slf.get().with(|info| {
            info.tensor().element_type(ty).shape(carafe::PartialShape::of(&shape));
        })?;
        Ok(slf)
    }
    fn set_spatial_static_shape<'py>(slf: Bound<'py, Self>, height: usize, width: usize) -> Me<'py, Self> {
        slf.get().with(|info| {
            info.tensor().spatial_static_shape(height, width);
        })?;
        Ok(slf)
    }
    fn set_spatial_dynamic_shape<'py>(slf: Bound<'py, Self>) -> Me<'py, Self> {
        slf.get().with(|info| {
            info.tensor().spatial_dynamic_shape();
        })?;
        Ok(slf)
    }
    #[pyo3(signature = (format, sub_names=vec![]))]
    fn set_color_format<'py>(slf: Bound<'py, Self>, format: usize, sub_names: Vec<String>) -> Me<'py, Self> {
        let color = color(format)?;
        if !sub_names.is_empty() && sub_names.len() != color.planes() {
            return Err(failure(format!("{color:?} has {} planes, found {} names", color.planes(), sub_names.len())));
        }
        slf.get().with(|info| {
            info.tensor().color_planes(color, &sub_names);
        })?;
        Ok(slf)
    }
    /// Notes at the input in which memory its tensors lie.
    fn set_memory_type<'py>(slf: Bound<'py, Self>, memory_type: String) -> Me<'py, Self> {
        let me = slf.get();
        let name = me.steps.inputs[me.index].name.clone();
        me.steps.memory.lock().unwrap_or_else(PoisonError::into_inner).push((name, memory_type));
        Ok(slf)
    }
}

#[pymethods]
impl PyInputModel {
    fn set_layout<'py>(slf: Bound<'py, Self>, layout: &Bound<'py, PyAny>) -> Me<'py, Self> {
        if let Some(layout) = known(layout)? {
            slf.get().with(|info| {
                info.model().layout(layout);
            })?;
        }
        Ok(slf)
    }
}

#[pymethods]
impl PyOutputModel {
    fn set_layout<'py>(slf: Bound<'py, Self>, layout: &Bound<'py, PyAny>) -> Me<'py, Self> {
        if let Some(layout) = known(layout)? {
            slf.get().with(|info| {
                info.model().layout(layout);
            })?;
        }
        Ok(slf)
    }
}

#[pymethods]
impl PyOutputTensor {
    fn set_element_type<'py>(slf: Bound<'py, Self>, r#type: &Bound<'py, PyAny>) -> Me<'py, Self> {
        let ty = element_type(r#type)?;
        slf.get().with(|info| {
            info.tensor().element_type(ty);
        })?;
        Ok(slf)
    }
    fn set_layout<'py>(slf: Bound<'py, Self>, layout: &Bound<'py, PyAny>) -> Me<'py, Self> {
        if let Some(layout) = known(layout)? {
            slf.get().with(|info| {
                info.tensor().layout(layout);
            })?;
        }
        Ok(slf)
    }
}

// One number, or one for each channel.
fn numbers(value: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    match value.extract::<f64>() {
        Ok(one) => Ok(vec![one]),
        Err(_) => value.extract(),
    }
}

enum Order {
    Layout(Option<carafe::preprocess::Layout>),
    Axes(Vec<usize>),
}

fn order(layout: &Bound<'_, PyAny>) -> PyResult<Order> {
    match layout.is_instance_of::<Layout>() || layout.is_instance_of::<PyString>() {
        true => known(layout).map(Order::Layout),
        false => layout.extract().map(Order::Axes),
    }
}

#[pymethods]
impl PyPreSteps {
    fn mean<'py>(slf: Bound<'py, Self>, value: &Bound<'py, PyAny>) -> Me<'py, Self> {
        let values = numbers(value)?;
        slf.get().with(|info| {
            info.preprocess().mean(values);
        })?;
        Ok(slf)
    }
    fn scale<'py>(slf: Bound<'py, Self>, value: &Bound<'py, PyAny>) -> Me<'py, Self> {
        let values = numbers(value)?;
        slf.get().with(|info| {
            info.preprocess().scale(values);
        })?;
        Ok(slf)
    }
    #[pyo3(signature = (r#type=None))]
    fn convert_element_type<'py>(slf: Bound<'py, Self>, r#type: Option<&Bound<'py, PyAny>>) -> Me<'py, Self> {
        let ty = r#type.map(element_type).transpose()?;
        slf.get().with(|info| {
            match ty {
                Some(ty) => info.preprocess().convert_element_type(ty),
                None => info.preprocess().convert_to_target_type(),
            };
        })?;
        Ok(slf)
    }
    fn convert_layout<'py>(slf: Bound<'py, Self>, dst_layout: &Bound<'py, PyAny>) -> Me<'py, Self> {
        match order(dst_layout)? {
            Order::Layout(None) => {}
            Order::Layout(Some(layout)) => slf.get().with(|info| {
                info.preprocess().convert_layout(layout);
            })?,
            Order::Axes(axes) => slf.get().with(|info| {
                info.preprocess().convert_layout_order(axes);
            })?,
        }
        Ok(slf)
    }
    fn convert_color<'py>(slf: Bound<'py, Self>, dst_format: usize) -> Me<'py, Self> {
        let color = color(dst_format)?;
        slf.get().with(|info| {
            info.preprocess().convert_color(color);
        })?;
        Ok(slf)
    }
    fn reverse_channels<'py>(slf: Bound<'py, Self>) -> Me<'py, Self> {
        slf.get().with(|info| {
            info.preprocess().reverse_channels();
        })?;
        Ok(slf)
    }
    #[pyo3(signature = (alg, dst_height=None, dst_width=None))]
    fn resize<'py>(
        slf: Bound<'py, Self>,
        alg: usize,
        dst_height: Option<usize>,
        dst_width: Option<usize>,
    ) -> Me<'py, Self> {
        use ResizeAlgorithm::{BicubicPillow, BilinearPillow, Cubic, Linear, Nearest};
        let all = [Linear, Cubic, Nearest, BilinearPillow, BicubicPillow];
        let algorithm = *all.get(alg).ok_or_else(|| failure(format!("there is no algorithm {alg}")))?;
        slf.get().with(|info| {
            match dst_height.zip(dst_width) {
                Some((height, width)) => info.preprocess().resize_to(algorithm, height, width),
                None => info.preprocess().resize(algorithm),
            };
        })?;
        Ok(slf)
    }
    fn crop<'py>(slf: Bound<'py, Self>, begin: Vec<i64>, end: Vec<i64>) -> Me<'py, Self> {
        slf.get().with(|info| {
            info.preprocess().crop(begin, end);
        })?;
        Ok(slf)
    }
    fn pad<'py>(
        slf: Bound<'py, Self>,
        pads_begin: Vec<i64>,
        pads_end: Vec<i64>,
        value: &Bound<'py, PyAny>,
        mode: usize,
    ) -> Me<'py, Self> {
        let values = numbers(value)?;
        let first = *values.first().ok_or_else(|| failure("a padding has a value"))?;
        if values.iter().any(|v| *v != first) {
            return Err(failure("a padding with another value for each channel is not there; give one value"));
        }
        let all = [PaddingMode::Constant, PaddingMode::Edge, PaddingMode::Reflect, PaddingMode::Symmetric];
        let mode = *all.get(mode).ok_or_else(|| failure(format!("there is no mode {mode}")))?;
        slf.get().with(|info| {
            info.preprocess().pad(pads_begin, pads_end, first as f32, mode);
        })?;
        Ok(slf)
    }
    /// Nodes of the program: a function of the output so far that gives a node.
    fn custom<'py>(slf: Bound<'py, Self>, operation: Py<PyAny>) -> Me<'py, Self> {
        let raised = slf.get().steps.raised.clone();
        slf.get().with(|info| {
            info.preprocess().custom(move |model, value| custom(model, value, &operation, &raised));
        })?;
        Ok(slf)
    }
}

#[pymethods]
impl PyPostSteps {
    #[pyo3(signature = (r#type=None))]
    fn convert_element_type<'py>(slf: Bound<'py, Self>, r#type: Option<&Bound<'py, PyAny>>) -> Me<'py, Self> {
        let ty = r#type.map(element_type).transpose()?;
        slf.get().with(|info| {
            match ty {
                Some(ty) => info.postprocess().convert_element_type(ty),
                None => info.postprocess().convert_to_target_type(),
            };
        })?;
        Ok(slf)
    }
    fn convert_layout<'py>(slf: Bound<'py, Self>, dst_layout: &Bound<'py, PyAny>) -> Me<'py, Self> {
        match order(dst_layout)? {
            Order::Layout(None) => {}
            Order::Layout(Some(layout)) => slf.get().with(|info| {
                info.postprocess().convert_layout(layout);
            })?,
            Order::Axes(axes) => slf.get().with(|info| {
                info.postprocess().convert_layout_order(axes);
            })?,
        }
        Ok(slf)
    }
    /// Nodes of the program: a function of the output so far that gives a node.
    fn custom<'py>(slf: Bound<'py, Self>, operation: Py<PyAny>) -> Me<'py, Self> {
        let raised = slf.get().steps.raised.clone();
        slf.get().with(|info| {
            info.postprocess().custom(move |model, value| custom(model, value, &operation, &raised));
        })?;
        Ok(slf)
    }
}

fn color(format: usize) -> PyResult<ColorFormat> {
    use ColorFormat::{
        Bgr, Bgrx, Gray, I420SinglePlane, I420ThreePlanes, Nv12SinglePlane, Nv12TwoPlanes, Rgb, Rgbx, Undefined,
    };
    let all = [Undefined, Nv12SinglePlane, Nv12TwoPlanes, I420SinglePlane, I420ThreePlanes, Rgb, Bgr, Gray, Rgbx, Bgrx];
    all.get(format).copied().ok_or_else(|| failure(format!("there is no colour format {format}")))
}

// The nodes that a function of the program makes behind a value. It builds them behind a parameter of the same type and shape; that
// small model is then copied in.
fn custom(
    model: &mut Model,
    value: Value,
    operation: &Py<PyAny>,
    raised: &Mutex<Option<PyErr>>,
) -> carafe::Result<Value> {
    let fact = model.fact(value).clone();
    let made = Python::try_attach(|py| -> PyResult<Model> {
        let shape = Bound::new(py, PartialShape::from(fact.shape.clone()))?;
        let helper = py.import("carafe._preprocess_steps")?.getattr("nodes_behind")?;
        model::to_engine(&helper.call1((operation, Type(fact.ty), shape))?)
    });
    let small = match made {
        Some(Ok(small)) => small,
        Some(Err(e)) => {
            let text = format!("a custom step raised: {e}");
            *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
            return Err(carafe::Error::usage(text));
        }
        None => return Err(carafe::Error::usage("Python is at its end")),
    };
    let mut copied: HashMap<Value, Value> = HashMap::new();
    let mut result = None;
    for id in small.topological_order()? {
        let node = small.node(id);
        if node.op().get::<Parameter>().is_some() {
            copied.insert(Value::from(id), value);
            continue;
        }
        let inputs: Vec<Value> = node.inputs().iter().map(|v| copied[v]).collect();
        if node.op().get::<ResultOp>().is_some() {
            result = inputs.first().copied();
            continue;
        }
        let name = (0..).map(|i| if i == 0 { node.name().to_string() } else { format!("{}_{i}", node.name()) });
        let name = name.take(1000).find(|n| model.find_node(n).is_none()).unwrap_or_else(|| node.name().to_string());
        let new: NodeId = model.add_ref(name, node.op_ref().clone(), &inputs)?;
        for port in 0..node.outputs().len() {
            copied.insert(small_value(id, port), small_value(new, port));
        }
    }
    result.ok_or_else(|| carafe::Error::usage("a custom step gave no node"))
}

fn small_value(node: NodeId, port: usize) -> Value {
    Value { node, port }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PrePostProcessor>()?;
    module.add_class::<PyInput>()?;
    module.add_class::<PyInputTensor>()?;
    module.add_class::<PyInputModel>()?;
    module.add_class::<PyPreSteps>()?;
    module.add_class::<PyOutput>()?;
    module.add_class::<PyOutputTensor>()?;
    module.add_class::<PyOutputModel>()?;
    module.add_class::<PyPostSteps>()?;
    Ok(())
}
