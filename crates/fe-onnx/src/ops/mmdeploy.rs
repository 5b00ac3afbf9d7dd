//! Operations of the domain `mmdeploy`, which exporters of the OpenMMLab projects write.

use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule_in};
use carafe_graph::Result;
use carafe_ops::detection::{NMSRotated, ROIAlignRotated};
use carafe_tensor::ElementType;

const MMDEPLOY: &str = "mmdeploy";

pub(crate) const RULES: &[StaticRule] = &[
    rule_in(MMDEPLOY, "MMCVRoIAlignRotated", 1, roi_align_rotated),
    rule_in(MMDEPLOY, "NMSRotated", 1, nms_rotated),
];

// A row of regions is the index of its image, the center, the size and the angle.
fn roi_align_rotated(n: &mut NodeCx<'_>) -> Result<Outputs> {
    if n.attr("aligned", 1i64)? == 0 {
        return Err(n.unsupported("regions that are not aligned (aligned = 0) are not supported"));
    }
    let op = ROIAlignRotated {
        pooled_h: n.attr("output_height", 1)?,
        pooled_w: n.attr("output_width", 1)?,
        sampling_ratio: n.attr("sampling_ratio", 1)?,
        spatial_scale: n.attr("spatial_scale", 1.0)?,
        clockwise_mode: n.attr("clockwise", 0i64)? != 0,
    };
    let (x, rows) = (n.input(0)?, n.input(1)?);
    let image = n.part(rows, 0, 1, 1)?;
    let image = n.reshape(image, &[-1])?;
    let image = n.convert(image, ElementType::I32)?;
    let regions = n.part(rows, 1, i64::MAX, 1)?;
    Ok(n.emit(op, &[x, regions, image])?.into())
}

fn nms_rotated(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (iou, score): (f32, f32) = (n.required("iou_threshold")?, n.required("score_threshold")?);
    let op = NMSRotated { sort_result_descending: false, output_type: ElementType::I64, clockwise: true };
    let (boxes, scores) = (n.input(0)?, n.input(1)?);
    let most = n.i64(i64::MAX)?;
    let (iou, score) = (n.scalar(ElementType::F32, f64::from(iou))?, n.scalar(ElementType::F32, f64::from(score))?);
    Ok(n.emit_all(op, &[boxes, scores, most, iou, score])?[0].into())
}
