//! The C API of NumPy, for what every call does: the head of an array is read where it lies, and an array is made without a call of
//! Python. Layouts and numbers are those of NumPy's stable ABI, which 1.x and 2.x share.
#![allow(unsafe_code)]

use crate::memory::Memory;
use carafe::ElementType;
use pyo3::exceptions::{PyImportError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

/// The beginning of `PyArrayObject`.
#[repr(C)]
struct Array {
    _head: ffi::PyObject,
    data: *mut u8,
    nd: c_int,
    dimensions: *const isize,
    _strides: *const isize,
    _base: *mut ffi::PyObject,
    descr: *const Descr,
    flags: c_int,
}

/// The beginning of `PyArray_Descr`.
#[repr(C)]
struct Descr {
    _head: ffi::PyObject,
    _scalar: *mut ffi::PyObject,
    _kind: c_char,
    _letter: c_char,
    byte_order: c_char,
    _flags: c_char,
    number: c_int,
}

const C_CONTIGUOUS: c_int = 0x1;
const ALIGNED: c_int = 0x100;
const WRITABLE: c_int = 0x400;

type New = unsafe extern "C" fn(
    *mut ffi::PyTypeObject,
    c_int,
    *const isize,
    c_int,
    *const isize,
    *mut c_void,
    c_int,
    c_int,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;
type SetBase = unsafe extern "C" fn(*mut ffi::PyObject, *mut ffi::PyObject) -> c_int;

/// What is used of the table of functions.
struct Api {
    class: *mut ffi::PyTypeObject,
    new: New,
    set_base: SetBase,
}

// SAFETY: pointers to code and to a class that lives as long as the process; whoever calls has an attached thread.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// Places in the table.
const CLASS: usize = 2;
const NEW: usize = 93;
const SET_BASE: usize = 282;

fn api(py: Python<'_>) -> PyResult<&Api> {
    static API: PyOnceLock<Api> = PyOnceLock::new();
    API.get_or_try_init(py, || {
        // The name of NumPy 2, then that of 1.
        let module = py.import("numpy._core.multiarray").or_else(|_| py.import("numpy.core.multiarray"))?;
        let capsule = module.getattr("_ARRAY_API")?;
        // SAFETY: attached. The capsule has no name and holds the table of `void *` that NumPy makes for modules in C; its places
        // have not changed since NumPy 1.7.
        unsafe {
            let table = ffi::PyCapsule_GetPointer(capsule.as_ptr(), std::ptr::null()).cast::<*mut c_void>();
            if table.is_null() {
                let _ = PyErr::take(py);
                return Err(PyImportError::new_err("NumPy has no table of functions (`_ARRAY_API`)"));
            }
            Ok(Api {
                class: (*table.add(CLASS)).cast(),
                new: std::mem::transmute::<*mut c_void, New>(*table.add(NEW)),
                set_base: std::mem::transmute::<*mut c_void, SetBase>(*table.add(SET_BASE)),
            })
        }
    })
}

/// Whether the object is an array, of a subclass too.
pub(crate) fn is_array(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let api = api(object.py())?;
    // SAFETY: attached; both are alive.
    Ok(unsafe { ffi::PyObject_TypeCheck(object.as_ptr(), api.class) } != 0)
}

/// What an array says of its memory.
pub(crate) struct Head {
    pub(crate) address: usize,
    pub(crate) shape: Vec<usize>,
    pub(crate) writable: bool,
    /// Whether elements lie one behind the other, the last axis first.
    pub(crate) contiguous: bool,
    /// `None` for a dtype that NumPy has not itself, and for one whose bytes lie the other way round.
    pub(crate) ty: Option<ElementType>,
}

/// Reads the head of an array.
pub(crate) fn head(array: &Bound<'_, PyAny>) -> PyResult<Head> {
    if !is_array(array)? {
        return Err(PyTypeError::new_err(format!("an array is expected, found {}", array.get_type())));
    }
    // SAFETY: it is an array (checked), so that it begins like this; it has `nd` sizes, and its descriptor lives as long as it. The
    // thread is attached: nobody changes the array meanwhile.
    unsafe {
        let array = &*array.as_ptr().cast::<Array>();
        let sizes: &[isize] = match array.nd {
            0 => &[],
            n => std::slice::from_raw_parts(array.dimensions, n as usize),
        };
        let descr = &*array.descr;
        let native = matches!(descr.byte_order as u8, b'=' | b'|');
        Ok(Head {
            address: array.data.addr(),
            shape: sizes.iter().map(|n| *n as usize).collect(),
            writable: array.flags & WRITABLE != 0,
            contiguous: array.flags & C_CONTIGUOUS != 0,
            ty: if native { type_of(descr.number) } else { None },
        })
    }
}

// The element type of NumPy's number of a type.
fn type_of(number: c_int) -> Option<ElementType> {
    let long = size_of::<std::ffi::c_long>() == 8;
    Some(match number {
        0 => ElementType::Boolean,
        1 => ElementType::I8,
        2 => ElementType::U8,
        3 => ElementType::I16,
        4 => ElementType::U16,
        5 => ElementType::I32,
        6 => ElementType::U32,
        7 if long => ElementType::I64,
        8 if long => ElementType::U64,
        7 => ElementType::I32,
        8 => ElementType::U32,
        9 => ElementType::I64,
        10 => ElementType::U64,
        11 => ElementType::F32,
        12 => ElementType::F64,
        23 => ElementType::F16,
        _ => return None,
    })
}

// NumPy's number of an element type; `None` where it has none. Of two with 64 bits it is the one that `numpy.int64` is.
fn number_of(ty: ElementType) -> Option<c_int> {
    let long = size_of::<std::ffi::c_long>() == 8;
    Some(match ty {
        ElementType::Boolean => 0,
        ElementType::I8 => 1,
        ElementType::U8 => 2,
        ElementType::I16 => 3,
        ElementType::U16 => 4,
        ElementType::I32 => 5,
        ElementType::U32 => 6,
        ElementType::I64 => [9, 7][usize::from(long)],
        ElementType::U64 => [10, 8][usize::from(long)],
        ElementType::F32 => 11,
        ElementType::F64 => 12,
        ElementType::F16 => 23,
        _ => return None,
    })
}

/// The most axes that every version of NumPy takes.
const MAX_AXES: usize = 32;

// Sizes as NumPy takes them, and how many; `None` for more axes than it has.
fn sizes(shape: &[usize]) -> Option<([isize; MAX_AXES], c_int)> {
    let mut sizes = [0; MAX_AXES];
    for (to, n) in sizes.get_mut(..shape.len())?.iter_mut().zip(shape) {
        *to = *n as isize;
    }
    Some((sizes, shape.len() as c_int))
}

/// A new array with these elements; `None` where NumPy has no such type or not so many axes.
pub(crate) fn copied<'py>(
    py: Python<'py>,
    bytes: &[u8],
    ty: ElementType,
    shape: &[usize],
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (Some(number), Some((sizes, nd))) = (number_of(ty), sizes(shape)) else { return Ok(None) };
    let api = api(py)?;
    let null = std::ptr::null_mut();
    // SAFETY: attached; `sizes` has `nd` numbers. A failure is NULL with an exception.
    let array = unsafe {
        let made = (api.new)(api.class, nd, sizes.as_ptr(), number, std::ptr::null(), null, 0, 0, null.cast());
        Bound::from_owned_ptr_or_err(py, made)?
    };
    let elements: usize = shape.iter().product();
    assert_eq!(ty.byte_len(elements), Some(bytes.len()), "the tensor has as many bytes as its shape says");
    // SAFETY: a new array owns as many bytes as type and shape have (asserted), nobody else has seen it.
    unsafe {
        let data = (*array.as_ptr().cast::<Array>()).data;
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), data, bytes.len());
    }
    Ok(Some(array))
}

/// An array over memory, which `keeper` keeps alive; `None` where NumPy has no such type or not so many axes.
pub(crate) fn over<'py>(
    memory: &Arc<Memory>,
    ty: ElementType,
    shape: &[usize],
    keeper: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (Some(number), Some((sizes, nd))) = (number_of(ty), sizes(shape)) else { return Ok(None) };
    let elements: usize = shape.iter().product();
    assert!(ty.byte_len(elements).is_some_and(|n| n <= memory.len()), "the memory has as many bytes as the shape says");
    let py = keeper.py();
    let api = api(py)?;
    let address = memory.address();
    let mut flags = C_CONTIGUOUS;
    if memory.is_writable() {
        flags |= WRITABLE;
    }
    if address.is_multiple_of(ty.bits() / 8) {
        flags |= ALIGNED;
    }
    let data = memory.start().cast();
    // SAFETY: attached; `sizes` has `nd` numbers and the memory so many bytes (asserted), which live as long as `keeper`. `set_base`
    // takes the reference that it is given, also when it fails.
    unsafe {
        let null = std::ptr::null_mut();
        let made = (api.new)(api.class, nd, sizes.as_ptr(), number, std::ptr::null(), data, 0, flags, null);
        let array = Bound::from_owned_ptr_or_err(py, made)?;
        if (api.set_base)(array.as_ptr(), keeper.clone().into_ptr()) != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(Some(array))
    }
}
