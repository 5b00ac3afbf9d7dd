//! `OVDict`: the results of an inference. Ports are made when somebody asks for them: most programs take arrays by number or name.

use crate::compiled_model::Compiled;
use crate::port::{ConstOutput, Side};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyInt, PyIterator, PyList, PySet, PyString, PyTuple};
use std::sync::Arc;

/// Results of an inference by port, by number of the output, or by any name of it. It cannot be changed.
#[pyclass(name = "OVDict", module = "carafe", frozen, subclass, weakref, mapping)]
pub(crate) struct OVDict {
    /// Arrays in the order of the outputs, with the model whose they are; `None` where a program made the object.
    made: Option<(Compiled, Vec<Py<PyAny>>)>,
    /// By port. From the first time that it is asked for it is what counts: a program may change it.
    dict: PyOnceLock<Py<PyDict>>,
}

impl OVDict {
    pub(crate) fn new(compiled: &Compiled, arrays: Vec<Py<PyAny>>) -> OVDict {
        OVDict { made: Some((compiled.clone(), arrays)), dict: PyOnceLock::new() }
    }

    fn dict<'py>(&self, py: Python<'py>) -> PyResult<&Bound<'py, PyDict>> {
        let made = self.dict.get_or_try_init(py, || {
            let dict = PyDict::new(py);
            if let Some((compiled, arrays)) = &self.made {
                for (port, array) in compiled.port_objects(py, Side::Output)?.iter().zip(arrays) {
                    dict.set_item(port, array)?;
                }
            }
            PyResult::Ok(dict.unbind())
        });
        Ok(made?.bind(py))
    }

    // Arrays in order while nobody has seen the dict.
    fn arrays(&self, py: Python<'_>) -> Option<&(Compiled, Vec<Py<PyAny>>)> {
        self.made.as_ref().filter(|_| self.dict.get(py).is_none())
    }

    fn by_number<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let none = || PyKeyError::new_err(key.clone().unbind());
        let number: isize = key.extract().map_err(|_| none())?;
        let place = |n: usize| if number < 0 { n.checked_add_signed(number) } else { Some(number as usize) };
        if let Some((_, arrays)) = self.arrays(py) {
            let found = place(arrays.len()).and_then(|at| arrays.get(at));
            return found.map(|array| array.bind(py).clone()).ok_or_else(none);
        }
        let values = self.dict(py)?.values();
        place(values.len()).and_then(|at| values.get_item(at).ok()).ok_or_else(none)
    }

    fn by_name<'py>(&self, py: Python<'py>, key: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyAny>> {
        if let Some((compiled, arrays)) = self.arrays(py) {
            let name = key.to_cow()?;
            let found = Side::Output.ports(compiled).iter().position(|port| port.names.contains(&*name));
            let found = found.and_then(|at| arrays.get(at));
            return found.map(|array| array.bind(py).clone()).ok_or_else(|| PyKeyError::new_err(key.clone().unbind()));
        }
        for (port, array) in self.dict(py)?.iter() {
            if port.call_method0("get_names")?.contains(key)? {
                return Ok(array);
            }
        }
        Err(PyKeyError::new_err(key.clone().unbind()))
    }

    fn by_port<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if let (Some((compiled, arrays)), Ok(port)) = (self.arrays(py), key.cast::<ConstOutput>()) {
            let port = port.get();
            if port.side == Side::Output && Arc::ptr_eq(&port.compiled, compiled) {
                return Ok(arrays[port.number].bind(py).clone());
            }
        }
        let found = self.dict(py)?.get_item(key)?;
        found.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
    }
}

#[pymethods]
impl OVDict {
    #[new]
    fn of_dict(_dict: Bound<'_, PyDict>) -> OVDict {
        let dict = PyOnceLock::new();
        let _ = dict.set(_dict.py(), _dict.unbind());
        OVDict { made: None, dict }
    }
    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        if key.is_instance_of::<PyInt>() {
            return self.by_number(py, key);
        }
        if let Ok(name) = key.cast::<PyString>() {
            return self.by_name(py, name);
        }
        if key.is_instance_of::<ConstOutput>() || key.hasattr("get_names")? {
            return self.by_port(py, key);
        }
        Err(PyTypeError::new_err(format!("Unknown key type: {}", key.get_type())))
    }
    fn __setitem__(&self, _key: &Bound<'_, PyAny>, _value: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err("'OVDict' object does not support item assignment"))
    }
    fn __delitem__(&self, _key: &Bound<'_, PyAny>) -> PyResult<()> {
        Err(PyTypeError::new_err("'OVDict' object does not support item deletion"))
    }
    fn __copy__(&self, py: Python<'_>) -> PyResult<OVDict> {
        self.dict(py).cloned().map(OVDict::of_dict)
    }
    // Arrays could be copied, their keys cannot: ports say so.
    fn __deepcopy__<'py>(&self, py: Python<'py>, memo: &Bound<'py, PyAny>) -> PyResult<OVDict> {
        let copied = py.import("copy")?.call_method1("deepcopy", (self.dict(py)?, memo))?;
        Ok(OVDict::of_dict(copied.cast_into::<PyDict>()?))
    }
    fn __contains__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<bool> {
        match self.__getitem__(py, key) {
            Ok(_) => Ok(true),
            Err(e) if e.is_instance_of::<PyKeyError>(py) => Ok(false),
            Err(e) => Err(e),
        }
    }
    /// The array of a key, or something else where there is none.
    #[pyo3(signature = (key, default=None))]
    fn get<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
        default: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.__getitem__(py, key) {
            Err(e) if e.is_instance_of::<PyKeyError>(py) => Ok(default),
            found => found.map(Some),
        }
    }
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        self.dict(py)?.try_iter()
    }
    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match self.arrays(py) {
            Some((_, arrays)) => Ok(arrays.len()),
            None => Ok(self.dict(py)?.len()),
        }
    }
    fn __repr__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyString>> {
        self.dict(py)?.repr()
    }
    // As mappings compare.
    fn __richcmp__<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let other = match other.cast::<OVDict>() {
            Ok(other) => other.get().dict(py)?.as_any().clone(),
            Err(_) => other.clone(),
        };
        match op {
            CompareOp::Eq | CompareOp::Ne if other.is_instance_of::<PyDict>() => {
                self.dict(py)?.as_any().rich_compare(other, op)
            }
            _ => Ok(py.NotImplemented().into_bound(py)),
        }
    }
    /// Ports of the outputs.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dict(py)?.call_method0("keys")
    }
    /// Arrays, in the order of the outputs.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dict(py)?.call_method0("values")
    }
    /// Ports with arrays.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.dict(py)?.call_method0("items")
    }
    /// The names of each output.
    fn names<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        if let Some((compiled, _)) = self.arrays(py) {
            let names = Side::Output.ports(compiled).iter().map(|port| PySet::new(py, &port.names));
            return PyTuple::new(py, names.collect::<PyResult<Vec<_>>>()?);
        }
        let names = PyList::empty(py);
        for port in self.dict(py)?.keys() {
            names.append(port.call_method0("get_names")?)?;
        }
        Ok(names.to_tuple())
    }
    /// The plain dict of ports and arrays.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.dict(py).cloned()
    }
    /// The arrays alone.
    fn to_tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        match self.arrays(py) {
            Some((_, arrays)) => PyTuple::new(py, arrays.iter().map(|array| array.bind(py))),
            None => Ok(self.dict(py)?.values().to_tuple()),
        }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<OVDict>()?;
    let mapping = module.py().import("collections.abc")?.getattr("Mapping")?;
    mapping.call_method1("register", (module.py().get_type::<OVDict>(),))?;
    Ok(())
}
