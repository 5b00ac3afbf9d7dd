//! `ov_tensor.h`. A tensor is memory with a type and a shape that several hold at once: handles, and requests that it is bound
//! to. All see a new shape, and the program writes into the memory between inferences.

use crate::element_type::{ElementNumber, from_number, to_number};
use crate::handles::{Handle, Object, hand_out};
use crate::pointers::{List, Out, Text};
use crate::remote_context::Params;
use crate::shape::{OwnedShape, Shape};
use crate::status::{Failure, NOT_IMPLEMENTED, Outcome, Status, guard};
use crate::strings::{CxxStrings, STRING_BYTES};
use carafe::{ElementType, SharedBytes, Tensor, memory};
use std::alloc;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// `ov_tensor_t`.
#[derive(Debug)]
pub struct TensorObject(Mutex<Content>);

impl Object for TensorObject {
    const KIND: &'static str = "ov_tensor_t";
}

#[derive(Debug)]
struct Content {
    ty: ElementType,
    shape: Vec<usize>,
    data: Data,
}

#[derive(Debug)]
enum Data {
    /// At least as large as type and shape need.
    Bytes(Arc<Buffer>),
    /// As many as the shape says.
    Strings(CxxStrings),
    /// Memory of a device.
    Remote(Remote),
}

#[derive(Debug)]
struct Remote {
    /// Of the type and shape of the content.
    tensor: Tensor,
    device: String,
    params: Params,
}

/// Memory that C writes into through a bare pointer: our own, or the program's.
#[derive(Debug)]
pub(crate) struct Buffer {
    start: NonNull<u8>,
    len: usize,
    /// How it was allocated; `None` for memory of the program.
    layout: Option<alloc::Layout>,
}

// SAFETY: plain bytes. Who writes them while an inference reads them breaks the promise of the API, as with the original.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    const ALIGNMENT: usize = 64;

    fn zeroed(len: usize) -> Outcome<Buffer> {
        memory::ensure_memory(len)?;
        let none = || Failure::argument(format!("{len} bytes cannot be allocated"));
        let layout = alloc::Layout::from_size_align(len.max(1), Buffer::ALIGNMENT).map_err(|_| none())?;
        // SAFETY: the size is at least 1.
        let start = NonNull::new(unsafe { alloc::alloc_zeroed(layout) }).ok_or_else(none)?;
        Ok(Buffer { start, len, layout: Some(layout) })
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `start` is of so many bytes that live as long as the buffer: our own until drop, those of the program by
        // its promise.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: allocated with this layout in `zeroed`, and freed only here.
            unsafe { alloc::dealloc(self.start.as_ptr(), layout) };
        }
    }
}

// Elements and bytes of a tensor; a size beyond all memory is an error.
fn size_of_tensor(ty: ElementType, shape: &[usize]) -> Outcome<(usize, usize)> {
    let too_large = || Failure::argument(format!("a tensor of {ty}{shape:?} is larger than memory can be"));
    let product = |all: usize, n: &usize| all.checked_mul(*n);
    let count = if shape.contains(&0) { 0 } else { shape.iter().try_fold(1, product).ok_or_else(too_large)? };
    let bytes = match ty {
        ElementType::String => count.checked_mul(STRING_BYTES),
        ElementType::Dynamic => return Err(Failure::argument("a tensor has a type; DYNAMIC is none")),
        _ => ty.byte_len(count),
    };
    let bytes = bytes.filter(|n| *n <= isize::MAX as usize).ok_or_else(too_large)?;
    Ok((count, bytes))
}

impl TensorObject {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Zeros, or empty texts.
    pub(crate) fn zeros(ty: ElementType, shape: &[usize]) -> Outcome<TensorObject> {
        let (count, bytes) = size_of_tensor(ty, shape)?;
        let data = match ty {
            ElementType::String => {
                memory::ensure_memory(bytes)?;
                Data::Strings(CxxStrings::new(&vec![""; count])?)
            }
            _ => Data::Bytes(Arc::new(Buffer::zeroed(bytes)?)),
        };
        Ok(TensorObject(Mutex::new(Content { ty, shape: shape.to_vec(), data })))
    }

    /// A tensor in the memory of a device, with what describes it.
    pub(crate) fn remote(tensor: Tensor, device: String, params: Params) -> TensorObject {
        let (ty, shape) = (tensor.element_type(), tensor.shape().to_vec());
        TensorObject(Mutex::new(Content { ty, shape, data: Data::Remote(Remote { tensor, device, params }) }))
    }

    /// The device and the description of one in memory of a device.
    pub(crate) fn on_device(&self) -> Option<(String, Params)> {
        match &self.content().data {
            Data::Remote(remote) => Some((remote.device.clone(), remote.params.clone())),
            Data::Bytes(_) | Data::Strings(_) => None,
        }
    }

    pub(crate) fn element_type(&self) -> ElementType {
        self.content().ty
    }

    pub(crate) fn shape(&self) -> Vec<usize> {
        self.content().shape.clone()
    }

    /// The tensor as it is now, for reading; memory is shared, texts are copied.
    pub(crate) fn to_tensor(&self) -> Outcome<Tensor> {
        let content = self.content();
        match &content.data {
            Data::Strings(texts) => Ok(Tensor::from_strings(&content.shape, texts.texts())?),
            Data::Remote(remote) => Ok(remote.tensor.clone()),
            Data::Bytes(buffer) => {
                let (_, len) = size_of_tensor(content.ty, &content.shape)?;
                let store = SharedBytes::from_owner(buffer.clone());
                Ok(Tensor::view(content.ty, &content.shape, &store, 0, len)?)
            }
        }
    }

    /// The bytes alone, for weights of a model.
    pub(crate) fn to_bytes(&self) -> Outcome<SharedBytes> {
        let content = self.content();
        let (_, len) = size_of_tensor(content.ty, &content.shape)?;
        match &content.data {
            Data::Strings(_) => Err(Failure::argument("weights are bytes, found texts")),
            Data::Remote(remote) => Ok(SharedBytes::from(remote.tensor.to_host()?.bytes())),
            Data::Bytes(buffer) => {
                let all = SharedBytes::from_owner(buffer.clone());
                all.part(0..len).ok_or_else(|| Failure::argument("the tensor is smaller than its shape says"))
            }
        }
    }

    /// The memory, lent to an inference that writes its output there; `None` for texts.
    pub(crate) fn to_target(&self) -> Outcome<Option<Tensor>> {
        let content = self.content();
        let buffer = match &content.data {
            Data::Bytes(buffer) => buffer,
            Data::Remote(remote) => return Ok(Some(remote.tensor.clone())),
            Data::Strings(_) => return Ok(None),
        };
        let (_, len) = size_of_tensor(content.ty, &content.shape)?;
        // SAFETY: the memory has so many bytes and lives as long as the buffer, which the store keeps. Between the start
        // and the end of an inference the program leaves the memory of an output alone: the API asks that of it.
        let store = unsafe { SharedBytes::from_raw_mut(buffer.start, len, buffer.clone()) };
        Ok(Some(Tensor::view(content.ty, &content.shape, &store, 0, len)?))
    }

    /// Takes what an inference gave: nothing to do where it was written here.
    pub(crate) fn take(&self, result: &Tensor) -> Outcome<()> {
        let mut content = self.content();
        if result.element_type() == ElementType::String {
            let data = Data::Strings(CxxStrings::new(result.strings()?)?);
            *content = Content { ty: ElementType::String, shape: result.shape().to_vec(), data };
            return Ok(());
        }
        if let Data::Bytes(buffer) = &content.data
            && buffer.start.as_ptr().addr() == result.storage_ptr()
        {
            content.shape = result.shape().to_vec();
            return Ok(());
        }
        if let Data::Remote(remote) = &mut content.data {
            let written_here = remote.tensor.storage_ptr() == result.storage_ptr();
            if written_here && remote.tensor.shape() == result.shape() {
                return Ok(());
            }
            if remote.tensor.element_type() != result.element_type() {
                let (is, found) = (remote.tensor.element_type(), result.element_type());
                return Err(Failure::argument(format!("a tensor of {is} on a device cannot take {found}")));
            }
            content.set_shape(result.shape())?;
            if let (Data::Remote(remote), false) = (&mut content.data, written_here) {
                let count = result.len();
                remote.tensor.copy_elements(0, &result.to_host()?, 0, count)?;
            }
            return Ok(());
        }
        content.ty = result.element_type();
        content.set_shape(result.shape())?;
        if let Data::Bytes(buffer) = &content.data {
            let bytes = result.bytes();
            // SAFETY: `set_shape` made room for the bytes of the shape, which are these; the result lies elsewhere.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.start.as_ptr(), bytes.len()) };
        }
        Ok(())
    }
}

impl Content {
    // Memory that is large enough stays where it is.
    fn set_shape(&mut self, shape: &[usize]) -> Outcome<()> {
        let (count, bytes) = size_of_tensor(self.ty, shape)?;
        match &mut self.data {
            Data::Remote(remote) => {
                let memory = remote.tensor.remote_memory().cloned();
                let lost = || Failure::argument("the tensor is on no device any more");
                remote.tensor = Tensor::remote(self.ty, shape, memory.ok_or_else(lost)?)?;
            }
            Data::Bytes(buffer) if self.ty != ElementType::String => {
                if bytes > buffer.len {
                    if buffer.layout.is_none() {
                        return Err(Failure::new(
                            crate::status::GENERAL_ERROR,
                            format!(
                                "a tensor over memory of the program has {} bytes, shape {shape:?} needs {bytes}",
                                buffer.len
                            ),
                        ));
                    }
                    *buffer = Arc::new(Buffer::zeroed(bytes)?);
                }
            }
            data if self.ty == ElementType::String => {
                let mut texts = match data {
                    Data::Strings(old) => old.texts(),
                    Data::Bytes(_) | Data::Remote(_) => vec![],
                };
                memory::ensure_memory(bytes)?;
                texts.resize(count, String::new());
                *data = Data::Strings(CxxStrings::new(&texts)?);
            }
            data => *data = Data::Bytes(Arc::new(Buffer::zeroed(bytes)?)),
        }
        self.shape = shape.to_vec();
        Ok(())
    }
}

type TensorHandle = Handle<TensorObject>;

/// A tensor of zeros.
#[unsafe(no_mangle)]
pub extern "C" fn ov_tensor_create(ty: ElementNumber, shape: Shape, tensor: Out<TensorHandle>) -> Status {
    guard(|| {
        tensor.check("tensor")?;
        let object = TensorObject::zeros(from_number(ty)?, &shape.sizes("shape")?)?;
        tensor.set(hand_out(Arc::new(object)), "tensor")
    })
}

/// A tensor over memory of the program, which must outlive it. Nothing is copied.
#[unsafe(no_mangle)]
pub extern "C" fn ov_tensor_create_from_host_ptr(
    ty: ElementNumber,
    shape: Shape,
    host_ptr: *mut c_void,
    tensor: Out<TensorHandle>,
) -> Status {
    guard(|| {
        tensor.check("tensor")?;
        let start = NonNull::new(host_ptr.cast()).ok_or_else(|| Failure::argument("`host_ptr` is null"))?;
        let (ty, shape) = (from_number(ty)?, shape.sizes("shape")?);
        if ty == ElementType::String {
            return Err(Failure::argument("texts are no plain memory; use ov_tensor_create_from_string_array"));
        }
        let (_, len) = size_of_tensor(ty, &shape)?;
        let data = Data::Bytes(Arc::new(Buffer { start, len, layout: None }));
        tensor.set(hand_out(Arc::new(TensorObject(Mutex::new(Content { ty, shape, data })))), "tensor")
    })
}

fn texts_of(array: List<Text>, len: usize) -> Outcome<Vec<String>> {
    let text = |t: &Text| Ok(String::from_utf8_lossy(t.bytes("string_array")?).into_owned());
    array.get(len, "string_array")?.iter().map(text).collect()
}

/// A tensor of texts; those that the array does not have are empty.
#[unsafe(no_mangle)]
pub extern "C" fn ov_tensor_create_from_string_array(
    string_array: List<Text>,
    array_size: usize,
    shape: Shape,
    tensor: Out<TensorHandle>,
) -> Status {
    guard(|| {
        tensor.check("tensor")?;
        let shape = shape.sizes("shape")?;
        let (count, _) = size_of_tensor(ElementType::String, &shape)?;
        if string_array.is_null() || array_size > count {
            return Err(Failure::argument(format!("found {array_size} texts, shape {shape:?} has {count}")));
        }
        let mut texts = texts_of(string_array, array_size)?;
        texts.resize(count, String::new());
        let data = Data::Strings(CxxStrings::new(&texts)?);
        let content = Content { ty: ElementType::String, shape, data };
        tensor.set(hand_out(Arc::new(TensorObject(Mutex::new(content)))), "tensor")
    })
}

/// Sets all texts of a tensor of texts.
#[unsafe(no_mangle)]
pub extern "C" fn ov_tensor_set_string_data(
    tensor: TensorHandle,
    string_array: List<Text>,
    array_size: usize,
) -> Status {
    guard(|| {
        let object = tensor.get("tensor")?;
        let mut content = object.content();
        let Data::Strings(texts) = &mut content.data else {
            let text = format!("a tensor of {} takes no texts", content.ty);
            return Err(Failure::argument(text));
        };
        if string_array.is_null() || array_size != texts.len() {
            return Err(Failure::argument(format!("found {array_size} texts, the tensor has {}", texts.len())));
        }
        *texts = CxxStrings::new(&texts_of(string_array, array_size)?)?;
        Ok(())
    })
}

/// Another shape. Memory that is large enough stays where it is; memory of the program cannot grow.
#[unsafe(no_mangle)]
pub extern "C" fn ov_tensor_set_shape(tensor: TensorHandle, shape: Shape) -> Status {
    guard(|| tensor.get("tensor")?.content().set_shape(&shape.sizes("shape")?))
}

/// The shape; to be freed with `ov_shape_free`.
#[unsafe(no_mangle)]
pub extern "C" fn ov_tensor_get_shape(tensor: TensorHandle, shape: Out<OwnedShape>) -> Status {
    guard(|| {
        shape.check("shape")?;
        shape.set(OwnedShape::of(&tensor.get("tensor")?.shape())?, "shape")
    })
}

/// The element type.
#[unsafe(no_mangle)]
pub extern "C" fn ov_tensor_get_element_type(tensor: TensorHandle, ty: Out<ElementNumber>) -> Status {
    guard(|| ty.set(to_number(tensor.get("tensor")?.element_type())?, "type"))
}

/// The number of elements.
#[unsafe(no_mangle)]
pub extern "C" fn ov_tensor_get_size(tensor: TensorHandle, elements_size: Out<usize>) -> Status {
    guard(|| {
        let object = tensor.get("tensor")?;
        let content = object.content();
        elements_size.set(size_of_tensor(content.ty, &content.shape)?.0, "elements_size")
    })
}

/// The number of bytes.
#[unsafe(no_mangle)]
pub extern "C" fn ov_tensor_get_byte_size(tensor: TensorHandle, byte_size: Out<usize>) -> Status {
    guard(|| {
        let object = tensor.get("tensor")?;
        let content = object.content();
        byte_size.set(size_of_tensor(content.ty, &content.shape)?.1, "byte_size")
    })
}

/// The memory, for reading and writing; of texts an array of `std::string`. It moves when the tensor grows.
#[unsafe(no_mangle)]
pub extern "C" fn ov_tensor_data(tensor: TensorHandle, data: Out<*mut c_void>) -> Status {
    guard(|| {
        data.check("data")?;
        let object = tensor.get("tensor")?;
        let start = match &mut object.content().data {
            Data::Bytes(buffer) => buffer.start.as_ptr().cast(),
            Data::Strings(texts) => texts.as_ptr(),
            Data::Remote(remote) => {
                let text = format!("the tensor lies in the memory of {}, which has no address here", remote.device);
                return Err(Failure::new(NOT_IMPLEMENTED, text));
            }
        };
        data.set(start, "data")
    })
}

/// Frees a tensor. Requests and models that use its memory keep it.
#[unsafe(no_mangle)]
pub extern "C" fn ov_tensor_free(tensor: TensorHandle) {
    drop(tensor.take());
}
