//! `CompiledModel`: a model made ready for a device.

use crate::errors::{OrRaise, failure};
use crate::infer_request::{self, InferRequest, Request, VariableState};
use crate::model;
use crate::port::{ConstOutput, Side};
use crate::process::{Here, Usage};
use crate::properties;
use crate::results::OVDict;
use carafe::{ElementType, PortKey};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// What requests and ports of a compiled model hold of it.
pub(crate) type Compiled = Arc<Shared>;

/// The engine's compiled model, and what it was made of.
pub(crate) struct Shared {
    engine: Here<carafe::CompiledModel>,
    core: carafe::Core,
    device: String,
    /// How it is pickled, where it can be made again of files: a function and its arguments.
    origin: Mutex<Option<Py<PyAny>>>,
    /// Nodes that stand for ports.
    nodes: Mutex<HashMap<(Side, usize), Py<PyAny>>>,
}

impl Deref for Shared {
    type Target = Here<carafe::CompiledModel>;
    fn deref(&self) -> &Self::Target {
        &self.engine
    }
}

impl Shared {
    /// The objects of its ports.
    pub(crate) fn port_objects<'py>(self: &Arc<Self>, py: Python<'py>, side: Side) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let object = |number| Ok(Bound::new(py, ConstOutput { compiled: self.clone(), side, number })?.into_any());
        (0..side.ports(self).len()).map(object).collect()
    }

    pub(crate) fn node<'py>(&self, py: Python<'py>, side: Side, number: usize) -> Option<Bound<'py, PyAny>> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.get(&(side, number)).map(|n| n.bind(py).clone())
    }
    pub(crate) fn keep_node(&self, side: Side, number: usize, node: &Bound<'_, PyAny>) {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).insert((side, number), node.clone().unbind());
    }

    /// Type and least shape of a variable.
    pub(crate) fn variable(&self, id: &str) -> PyResult<(ElementType, Vec<usize>)> {
        let model = self.engine.runtime_model();
        let of = |node: &carafe::Node| {
            node.op().attrs().into_iter().any(|(k, v)| k == "variable_id" && v.to_text().as_deref() == Some(id))
        };
        let found = model.nodes().find(|(_, node)| of(node) && !node.outputs().is_empty());
        let (_, node) = found.ok_or_else(|| failure(format!("variable `{id}` was not assigned yet")))?;
        let fact = &node.outputs()[0].fact;
        let dims = fact.shape.dims().unwrap_or_default();
        Ok((fact.ty, dims.iter().map(|d| d.size().unwrap_or(0)).collect()))
    }
}

/// A model made ready for a device.
#[pyclass(name = "CompiledModel", module = "carafe", frozen, subclass, weakref)]
pub(crate) struct CompiledModel {
    pub(crate) compiled: Compiled,
    /// Requests of calls that have ended; the first is the one whose state is asked for.
    idle: Mutex<Vec<Arc<Request>>>,
    /// The request that a program put here under the name that OpenVINO keeps its own by; NNCF does.
    kept: Mutex<Option<Py<PyAny>>>,
    /// What encrypts the bytes of an export: a function of the program.
    encrypt: Mutex<Option<Py<PyAny>>>,
}

/// What exports that a program encrypted begin with.
const ENCRYPTED: &[u8] = b"carafe encrypted\n";

impl CompiledModel {
    pub(crate) fn new(engine: carafe::CompiledModel, core: &carafe::Core, device: &str) -> CompiledModel {
        // Devices whose threads are all our own; one in parentheses stands in for another that is not ready.
        let own = |devices: String| devices.split([',', ' ']).all(|d| ["CPU", "TEMPLATE"].contains(&d));
        let goes_on = engine.property("EXECUTION_DEVICES").is_ok_and(own);
        let bound = "the model may run on a device whose driver does not come along into the child of a fork";
        let usage = Usage::new((!goes_on).then_some(bound));
        let shared = Shared {
            engine: Here::new(engine, &usage),
            core: core.clone(),
            device: device.to_string(),
            origin: Mutex::default(),
            nodes: Mutex::default(),
        };
        CompiledModel {
            compiled: Arc::new(shared),
            idle: Mutex::default(),
            kept: Mutex::default(),
            encrypt: Mutex::default(),
        }
    }
    /// Another object of the same compiled model.
    pub(crate) fn again(compiled: &Compiled) -> CompiledModel {
        CompiledModel {
            compiled: compiled.clone(),
            idle: Mutex::default(),
            kept: Mutex::default(),
            encrypt: Mutex::default(),
        }
    }
    fn take(&self) -> PyResult<Arc<Request>> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| Request::new(&self.compiled, None), Ok)
    }
    fn give(&self, request: Arc<Request>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }
    fn port<'py>(&self, py: Python<'py>, side: Side, key: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        let ports = side.ports(&self.compiled);
        let number = match key {
            None if ports.len() == 1 => 0,
            None => {
                return Err(failure(format!(
                    "{0}() must be called on a model with exactly one {0}; this has {1}",
                    side.name(),
                    ports.len()
                )));
            }
            Some(key) => match key.cast::<PyString>() {
                Ok(name) => PortKey::Name(&name.to_cow()?).find(ports, side.name()).or_raise()?,
                Err(_) => PortKey::Index(key.extract()?).find(ports, side.name()).or_raise()?,
            },
        };
        Ok(Bound::new(py, ConstOutput { compiled: self.compiled.clone(), side, number })?.into_any())
    }
    fn export(&self, py: Python<'_>) -> PyResult<Vec<u8>> {
        let engine = self.compiled.get()?;
        let inside = self.compiled.usage().enter()?;
        let bytes = py.detach(|| {
            let mut bytes = Vec::new();
            engine.export(&mut bytes).map(|()| bytes)
        });
        drop(inside);
        let bytes = bytes.or_raise()?;
        let encrypt = self.encrypt.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|f| f.clone_ref(py));
        let Some(encrypt) = encrypt else { return Ok(bytes) };
        let encrypted = encrypt.call1(py, (PyBytes::new(py, &bytes),))?;
        Ok([ENCRYPTED, &bytes_of(encrypted.bind(py))?].concat())
    }
}

// What a function of the program gave; a text stands for its UTF-8.
fn bytes_of(given: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    match given.cast::<PyString>() {
        Ok(text) => Ok(text.to_cow()?.as_bytes().to_vec()),
        Err(_) => given.extract(),
    }
}

/// The bytes inside of an export that a program encrypted, by its function; `None` for one that is as the engine wrote it.
pub(crate) fn decrypted(py: Python<'_>, bytes: &[u8], decrypt: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Vec<u8>>> {
    let Some(inside) = bytes.strip_prefix(ENCRYPTED) else { return Ok(None) };
    let decrypt = decrypt.ok_or_else(|| {
        failure(
            "the compiled model is encrypted; import it with the CACHE_ENCRYPTION_CALLBACKS that it was exported with",
        )
    })?;
    bytes_of(&decrypt.call1((PyBytes::new(py, inside),))?).map(Some)
}

#[pymethods]
impl CompiledModel {
    #[new]
    #[pyo3(signature = (other, weights=None))]
    fn copy_of(other: &CompiledModel, weights: Option<&Bound<'_, PyAny>>) -> CompiledModel {
        let _ = weights;
        CompiledModel::again(&other.compiled)
    }
    #[setter]
    fn _encrypt(&self, encrypt: Option<Py<PyAny>>) {
        *self.encrypt.lock().unwrap_or_else(PoisonError::into_inner) = encrypt;
    }
    #[getter(_infer_request)]
    fn kept_request(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().map(|request| request.clone_ref(py))
    }
    #[setter(_infer_request)]
    fn keep_request(&self, request: Option<Py<PyAny>>) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = request;
    }
    fn __repr__(&self) -> String {
        let list = |side: Side| {
            let all = side.ports(&self.compiled).iter();
            all.map(|p| format!("\n{}: [{}] {}", p.name, p.shape, p.ty)).collect::<String>()
        };
        format!("<CompiledModel:\ninputs[{}\n]\noutputs[{}\n]>", list(Side::Input), list(Side::Output))
    }
    /// Infers with a request that is kept from one call to the next. `__call__` in `_signatures.py` is this.
    #[pyo3(signature = (inputs, share_inputs, share_outputs, decode_strings, /))]
    fn _call<'py>(
        &self,
        py: Python<'py>,
        inputs: Option<&Bound<'py, PyAny>>,
        share_inputs: bool,
        share_outputs: bool,
        decode_strings: bool,
    ) -> PyResult<OVDict> {
        let request = self.take()?;
        let results = infer_request::infer(py, &request, inputs, share_inputs, share_outputs, decode_strings);
        self.give(request);
        results
    }
    /// The request of calls; `None` before the first.
    #[getter(_infer_request)]
    fn infer_request_(&self) -> Option<InferRequest> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.first().map(|request| InferRequest { request: request.clone() })
    }
    /// Infers with a request of its own.
    #[pyo3(signature = (inputs=None))]
    fn infer_new_request<'py>(&self, py: Python<'py>, inputs: Option<&Bound<'py, PyAny>>) -> PyResult<OVDict> {
        infer_request::infer(py, &Request::new(&self.compiled, None)?, inputs, false, false, true)
    }
    fn create_infer_request(&self) -> PyResult<InferRequest> {
        Ok(InferRequest { request: Request::new(&self.compiled, None)? })
    }
    /// The variables that calls of this object keep.
    fn query_state(&self) -> PyResult<Vec<VariableState>> {
        let request = self.take()?;
        let states = InferRequest { request: request.clone() }.query_state();
        self.give(request);
        states
    }
    /// Brings all variables back to where they begin.
    fn reset_state(&self) -> PyResult<()> {
        let request = self.take()?;
        let done = request.request.get().and_then(|r| r.reset_state().or_raise());
        self.give(request);
        done
    }
    #[pyo3(signature = (index=None))]
    fn input<'py>(&self, py: Python<'py>, index: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        self.port(py, Side::Input, index)
    }
    #[pyo3(signature = (index=None))]
    fn output<'py>(&self, py: Python<'py>, index: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        self.port(py, Side::Output, index)
    }
    #[getter(inputs)]
    fn inputs_<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.compiled.port_objects(py, Side::Input)
    }
    #[getter(outputs)]
    fn outputs_<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.compiled.port_objects(py, Side::Output)
    }
    /// What `Core.import_model` reads, as a stream in memory; into a stream, where one is given.
    #[pyo3(signature = (model_stream=None))]
    fn export_model<'py>(
        &self,
        py: Python<'py>,
        model_stream: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some(stream) = model_stream
            && !stream.hasattr("write")?
        {
            return Err(failure(
                "CompiledModel.export_model(model_stream) incompatible function argument: a stream with `write` is expected",
            ));
        }
        let bytes = PyBytes::new(py, &self.export(py)?);
        match model_stream {
            None => Ok(Some(py.import("io")?.getattr("BytesIO")?.call1((bytes,))?)),
            Some(stream) => stream.call_method1("write", (bytes,)).map(|_| None),
        }
    }
    /// The graph that really runs.
    fn get_runtime_model<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        model::from_engine(py, self.compiled.get()?.runtime_model())
    }
    /// A property that the model was compiled with, or that it answers itself.
    fn get_property<'py>(&self, py: Python<'py>, property: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let name = property.str()?.to_cow()?.into_owned();
        if name == "SUPPORTED_PROPERTIES" {
            let device = self.compiled.core.device(&self.compiled.device).or_raise()?;
            return properties::table(py, device.properties(), true);
        }
        let text = self.compiled.property(&name).or_raise()?;
        let device = self.compiled.core.device(&self.compiled.device).ok();
        properties::decode(py, &name, &text, device.as_deref().map(|d| d.properties()))
    }
    /// Properties of a compiled model cannot change, unless they are what they are already.
    fn set_property(&self, properties: &Bound<'_, PyAny>) -> PyResult<()> {
        for (key, value) in properties::encode(properties)?.iter() {
            let now = self.compiled.property(key).unwrap_or_default();
            if !now.eq_ignore_ascii_case(value) {
                let device = &self.compiled.device;
                return Err(failure(format!(
                    "{key} of a model that is compiled for {device} cannot change; set it before compiling"
                )));
            }
        }
        Ok(())
    }
    /// Frees memory that only running requests need.
    fn release_memory(&self) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
    /// Files and properties that the model was made of; `_pickling` says in which form.
    #[getter(_origin)]
    fn origin_(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let origin = self.compiled.origin.lock().unwrap_or_else(PoisonError::into_inner);
        origin.as_ref().map(|o| o.clone_ref(py))
    }
    #[setter(_origin)]
    fn put_origin(&self, origin: Option<Py<PyAny>>) {
        *self.compiled.origin.lock().unwrap_or_else(PoisonError::into_inner) = origin;
    }
    #[getter(_device)]
    fn device_(&self) -> &str {
        &self.compiled.device
    }
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("carafe._pickling")?.call_method1("reduce_compiled", (slf,))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CompiledModel>()
}
