//! ```text
//! Gather(words, ids) + Gather(types, kinds) + positions   ->  EmbeddingSum(words, ids, types, kinds, positions)
//! ```
//!
//! For devices only. Tables are matrices, whose rows are gathered; rows that are stored in the model are taken along.

use super::look::{fuse, inputs_at, is_float, is_stored, made_by};
use super::slices::width;
use carafe_graph::{Model, NodeId, Outcome, Result, Rewrite, Value};
use carafe_ops::arithmetic::Add;
use carafe_ops::carafe::{Decompress, EmbeddingSum};
use carafe_ops::indexing::Gather;
use carafe_tensor::ElementType;

/// More terms are left to another node.
const MOST: usize = 4;

/// The sum of embeddings becomes EmbeddingSum.
#[derive(Clone, Copy, Debug)]
pub struct FuseEmbeddings;

impl Rewrite for FuseEmbeddings {
    fn name(&self) -> &'static str {
        "fuse_embeddings"
    }
    fn at(&self, model: &mut Model, root: NodeId) -> Result<Outcome> {
        let Some((op, inputs)) = find(model, root) else { return Ok(Outcome::NoMatch) };
        fuse(model, root, &inputs.clone(), op, &inputs)
    }
}

type Terms = (Vec<i64>, Vec<Value>);

fn find(model: &Model, root: NodeId) -> Option<(EmbeddingSum, Vec<Value>)> {
    let &[a, b] = inputs_at::<Add>(model, root)? else { return None };
    let (size, rank) = (width(model, root.into())?, model.fact(root.into()).shape.rank()?);
    let fits = |v: Value| width(model, v) == Some(size) && model.fact(v).shape.rank().is_some_and(|r| r <= rank);
    if !fits(a) || !fits(b) || !is_float(model, a) {
        return None;
    }
    // What was found a moment ago comes first; producers are looked at before their readers.
    let (first, second) = match (gathered(model, a), gathered(model, b)) {
        (Some(a), Some(b)) if b.0.len() > a.0.len() => (b, a),
        (Some(a), Some(b)) => (a, b),
        (Some(a), None) => (a, rows(model, b)?),
        (None, Some(b)) => (b, rows(model, a)?),
        (None, None) => return None,
    };
    let by_ids: Vec<i64> = first.0.into_iter().chain(second.0).collect();
    (by_ids.len() <= MOST).then(|| (EmbeddingSum { by_ids }, first.1.into_iter().chain(second.1).collect()))
}

fn gathered(model: &Model, v: Value) -> Option<Terms> {
    if let Some((id, op)) = model.producer::<EmbeddingSum>(v) {
        return Some((op.by_ids.clone(), model.node(id).inputs().to_vec()));
    }
    let batch = model.producer::<Gather>(v)?.1.batch_dims;
    let &[table, ids, axis] = made_by::<Gather>(model, v)? else { return None };
    // A compressed table has a kernel of its own.
    if model.producer::<Decompress>(table).is_some() {
        return None;
    }
    let axis = *model.constant_of(axis)?.to_vec::<i64>().ok()?.first()?;
    let rows = axis == 0 || axis == -2;
    let plain = matches!(model.fact(ids).ty, ElementType::I32 | ElementType::I64);
    (batch == 0 && rows && plain && model.fact(table).shape.rank() == Some(2)).then(|| (vec![1], vec![table, ids]))
}

fn rows(model: &Model, v: Value) -> Option<Terms> {
    is_stored(model, v).then(|| (vec![0], vec![v]))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Sketch, fires_static, stays};
    use super::*;

    fn gather(g: &mut Sketch, rows: usize, ids: &[i64], shape: &[usize]) -> Value {
        let (table, axis) = (g.noise(&[rows, 6], 0.0), g.int(0));
        let ids = g.ints_of(shape, ids);
        g.op(Gather { batch_dims: 0 }, &[table, ids, axis])
    }

    #[test]
    fn three_tables_in_either_order() {
        for swapped in [false, true] {
            fires_static(&FuseEmbeddings, "EmbeddingSum", |g| {
                let words = gather(g, 9, &[0, 8, 3, -1, 2, 20], &[2, 3]);
                let (kinds, locations) =
                    (gather(g, 2, &[0, 1, 1, 0, 1, 1], &[2, 3]), gather(g, 5, &[1, 3, 4], &[1, 3]));
                let sum = g.op(Add::default(), &[words, kinds]);
                if swapped { g.op(Add::default(), &[locations, sum]) } else { g.op(Add::default(), &[sum, locations]) }
            });
        }
    }

    #[test]
    fn stored_rows_go_along() {
        fires_static(&FuseEmbeddings, "EmbeddingSum", |g| {
            let (words, locations) = (gather(g, 9, &[0, 8, 3, -1, 2, 20], &[2, 3]), g.noise(&[1, 3, 6], 0.0));
            let sum = g.op(Add::default(), &[locations, words]);
            let kinds = gather(g, 2, &[0, 1, 1, 0, 1, 1], &[2, 3]);
            g.op(Add::default(), &[sum, kinds])
        });
    }

    #[test]
    fn columns_and_numbers_stay() {
        stays(&FuseEmbeddings, "", |g| {
            let (words, one) = (gather(g, 9, &[0, 8, 3], &[3]), g.c(1.0));
            g.op(Add::default(), &[words, one])
        });
    }
}
