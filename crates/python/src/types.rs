//! `Type`: element types, and how they and dtypes of NumPy become each other.

use crate::errors::failure;
use crate::numpy;
use carafe::ElementType;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// An element type.
#[pyclass(name = "Type", module = "carafe", frozen, eq, hash, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Type(pub(crate) ElementType);

// How the type is called in C, where that is not its name.
fn long_name(ty: ElementType) -> String {
    match ty {
        ElementType::Boolean => "char".into(),
        ElementType::Bf16 => "bfloat16".into(),
        ElementType::F16 => "float16".into(),
        ElementType::F32 => "float32".into(),
        ElementType::F64 => "double64".into(),
        ElementType::Nf4 => "nfloat4".into(),
        _ if ty.is_integer() => {
            format!("{}int{}_t", if ty.is_signed() { "" } else { "u" }, ty.bits())
        }
        _ => ty.name().into(),
    }
}

impl Type {
    fn real(self) -> bool {
        self.0.is_float() && self.0 != ElementType::Nf4
    }
}

#[pymethods]
impl Type {
    #[new]
    fn new(dtype: &Bound<'_, PyAny>) -> PyResult<Type> {
        of_object(dtype).map(Type)
    }
    fn __repr__(&self) -> String {
        format!("<Type: '{}'>", long_name(self.0))
    }
    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (&'static str,))> {
        Ok((py.get_type::<Type>().into_any().unbind(), (self.0.name(),)))
    }
    /// Whether the type is known.
    fn is_static(&self) -> bool {
        !self.0.is_dynamic()
    }
    /// Whether the type is not known yet.
    fn is_dynamic(&self) -> bool {
        self.0.is_dynamic()
    }
    /// Whether it is a float.
    fn is_real(&self) -> bool {
        self.real()
    }
    /// Whether it is no float.
    fn is_integral(&self) -> bool {
        !self.real()
    }
    /// Whether it is neither a float nor boolean.
    fn is_integral_number(&self) -> bool {
        !self.real() && self.0 != ElementType::Boolean
    }
    /// Whether it has negative values.
    fn is_signed(&self) -> bool {
        matches!(self.0, ElementType::Boolean | ElementType::F8E8M0)
            || (self.0.is_signed() && self.0 != ElementType::Nf4)
    }
    /// Whether quantized numbers are kept in it.
    fn is_quantized(&self) -> bool {
        use ElementType::{F4E2M1, F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, F8E8M0, I2, I4, I8, I32, Nf4, U8};
        let all = [I2, I4, I8, I32, U8, Nf4, F8E4M3, F8E5M2, F8E8M0, F4E2M1, F8E4M3Fnuz, F8E5M2Fnuz];
        all.contains(&self.0)
    }
    fn get_type_name(&self) -> &'static str {
        self.0.name()
    }
    fn to_string(&self) -> &'static str {
        self.0.name()
    }
    /// Bytes of an element, rounded up.
    fn get_size(&self) -> usize {
        self.get_bitwidth().div_ceil(8)
    }
    /// Bits of an element.
    fn get_bitwidth(&self) -> usize {
        if self.0 == ElementType::String { 256 } else { self.0.bits() }
    }
    #[getter(real)]
    fn is_it_real(&self) -> bool {
        self.real()
    }
    #[getter(integral)]
    fn integral_(&self) -> bool {
        self.is_integral()
    }
    #[getter(integral_number)]
    fn integral_number_(&self) -> bool {
        self.is_integral_number()
    }
    #[getter(signed)]
    fn signed_(&self) -> bool {
        self.is_signed()
    }
    #[getter(quantized)]
    fn quantized_(&self) -> bool {
        self.is_quantized()
    }
    #[getter(type_name)]
    fn type_name_(&self) -> &'static str {
        self.0.name()
    }
    #[getter(size)]
    fn size_(&self) -> usize {
        self.get_size()
    }
    #[getter(bitwidth)]
    fn bitwidth_(&self) -> usize {
        self.get_bitwidth()
    }
    /// Whether both may be the same type.
    fn compatible(&self, other: &Type) -> bool {
        ElementType::merge(self.0, other.0).is_some()
    }
    /// The type that both are, or `None`.
    fn merge(&self, other: &Type) -> Option<Type> {
        ElementType::merge(self.0, other.0).map(Type)
    }
    /// The dtype of NumPy that arrays of this type have.
    fn to_dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        numpy::dtype_of(py, self.0)
    }
}

/// The element type that an object means: a `Type`, a name, a type of Python or NumPy, a dtype.
pub(crate) fn of_object(object: &Bound<'_, PyAny>) -> PyResult<ElementType> {
    if let Ok(ty) = object.cast::<Type>() {
        return Ok(ty.get().0);
    }
    if let Ok(text) = object.cast::<PyString>()
        && let Some(ty) = of_name(&text.to_cow()?)
    {
        return Ok(ty);
    }
    let py = object.py();
    let dtype = numpy::dtype(py, object)?;
    numpy::type_of_dtype(&dtype)?.ok_or_else(|| failure(format!("no element type is like data type {dtype}")))
}

/// The type with this name.
pub(crate) fn of_name(name: &str) -> Option<ElementType> {
    ElementType::ALL.iter().copied().find(|t| t.name() == name)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Type>()?;
    let class = module.py().get_type::<Type>();
    for ty in ElementType::ALL {
        class.setattr(ty.name(), Type(*ty))?;
    }
    Ok(())
}
