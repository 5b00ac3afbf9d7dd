//! `Dimension`, `PartialShape` and `Symbol`. `Shape` and its like are lists, written in Python (`_values.py`).

use crate::errors::{OrRaise, failure};
use carafe::{Dim, PartialShape as Engine};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyList, PySlice, PyString, PyTuple};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// One dimension of a shape: a number, a range, or any.
#[pyclass(name = "Dimension", module = "carafe", from_py_object)]
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Dimension {
    pub(crate) dim: Dim,
    symbol: u64,
}

/// What tells an unknown dimension from others; false when there is none.
#[pyclass(name = "Symbol", module = "carafe", frozen, eq, hash, from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Symbol(u64);

#[pymethods]
impl Symbol {
    #[new]
    fn new() -> Symbol {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Symbol(NEXT.fetch_add(1, Ordering::Relaxed))
    }
    fn __bool__(&self) -> bool {
        self.0 != 0
    }
}

impl From<Dim> for Dimension {
    fn from(dim: Dim) -> Dimension {
        // Symbols of the engine count from far above those of users, which are counted down in the engine (`set_symbol`).
        let symbol = dim.symbol().map_or(0, |s| match s.0 > u32::MAX / 2 {
            true => u64::from(u32::MAX - s.0),
            false => (1 << 40) + u64::from(s.0),
        });
        Dimension { dim, symbol }
    }
}

// The same interval, whatever its name.
fn unnamed(dim: Dim) -> (i64, Option<i64>) {
    (dim.min(), dim.max())
}

fn same(a: Dim, b: Dim) -> bool {
    unnamed(a) == unnamed(b)
}

fn inside(inner: Dim, outer: Dim) -> bool {
    let below = outer.max().is_none_or(|most| inner.max().is_some_and(|max| max <= most));
    inner.min() >= outer.min() && below
}

/// The range that two numbers say, where a negative one is no bound.
fn range(min: i64, max: i64) -> PyResult<Dim> {
    if max >= 0 && max < min {
        return Err(failure(format!("a dimension cannot be from {min} to {max}")));
    }
    Ok(Dim::range(min.max(0), (max >= 0).then_some(max)))
}

/// The dimension of a text. A bound of an interval that is no number is named.
fn parsed(text: &str) -> PyResult<Dim> {
    text.parse::<Dim>().map_err(|_| {
        let number = |bound: &str| bound.trim().is_empty() || bound.trim().parse::<u64>().is_ok();
        let what = match text.split_once("..") {
            Some((min, _)) if !number(min) => format!("min bound: \"{}\"", min.trim()),
            Some((_, max)) if !number(max) => format!("max bound: \"{}\"", max.trim()),
            _ => format!("dimension: \"{text}\""),
        };
        failure(format!("Cannot parse {what}; expected a number, `-1`, `?`, or an interval such as `1..10`"))
    })
}

/// The dimension that an object means: a `Dimension`, a number, where negative ones are any, a text, or two bounds.
pub(crate) fn dim_of(object: &Bound<'_, PyAny>) -> PyResult<Dim> {
    if let Ok(dim) = object.cast::<Dimension>() {
        return Ok(dim.borrow().dim);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return parsed(&text.to_cow()?);
    }
    if object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>() {
        let bounds: Vec<Bound<'_, PyAny>> = object.try_iter()?.collect::<PyResult<_>>()?;
        let [low, high] = bounds.as_slice() else {
            return Err(PyTypeError::new_err(format!(
                "Two elements are expected in tuple(lower, upper) for dynamic dimension, but {} elements were given.",
                bounds.len()
            )));
        };
        let number = |bound: &Bound<'_, PyAny>| -> PyResult<i64> {
            let wrong = || {
                PyTypeError::new_err(format!(
                    "Incorrect pair of types ({}, {}) for dynamic dimension, ints are expected.",
                    low.get_type(),
                    high.get_type()
                ))
            };
            bound.extract().map_err(|_| wrong())
        };
        return range(number(low)?, number(high)?);
    }
    let wrong = || {
        PyTypeError::new_err(format!(
            "Incorrect type {} for dimension. Expected types are: int, str, carafe.Dimension, list/tuple with lower and upper \
             values for dynamic dimension.",
            object.get_type()
        ))
    };
    if object.is_instance_of::<pyo3::types::PyFloat>() {
        return Err(wrong());
    }
    let n: i64 = object.extract().map_err(|_| wrong())?;
    Ok(if n < 0 { Dim::ANY } else { Dim::known(n) })
}

#[pymethods]
impl Dimension {
    #[new]
    #[pyo3(signature = (dimension=None, max_dimension=None, *, min_dimension=None, str=None))]
    fn new(
        dimension: Option<&Bound<'_, PyAny>>,
        max_dimension: Option<i64>,
        min_dimension: Option<i64>,
        str: Option<&str>,
    ) -> PyResult<Dimension> {
        let min = match (dimension, min_dimension) {
            (Some(d), _) if max_dimension.is_some() => Some(d.extract::<i64>()?),
            (_, min) => min,
        };
        let dim = match (dimension, str) {
            _ if max_dimension.is_some() => range(min.unwrap_or(0), max_dimension.unwrap_or(-1))?,
            (Some(object), _) => dim_of(object)?,
            (None, Some(text)) => parsed(text)?,
            (None, None) => Dim::ANY,
        };
        Ok(Dimension::from(dim))
    }
    #[staticmethod]
    fn dynamic() -> Dimension {
        Dimension::from(Dim::ANY)
    }
    #[getter(is_dynamic)]
    fn is_dynamic_(&self) -> bool {
        !self.dim.is_known()
    }
    #[getter(is_static)]
    fn is_static_(&self) -> bool {
        self.dim.is_known()
    }
    fn __len__(&self) -> PyResult<usize> {
        Ok(self.get_length()? as usize)
    }
    fn __index__(&self) -> PyResult<i64> {
        self.get_length()
    }
    /// The number; an error when it is not known.
    fn get_length(&self) -> PyResult<i64> {
        self.dim.get().ok_or_else(|| failure(format!("dimension {} has no one length: it is dynamic", self.dim)))
    }
    fn get_min_length(&self) -> i64 {
        self.dim.min()
    }
    /// The greatest length, -1 when there is no bound.
    fn get_max_length(&self) -> i64 {
        self.dim.max().unwrap_or(-1)
    }
    #[getter(min_length)]
    fn min_length_(&self) -> i64 {
        self.get_min_length()
    }
    #[getter(max_length)]
    fn max_length_(&self) -> i64 {
        self.get_max_length()
    }
    fn same_scheme(&self, dim: Dimension) -> bool {
        let both_open = !self.dim.is_known() && !dim.dim.is_known();
        both_open || same(self.dim, dim.dim)
    }
    fn compatible(&self, dim: Dimension) -> bool {
        self.dim.compatible(dim.dim)
    }
    fn relaxes(&self, dim: Dimension) -> bool {
        inside(dim.dim, self.dim)
    }
    fn refines(&self, dim: Dimension) -> bool {
        inside(self.dim, dim.dim)
    }
    fn has_symbol(&self) -> bool {
        self.symbol != 0
    }
    fn get_symbol(&self) -> Symbol {
        Symbol(self.symbol)
    }
    fn set_symbol(&mut self, symbol: Symbol) {
        self.symbol = symbol.0;
        self.dim = Dim::range(self.dim.min(), self.dim.max());
        if let Ok(number) = u32::try_from(symbol.0)
            && number > 0
        {
            // Counted down, so that they do not meet those that the engine counts up.
            self.dim = self.dim.with_symbol(symbol_of(u32::MAX - number));
        }
    }
    fn to_string(&self) -> String {
        self.dim.to_string()
    }
    fn __str__(&self) -> String {
        self.dim.to_string()
    }
    fn __repr__(&self) -> String {
        format!("<Dimension: {}>", self.dim)
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        match dim_of(other) {
            Ok(dim) => same(self.dim, dim),
            Err(_) => false,
        }
    }
}

fn symbol_of(number: u32) -> carafe::Symbol {
    carafe::Symbol(number)
}

/// A shape whose dimensions, or even their number, may be open.
#[pyclass(name = "PartialShape", module = "carafe")]
pub(crate) struct PartialShape(Mutex<Engine>);

impl From<Engine> for PartialShape {
    fn from(shape: Engine) -> PartialShape {
        PartialShape(Mutex::new(shape))
    }
}

impl PartialShape {
    pub(crate) fn get(&self) -> Engine {
        self.0.lock().unwrap_or_else(|e| e.into_inner()).clone()
    }
}

/// The shape that an object means: a `PartialShape`, a `Shape`, a list or tuple of dimensions, a text.
pub(crate) fn shape_of(object: &Bound<'_, PyAny>) -> PyResult<Engine> {
    if let Ok(shape) = object.cast::<PartialShape>() {
        return Ok(shape.borrow().get());
    }
    if let Ok(text) = object.cast::<PyString>() {
        return text.to_cow()?.parse::<Engine>().or_raise();
    }
    if object.is_instance_of::<PyInt>() {
        return Err(PyTypeError::new_err("a shape is a list of dimensions, found one int"));
    }
    let items = object.try_iter().map_err(|_| {
        PyTypeError::new_err(format!(
            "a shape is a PartialShape, Shape, list, tuple or str, found {}",
            object.get_type()
        ))
    })?;
    Ok(Engine::new(items.map(|item| dim_of(&item?)).collect::<PyResult<Vec<_>>>()?))
}

/// The sizes that an object means: a `Shape`, a list, a tuple, an array, a static `PartialShape`.
pub(crate) fn sizes_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    if let Ok(sizes) = object.extract::<Vec<usize>>() {
        return Ok(sizes);
    }
    let shape = shape_of(object)?;
    shape.to_static().ok_or_else(|| failure(format!("shape [{shape}] is not static")))
}

/// A `Shape`.
pub(crate) fn shape_object<'py>(py: Python<'py>, sizes: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    CLASS.import(py, "carafe._values", "Shape")?.call1((PyList::new(py, sizes)?,))
}

#[pymethods]
impl PartialShape {
    #[new]
    fn new(shape: &Bound<'_, PyAny>) -> PyResult<PartialShape> {
        Ok(shape_of(shape)?.into())
    }
    /// A shape of this rank with any dimensions, or of any rank.
    #[staticmethod]
    #[pyo3(signature = (rank=None))]
    fn dynamic(rank: Option<&Bound<'_, PyAny>>) -> PyResult<PartialShape> {
        let rank = rank.map(dim_of).transpose()?.and_then(Dim::size);
        Ok(rank.map_or_else(Engine::dynamic, Engine::any_of_rank).into())
    }
    #[getter(is_dynamic)]
    fn is_dynamic_(&self) -> bool {
        !self.get().is_static()
    }
    #[getter(is_static)]
    fn is_static_(&self) -> bool {
        self.get().is_static()
    }
    #[getter(rank)]
    fn rank_(&self) -> Dimension {
        self.get().rank().map_or(Dim::ANY, Dim::from).into()
    }
    #[getter(all_non_negative)]
    fn all_non_negative_(&self) -> bool {
        true
    }
    fn compatible(&self, shape: &PartialShape) -> bool {
        self.get().compatible(&shape.get())
    }
    fn same_scheme(&self, shape: &PartialShape) -> bool {
        pairs(&self.get(), &shape.get(), |a, b| same(a, b) || (!a.is_known() && !b.is_known())).unwrap_or(true)
    }
    fn refines(&self, shape: &PartialShape) -> bool {
        let (own, other) = (self.get(), shape.get());
        other.rank().is_none() || pairs(&own, &other, inside).unwrap_or(false)
    }
    fn relaxes(&self, shape: &PartialShape) -> bool {
        shape.refines(self)
    }
    /// The sizes; an error when one is not known.
    fn get_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.get();
        let sizes = shape.to_static();
        let sizes =
            sizes.ok_or_else(|| failure(format!("get_shape() must be called on a static shape, found [{shape}]")))?;
        shape_object(py, &sizes)
    }
    fn to_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.get_shape(py)
    }
    fn get_min_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let sizes = |d: &Dim| usize::try_from(d.min()).unwrap_or(0);
        shape_object(py, &self.get().dims().unwrap_or_default().iter().map(sizes).collect::<Vec<_>>())
    }
    /// The greatest sizes; the greatest number of all where there is no bound.
    fn get_max_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let sizes = |d: &Dim| d.max().map_or(i64::MAX as usize, |n| n as usize);
        shape_object(py, &self.get().dims().unwrap_or_default().iter().map(sizes).collect::<Vec<_>>())
    }
    fn get_dimension(&self, index: isize) -> PyResult<Dimension> {
        let shape = self.get();
        Ok(dims(&shape)?[at(&shape, index)?].into())
    }
    fn __len__(&self) -> PyResult<usize> {
        Ok(dims(&self.get())?.len())
    }
    fn __getitem__<'py>(&self, py: Python<'py>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.get();
        if let Ok(slice) = key.cast::<PySlice>() {
            let all = dims(&shape)?;
            let range = slice.indices(all.len() as isize)?;
            let picked = (0..range.slicelength).map(|i| all[(range.start + i as isize * range.step) as usize]);
            return Ok(Bound::new(py, PartialShape::from(Engine::new(picked)))?.into_any());
        }
        Ok(Bound::new(py, self.get_dimension(key.extract()?)?)?.into_any())
    }
    /// Becomes another shape, of any rank.
    fn _become(&self, other: &PartialShape) {
        let other = other.get();
        *self.0.lock().unwrap_or_else(|e| e.into_inner()) = other;
    }
    fn __setitem__(&self, index: isize, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let dim = dim_of(value)?;
        let mut shape = self.0.lock().unwrap_or_else(|e| e.into_inner());
        let index = at(&shape, index)?;
        if let Some(dims) = shape.dims_mut() {
            dims[index] = dim;
        }
        Ok(())
    }
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let all = dims(&self.get())?.iter().map(|d| Dimension::from(*d)).collect::<Vec<_>>();
        Ok(PyList::new(py, all.into_iter().map(|d| Bound::new(py, d)).collect::<PyResult<Vec<_>>>()?)?
            .try_iter()?
            .into_any())
    }
    fn to_string(&self) -> String {
        format!("[{}]", self.get())
    }
    fn __str__(&self) -> String {
        self.to_string()
    }
    fn __repr__(&self) -> String {
        format!("<PartialShape: [{}]>", self.get())
    }
    fn __copy__(&self) -> PartialShape {
        self.get().into()
    }
    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> PartialShape {
        self.get().into()
    }
    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (String,))> {
        Ok((py.get_type::<PartialShape>().into_any().unbind(), (self.to_string(),)))
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let own = self.get();
        if let Ok(other) = other.cast::<PartialShape>() {
            let other = other.borrow().get();
            return Ok(own.rank() == other.rank() && pairs(&own, &other, same).unwrap_or(true));
        }
        if !own.is_static() {
            return Err(PyTypeError::new_err(format!("Cannot compare dynamic shape with {}", other.get_type())));
        }
        let Ok(other) = shape_of(other) else { return Ok(false) };
        Ok(pairs(&own, &other, same).unwrap_or(false))
    }
}

// Whether all dimensions in pairs are so; `None` when a rank is not known, false when they differ.
fn pairs(a: &Engine, b: &Engine, holds: impl Fn(Dim, Dim) -> bool) -> Option<bool> {
    let (a, b) = (a.dims()?, b.dims()?);
    Some(a.len() == b.len() && a.iter().zip(b).all(|(a, b)| holds(*a, *b)))
}

fn dims(shape: &Engine) -> PyResult<&[Dim]> {
    shape.dims().ok_or_else(|| failure("the rank of shape [...] is not known"))
}

fn at(shape: &Engine, index: isize) -> PyResult<usize> {
    let len = shape.dims().map_or(0, <[Dim]>::len);
    let found = if index < 0 { index + len as isize } else { index };
    match usize::try_from(found) {
        Ok(i) if i < len => Ok(i),
        _ => Err(PyIndexError::new_err(format!("Accessing out-of-range dimension {index} of shape [{shape}]"))),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Dimension>()?;
    module.add_class::<PartialShape>()?;
    module.add_class::<Symbol>()
}
