//! What goes into an inference: arrays, tensors, scalars, texts and lists of them, by number, name or port.
//!
//! Shared means that the request reads an array where it lies. That needs the element type of the input and elements one behind the
//! other; an array that may not be written is good enough, because inputs are only read. All else is converted into a new array first.
//! Not shared means that elements are copied into the tensor that the request has.

use crate::errors::failure;
use crate::infer_request::Request;
use crate::memory::Memory;
use crate::numpy::{self, dtype_of, numpy};
use crate::numpy_api::Head;
use crate::port::Side;
use crate::tensor::{Cell, Tensor, of_array, texts_of};
use carafe::ElementType;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use std::sync::Arc;

/// Binds inputs of any form.
pub(crate) fn bind(request: &Arc<Request>, inputs: &Bound<'_, PyAny>, shared: bool) -> PyResult<()> {
    if inputs.is_none() {
        return Ok(());
    }
    if is_one(inputs)? {
        return set(request, request.only(Side::Input)?, inputs, shared);
    }
    if let Ok(dict) = inputs.cast::<PyDict>() {
        return dict.iter().try_for_each(|(key, value)| set(request, index_of(request, &key)?, &value, shared));
    }
    let one_list = inputs.is_instance_of::<PyList>() && request.ports(Side::Input).len() == 1 && is_simple(inputs, 2)?;
    if one_list {
        return set(request, 0, inputs, shared);
    }
    let list = match inputs.is_instance_of::<PyList>() || inputs.is_instance_of::<PyTuple>() {
        true => inputs.clone(),
        // Results of another inference, in order.
        false if inputs.hasattr("to_tuple")? => inputs.call_method0("to_tuple")?,
        false => return Err(PyTypeError::new_err(format!("Incompatible inputs of type: {}", inputs.get_type()))),
    };
    for (index, value) in list.try_iter()?.enumerate() {
        set(request, request.number(Side::Input, index)?, &value?, shared)?;
    }
    Ok(())
}

// Which input a key means.
fn index_of(request: &Request, key: &Bound<'_, PyAny>) -> PyResult<usize> {
    if key.is_instance_of::<PyInt>() {
        let n: i64 = key.extract()?;
        let n = usize::try_from(n).map_err(|_| failure(format!("there is no input {n}")))?;
        return request.number(Side::Input, n);
    }
    let known = key.is_instance_of::<PyString>() || key.hasattr("get_partial_shape")?;
    if !known {
        return Err(PyTypeError::new_err(format!("Incompatible key type for input: {key}")));
    }
    match request.find(key)? {
        (Side::Input, index) => Ok(index),
        (Side::Output, _) => Err(failure(format!("{key} is an output, not an input"))),
    }
}

// Whether the object is one value.
fn is_one(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    if object.is_instance_of::<PyDict>() || object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        return Ok(false);
    }
    Ok(object.is_instance_of::<Tensor>()
        || numpy(object.py())?.is_array(object)
        || is_scalar(object)?
        || object.hasattr(intern!(object.py(), "__array__"))?)
}

fn is_scalar(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let plain = object.is_instance_of::<PyInt>()
        || object.is_instance_of::<PyFloat>()
        || object.is_instance_of::<PyString>()
        || object.is_instance_of::<PyBytes>();
    Ok(plain || object.is_instance_of::<PyBool>() || numpy(object.py())?.is_scalar(object))
}

// Whether a list holds only numbers and texts, down to some depth.
fn is_simple(list: &Bound<'_, PyAny>, depth: usize) -> PyResult<bool> {
    for item in list.try_iter()? {
        let item = item?;
        let nested = depth > 1 && item.is_instance_of::<PyList>();
        if !(if nested { is_simple(&item, depth - 1)? } else { is_scalar(&item)? }) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn set(request: &Arc<Request>, index: usize, value: &Bound<'_, PyAny>, shared: bool) -> PyResult<()> {
    if let Ok(tensor) = value.cast::<Tensor>() {
        return request.set(Side::Input, index, tensor.get().cell.clone());
    }
    let py = value.py();
    let numpy = numpy(py)?;
    let ty = request.ports(Side::Input)[index].ty;
    if ty == ElementType::String {
        return texts(request, index, value);
    }
    let array = match numpy.is_array(value) {
        true => value.clone(),
        false => {
            let array =
                value.is_instance_of::<PyList>() || is_scalar(value)? || value.hasattr(intern!(py, "__array__"))?;
            if !array {
                return Err(PyTypeError::new_err(format!("Incompatible inputs of type: {}", value.get_type())));
            }
            numpy.asarray(value)?
        }
    };
    let seen = numpy::look(&array)?;
    if seen.ty == Some(ElementType::String) {
        return Err(failure(format!("input {index} takes {ty}, found strings")));
    }
    let takes_scalar = request.ports(Side::Input)[index].shape.accepts(&[]);
    if seen.shape.is_empty() && !(shared && takes_scalar && numpy.is_array(value) && seen.ty == Some(ty)) {
        return scalar(request, index, &array, ty);
    }
    match shared {
        true => share(request, index, &array, seen, ty),
        false => copy(request, index, &array, &seen, ty),
    }
}

fn texts(request: &Request, index: usize, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let (shape, texts) = texts_of(value)?;
    request.set(Side::Input, index, Cell::of_texts(shape, texts))
}

// One number takes the shape that the input has, where that has one element.
fn scalar(request: &Request, index: usize, array: &Bound<'_, PyAny>, ty: ElementType) -> PyResult<()> {
    let port = &request.ports(Side::Input)[index];
    let shape = match request.bound(index)? {
        Some(cell) => cell.shape(),
        None => port.shape.dims().map_or(vec![1], |dims| dims.iter().map(|d| d.size().unwrap_or(0)).collect()),
    };
    let array = fitting(array, ty)?;
    let count: usize = shape.iter().product();
    let shape = match (port.shape.accepts(&[]), count) {
        (true, _) => vec![],
        (false, 1) => shape,
        (false, 0) => vec![1],
        (false, _) => return Err(failure(format!("one number is no tensor of shape [{}]", port.shape))),
    };
    let array = array.call_method1("reshape", (PyTuple::new(array.py(), shape)?,))?;
    request.set(Side::Input, index, of_array(&array, false)?)
}

/// The array in the type of the input. Without a dtype for bf16, its bits come as float16.
fn fitting<'py>(array: &Bound<'py, PyAny>, ty: ElementType) -> PyResult<Bound<'py, PyAny>> {
    let py = array.py();
    if ty.is_dynamic() {
        return Ok(array.clone());
    }
    let (own, wanted) = (array.getattr(intern!(py, "dtype"))?, dtype_of(py, ty)?);
    match own.eq(&wanted)? {
        true => Ok(array.clone()),
        false => array.call_method1(intern!(py, "astype"), (wanted,)),
    }
}

// Whether elements of the array are those of the input as they are.
fn same_type(seen: &Head, array: &Bound<'_, PyAny>, ty: ElementType) -> PyResult<bool> {
    if ty.is_dynamic() || seen.ty == Some(ty) {
        return Ok(true);
    }
    let py = array.py();
    let bits = matches!(ty, ElementType::Bf16) || (ty.is_float() && ty.bits() == 8);
    Ok(bits && array.getattr(intern!(py, "dtype"))?.eq(dtype_of(py, ty)?)?)
}

fn share(request: &Request, index: usize, array: &Bound<'_, PyAny>, seen: Head, ty: ElementType) -> PyResult<()> {
    if seen.contiguous && same_type(&seen, array, ty)? {
        return over(request, index, array, seen, ty);
    }
    let py = array.py();
    let array = fitting(array, ty)?;
    let array = numpy(py)?.module(py).call_method1(intern!(py, "ascontiguousarray"), (array,))?;
    over(request, index, &array, numpy::look(&array)?, ty)
}

fn over(request: &Request, index: usize, array: &Bound<'_, PyAny>, seen: Head, ty: ElementType) -> PyResult<()> {
    let ty = if ty.is_dynamic() { seen.ty.unwrap_or(ty) } else { ty };
    let elements: usize = seen.shape.iter().product();
    let len = ty.byte_len(elements).unwrap_or(0);
    let memory = Memory::of_array(array, seen.address, len, seen.writable)?;
    request.lend(index, memory, ty, seen.shape)
}

fn copy(request: &Request, index: usize, array: &Bound<'_, PyAny>, seen: &Head, ty: ElementType) -> PyResult<()> {
    let py = array.py();
    // What an earlier call lent is the program's: it is not written.
    let old = request.bound(index)?.filter(|cell| !cell.is_lent());
    let kind = if ty.is_dynamic() { seen.ty.unwrap_or(ElementType::F32) } else { ty };
    let cell = match old {
        Some(cell) if cell.element_type() == kind => cell,
        _ => Cell::zeros(kind, &seen.shape)?,
    };
    let fits = request.ports(Side::Input)[index].shape.accepts(&seen.shape);
    if cell.shape() != seen.shape && fits {
        cell.set_shape(&seen.shape)?;
    }
    if !fits {
        let port = &request.ports(Side::Input)[index];
        return Err(failure(format!("input `{}` takes shape [{}], found {:?}", port.name, port.shape, seen.shape)));
    }
    if seen.contiguous && seen.ty == Some(kind) {
        let elements: usize = seen.shape.iter().product();
        let len = kind.byte_len(elements).unwrap_or(0);
        let source = Memory::of_array(array, seen.address, len, false)?;
        cell.write(source.bytes())?;
    } else {
        let kwargs = PyDict::new(py);
        kwargs.set_item("casting", "unsafe")?;
        numpy(py)?.module(py).call_method("copyto", (cell.array(py, false)?, array), Some(&kwargs))?;
    }
    match request.has(index, &cell)? {
        true => Ok(()),
        false => request.set(Side::Input, index, cell),
    }
}
