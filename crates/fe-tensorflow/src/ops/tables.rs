//! Tables from keys to values. A table is its keys and values, which the node of the table reads as inputs where they are
//! known; it is looked up by search over its keys.

use super::common::shapes::scalar;
use carafe_frontend::{Compose, Item, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::carafe::TextIndex;
use carafe_ops::search::SearchSorted;
use carafe_tensor::{ElementType, Tensor};

pub(crate) const RULES: &[StaticRule] = &[
    rule("HashTable", 0, table),
    rule("HashTableV2", 0, table),
    rule("LookupTableFind", 0, find),
    rule("LookupTableFindV2", 0, find),
    rule("LookupTableImport", 0, nothing),
    rule("LookupTableImportV2", 0, nothing),
    rule("LookupTableInsert", 0, nothing),
    rule("LookupTableInsertV2", 0, nothing),
    rule("LookupTableSize", 0, size),
    rule("LookupTableSizeV2", 0, size),
    rule("MutableHashTable", 0, table),
    rule("MutableHashTableV2", 0, table),
];

// Filling a table is done before a model runs.
fn nothing(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore_inputs(n.n_inputs());
    Ok(Outputs::default())
}

// Keys and values, or nothing where they are not known.
fn table(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let content = match (n.opt(0)?, n.opt(1)?) {
        (Some(keys), Some(values)) => vec![keys.into(), values.into()],
        _ => vec![],
    };
    Ok(Item::Sequence(content).into())
}

fn content(n: &mut NodeCx<'_>) -> Result<(Value, Value)> {
    if let Some(Item::Sequence(items)) = n.item(0)?
        && let [Item::Tensor(keys), Item::Tensor(values)] = items[..]
    {
        return Ok((keys, values));
    }
    Err(n.unsupported("the keys and values of the table are not known: nothing in the model fills it"))
}

fn size(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (keys, _) = content(n)?;
    Ok(n.length(keys, 0)?.into())
}

fn find(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (keys, values) = content(n)?;
    let (x, default) = (n.input(1)?, n.input(2)?);
    let found = match n.ty(keys) {
        ElementType::String => n.emit(TextIndex, &[x, keys])?,
        _ => search(n, x, keys)?,
    };
    // The default value stands behind the others.
    let zero = n.i64(0)?;
    let missing = n.less(found, zero)?;
    let count = n.length(keys, 0)?;
    let at = n.choose(missing, count, found)?;
    let default = scalar(n, default)?;
    let default = n.unsqueeze(default, &[0])?;
    let all = n.concat(&[values, default], 0)?;
    Ok(n.gather(all, at, 0)?.into())
}

// Where numbers stand in a list; -1 where they do not. Sorted lists are searched by halves.
fn search(n: &mut NodeCx<'_>, x: Value, keys: Value) -> Result<Value> {
    let Some(list) = n.tensor(keys).and_then(|t| t.to_vec::<i64>().ok().map(|v| v.into_owned())) else {
        return Err(n.unsupported("the keys of the table must be known when the model is read"));
    };
    let mut order: Vec<i64> = (0..list.len() as i64).collect();
    carafe_graph::sort_by_key(&mut order, |&i| list[i as usize]);
    let sorted: Vec<i64> = order.iter().map(|&i| list[i as usize]).collect();
    let x = n.convert(x, ElementType::I64)?;
    if sorted.is_empty() {
        let (none, shape) = (n.i64(-1)?, n.shape_of(x)?);
        return n.stretch(none, shape);
    }
    let last = n.i64(sorted.len() as i64 - 1)?;
    let sorted = n.constant(Tensor::from_slice(&[sorted.len()], &sorted)?)?;
    let order = n.i64s(&order)?;
    let flat = n.reshape(x, &[-1])?;
    let at = n.emit(SearchSorted { right_mode: false, output_type: ElementType::I64 }, &[sorted, flat])?;
    let at = n.min(at, last)?;
    let (key, place, none) = (n.gather(sorted, at, 0)?, n.gather(order, at, 0)?, n.i64(-1)?);
    let equal = n.equal(key, flat)?;
    let found = n.choose(equal, place, none)?;
    let shape = n.shape_of(x)?;
    n.reshaped(found, shape, false)
}
