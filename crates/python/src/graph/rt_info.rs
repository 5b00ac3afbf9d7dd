//! Runtime information as plain values of Python: `(attributes, tree)` of nodes and ports, and trees of `(key, value, children)`.

use carafe::{RtInfo, RtTree};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// A named attribute: name, version, fields.
pub(super) type Attribute = (String, String, Vec<(String, String)>);

/// Attributes and tree of one node or port.
pub(super) fn to_python<'py>(py: Python<'py>, info: &RtInfo) -> PyResult<Option<Bound<'py, PyTuple>>> {
    if info.is_empty() {
        return Ok(None);
    }
    let attribute = |a: &carafe::RtAttribute| (a.name.clone(), a.version.clone(), a.fields.clone());
    let attributes: Vec<Attribute> = info.attributes.iter().map(attribute).collect();
    Ok(Some((attributes, tree_to_python(py, &info.user)?).into_pyobject(py)?))
}

/// Entries as a list of `(key, value, children)`.
pub(super) fn tree_to_python<'py>(py: Python<'py>, tree: &[RtTree]) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for entry in tree {
        list.append((&entry.key, &entry.value, tree_to_python(py, &entry.children)?))?;
    }
    Ok(list)
}

/// The other way.
pub(super) fn of_python(attributes: Vec<Attribute>, tree: &Bound<'_, PyAny>) -> PyResult<RtInfo> {
    let mut info = RtInfo { user: tree_of_python(tree)?, ..RtInfo::default() };
    for (name, version, fields) in attributes {
        info.set(name, &version, fields);
    }
    Ok(info)
}

/// The other way.
pub(super) fn tree_of_python(tree: &Bound<'_, PyAny>) -> PyResult<Vec<RtTree>> {
    let mut entries = Vec::new();
    for entry in tree.try_iter()? {
        let (key, value, children): (String, Option<String>, Bound<'_, PyAny>) = entry?.extract()?;
        entries.push(RtTree { key, value, children: tree_of_python(&children)? });
    }
    Ok(entries)
}
