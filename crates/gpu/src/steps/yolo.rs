//! Heads of YOLO networks: RegionYolo and ReorgYolo.

use super::movement::size_of;
use super::{Built, Site, types};
use crate::launch::{Arg, Launch, Launches};
use crate::programs::Source;
use carafe_graph::Result;
use carafe_ops::detection::{RegionYolo, ReorgYolo};
use carafe_plan::Layout;

const SOURCE: Source = Source("yolo.cl");

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.group || !site.epilogue.is_empty() || site.inputs.is_empty() || site.inputs[0].rank() != 4 {
        return Ok(None);
    }
    let (name, launch) = if let Some(op) = site.op.get::<RegionYolo>() {
        ("region_yolo", region(site, op)?)
    } else if let Some(op) = site.op.get::<ReorgYolo>() {
        ("reorg_yolo", reorg(site, op)?)
    } else {
        return Ok(None);
    };
    let Some(launch) = launch else { return Ok(None) };
    let form = |port| site.cx.form(port, Layout::PLAIN);
    let step = Launches::new(name, vec![launch]);
    Ok(Some(step.built([(0, form(&site.inputs[0]))], [form(&site.outputs[0])])))
}

fn region(site: &Site<'_>, op: &RegionYolo) -> Result<Option<Launch>> {
    let (data, cx) = (&site.inputs[0], site.cx);
    let regions = if op.do_softmax { op.num as usize } else { op.mask.len() };
    let (area, count) = (data.shape[2] * data.shape[3], data.shape[0] * regions * data.shape[2] * data.shape[3]);
    if !data.is_f32() || count == 0 {
        return Ok(None);
    }
    let kernel = cx.kernel(&SOURCE, "region", &[("SOFTMAX", usize::from(op.do_softmax).to_string())])?;
    let sizes = [count, area, regions, data.shape[1], op.coords as usize, op.classes as usize];
    let args = [Arg::Read(0), Arg::Write(0)].into_iter().chain(sizes.map(Arg::from)).collect();
    Ok(Some(Launch::flat(&kernel, args, count, cx.group())))
}

fn reorg(site: &Site<'_>, op: &ReorgYolo) -> Result<Option<Launch>> {
    let (data, count, cx) = (&site.inputs[0], site.outputs[0].len(), site.cx);
    if types::movable(data.ty).is_none() || count == 0 {
        return Ok(None);
    }
    let size = types::of_size(size_of(cx, data)).to_string();
    let kernel = cx.kernel(&SOURCE, "reorg", &[("REORG", "1".into()), ("T", size)])?;
    let (s, channels) = (op.stride as usize, data.shape[1]);
    let sizes = [count, channels, data.shape[2], data.shape[3], s, (channels / (s * s)).max(1)];
    let args = [Arg::Read(0), Arg::Write(0)].into_iter().chain(sizes.map(Arg::from)).collect();
    Ok(Some(Launch::flat(&kernel, args, count, cx.group())))
}
