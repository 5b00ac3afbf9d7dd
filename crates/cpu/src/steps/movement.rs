//! Operations that put arrays together, take them apart, widen or shift them, in the layout in which their data lies.

use super::looks::{axes_of, size_of, sliced};
use super::{Built, Io, Port, Site, Step, Work};
use crate::plan::Layout;
use carafe_graph::{Result, normalize_axis};
use carafe_kernels::movement::{self as kernels, StridedCopy};
use carafe_ops::movement::pad::PadMode;
use carafe_ops::movement::{Concat, Pad, PadV1, Roll, SliceScatter, Split, VariadicSplit};
use std::sync::Arc;

/// Outputs of a split at most.
const MOST: usize = 8;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.post.is_empty() {
        return Ok(None);
    }
    let op = site.op;
    Ok(if let Some(op) = op.get::<Concat>() {
        concat(site, op.axis)
    } else if op.is::<Split>() || op.is::<VariadicSplit>() {
        split(site)
    } else if let Some(op) = op.get::<Pad>() {
        pad(site, op.pad_mode)
    } else if let Some(op) = op.get::<PadV1>() {
        pad(site, op.pad_mode)
    } else if op.is::<Roll>() {
        roll(site)
    } else if op.is::<SliceScatter>() {
        slice_scatter(site)
    } else {
        None
    })
}

/// The layout in which most bytes of these inputs lie.
pub(super) fn common_layout<'a>(inputs: impl Iterator<Item = &'a Port>) -> Layout {
    let decided = inputs.filter(|p| p.constant.is_none() && !Layout::Plain.same_for(Layout::ChannelsLast, &p.shape));
    let (mut plain, mut last) = (0, 0);
    for port in decided {
        match port.layout {
            Layout::Plain => plain += port.len(),
            Layout::ChannelsLast => last += port.len(),
        }
    }
    if last > 0 && last >= plain { Layout::ChannelsLast } else { Layout::Plain }
}

/// One number an axis, in the order in which the axes lie.
fn in_memory(layout: Layout, values: &[i64]) -> Vec<i64> {
    layout.order(values.len()).into_iter().map(|a| values[a]).collect()
}

#[derive(Debug)]
struct Joined(kernels::Concat);

impl Step for Joined {
    fn kernel(&self) -> String {
        "concat".into()
    }
    fn run(&self, io: &mut Io<'_, '_>) -> Result<()> {
        let inputs = io.inputs;
        self.0.run(io.exec, |i| inputs[i], io.outputs[0]);
        Ok(())
    }
}

fn concat(site: &Site<'_>, axis: i64) -> Option<Built> {
    let rank = site.outputs[0].rank();
    let axis = normalize_axis(axis, rank).ok()?;
    let layout = common_layout(site.inputs.iter());
    if site.inputs.len() == 1 {
        return Some(Built::view(0, layout, layout));
    }
    let lengths: Vec<usize> = site.inputs.iter().map(|p| p.shape[axis]).collect();
    let dims = layout.dims(&site.inputs[0].shape);
    let joined = kernels::Concat::new(&dims, layout.axis(axis, rank), &lengths, size_of(&site.outputs[0]));
    let reads = (0..site.inputs.len()).map(|i| (i, layout)).collect();
    Some(Built::step(Joined(joined), reads, layout))
}

#[derive(Debug)]
struct Cut(kernels::Split);

impl Step for Cut {
    fn kernel(&self) -> String {
        "split".into()
    }
    fn run(&self, io: &mut Io<'_, '_>) -> Result<()> {
        self.0.run(io.exec, io.inputs[0], io.outputs);
        Ok(())
    }
}

fn split(site: &Site<'_>) -> Option<Built> {
    let from = &site.inputs[0];
    let axis = normalize_axis(*site.inputs[1].ints()?.first()?, from.rank()).ok()?;
    let lengths: Vec<usize> = site.outputs.iter().map(|p| p.shape[axis]).collect();
    if lengths.len() > MOST || lengths.iter().sum::<usize>() != from.shape[axis] {
        return None;
    }
    let layout = from.layout;
    if lengths.len() == 1 {
        return Some(Built::view(0, layout, layout));
    }
    let cut = kernels::Split::new(&layout.dims(&from.shape), layout.axis(axis, from.rank()), &lengths, size_of(from));
    Some(Built {
        work: Work::Step(Arc::new(Cut(cut))),
        reads: vec![(0, layout)],
        outputs: vec![layout; lengths.len()],
        workspace: 0,
        taken: None,
    })
}

#[derive(Debug)]
struct Padded {
    pad: kernels::Pad,
    has_value: bool,
}

impl Step for Padded {
    fn kernel(&self) -> String {
        "pad".into()
    }
    fn run(&self, io: &mut Io<'_, '_>) -> Result<()> {
        let value = if self.has_value { Some(io.inputs[1]) } else { None };
        self.pad.run(io.exec, io.inputs[0], value, io.outputs[0]);
        Ok(())
    }
}

fn pad(site: &Site<'_>, mode: PadMode) -> Option<Built> {
    let from = &site.inputs[0];
    let (begins, ends) = (site.inputs[1].ints()?, site.inputs[2].ints()?);
    let layout = from.layout;
    if begins.iter().chain(&ends).all(|&n| n == 0) {
        return Some(Built::view(0, layout, layout));
    }
    let kind = match mode {
        PadMode::Constant => kernels::PadMode::Constant,
        PadMode::Edge => kernels::PadMode::Edge,
        PadMode::Reflect => kernels::PadMode::Reflect,
        PadMode::Symmetric => kernels::PadMode::Symmetric,
    };
    let (begins, ends) = (in_memory(layout, &begins), in_memory(layout, &ends));
    let pad = kernels::Pad::new(&layout.dims(&from.shape), &begins, &ends, kind, size_of(from));
    let has_value = mode == PadMode::Constant && site.inputs.len() > 3;
    let mut reads = vec![(0, layout)];
    if has_value {
        reads.push((3, Layout::Plain));
    }
    Some(Built::step(Padded { pad, has_value }, reads, layout))
}

#[derive(Debug)]
struct Rolled(kernels::Roll);

impl Step for Rolled {
    fn kernel(&self) -> String {
        "roll".into()
    }
    fn run(&self, io: &mut Io<'_, '_>) -> Result<()> {
        self.0.run(io.exec, io.inputs[0], io.outputs[0]);
        Ok(())
    }
}

fn roll(site: &Site<'_>) -> Option<Built> {
    let from = &site.inputs[0];
    let (shifts, axes) = (site.inputs[1].ints()?, site.inputs[2].ints()?);
    let mut total = vec![0i64; from.rank()];
    for (i, &axis) in axes.iter().enumerate() {
        let axis = normalize_axis(axis, from.rank()).ok()?;
        let shift = if shifts.len() == 1 { shifts[0] } else { *shifts.get(i)? };
        let n = from.shape[axis] as i64;
        total[axis] = (total[axis] + shift.rem_euclid(n)) % n;
    }
    let layout = from.layout;
    let roll = kernels::Roll::new(&layout.dims(&from.shape), &in_memory(layout, &total), size_of(from));
    Some(Built::step(Rolled(roll), vec![(0, layout)], layout))
}

/// The data, then the updates over a part of it.
#[derive(Debug)]
struct Overlaid {
    data: StridedCopy,
    updates: StridedCopy,
}

impl Step for Overlaid {
    fn kernel(&self) -> String {
        "slice_scatter".into()
    }
    fn run(&self, io: &mut Io<'_, '_>) -> Result<()> {
        self.data.run(io.exec, io.inputs[0], io.outputs[0]);
        self.updates.run(io.exec, io.inputs[1], io.outputs[0]);
        Ok(())
    }
}

fn slice_scatter(site: &Site<'_>) -> Option<Built> {
    let (data, updates) = (&site.inputs[0], &site.inputs[1]);
    if data.rank() != updates.rank() {
        return None;
    }
    let layout = data.layout;
    let place = sliced(site, axes_of(data), 2, &updates.shape)?;
    let from = axes_of(&Port { layout, ..updates.clone() });
    let step = Overlaid {
        data: StridedCopy::of(&kernels::View::whole(&[data.len()]), size_of(data)),
        updates: StridedCopy::between(&from, &place, size_of(data)),
    };
    Some(Built::step(step, vec![(0, layout), (1, layout)], layout))
}
