//! NumPy: dtypes, and arrays over memory of the engine. It is imported when it is first needed. What every call does goes through
//! `numpy_api.rs`; dtypes that NumPy has not itself are reached through Python.

use crate::memory::Memory;
use crate::numpy_api::{self, Head};
use carafe::ElementType;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use std::sync::Arc;

/// What is asked for again and again.
pub(crate) struct Numpy {
    module: Py<PyModule>,
    generic: Py<PyAny>,
    dtype: Py<PyAny>,
    asarray: Py<PyAny>,
    /// The number of an element type by dtype.
    types: Py<PyDict>,
}

static NUMPY: PyOnceLock<Numpy> = PyOnceLock::new();

/// Element types that NumPy has itself, each with its name in the array interface.
const NATIVE: [(ElementType, &str); 12] = [
    (ElementType::Boolean, "|b1"),
    (ElementType::F16, "<f2"),
    (ElementType::F32, "<f4"),
    (ElementType::F64, "<f8"),
    (ElementType::I8, "|i1"),
    (ElementType::I16, "<i2"),
    (ElementType::I32, "<i4"),
    (ElementType::I64, "<i8"),
    (ElementType::U8, "|u1"),
    (ElementType::U16, "<u2"),
    (ElementType::U32, "<u4"),
    (ElementType::U64, "<u8"),
];

/// Element types that the package `ml_dtypes` has dtypes for.
const ML: [(ElementType, &str); 6] = [
    (ElementType::Bf16, "bfloat16"),
    (ElementType::F8E4M3, "float8_e4m3fn"),
    (ElementType::F8E5M2, "float8_e5m2"),
    (ElementType::F8E8M0, "float8_e8m0fnu"),
    (ElementType::F8E4M3Fnuz, "float8_e4m3fnuz"),
    (ElementType::F8E5M2Fnuz, "float8_e5m2fnuz"),
];

pub(crate) fn numpy(py: Python<'_>) -> PyResult<&Numpy> {
    NUMPY.get_or_try_init(py, || {
        let module = py.import("numpy")?;
        let types = PyDict::new(py);
        let dtype = module.getattr("dtype")?;
        for (ty, name) in NATIVE {
            types.set_item(dtype.call1((name,))?, ty as usize)?;
        }
        let get = |name: &str| -> PyResult<Py<PyAny>> { Ok(module.getattr(name)?.unbind()) };
        Ok(Numpy {
            generic: get("generic")?,
            dtype: dtype.unbind(),
            asarray: get("asarray")?,
            types: types.unbind(),
            module: module.unbind(),
        })
    })
}

impl Numpy {
    pub(crate) fn module<'py>(&self, py: Python<'py>) -> &Bound<'py, PyModule> {
        self.module.bind(py)
    }
    pub(crate) fn is_array(&self, object: &Bound<'_, PyAny>) -> bool {
        numpy_api::is_array(object).unwrap_or(false)
    }
    /// A scalar of NumPy.
    pub(crate) fn is_scalar(&self, object: &Bound<'_, PyAny>) -> bool {
        object.is_instance(self.generic.bind(object.py())).unwrap_or(false)
    }
    pub(crate) fn asarray<'py>(&self, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.asarray.bind(object.py()).call1((object,))
    }
}

// The dtype of a package that may not be there.
fn ml_dtype<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    static MODULE: PyOnceLock<Option<Py<PyModule>>> = PyOnceLock::new();
    let module = MODULE.get_or_init(py, || py.import("ml_dtypes").ok().map(Bound::unbind));
    let Some(module) = module else { return Ok(None) };
    match module.bind(py).getattr(name) {
        Ok(scalar) => Ok(Some(dtype(py, &scalar)?)),
        Err(_) => Ok(None),
    }
}

/// `numpy.dtype(object)`.
pub(crate) fn dtype<'py>(py: Python<'py>, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    numpy(py)?.dtype.bind(py).call1((object,))
}

/// The element type of a dtype; `None` when there is none.
pub(crate) fn type_of_dtype(dtype: &Bound<'_, PyAny>) -> PyResult<Option<ElementType>> {
    let py = dtype.py();
    let types = numpy(py)?.types.bind(py);
    if let Some(number) = types.get_item(dtype)? {
        return Ok(Some(ElementType::ALL[number.extract::<usize>()?]));
    }
    let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
    if kind == "S" || kind == "U" {
        return Ok(Some(ElementType::String));
    }
    // Only packages that are loaded have made such a dtype.
    let name: String = dtype.getattr(intern!(py, "name"))?.extract()?;
    let found = ML.iter().find(|(_, n)| *n == name).map(|(ty, _)| *ty);
    if let Some(ty) = found {
        types.set_item(dtype, ty as usize)?;
    }
    Ok(found)
}

/// The dtype of arrays of an element type: for parts of a byte that of the bytes, for bf16 and eight bits that of `ml_dtypes` where it
/// is installed.
pub(crate) fn dtype_of(py: Python<'_>, ty: ElementType) -> PyResult<Bound<'_, PyAny>> {
    let by_name = |name: &str| dtype(py, pyo3::types::PyString::new(py, name).as_any());
    if let Some((_, name)) = NATIVE.iter().find(|(t, _)| *t == ty) {
        return by_name(name);
    }
    if let Some((_, name)) = ML.iter().find(|(t, _)| *t == ty)
        && let Some(found) = ml_dtype(py, name)?
    {
        return Ok(found);
    }
    match ty {
        ElementType::Dynamic => Err(PyTypeError::new_err("a dynamic type is of no dtype")),
        ElementType::String => by_name("S"),
        ElementType::Bf16 => by_name("<f2"),
        ElementType::I4 | ElementType::I2 => by_name("|i1"),
        _ => by_name("|u1"),
    }
}

/// Looks at an array. The element type is `None` for a dtype that none is like.
pub(crate) fn look(array: &Bound<'_, PyAny>) -> PyResult<Head> {
    let mut head = numpy_api::head(array)?;
    if head.ty.is_none() {
        head.ty = type_of_dtype(&array.getattr(intern!(array.py(), "dtype"))?)?;
    }
    Ok(head)
}

/// What keeps the memory of an array alive.
#[pyclass(name = "_View", module = "carafe._native", frozen)]
pub(crate) struct View {
    _memory: Arc<Memory>,
}

/// The array of an element type that lies in memory: its own type where NumPy has one, bytes or pairs of them otherwise.
fn stored(ty: ElementType) -> ElementType {
    match ty {
        _ if NATIVE.iter().any(|(t, _)| *t == ty) => ty,
        ElementType::Bf16 => ElementType::U16,
        ElementType::I4 | ElementType::I2 => ElementType::I8,
        _ => ElementType::U8,
    }
}

/// An array over memory, which it keeps alive. For parts of a byte it is of the bytes: `shape` is theirs then.
pub(crate) fn view<'py>(
    py: Python<'py>,
    memory: &Arc<Memory>,
    ty: ElementType,
    shape: &[usize],
    copied: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let like = stored(ty);
    let array = if copied {
        let elements: usize = shape.iter().product();
        let len = like.byte_len(elements).unwrap_or(0);
        numpy_api::copied(py, &memory.bytes()[..len], like, shape)?
    } else {
        let keeper = Bound::new(py, View { _memory: memory.clone() })?;
        numpy_api::over(memory, like, shape, keeper.as_any())?
    };
    let axes = || PyTypeError::new_err(format!("arrays of NumPy have at most 32 axes; this has {}", shape.len()));
    let array = array.ok_or_else(axes)?;
    match like == ty || ty.is_sub_byte() {
        true => Ok(array),
        false => array.call_method1(intern!(py, "view"), (dtype_of(py, ty)?,)),
    }
}
