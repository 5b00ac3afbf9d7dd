//! Elements by index.

use super::slots::Slots;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::compare::NotEqual;
use carafe_ops::indexing::Reduction;
use carafe_ops::indexing::one_hot::NegativeIndices;
use carafe_ops::indexing::{
    GatherElements, GatherND, NonZero, OneHot, ScatterElementsUpdate, ScatterNDUpdate, ScatterUpdate,
};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("gather", 0, gather),
    rule("gather_nd", 0, gather_nd),
    rule("index_sample", 0, |n| {
        let (x, at) = (n.slot("X")?, n.slot("Index")?);
        let out = n.emit(GatherElements { axis: 1 }, &[x, at])?;
        Ok(n.give(&[("Out", out)]))
    }),
    rule("index_select", 0, |n| {
        let (x, at) = (n.slot("X")?, n.slot("Index")?);
        let axis: i64 = n.attr("dim", 0)?;
        let at = n.reshape(at, &[-1])?;
        let out = n.gather(x, at, axis)?;
        Ok(n.give(&[("Out", out)]))
    }),
    rule("lookup_table", 0, |n| lookup(n, true)),
    rule("lookup_table_v2", 0, |n| lookup(n, false)),
    rule("masked_fill", 0, |n| {
        let (x, mask, value) = (n.slot("X")?, n.slot("Mask")?, n.slot("Value")?);
        let out = n.choose(mask, value, x)?;
        Ok(n.give(&[("Out", out)]))
    }),
    rule("masked_select", 0, masked_select),
    rule("one_hot", 0, |n| one_hot(n, true)),
    rule("one_hot_v2", 0, |n| one_hot(n, false)),
    rule("put_along_axis", 0, put_along_axis),
    rule("scatter", 0, scatter),
    rule("scatter_nd_add", 0, |n| {
        let (x, at, updates) = (n.slot("X")?, n.slot("Index")?, n.slot("Updates")?);
        let out = n.emit(ScatterNDUpdate { reduction: Reduction::Sum }, &[x, at, updates])?;
        Ok(n.give(&[("Out", out)]))
    }),
    rule("take_along_axis", 0, |n| {
        let (x, at) = (n.slot("Input")?, n.slot("Index")?);
        let axis: i64 = match n.opt_attr("Axis")? {
            Some(axis) => axis,
            None => n.attr("axis", 0)?,
        };
        let out = along_axis(n, x, at, axis)?;
        Ok(n.give(&[("Result", out), ("Out", out)]))
    }),
    rule("where", 0, |n| {
        let (condition, x, y) = (n.slot("Condition")?, n.slot("X")?, n.slot("Y")?);
        let out = n.choose(condition, x, y)?;
        Ok(n.give(&[("Out", out)]))
    }),
    rule("where_index", 0, where_index),
];

// An index of one axis of size 1 counts as one without it.
fn gather(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, at) = (n.slot("X")?, n.slot("Index")?);
    n.ignore(&["overwrite"]);
    let axis = n.known_int("axis", &["Axis"], 0)?;
    let at = match n.rank(at) {
        Some(2) => n.reshape(at, &[-1])?,
        _ => at,
    };
    let out = n.gather(x, at, axis)?;
    Ok(n.give(&[("Out", out)]))
}

fn gather_nd(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, at) = (n.slot("X")?, n.slot("Index")?);
    let out = n.emit(GatherND { batch_dims: 0 }, &[x, at])?;
    Ok(n.give(&[("Out", out)]))
}

// Other axes of data and index of which one is 1 are repeated.
fn along_axis(n: &mut NodeCx<'_>, x: Value, at: Value, axis: i64) -> Result<Value> {
    let rank = n.known_rank(x)?;
    let axis = n.axis(axis, rank)? as i64;
    n.emit(GatherElements { axis }, &[x, at])
}

// Rows of a table; that of `padding_idx` is zero.
fn lookup(n: &mut NodeCx<'_>, has_last_axis: bool) -> Result<Outputs> {
    let (ids, table) = (n.slot("Ids")?, n.slot("W")?);
    n.ignore(&[
        "is_sparse",
        "is_distributed",
        "table_class",
        "remote_prefetch",
        "table_names",
        "trainer_id",
        "height_sections",
        "epmap",
        "entry",
        "entry_config",
        "slot",
        "grad_inplace",
        "is_test",
        "scale_grad_by_freq",
    ]);
    let padding: i64 = n.attr("padding_idx", -1)?;
    let ids = if has_last_axis { n.squeeze(ids, &[-1])? } else { ids };
    let mut out = n.gather(table, ids, 0)?;
    if padding >= 0 {
        let index = n.scalar_like(ids, padding as f64)?;
        let kept = n.put(NotEqual::default(), &[ids, index])?;
        let kept = n.convert_like(kept, out)?;
        let kept = n.unsqueeze(kept, &[-1])?;
        out = n.times(out, kept)?;
    }
    Ok(n.give(&[("Out", out)]))
}

fn one_hot(n: &mut NodeCx<'_>, has_last_axis: bool) -> Result<Outputs> {
    let x = n.slot("X")?;
    n.ignore(&["allow_out_of_range"]);
    let depth = n.vector("depth", &["depth_tensor"])?.ok_or_else(|| n.fail("`depth` is missing"))?;
    let depth = n.as_scalar(depth)?;
    let ty = n.dtype("dtype")?.unwrap_or(ElementType::F32);
    let x = if has_last_axis { n.squeeze(x, &[-1])? } else { x };
    let (on, off) = (n.scalar(ty, 1.0)?, n.scalar(ty, 0.0)?);
    let op = OneHot { axis: -1, negative_indices_mode: NegativeIndices::Ignore };
    let out = n.emit(op, &[x, depth, on, off])?;
    Ok(n.give(&[("Out", out)]))
}

fn masked_select(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, mask) = (n.slot("X")?, n.slot("Mask")?);
    let (x_shape, mask_shape) = (n.shape_of(x)?, n.shape_of(mask)?);
    let (x, mask) = match n.shape(x) == n.shape(mask) {
        true => (x, mask),
        false => (n.stretch(x, mask_shape)?, n.stretch(mask, x_shape)?),
    };
    let at = positions(n, mask)?;
    let out = n.put(GatherND { batch_dims: 0 }, &[x, at])?;
    Ok(n.give(&[("Y", out), ("Out", out)]))
}

// Rows of indices of what is not zero.
fn positions(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let found = n.put(NonZero { output_type: ElementType::I64 }, &[x])?;
    n.transpose(found, &[1, 0])
}

fn where_index(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.slot("Condition")?;
    let out = positions(n, x)?;
    Ok(n.give(&[("Out", out)]))
}

// Rows are replaced, or set to zero and added to.
fn scatter(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, at, updates) = (n.slot("X")?, n.slot("Ids")?, n.slot("Updates")?);
    let is_replaced: bool = n.attr("overwrite", true)?;
    let at = n.reshape(at, &[-1])?;
    // A row of one number may come without its axis.
    let updates = match (n.rank(updates), n.rank(x)) {
        (Some(0), Some(1)) => n.reshape(updates, &[1])?,
        _ => updates,
    };
    if is_replaced {
        let axis = n.i64(0)?;
        let out = n.emit(ScatterUpdate, &[x, at, updates, axis])?;
        return Ok(n.give(&[("Out", out)]));
    }
    let rows = n.unsqueeze(at, &[-1])?;
    let zero = n.number(x, 0.0)?;
    let shape = n.shape_of(updates)?;
    let zeros = n.stretch(zero, shape)?;
    let cleared = n.put(ScatterNDUpdate { reduction: Reduction::None }, &[x, rows, zeros])?;
    let out = n.put(ScatterNDUpdate { reduction: Reduction::Sum }, &[cleared, rows, updates])?;
    Ok(n.give(&[("Out", out)]))
}

fn put_along_axis(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, at, value) = (n.slot("Input")?, n.slot("Index")?, n.slot("Value")?);
    let axis: i64 = match n.opt_attr("Axis")? {
        Some(axis) => axis,
        None => n.attr("axis", 0)?,
    };
    let mode: String = match n.opt_attr("Reduce")? {
        Some(mode) => mode,
        None => n.attr("reduce", "assign".to_string())?,
    };
    let use_init_val: bool = match n.opt_attr("Include_self")? {
        Some(keep) => keep,
        None => n.attr("include_self", true)?,
    };
    let reduction = match mode.as_str() {
        "assign" => Reduction::None,
        "add" => Reduction::Sum,
        "mul" | "multiply" => Reduction::Prod,
        "amax" => Reduction::Max,
        "amin" => Reduction::Min,
        "mean" => Reduction::Mean,
        other => return Err(n.unsupported(format!("`Reduce` is `{other}`"))),
    };
    let shape = n.shape_of(at)?;
    let value = n.stretch(value, shape)?;
    let axis = n.i64(axis)?;
    let out = n.emit(ScatterElementsUpdate { reduction, use_init_val }, &[x, at, value, axis])?;
    Ok(n.give(&[("Result", out), ("Out", out)]))
}
