//! Operations that only look at the same bytes under another shape, and transposes. A transpose whose order undoes or makes
//! a layout costs nothing.

use super::reorder::Copy;
use super::{Built, Site};
use carafe_graph::Result;
use carafe_ops::movement::{Reshape, Squeeze, Transpose, Unsqueeze};
use carafe_plan::Layout;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group {
        return Ok(None);
    }
    let op = site.op;
    if op.is::<Reshape>() || op.is::<Squeeze>() || op.is::<Unsqueeze>() {
        return Ok(Some(reshaped(site)));
    }
    if op.is::<Transpose>() {
        return Ok(transposed(site));
    }
    Ok(None)
}

fn reshaped(site: &Site<'_>) -> Built {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let keeps = from.rank() > 2 && to.rank() > 2 && from.shape[..2] == to.shape[..2];
    match from.layout {
        // Batch and channels stay and only the pixels are grouped in another way.
        Layout::CHANNELS_LAST if keeps => Built::view(0, Layout::CHANNELS_LAST, Layout::CHANNELS_LAST),
        _ => Built::view(0, Layout::PLAIN, Layout::PLAIN),
    }
}

fn transposed(site: &Site<'_>) -> Option<Built> {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let rank = from.rank();
    let order: Vec<usize> = match site.inputs.get(1)?.ints()? {
        o if o.is_empty() => (0..rank).rev().collect(),
        o => o.iter().map(|&a| usize::try_from(a).ok().filter(|a| *a < rank)).collect::<Option<_>>()?,
    };
    if order.len() != rank {
        return None;
    }
    // Axes longer than 1 in the order in which they lie.
    let lies: Vec<usize> = from.layout.order(rank).into_iter().filter(|&a| from.shape[a] > 1).collect();
    for layout in [Layout::PLAIN, Layout::CHANNELS_LAST] {
        let wanted = layout.order(rank).into_iter().map(|a| order[a]).filter(|&a| from.shape[a] > 1);
        if wanted.eq(lies.iter().copied()) {
            return Some(Built::view(0, from.layout, layout));
        }
    }
    let dims = from.layout.dims(&from.shape);
    let positions: Vec<usize> = order.iter().map(|&a| from.layout.axis(a, rank)).collect();
    let copy = Copy::permute("transpose", &dims, &positions, to.ty);
    Some(Built::step(copy, vec![(0, from.layout)], Layout::PLAIN))
}
