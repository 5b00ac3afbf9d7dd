//! Nets of Caffe on their way to IR: names that stay, cuts, replacements, and what is told.

use carafe::convert::{Conversion, ConversionOptions, Converted, emit};
use carafe::prelude::*;
use carafe::{
    AttrMap, Core, Extension, FormatOptions, FrameworkNode, Log, Match, Model, NodeExplained, Notes, REPLACEMENT,
    ReadRequest, Replacement, Tensor,
};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn written(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("caffe_{name}"));
    std::fs::write(&path, text).unwrap();
    path
}

/// A net whose input is `data`, 1 x 2 x 4 x 4.
fn net(name: &str, layers: &str) -> PathBuf {
    let input = r#"input: "data" input_shape { dim: 1 dim: 2 dim: 4 dim: 4 }"#;
    written(&format!("{name}.prototxt"), &format!("{input}\n{layers}"))
}

/// Puts a product with a constant in place of the match.
struct Times;

impl Replacement for Times {
    fn id(&self) -> &str {
        "Times"
    }
    fn replace(&self, model: &mut Model, found: &Match, _: &mut Notes) -> Result<()> {
        let factor = model.constant(&format!("{}/k", found.name), Tensor::scalar(7f32))?;
        let mut node = FrameworkNode::new(REPLACEMENT, "opset1::Multiply").with_outputs(1);
        node.attrs = AttrMap::new();
        let product = model.add(&found.name, node, &[found.inputs[0], factor])?;
        model.replace_value(found.outputs[0], product.into());
        Ok(())
    }
}

const BLOCKS: &str = r#"
layer { name: "pre" type: "Power" bottom: "data" top: "pre" power_param { scale: 2 } }
layer { name: "block/a" type: "AbsVal" bottom: "pre" top: "a" }
layer { name: "block/b" type: "TanH" bottom: "a" top: "b" }
layer { name: "post" type: "Power" bottom: "b" top: "post" power_param { shift: 1 } }
"#;

#[test]
fn a_constant_of_a_replacement_keeps_its_name() {
    let path = net("constant", BLOCKS);
    for config in [
        r#"[{"id": "Times", "match_kind": "scope", "instances": ["block/"]}]"#,
        r#"[{"id": "Times", "match_kind": "points",
             "instances": {"start_points": ["block/a"], "end_points": ["block/b"]}}]"#,
    ] {
        let config = written("constant.json", config);
        let core = carafe::core();
        core.add_extension(Extension::new("acme").replacement(Arc::new(Times))).unwrap();
        let conversion = Conversion {
            transformations_config: Some(&config),
            tidy: false,
            ..Conversion::new(ReadRequest::new(&path))
        };
        let model = conversion.run(&core).unwrap().model;
        let name = if model.find_node("block/k").is_some() { "block/k" } else { "Times/k" };
        assert!(model.find_node(name).is_some());
        let xml = Path::new(env!("CARGO_TARGET_TMPDIR")).join("caffe_constant.xml");
        emit(&model, &xml, &Log::default()).unwrap();
        assert!(std::fs::read_to_string(&xml).unwrap().contains(&format!(r#"name="{name}""#)));
        let y = model.evaluate(&[Tensor::from_slice(&[1, 2, 4, 4], &[1f32; 32]).unwrap()]).unwrap();
        assert_eq!(y[0].as_slice::<f32>().unwrap(), [15f32; 32]);
    }
}

fn converted(path: &Path, options: ConversionOptions) -> Result<Converted> {
    Conversion { options, ..Conversion::new(ReadRequest::new(path)) }.run(&carafe::core())
}

fn cut_at(path: &Path, output: &str) -> Result<Model> {
    let output = Some(output.to_string());
    Ok(converted(path, ConversionOptions { output, ..ConversionOptions::default() })?.model)
}

fn output_names(model: &Model) -> Vec<BTreeSet<String>> {
    model.results().iter().map(|r| model.output(model.result_value(*r)).names.clone()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|n| n.to_string()).collect()
}

const IN_PLACE: &str = r#"
layer { name: "conv/x" type: "Power" bottom: "data" top: "c" power_param { scale: 2 } }
layer { name: "bn" type: "AbsVal" bottom: "c" top: "c" }
layer { name: "relu" type: "ReLU" bottom: "c" top: "c" }
layer { name: "drop" type: "Dropout" bottom: "c" top: "c" }
layer { name: "split" type: "Split" bottom: "c" top: "s1" top: "s2" }
layer { name: "one" type: "Concat" bottom: "s1" top: "joined" }
layer { name: "prob" type: "Softmax" bottom: "s2" top: "prob" }
layer { name: "last" type: "Sigmoid" bottom: "joined" top: "last" }
"#;

#[test]
fn a_layer_that_becomes_nothing_is_still_found_by_its_name() {
    let path = net("nothing", IN_PLACE);
    for name in ["drop", "split", "one", "joined", "s2"] {
        let model = cut_at(&path, name).unwrap();
        let names = output_names(&model).remove(0);
        assert!(names.contains(name) && names.contains("c"), "{name}: {names:?}");
        assert!(model.find_result(name).is_some() && model.results().len() == 1, "{name}");
        let input = Some(format!("{name}[1,2,3,3]"));
        let model = converted(&path, ConversionOptions { input, ..ConversionOptions::default() }).unwrap().model;
        assert!(model.find_parameter(name).is_some(), "{name}");
    }
    let model = converted(&path, ConversionOptions::default()).unwrap().model;
    assert_eq!(output_names(&model), [set(&["prob"]), set(&["last"])]);
}

#[test]
fn an_output_inside_of_a_chain_in_place_has_the_names_of_its_blob_and_its_layer() {
    let path = net("in_place", IN_PLACE);
    assert_eq!(output_names(&cut_at(&path, "conv/x").unwrap()), [set(&["c", "conv/x"])]);
    assert_eq!(output_names(&cut_at(&path, "bn").unwrap()), [set(&["bn", "c"])]);
    assert_eq!(output_names(&cut_at(&path, "bn:0").unwrap()), [set(&["bn", "c"])]);
    let both = cut_at(&path, "conv/x,relu").unwrap();
    assert_eq!(output_names(&both), [set(&["conv/x"]), set(&["c", "relu"])]);
}

#[test]
fn what_lies_behind_a_cut_cannot_stop_a_conversion() {
    let path = net(
        "behind",
        r#"input: "other" input_shape { dim: 1 }
           layer { name: "l1" type: "Power" bottom: "data" top: "b1" power_param { scale: 2 } }
           layer { name: "l2" type: "Pooling" bottom: "b1" top: "b2" pooling_param { kernel_size: 2 stride: 2 } }
           layer { name: "l3" type: "Eltwise" bottom: "b2" bottom: "b1" top: "b3" }
           layer { name: "noweights" type: "Convolution" bottom: "b1" top: "b4"
                   convolution_param { num_output: 2 kernel_size: 3 } }
           layer { name: "unknown" type: "Oddity" bottom: "b1" bottom: "other" top: "b5" }"#,
    );
    assert!(cut_at(&path, "b3").is_err());
    let model = cut_at(&path, "l1,b2").unwrap();
    assert_eq!(output_names(&model), [set(&["b1", "l1"]), set(&["b2"])]);
    let inputs: Vec<String> = model.parameters().iter().map(|p| model.parameter_name(*p)).collect();
    assert_eq!(inputs, ["data"], "an input that only the rest reads is gone");
    assert!(model.nodes().all(|(_, n)| n.rt_info.is_empty()), "no marks are left");
}

/// What is told while a net is converted with these options.
fn told(core: &Core, path: &Path, config: Option<&Path>, format: &[(&str, &str)]) -> Result<(Converted, String)> {
    let lines = RefCell::new(String::new());
    let hear = |_: carafe::log::Level, text: &str| lines.borrow_mut().push_str(&format!("{text}\n"));
    let mut options = FormatOptions::default();
    format.iter().for_each(|(name, value)| {
        options.set(*name, *value);
    });
    let request =
        ReadRequest { options: Some(&options), explain: true, log: Log::to(&hear, false), ..ReadRequest::new(path) };
    let conversion = Conversion { transformations_config: config, ..Conversion::new(request) };
    let converted = conversion.run(core)?;
    Ok((converted, lines.into_inner()))
}

#[test]
fn every_scope_that_is_not_in_the_model_is_told_of() {
    let path = net("unmatched", BLOCKS);
    let config = written(
        "unmatched.json",
        r#"[{"id": "first", "match_kind": "scope", "instances": ["zzz"], "op": "ReLU"},
            {"id": "second", "match_kind": "scope", "instances": ["block/", "block77"], "op": "ReLU"}]"#,
    );
    let (converted, lines) = told(&carafe::core(), &path, Some(&config), &[]).unwrap();
    assert_eq!(converted.replaced, Some(1));
    for wanted in [
        "replacement `first`: no node is in the scope `zzz`",
        "replacement `second`: no node is in the scope `block77`",
    ] {
        assert!(lines.contains(wanted), "{lines}");
    }
    assert!(lines.contains("caffe_unmatched.json") && lines.lines().count() == 2, "{lines}");
}

/// Has one parameter and its own shape.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme")]
struct Fancy {
    #[attr(default = 1.0)]
    ratio: f32,
}

impl Op for Fancy {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
}

const FANCY: &str = r#"
layer { name: "f1" type: "Fancy" bottom: "data" top: "f1" fancy_param { ratio: 0.5 size { depth: 7 } mode: FAST } }
layer { name: "f2" type: "Fancy" bottom: "f1" top: "f2" fancy_param { ratio: 0.25 } }
layer { name: "r" type: "ReLU" bottom: "f2" top: "r" }
"#;

#[test]
fn what_an_operation_does_not_take_from_its_entry_is_told() {
    let path = net("fancy", FANCY);
    let mapping = written(
        "fancy.xml",
        r#"<m><CustomLayer NativeType="Fancy" hasParam="true" protoParamName="fancy_param" outputShape="1, 2"/></m>"#,
    );
    let format = [("custom_layers", mapping.to_str().unwrap()), ("layer_shapes", "f2[1,9]")];
    let core = carafe::core();
    core.add_extension(Extension::new("acme").op::<Fancy>()).unwrap();
    let (converted, lines) = told(&core, &path, None, &format).unwrap();
    for wanted in [
        "layer `f1`: the operation `acme::Fancy` does not declare `depth`, `mode`, which are not written",
        "the outputShape for `Fancy` is not used, the operation `acme::Fancy` infers the shape itself and comes first",
        "--layer_shapes: the shape of `f2` is not used, the operation `acme::Fancy` infers the shape itself",
    ] {
        assert!(lines.contains(wanted), "{lines}");
    }
    assert!(lines.contains("caffe_fancy.xml`: the outputShape") && lines.lines().count() == 3, "{lines}");
    let node = converted.model.node(converted.model.find_node("f1").unwrap());
    assert!(node.op().get::<Fancy>().is_some_and(|f| f.ratio == 0.5));
}

#[test]
fn a_shape_for_a_layer_that_is_not_custom_is_told_of() {
    let path = net("idle_shapes", FANCY);
    let mapping = written(
        "idle_shapes.xml",
        r#"<m><CustomLayer NativeType="Fancy" hasParam="false" outputShape="in0"/><CustomLayer NativeType="ReLU"
           hasParam="false"/></m>"#,
    );
    let format = [("custom_layers", mapping.to_str().unwrap()), ("layer_shapes", "zz[1],r[1,2,3,4],f1[1,2,4,4]")];
    let (_, lines) = told(&carafe::core(), &path, None, &format).unwrap();
    for wanted in [
        "--layer_shapes: the net has no layer and no layer type `zz`",
        "--layer_shapes: the shape of `r` is not used, the standard layer of that type comes first",
        "caffe_idle_shapes.xml`: the entry for `ReLU` is not used, the standard layer of that type comes first",
    ] {
        assert!(lines.contains(wanted), "{lines}");
    }
    assert_eq!(lines.lines().count(), 3, "{lines}");
    let (_, lines) = told(&carafe::core(), &net("no_mapping", BLOCKS), None, &[("layer_shapes", "pre[1]")]).unwrap();
    assert!(lines.contains("the shape of `pre` is not used"), "{lines}");
}

#[test]
fn an_output_shape_speaks_of_every_top() {
    let path = net("tops", r#"layer { name: "f" type: "Fancy" bottom: "data" top: "f" }"#);
    let mapping = written("tops.xml", r#"<m><CustomLayer NativeType="Fancy" hasParam="false" outputShape="1;2"/></m>"#);
    let format = [("custom_layers", mapping.to_str().unwrap())];
    let e = told(&carafe::core(), &path, None, &format).unwrap_err().to_string();
    assert!(e.contains("has 1 tops, its outputShape in") && e.contains("has 2 shapes"), "{e}");
}

fn explained(path: &Path, output: Option<&str>) -> Vec<NodeExplained> {
    let options = ConversionOptions { output: output.map(str::to_string), ..ConversionOptions::default() };
    let request = ReadRequest { explain: true, ..ReadRequest::new(path) };
    let converted = Conversion { options, ..Conversion::new(request) }.run(&carafe::core()).unwrap();
    assert!(converted.model.rt_info.is_empty(), "nothing of it goes into the IR");
    converted.explained.unwrap()
}

#[test]
fn layers_that_leave_nothing_are_explained() {
    let path = net(
        "explained",
        r#"layer { name: "train" type: "Noise" bottom: "data" top: "data" include { phase: TRAIN } }
           layer { name: "a" type: "AbsVal" bottom: "data" top: "a" }
           layer { name: "drop" type: "Dropout" bottom: "a" top: "a" }
           layer { name: "split" type: "Split" bottom: "a" top: "s1" top: "s2" }
           layer { name: "quiet" type: "Silence" bottom: "s2" }
           layer { name: "b" type: "TanH" bottom: "s1" top: "b" }"#,
    );
    let rows = explained(&path, None);
    let names: Vec<&str> = rows.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["train", "a", "drop", "split", "quiet", "b"]);
    let row = |name: &str| rows.iter().find(|r| r.name == name).unwrap();
    assert_eq!((row("drop").rule.as_deref(), row("drop").source_type.as_str()), (Some("built-in"), "Dropout"));
    assert_eq!(row("drop").why, ["becomes nothing, what it reads is passed on"]);
    assert_eq!((row("train").rule.as_deref(), row("train").op.as_str()), (None, ""));
    assert!(row("train").why[0].contains("the phase is TEST"));
    let rows = explained(&path, Some("a"));
    assert!(rows.iter().any(|r| r.name == "b" && r.why == ["left out: no output that is kept needs it"]), "{rows:?}");
}

#[test]
fn a_layer_keeps_its_name_when_a_scale_goes_into_it() {
    let path = net(
        "scaled",
        r#"layer { name: "conv/x" type: "Convolution" bottom: "data" top: "c" convolution_param { num_output: 2
             kernel_size: 3 bias_term: false weight_filler { type: "constant" value: 2 } } }
           layer { name: "sc" type: "Scale" bottom: "c" top: "c" scale_param { bias_term: true
             filler { type: "constant" value: 3 } bias_filler { type: "constant" value: 1 } } }
           layer { name: "relu" type: "ReLU" bottom: "c" top: "c" }"#,
    );
    let model = converted(&path, ConversionOptions::default()).unwrap().model;
    let named = |name: &str| model.node(model.find_node(name).unwrap()).op().type_name().to_string();
    assert_eq!((named("conv/x").as_str(), named("sc").as_str()), ("Convolution", "Add"));
}
