//! Regions of feature maps as grids of bins: ROIAlign, ROIPooling, PSROIPooling. Corners of regions stay f32 in whatever type the
//! maps lie.

use super::{Built, Site};
use crate::launch::{Arg, Launch, Launches};
use crate::programs::Source;
use carafe_graph::Result;
use carafe_ops::detection::psroi_pooling::PsRoiMode;
use carafe_ops::detection::roi_align::AlignedMode;
use carafe_ops::detection::roi_pooling::RoiMethod;
use carafe_ops::detection::{PSROIPooling, PoolMode, ROIAlign, ROIPooling};
use carafe_plan::{Form, Layout};
use carafe_tensor::ElementType;

const SOURCE: Source = Source("regions.cl");

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let fits = !site.group && site.epilogue.is_empty() && site.inputs.len() >= 2;
    if !fits || site.inputs[..2].iter().any(|p| !p.is_f32() || p.shape.contains(&0)) || site.inputs[0].rank() != 4 {
        return Ok(None);
    }
    if let Some(op) = site.op.get::<ROIAlign>() {
        return align(site, op);
    }
    let (name, flag, sizes, scale) = if let Some(op) = site.op.get::<ROIPooling>() {
        let sizes = vec![op.pooled_h as usize, op.pooled_w as usize];
        ("roi_pooling", op.method == RoiMethod::Bilinear, sizes, op.spatial_scale)
    } else if let Some(op) = site.op.get::<PSROIPooling>() {
        let sizes = [op.group_size, op.spatial_bins_y, op.spatial_bins_x].map(|n| n as usize).to_vec();
        ("psroi_pooling", op.mode == PsRoiMode::Bilinear, sizes, op.spatial_scale)
    } else {
        return Ok(None);
    };
    let (data, out, cx) = (&site.inputs[0], &site.outputs[0], site.cx);
    let kernel = cx.kernel(&SOURCE, name, &[("BILINEAR", usize::from(flag).to_string())])?;
    let mut args = vec![Arg::Read(0), Arg::Read(1), Arg::Write(0)];
    args.extend([out.len(), out.shape[1], data.shape[2], data.shape[3]].map(Arg::from));
    args.extend(sizes.into_iter().chain([data.shape[0]]).map(Arg::from));
    args.extend([scale.into(), Arg::Faults, Arg::Step]);
    Ok(Some(built(site, name, Launch::flat(&kernel, args, out.len(), cx.group()), 2)))
}

fn align(site: &Site<'_>, op: &ROIAlign) -> Result<Option<Built>> {
    let (data, out, cx) = (&site.inputs[0], &site.outputs[0], site.cx);
    let index = match site.inputs[2].ty {
        ElementType::I32 => "int",
        ElementType::I64 => "long",
        _ => return Ok(None),
    };
    let (before, after, least) = match op.aligned_mode {
        AlignedMode::Asymmetric => (0.0, 0.0, 1.0),
        AlignedMode::HalfPixelForNn => (0.0, -0.5, f32::NEG_INFINITY),
        AlignedMode::HalfPixel => (0.5, -0.5, f32::NEG_INFINITY),
    };
    let largest = usize::from(op.mode == PoolMode::Max).to_string();
    let kernel = cx.kernel(&SOURCE, "roi_align", &[("ALIGN_MAX", largest), ("INDEX", index.into())])?;
    let mut args = vec![Arg::Read(0), Arg::Read(1), Arg::Read(2), Arg::Write(0)];
    args.extend([out.len(), out.shape[1], data.shape[2], data.shape[3], out.shape[2], out.shape[3]].map(Arg::from));
    args.extend([data.shape[0], op.sampling_ratio.max(0) as usize].map(Arg::from));
    args.extend([op.spatial_scale, before, after, least].map(Arg::from));
    args.extend([Arg::Faults, Arg::Step]);
    Ok(Some(built(site, "roi_align", Launch::flat(&kernel, args, out.len(), cx.group()), 3)))
}

fn built(site: &Site<'_>, name: &str, launch: Launch, inputs: usize) -> Built {
    let maps = (0, site.cx.form(&site.inputs[0], Layout::PLAIN));
    let others = (1..inputs).map(|i| (i, Form::from(Layout::PLAIN)));
    let output = site.cx.form(&site.outputs[0], Layout::PLAIN);
    Launches::new(name, vec![launch]).built([maps].into_iter().chain(others), [output])
}
