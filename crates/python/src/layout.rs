//! `Layout`: what the axes of a tensor mean.

use crate::errors::{OrRaise, failure};
use carafe::preprocess::Layout as Engine;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Names of axes, such as `NCHW`, `N...C` or `[N,C,H,W]`.
#[pyclass(name = "Layout", module = "carafe", frozen, from_py_object)]
#[derive(Clone, PartialEq)]
pub(crate) struct Layout(Axes);

#[derive(Clone, PartialEq)]
enum Axes {
    Unknown,
    Scalar,
    Known(Engine),
}

/// How a scalar writes its layout.
const SCALAR: &str = "**SCALAR**";

impl Layout {
    pub(crate) fn parse(text: &str) -> PyResult<Layout> {
        match text.trim() {
            "" | "[...]" | "..." => Ok(Layout(Axes::Unknown)),
            SCALAR => Ok(Layout(Axes::Scalar)),
            text => Ok(Layout(Axes::Known(text.parse::<Engine>().or_raise()?))),
        }
    }

    /// As the engine has it; `None` when nothing is known.
    pub(crate) fn known(&self) -> Option<Engine> {
        match &self.0 {
            Axes::Known(layout) => Some(layout.clone()),
            _ => None,
        }
    }

    // The names of axes, `?` and `...` among them.
    fn names(&self) -> Vec<String> {
        match &self.0 {
            Axes::Known(layout) => {
                let text = layout.to_string();
                text.trim_matches(['[', ']']).split(',').filter(|n| !n.is_empty()).map(str::to_string).collect()
            }
            _ => vec![],
        }
    }

    fn index(&self, name: &str) -> Option<isize> {
        let (names, name) = (self.names(), name.to_uppercase());
        let at = names.iter().position(|n| *n == name && n != "?" && n != "...")?;
        // Behind the open part axes are counted from the end.
        match names[..at].iter().any(|n| n == "...") {
            true => Some(at as isize - names.len() as isize),
            false => Some(at as isize),
        }
    }
}

/// The layout that an object means: a `Layout` or its text.
pub(crate) fn layout_of(object: &Bound<'_, PyAny>) -> PyResult<Layout> {
    match object.cast::<PyString>() {
        Ok(text) => Layout::parse(&text.to_cow()?),
        Err(_) => Ok(object.extract()?),
    }
}

#[pymethods]
impl Layout {
    #[new]
    #[pyo3(signature = (layout_str=""))]
    fn new(layout_str: &str) -> PyResult<Layout> {
        Layout::parse(layout_str)
    }
    #[staticmethod]
    fn scalar() -> Layout {
        Layout(Axes::Scalar)
    }
    #[getter(empty)]
    fn empty_(&self) -> bool {
        self.0 == Axes::Unknown
    }
    fn has_name(&self, dimension_name: &str) -> bool {
        self.index(dimension_name).is_some()
    }
    /// Which axis has this name; counted from the end, and so negative, behind `...`.
    fn get_index_by_name(&self, dimension_name: &str) -> PyResult<isize> {
        let none =
            || failure(format!("{dimension_name} dimension index is not defined in layout {}", self.to_string()));
        self.index(dimension_name).ok_or_else(none)
    }
    fn to_string(&self) -> String {
        match &self.0 {
            Axes::Unknown => "[...]".into(),
            Axes::Scalar => SCALAR.into(),
            Axes::Known(layout) => layout.to_string(),
        }
    }
    fn __str__(&self) -> String {
        self.to_string()
    }
    fn __repr__(&self) -> String {
        format!("<Layout: {}>", self.to_string())
    }
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        layout_of(other).is_ok_and(|other| *self == other)
    }
    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (String,))> {
        Ok((py.get_type::<Layout>().into_any().unbind(), (self.to_string(),)))
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Layout>()
}
