//! DetectionOutput: SSD boxes decoded, suppressed and listed. Caffe's list has as many rows as there are detections; here its
//! length is fixed, as the IR has it: the row after the last one has image -1 and the rest are zero.

use super::cx::LayerCx;
use super::numbers::part;
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::detection::DetectionOutput;
use carafe_ops::detection::detection_output::CodeType;
use carafe_ops::movement::Tile;

pub(crate) const RULES: &[StaticRule] = &[rule("DetectionOutput", 0, detection_output)];

/// Files and pictures that Caffe may write beside.
const WRITTEN: &[&str] = &[
    "save_output_param__label_map_file",
    "save_output_param__name_size_file",
    "save_output_param__num_test_image",
    "save_output_param__output_directory",
    "save_output_param__output_format",
    "save_output_param__output_name_prefix",
    "save_output_param__resize_param__height",
    "save_output_param__resize_param__height_scale",
    "save_output_param__resize_param__interp_mode",
    "save_output_param__resize_param__pad_mode",
    "save_output_param__resize_param__pad_value",
    "save_output_param__resize_param__prob",
    "save_output_param__resize_param__resize_mode",
    "save_output_param__resize_param__width",
    "save_output_param__resize_param__width_scale",
    "save_file",
    "visualize",
    "visualize_threshold",
];

fn detection_output(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let bottoms = n.bottoms()?;
    // A fourth bottom alone is the image that `visualize` draws on.
    let (loc, conf, prior, first_stage) = match bottoms[..] {
        [loc, conf, prior] | [loc, conf, prior, _] => (loc, conf, prior, vec![]),
        [loc, conf, prior, objects, shifts] => (loc, conf, prior, vec![objects, shifts]),
        _ => return Err(n.fail(format!("takes 3 or 5 bottoms, has {}", bottoms.len()))),
    };
    n.ignore(WRITTEN);
    let classes: i64 = n.required("num_classes")?;
    let share_location: bool = n.attr("share_location", true)?;
    let eta: f32 = n.attr("nms_param__eta", 1.0)?;
    let nms_threshold: f32 = n.attr("nms_param__nms_threshold", 0.3)?;
    if !(eta > 0.0 && eta <= 1.0) {
        return Err(n.fail(format!("`eta` must be above 0 and at most 1, found {eta}")));
    }
    // The threshold shrinks while it is above a half, so one that is not stays as it is.
    if eta != 1.0 && nms_threshold > 0.5 {
        return Err(n.unsupported(format!(
            "an overlap of {nms_threshold} that shrinks by `eta` = {eta} is not supported; one of 0.5 or less does not shrink"
        )));
    }
    let top_k: i64 = n.attr("nms_param__top_k", -1)?;
    let variance_encoded_in_target: bool = n.attr("variance_encoded_in_target", false)?;
    let normalized: bool = n.attr("normalized", true)?;
    let code: String = n.attr("code_type", "CORNER".to_string())?;
    let code = code.rsplit('.').next().unwrap_or_default().to_string();
    let (code_type, loc) = match code.as_str() {
        "CENTER_SIZE" => (CodeType::CenterSize, loc),
        "CORNER" => (CodeType::Corner, loc),
        "CORNER_SIZE" if normalized => {
            (CodeType::Corner, in_pixels(n, loc, prior, if share_location { 1 } else { classes })?)
        }
        other => return Err(n.unsupported(format!("`code_type` {other} is not supported here"))),
    };
    // Priors come with their variances all the same.
    let prior = match variance_encoded_in_target {
        true => part(n, prior, &[1], &[0], &[1], &[1])?,
        false => prior,
    };
    let op = DetectionOutput {
        background_label_id: n.attr("background_label_id", 0)?,
        top_k: if top_k == 0 { -1 } else { top_k },
        variance_encoded_in_target,
        keep_top_k: vec![n.attr("keep_top_k", -1)?],
        code_type,
        share_location,
        nms_threshold,
        confidence_threshold: n.attr("confidence_threshold", f32::MIN)?,
        clip_after_nms: false,
        clip_before_nms: false,
        decrease_label_id: false,
        normalized,
        input_height: n.attr("input_height", 1)?,
        input_width: n.attr("input_width", 1)?,
        objectness_score: n.attr("objectness_score", if first_stage.is_empty() { 0.0 } else { 0.01 })?,
    };
    let inputs = [&[loc, conf, prior], &first_stage[..]].concat();
    Ok(n.emit(op, &inputs)?.into())
}

// CORNER_SIZE counts in sizes of the prior: times these, the corners are plain ones.
fn in_pixels(n: &mut NodeCx<'_>, loc: Value, prior: Value, classes: i64) -> Result<Value> {
    let boxes = part(n, prior, &[1], &[0], &[1], &[1])?;
    let boxes = n.reshape(boxes, &[-1, 4])?;
    let low = part(n, boxes, &[1], &[0], &[2], &[1])?;
    let high = part(n, boxes, &[1], &[2], &[4], &[1])?;
    let sides = n.minus(high, low)?;
    let times = n.i64s(&[1, 2 * classes.max(1)])?;
    let sides = n.emit(Tile, &[sides, times])?;
    let sides = n.reshape(sides, &[1, -1])?;
    n.times(loc, sides)
}
