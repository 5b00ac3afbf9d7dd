//! Regions `image, x1, y1, x2, y2` of a feature map as grids of one size.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::detection::deformable_psroi_pooling::DeformableMode;
use carafe_ops::detection::psroi_pooling::PsRoiMode;
use carafe_ops::detection::roi_align::AlignedMode;
use carafe_ops::detection::roi_pooling::RoiMethod;
use carafe_ops::detection::{DeformablePSROIPooling, PSROIPooling, PoolMode, ROIAlign, ROIPooling};
use carafe_tensor::ElementType;

pub(super) const RULES: &[StaticRule] = &[
    rule("ROIPooling", 0, roi_pooling),
    rule("_contrib_DeformablePSROIPooling", 0, deformable_psroi_pooling),
    rule("_contrib_PSROIPooling", 0, psroi_pooling),
    rule("_contrib_ROIAlign", 0, roi_align),
];

fn pooled_size(n: &NodeCx<'_>) -> Result<[i64; 2]> {
    match n.ints_of("pooled_size")?[..] {
        [h, w] => Ok([h, w]),
        [one] => Ok([one, one]),
        _ => Err(n.fail("attribute `pooled_size` must give height and width")),
    }
}

fn scale(n: &NodeCx<'_>) -> Result<f32> {
    let scale = n.opt_float("spatial_scale")?;
    Ok(scale.ok_or_else(|| n.fail("attribute `spatial_scale` is required and missing"))? as f32)
}

fn roi_pooling(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, rois) = (n.input(0)?, n.input(1)?);
    let [pooled_h, pooled_w] = pooled_size(n)?;
    let op = ROIPooling { pooled_h, pooled_w, spatial_scale: scale(n)?, method: RoiMethod::Max };
    Ok(n.emit(op, &[x, rois])?.into())
}

fn roi_align(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, rois) = (n.input(0)?, n.input(1)?);
    if n.flag("position_sensitive", false)? {
        return Err(n.unsupported("attribute `position_sensitive` must be False"));
    }
    let [pooled_h, pooled_w] = pooled_size(n)?;
    let aligned = n.flag("aligned", false)?;
    let op = ROIAlign {
        pooled_h,
        pooled_w,
        // As many samples as the region is large, where none are asked for.
        sampling_ratio: n.int("sample_ratio", -1)?.max(0),
        spatial_scale: scale(n)?,
        mode: PoolMode::Avg,
        aligned_mode: if aligned { AlignedMode::HalfPixelForNn } else { AlignedMode::Asymmetric },
    };
    let boxes = n.part(rois, 1, 5, 1)?;
    let images: Value = n.part(rois, 0, 1, 1)?;
    let images = n.squeeze(images, &[1])?;
    let images = n.convert(images, ElementType::I32)?;
    Ok(n.emit(op, &[x, boxes, images])?.into())
}

fn psroi_pooling(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, rois) = (n.input(0)?, n.input(1)?);
    let pooled = n.needed_int("pooled_size")?;
    let group_size = n.int("group_size", 0)?;
    if group_size != 0 && group_size != pooled {
        return Err(n.unsupported(format!("`group_size` is {group_size} and `pooled_size` {pooled}; they must be equal")));
    }
    let op = PSROIPooling {
        output_dim: n.needed_int("output_dim")?,
        group_size: pooled,
        spatial_scale: scale(n)?,
        mode: PsRoiMode::Average,
        spatial_bins_x: 1,
        spatial_bins_y: 1,
    };
    Ok(n.emit(op, &[x, rois])?.into())
}

fn deformable_psroi_pooling(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, rois) = (n.input(0)?, n.input(1)?);
    let pooled = n.needed_int("pooled_size")?;
    let group_size = n.needed_int("group_size")?;
    if group_size != pooled {
        return Err(n.unsupported(format!("`group_size` is {group_size} and `pooled_size` {pooled}; they must be equal")));
    }
    let samples = n.int("sample_per_part", 1)?;
    let part_size = n.int("part_size", 0)?;
    let op = DeformablePSROIPooling {
        output_dim: n.needed_int("output_dim")?,
        spatial_scale: scale(n)?,
        group_size,
        mode: DeformableMode::BilinearDeformable,
        spatial_bins_x: samples,
        spatial_bins_y: samples,
        trans_std: n.float("trans_std", 0.0)? as f32,
        part_size: if part_size == 0 { pooled } else { part_size },
    };
    if n.flag("no_trans", false)? {
        n.ignore_inputs(2);
        return Ok(n.emit(op, &[x, rois])?.into());
    }
    let offsets = n.input(2)?;
    Ok(n.emit(op, &[x, rois, offsets])?.into())
}
