//! Attributes of operations as values of Python, in both directions.

use super::{engine_tensor, tensor_object};
use crate::errors::failure;
use crate::shapes::{PartialShape, shape_of};
use crate::types;
use carafe::{AttrInfo, AttrKind, AttrValue};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyString};

/// The value as Python has it: numbers, texts and lists; types by their names, open shapes as `PartialShape`.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &AttrValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        AttrValue::Text(text) | AttrValue::Str(text) => PyString::new(py, text).into_any(),
        AttrValue::Bool(b) => PyBool::new(py, *b).to_owned().into_any(),
        AttrValue::Int(n) => n.into_pyobject(py)?.into_any(),
        AttrValue::Float(x) => x.into_pyobject(py)?.into_any(),
        AttrValue::Ints(list) => PyList::new(py, list)?.into_any(),
        AttrValue::Floats(list) => PyList::new(py, list)?.into_any(),
        AttrValue::Strs(list) => PyList::new(py, list)?.into_any(),
        AttrValue::Type(ty) => PyString::new(py, ty.name()).into_any(),
        AttrValue::Types(list) => PyList::new(py, list.iter().map(|t| t.name()))?.into_any(),
        AttrValue::Shape(shape) => match shape.to_static() {
            Some(sizes) => PyList::new(py, sizes)?.into_any(),
            None => Bound::new(py, PartialShape::from(shape.clone()))?.into_any(),
        },
        AttrValue::Tensor(t) => Bound::new(py, tensor_object(t.0.clone())?)?.into_any(),
        AttrValue::Body(body) => super::model_object(py, body.model.clone().into())?,
    })
}

/// The value for a declared attribute.
pub(super) fn of_python(info: &AttrInfo, value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    let named = |e: PyErr| {
        let py = value.py();
        PyTypeError::new_err(format!("attribute '{}': {}", info.name, e.value(py)))
    };
    of_kind(info.kind, value).map_err(named)
}

fn of_kind(kind: AttrKind, value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    // A text means what it would mean in a file, whatever the attribute is.
    let text = |value: &Bound<'_, PyAny>| -> PyResult<String> { value.str()?.extract() };
    if value.is_instance_of::<PyString>() && !matches!(kind, AttrKind::Type | AttrKind::Strs) {
        return Ok(AttrValue::Text(text(value)?));
    }
    Ok(match kind {
        AttrKind::Bool => AttrValue::Bool(value.is_truthy()?),
        AttrKind::Int => AttrValue::Int(int(value)?),
        AttrKind::Float => AttrValue::Float(float(value)?),
        AttrKind::Str | AttrKind::Enum(_) => AttrValue::Str(text(value)?),
        AttrKind::Ints => AttrValue::Ints(items(value)?.iter().map(int).collect::<PyResult<_>>()?),
        AttrKind::Floats => AttrValue::Floats(items(value)?.iter().map(float).collect::<PyResult<_>>()?),
        AttrKind::Strs if value.is_instance_of::<PyString>() => AttrValue::Strs(vec![text(value)?]),
        AttrKind::Strs => AttrValue::Strs(items(value)?.iter().map(text).collect::<PyResult<_>>()?),
        AttrKind::Type => AttrValue::Type(types::of_object(value)?),
        AttrKind::Types => AttrValue::Types(items(value)?.iter().map(types::of_object).collect::<PyResult<_>>()?),
        AttrKind::Shape => AttrValue::Shape(shape_of(value)?),
        AttrKind::Tensor => AttrValue::Tensor(carafe::TensorAttr(engine_tensor(value)?)),
        AttrKind::Body => return Err(failure("a body is set by the methods of its operation")),
    })
}

/// The value for an attribute that nobody declared, by what it is.
pub(crate) fn guessed(value: &Bound<'_, PyAny>) -> PyResult<AttrValue> {
    if value.is_instance_of::<PyBool>() {
        return Ok(AttrValue::Bool(value.is_truthy()?));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(AttrValue::Int(int(value)?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(AttrValue::Float(float(value)?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(AttrValue::Str(value.extract()?));
    }
    if let Ok(model) = super::engine_model(value) {
        return Ok(AttrValue::Body(Box::new(carafe::Body::new(model.as_ref().clone()))));
    }
    if value.is_instance_of::<crate::types::Type>() {
        return Ok(AttrValue::Type(types::of_object(value)?));
    }
    if value.is_instance_of::<PartialShape>() {
        return Ok(AttrValue::Shape(shape_of(value)?));
    }
    if let Ok(dimension) = value.cast::<crate::shapes::Dimension>() {
        return Ok(AttrValue::Str(dimension.borrow().dim.to_string()));
    }
    if let Ok(dtype) = value.getattr("dtype")
        && dtype.getattr("kind")?.extract::<String>()?.contains(['c', 'O', 'V'])
    {
        return Err(PyTypeError::new_err(format!("Unsupported NumPy array dtype: {}", dtype.str()?)));
    }
    let listed = if value.hasattr("tolist")? { value.call_method0("tolist")? } else { value.clone() };
    if !listed.is_instance_of::<PyList>() && !listed.is_instance_of::<pyo3::types::PyTuple>() {
        return match listed.is_instance_of::<PyInt>() || listed.is_instance_of::<PyFloat>() {
            true => guessed(&listed),
            false => Err(PyTypeError::new_err(format!("Unsupported attribute type: {}", value.get_type()))),
        };
    }
    let list = items(&listed)?;
    if list.iter().all(|v| v.is_instance_of::<PyInt>()) {
        return Ok(AttrValue::Ints(list.iter().map(int).collect::<PyResult<_>>()?));
    }
    if list.iter().all(|v| v.is_instance_of::<PyFloat>() || v.is_instance_of::<PyInt>()) {
        return Ok(AttrValue::Floats(list.iter().map(float).collect::<PyResult<_>>()?));
    }
    if list.iter().all(|v| v.is_instance_of::<PyString>()) {
        return Ok(AttrValue::Strs(list.iter().map(|v| v.extract()).collect::<PyResult<_>>()?));
    }
    let odd = list.iter().find(|v| !v.is_instance_of::<PyString>()).unwrap_or(&list[0]);
    Err(PyTypeError::new_err(format!("Unsupported attribute type in provided list: {}", odd.get_type())))
}

// Numbers of NumPy are no `int`, but give one; a list of one number is that number.
fn int(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    if let Ok(list) = value.cast::<PyList>()
        && list.len() == 1
    {
        return int(&list.get_item(0)?);
    }
    value.extract::<i64>().or_else(|_| value.py().get_type::<PyInt>().call1((value,))?.extract())
}

fn float(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    value.extract::<f64>().or_else(|_| value.py().get_type::<PyFloat>().call1((value,))?.extract())
}

// A single number is a list of one.
fn items<'py>(value: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    match value.try_iter() {
        Ok(items) => items.collect(),
        Err(_) => Ok(vec![value.clone()]),
    }
}
