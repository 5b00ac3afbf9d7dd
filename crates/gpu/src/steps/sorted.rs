//! Bucketize and SearchSorted: where values stand among sorted ones. Numbers are compared as the model has them, never as halves.

use super::{Built, Site, types};
use crate::launch::{Arg, Launch, Launches};
use crate::programs::Source;
use carafe_graph::Result;
use carafe_ops::search::{Bucketize, SearchSorted};
use carafe_plan::Layout;
use carafe_tensor::ElementType;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    // The sorted numbers, the values, and whether those that are equal stand before.
    let (sorted, values, behind) = if let Some(op) = site.op.get::<Bucketize>() {
        (1, 0, !op.with_right_bound)
    } else if let Some(op) = site.op.get::<SearchSorted>() {
        (0, 1, op.right_mode)
    } else {
        return Ok(None);
    };
    if site.group || !site.epilogue.is_empty() {
        return Ok(None);
    }
    let (rows, list, out, cx) = (&site.inputs[sorted], &site.inputs[values], &site.outputs[0], site.cx);
    let known = types::computed(list.ty).filter(|name| types::stored(list.ty) == Some(name));
    let Some(number) = known.filter(|_| list.ty != ElementType::F64 || cx.has_double()) else { return Ok(None) };
    if rows.ty != list.ty || out.shape.contains(&0) {
        return Ok(None);
    }
    let index = if out.ty == ElementType::I64 { "long" } else { "int" };
    let n = rows.shape.last().copied().unwrap_or(0);
    let per_row = if rows.rank() == 1 { list.len() } else { list.shape.last().copied().unwrap_or(1) };
    let macros = [("N", number), ("I", index), ("BEFORE", if behind { "<=" } else { "<" })];
    let kernel = cx.kernel(&Source("sorted.cl"), "sorted_places", &macros.map(|(name, v)| (name, v.to_string())))?;
    let sizes = [out.len(), n, per_row.max(1)];
    let args = [Arg::Read(0), Arg::Read(1), Arg::Write(0)].into_iter().chain(sizes.map(Arg::from)).collect();
    let step = Launches::new("sorted_places", vec![Launch::flat(&kernel, args, out.len(), cx.group())]);
    Ok(Some(step.built([(sorted, Layout::PLAIN.into()), (values, Layout::PLAIN.into())], [Layout::PLAIN.into()])))
}
