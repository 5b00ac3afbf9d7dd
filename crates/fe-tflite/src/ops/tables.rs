//! Tables: keys and values are tensors of the file.

use super::shapes::DECLARED;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::carafe::TextIndex;
use carafe_ops::reduce::ReduceMax;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("HASHTABLE_FIND", 1, find),
    rule("HASHTABLE_LOOKUP", 1, lookup),
    rule("HASHTABLE_SIZE", 1, size),
];

// Number of each key in the table, -1 for one that is not there.
fn index(n: &mut NodeCx<'_>, query: Value, keys: Value) -> Result<Value> {
    let keys = n.reshape(keys, &[-1])?;
    if n.ty(keys) == ElementType::String {
        return n.emit(TextIndex, &[query, keys]);
    }
    let query = n.unsqueeze(query, &[-1])?;
    let is_same = n.equal(query, keys)?;
    let count = n.length(keys, 0)?;
    let number = n.count_to(count, ElementType::I64)?;
    let none = n.i64(-1)?;
    let found = n.choose(is_same, number, none)?;
    let last = n.i64(-1)?;
    n.emit(ReduceMax { keep_dims: false }, &[found, last])
}

// Query, default, and then keys and values out of the file.
fn find(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(DECLARED);
    let (query, default, keys, values) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?);
    let at = index(n, query, keys)?;
    // The default is the last of the values.
    let (values, default) = (n.reshape(values, &[-1])?, n.reshape(default, &[1])?);
    let count = n.length(values, 0)?;
    let all = n.concat(&[values, default], 0)?;
    let zero = n.i64(0)?;
    let missing = n.less(at, zero)?;
    let at = n.choose(missing, count, at)?;
    Ok(n.gather(all, at, 0)?.into())
}

fn size(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let keys = n.input(0)?;
    n.ignore_inputs(1);
    let keys = n.reshape(keys, &[-1])?;
    Ok(n.shape_of(keys)?.into())
}

// Rows of the values by key; zeros and no hit for a key that is not there.
fn lookup(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (query, keys, values) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let at = index(n, query, keys)?;
    let zero = n.i64(0)?;
    let hit = n.greater_equal(at, zero)?;
    let at = n.max(at, zero)?;
    let rows = n.gather(values, at, 0)?;
    let rank = n.known_rank(rows)? as i64;
    let wide = n.unsqueeze(hit, &(1..rank).collect::<Vec<_>>())?;
    let none = n.scalar_like(rows, 0.0)?;
    let rows = n.choose(wide, rows, none)?;
    let hits = n.convert(hit, ElementType::U8)?;
    Ok(vec![rows, hits].into())
}
