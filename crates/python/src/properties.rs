//! Properties between Python, where they have types, and the engine, where they are texts. The rules are in `_property_values.py`.

use carafe::{Mutability, Properties, PropertyInfo, PropertyKind};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};
use std::collections::BTreeMap;

static ENCODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static DECODE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A dict, a pair, or a list of pairs, as texts.
pub(crate) fn encode(properties: &Bound<'_, PyAny>) -> PyResult<Properties> {
    let texts = ENCODE.import(properties.py(), "carafe._property_values", "encode")?.call1((properties,))?;
    let texts: BTreeMap<String, String> = texts.extract()?;
    let mut all = Properties::new();
    texts.iter().for_each(|(key, value)| all.set(key, value));
    Ok(all)
}

fn kind_of(kind: PropertyKind) -> &'static str {
    match kind {
        PropertyKind::Bool => "bool",
        PropertyKind::Int { .. } => "int",
        PropertyKind::Text => "text",
        PropertyKind::Enum(_) => "enum",
    }
}

/// The value that a text of the engine means.
pub(crate) fn decode<'py>(
    py: Python<'py>,
    name: &str,
    text: &str,
    table: Option<&[PropertyInfo]>,
) -> PyResult<Bound<'py, PyAny>> {
    let info = table.unwrap_or_default().iter().chain(carafe::CACHE_PROPERTIES).find(|p| p.name == name);
    let kind = info.map_or("text", |p| kind_of(p.kind));
    DECODE.import(py, "carafe._property_values", "decode")?.call1((PyString::new(py, name), text, kind))
}

/// Names of properties, each with whether it may be set: `RW` or `RO`.
pub(crate) fn table<'py>(py: Python<'py>, table: &[PropertyInfo], compiled: bool) -> PyResult<Bound<'py, PyAny>> {
    let all = PyDict::new(py);
    for p in table {
        let set = p.mutability == Mutability::ReadWrite && !compiled;
        all.set_item(p.name, if set { "RW" } else { "RO" })?;
    }
    Ok(all.into_any())
}
