//! ROIPooling and PSROIPooling: regions `image, x1, y1, x2, y2` of a feature map as grids of one size.

use super::cx::LayerCx;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::detection::psroi_pooling::PsRoiMode;
use carafe_ops::detection::roi_pooling::RoiMethod;
use carafe_ops::detection::{PSROIPooling, ROIPooling};

pub(crate) const RULES: &[StaticRule] =
    &[rule("PSROIPooling", 0, psroi_pooling), rule("ROIPooling", 0, roi_pooling)];

fn roi_pooling(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let [x, rois] = n.bottoms_of()?;
    let op = ROIPooling {
        pooled_h: n.attr("pooled_h", 0)?,
        pooled_w: n.attr("pooled_w", 0)?,
        spatial_scale: n.attr("spatial_scale", 1.0)?,
        method: RoiMethod::Max,
    };
    let rois = as_list(n, rois)?;
    Ok(n.emit(op, &[x, rois])?.into())
}

fn psroi_pooling(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let [x, rois] = n.bottoms_of()?;
    let op = PSROIPooling {
        output_dim: n.required("output_dim")?,
        group_size: n.required("group_size")?,
        spatial_scale: n.required("spatial_scale")?,
        mode: PsRoiMode::Average,
        spatial_bins_x: 1,
        spatial_bins_y: 1,
    };
    let rois = as_list(n, rois)?;
    Ok(n.emit(op, &[x, rois])?.into())
}

// Old nets give regions as images of one pixel.
fn as_list(n: &mut NodeCx<'_>, rois: Value) -> Result<Value> {
    if n.rank(rois) == Some(2) { Ok(rois) } else { n.reshape(rois, &[-1, 5]) }
}
