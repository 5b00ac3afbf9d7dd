//! `Core`: reading and compiling models, devices, properties. `_core.py` adds the forms of arguments that programs use.

use crate::compiled_model::{self, CompiledModel};
use crate::errors::{OrRaise, failure};
use crate::model;
use crate::process::{Inside, Usage, use_driver};
use crate::properties;
use crate::remote::RemoteContext;
use crate::tensor::Tensor;
use carafe::{Content, Properties, ReadRequest, SharedBytes};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Reads models, makes them ready for devices, and holds what is registered.
#[pyclass(name = "_Core", module = "carafe._native", frozen, subclass, weakref)]
pub(crate) struct Core {
    pub(crate) core: carafe::Core,
    usage: Arc<Usage>,
}

/// A file of a model that is read while it is compiled; which files that were is asked for.
struct Watched<'a> {
    path: &'a Path,
    files: RefCell<Vec<PathBuf>>,
}

impl carafe::ModelSource for &Watched<'_> {
    fn model(&self, core: &carafe::Core) -> carafe::Result<Cow<'_, carafe::Model>> {
        let (model, files) = carafe::files::watched(|| core.read_model(self.path));
        self.files.replace(files);
        model.map(Cow::Owned)
    }
}

/// Bytes of an object: `bytes`, a `Tensor`, whatever has a buffer.
fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<SharedBytes> {
    if let Ok(tensor) = object.cast::<Tensor>() {
        return tensor.get().cell.to_bytes();
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(bytes.as_bytes().into());
    }
    let bytes = object.py().get_type::<PyBytes>().call1((object,))?;
    Ok(bytes.cast::<PyBytes>()?.as_bytes().into())
}

pub(crate) enum Source {
    File(PathBuf),
    Bytes(SharedBytes),
}

impl Source {
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Source> {
        let is_bytes = object.is_instance_of::<PyBytes>() || object.is_instance_of::<Tensor>();
        if is_bytes { bytes_of(object).map(Source::Bytes) } else { Ok(Source::File(object.extract()?)) }
    }
    pub(crate) fn content(&self) -> Content<'_> {
        match self {
            Source::File(path) => Content::File(path),
            Source::Bytes(bytes) => Content::Bytes(bytes),
        }
    }
}

impl Core {
    /// Counts as inside until the guard goes; an error in the child of a fork that cannot go on with it.
    pub(crate) fn enter(&self) -> PyResult<Inside> {
        self.usage.enter()
    }
    /// An error where the device, or one that it may choose, has a driver that this process cannot use.
    fn ensure_device(&self, device: &str) -> PyResult<()> {
        let (first, list) = device.split_once(':').unwrap_or((device, ""));
        let names = if list.is_empty() { first } else { list };
        let own = |name: &str| ["CPU", "TEMPLATE"].contains(&name.split(['.', '(', ',']).next().unwrap_or_default());
        let driver = match names.split(',').all(own) {
            true => false,
            false if list.is_empty() && ["AUTO", "MULTI", "BATCH", "HETERO"].contains(&first) => {
                self.core.available_devices().iter().any(|name| !own(name))
            }
            false => true,
        };
        if driver { use_driver() } else { Ok(()) }
    }
    /// A model, and the files that were read.
    fn read(
        &self,
        py: Python<'_>,
        source: &Source,
        weights: Option<&Source>,
    ) -> PyResult<(carafe::Model, Vec<PathBuf>)> {
        let _inside = self.enter()?;
        let (model, files) = py.detach(|| {
            let content = source.content();
            let weights = weights.map(Source::content);
            carafe::files::watched(|| match content {
                Content::File(path) => self.core.read(&ReadRequest { weights, ..ReadRequest::new(path) }),
                Content::Bytes(bytes) => self.core.read(&ReadRequest { weights, ..ReadRequest::from_bytes(bytes) }),
            })
        });
        Ok((model.or_raise()?, files))
    }
    fn compile(
        &self,
        py: Python<'_>,
        model: &carafe::Model,
        device: &str,
        properties: &Properties,
    ) -> PyResult<CompiledModel> {
        let _inside = self.enter()?;
        self.ensure_device(device)?;
        let engine = py.detach(|| self.core.compile_model(model, device, properties)).or_raise()?;
        Ok(CompiledModel::new(engine, &self.core, device))
    }
}

#[pymethods]
impl Core {
    #[new]
    #[pyo3(signature = (xml_config_file=None))]
    fn new(py: Python<'_>, xml_config_file: Option<PathBuf>) -> PyResult<Core> {
        let core = py.detach(carafe::core);
        if let Some(file) = xml_config_file.filter(|f| !f.as_os_str().is_empty()) {
            core.register_plugins(file).or_raise()?;
        }
        Ok(Core { core, usage: Usage::new(None) })
    }
    fn __repr__(&self) -> String {
        format!("<Core: available plugins[{}]>", self.core.available_devices().join(", "))
    }
    /// A model of a path, or of bytes and weights, and the files that were read.
    #[pyo3(signature = (model, weights=None))]
    fn _read<'py>(
        &self,
        py: Python<'py>,
        model: &Bound<'py, PyAny>,
        weights: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Vec<PathBuf>)> {
        let weights = weights.map(Source::of).transpose()?;
        let (read, files) = self.read(py, &Source::of(model)?, weights.as_ref())?;
        Ok((model::from_engine(py, read)?, files))
    }
    /// A model, a path, or bytes and weights, made ready for a device, and the files that were read. Properties are texts.
    #[pyo3(signature = (model, weights, device, properties))]
    fn _compile(
        &self,
        py: Python<'_>,
        model: &Bound<'_, PyAny>,
        weights: Option<&Bound<'_, PyAny>>,
        device: &str,
        properties: &Bound<'_, PyAny>,
    ) -> PyResult<(CompiledModel, Vec<PathBuf>)> {
        let properties = properties::encode(properties)?;
        if model::is_model(model) {
            let model = model::to_engine(model)?;
            return Ok((self.compile(py, &model, device, &properties)?, vec![]));
        }
        match (Source::of(model)?, weights) {
            (Source::File(path), None) => {
                let _inside = self.enter()?;
                self.ensure_device(device)?;
                let (engine, files) = py.detach(|| {
                    let source = Watched { path: &path, files: RefCell::default() };
                    let engine = self.core.compile_model(&source, device, &properties);
                    (engine, source.files.take())
                });
                Ok((CompiledModel::new(engine.or_raise()?, &self.core, device), files))
            }
            (source, weights) => {
                let weights = weights.map(Source::of).transpose()?;
                let (model, files) = self.read(py, &source, weights.as_ref())?;
                Ok((self.compile(py, &model, device, &properties)?, files))
            }
        }
    }
    #[pyo3(signature = (blob, device, properties, decrypt=None))]
    fn _import(
        &self,
        py: Python<'_>,
        blob: &Bound<'_, PyAny>,
        device: &str,
        properties: &Bound<'_, PyAny>,
        decrypt: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<CompiledModel> {
        let (blob, properties) = (bytes_of(blob)?, properties::encode(properties)?);
        let blob = match compiled_model::decrypted(py, blob.as_slice(), decrypt)? {
            Some(inside) => inside.into(),
            None => blob,
        };
        let _inside = self.enter()?;
        self.ensure_device(device)?;
        let engine = py.detach(|| self.core.import_model(blob, device, &properties)).or_raise()?;
        Ok(CompiledModel::new(engine, &self.core, device))
    }
    /// Nodes that the device takes, each with its name.
    fn _query(
        &self,
        py: Python<'_>,
        model: &Bound<'_, PyAny>,
        device: &str,
        properties: &Bound<'_, PyAny>,
    ) -> PyResult<BTreeMap<String, String>> {
        let (model, properties) = (model::to_engine(model)?, properties::encode(properties)?);
        let _inside = self.enter()?;
        let query = py.detach(|| self.core.query_model(&model, device, &properties)).or_raise()?;
        Ok(query.supported.into_iter().map(|name| (name, device.to_string())).collect())
    }
    fn get_available_devices(&self) -> Vec<String> {
        self.core.available_devices()
    }
    #[getter(available_devices)]
    fn available_devices_(&self) -> Vec<String> {
        self.core.available_devices()
    }
    /// Build and description of each device of a name.
    fn _versions(&self, device: &str) -> PyResult<Vec<(String, String, String)>> {
        let names: Vec<&str> = match device.split_once(':') {
            Some((first, list)) => std::iter::once(first).chain(list.split(',')).collect(),
            None => vec![device],
        };
        let one = |name: &&str| {
            let bare = name.split(['.', '(']).next().unwrap_or(name);
            let version = self.core.device(bare).or_raise()?.version();
            Ok((bare.to_string(), version.build, version.description))
        };
        names.iter().map(one).collect()
    }
    fn _set(&self, device: &str, properties: &Bound<'_, PyAny>) -> PyResult<()> {
        self.core.set_property(device, &properties::encode(properties)?).or_raise()
    }
    fn _get<'py>(&self, py: Python<'py>, device: &str, name: &str) -> PyResult<Bound<'py, PyAny>> {
        if name == "SUPPORTED_PROPERTIES" && !device.is_empty() {
            return properties::table(py, self.core.device(device).or_raise()?.properties(), false);
        }
        let text = self.core.get_property(device, name).or_raise()?;
        let found = if device.is_empty() { None } else { self.core.device(device).ok() };
        properties::decode(py, name, &text, found.as_deref().map(|d| d.properties()))
    }
    /// Whether the device has a property of this name.
    fn _knows(&self, device: &str, name: &str) -> PyResult<bool> {
        if carafe::CACHE_PROPERTIES.iter().any(|p| p.name == name) {
            return Ok(true);
        }
        if device.is_empty() {
            return Ok(false);
        }
        Ok(self.core.device(device).or_raise()?.properties().iter().any(|p| p.name == name))
    }
    fn _add_library(&self, path: PathBuf) -> PyResult<()> {
        self.core.add_extension(&path).or_raise()
    }
    fn register_plugins(&self, xml_config_file: PathBuf) -> PyResult<()> {
        self.core.register_plugins(xml_config_file).or_raise()
    }
    #[pyo3(signature = (plugin, device_name, config=None))]
    fn register_plugin(&self, plugin: PathBuf, device_name: &str, config: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        self.core.register_plugin(plugin, device_name).or_raise()?;
        match config {
            Some(config) => self._set(device_name, config.as_any()),
            None => Ok(()),
        }
    }
    fn unload_plugin(&self, device_name: &str) -> PyResult<()> {
        self.core.unload_plugin(device_name).or_raise()
    }
    /// What the memory of a device is, for those that have some.
    #[pyo3(signature = (device_name, properties=None))]
    fn create_context(&self, device_name: &str, properties: Option<&Bound<'_, PyAny>>) -> PyResult<RemoteContext> {
        let properties = properties.map_or_else(|| Ok(Properties::new()), properties::encode)?;
        self.ensure_device(device_name)?;
        Ok(RemoteContext::new(self.core.create_context(device_name, &properties).or_raise()?))
    }
    fn get_default_context(&self, device_name: &str) -> PyResult<RemoteContext> {
        self.create_context(device_name, None)
    }
}

/// Writes a model as `.xml` and `.bin`.
#[pyfunction]
#[pyo3(signature = (model, output, compress_to_fp16, versioned=false))]
fn _save(
    py: Python<'_>,
    model: &Bound<'_, PyAny>,
    output: PathBuf,
    compress_to_fp16: bool,
    versioned: bool,
) -> PyResult<()> {
    let mut model = model::to_engine(model)?;
    if versioned {
        // Where programs of OpenVINO look for what wrote a file.
        const KEY: &str = "OpenVINO Runtime";
        model.rt_info.retain(|entry| entry.key != KEY);
        model.rt_info.push(carafe::RtTree::leaf(KEY, crate::process::BUILD));
    }
    py.detach(|| {
        if compress_to_fp16 {
            let mut notes = carafe::Notes::default();
            carafe::run_passes(&mut model, &[&carafe::passes::CompressToFp16], &mut notes)?;
        }
        carafe::ir::write_file(&model, &output, &write_options())
    })
    .or_raise()
}

fn write_options() -> carafe::ir::WriteOptions {
    carafe::ir::WriteOptions::default()
}

/// A model as the two files of an IR.
#[pyfunction]
fn _to_ir<'py>(py: Python<'py>, model: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let model = model::to_engine(model)?;
    let (xml, bin) = py.detach(|| carafe::ir::write_to(&model, &write_options())).or_raise()?;
    Ok((PyBytes::new(py, xml.as_bytes()), PyBytes::new(py, &bin)))
}

/// A model after the passes that a conversion runs; options are those of the command `carafe convert`.
#[pyfunction]
#[pyo3(signature = (core, model, weights, input, output, verbose))]
fn _convert<'py>(
    py: Python<'py>,
    core: &Core,
    model: &Bound<'py, PyAny>,
    weights: Option<&Bound<'py, PyAny>>,
    input: Option<String>,
    output: Option<String>,
    verbose: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let _ = verbose;
    let (source, weights) = (Source::of(model)?, weights.map(Source::of).transpose()?);
    let _inside = core.enter()?;
    let converted = py
        .detach(|| {
            let content = source.content();
            let request = match content {
                Content::File(path) => ReadRequest::new(path),
                Content::Bytes(bytes) => ReadRequest::from_bytes(bytes),
            };
            let request = ReadRequest { weights: weights.as_ref().map(Source::content), ..request };
            let mut conversion = carafe::convert::Conversion::new(request);
            conversion.options.input = input;
            conversion.options.output = output;
            conversion.run(&core.core)
        })
        .or_raise()?;
    model::from_engine(py, converted.model)
}

/// An error of kind `RuntimeError`, for Python code that has only a text.
#[pyfunction]
fn _fail(text: String) -> PyResult<()> {
    Err(failure(text))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Core>()?;
    module.add_function(wrap_pyfunction!(_save, module)?)?;
    module.add_function(wrap_pyfunction!(_to_ir, module)?)?;
    module.add_function(wrap_pyfunction!(_convert, module)?)?;
    module.add_function(wrap_pyfunction!(_fail, module)?)
}
