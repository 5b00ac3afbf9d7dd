//! Operations that put arrays together, take them apart, widen or shift them, in the layout in which their data lies.

use super::strided_views::{for_kernels, size_of};
use super::{Built, Cpu, Io, Port, Site, Step, Work};
use carafe_graph::{Result, normalize_axis};
use carafe_kernels::movement::{self as kernels, RowPiece, StridedCopy};
use carafe_ops::movement::pad::PadMode;
use carafe_ops::movement::{Concat, Pad, Roll, SliceScatter, Split, VariadicSplit};
use carafe_plan::{Layout, Operand, Parts, RowStrides, View, common_layout, roll_shifts, slice_of};
use std::sync::Arc;

/// Outputs of a split at most.
const MOST: usize = 8;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() {
        return Ok(None);
    }
    let op = site.op;
    Ok(if let Some(op) = op.get::<Concat>() {
        concat(site, op.axis)
    } else if op.is::<Split>() || op.is::<VariadicSplit>() {
        split(site)
    } else if let Some(op) = op.get::<Pad>() {
        pad(site, op.pad_mode)
    } else if op.is::<Roll>() {
        roll(site)
    } else if op.is::<SliceScatter>() {
        slice_scatter(site)
    } else {
        None
    })
}

/// One number an axis, in the order in which the axes lie.
fn in_memory(layout: Layout, values: &[i64]) -> Vec<i64> {
    layout.order(values.len()).into_iter().map(|a| values[a]).collect()
}

/// A step that concatenates or splits, with strided operands.
pub(crate) fn parts_step(parts: Parts, strides: &RowStrides) -> Arc<dyn Step<Cpu>> {
    let stride = |i: usize, len| if parts.joins { strides.read(i, len) } else { strides.write(i, len) };
    let ranges = parts.ranges.iter().enumerate();
    let rows: Vec<RowPiece> = ranges.map(|(i, &(start, len))| RowPiece { start, len, pitch: stride(i, len) }).collect();
    let (outer, size) = (parts.outer, parts.elem_size);
    if parts.joins {
        let kernel = kernels::Concat::of_rows(outer, &rows, strides.write(0, parts.whole), size);
        return Arc::new(Joined { kernel, parts });
    }
    let kernel = kernels::Split::of_rows(outer, &rows, strides.read(0, parts.whole), size);
    Arc::new(Cut { kernel, parts })
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

#[derive(Debug)]
struct Joined {
    kernel: kernels::Concat,
    parts: Parts,
}

impl Step<Cpu> for Joined {
    fn kernel(&self) -> String {
        "concat".into()
    }
    fn accepts_row_stride(&self, _: Operand, _: usize) -> bool {
        self.parts.of_rows
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        Some(parts_step(self.parts.clone(), strides))
    }
    fn parts(&self) -> Option<Parts> {
        Some(self.parts.clone())
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let inputs = io.inputs;
        self.kernel.run(io.exec, |i| inputs[i], io.outputs[0]);
        Ok(())
    }
}

fn concat(site: &Site<'_>, axis: i64) -> Option<Built> {
    let out = &site.outputs[0];
    let axis = normalize_axis(axis, out.rank()).ok()?;
    let layout = common_layout(site.inputs.iter());
    if site.inputs.len() == 1 {
        return Some(Built::view(0, layout, layout));
    }
    let lengths: Vec<usize> = site.inputs.iter().map(|p| p.shape[axis]).collect();
    let position = layout.axis(axis, out.rank());
    let parts = parts_of(&layout.dims(&out.shape), position, &lengths, size_of(out), true);
    let reads = (0..site.inputs.len()).map(|i| (i, layout));
    let work = Work::Step(parts_step(parts, &RowStrides::default()));
    Some(Built::new(work, reads, [layout]))
}

#[derive(Debug)]
struct Cut {
    kernel: kernels::Split,
    parts: Parts,
}

impl Step<Cpu> for Cut {
    fn kernel(&self) -> String {
        "split".into()
    }
    fn accepts_row_stride(&self, operand: Operand, _: usize) -> bool {
        // What it writes is better seen than copied.
        self.parts.of_rows && operand == Operand::Read(0)
    }
    fn strided(&self, strides: &RowStrides) -> Option<Arc<dyn Step<Cpu>>> {
        Some(parts_step(self.parts.clone(), strides))
    }
    fn parts(&self) -> Option<Parts> {
        Some(self.parts.clone())
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        self.kernel.run(io.exec, io.inputs[0], io.outputs);
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
    let position = layout.axis(axis, from.rank());
    let parts = parts_of(&layout.dims(&from.shape), position, &lengths, size_of(from), false);
    let work = Work::Step(parts_step(parts, &RowStrides::default()));
    Some(Built::new(work, [(0, layout)], vec![layout; lengths.len()]))
}

#[derive(Debug)]
struct Padded {
    pad: kernels::Pad,
    has_value: bool,
}

impl Step<Cpu> for Padded {
    fn kernel(&self) -> String {
        "pad".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
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
        reads.push((3, Layout::PLAIN));
    }
    Some(Built::step(Padded { pad, has_value }, reads, layout))
}

#[derive(Debug)]
struct Rolled(kernels::Roll);

impl Step<Cpu> for Rolled {
    fn kernel(&self) -> String {
        "roll".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        self.0.run(io.exec, io.inputs[0], io.outputs[0]);
        Ok(())
    }
}

fn roll(site: &Site<'_>) -> Option<Built> {
    let from = &site.inputs[0];
    let total: Vec<i64> = roll_shifts(&site.inputs)?.into_iter().map(|n| n as i64).collect();
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

impl Step<Cpu> for Overlaid {
    fn kernel(&self) -> String {
        "slice_scatter".into()
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
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
    let position = for_kernels(slice_of(&site.inputs, View::of(data), 2, &updates.shape)?);
    let from = for_kernels(View::of(&Port { layout, ..updates.clone() }));
    let step = Overlaid {
        data: StridedCopy::of(&kernels::View::whole(&[data.len()]), size_of(data)),
        updates: StridedCopy::between(&from, &position, size_of(data)),
    };
    Some(Built::step(step, vec![(0, layout), (1, layout)], layout))
}
