//! Joining, cutting, reshaping and putting into another order.

use super::view::copy;
use super::{Built, Port, Site, types};
use crate::backend::{BuildCx, Gpu, or_failed};
use crate::launch::{Arg, Launch, Launches};
use crate::machine::ALIGNMENT;
use carafe_graph::{Result, normalize_axis};
use carafe_ops::movement::{Concat, Reshape, Split, Squeeze, Transpose, Unsqueeze, VariadicSplit};
use carafe_plan::{Layout, Parts, Step, View, Work, common_layout};
use carafe_tensor::ElementType;
use std::fmt::Write;
use std::sync::Arc;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() {
        return Ok(None);
    }
    let op = site.op;
    if op.is::<Reshape>() || op.is::<Squeeze>() || op.is::<Unsqueeze>() {
        return Ok(Some(reshaped(site)));
    }
    if site.inputs.iter().chain(&site.outputs).take(1).any(|p| types::movable(p.ty).is_none()) {
        return Ok(None);
    }
    if op.is::<Transpose>() {
        return transposed(site);
    }
    if let Some(op) = op.get::<Concat>() {
        return Ok(concat(site, op.axis));
    }
    if op.is::<Split>() || op.is::<VariadicSplit>() {
        return Ok(split(site));
    }
    Ok(None)
}

/// Bytes of an element of a value as it lies on the device.
pub(crate) fn size_of(cx: &BuildCx, port: &Port) -> usize {
    cx.stored(port.ty).bits() / 8
}

// The bytes of an input under another shape, both in the form of the device.
pub(super) fn same_bytes(site: &Site<'_>, from: Layout, to: Layout) -> Built {
    let cx = site.cx;
    Built::new(Work::View, [(0, cx.form(&site.inputs[0], from))], [cx.form(&site.outputs[0], to)])
}

fn reshaped(site: &Site<'_>) -> Built {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let keeps = from.rank() > 2 && to.rank() > 2 && from.shape[..2] == to.shape[..2];
    match from.layout {
        // Batch and channels stay and only the pixels are grouped in another way.
        Layout::CHANNELS_LAST if keeps => same_bytes(site, Layout::CHANNELS_LAST, Layout::CHANNELS_LAST),
        _ => same_bytes(site, Layout::PLAIN, Layout::PLAIN),
    }
}

fn transposed(site: &Site<'_>) -> Result<Option<Built>> {
    let (from, cx) = (&site.inputs[0], site.cx);
    let rank = from.rank();
    let Some(order) = order(site, rank) else { return Ok(None) };
    // Axes longer than 1 in the order in which they lie.
    let lies: Vec<usize> = from.layout.order(rank).into_iter().filter(|&a| from.shape[a] > 1).collect();
    for layout in [Layout::PLAIN, Layout::CHANNELS_LAST] {
        let wanted = layout.order(rank).into_iter().map(|a| order[a]).filter(|&a| from.shape[a] > 1);
        if wanted.eq(lies.iter().copied()) {
            return Ok(Some(same_bytes(site, from.layout, layout)));
        }
    }
    let view = View::of(from).permuted(&order);
    let launch = copy(cx, &view, &View::whole(&view.dims), size_of(cx, from), Arg::Read(0), Arg::Write(0))?;
    let forms = (cx.form(from, from.layout), cx.form(&site.outputs[0], Layout::PLAIN));
    Ok(Some(Launches::new("transpose", vec![launch]).built([(0, forms.0)], [forms.1])))
}

fn order(site: &Site<'_>, rank: usize) -> Option<Vec<usize>> {
    let order: Vec<usize> = match site.inputs.get(1)?.ints()? {
        o if o.is_empty() => (0..rank).rev().collect(),
        o => o.iter().map(|&a| usize::try_from(a).ok().filter(|a| *a < rank)).collect::<Option<_>>()?,
    };
    (order.len() == rank).then_some(order)
}

/// A step that puts a value into another layout.
pub(crate) fn reorder(cx: &BuildCx, shape: &[usize], ty: ElementType, from: Layout, to: Layout) -> Arc<dyn Step<Gpu>> {
    let (rank, size) = (shape.len(), ty.bits() / 8);
    let step = || {
        // Axis by axis as the new layout has them, blocks and their padding aside.
        let order = to.order(rank);
        let positions: Vec<usize> = order.iter().map(|&a| from.axis(a, rank)).collect();
        let view = View::whole(&from.dims(shape)).permuted(&positions);
        let launch = copy(cx, &view, &View::whole(&view.dims), size, Arg::Read(0), Arg::Write(0))?;
        Ok(Launches::new("reorder", vec![launch]))
    };
    or_failed(step())
}

/// A step that joins or cuts, in one kernel.
pub(crate) fn parts_step(cx: &BuildCx, parts: Parts) -> Arc<dyn Step<Gpu>> {
    or_failed(move_parts(cx, &parts).map(|launch| {
        let step = Launches::new(if parts.joins { "concat" } else { "split" }, vec![launch]);
        // Parts that begin where a sub-buffer may begin need not be copied at all.
        let fits = parts.outer == 1 && parts.ranges.iter().all(|r| (r.0 * parts.elem_size).is_multiple_of(ALIGNMENT));
        if fits { step.moving(parts) } else { step }
    }))
}

// An item for each element that is moved: which row, and which of the parts.
fn move_parts(cx: &BuildCx, parts: &Parts) -> Result<Launch> {
    let ty = types::of_size(parts.elem_size);
    let moved: usize = parts.ranges.iter().map(|r| r.1).sum();
    let count = parts.outer * moved;
    let (reads, writes) =
        (if parts.joins { parts.ranges.len() } else { 1 }, if parts.joins { 1 } else { parts.ranges.len() });
    let mut args: Vec<Arg> = (0..reads).map(Arg::Read).chain((0..writes).map(Arg::Write)).collect();
    let mut params = String::new();
    for k in 0..reads {
        let _ = write!(params, "__global const {ty} *x{k}, ");
    }
    for k in 0..writes {
        let _ = write!(params, "__global {ty} *y{k}, ");
    }
    params += "const uint count, const uint moved, const uint whole";
    args.extend([count.into(), moved.into(), parts.whole.into()]);
    let mut body = "    const uint i = get_global_id(0);\n    if (i >= count) return;\n".to_string();
    body +=
        "    const uint row = i / moved;\n    uint column = i - row * moved;\n    const uint first = row * whole;\n";
    for (k, &(start, len)) in parts.ranges.iter().enumerate() {
        let _ = write!(params, ", const uint s{k}, const uint n{k}");
        args.extend([start.into(), len.into()]);
        let (part, all) = (format!("row * n{k} + column"), format!("first + s{k} + column"));
        let copy = match parts.joins {
            true => format!("y0[{all}] = x{k}[{part}];"),
            false => format!("y{k}[{part}] = x0[{all}];"),
        };
        let _ = writeln!(body, "    if (column < n{k}) {{ {copy} return; }}\n    column -= n{k};");
    }
    let source = format!("__kernel void move_parts({params}) {{\n{body}}}\n");
    let kernel = cx.generated("a concatenation or split", &source, "move_parts", &[])?;
    Ok(Launch::flat(&kernel, args, count, cx.group()))
}

/// Ranges of an axis of `dims`, one behind the other. `dims` are those of the whole as they lie.
fn parts_of(dims: &[usize], axis: usize, lengths: &[usize], elem_size: usize, joins: bool) -> Parts {
    let inner: usize = dims[axis + 1..].iter().product();
    let mut start = 0;
    let range = |n: &usize| {
        start += n * inner;
        (start - n * inner, n * inner)
    };
    let ranges = lengths.iter().map(range).collect();
    let (outer, whole) = (dims[..axis].iter().product(), dims[axis] * inner);
    Parts { outer, whole, ranges, of_rows: axis + 1 == dims.len(), elem_size, joins }
}

fn concat(site: &Site<'_>, axis: i64) -> Option<Built> {
    let (out, cx) = (&site.outputs[0], site.cx);
    let axis = normalize_axis(axis, out.rank()).ok()?;
    let layout = common_layout(site.inputs.iter());
    if site.inputs.len() == 1 {
        return Some(same_bytes(site, layout, layout));
    }
    let lengths: Vec<usize> = site.inputs.iter().map(|p| p.shape[axis]).collect();
    let position = layout.axis(axis, out.rank());
    let parts = parts_of(&layout.dims(&out.shape), position, &lengths, size_of(cx, out), true);
    let reads = site.inputs.iter().enumerate().map(|(i, p)| (i, cx.form(p, layout)));
    Some(Built::new(Work::Step(parts_step(cx, parts)), reads, [cx.form(out, layout)]))
}

fn split(site: &Site<'_>) -> Option<Built> {
    let (from, cx) = (&site.inputs[0], site.cx);
    let axis = normalize_axis(*site.inputs[1].ints()?.first()?, from.rank()).ok()?;
    let lengths: Vec<usize> = site.outputs.iter().map(|p| p.shape[axis]).collect();
    if lengths.iter().sum::<usize>() != from.shape[axis] {
        return None;
    }
    let layout = from.layout;
    if lengths.len() == 1 {
        return Some(same_bytes(site, layout, layout));
    }
    let position = layout.axis(axis, from.rank());
    let parts = parts_of(&layout.dims(&from.shape), position, &lengths, size_of(cx, from), false);
    let outputs = site.outputs.iter().map(|p| cx.form(p, layout));
    Some(Built::new(Work::Step(parts_step(cx, parts)), [(0, cx.form(from, layout))], outputs))
}
