//! Operations whose result is a strided view of their input become one copy, or none where the view changes nothing. Where blocks of
//! a batch are cropped or padded there are two.

use super::reorder::Copy;
use super::{Built, Cpu, Io, Port, Site, Step};
use carafe_graph::Result;
use carafe_kernels::movement::{self, Pad, PadMode, StridedCopy};
use carafe_ops::movement::{BatchToSpace, Identity, SpaceToBatch};
use carafe_plan::{Strided, View, kept_layout};

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() {
        return Ok(None);
    }
    if site.op.is::<Identity>() {
        return Ok(Some(Built::view(0, site.layout(0), site.layout(0))));
    }
    let Some((name, strided)) = Strided::of(site.op, &site.inputs, &site.outputs[0]) else {
        return Ok(match () {
            _ if site.op.is::<BatchToSpace>() => batch_to_space(site),
            _ if site.op.is::<SpaceToBatch>() => space_to_batch(site),
            _ => None,
        });
    };
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let layout = kept_layout(from, to);
    let view = for_kernels(strided.in_layout(layout));
    let copy = StridedCopy::of(&view, size_of(to));
    if copy.is_plain() && copy.bytes() == from.len() * size_of(from) {
        return Ok(Some(Built::view(0, from.layout, layout)));
    }
    Ok(Some(Built::step(Copy::new(name, view, size_of(to)), vec![(0, from.layout)], layout)))
}

/// A view as kernels take it.
pub(super) fn for_kernels(View { start, dims, strides }: View) -> movement::View {
    movement::View { start, dims, strides }
}

/// Bytes of an element.
pub(super) fn size_of(port: &Port) -> usize {
    port.ty.bits() / 8
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

// Where something is cropped: the batch in its place, then what is left of it.
fn batch_to_space(site: &Site<'_>) -> Option<Built> {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let begins: Vec<usize> =
        site.inputs[2].ints()?.into_iter().map(|n| usize::try_from(n).ok()).collect::<Option<_>>()?;
    let (strided, joined) = Strided::batch_to_space(&site.inputs, to)?;
    let layout = kept_layout(from, to);
    let whole = Port { shape: joined, layout, ..from.clone() };
    let cropped = (1..from.rank()).fold(View::of(&whole), |view, a| view.sliced(a, begins[a], 1, to.shape[a]));
    let last = StridedCopy::of(&for_kernels(Strided::plain(cropped).in_layout(layout)), size_of(to));
    let first = Some(StridedCopy::of(&for_kernels(strided.in_layout(layout)), size_of(to)));
    let step = Twice { name: "batch_to_space", pad: None, first, last };
    Some(Built::step(step, vec![(0, from.layout)], layout).with_workspace(whole.len() * size_of(to)))
}

// Where something is padded: the padded input, then its blocks.
fn space_to_batch(site: &Site<'_>) -> Option<Built> {
    let (from, to) = (&site.inputs[0], &site.outputs[0]);
    let (begins, rank) = (site.inputs[2].ints()?, from.rank());
    let (strided, padded) = Strided::space_to_batch(&site.inputs, to)?;
    let ends: Vec<i64> = (0..rank).map(|a| padded[a] as i64 - from.shape[a] as i64 - begins[a]).collect();
    let in_memory = |v: &[i64]| from.layout.order(rank).into_iter().map(|a| v[a]).collect::<Vec<_>>();
    let dims = from.layout.dims(&from.shape);
    let pad = Some(Pad::new(&dims, &in_memory(&begins), &in_memory(&ends), PadMode::Constant, size_of(from)));
    let layout = kept_layout(from, to);
    let last = StridedCopy::of(&for_kernels(strided.in_layout(layout)), size_of(to));
    let step = Twice { name: "space_to_batch", pad, first: None, last };
    let bytes = padded.iter().product::<usize>() * size_of(to);
    Some(Built::step(step, vec![(0, from.layout)], layout).with_workspace(bytes))
}
