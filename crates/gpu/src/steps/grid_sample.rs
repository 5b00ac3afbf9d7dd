//! GridSample: an image read at points of a grid, which stays f32 in whatever type the image lies.

use super::{Built, Site};
use crate::launch::{Arg, Launch, Launches};
use crate::programs::Source;
use carafe_graph::Result;
use carafe_ops::resize::GridSample;
use carafe_ops::resize::grid_sample::{PaddingMode, SampleMode};
use carafe_plan::Layout;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(op) = site.op.get::<GridSample>().filter(|_| !site.group && site.epilogue.is_empty()) else {
        return Ok(None);
    };
    let (data, grid, out, cx) = (&site.inputs[0], &site.inputs[1], &site.outputs[0], site.cx);
    if !data.is_f32() || !grid.is_f32() || data.shape.contains(&0) || out.shape.contains(&0) {
        return Ok(None);
    }
    let mode = match op.mode {
        SampleMode::Bilinear => 0,
        SampleMode::Bicubic => 1,
        SampleMode::Nearest => 2,
    };
    let padding = match op.padding_mode {
        PaddingMode::Zeros => 0,
        PaddingMode::Border => 1,
        PaddingMode::Reflection => 2,
    };
    let macros = [("MODE", mode), ("PADDING", padding), ("ALIGN", i32::from(op.align_corners))];
    let kernel = cx.kernel(&Source("grid_sample.cl"), "grid_sample", &macros.map(|(n, v)| (n, v.to_string())))?;
    let sizes = [out.len(), data.shape[1], data.shape[2], data.shape[3], out.shape[2] * out.shape[3]];
    let args = [Arg::Read(0), Arg::Read(1), Arg::Write(0)].into_iter().chain(sizes.map(Arg::from)).collect();
    let step = Launches::new("grid_sample", vec![Launch::flat(&kernel, args, out.len(), cx.group())]);
    let reads = [(0, cx.form(data, Layout::PLAIN)), (1, Layout::PLAIN.into())];
    Ok(Some(step.built(reads, [cx.form(out, Layout::PLAIN)])))
}
