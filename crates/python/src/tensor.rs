//! `Tensor`: memory with a type and a shape that several hold at once: Python, arrays of NumPy, requests that it is bound to. All
//! see a new shape, and the program writes into the memory between inferences.

use crate::errors::{OrRaise, failure};
use crate::memory::Memory;
use crate::numpy::{self, numpy, view};
use crate::shapes::{shape_object, sizes_of};
use crate::types::{self, Type};
use carafe::{ElementType, SharedBytes, Tensor as Engine};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What tensors share: type, shape and memory.
pub(crate) struct Cell(Mutex<Content>);

#[derive(Clone)]
struct Content {
    ty: ElementType,
    shape: Vec<usize>,
    data: Data,
    /// Whether a call lent the memory for one inference.
    lent: bool,
    /// How often type, shape or memory became others.
    changes: u64,
}

#[derive(Clone)]
enum Data {
    /// At least as large as type and shape need.
    Bytes(Arc<Memory>),
    /// As many as the shape says.
    Texts(Arc<Vec<String>>),
    /// Elements of another tensor that do not lie one behind the other: its memory, where they begin, and strides in bytes.
    Part { of: Arc<Memory>, offset: usize, strides: Vec<usize> },
    /// In the memory of a device.
    Remote(Engine),
}

/// Elements and bytes of a tensor.
pub(crate) fn sizes(ty: ElementType, shape: &[usize]) -> PyResult<(usize, usize)> {
    let too_large = || failure(format!("a tensor of {ty}{shape:?} is larger than memory can be"));
    let product = |all: usize, n: &usize| all.checked_mul(*n);
    let count = if shape.contains(&0) { 0 } else { shape.iter().try_fold(1, product).ok_or_else(too_large)? };
    let bytes = match ty {
        // As many as `std::string` has.
        ElementType::String => count.checked_mul(32),
        ElementType::Dynamic => return Err(failure("a tensor has a type; dynamic is none")),
        _ => ty.byte_len(count),
    };
    let bytes = bytes.filter(|n| *n <= isize::MAX as usize).ok_or_else(too_large)?;
    Ok((count, bytes))
}

impl Cell {
    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn of(content: Content) -> Arc<Cell> {
        Arc::new(Cell(Mutex::new(content)))
    }

    /// Zeros, or empty texts.
    pub(crate) fn zeros(ty: ElementType, shape: &[usize]) -> PyResult<Arc<Cell>> {
        let (count, bytes) = sizes(ty, shape)?;
        let data = match ty {
            ElementType::String => {
                carafe::memory::ensure_memory(bytes).or_raise()?;
                Data::Texts(Arc::new(vec![String::new(); count]))
            }
            _ => Data::Bytes(Arc::new(Memory::zeroed(bytes)?)),
        };
        Ok(Cell::of(Content { ty, shape: shape.to_vec(), data, lent: false, changes: 0 }))
    }

    /// Over memory of another owner.
    pub(crate) fn over(memory: impl Into<Arc<Memory>>, ty: ElementType, shape: &[usize]) -> PyResult<Arc<Cell>> {
        let (memory, (_, bytes)) = (memory.into(), sizes(ty, shape)?);
        if bytes > memory.len() {
            let text = format!("a tensor of {ty}{shape:?} needs {bytes} bytes, the memory has {}", memory.len());
            return Err(failure(text));
        }
        Ok(Cell::of(Content { ty, shape: shape.to_vec(), data: Data::Bytes(memory), lent: false, changes: 0 }))
    }

    /// Over a tensor of the engine.
    pub(crate) fn of_engine(tensor: &Engine) -> PyResult<Arc<Cell>> {
        let (ty, shape) = (tensor.element_type(), tensor.shape().to_vec());
        let data = match ty {
            ElementType::String => Data::Texts(Arc::new(tensor.strings().or_raise()?.to_vec())),
            _ => Data::Bytes(Arc::new(Memory::of_tensor(&tensor.to_host().or_raise()?))),
        };
        Ok(Cell::of(Content { ty, shape, data, lent: false, changes: 0 }))
    }

    /// A tensor in the memory of a device.
    pub(crate) fn remote(tensor: Engine) -> Arc<Cell> {
        let (ty, shape) = (tensor.element_type(), tensor.shape().to_vec());
        Cell::of(Content { ty, shape, data: Data::Remote(tensor), lent: false, changes: 0 })
    }
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.content().data, Data::Remote(_))
    }

    pub(crate) fn of_texts(shape: Vec<usize>, texts: Vec<String>) -> Arc<Cell> {
        Cell::of(Content {
            ty: ElementType::String,
            shape,
            data: Data::Texts(Arc::new(texts)),
            lent: false,
            changes: 0,
        })
    }

    pub(crate) fn element_type(&self) -> ElementType {
        self.content().ty
    }
    pub(crate) fn shape(&self) -> Vec<usize> {
        self.content().shape.clone()
    }
    /// Marks memory as lent by a call.
    pub(crate) fn lent(self: Arc<Self>) -> Arc<Cell> {
        self.content().lent = true;
        self
    }
    pub(crate) fn is_lent(&self) -> bool {
        self.content().lent
    }
    /// The tensor for reading, unless it is as it was when this gave that number: then the engine's tensor of then still shows
    /// what the memory holds.
    pub(crate) fn changed_since(&self, then: Option<u64>) -> PyResult<Option<(Engine, Option<u64>)>> {
        let now = {
            let content = self.content();
            matches!(content.data, Data::Bytes(_)).then_some(content.changes)
        };
        match now.is_some() && now == then {
            true => Ok(None),
            false => Ok(Some((self.to_engine()?, now))),
        }
    }
    /// An array over the memory as it is; that of the engine can only be read.
    pub(crate) fn shared_array<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let content = self.content().clone();
        let (_, len) = sizes(content.ty, &content.shape)?;
        match &content.data {
            Data::Bytes(memory) if content.ty.is_sub_byte() => view(py, memory, content.ty, &[len], false),
            Data::Bytes(memory) => view(py, memory, content.ty, &content.shape, false),
            _ => self.array(py, false),
        }
    }
    pub(crate) fn address(&self) -> Option<usize> {
        match &self.content().data {
            Data::Bytes(memory) => Some(memory.address()),
            Data::Remote(tensor) => Some(tensor.storage_ptr()),
            _ => None,
        }
    }

    /// The tensor as it is now, for reading; memory is shared, texts are copied.
    pub(crate) fn to_engine(&self) -> PyResult<Engine> {
        let content = self.content();
        let (count, len) = sizes(content.ty, &content.shape)?;
        match &content.data {
            Data::Texts(texts) => Engine::from_strings(&content.shape, texts.to_vec()).or_raise(),
            Data::Bytes(memory) => Engine::view(content.ty, &content.shape, &memory.to_bytes(len)?, 0, len).or_raise(),
            Data::Part { of, offset, strides } => {
                let size = content.ty.bits() / 8;
                let mut bytes = Vec::with_capacity(count * size);
                each_element(&content.shape, strides, &mut |at| {
                    bytes.extend_from_slice(&of.bytes()[offset + at..offset + at + size]);
                });
                Engine::from_bytes(content.ty, &content.shape, &bytes).or_raise()
            }
            Data::Remote(tensor) => Ok(tensor.clone()),
        }
    }

    /// The bytes alone, for weights of a model.
    pub(crate) fn to_bytes(&self) -> PyResult<SharedBytes> {
        let content = self.content();
        let (_, len) = sizes(content.ty, &content.shape)?;
        match &content.data {
            Data::Bytes(memory) => memory.to_bytes(len),
            _ => Err(failure("bytes that lie one behind the other are expected")),
        }
    }

    /// The memory, lent to an inference that writes its output there; `None` where it cannot.
    pub(crate) fn to_target(&self) -> PyResult<Option<Engine>> {
        let content = self.content();
        if let Data::Remote(tensor) = &content.data {
            return Ok(Some(tensor.clone()));
        }
        let Data::Bytes(memory) = &content.data else { return Ok(None) };
        let (_, len) = sizes(content.ty, &content.shape)?;
        let Some(store) = memory.to_target(len) else { return Ok(None) };
        Ok(Some(Engine::view(content.ty, &content.shape, &store, 0, len).or_raise()?))
    }

    /// Takes what an inference gave: nothing to do where it was written here. Memory of the program is written, own memory
    /// gives way to that of the engine.
    pub(crate) fn take(&self, result: &Engine) -> PyResult<()> {
        let mut content = self.content();
        let there = match &content.data {
            Data::Bytes(memory) => memory.address() == result.storage_ptr(),
            Data::Remote(tensor) => tensor.storage_ptr() == result.storage_ptr(),
            _ => false,
        };
        if let Data::Remote(tensor) = &content.data
            && !there
        {
            // The shape is as it was: a tensor of a device is bound to outputs of its shape only.
            let memory = tensor.remote_memory().ok_or_else(|| failure("the tensor lost its memory"))?;
            return memory.write(0, result.to_host().or_raise()?.bytes()).or_raise();
        }
        let foreign = matches!(&content.data, Data::Bytes(memory) if !memory.is_own());
        if there {
            if content.shape != result.shape() {
                content.shape = result.shape().to_vec();
                content.changes += 1;
            }
        } else if foreign {
            content.ty = result.element_type();
            content.set_shape(result.shape())?;
            if let Data::Bytes(memory) = &content.data {
                memory.write(0, result.to_host().or_raise()?.bytes());
            }
        } else {
            let taken = Cell::of_engine(result)?;
            let changes = content.changes + 1;
            *content = Content { changes, ..taken.content().clone() };
        }
        Ok(())
    }

    pub(crate) fn set_shape(&self, shape: &[usize]) -> PyResult<()> {
        self.content().set_shape(shape)
    }

    /// Writes the elements of C-contiguous memory of the same type and shape.
    pub(crate) fn write(&self, bytes: &[u8]) -> PyResult<()> {
        let mut content = self.content();
        content.own()?;
        match &content.data {
            Data::Bytes(memory) if memory.is_writable() => memory.write(0, bytes),
            _ => return Err(failure("the tensor cannot be written")),
        }
        Ok(())
    }

    pub(crate) fn set_texts(&self, shape: Vec<usize>, texts: Vec<String>) {
        let mut content = self.content();
        let (data, changes) = (Data::Texts(Arc::new(texts)), content.changes + 1);
        *content = Content { ty: ElementType::String, shape, data, lent: false, changes };
    }

    fn texts(&self) -> PyResult<Arc<Vec<String>>> {
        match &self.content().data {
            Data::Texts(texts) => Ok(texts.clone()),
            _ => Err(failure("the tensor is not of strings")),
        }
    }

    /// An array over the memory, or with a copy of it.
    pub(crate) fn array<'py>(&self, py: Python<'py>, copied: bool) -> PyResult<Bound<'py, PyAny>> {
        // Python is never called while the lock is held.
        let content = {
            let mut content = self.content();
            if !copied {
                content.own()?;
            }
            content.clone()
        };
        if content.ty == ElementType::String {
            let text =
                c"Data of string type will be copied! Please use dedicated properties `str_data` and `bytes_data`.";
            PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyRuntimeWarning>(), text, 1)?;
            return texts_array(py, &content.shape, &self.texts()?, false);
        }
        let (_, len) = sizes(content.ty, &content.shape)?;
        match &content.data {
            // Packed elements appear as the bytes they lie in.
            Data::Bytes(memory) if content.ty.is_sub_byte() => view(py, memory, content.ty, &[len], copied),
            Data::Bytes(memory) => view(py, memory, content.ty, &content.shape, copied),
            Data::Texts(_) => Err(failure("texts have no memory of numbers")),
            Data::Part { of, offset, strides } => {
                let bytes = view(py, of, ElementType::U8, &[of.len()], false)?;
                let arguments = PyDict::new(py);
                arguments.set_item("shape", PyTuple::new(py, &content.shape)?)?;
                arguments.set_item("dtype", numpy::dtype_of(py, content.ty)?)?;
                arguments.set_item("buffer", bytes)?;
                arguments.set_item("offset", offset)?;
                arguments.set_item("strides", PyTuple::new(py, strides)?)?;
                numpy(py)?.module(py).getattr("ndarray")?.call((), Some(&arguments))
            }
            Data::Remote(tensor) => Cell::of_engine(tensor)?.array(py, copied),
        }
    }
}

fn each_element(shape: &[usize], strides: &[usize], found: &mut dyn FnMut(usize)) {
    match (shape, strides) {
        ([n, rest @ ..], [step, steps @ ..]) => {
            for i in 0..*n {
                each_element(rest, steps, &mut |at| found(i * step + at));
            }
        }
        _ => found(0),
    }
}

impl Content {
    // What the engine gave may be read by others: whoever wants to write gets a copy.
    fn own(&mut self) -> PyResult<()> {
        if let Data::Bytes(memory) = &self.data
            && !memory.is_writable()
            && memory.is_own()
        {
            self.data = Data::Bytes(Arc::new(Memory::copy_of(memory.bytes())?));
            self.changes += 1;
        }
        Ok(())
    }

    // Memory that is large enough stays where it is.
    fn set_shape(&mut self, shape: &[usize]) -> PyResult<()> {
        let (count, bytes) = sizes(self.ty, shape)?;
        match &mut self.data {
            Data::Bytes(memory) => {
                if bytes > memory.len() {
                    if !memory.is_own() {
                        return Err(failure(format!(
                            "set_shape failed: a tensor over memory of the program cannot grow: it has {} bytes, shape \
                             {shape:?} needs {bytes}",
                            memory.len()
                        )));
                    }
                    *memory = Arc::new(Memory::zeroed(bytes)?);
                } else if !memory.is_writable() && memory.is_own() {
                    *memory = Arc::new(Memory::copy_of(memory.bytes())?);
                }
            }
            Data::Texts(texts) => {
                carafe::memory::ensure_memory(bytes).or_raise()?;
                let mut all = texts.to_vec();
                all.resize(count, String::new());
                *texts = Arc::new(all);
            }
            Data::Part { .. } => return Err(failure("a part of a tensor keeps its shape")),
            Data::Remote(_) => return Err(failure("a tensor in the memory of a device keeps its shape")),
        }
        self.shape = shape.to_vec();
        self.changes += 1;
        Ok(())
    }
}

/// An array of texts: of `str`, or of `bytes`.
pub(crate) fn texts_array<'py>(
    py: Python<'py>,
    shape: &[usize],
    texts: &[String],
    decoded: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let list = PyList::empty(py);
    for text in texts {
        let bytes = carafe::bytes_of_text(text);
        match decoded {
            true => list.append(String::from_utf8_lossy(&bytes))?,
            false => list.append(PyBytes::new(py, &bytes))?,
        }
    }
    let dtype = if decoded { "U" } else { "S" };
    let array = numpy(py)?.module(py).call_method1("array", (list, dtype))?;
    array.call_method1("reshape", (PyTuple::new(py, shape)?,))
}

/// The texts of an array, list or scalar of `str` or `bytes`, with their shape.
pub(crate) fn texts_of(object: &Bound<'_, PyAny>) -> PyResult<(Vec<usize>, Vec<String>)> {
    let py = object.py();
    let array = numpy(py)?.asarray(object)?;
    let shape: Vec<usize> = array.getattr(intern!(py, "shape"))?.extract()?;
    let text = |item: &Bound<'_, PyAny>| -> PyResult<String> {
        match item.cast::<PyBytes>() {
            Ok(bytes) => Ok(carafe::text_of_bytes(bytes.as_bytes())),
            Err(_) => Ok(item.cast::<PyString>().map_err(|_| wrong_text(item))?.to_cow()?.into_owned()),
        }
    };
    let all = array.call_method0("ravel")?.call_method0("tolist")?;
    let texts = all.try_iter()?.map(|item| text(&item?)).collect::<PyResult<_>>()?;
    Ok((shape, texts))
}

fn wrong_text(item: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!("a string tensor takes str and bytes, found {}", item.get_type()))
}

/// A tensor.
#[pyclass(name = "Tensor", module = "carafe", frozen, subclass)]
pub(crate) struct Tensor {
    pub(crate) cell: Arc<Cell>,
}

impl From<Arc<Cell>> for Tensor {
    fn from(cell: Arc<Cell>) -> Tensor {
        Tensor { cell }
    }
}

/// A tensor of an array: over its memory, or with a copy.
pub(crate) fn of_array(array: &Bound<'_, PyAny>, shared: bool) -> PyResult<Arc<Cell>> {
    let py = array.py();
    let seen = numpy::look(array)?;
    let Some(ty) = seen.ty else {
        return Err(failure(format!("no element type is like data type {}", array.getattr("dtype")?)));
    };
    if ty == ElementType::String {
        if shared {
            return Err(failure(
                "SHARED MEMORY MODE FOR THIS TENSOR IS NOT APPLICABLE! String types can be only copied.",
            ));
        }
        let (shape, texts) = texts_of(array)?;
        return Ok(Cell::of_texts(shape, texts));
    }
    let (_, len) = sizes(ty, &seen.shape)?;
    if shared {
        if !seen.writable {
            return Err(PyValueError::new_err("array is not writeable"));
        }
        if !seen.contiguous {
            return Err(failure(
                "SHARED MEMORY MODE FOR THIS TENSOR IS NOT APPLICABLE! Passed numpy array must be C contiguous.",
            ));
        }
        return Cell::over(Memory::of_array(array, seen.address, len, true)?, ty, &seen.shape);
    }
    let array = match seen.contiguous {
        true => array.clone(),
        false => numpy(py)?.module(py).call_method1("ascontiguousarray", (array,))?,
    };
    let seen = numpy::look(&array)?;
    let source = Memory::of_array(&array, seen.address, len, false)?;
    Cell::over(Memory::copy_of(source.bytes())?, ty, &seen.shape)
}

/// A tensor of a list of numbers or texts.
fn of_list(list: &Bound<'_, PyAny>) -> PyResult<Arc<Cell>> {
    let numpy = numpy(list.py())?;
    let array = numpy.asarray(list)?;
    of_array(&array, false)
}

// The element type and static shape of a port.
fn of_port(port: &Bound<'_, PyAny>) -> PyResult<(ElementType, Vec<usize>)> {
    let ty = types::of_object(&port.call_method0("get_element_type")?)?;
    let shape = crate::shapes::shape_of(&port.call_method0("get_partial_shape")?)?;
    let sizes = shape.dims().map_or(vec![0], |dims| dims.iter().map(|d| d.size().unwrap_or(0)).collect());
    Ok((ty, sizes))
}

fn incompatible(args: &Bound<'_, PyTuple>) -> PyErr {
    PyTypeError::new_err(format!(
        "Tensor(): incompatible constructor arguments {}; supported: (array, shared_memory=False), (array, shape, type), (list), \
         (type, shape), (port), (port, array), (other, begin, end), (image)",
        args.repr().map(|r| r.to_string()).unwrap_or_default()
    ))
}

#[pymethods]
impl Tensor {
    #[new]
    #[pyo3(signature = (*args, **kwargs))]
    fn new(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> PyResult<Tensor> {
        let given = |index: usize, names: &[&str]| -> PyResult<Option<Bound<'_, PyAny>>> {
            if index < args.len() {
                return args.get_item(index).map(Some);
            }
            let Some(kwargs) = kwargs else { return Ok(None) };
            for name in names {
                if let Some(value) = kwargs.get_item(name)? {
                    return Ok(Some(value));
                }
            }
            Ok(None)
        };
        let first =
            given(0, &["array", "list", "type", "port", "other", "image"])?.ok_or_else(|| incompatible(args))?;
        Ok(construct(args, &first, &given)?.into())
    }

    fn __repr__(&self) -> String {
        let sizes: Vec<String> = self.cell.shape().iter().map(usize::to_string).collect();
        format!("<Tensor: shape[{}] type: {}>", sizes.join(","), self.cell.element_type())
    }
    fn get_element_type(&self) -> Type {
        Type(self.cell.element_type())
    }
    #[getter(element_type)]
    fn element_type_(&self) -> Type {
        self.get_element_type()
    }
    /// The number of elements.
    fn get_size(&self) -> PyResult<usize> {
        let content = self.cell.content();
        Ok(sizes(content.ty, &content.shape)?.0)
    }
    #[getter(size)]
    fn size_(&self) -> PyResult<usize> {
        self.get_size()
    }
    /// The number of bytes.
    fn get_byte_size(&self) -> PyResult<usize> {
        let content = self.cell.content();
        Ok(sizes(content.ty, &content.shape)?.1)
    }
    #[getter(byte_size)]
    fn byte_size_(&self) -> PyResult<usize> {
        self.get_byte_size()
    }
    fn get_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        shape_object(py, &self.cell.shape())
    }
    #[getter(shape)]
    fn shape_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.get_shape(py)
    }
    #[setter(shape)]
    fn put_shape(&self, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set_shape(shape)
    }
    /// Another shape. Memory that is large enough stays where it is.
    fn set_shape(&self, shape: &Bound<'_, PyAny>) -> PyResult<()> {
        self.cell.set_shape(&sizes_of(shape)?)
    }
    /// Bytes from one element to the next, for each axis.
    fn get_strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let content = self.cell.content().clone();
        let strides = match &content.data {
            Data::Part { strides, .. } => strides.clone(),
            _ => {
                let size = if content.ty == ElementType::String { 32 } else { content.ty.bits() / 8 };
                if size == 0 {
                    return Err(failure(format!(
                        "Could not get strides for types with bitwidths less then 8 bit. Tensor type: {}",
                        content.ty
                    )));
                }
                let mut strides: Vec<usize> = vec![size; content.shape.len()];
                for i in (0..strides.len().saturating_sub(1)).rev() {
                    strides[i] = strides[i + 1] * content.shape[i + 1];
                }
                strides
            }
        };
        py.import("carafe._values")?.getattr("Strides")?.call1((PyList::new(py, strides)?,))
    }
    #[getter(strides)]
    fn strides_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.get_strides(py)
    }
    /// Whether elements lie one behind the other.
    fn is_continuous(&self) -> bool {
        !matches!(self.cell.content().data, Data::Part { .. })
    }
    /// The elements as an array over the same memory. Packed elements appear as bytes, strings are copied.
    #[getter(data)]
    fn data_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.cell.array(py, false)
    }
    /// Strings as an array of `bytes`; of numbers, the same as `data`.
    #[getter(bytes_data)]
    fn bytes_data_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.cell.element_type() {
            ElementType::String => texts_array(py, &self.cell.shape(), &self.cell.texts()?, false),
            _ => self.cell.array(py, false),
        }
    }
    #[setter(bytes_data)]
    fn put_bytes_data(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put_texts(value)
    }
    /// Strings as an array of `str`.
    #[getter(str_data)]
    fn str_data_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        texts_array(py, &self.cell.shape(), &self.cell.texts()?, true)
    }
    #[setter(str_data)]
    fn put_str_data(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.put_texts(value)
    }
    /// Copies all elements into another tensor, which takes the shape of this one.
    fn copy_to(&self, target_tensor: &Tensor) -> PyResult<()> {
        target_tensor.assign(&self.cell)
    }
    /// Copies the elements of a tensor, array or list of the same type and shape.
    fn copy_from(&self, source: &Bound<'_, PyAny>) -> PyResult<()> {
        let cell = match source.cast::<Tensor>() {
            Ok(tensor) => tensor.get().cell.clone(),
            Err(_) if source.is_instance_of::<PyList>() => of_list(source)?,
            Err(_) => of_array(source, false)?,
        };
        let (own, given) = (self.cell.element_type(), cell.element_type());
        if own != given {
            return Err(failure(format!("a tensor of {own} takes no elements of {given}")));
        }
        let plain = source.cast::<Tensor>().is_err() && own != ElementType::String;
        if plain && self.cell.shape() != cell.shape() {
            let (bytes, found) = (self.get_byte_size()?, sizes(given, &cell.shape())?.1);
            if bytes != found {
                return Err(failure(format!("the tensor has {bytes} bytes, the source {found}")));
            }
        }
        self.assign(&cell)
    }
    fn __copy__(&self) -> Tensor {
        Tensor { cell: self.cell.clone() }
    }
    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        Ok(Tensor { cell: self.clone_memory()? })
    }
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let py = slf.py();
        let cell = &slf.get().cell;
        let rebuild = py.import("carafe._native")?.getattr("_tensor_of_bytes")?;
        let (ty, shape) = (cell.element_type(), cell.shape());
        let content: Bound<'py, PyAny> = match ty {
            ElementType::String => slf.get().bytes_data_(py)?.call_method0("tolist")?,
            _ => PyBytes::new(py, cell.to_engine()?.bytes()).into_any(),
        };
        Ok((rebuild, (ty.name(), shape, content).into_pyobject(py)?))
    }
    fn __dlpack_device__(&self) -> (i32, i32) {
        (crate::memory::DLPACK_CPU, 0)
    }
    /// The memory for another library, by DLPack. Nothing is copied unless asked for.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = stream;
        if dl_device.is_some_and(|d| d != self.__dlpack_device__()) {
            return Err(pyo3::exceptions::PyBufferError::new_err("the memory of the tensor is that of the processor"));
        }
        let cell = if copy == Some(true) { self.clone_memory()? } else { self.cell.clone() };
        let content = {
            let mut content = cell.content();
            content.own()?;
            content.clone()
        };
        let Data::Bytes(memory) = &content.data else {
            return Err(pyo3::exceptions::PyBufferError::new_err("strings and parts of tensors have no DLPack"));
        };
        crate::memory::to_dlpack(py, memory, content.ty, &content.shape, max_version.is_some_and(|v| v.0 >= 1))
    }
    /// A tensor over the memory of any object with `__dlpack__`. Nothing is copied.
    #[staticmethod]
    fn from_dlpack(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let (memory, ty, shape) = crate::memory::from_dlpack(object)?;
        Ok(Cell::over(memory, ty, &shape)?.into())
    }
}

impl Tensor {
    fn clone_memory(&self) -> PyResult<Arc<Cell>> {
        let engine = self.cell.to_engine()?;
        match engine.element_type() {
            ElementType::String => Cell::of_engine(&engine),
            ty => Cell::over(Memory::copy_of(engine.bytes())?, ty, engine.shape()),
        }
    }

    fn assign(&self, source: &Arc<Cell>) -> PyResult<()> {
        if Arc::ptr_eq(&self.cell, source) {
            return Ok(());
        }
        let engine = source.to_engine()?;
        if self.cell.element_type() != engine.element_type() {
            let (own, given) = (self.cell.element_type(), engine.element_type());
            return Err(failure(format!("a tensor of {own} takes no elements of {given}")));
        }
        if engine.element_type() == ElementType::String {
            self.cell.set_texts(engine.shape().to_vec(), engine.strings().or_raise()?.to_vec());
            return Ok(());
        }
        if self.cell.shape() != engine.shape() {
            self.cell.set_shape(engine.shape())?;
        }
        let content = self.cell.content().clone();
        if let Data::Part { of, offset, strides } = &content.data {
            let (size, bytes, mut from) = (content.ty.bits() / 8, engine.bytes(), 0);
            each_element(&content.shape, strides, &mut |at| {
                of.write(offset + at, &bytes[from..from + size]);
                from += size;
            });
            return Ok(());
        }
        self.cell.write(engine.bytes())
    }

    fn put_texts(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        if self.cell.element_type() != ElementType::String {
            return Err(failure("Data of string type can only be set to a tensor of strings"));
        }
        let unknown = |e: PyErr| failure(format!("Unknown string kind passed to fill the Tensor's data! {e}"));
        let (shape, texts) = texts_of(value).map_err(unknown)?;
        if shape.iter().product::<usize>() != self.get_size()? {
            let own = self.cell.shape();
            return Err(failure(format!(
                "Passed array must have the same size (number of elements) as the Tensor! Its shape is {shape:?}, that of the tensor {own:?}"
            )));
        }
        self.cell.set_texts(self.cell.shape(), texts);
        Ok(())
    }
}

type Given<'a, 'py> = &'a dyn Fn(usize, &[&str]) -> PyResult<Option<Bound<'py, PyAny>>>;

fn construct<'py>(args: &Bound<'py, PyTuple>, first: &Bound<'py, PyAny>, given: Given<'_, 'py>) -> PyResult<Arc<Cell>> {
    let numpy = numpy(first.py())?;
    if numpy.is_array(first) {
        let shape = given(1, &["shape"])?.filter(|s| !s.is_instance_of::<pyo3::types::PyBool>());
        if let Some(shape) = shape {
            let ty = given(2, &["type"])?.map(|t| types::of_object(&t)).transpose()?;
            return packed(first, &sizes_of(&shape)?, ty);
        }
        let shared = given(1, &["shared_memory"])?.map(|s| s.extract::<bool>()).transpose()?.unwrap_or(false);
        return of_array(first, shared);
    }
    if first.is_instance_of::<PyList>() {
        return of_list(first);
    }
    if let Ok(tensor) = first.cast::<Tensor>() {
        let (Some(begin), Some(end)) = (given(1, &["begin"])?, given(2, &["end"])?) else {
            return Err(incompatible(args));
        };
        return part(&tensor.get().cell, &sizes_of(&begin)?, &sizes_of(&end)?);
    }
    let is_port = first.hasattr("get_partial_shape")?;
    if let Some(shape) = given(1, &["shape"])?.filter(|_| !is_port) {
        return Cell::zeros(types::of_object(first)?, &sizes_of(&shape)?);
    }
    if is_port {
        let (ty, shape) = of_port(first)?;
        let Some(array) = given(1, &["array"])? else { return Cell::zeros(ty, &shape) };
        return over_port(&array, ty, &shape);
    }
    // A picture of PIL, and whatever else is an array.
    if first.hasattr("__array__")? || first.hasattr("__array_interface__")? {
        return of_array(&numpy.asarray(first)?, false);
    }
    if first.hasattr("__dlpack__")? {
        let (memory, ty, shape) = crate::memory::from_dlpack(first)?;
        return Cell::over(memory, ty, &shape);
    }
    Err(incompatible(args))
}

// Memory of an array as elements of any type, packed ones too. Shared.
fn packed(array: &Bound<'_, PyAny>, shape: &[usize], ty: Option<ElementType>) -> PyResult<Arc<Cell>> {
    let seen = numpy::look(array)?;
    let own = seen.ty.ok_or_else(|| failure("no element type is like the dtype of the array"))?;
    let ty = ty.unwrap_or(own);
    if !seen.contiguous {
        return Err(failure(
            "SHARED MEMORY MODE FOR THIS TENSOR IS NOT APPLICABLE! Passed numpy array must be C contiguous.",
        ));
    }
    let (_, have) = sizes(own, &seen.shape)?;
    let (_, need) = sizes(ty, shape)?;
    if have < need {
        return Err(failure(format!("a tensor of {ty}{shape:?} needs {need} bytes, the array has {have}")));
    }
    Cell::over(Memory::of_array(array, seen.address, have, seen.writable)?, ty, shape)
}

// Memory of an array with type and shape of a port; where these differ from its own, bytes are read as the port's.
fn over_port(array: &Bound<'_, PyAny>, ty: ElementType, shape: &[usize]) -> PyResult<Arc<Cell>> {
    let py = array.py();
    let seen = numpy::look(array)?;
    let warn = |text| PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyRuntimeWarning>(), text, 1);
    if seen.ty != Some(ty) {
        warn(c"Type of the array and the port are different. Data is going to be casted.")?;
    }
    if shape.iter().product::<usize>() > seen.shape.iter().product() {
        return Err(failure(format!(
            "Shape of the port exceeds shape of the array. {shape:?} is larger than {:?}",
            seen.shape
        )));
    }
    if shape != seen.shape {
        warn(c"Shape of the array and the port are different. The tensor has that of the port.")?;
    }
    packed(array, shape, Some(ty))
}

// A region of a tensor, in its memory.
fn part(cell: &Arc<Cell>, begin: &[usize], end: &[usize]) -> PyResult<Arc<Cell>> {
    let content = cell.content().clone();
    let rank = content.shape.len();
    let fits = begin.len() == rank && end.len() == rank;
    let inside = || begin.iter().zip(end).zip(&content.shape).all(|((b, e), n)| b <= e && e <= n);
    if !fits || !inside() {
        let text = format!("there is no region {begin:?} to {end:?} in a tensor of shape {:?}", content.shape);
        return Err(failure(text));
    }
    let size = content.ty.bits() / 8;
    let (of, offset, strides) = match &content.data {
        Data::Bytes(memory) if size > 0 => {
            let mut strides = vec![size; rank];
            for i in (0..rank.saturating_sub(1)).rev() {
                strides[i] = strides[i + 1] * content.shape[i + 1];
            }
            (memory.clone(), 0, strides)
        }
        Data::Part { of, offset, strides } => (of.clone(), *offset, strides.clone()),
        _ => {
            return Err(failure(format!(
                "there are no regions for types with bitwidths less then 8 bit, and of strings. Tensor type: {}",
                content.ty
            )));
        }
    };
    let offset = offset + begin.iter().zip(&strides).map(|(b, s)| b * s).sum::<usize>();
    let shape: Vec<usize> = begin.iter().zip(end).map(|(b, e)| e - b).collect();
    Ok(Cell::of(Content { ty: content.ty, shape, data: Data::Part { of, offset, strides }, lent: false, changes: 0 }))
}

/// What a pickled tensor becomes again.
#[pyfunction]
fn _tensor_of_bytes(ty: &str, shape: Vec<usize>, content: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let ty = types::of_name(ty).ok_or_else(|| failure(format!("there is no element type `{ty}`")))?;
    match content.cast::<PyBytes>() {
        Ok(bytes) => Ok(Cell::over(Memory::copy_of(bytes.as_bytes())?, ty, &shape)?.into()),
        Err(_) => Ok(Cell::of_texts(shape, texts_of(content)?.1).into()),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Tensor>()?;
    module.add_class::<numpy::View>()?;
    module.add_function(wrap_pyfunction!(_tensor_of_bytes, module)?)
}
