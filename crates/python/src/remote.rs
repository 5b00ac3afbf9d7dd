//! Memory of a device in the hands of a program: `RemoteContext` and `RemoteTensor`.

use crate::errors::{OrRaise, failure};
use crate::shapes::sizes_of;
use crate::tensor::{Cell, Tensor};
use crate::types;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The memory of a device that models are compiled for and tensors are made in.
#[pyclass(name = "RemoteContext", module = "carafe", frozen, subclass)]
pub(crate) struct RemoteContext {
    context: Arc<dyn carafe::RemoteContext>,
}

impl RemoteContext {
    pub(crate) fn new(context: Arc<dyn carafe::RemoteContext>) -> RemoteContext {
        RemoteContext { context }
    }
}

#[pymethods]
impl RemoteContext {
    /// The device, `GPU.0`.
    fn get_device_name(&self) -> String {
        self.context.device()
    }
    /// What compiles a model for this very memory.
    fn _for_compilation(&self) -> BTreeMap<String, String> {
        self.context.properties().iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
    }
    /// Addresses of the objects behind it, by name.
    fn get_params(&self) -> BTreeMap<&'static str, usize> {
        self.context.handles().into_iter().collect()
    }
    /// A tensor in the memory of the device, of zeros.
    #[pyo3(signature = (r#type, shape, properties=None))]
    fn create_tensor<'py>(
        &self,
        py: Python<'py>,
        r#type: &Bound<'py, PyAny>,
        shape: &Bound<'py, PyAny>,
        properties: Option<BTreeMap<String, Py<PyAny>>>,
    ) -> PyResult<Bound<'py, RemoteTensor>> {
        if let Some(name) = properties.unwrap_or_default().keys().next() {
            return Err(pyo3::exceptions::PyNotImplementedError::new_err(format!(
                "create_tensor: property `{name}` is not known; tensors over memory that other code made are not shared from Python"
            )));
        }
        let (ty, shape) = (types::of_object(r#type)?, sizes_of(shape)?);
        let tensor = py.detach(|| self.context.create_tensor(ty, &shape)).or_raise()?;
        RemoteTensor::make(py, tensor, self.context.device())
    }
    /// A tensor of the host that the device reads without another copy where it can: a plain one.
    fn create_host_tensor(&self, r#type: &Bound<'_, PyAny>, shape: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        Ok(Cell::zeros(types::of_object(r#type)?, &sizes_of(shape)?)?.into())
    }
    fn __repr__(&self) -> String {
        format!("<RemoteContext: {}>", self.context.device())
    }
}

/// A tensor in the memory of a device. It is bound to requests as any other, and copied to and from the host by name.
#[pyclass(name = "RemoteTensor", module = "carafe", frozen, extends = Tensor)]
pub(crate) struct RemoteTensor {
    device: String,
}

impl RemoteTensor {
    fn make(py: Python<'_>, tensor: carafe::Tensor, device: String) -> PyResult<Bound<'_, RemoteTensor>> {
        let base = Tensor::from(Cell::remote(tensor));
        Bound::new(py, PyClassInitializer::from(base).add_subclass(RemoteTensor { device }))
    }
}

fn no_host_memory() -> PyErr {
    failure("the elements are in the memory of a device; copy them with `copy_to` and `copy_from`")
}

#[pymethods]
impl RemoteTensor {
    fn get_device_name(&self) -> &str {
        &self.device
    }
    /// Addresses of objects of the driver are not given out: they would outlive their owner.
    fn get_params(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
    /// Copies the elements into another tensor, which takes the type and shape.
    fn copy_to(slf: &Bound<'_, Self>, dst: &Bound<'_, Tensor>) -> PyResult<()> {
        copy(&slf.cast::<Tensor>()?.get().cell, &dst.get().cell, slf.py())
    }
    /// Copies the elements of another tensor of the same type and shape into this one.
    fn copy_from(slf: &Bound<'_, Self>, src: &Bound<'_, Tensor>) -> PyResult<()> {
        copy(&src.get().cell, &slf.cast::<Tensor>()?.get().cell, slf.py())
    }
    #[getter(data)]
    fn data_(&self) -> PyResult<()> {
        Err(no_host_memory())
    }
    #[getter(bytes_data)]
    fn bytes_data_(&self) -> PyResult<()> {
        Err(no_host_memory())
    }
    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let cell = slf.cast::<Tensor>()?.get().cell.clone();
        let sizes: Vec<String> = cell.shape().iter().map(usize::to_string).collect();
        Ok(format!("<RemoteTensor: shape[{}] type: {} on {}>", sizes.join(","), cell.element_type(), slf.get().device))
    }
}

fn copy(from: &Arc<Cell>, to: &Arc<Cell>, py: Python<'_>) -> PyResult<()> {
    let elements = from.to_engine()?;
    let elements = py.detach(|| elements.to_host()).or_raise()?;
    if to.is_remote() && (to.element_type() != elements.element_type() || to.shape() != elements.shape()) {
        return Err(failure(format!(
            "tensors of {}{:?} and {}{:?} cannot be copied into each other",
            elements.element_type(),
            elements.shape(),
            to.element_type(),
            to.shape()
        )));
    }
    py.detach(|| to.take(&elements))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<RemoteContext>()?;
    module.add_class::<RemoteTensor>()
}
