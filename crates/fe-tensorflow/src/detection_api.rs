//! What the replacement files of the Object Detection API name (`--transformations_config ssd_v2_support.json` and its
//! like): a preprocessor whose loop resizes images, and a postprocessor that decodes and suppresses boxes. They work on the graph
//! as decoded, so that nothing of the match need be translated. Numbers come from `custom_attributes`.

use carafe_graph::{
    AttrMap, AttrValue, Constant, Error, FrameworkNode, Match, Model, NodeId, Notes, REPLACEMENT, Replacement, Result,
    ResultOp, Value,
};
use carafe_tensor::Tensor;
use std::sync::Arc;

/// The replacements, under every id that such files use.
pub fn replacements() -> Vec<Arc<dyn Replacement>> {
    vec![
        Arc::new(Preprocessor("PreprocessorReplacement")),
        Arc::new(Preprocessor("ObjectDetectionAPIPreprocessorReplacement")),
        Arc::new(SsdPostprocessor),
    ]
}

/// Images arrive in the size that the network wants: the loop that resizes them goes, the scaling behind it stays.
struct Preprocessor(&'static str);

impl Replacement for Preprocessor {
    fn id(&self) -> &str {
        self.0
    }
    fn replace(&self, model: &mut Model, found: &Match, _: &mut Notes) -> Result<()> {
        let (Some(&image), Some(&scaled)) = (found.inputs.first(), found.outputs.first()) else {
            return Err(Error::invalid("a preprocessor has an input, the images, and an output, the scaled images"));
        };
        let mut at = scaled;
        while let Some((input, above)) = scaling(model, at.node) {
            if scaling(model, above.node).is_none() {
                model.set_input(at.node, input, image);
                return Ok(());
            }
            at = above;
        }
        model.replace_value(scaled, image);
        Ok(())
    }
}

// Which input of a node that scales is the data, and what it reads; `None` for any other node.
fn scaling(model: &Model, id: NodeId) -> Option<(usize, Value)> {
    let op = &model.op_at::<FrameworkNode>(id)?.type_name;
    if !matches!(op.as_str(), "Mul" | "Sub" | "Add" | "AddV2" | "RealDiv" | "Div") {
        return None;
    }
    let fixed = |v: &Value| {
        let node = model.op_at::<FrameworkNode>(v.node);
        model.node(v.node).op().is::<Constant>() || node.is_some_and(|n| n.type_name == "Const")
    };
    let mut data = model.node(id).inputs().iter().copied().enumerate().filter(|(_, v)| !fixed(v));
    data.next().filter(|_| data.next().is_none())
}

/// Boxes are decoded and suppressed by DetectionOutput, whose output takes the place of the first output; the others go.
struct SsdPostprocessor;

impl Replacement for SsdPostprocessor {
    fn id(&self) -> &str {
        "ObjectDetectionAPISSDPostprocessorReplacement"
    }
    fn replace(&self, model: &mut Model, found: &Match, _: &mut Notes) -> Result<()> {
        let [boxes, logits, anchors] = [
            read_by(model, found, &["Reshape_1", "Shape"], "the encoded boxes")?,
            read_by(model, found, &["scale_logits", "convert_scores"], "the scores of the classes")?,
            read_by(model, found, &["ExpandDims", "Tile"], "the anchors")?,
        ];
        let mut b = Build { model, scope: found.name.clone() };
        // TensorFlow has y before x, in anchors and in encoded boxes.
        let flat = b.list("flat", &[0, -1])?;
        let boxes = b.x_before_y("boxes", boxes)?;
        let boxes =
            b.add("boxes/flat", "opset1::Reshape", &[("special_zero", AttrValue::Bool(true))], &[boxes, flat])?;
        let scores = match found.attrs.get("score_converter").and_then(AttrValue::to_text).as_deref() {
            None | Some("SIGMOID") => b.add("scores", "opset1::Sigmoid", &[], &[logits])?,
            Some("SOFTMAX") => b.add("scores", "opset8::Softmax", &[("axis", AttrValue::Int(-1))], &[logits])?,
            Some("IDENTITY") => logits,
            Some(other) => {
                return Err(Error::unsupported(format!(
                    "`score_converter` is `{other}`; known are SIGMOID, SOFTMAX, IDENTITY"
                )));
            }
        };
        let scores =
            b.add("scores/flat", "opset1::Reshape", &[("special_zero", AttrValue::Bool(true))], &[scores, flat])?;
        let priors = b.priors(anchors)?;
        let attrs = attributes(found)?;
        let attrs: Vec<(&str, AttrValue)> = attrs.iter().map(|(k, v)| (*k, v.clone())).collect();
        let detections = b.add("detections", "opset8::DetectionOutput", &attrs, &[boxes, scores, priors])?;
        let Some((first, rest)) = found.outputs.split_first() else {
            return Err(Error::invalid("a postprocessor has outputs"));
        };
        model.replace_value(*first, detections);
        for gone in rest {
            let readers: Vec<NodeId> = model.users(*gone).iter().map(|u| u.node).collect();
            for r in readers.into_iter().filter(|r| model.node(*r).op().is::<ResultOp>()).collect::<Vec<_>>() {
                model.remove(r)?;
            }
        }
        Ok(())
    }
}

// The input of the match that a node of one of these names reads.
fn read_by(model: &Model, found: &Match, names: &[&str], what: &str) -> Result<Value> {
    for name in names {
        let reads = |v: &&Value| {
            let mut users = model.users(**v).iter().filter(|u| found.nodes.contains(&u.node));
            users.any(|u| model.node(u.node).name().rsplit('/').next() == Some(name))
        };
        if let Some(v) = found.inputs.iter().find(reads) {
            return Ok(*v);
        }
    }
    let names = names.join("` or `");
    Err(Error::not_found(format!("no start point is called `{names}`, which reads {what}")))
}

// The attributes of DetectionOutput: what the file gives, else what files of that kind leave to the pipeline.
fn attributes(found: &Match) -> Result<Vec<(&'static str, AttrValue)>> {
    let defaults: [(&'static str, AttrValue); 8] = [
        ("nms_threshold", AttrValue::Float(0.6)),
        ("confidence_threshold", AttrValue::Float(0.01)),
        ("keep_top_k", AttrValue::Ints(vec![100])),
        ("top_k", AttrValue::Int(-1)),
        ("background_label_id", AttrValue::Int(0)),
        ("clip_before_nms", AttrValue::Bool(false)),
        ("clip_after_nms", AttrValue::Bool(true)),
        ("share_location", AttrValue::Bool(true)),
    ];
    let mut all: Vec<(&'static str, AttrValue)> =
        defaults.map(|(name, value)| (name, found.attrs.get(name).cloned().unwrap_or(value))).into();
    all.push(("normalized", AttrValue::Bool(true)));
    all.push(("code_type", AttrValue::Str("caffe.PriorBoxParameter.CENTER_SIZE".into())));
    // Meant for layers of Caffe that are not there.
    let known = ["code_type", "pad_mode", "resize_mode", "score_converter"];
    let unknown: Vec<&str> = found
        .attrs
        .iter()
        .map(|(name, _)| name)
        .filter(|name: &&str| !known.contains(name) && !all.iter().any(|(k, _)| k == name))
        .collect();
    match unknown.is_empty() {
        true => Ok(all),
        false => {
            Err(Error::invalid(format!("`custom_attributes` has `{}`, which nothing reads", unknown.join("`, `"))))
        }
    }
}

struct Build<'m> {
    model: &'m mut Model,
    scope: String,
}

impl Build<'_> {
    fn add(&mut self, name: &str, op: &str, attrs: &[(&str, AttrValue)], inputs: &[Value]) -> Result<Value> {
        let mut node = FrameworkNode::new(REPLACEMENT, op).with_outputs(1);
        node.attrs = AttrMap::new();
        for (key, value) in attrs {
            node.attrs.set(*key, value.clone());
        }
        Ok(self.model.add(format!("{}/{name}", self.scope), node, inputs)?.into())
    }
    fn constant(&mut self, name: &str, tensor: Tensor) -> Result<Value> {
        self.model.constant(&format!("{}/{name}", self.scope), tensor)
    }
    fn list(&mut self, name: &str, values: &[i64]) -> Result<Value> {
        self.constant(name, Tensor::from_slice(&[values.len()], values)?)
    }
    fn x_before_y(&mut self, name: &str, v: Value) -> Result<Value> {
        let order = self.list(&format!("{name}/order"), &[1, 0, 3, 2])?;
        let axis = self.constant(&format!("{name}/axis"), Tensor::scalar(-1i64))?;
        self.add(&format!("{name}/x_before_y"), "opset8::Gather", &[], &[v, order, axis])
    }
    // Anchors and their variances, `[1, 2, 4 * anchors]`: the scales of the box coder are 10, 10, 5, 5.
    fn priors(&mut self, anchors: Value) -> Result<Value> {
        let anchors = self.x_before_y("priors", anchors)?;
        let shape = self.list("priors/shape", &[1, 1, -1])?;
        let sizes = self.add("priors/sizes", "opset3::ShapeOf", &[], &[anchors])?;
        let variances = self.constant("priors/variance", Tensor::from_slice(&[4], &[0.1f32, 0.1, 0.2, 0.2])?)?;
        let variances = self.add("priors/variances", "opset3::Broadcast", &[], &[variances, sizes])?;
        let mut rows = vec![];
        for (name, v) in [("boxes", anchors), ("variances", variances)] {
            let name = format!("priors/{name}/row");
            rows.push(self.add(&name, "opset1::Reshape", &[("special_zero", AttrValue::Bool(false))], &[v, shape])?);
        }
        self.add("priors", "opset1::Concat", &[("axis", AttrValue::Int(1))], &rows)
    }
}
