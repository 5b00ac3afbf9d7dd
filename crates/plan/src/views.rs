//! Operations whose result is a strided view of their input: slices, reversals, repetitions and blocks that change axes. Which view that
//! is follows from the operation alone; a backend makes one copy of it, or none where it changes nothing.

use crate::{Layout, Port};
use carafe_graph::{Op, normalize_axis};
use carafe_ops::indexing::Gather;
use carafe_ops::movement::broadcast::BroadcastMode;
use carafe_ops::movement::depth_to_space::BlockOrder;
use carafe_ops::movement::reverse::ReverseMode;
use carafe_ops::movement::{
    BatchToSpace, Broadcast, DepthToSpace, Reverse, ShuffleChannels, Slice, SpaceToBatch, SpaceToDepth, StridedSlice,
    Tile,
};
use carafe_tensor::strides;

/// Elements of an array, in the order of some axes: where the first lies, and a length and a signed stride for each axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The element at index 0 of every axis.
    pub start: usize,
    /// Lengths of the axes.
    pub dims: Vec<usize>,
    /// Elements from one to the next along each axis; 0 repeats.
    pub strides: Vec<isize>,
}

impl View {
    /// All of a dense array.
    pub fn whole(dims: &[usize]) -> View {
        View { start: 0, dims: dims.to_vec(), strides: strides(dims).into_iter().map(|s| s as isize).collect() }
    }
    /// A value as the model sees it, over its memory.
    pub fn of(port: &Port) -> View {
        let rank = port.rank();
        let positions: Vec<usize> = (0..rank).map(|a| port.layout.axis(a, rank)).collect();
        View::whole(&port.layout.dims(&port.shape)).permuted(&positions)
    }
    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }
    /// Number of elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.dims.iter().product()
    }
    /// Axis `order[i]` becomes axis `i`.
    pub fn permuted(&self, order: &[usize]) -> View {
        let dims = order.iter().map(|&a| self.dims[a]).collect();
        View { start: self.start, dims, strides: order.iter().map(|&a| self.strides[a]).collect() }
    }
    /// `len` elements of an axis from `first` on, each `step` behind the one before.
    pub fn sliced(mut self, axis: usize, first: usize, step: isize, len: usize) -> View {
        if len > 0 {
            self.start = self.start.wrapping_add_signed(first as isize * self.strides[axis]);
        }
        // With one element the step is never taken.
        if len > 1 {
            self.strides[axis] *= step;
        }
        self.dims[axis] = len;
        self
    }
    /// An axis backward.
    pub fn reversed(self, axis: usize) -> View {
        let n = self.dims[axis];
        self.sliced(axis, n.saturating_sub(1), -1, n)
    }
    /// An axis as several, the outermost first.
    pub fn split(mut self, axis: usize, parts: &[usize]) -> View {
        let stride = self.strides[axis];
        let own = strides(parts).into_iter().map(|s| s as isize * stride);
        self.strides.splice(axis..=axis, own);
        self.dims.splice(axis..=axis, parts.iter().copied());
        self
    }
    /// Repeated along axes that it does not have or where it is 1 long; its own axes become these.
    pub fn stretched(&self, dims: &[usize], axes: &[usize]) -> View {
        let mut strides = vec![0; dims.len()];
        for (own, &axis) in axes.iter().enumerate() {
            strides[axis] = if self.dims[own] == 1 { 0 } else { self.strides[own] };
        }
        View { start: self.start, dims: dims.to_vec(), strides }
    }
    /// Whether it is all of a dense array, in order.
    pub fn is_whole(&self) -> bool {
        let whole = View::whole(&self.dims);
        self.start == 0
            && self.dims.iter().zip(self.strides.iter().zip(&whole.strides)).all(|(&n, (a, b))| n == 1 || a == b)
    }
}

/// A view of an input: its axes, and which of them are joined to each axis of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strided {
    view: View,
    groups: Vec<Vec<usize>>,
}

/// Axes that keep their number keep their order in memory.
pub fn kept_layout(from: &Port, to: &Port) -> Layout {
    if from.rank() == to.rank() { from.layout } else { Layout::PLAIN }
}

impl Strided {
    /// Axis by axis.
    pub fn plain(view: View) -> Strided {
        let groups = (0..view.rank()).map(|a| vec![a]).collect();
        Strided { view, groups }
    }

    /// In the order in which the output lies.
    pub fn in_layout(&self, layout: Layout) -> View {
        let mut order: Vec<usize> =
            layout.order(self.groups.len()).into_iter().flat_map(|a| self.groups[a].iter().copied()).collect();
        // Dropped axes are 1 long; they may stand anywhere.
        let dropped: Vec<usize> = (0..self.view.rank()).filter(|a| !order.contains(a)).collect();
        order.extend(dropped);
        self.view.permuted(&order)
    }

    /// The view of input 0 that the result of an operation is, and a name for it. `None` where it is none, or where what decides is
    /// not known.
    pub fn of(op: &dyn Op, inputs: &[Port], to: &Port) -> Option<(&'static str, Strided)> {
        let from = inputs.first()?;
        let named = |name: &'static str| move |strided: Strided| (name, strided);
        if op.is::<Slice>() {
            let view = slice_of(inputs, View::of(from), 1, &to.shape)?;
            Some(("slice", Strided::plain(view)))
        } else if let Some(op) = op.get::<StridedSlice>() {
            strided_slice(op, inputs, to).map(named("strided_slice"))
        } else if op.is::<Tile>() {
            Some(("tile", tile(from, to)))
        } else if let Some(op) = op.get::<Broadcast>() {
            broadcast(op, inputs, to).map(named("broadcast"))
        } else if let Some(op) = op.get::<DepthToSpace>() {
            Some(("depth_to_space", depth_to_space(op, from, to)))
        } else if let Some(op) = op.get::<SpaceToDepth>() {
            Some(("space_to_depth", space_to_depth(op, from, to)))
        } else if let Some(op) = op.get::<ShuffleChannels>() {
            shuffle(op, from).map(named("shuffle_channels"))
        } else if let Some(op) = op.get::<Reverse>() {
            reverse(op, inputs).map(named("reverse"))
        } else if let Some(op) = op.get::<Gather>() {
            gather_one(op, inputs).map(named("gather_slice"))
        } else if op.is::<BatchToSpace>() {
            let (strided, joined) = Strided::batch_to_space(inputs, to)?;
            (joined == to.shape).then_some(("batch_to_space", strided))
        } else if op.is::<SpaceToBatch>() {
            let (strided, padded) = Strided::space_to_batch(inputs, to)?;
            (padded == from.shape).then_some(("space_to_batch", strided))
        } else {
            None
        }
    }

    /// The view that BatchToSpace is of its input, and its shape before it is cropped.
    pub fn batch_to_space(inputs: &[Port], to: &Port) -> Option<(Strided, Vec<usize>)> {
        let from = &inputs[0];
        let (blocks, rank) = (sizes(&inputs[1])?, from.rank());
        // The batch is `blocks..., batch`.
        let parts: Vec<usize> = blocks[1..].iter().copied().chain([to.shape[0]]).collect();
        let view = View::of(from).split(0, &parts);
        let mut groups = vec![vec![rank - 1]];
        groups.extend((1..rank).map(|a| vec![rank - 1 + a, a - 1]));
        let mut joined = from.shape.clone();
        joined[0] = to.shape[0];
        (1..rank).for_each(|a| joined[a] *= blocks[a]);
        Some((Strided { view, groups }, joined))
    }

    /// The view that SpaceToBatch is of its padded input, and the shape of that.
    pub fn space_to_batch(inputs: &[Port], to: &Port) -> Option<(Strided, Vec<usize>)> {
        let (blocks, rank) = (sizes(&inputs[1])?, inputs[0].rank());
        let mut padded = inputs[0].clone();
        (1..rank).for_each(|a| padded.shape[a] = to.shape[a] * blocks[a]);
        let view = (1..rank).fold(View::of(&padded), |view, a| view.split(2 * a - 1, &[to.shape[a], blocks[a]]));
        // The batch becomes `blocks..., batch`.
        let mut groups = vec![(1..rank).map(|a| 2 * a).chain([0]).collect()];
        groups.extend((1..rank).map(|a| vec![2 * a - 1]));
        Some((Strided { view, groups }, padded.shape))
    }
}

fn sizes(port: &Port) -> Option<Vec<usize>> {
    port.ints()?.into_iter().map(|n| usize::try_from(n).ok()).collect()
}

// Where a slice begins; the length is that of the output.
fn first_of(n: usize, begin: Option<i64>, step: i64) -> usize {
    let n = n as i64;
    let begin = begin.map(|b| if b < 0 { b.saturating_add(n) } else { b });
    match step > 0 {
        true => begin.map_or(0, |b| b.clamp(0, n)) as usize,
        false => begin.map_or(n - 1, |b| b.clamp(0, n - 1)) as usize,
    }
}

/// The slice of a view that the inputs `start`, `stop`, `step` and `axes` from `first` on describe, of the given shape.
pub fn slice_of(inputs: &[Port], view: View, first: usize, shape: &[usize]) -> Option<View> {
    let (starts, steps) = (inputs[first].ints()?, inputs[first + 2].ints()?);
    let axes = match inputs.get(first + 3) {
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

/// How far Roll moves each axis of input 0, from 0 to its length.
pub fn roll_shifts(inputs: &[Port]) -> Option<Vec<usize>> {
    let from = &inputs[0];
    let (shifts, axes) = (inputs[1].ints()?, inputs[2].ints()?);
    let mut total = vec![0i64; from.rank()];
    for (i, &axis) in axes.iter().enumerate() {
        let axis = normalize_axis(axis, from.rank()).ok()?;
        let shift = if shifts.len() == 1 { shifts[0] } else { *shifts.get(i)? };
        let n = from.shape[axis] as i64;
        total[axis] = (total[axis] + shift.rem_euclid(n)) % n;
    }
    total.into_iter().map(|n| usize::try_from(n).ok()).collect()
}

/// The layout in which most bytes of these inputs lie.
pub fn common_layout<'a>(inputs: impl Iterator<Item = &'a Port>) -> Layout {
    let decided = inputs.filter(|p| p.constant.is_none() && !Layout::PLAIN.same_for(Layout::CHANNELS_LAST, &p.shape));
    let (mut plain, mut last) = (0, 0);
    for port in decided {
        match port.layout {
            Layout::CHANNELS_LAST => last += port.len(),
            _ => plain += port.len(),
        }
    }
    if last > 0 && last >= plain { Layout::CHANNELS_LAST } else { Layout::PLAIN }
}

fn strided_slice(op: &StridedSlice, inputs: &[Port], to: &Port) -> Option<Strided> {
    let from = &inputs[0];
    let begins = inputs[1].ints()?;
    let steps = match inputs.get(3) {
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
fn gather_one(op: &Gather, inputs: &[Port]) -> Option<Strided> {
    let (from, indices) = (&inputs[0], &inputs[1]);
    let [index] = indices.ints()?[..] else { return None };
    let axis = normalize_axis(*inputs[2].ints()?.first()?, from.rank()).ok()?;
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

fn tile(from: &Port, to: &Port) -> Strided {
    let ahead = to.rank() - from.rank();
    let own = |a: usize| a.checked_sub(ahead).map_or(1, |a| from.shape[a]);
    let dims: Vec<usize> = (0..to.rank()).flat_map(|a| [to.shape[a] / own(a), own(a)]).collect();
    let axes: Vec<usize> = (ahead..to.rank()).map(|a| 2 * a + 1).collect();
    let view = View::of(from).stretched(&dims, &axes);
    Strided { view, groups: (0..to.rank()).map(|a| vec![2 * a, 2 * a + 1]).collect() }
}

fn broadcast(op: &Broadcast, inputs: &[Port], to: &Port) -> Option<Strided> {
    let from = &inputs[0];
    let axes: Vec<usize> = match op.mode {
        BroadcastMode::Pdpd => return None,
        BroadcastMode::Explicit => inputs[2].ints()?.iter().map(|&a| a as usize).collect(),
        BroadcastMode::Numpy | BroadcastMode::Bidirectional => (to.rank() - from.rank()..to.rank()).collect(),
    };
    Some(Strided::plain(View::of(from).stretched(&to.shape, &axes)))
}

fn depth_to_space(op: &DepthToSpace, from: &Port, to: &Port) -> Strided {
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

fn space_to_depth(op: &SpaceToDepth, from: &Port, to: &Port) -> Strided {
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

fn shuffle(op: &ShuffleChannels, from: &Port) -> Option<Strided> {
    let axis = normalize_axis(op.axis, from.rank()).ok()?;
    let group = op.group as usize;
    let view = View::of(from).split(axis, &[group, from.shape[axis] / group]);
    let position = |a: usize| if a > axis { a + 1 } else { a };
    let mut groups: Vec<Vec<usize>> = (0..from.rank()).map(|a| vec![position(a)]).collect();
    groups[axis] = vec![axis + 1, axis];
    Some(Strided { view, groups })
}

fn reverse(op: &Reverse, inputs: &[Port]) -> Option<Strided> {
    let from = &inputs[0];
    let mut reversed = vec![false; from.rank()];
    for (i, entry) in inputs[1].ints()?.into_iter().enumerate() {
        match op.mode {
            ReverseMode::Index => reversed[normalize_axis(entry, from.rank()).ok()?] = true,
            ReverseMode::Mask => *reversed.get_mut(i)? = entry != 0,
        }
    }
    let axes = (0..from.rank()).filter(|&a| reversed[a]);
    Some(Strided::plain(axes.fold(View::of(from), |view, a| view.reversed(a))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_backward_begins_at_its_last_element() {
        let view = View::whole(&[2, 4]).sliced(1, 3, -2, 2);
        assert_eq!((view.start, view.strides, view.dims), (3, vec![4, -2], vec![2, 2]));
    }

    #[test]
    fn an_axis_of_one_takes_any_step() {
        let one = View::whole(&[5]).sliced(0, 2, 100, 1);
        assert_eq!((one.start, one.strides[0]), (2, 1));
    }

    #[test]
    fn axes_that_were_joined_lie_in_the_order_of_the_output() {
        let strided = Strided { view: View::whole(&[2, 3, 4]), groups: vec![vec![1], vec![0, 2]] };
        assert_eq!(strided.in_layout(Layout::PLAIN).strides, [4, 12, 1]);
    }
}
