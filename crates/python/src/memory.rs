//! Memory that Python and the engine both use, and DLPack. All `unsafe` of the crate is here and in `numpy_api.rs`.
//!
//! Python has no borrow checker: whoever writes into an array while an inference reads it gets numbers from before or after, as with every
//! library that shares memory with NumPy.
#![allow(unsafe_code)]

use crate::errors::{OrRaise, failure};
use carafe::{ElementType, SharedBytes, Tensor, memory};
use pyo3::ffi;
use pyo3::prelude::*;
use std::alloc;
use std::ffi::{CStr, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes that several hold: tensors, arrays of NumPy, requests that a tensor is bound to.
pub(crate) struct Memory {
    start: NonNull<u8>,
    len: usize,
    keep: Keep,
    writable: bool,
}

enum Keep {
    /// Allocated here.
    Own(alloc::Layout),
    /// Memory of an object of Python, such as an array.
    Object { _object: Py<PyAny> },
    /// Memory of the engine.
    Engine { _tensor: Tensor },
    /// Memory that came by DLPack.
    Dlpack { _tensor: Foreign },
}

// SAFETY: plain bytes; who may write them when is said at the head of this file.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    const ALIGNMENT: usize = 64;

    /// Zeros.
    pub(crate) fn zeroed(len: usize) -> PyResult<Memory> {
        memory::ensure_memory(len).or_raise()?;
        let none = || pyo3::exceptions::PyMemoryError::new_err(format!("{len} bytes cannot be allocated"));
        let layout = alloc::Layout::from_size_align(len.max(1), Memory::ALIGNMENT).map_err(|_| none())?;
        // SAFETY: the size is at least 1.
        let start = NonNull::new(unsafe { alloc::alloc_zeroed(layout) }).ok_or_else(none)?;
        Ok(Memory { start, len, keep: Keep::Own(layout), writable: true })
    }

    /// A copy of bytes.
    pub(crate) fn copy_of(bytes: &[u8]) -> PyResult<Memory> {
        let memory = Memory::zeroed(bytes.len())?;
        memory.write(0, bytes);
        Ok(memory)
    }

    /// Memory of an array that NumPy described by its interface: C-contiguous, `len` bytes from `address` on. The array is kept.
    pub(crate) fn of_array(array: &Bound<'_, PyAny>, address: usize, len: usize, writable: bool) -> PyResult<Memory> {
        let start = match len {
            // An empty array may have any address.
            0 => NonNull::dangling(),
            _ => NonNull::new(address as *mut u8).ok_or_else(|| failure("the array has no memory"))?,
        };
        Ok(Memory { start, len, keep: Keep::Object { _object: array.clone().unbind() }, writable })
    }

    /// Memory of a tensor of the engine, for reading.
    pub(crate) fn of_tensor(tensor: &Tensor) -> Memory {
        let bytes = tensor.bytes();
        let start = NonNull::from(bytes).cast();
        Memory { start, len: bytes.len(), keep: Keep::Engine { _tensor: tensor.clone() }, writable: false }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }
    pub(crate) fn address(&self) -> usize {
        self.start.as_ptr().addr()
    }
    /// Where it begins; who may read and write there is said at the head of this file.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }
    /// Whether it was allocated here, so that it may be replaced by more.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.keep, Keep::Own(_) | Keep::Engine { .. })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: `start` is of `len` initialised bytes that live as long as what `keep` holds.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// Writes bytes at an offset; all must lie inside.
    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        assert!(self.writable && offset.checked_add(bytes.len()).is_some_and(|end| end <= self.len));
        // SAFETY: the range lies inside (asserted), and the memory may be written. `copy` allows that both overlap.
        unsafe { std::ptr::copy(bytes.as_ptr(), self.start.as_ptr().add(offset), bytes.len()) };
    }

    /// The first `len` bytes, for reading; the memory is kept.
    pub(crate) fn to_bytes(self: &Arc<Self>, len: usize) -> PyResult<SharedBytes> {
        let all = SharedBytes::from_owner(self.clone());
        if len == self.len {
            return Ok(all);
        }
        all.part(0..len).ok_or_else(|| failure("the tensor is smaller than its shape says"))
    }

    /// The first `len` bytes, lent to an inference that writes its output there; `None` for memory that may not be written.
    pub(crate) fn to_target(self: &Arc<Self>, len: usize) -> Option<SharedBytes> {
        if !self.writable || len > self.len {
            return None;
        }
        // SAFETY: the memory has so many bytes and lives as long as this, which the store keeps. Between the start and the end of
        // an inference the program leaves the memory of an output alone: the API asks that of it.
        Some(unsafe { SharedBytes::from_raw_mut(self.start, len, self.clone()) })
    }
}

impl AsRef<[u8]> for Memory {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Keep::Own(layout) = self.keep {
            // SAFETY: allocated with this layout in `zeroed`, and freed only here.
            unsafe { alloc::dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// The kind of device that memory of the processor has in DLPack.
pub(crate) const DLPACK_CPU: i32 = 1;

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: (i32, i32),
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Plain {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Plain)>,
}

#[repr(C)]
struct Versioned {
    version: [u32; 2],
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

/// The flag of memory that must not be written.
const READ_ONLY: u64 = 1;

/// Element types with their code in DLPack.
const CODES: [(ElementType, u8); 19] = [
    (ElementType::I8, 0),
    (ElementType::I16, 0),
    (ElementType::I32, 0),
    (ElementType::I64, 0),
    (ElementType::U8, 1),
    (ElementType::U16, 1),
    (ElementType::U32, 1),
    (ElementType::U64, 1),
    (ElementType::F16, 2),
    (ElementType::F32, 2),
    (ElementType::F64, 2),
    (ElementType::Bf16, 4),
    (ElementType::Boolean, 6),
    (ElementType::F8E4M3, 10),
    (ElementType::F8E4M3Fnuz, 11),
    (ElementType::F8E5M2, 12),
    (ElementType::F8E5M2Fnuz, 13),
    (ElementType::F8E8M0, 14),
    (ElementType::F4E2M1, 17),
];

const PLAIN: &CStr = c"dltensor";
const USED_PLAIN: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";

/// What lies behind the context of a tensor that was given away.
struct Given {
    _memory: Arc<Memory>,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

// Both forms of a tensor begin their life here: the numbers, and the context that keeps all of it.
fn describe(memory: &Arc<Memory>, ty: ElementType, shape: &[usize]) -> PyResult<(DlTensor, *mut c_void)> {
    let code = CODES.iter().find(|(t, _)| *t == ty && !ty.is_sub_byte());
    let none = || pyo3::exceptions::PyBufferError::new_err(format!("DLPack has no elements of {ty}"));
    let (_, code) = code.ok_or_else(none)?;
    let strides = row_strides(shape).into_iter().map(|s| s as i64).collect();
    let shape: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
    let mut given = Box::new(Given { _memory: memory.clone(), shape, strides });
    let tensor = DlTensor {
        data: memory.start.as_ptr().cast(),
        device: (DLPACK_CPU, 0),
        ndim: given.shape.len() as i32,
        code: *code,
        bits: ty.bits() as u8,
        lanes: 1,
        shape: given.shape.as_mut_ptr(),
        strides: given.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    Ok((tensor, Box::into_raw(given).cast()))
}

unsafe extern "C" fn free_plain(tensor: *mut Plain) {
    // SAFETY: made in `to_dlpack` by these boxes, and freed once: whoever has the capsule calls this one time.
    unsafe {
        drop(Box::from_raw((*tensor).context.cast::<Given>()));
        drop(Box::from_raw(tensor));
    }
}

unsafe extern "C" fn free_versioned(tensor: *mut Versioned) {
    // SAFETY: as in `free_plain`.
    unsafe {
        drop(Box::from_raw((*tensor).context.cast::<Given>()));
        drop(Box::from_raw(tensor));
    }
}

unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this with the capsule, attached. One that still has its first name was never used, so its tensor is ours to free.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) == 1 {
            free_plain(ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            free_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// Memory as a capsule of DLPack, in the form with a version where the consumer knows it.
pub(crate) fn to_dlpack<'py>(
    py: Python<'py>,
    memory: &Arc<Memory>,
    ty: ElementType,
    shape: &[usize],
    versioned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if !versioned && !memory.writable {
        return Err(pyo3::exceptions::PyBufferError::new_err("memory that is only read needs DLPack 1"));
    }
    let (tensor, context) = describe(memory, ty, shape)?;
    let (pointer, name): (*mut c_void, &CStr) = if versioned {
        let flags = if memory.writable { 0 } else { READ_ONLY };
        let all = Versioned { version: [1, 0], context, deleter: Some(free_versioned), flags, tensor };
        (Box::into_raw(Box::new(all)).cast(), VERSIONED)
    } else {
        (Box::into_raw(Box::new(Plain { tensor, context, deleter: Some(free_plain) })).cast(), PLAIN)
    };
    // SAFETY: attached; the name lives for ever and the pointer is not null. A failure is NULL with an exception.
    unsafe {
        let capsule = ffi::PyCapsule_New(pointer, name.as_ptr(), Some(drop_capsule));
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// What a producer of DLPack gave, and gets back at the end.
enum Foreign {
    Plain(*mut Plain),
    Versioned(*mut Versioned),
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: the pointer was taken out of its capsule in `from_dlpack`, so that nobody else frees it.
        unsafe {
            match *self {
                Foreign::Plain(p) => (*p).deleter.into_iter().for_each(|f| f(p)),
                Foreign::Versioned(p) => (*p).deleter.into_iter().for_each(|f| f(p)),
            }
        }
    }
}

/// The memory of an object with `__dlpack__`, its element type and shape.
pub(crate) fn from_dlpack(object: &Bound<'_, PyAny>) -> PyResult<(Memory, ElementType, Vec<usize>)> {
    let py = object.py();
    let device: (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
    if device.0 != DLPACK_CPU {
        return Err(failure(format!("memory of device {device:?} cannot be shared; copy it to the processor first")));
    }
    let kwargs = pyo3::types::PyDict::new(py);
    kwargs.set_item("max_version", (1, 0))?;
    let capsule = match object.call_method("__dlpack__", (), Some(&kwargs)) {
        Err(e) if e.is_instance_of::<pyo3::exceptions::PyTypeError>(py) => object.call_method0("__dlpack__")?,
        other => other?,
    };
    let raw = capsule.as_ptr();
    // SAFETY: attached. A capsule of such a name holds a pointer to such a tensor: that is DLPack. Under its new name its maker leaves the
    // tensor to us.
    let (foreign, tensor, read_only) = unsafe {
        if ffi::PyCapsule_IsValid(raw, VERSIONED.as_ptr()) == 1 {
            let all: *mut Versioned = ffi::PyCapsule_GetPointer(raw, VERSIONED.as_ptr()).cast();
            if (*all).version[0] != 1 {
                return Err(failure(format!("DLPack {} is not known", (*all).version[0])));
            }
            ffi::PyCapsule_SetName(raw, USED_VERSIONED.as_ptr());
            (Foreign::Versioned(all), &raw const (*all).tensor, (*all).flags & READ_ONLY != 0)
        } else if ffi::PyCapsule_IsValid(raw, PLAIN.as_ptr()) == 1 {
            let all: *mut Plain = ffi::PyCapsule_GetPointer(raw, PLAIN.as_ptr()).cast();
            ffi::PyCapsule_SetName(raw, USED_PLAIN.as_ptr());
            (Foreign::Plain(all), &raw const (*all).tensor, false)
        } else {
            return Err(failure("`__dlpack__` gave no tensor that was not used yet"));
        }
    };
    // SAFETY: the tensor lives until `foreign` is dropped, and its shape and strides have `ndim` numbers; strides may be null.
    let (tensor, shape, strides) = unsafe {
        let tensor = &*tensor;
        let rank = tensor.ndim.max(0) as usize;
        let list = |p: *mut i64| match p.is_null() || rank == 0 {
            true => vec![],
            false => std::slice::from_raw_parts(p, rank).to_vec(),
        };
        (tensor, list(tensor.shape), list(tensor.strides))
    };
    let ty = CODES.iter().find(|(ty, code)| *code == tensor.code && ty.bits() == usize::from(tensor.bits));
    let ty = ty.filter(|_| tensor.lanes == 1).map(|(ty, _)| *ty);
    let ty =
        ty.ok_or_else(|| failure(format!("elements of {} bits and code {} are not known", tensor.bits, tensor.code)))?;
    let shape: Vec<usize> = shape.into_iter().map(|n| usize::try_from(n).unwrap_or(0)).collect();
    let usual = row_strides(&shape);
    let plain = strides.iter().zip(&usual).zip(&shape).all(|((s, u), n)| *n <= 1 || *s == *u as i64);
    if !plain && !shape.contains(&0) {
        return Err(failure(
            "elements that do not lie one behind the other cannot be shared; make them contiguous first",
        ));
    }
    let elements: usize = shape.iter().product();
    let len = ty.byte_len(elements).ok_or_else(|| failure("the tensor is larger than memory can be"))?;
    // SAFETY: the data begin so many bytes behind the pointer.
    let start = unsafe { tensor.data.cast::<u8>().add(tensor.byte_offset as usize) };
    let start = if len == 0 {
        NonNull::dangling()
    } else {
        NonNull::new(start).ok_or_else(|| failure("the tensor has no memory"))?
    };
    Ok((Memory { start, len, keep: Keep::Dlpack { _tensor: foreign }, writable: !read_only }, ty, shape))
}

// Elements from one to the next along each axis, the last one first in memory.
fn row_strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for i in (0..shape.len().saturating_sub(1)).rev() {
        strides[i] = strides[i + 1] * shape[i + 1].max(1);
    }
    strides
}
