//! ```text
//! Convert(Equal(ids, 0..n)) * table   ->  Gather(table, ids)
//! ```
//!
//! For devices only. The product of a matrix with one-hot rows is rows of the matrix. Ids outside of it, negative ones among
//! them, give zeros either way. The table is stored in the model and finite: zero times infinity would be no zero.

use super::look::{inputs_at, is_float, made_by, put_in_place, read_outside, scalar, stored};
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::compare::{Equal, Less};
use carafe_ops::convert::Convert;
use carafe_ops::indexing::{Gather, Select};
use carafe_ops::linear::MatMul;
use carafe_ops::movement::Squeeze;
use carafe_tensor::{ElementType, Tensor};

/// A product with one-hot rows becomes Gather.
#[derive(Clone, Copy, Debug)]
pub struct OneHotRows;

impl Rewrite for OneHotRows {
    fn name(&self) -> &'static str {
        "one_hot_rows"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some((ids, table, rows)) = find(model, root) else { return Ok(Outcome::NoMatch) };
        if let Some(skip) = read_outside(model, root, &[ids, table]) {
            return Ok(skip);
        }
        let name = |model: &Model, what: &str| format!("{}/{what}", model.node(root).name());
        let axis = model.constant(&name(model, "last"), Tensor::scalar(-1i64))?;
        let flat = model.add(name(model, "ids"), Squeeze { allow_axis_skip: false }, &[ids, axis])?.into();
        let zero = scalar(model, root, "zero", ids, 0.0)?;
        let outside = scalar(model, root, "outside", ids, rows as f64)?;
        let negative = model.add(name(model, "negative"), Less::default(), &[flat, zero])?.into();
        let known = model
            .add(
                name(model, "known"),
                Select { auto_broadcast: Default::default(), auto_broadcast_axis: None },
                &[negative, outside, flat],
            )?
            .into();
        let first = model.constant(&name(model, "axis"), Tensor::scalar(0i64))?;
        let new = model.add(name(model, "Gather"), Gather { batch_dims: 0 }, &[table, known, first])?;
        put_in_place(model, root, new)
    }
}

/// Ids with a last axis of one, the table, and its rows.
fn find(model: &Model, root: NodeId) -> Option<(Value, Value, usize)> {
    let op = model.node(root).op().get::<MatMul>()?;
    let &[hot, table] = inputs_at::<MatMul>(model, root)? else { return None };
    let &[equal] = made_by::<Convert>(model, hot)? else { return None };
    let &[a, b] = made_by::<Equal>(model, equal)? else { return None };
    let stored_table = stored(model, table)?;
    let &[rows, _] = stored_table.shape() else { return None };
    let counts = |v: Value| {
        let tensor = stored(model, v)?;
        let counted = tensor.to_vec::<i64>().ok()?.iter().copied().eq(0..rows as i64);
        (counted && tensor.shape().last() == Some(&rows)).then(|| tensor.shape().len())
    };
    let (ids, rank) = counts(b).map(|rank| (a, rank)).or_else(|| counts(a).map(|rank| (b, rank)))?;
    let dims = model.fact(ids).shape.dims()?;
    let columns = dims.last()?.size() == Some(1) && dims.len() >= rank.max(2);
    let integer = matches!(model.fact(ids).ty, ElementType::I32 | ElementType::I64);
    let plain = !op.transpose_a && !op.transpose_b && is_float(model, hot) && rows > 1;
    let finite = || stored_table.to_vec::<f64>().is_ok_and(|all| all.iter().all(|x| x.is_finite()));
    (columns && integer && plain && finite()).then_some((ids, table, rows))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Sketch, fires_static, stays};
    use super::*;

    // Ids in and out of a table of as many rows, times the table.
    fn product(g: &mut Sketch, swapped: bool, counts: &[i64], table: Value) -> Value {
        let ids = g.input(&[2, 3, 1]);
        let ids = g.op(Convert { destination_type: ElementType::I64 }, &[ids]);
        let all = g.ints_of(&[1, 1, counts.len()], counts);
        let equal = g.op(Equal::default(), &if swapped { [all, ids] } else { [ids, all] });
        let destination_type = g.model.fact(table).ty;
        let hot = g.op(Convert { destination_type }, &[equal]);
        g.op(MatMul { transpose_a: false, transpose_b: false }, &[hot, table])
    }

    #[test]
    fn ids_in_and_out_of_the_table_give_rows_and_zeros() {
        for swapped in [false, true] {
            fires_static(&OneHotRows, "Convert Squeeze Less Select Gather", |g| {
                let table = g.noise(&[4, 6], 0.0);
                product(g, swapped, &[0, 1, 2, 3], table)
            });
        }
    }

    #[test]
    fn other_orders_of_rows_and_infinite_tables_stay() {
        stays(&OneHotRows, "", |g| {
            let table = g.noise(&[4, 6], 0.0);
            product(g, false, &[0, 2, 1, 3], table)
        });
        stays(&OneHotRows, "", |g| {
            let table = g.tensor(&[2, 1], &[1.0, f64::INFINITY]);
            product(g, false, &[0, 1], table)
        });
    }
}
