//! Operations whose result is a strided view of their input: slices, reversals, repetitions and blocks that change axes. The
//! view is made on the axes of the model, whatever the layout, and becomes one copy; one that changes nothing costs nothing.

use super::movement::{same_bytes, size_of};
use super::view::{View, copy};
use super::{Built, Port, Site, types};
use crate::launch::{Arg, Launches};
use carafe_graph::{Result, normalize_axis};
use carafe_ops::indexing::Gather;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::depth_to_space::BlockOrder;
use carafe_ops::movement::reverse::ReverseMode;
use carafe_ops::movement::{
    BatchToSpace, Broadcast, DepthToSpace, Identity, Reverse, Roll, ShuffleChannels, Slice, SliceScatter, SpaceToBatch,
    SpaceToDepth, StridedSlice, Tile,
};
use carafe_plan::Layout;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() || site.inputs.is_empty() {
        return Ok(None);
    }
    if types::movable(site.inputs[0].ty).is_none() {
        return Ok(None);
    }
    let op = site.op;
    let (name, strided) = if op.is::<Slice>() {
        ("slice", slice(site))
    } else if let Some(op) = op.get::<StridedSlice>() {
        ("strided_slice", strided_slice(site, op))
    } else if op.is::<Tile>() {
        ("tile", Some(tile(site)))
    } else if let Some(op) = op.get::<Broadcast>() {
        ("broadcast", broadcast(site, op))
    } else if let Some(op) = op.get::<DepthToSpace>() {
        ("depth_to_space", Some(depth_to_space(site, op)))
    } else if let Some(op) = op.get::<SpaceToDepth>() {
        ("space_to_depth", Some(space_to_depth(site, op)))
    } else if let Some(op) = op.get::<ShuffleChannels>() {
        ("shuffle_channels", shuffle(site, op))
    } else if let Some(op) = op.get::<Reverse>() {
        ("reverse", reverse(site, op))
    } else if op.is::<BatchToSpace>() {
        ("batch_to_space", batch_to_space(site))
    } else if op.is::<SpaceToBatch>() {
        ("space_to_batch", space_to_batch(site))
    } else if let Some(op) = op.get::<Gather>() {
        ("gather_slice", gather_one(site, op))
    } else if op.is::<Roll>() {
        return roll(site);
    } else if op.is::<SliceScatter>() {
        return slice_scatter(site);
    } else if op.is::<Identity>() {
        return Ok(Some(same_bytes(site, site.layout(0), site.layout(0))));
    } else {
        return Ok(None);
    };
    strided.map(|s| s.built(site, name)).transpose()
}

/// A view of an input: its axes, and which of them are joined to each axis of the output.
struct Strided {
    view: View,
    groups: Vec<Vec<usize>>,
}

impl Strided {
    /// Axis by axis.
    fn plain(view: View) -> Strided {
        let groups = (0..view.rank()).map(|a| vec![a]).collect();
        Strided { view, groups }
    }
    /// In the order in which the output lies.
    fn in_layout(&self, layout: Layout) -> View {
        let mut order: Vec<usize> =
            layout.order(self.groups.len()).into_iter().flat_map(|a| self.groups[a].iter().copied()).collect();
        // Dropped axes are 1 long; they may stand anywhere.
        let dropped: Vec<usize> = (0..self.view.rank()).filter(|a| !order.contains(a)).collect();
        order.extend(dropped);
        self.view.permuted(&order)
    }
    /// The copy of input 0 that it is.
    fn built(&self, site: &Site<'_>, name: &'static str) -> Result<Built> {
        let (from, to, cx) = (&site.inputs[0], &site.outputs[0], site.cx);
        let layout = kept_layout(from, to);
        let view = self.in_layout(layout);
        if view.is_whole() && view.len() == from.len() {
            return Ok(same_bytes(site, from.layout, layout));
        }
        let launch = copy(cx, &view, &View::whole(&view.dims), size_of(cx, to), Arg::Read(0), Arg::Write(0))?;
        let reads = [(0, cx.form(from, from.layout))];
        Ok(Launches::new(name, vec![launch]).built(reads, [cx.form(to, layout)]))
    }
}

/// Axes that keep their number keep their order in memory.
fn kept_layout(from: &Port, to: &Port) -> Layout {
    if from.rank() == to.rank() { from.layout } else { Layout::PLAIN }
}

/// Where a slice begins; the length is that of the output.
fn first_of(n: usize, begin: Option<i64>, step: i64) -> usize {
    let n = n as i64;
    let begin = begin.map(|b| if b < 0 { b.saturating_add(n) } else { b });
    match step > 0 {
        true => begin.map_or(0, |b| b.clamp(0, n)) as usize,
        false => begin.map_or(n - 1, |b| b.clamp(0, n - 1)) as usize,
    }
}

/// The slice of a view that the inputs `start`, `stop`, `step` and `axes` from `first` on describe, of the given shape.
fn sliced(site: &Site<'_>, view: View, first: usize, shape: &[usize]) -> Option<View> {
    let (starts, steps) = (site.inputs[first].ints()?, site.inputs[first + 2].ints()?);
    let axes = match site.inputs.get(first + 3) {
        Some(axes) => axes.ints()?,
        None => (0..starts.len() as i64).collect(),
    };
    let mut view = view;
    for ((&axis, &start), &step) in axes.iter().zip(&starts).zip(&steps) {
        let axis = normalize_axis(axis, view.rank()).ok()?;
        let begin = first_of(view.dims[axis], Some(start), step);
        view = view.sliced(axis, begin, step as isize, shape[axis]);
    }
    (view.dims == shape).then_some(view)
}

fn slice(site: &Site<'_>) -> Option<Strided> {
    sliced(site, View::of(&site.inputs[0]), 1, &site.outputs[0].shape).map(Strided::plain)
}

fn strided_slice(site: &Site<'_>, op: &StridedSlice) -> Option<Strided> {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let begins = site.inputs[1].ints()?;
    let steps = match site.inputs.get(3) {
        Some(steps) => steps.ints()?,
        None => vec![1; begins.len()],
    };
    let bit = |mask: &[i64], i: usize| mask.get(i) == Some(&1);
    let inserts = |i: usize| !bit(&op.ellipsis_mask, i) && bit(&op.new_axis_mask, i);
    let used = (0..begins.len()).filter(|&i| !bit(&op.ellipsis_mask, i) && !inserts(i)).count();
    let untouched = from.rank().checked_sub(used)?;
    let (mut view, mut groups, mut axis) = (View::of(from), vec![], 0);
    for (i, &begin) in begins.iter().enumerate() {
        if bit(&op.ellipsis_mask, i) {
            groups.extend((axis..axis + untouched).map(|a| vec![a]));
            axis += untouched;
        } else if inserts(i) {
            groups.push(vec![]);
        } else if bit(&op.shrink_axis_mask, i) {
            let n = from.shape[axis] as i64;
            let index = if begin < 0 { begin.saturating_add(n) } else { begin };
            view = view.sliced(axis, usize::try_from(index).ok().filter(|_| index < n)?, 1, 1);
            axis += 1;
        } else {
            let begin = (!bit(&op.begin_mask, i)).then_some(begin);
            let step = *steps.get(i).unwrap_or(&1);
            let len = *to.shape.get(groups.len())?;
            view = view.sliced(axis, first_of(from.shape[axis], begin, step), step as isize, len);
            groups.push(vec![axis]);
            axis += 1;
        }
    }
    groups.extend((axis..from.rank()).map(|a| vec![a]));
    (groups.len() == to.rank()).then_some(Strided { view, groups })
}

// A single index that is known is a slice.
fn gather_one(site: &Site<'_>, op: &Gather) -> Option<Strided> {
    let (from, indices) = (&site.inputs[0], &site.inputs[1]);
    let [index] = indices.ints()?[..] else { return None };
    let axis = normalize_axis(*site.inputs[2].ints()?.first()?, from.rank()).ok()?;
    let n = from.shape[axis] as i64;
    let index = if index < 0 { index.saturating_add(n) } else { index };
    // Indices with batch axes of 1 give them to the data; only what is plain to see.
    if !(0..n).contains(&index) || indices.rank() > 1 {
        return None;
    }
    if op.batch_dims != 0 && op.batch_dims != -(indices.rank() as i64) {
        return None;
    }
    let mut strided = Strided::plain(View::of(from).sliced(axis, index as usize, 1, 1));
    if indices.rank() == 0 {
        strided.groups.remove(axis);
    }
    Some(strided)
}

fn tile(site: &Site<'_>) -> Strided {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let ahead = to.rank() - from.rank();
    let own = |a: usize| a.checked_sub(ahead).map_or(1, |a| from.shape[a]);
    let dims: Vec<usize> = (0..to.rank()).flat_map(|a| [to.shape[a] / own(a), own(a)]).collect();
    let axes: Vec<usize> = (ahead..to.rank()).map(|a| 2 * a + 1).collect();
    let view = View::of(from).stretched(&dims, &axes);
    Strided { view, groups: (0..to.rank()).map(|a| vec![2 * a, 2 * a + 1]).collect() }
}

fn broadcast(site: &Site<'_>, op: &Broadcast) -> Option<Strided> {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let axes: Vec<usize> = match op.mode {
        BroadcastMode::Pdpd => return None,
        BroadcastMode::Explicit => site.inputs[2].ints()?.iter().map(|&a| a as usize).collect(),
        BroadcastMode::Numpy | BroadcastMode::Bidirectional => (to.rank() - from.rank()..to.rank()).collect(),
    };
    Some(Strided::plain(View::of(from).stretched(&to.shape, &axes)))
}

fn depth_to_space(site: &Site<'_>, op: &DepthToSpace) -> Strided {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let (k, block) = (from.rank() - 2, op.block_size as usize);
    let mut parts = vec![block; k + 1];
    // Where the rest of the channels and the first block stand.
    let (rest, blocks) = match op.mode {
        BlockOrder::BlocksFirst => (k + 1, 1),
        BlockOrder::DepthFirst => (1, 2),
    };
    parts[rest - 1] = to.shape[1];
    let view = View::of(from).split(1, &parts);
    let mut groups = vec![vec![0], vec![rest]];
    groups.extend((0..k).map(|i| vec![k + 2 + i, blocks + i]));
    Strided { view, groups }
}

fn space_to_depth(site: &Site<'_>, op: &SpaceToDepth) -> Strided {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let (k, block) = (from.rank() - 2, op.block_size as usize);
    let view = (0..k).fold(View::of(from), |view, i| view.split(2 + 2 * i, &[to.shape[2 + i], block]));
    let blocks = (0..k).map(|i| 3 + 2 * i);
    let channels = match op.mode {
        BlockOrder::BlocksFirst => blocks.chain([1]).collect(),
        BlockOrder::DepthFirst => [1].into_iter().chain(blocks).collect(),
    };
    let mut groups = vec![vec![0], channels];
    groups.extend((0..k).map(|i| vec![2 + 2 * i]));
    Strided { view, groups }
}

fn shuffle(site: &Site<'_>, op: &ShuffleChannels) -> Option<Strided> {
    let from = &site.inputs[0];
    let axis = normalize_axis(op.axis, from.rank()).ok()?;
    let group = op.group as usize;
    let view = View::of(from).split(axis, &[group, from.shape[axis] / group]);
    let position = |a: usize| if a > axis { a + 1 } else { a };
    let mut groups: Vec<Vec<usize>> = (0..from.rank()).map(|a| vec![position(a)]).collect();
    groups[axis] = vec![axis + 1, axis];
    Some(Strided { view, groups })
}

fn reverse(site: &Site<'_>, op: &Reverse) -> Option<Strided> {
    let from = &site.inputs[0];
    let mut reversed = vec![false; from.rank()];
    for (i, entry) in site.inputs[1].ints()?.into_iter().enumerate() {
        match op.mode {
            ReverseMode::Index => reversed[normalize_axis(entry, from.rank()).ok()?] = true,
            ReverseMode::Mask => *reversed.get_mut(i)? = entry != 0,
        }
    }
    let axes = (0..from.rank()).filter(|&a| reversed[a]);
    Some(Strided::plain(axes.fold(View::of(from), |view, a| view.reversed(a))))
}

fn sizes(port: &Port) -> Option<Vec<usize>> {
    port.ints()?.into_iter().map(|n| usize::try_from(n).ok()).collect()
}

// Where nothing is cropped.
fn batch_to_space(site: &Site<'_>) -> Option<Strided> {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let (blocks, rank) = (sizes(&site.inputs[1])?, from.rank());
    // The batch is `blocks..., batch`.
    let parts: Vec<usize> = blocks[1..].iter().copied().chain([to.shape[0]]).collect();
    let view = View::of(from).split(0, &parts);
    let mut groups = vec![vec![rank - 1]];
    groups.extend((1..rank).map(|a| vec![rank - 1 + a, a - 1]));
    (1..rank).all(|a| from.shape[a] * blocks[a] == to.shape[a]).then_some(Strided { view, groups })
}

// Where nothing is padded.
fn space_to_batch(site: &Site<'_>) -> Option<Strided> {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let (blocks, rank) = (sizes(&site.inputs[1])?, from.rank());
    if (1..rank).any(|a| to.shape[a] * blocks[a] != from.shape[a]) {
        return None;
    }
    let view = (1..rank).fold(View::of(from), |view, a| view.split(2 * a - 1, &[to.shape[a], blocks[a]]));
    // The batch becomes `blocks..., batch`.
    let mut groups = vec![(1..rank).map(|a| 2 * a).chain([0]).collect()];
    groups.extend((1..rank).map(|a| vec![2 * a - 1]));
    Some(Strided { view, groups })
}

// A copy for each corner: along every axis that is rolled, what stays before the end and what comes round.
fn roll(site: &Site<'_>) -> Result<Option<Built>> {
    let (from, cx) = (&site.inputs[0], site.cx);
    let Some(shifts) = shifts(site) else { return Ok(None) };
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

fn shifts(site: &Site<'_>) -> Option<Vec<usize>> {
    let from = &site.inputs[0];
    let (shifts, axes) = (site.inputs[1].ints()?, site.inputs[2].ints()?);
    let mut total = vec![0i64; from.rank()];
    for (i, &axis) in axes.iter().enumerate() {
        let axis = normalize_axis(axis, from.rank()).ok()?;
        let shift = if shifts.len() == 1 { shifts[0] } else { *shifts.get(i)? };
        let n = from.shape[axis] as i64;
        total[axis] = (total[axis] + shift.rem_euclid(n)) % n;
    }
    total.into_iter().map(|n| usize::try_from(n).ok()).collect()
}

// The data, then the updates over a part of it.
fn slice_scatter(site: &Site<'_>) -> Result<Option<Built>> {
    let (data, updates, cx) = (&site.inputs[0], &site.inputs[1], site.cx);
    let (size, layout) = (size_of(cx, data), data.layout);
    if data.rank() != updates.rank() {
        return Ok(None);
    }
    let Some(place) = sliced(site, View::of(data), 2, &updates.shape) else { return Ok(None) };
    let from = View::of(&Port { layout, ..updates.clone() });
    let whole = View::whole(&[data.len()]);
    let launches = vec![
        copy(cx, &whole, &whole, size, Arg::Read(0), Arg::Write(0))?,
        copy(cx, &from, &place, size, Arg::Read(1), Arg::Write(0))?,
    ];
    let reads = [(0, cx.form(data, layout)), (1, cx.form(updates, layout))];
    Ok(Some(Launches::new("slice_scatter", launches).built(reads, [cx.form(&site.outputs[0], layout)])))
}
