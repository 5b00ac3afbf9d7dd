//! Operations whose result is a strided view of their input: slices, reversals, repetitions and blocks that change axes. The
//! view is made on the axes of the model, whatever the layout, and becomes one copy; one that changes nothing costs nothing.

use super::reorder::Copy;
use super::{Built, Cpu, Io, Port, Site, Step};
use carafe_graph::{Result, normalize_axis};
use carafe_kernels::movement::{Pad, PadMode, StridedCopy, View};
use carafe_ops::indexing::Gather;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::depth_to_space::BlockOrder;
use carafe_ops::movement::reverse::ReverseMode;
use carafe_ops::movement::{
    BatchToSpace, Broadcast, DepthToSpace, Identity, Reverse, ShuffleChannels, Slice, SpaceToBatch, SpaceToDepth,
    StridedSlice, Tile,
};
use carafe_plan::Layout;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() {
        return Ok(None);
    }
    let op = site.op;
    Ok(if op.is::<Slice>() {
        slice(site)
    } else if let Some(op) = op.get::<StridedSlice>() {
        strided_slice(site, op)
    } else if op.is::<Tile>() {
        Some(tile(site))
    } else if op.is::<Broadcast>() {
        broadcast(site)
    } else if let Some(op) = op.get::<DepthToSpace>() {
        Some(depth_to_space(site, op))
    } else if let Some(op) = op.get::<SpaceToDepth>() {
        Some(space_to_depth(site, op))
    } else if let Some(op) = op.get::<ShuffleChannels>() {
        shuffle(site, op)
    } else if let Some(op) = op.get::<Reverse>() {
        reverse(site, op)
    } else if op.is::<BatchToSpace>() {
        batch_to_space(site)
    } else if op.is::<SpaceToBatch>() {
        space_to_batch(site)
    } else if op.is::<Gather>() {
        gather_one(site)
    } else if op.is::<Identity>() {
        Some(Built::view(0, site.layout(0), site.layout(0)))
    } else {
        None
    })
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
    fn built(&self, site: &Site<'_>, name: &'static str) -> Built {
        let (from, to) = (&site.inputs[0], &site.outputs[0]);
        let layout = kept_layout(from, to);
        let view = self.in_layout(layout);
        let copy = StridedCopy::of(&view, size_of(to));
        if copy.is_plain() && copy.bytes() == from.len() * size_of(from) {
            return Built::view(0, from.layout, layout);
        }
        Built::step(Copy::new(name, view, size_of(to)), vec![(0, from.layout)], layout)
    }
}

/// Bytes of an element.
pub(super) fn size_of(port: &Port) -> usize {
    port.ty.bits() / 8
}

/// A value as the model sees it, over its memory.
pub(super) fn axes_of(port: &Port) -> View {
    let rank = port.rank();
    let positions: Vec<usize> = (0..rank).map(|a| port.layout.axis(a, rank)).collect();
    View::whole(&port.layout.dims(&port.shape)).permuted(&positions)
}

/// Axes that keep their number keep their order in memory.
fn kept_layout(from: &Port, to: &Port) -> Layout {
    if from.rank() == to.rank() { from.layout } else { Layout::PLAIN }
}

/// Where a slice begins; the length is that of the output.
pub(super) fn first_of(n: usize, begin: Option<i64>, step: i64) -> usize {
    let n = n as i64;
    let begin = begin.map(|b| if b < 0 { b.saturating_add(n) } else { b });
    match step > 0 {
        true => begin.map_or(0, |b| b.clamp(0, n)) as usize,
        false => begin.map_or(n - 1, |b| b.clamp(0, n - 1)) as usize,
    }
}

/// The slice of a view that the inputs `start`, `stop`, `step` and `axes` from `first` on describe, of the given shape.
pub(super) fn sliced(site: &Site<'_>, view: View, first: usize, shape: &[usize]) -> Option<View> {
    let (starts, steps) = (site.inputs[first].ints()?, site.inputs[first + 2].ints()?);
    let axes = match site.inputs.get(first + 3) {
        Some(axes) => axes.ints()?,
        None => (0..starts.len() as i64).collect(),
    };
    let mut view = view;
    for ((&axis, &start), &step) in axes.iter().zip(&starts).zip(&steps) {
        let axis = normalize_axis(axis, view.rank()).ok()?;
        view = view.sliced(axis, first_of(view.dims[axis], Some(start), step), step as isize, shape[axis]);
    }
    (view.dims == shape).then_some(view)
}

fn slice(site: &Site<'_>) -> Option<Built> {
    let view = sliced(site, axes_of(&site.inputs[0]), 1, &site.outputs[0].shape)?;
    Some(Strided::plain(view).built(site, "slice"))
}

fn strided_slice(site: &Site<'_>, op: &StridedSlice) -> Option<Built> {
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
    let (mut view, mut groups, mut axis) = (axes_of(from), vec![], 0);
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
    (groups.len() == to.rank()).then(|| Strided { view, groups }.built(site, "strided_slice"))
}

// A single index that is known is a slice.
fn gather_one(site: &Site<'_>) -> Option<Built> {
    let (from, indices) = (&site.inputs[0], &site.inputs[1]);
    let [index] = indices.ints()?[..] else { return None };
    let axis = normalize_axis(*site.inputs[2].ints()?.first()?, from.rank()).ok()?;
    let n = from.shape[axis] as i64;
    let index = if index < 0 { index.saturating_add(n) } else { index };
    // Indices with batch axes of 1 give them to the data; only what is plain to see.
    if !(0..n).contains(&index) || indices.rank() > 1 {
        return None;
    }
    let batch = site.op.get::<Gather>()?.batch_dims;
    if batch != 0 && batch != -(indices.rank() as i64) {
        return None;
    }
    let mut strided = Strided::plain(axes_of(from).sliced(axis, index as usize, 1, 1));
    if indices.rank() == 0 {
        strided.groups.remove(axis);
    }
    Some(strided.built(site, "gather_slice"))
}

fn tile(site: &Site<'_>) -> Built {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let ahead = to.rank() - from.rank();
    let own = |a: usize| a.checked_sub(ahead).map_or(1, |a| from.shape[a]);
    let dims: Vec<usize> = (0..to.rank()).flat_map(|a| [to.shape[a] / own(a), own(a)]).collect();
    let axes: Vec<usize> = (ahead..to.rank()).map(|a| 2 * a + 1).collect();
    let view = axes_of(from).stretched(&dims, &axes);
    Strided { view, groups: (0..to.rank()).map(|a| vec![2 * a, 2 * a + 1]).collect() }.built(site, "tile")
}

fn broadcast(site: &Site<'_>) -> Option<Built> {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let axes: Vec<usize> = match site.op.get::<Broadcast>()?.mode {
        BroadcastMode::Pdpd => return None,
        BroadcastMode::Explicit => site.inputs[2].ints()?.iter().map(|&a| a as usize).collect(),
        BroadcastMode::Numpy | BroadcastMode::Bidirectional => (to.rank() - from.rank()..to.rank()).collect(),
    };
    Some(Strided::plain(axes_of(from).stretched(&to.shape, &axes)).built(site, "broadcast"))
}

fn depth_to_space(site: &Site<'_>, op: &DepthToSpace) -> Built {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let (k, block) = (from.rank() - 2, op.block_size as usize);
    let mut parts = vec![block; k + 1];
    // Where the rest of the channels and the first block stand.
    let (rest, blocks) = match op.mode {
        BlockOrder::BlocksFirst => (k + 1, 1),
        BlockOrder::DepthFirst => (1, 2),
    };
    parts[rest - 1] = to.shape[1];
    let view = axes_of(from).split(1, &parts);
    let mut groups = vec![vec![0], vec![rest]];
    groups.extend((0..k).map(|i| vec![k + 2 + i, blocks + i]));
    Strided { view, groups }.built(site, "depth_to_space")
}

fn space_to_depth(site: &Site<'_>, op: &SpaceToDepth) -> Built {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let (k, block) = (from.rank() - 2, op.block_size as usize);
    let view = (0..k).fold(axes_of(from), |view, i| view.split(2 + 2 * i, &[to.shape[2 + i], block]));
    let blocks = (0..k).map(|i| 3 + 2 * i);
    let channels = match op.mode {
        BlockOrder::BlocksFirst => blocks.chain([1]).collect(),
        BlockOrder::DepthFirst => [1].into_iter().chain(blocks).collect(),
    };
    let mut groups = vec![vec![0], channels];
    groups.extend((0..k).map(|i| vec![2 + 2 * i]));
    Strided { view, groups }.built(site, "space_to_depth")
}

fn shuffle(site: &Site<'_>, op: &ShuffleChannels) -> Option<Built> {
    let from = &site.inputs[0];
    let axis = normalize_axis(op.axis, from.rank()).ok()?;
    let group = op.group as usize;
    let view = axes_of(from).split(axis, &[group, from.shape[axis] / group]);
    let position = |a: usize| if a > axis { a + 1 } else { a };
    let mut groups: Vec<Vec<usize>> = (0..from.rank()).map(|a| vec![position(a)]).collect();
    groups[axis] = vec![axis + 1, axis];
    Some(Strided { view, groups }.built(site, "shuffle_channels"))
}

fn reverse(site: &Site<'_>, op: &Reverse) -> Option<Built> {
    let from = &site.inputs[0];
    let mut reversed = vec![false; from.rank()];
    for (i, entry) in site.inputs[1].ints()?.into_iter().enumerate() {
        match op.mode {
            ReverseMode::Index => reversed[normalize_axis(entry, from.rank()).ok()?] = true,
            ReverseMode::Mask => *reversed.get_mut(i)? = entry != 0,
        }
    }
    let axes = (0..from.rank()).filter(|&a| reversed[a]);
    let view = axes.fold(axes_of(from), |view, a| view.reversed(a));
    Some(Strided::plain(view).built(site, "reverse"))
}

/// Two moves, the first into the workspace.
#[derive(Debug)]
struct Twice {
    name: &'static str,
    /// Zeros around the input, or nothing.
    pad: Option<Pad>,
    first: Option<StridedCopy>,
    last: StridedCopy,
}

impl Step<Cpu> for Twice {
    fn kernel(&self) -> String {
        self.name.into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        if let Some(pad) = &self.pad {
            pad.run(io.exec, io.inputs[0], None, io.workspace);
        }
        if let Some(first) = &self.first {
            first.run(io.exec, io.inputs[0], io.workspace);
        }
        self.last.run(io.exec, io.workspace, io.outputs[0]);
        Ok(())
    }
}

fn sizes(port: &Port) -> Option<Vec<usize>> {
    port.ints()?.into_iter().map(|n| usize::try_from(n).ok()).collect()
}

fn batch_to_space(site: &Site<'_>) -> Option<Built> {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let (blocks, begins, rank) = (sizes(&site.inputs[1])?, sizes(&site.inputs[2])?, from.rank());
    // The batch is `blocks..., batch`.
    let parts: Vec<usize> = blocks[1..].iter().copied().chain([to.shape[0]]).collect();
    let view = axes_of(from).split(0, &parts);
    let mut groups = vec![vec![rank - 1]];
    groups.extend((1..rank).map(|a| vec![rank - 1 + a, a - 1]));
    let strided = Strided { view, groups };
    let mut joined = from.shape.clone();
    joined[0] = to.shape[0];
    (1..rank).for_each(|a| joined[a] *= blocks[a]);
    if joined == to.shape {
        return Some(strided.built(site, "batch_to_space"));
    }
    let layout = kept_layout(from, to);
    let whole = Port { shape: joined, layout, ..from.clone() };
    let cropped = (1..rank).fold(axes_of(&whole), |view, a| view.sliced(a, begins[a], 1, to.shape[a]));
    let last = StridedCopy::of(&Strided::plain(cropped).in_layout(layout), size_of(to));
    let first = Some(StridedCopy::of(&strided.in_layout(layout), size_of(to)));
    let step = Twice { name: "batch_to_space", pad: None, first, last };
    Some(Built::step(step, vec![(0, from.layout)], layout).with_workspace(whole.len() * size_of(to)))
}

fn space_to_batch(site: &Site<'_>) -> Option<Built> {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let (blocks, begins, rank) = (sizes(&site.inputs[1])?, site.inputs[2].ints()?, from.rank());
    let mut padded = from.clone();
    (1..rank).for_each(|a| padded.shape[a] = to.shape[a] * blocks[a]);
    let view = (1..rank).fold(axes_of(&padded), |view, a| view.split(2 * a - 1, &[to.shape[a], blocks[a]]));
    // The batch becomes `blocks..., batch`.
    let mut groups = vec![(1..rank).map(|a| 2 * a).chain([0]).collect()];
    groups.extend((1..rank).map(|a| vec![2 * a - 1]));
    let strided = Strided { view, groups };
    if padded.shape == from.shape {
        return Some(strided.built(site, "space_to_batch"));
    }
    let ends: Vec<i64> = (0..rank).map(|a| padded.shape[a] as i64 - from.shape[a] as i64 - begins[a]).collect();
    let in_memory = |v: &[i64]| from.layout.order(rank).into_iter().map(|a| v[a]).collect::<Vec<_>>();
    let dims = from.layout.dims(&from.shape);
    let pad = Some(Pad::new(&dims, &in_memory(&begins), &in_memory(&ends), PadMode::Constant, size_of(from)));
    let layout = kept_layout(from, to);
    let last = StridedCopy::of(&strided.in_layout(layout), size_of(to));
    let step = Twice { name: "space_to_batch", pad, first: None, last };
    Some(Built::step(step, vec![(0, from.layout)], layout).with_workspace(padded.len() * size_of(to)))
}
