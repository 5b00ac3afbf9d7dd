//! Operations of `org.openvinotoolkit`, which are IR operations written down as ONNX nodes. Older exporters left the domain
//! out, so each is known in the default domain too. An attribute the file leaves out has the default of this table, not
//! of the operation.

use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule, rule_in};
use carafe_graph::{AttrMap, AttrValue, OpNew, Result, Value};
use carafe_ops::activation::Swish;
use carafe_ops::convolution::DeformableConvolution;
use carafe_ops::convolution::window::PadType;
use carafe_ops::detection::{
    DetectionOutput, ExperimentalDetectronDetectionOutput, ExperimentalDetectronGenerateProposalsSingleImage,
    ExperimentalDetectronPriorGridGenerator, ExperimentalDetectronROIFeatureExtractor, ExperimentalDetectronTopKROIs,
    GenerateProposals, PriorBox, PriorBoxClustered,
};
use carafe_ops::normalization::normalize_l2::EpsMode;
use carafe_ops::normalization::{GroupNormalization, NormalizeL2};
use carafe_ops::quantize::FakeQuantize;

const OV: &str = "org.openvinotoolkit";

macro_rules! both_domains {
    ($($name:literal => $translate:expr),* $(,)?) => {
        pub(crate) const RULES: &[StaticRule] = &[
            $(rule_in(OV, $name, 1, $translate), rule($name, 1, $translate),)*
            rule_in(OV, "Swish", 1, swish),
        ];
    };
}

both_domains! {
    "DeformableConv2D" => deformable_conv,
    "DetectionOutput" => detection_output,
    "ExperimentalDetectronDetectionOutput" => detectron_detection_output,
    "ExperimentalDetectronGenerateProposalsSingleImage" => detectron_proposals,
    "ExperimentalDetectronGroupNorm" => group_norm,
    "ExperimentalDetectronPriorGridGenerator" => |n| same::<ExperimentalDetectronPriorGridGenerator>(n, &[], &[]),
    "ExperimentalDetectronROIFeatureExtractor" => detectron_features,
    "ExperimentalDetectronTopKROIs" => |n| same::<ExperimentalDetectronTopKROIs>(n, &[("max_rois", int(1000))], &[]),
    "FakeQuantize" => |n| same::<FakeQuantize>(n, &[], &[]),
    "GenerateProposals" => generate_proposals,
    "GroupNorm" => group_norm,
    "Normalize" => normalize,
    "PriorBox" => prior_box,
    "PriorBoxClustered" => prior_box_clustered,
}

fn int(v: i64) -> AttrValue {
    AttrValue::Int(v)
}
fn float(v: f64) -> AttrValue {
    AttrValue::Float(v)
}

// An operation by its attributes; `defaults` stand in for missing ones, `renamed` are (theirs, ours).
fn op<O: OpNew>(n: &NodeCx<'_>, defaults: &[(&str, AttrValue)], renamed: &[(&str, &str)]) -> Result<O> {
    let mut attrs = AttrMap::new();
    for (name, value) in defaults {
        attrs.set(name.to_string(), value.clone());
    }
    for info in O::INFO.attrs {
        let theirs = renamed.iter().find(|(_, ours)| *ours == info.name).map_or(info.name, |(theirs, _)| theirs);
        if let Some(value) = n.attr_value(theirs) {
            attrs.set(info.name.to_string(), value.clone());
        }
    }
    O::from_attrs(&attrs)
}

fn same<O: OpNew>(n: &mut NodeCx<'_>, defaults: &[(&str, AttrValue)], renamed: &[(&str, &str)]) -> Result<Outputs> {
    n.ignore(&["auto_broadcast", "distributed_rois"]);
    let op: O = op(n, defaults, renamed)?;
    let inputs = n.inputs()?;
    Ok(n.emit_all(op, &inputs)?.into())
}

fn swish(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let mut inputs = vec![n.input(0)?];
    if let Some(beta) = n.opt(1)? {
        let beta = n.reshape(beta, &[])?;
        inputs.push(n.convert_like(beta, inputs[0])?);
    }
    Ok(n.emit(Swish, &inputs)?.into())
}

fn detection_output(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["num_classes"]);
    let defaults = [("keep_top_k", AttrValue::Ints(vec![1])), ("nms_threshold", float(0.0))];
    same::<DetectionOutput>(n, &defaults, &[])
}

fn detectron_detection_output(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let defaults = [
        ("score_threshold", float(0.05)),
        ("nms_threshold", float(0.5)),
        ("max_delta_log_wh", float((1000.0f64 / 16.0).ln())),
        ("num_classes", int(81)),
        ("post_nms_count", int(2000)),
        ("max_detections_per_image", int(100)),
        ("deltas_weights", AttrValue::Floats(vec![10.0, 10.0, 5.0, 5.0])),
    ];
    same::<ExperimentalDetectronDetectionOutput>(n, &defaults, &[])
}

fn detectron_proposals(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let defaults = [
        ("min_size", float(0.0)),
        ("nms_threshold", float(0.7)),
        ("pre_nms_count", int(1000)),
        ("post_nms_count", int(1000)),
    ];
    same::<ExperimentalDetectronGenerateProposalsSingleImage>(n, &defaults, &[])
}

fn detectron_features(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let defaults = [
        ("output_size", int(7)),
        ("sampling_ratio", int(2)),
        ("pyramid_scales", AttrValue::Ints(vec![4, 8, 16, 32, 64])),
    ];
    // Written by older converters; the operation never had them.
    n.ignore(&["distribute_rois_between_levels", "image_id", "preserve_rois_order"]);
    same::<ExperimentalDetectronROIFeatureExtractor>(n, &defaults, &[])
}

// Inputs are scores, deltas, image sizes, anchors; the number of regions comes as i64.
fn generate_proposals(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let defaults = [
        ("min_size", float(1.0)),
        ("nms_threshold", float(0.7)),
        ("pre_nms_count", int(6000)),
        ("post_nms_count", int(300)),
        // A box of one pixel is 1 long by the older reckoning, 0 by the newer one.
        ("normalized", AttrValue::Bool(n.attr("legacy_plus_one", 1i64)? == 0)),
    ];
    let renamed =
        [("nms_thresh", "nms_threshold"), ("pre_nms_topN", "pre_nms_count"), ("post_nms_topN", "post_nms_count")];
    n.ignore(&["spatial_scale", "angle_bound_on", "angle_bound_hi", "angle_bound_lo", "clip_angle_thresh"]);
    let op: GenerateProposals = op(n, &defaults, &renamed)?;
    let (scores, deltas, sizes, anchors) = (n.input(0)?, n.input(1)?, n.input(2)?, n.input(3)?);
    // Anchors come as [anchors, 4] and hold for every position.
    let (height, width) = (n.size(scores, 2)?, n.size(scores, 3)?);
    let rest = n.shape_of(anchors)?;
    let shape = n.concat(&[height, width, rest], 0)?;
    let anchors = n.stretch(anchors, shape)?;
    Ok(n.emit_all(op, &[sizes, anchors, deltas, scores])?.into())
}

fn group_norm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let num_groups: i64 = n.required("num_groups")?;
    let epsilon: f32 = n.attr("eps", 1e-6)?;
    let (x, scale, bias) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (scale, bias) = (n.reshape(scale, &[-1])?, n.reshape(bias, &[-1])?);
    Ok(n.emit(GroupNormalization { num_groups, epsilon }, &[x, scale, bias])?.into())
}

fn normalize(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let eps: f32 = n.required("eps")?;
    let (across, shared) = (n.attr("across_spatial", 0i64)? != 0, n.attr("channel_shared", 0i64)? != 0);
    let (x, weights) = (n.input(0)?, n.input(1)?);
    let rank = n.known_rank(x)?;
    let axes: Vec<i64> = if across { (1..rank as i64).collect() } else { vec![1] };
    let axes = n.i64s(&axes)?;
    let y = n.emit(NormalizeL2 { eps, eps_mode: EpsMode::Add }, &[x, axes])?;
    let weights = if shared {
        n.reshape(weights, &[])?
    } else {
        let mut pattern = vec![1; rank];
        if let Some(channel) = pattern.get_mut(1) {
            *channel = -1;
        }
        n.reshape(weights, &pattern)?
    };
    Ok(n.times(y, weights)?.into())
}

// The operation wants the sizes of both tensors, not the tensors.
fn sizes(n: &mut NodeCx<'_>) -> Result<[Value; 2]> {
    let mut size = |i: usize| {
        let x = n.input(i)?;
        if n.rank(x).is_some_and(|r| r != 4) {
            return Err(n.fail(format!("input {i} must have 4 axes, found [{}]", n.shape(x))));
        }
        let shape = n.shape_of(x)?;
        n.part(shape, 2, 4, 0)
    };
    Ok([size(0)?, size(1)?])
}

fn prior_box(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let op: PriorBox = op(n, &[("offset", float(0.0))], &[])?;
    n.ignore(&["img_size", "img_h", "img_w", "step_h", "step_w"]);
    let inputs = sizes(n)?;
    let y = n.emit(op, &inputs)?;
    Ok(n.unsqueeze(y, &[0])?.into())
}

fn prior_box_clustered(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let defaults = [
        ("width", AttrValue::Floats(vec![1.0])),
        ("height", AttrValue::Floats(vec![1.0])),
        ("clip", AttrValue::Bool(false)),
        ("offset", float(0.0)),
        ("variance", AttrValue::Floats(vec![0.1])),
    ];
    let op: PriorBoxClustered = op(n, &defaults, &[])?;
    n.ignore(&["img_size", "img_h", "img_w"]);
    let inputs = sizes(n)?;
    let y = n.emit(op, &inputs)?;
    Ok(n.unsqueeze(y, &[0])?.into())
}

fn deformable_conv(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, filters) = (n.input(0)?, n.input(2)?);
    let axes = n.known_rank(x)?.saturating_sub(2);
    n.ignore(&["kernel_shape"]);
    let pads: Vec<i64> = n.attr("pads", vec![0; 2 * axes])?;
    if pads.len() != 2 * axes {
        return Err(n.fail(format!("pads must have {} elements, found {}", 2 * axes, pads.len())));
    }
    let auto_pad: String = n.attr("auto_pad", "NOTSET".to_string())?;
    let op = DeformableConvolution {
        strides: n.attr("strides", vec![1; axes])?,
        pads_begin: pads[..axes].to_vec(),
        pads_end: pads[axes..].to_vec(),
        dilations: n.attr("dilations", vec![1; axes])?,
        auto_pad: match auto_pad.as_str() {
            "SAME_UPPER" => PadType::SameUpper,
            "SAME_LOWER" => PadType::SameLower,
            "VALID" => PadType::Valid,
            _ => PadType::Explicit,
        },
        group: n.attr("group", 1)?,
        deformable_group: n.attr("deformable_groups", 1)?,
        bilinear_interpolation_pad: false,
    };
    let offsets = n.input(1)?;
    let mut inputs = vec![x, offsets, filters];
    inputs.extend(n.opt(3)?);
    Ok(n.emit(op, &inputs)?.into())
}
