//! What rules share: arrays by their fields, sizes that must divide, and rows taken apart.

use carafe_frontend::NodeCx;
use carafe_graph::{Result, Value};

/// An array of the component.
pub(super) fn array(n: &mut NodeCx<'_>, field: &str) -> Result<Value> {
    opt_array(n, field)?.ok_or_else(|| n.fail(format!("field `<{field}>` is required and missing")))
}

/// An array of the component that may be missing; one without numbers counts as missing.
pub(super) fn opt_array(n: &mut NodeCx<'_>, field: &str) -> Result<Option<Value>> {
    let found = n.inputs_named(field)?.first().copied();
    Ok(found.filter(|v| n.shape(*v).to_static().is_none_or(|s| !s.contains(&0))))
}

/// The numbers of an array.
pub(super) fn numbers(n: &mut NodeCx<'_>, field: &str) -> Result<Vec<f32>> {
    let value = array(n, field)?;
    let tensor = n.tensor(value).ok_or_else(|| n.fail(format!("field `<{field}>` must be stored in the model")))?;
    Ok(tensor.to_vec::<f32>()?.into_owned())
}

/// The shape of an array.
pub(super) fn shape(n: &mut NodeCx<'_>, field: &str) -> Result<Vec<usize>> {
    let value = array(n, field)?;
    n.shape(value).to_static().ok_or_else(|| n.fail(format!("field `<{field}>` must be stored in the model")))
}

/// A size among the fields; sizes are above zero and within what an index can say.
pub(super) fn size(n: &NodeCx<'_>, field: &str) -> Result<i64> {
    let found: i64 = n.required(field)?;
    match found {
        1..=0x7fff_ffff => Ok(found),
        _ => Err(n.fail(format!("field `<{field}>` must be above 0, found {found}"))),
    }
}

/// Rows are not wider: numbers for all columns of a row are made without asking for memory.
const MAX_COLUMNS: i64 = 1 << 24;

/// How many columns a value has.
pub(super) fn columns(n: &NodeCx<'_>, x: Value) -> Result<i64> {
    match n.shape(x).dims().and_then(|d| d.get(1)?.get()) {
        Some(columns @ 0..=MAX_COLUMNS) => Ok(columns),
        Some(columns) => Err(n.fail(format!("it reads {columns} columns, {MAX_COLUMNS} are the most"))),
        None => Err(n.unsupported("how many columns the component reads must be known")),
    }
}

/// How often one number goes into another without rest.
pub(super) fn times(n: &NodeCx<'_>, whole: i64, part: i64, what: &str) -> Result<i64> {
    match part > 0 && whole % part == 0 {
        true => Ok(whole / part),
        false => Err(n.fail(format!("{what}: {whole} cannot be divided by {part}"))),
    }
}
