//! Operations whose result is a strided view of their input become one copy, or none where the view changes nothing; two that put parts
//! together are several copies.

use super::movement::{same_bytes, size_of};
use super::view::copy;
use super::{Built, Port, Site, types};
use crate::launch::{Arg, Launches};
use carafe_graph::Result;
use carafe_ops::movement::{Identity, Roll, SliceScatter};
use carafe_plan::{Strided, View, kept_layout, roll_shifts, slice_of};

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() || site.inputs.is_empty() {
        return Ok(None);
    }
    if types::movable(site.inputs[0].ty).is_none() {
        return Ok(None);
    }
    if site.op.is::<Roll>() {
        return roll(site);
    } else if site.op.is::<SliceScatter>() {
        return slice_scatter(site);
    } else if site.op.is::<Identity>() {
        return Ok(Some(same_bytes(site, site.layout(0), site.layout(0))));
    }
    let (from, to, cx) = (&site.inputs[0], &site.outputs[0], site.cx);
    let Some((name, strided)) = Strided::of(site.op, &site.inputs, to) else { return Ok(None) };
    let layout = kept_layout(from, to);
    let view = strided.in_layout(layout);
    if view.is_whole() && view.len() == from.len() {
        return Ok(Some(same_bytes(site, from.layout, layout)));
    }
    let launch = copy(cx, &view, &View::whole(&view.dims), size_of(cx, to), Arg::Read(0), Arg::Write(0))?;
    let reads = [(0, cx.form(from, from.layout))];
    Ok(Some(Launches::new(name, vec![launch]).built(reads, [cx.form(to, layout)])))
}

// A copy for each corner: along every axis that is rolled, what stays before the end and what comes round.
fn roll(site: &Site<'_>) -> Result<Option<Built>> {
    let (from, cx) = (&site.inputs[0], site.cx);
    let Some(shifts) = roll_shifts(&site.inputs) else { return Ok(None) };
    let axes: Vec<usize> = (0..from.rank()).filter(|&a| shifts[a] != 0).collect();
    if axes.is_empty() {
        return Ok(Some(same_bytes(site, from.layout, from.layout)));
    }
    if axes.len() > 3 {
        return Ok(None);
    }
    let (whole, mut launches) = (View::of(from), vec![]);
    for corner in 0..1usize << axes.len() {
        let (mut source, mut target) = (whole.clone(), whole.clone());
        for (bit, &axis) in axes.iter().enumerate() {
            let (n, shift) = (from.shape[axis], shifts[axis]);
            let (at, to, len) = if corner >> bit & 1 == 0 { (0, shift, n - shift) } else { (n - shift, 0, shift) };
            source = source.sliced(axis, at, 1, len);
            target = target.sliced(axis, to, 1, len);
        }
        launches.push(copy(cx, &source, &target, size_of(cx, from), Arg::Read(0), Arg::Write(0))?);
    }
    let forms = (cx.form(from, from.layout), cx.form(&site.outputs[0], from.layout));
    Ok(Some(Launches::new("roll", launches).built([(0, forms.0)], [forms.1])))
}

// The data, then the updates over a part of it.
fn slice_scatter(site: &Site<'_>) -> Result<Option<Built>> {
    let (data, updates, cx) = (&site.inputs[0], &site.inputs[1], site.cx);
    let (size, layout) = (size_of(cx, data), data.layout);
    if data.rank() != updates.rank() {
        return Ok(None);
    }
    let Some(place) = slice_of(&site.inputs, View::of(data), 2, &updates.shape) else { return Ok(None) };
    let from = View::of(&Port { layout, ..updates.clone() });
    let whole = View::whole(&[data.len()]);
    let launches = vec![
        copy(cx, &whole, &whole, size, Arg::Read(0), Arg::Write(0))?,
        copy(cx, &from, &place, size, Arg::Read(1), Arg::Write(0))?,
    ];
    let reads = [(0, cx.form(data, layout)), (1, cx.form(updates, layout))];
    Ok(Some(Launches::new("slice_scatter", launches).built(reads, [cx.form(&site.outputs[0], layout)])))
}
