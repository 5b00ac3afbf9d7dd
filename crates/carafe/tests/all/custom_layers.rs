//! Who handles a layer of Caffe: an extension, the standard layers, CustomLayersMapping.xml, in this order.

use carafe::convert::{Conversion, ConversionOptions, emit};
use carafe::prelude::*;
use carafe::{
    Core, Extension, FormatOptions, FrameworkNode, Log, Model, NodeExplained, Properties, ReadRequest, Rule,
    RuleOutputs, Tensor,
};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

fn written(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("custom_{name}"));
    std::fs::write(&path, text).unwrap();
    path
}

fn net(name: &str, layers: &str) -> PathBuf {
    let input = r#"name: "net" layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 4 dim: 4 } } }"#;
    written(&format!("{name}.prototxt"), &format!("{input}\n{layers}"))
}

/// Reads with a mapping file and options; gives the model, who handled what, and the warnings.
fn read(core: &Core, net: &Path, mapping: &str, more: &[(&str, &str)]) -> Result<(Model, Vec<NodeExplained>, String)> {
    let mapping = written(&format!("{}.xml", net.file_stem().unwrap().to_string_lossy()), mapping);
    let mut options = FormatOptions::default();
    options.set("custom_layers", mapping.display().to_string());
    more.iter().for_each(|(n, v)| {
        options.set(*n, *v);
    });
    let warnings = RefCell::new(String::new());
    let hear = |_: carafe::log::Level, text: &str| warnings.borrow_mut().push_str(&format!("{text}\n"));
    let request =
        ReadRequest { options: Some(&options), explain: true, log: Log::to(&hear, false), ..ReadRequest::new(net) };
    let model = core.read(&request)?;
    let rows = core.explain(&model);
    Ok((model, rows, warnings.into_inner()))
}

fn attr(model: &Model, node: &str, name: &str) -> Option<String> {
    let node = model.node(model.find_node(node).unwrap());
    node.op().attrs().into_iter().find(|(n, _)| n == name).and_then(|(_, v)| v.to_text())
}

fn shape(model: &Model, node: &str) -> String {
    model.fact(model.find_node(node).unwrap().into()).shape.to_string()
}

/// Adds what it was told.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "acme")]
struct Shift {
    #[attr(default = 1.0)]
    by: f32,
}

impl Op for Shift {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let y: Vec<f32> = cx.get::<f32>(0)?.iter().map(|x| x + self.by).collect();
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, y)
    }
}

// Layers 2 and 5 belong to an extension, 1 and 4 are standard, 3 is in the mapping file.
const FIVE: &str = r#"
layer { name: "layer1" type: "Power" bottom: "data" top: "b1" power_param { scale: 2 } }
layer { name: "layer2" type: "Shift" bottom: "b1" top: "b2" shift_param { amount: 3 } }
layer { name: "layer3" type: "Fancy" bottom: "b2" top: "b3"
        fancy_param { ratio: 0.5 mode: FAST sizes: [1, 2] deep { depth: 7 } on: true } }
layer { name: "layer4" type: "ReLU" bottom: "b3" top: "b4" }
layer { name: "layer5" type: "Shift" bottom: "b4" top: "b5" shift_param { amount: -1 } }
"#;

fn shift_rule() -> Rule {
    let rule = |n: &mut carafe::NodeCx<'_>| -> Result<RuleOutputs> {
        let (x, by) = (n.input(0)?, n.required("amount")?);
        n.emit(Shift { by }, &[x]).map(RuleOutputs::from)
    };
    Rule::new("Shift", rule).framework("caffe")
}

fn with_acme() -> Core {
    let core = carafe::core();
    core.add_extension(Extension::new("acme").op::<Shift>().rule(shift_rule())).unwrap();
    core
}

#[test]
fn the_five_layers_of_the_guide_find_their_handlers() {
    let path = net("five", FIVE);
    let mapping = r#"<CustomKernelsMapping>
        <CustomLayer NativeType="Fancy" hasParam="true" protoParamName="fancy_param" outputShape="in0"/>
    </CustomKernelsMapping>"#;
    let core = with_acme();
    let (model, rows, warnings) = read(&core, &path, mapping, &[]).unwrap();
    assert_eq!(warnings, "");
    let by = |layer: &str| rows.iter().find(|r| r.source == layer).unwrap().rule.clone().unwrap();
    assert_eq!(
        [1, 2, 3, 4, 5].map(|i| by(&format!("layer{i}"))),
        ["built-in", "extension `acme`", "CustomLayersMapping.xml", "built-in", "extension `acme`"]
    );
    // As it goes into the IR.
    let texts = ["ratio", "mode", "sizes", "depth", "on"].map(|a| attr(&model, "layer3", a).unwrap());
    assert_eq!(texts, ["0.5", "FAST", "1,2", "7", "1"]);
    assert_eq!(shape(&model, "layer5"), "1,3,4,4");

    let mut options = FormatOptions::default();
    options.set("custom_layers", written("custom_five.xml", mapping).display().to_string());
    let xml = Path::new(env!("CARGO_TARGET_TMPDIR")).join("custom_five_ir.xml");
    let request = ReadRequest { options: Some(&options), ..ReadRequest::new(&path) };
    let converted = Conversion::new(request).run(&core).unwrap();
    emit(&converted.model, &xml, &Log::default()).unwrap();
    let ir = std::fs::read_to_string(&xml).unwrap();
    assert!(ir.contains(r#"name="layer3" type="Fancy" version="extension""#), "{ir}");
    assert!(ir.contains(r#"depth="7""#) && ir.contains(r#"mode="FAST""#), "{ir}");

    // Whoever brings the operation runs it.
    core.add_extension(Extension::new("fancy").op::<Fancy>()).unwrap();
    let model = core.read_model(&xml).unwrap();
    let compiled = core.compile_model(&model, "CPU", &Properties::new()).unwrap();
    let request = compiled.create_infer_request();
    request.set_input(0, Tensor::from_slice(&[1, 3, 4, 4], &[1f32; 48]).unwrap()).unwrap();
    request.infer(()).unwrap();
    // 1 * 2, + 3, * 0.5, ReLU, - 1
    assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), [1.5f32; 48]);
}

/// Multiplies by its ratio.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "extension")]
struct Fancy {
    ratio: f32,
    mode: String,
    #[attr(default = vec![])]
    sizes: Vec<i64>,
    depth: i64,
    on: i64,
}

impl Op for Fancy {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let y: Vec<f32> = cx.get::<f32>(0)?.iter().map(|x| x * self.ratio).collect();
        let shape = cx.shape(0).to_vec();
        cx.put(0, &shape, y)
    }
}

#[test]
fn an_entry_that_is_never_asked_is_told_with_its_winner() {
    let path = net("shadowed", FIVE);
    let mapping = r#"<CustomKernelsMapping>
        <CustomLayer NativeType="ReLU" hasParam="false" outputShape="1"/>
        <CustomLayer NativeType="Shift" hasParam="false" outputShape="1"/>
        <CustomLayer NativeType="Fancy" hasParam="false" outputShape="in0"/>
    </CustomKernelsMapping>"#;
    let (model, _, warnings) = read(&with_acme(), &path, mapping, &[]).unwrap();
    assert!(warnings.contains("the entry for `ReLU` is not used, the standard layer of that type comes first"));
    assert!(warnings.contains("the entry for `Shift` is not used, extension `acme` comes first"));
    assert!(!warnings.contains("Fancy"), "{warnings}");
    assert_eq!(shape(&model, "layer5"), "1,3,4,4");
    assert_eq!(attr(&model, "layer3", "ratio"), None, "without hasParam there are no attributes");
}

#[test]
fn what_nobody_handles_is_told_at_once() {
    let path = net("nobody", FIVE);
    let e = carafe::core().read_model(&path).unwrap_err().to_string();
    assert!(e.contains("3 nodes of 2 operations cannot be translated"), "{e}");
    assert!(e.contains("2 x `Shift`") && e.contains("`layer2`, `layer5`") && e.contains("1 x `Fancy`"), "{e}");
    assert!(e.contains("--extension LIB") && e.contains("CustomLayersMapping.xml (-k)"), "{e}");
}

const FANCY: &str = r#"layer { name: "f" type: "Fancy" bottom: "data" top: "y" fancy_param { out: 5 } }"#;

#[test]
fn the_output_shape_of_a_custom_layer_has_several_sources() {
    let path = net("shapes", FANCY);
    let entry = |shape: &str| {
        format!(r#"<m><CustomLayer NativeType="fancy" hasParam="true" protoParamName="fancy_param" {shape}/></m>"#)
    };
    let core = carafe::core();
    let by_rule = entry(r#"outputShape="in0[0], out, ceil(in0[2] / 3), in0[3] - 1""#);
    assert_eq!(shape(&read(&core, &path, &by_rule, &[]).unwrap().0, "f"), "1,5,2,3");
    let given = [("layer_shapes", "f[1,2,-1]")];
    assert_eq!(shape(&read(&core, &path, &by_rule, &given).unwrap().0, "f"), "1,2,?");
    let none = read(&core, &path, &entry(""), &[]).unwrap_err().to_string();
    assert!(none.contains("layer `f` (Fancy, line 2)") && none.contains("nothing says its output shape"), "{none}");
    assert!(none.contains("outputShape=") && none.contains("--layer_shapes 'f[...]'"), "{none}");

    // A rule follows the input; the CPU says what is missing to run it.
    let (model, ..) = read(&core, &path, &by_rule, &[]).unwrap();
    let mut wider = model.clone();
    let options = ConversionOptions { input_shape: Some("[2,3,9,9]".into()), ..ConversionOptions::default() };
    carafe::convert::apply(&mut wider, &options).unwrap();
    assert_eq!(shape(&wider, "f"), "2,5,3,8");
    let e = core.compile_model(&model, "CPU", &Properties::new()).map(|_| ()).unwrap_err().to_string();
    assert!(e.contains("Fancy"), "{e}");
}

#[test]
fn a_registered_operation_of_that_name_gives_the_shape() {
    #[derive(Op, Clone, Debug, PartialEq)]
    #[op(name = "Fancy", opset = "extension")]
    struct Wide {
        out: i64,
    }
    impl Op for Wide {
        fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
            cx.set(0, ElementType::F32, carafe::PartialShape::of(&[self.out as usize, 2]));
            Ok(())
        }
    }
    let core = carafe::core();
    core.add_extension(Extension::new("wide").op::<Wide>()).unwrap();
    let path = net("registered", FANCY);
    let mapping = r#"<m><CustomLayer NativeType="Fancy" hasParam="true" protoParamName="fancy_param"/></m>"#;
    let (model, rows, _) = read(&core, &path, mapping, &[]).unwrap();
    assert_eq!(shape(&model, "f"), "5,2");
    assert_eq!(
        (rows[0].rule.as_deref(), rows[0].op_from.as_str()),
        (Some("CustomLayersMapping.xml"), "extension `wide`")
    );
}

#[test]
fn declared_parameters_come_with_their_defaults() {
    let layer = r#"layer { name: "f" type: "MyPool" bottom: "data" top: "y" pooling_param { kernel_size: 3 pool: AVE }
        inner_product_param { weight_filler { type: "xavier" value: 2 } } }"#;
    let mapping = |message: &str| {
        format!(
            r#"<m><CustomLayer NativeType="MyPool" hasParam="true" protoParamName="{message}" outputShape="in"/></m>"#
        )
    };
    let core = carafe::core();
    let path = net("declared", layer);
    let (model, ..) = read(&core, &path, &mapping("pooling_param"), &[]).unwrap();
    let text = |name: &str| attr(&model, "f", name);
    assert_eq!(text("kernel_size").as_deref(), Some("3"));
    assert_eq!(text("pool").as_deref(), Some("caffe.PoolingParameter.AVE"));
    assert_eq!((text("stride").as_deref(), text("global_pooling").as_deref()), (Some("1"), Some("0")));
    assert_eq!(text("stride_h"), None, "neither set nor with a default");
    let (model, ..) = read(&core, &path, &mapping("pooling_param"), &[("disable_omitting_optional", "true")]).unwrap();
    assert_eq!(attr(&model, "f", "stride_h").as_deref(), Some("0"));

    let (model, _, warnings) = read(&core, &path, &mapping("inner_product_param"), &[]).unwrap();
    assert_eq!(attr(&model, "f", "value").as_deref(), Some("2"));
    assert!(warnings.is_empty(), "{warnings}");
    let flat = [("enable_flattening_nested_params", "true")];
    let (model, ..) = read(&core, &path, &mapping("inner_product_param"), &flat).unwrap();
    assert_eq!(attr(&model, "f", "weight_filler__value").as_deref(), Some("2"));
    let e = read(&core, &path, &mapping("my_pool_param"), &[]).unwrap_err().to_string();
    assert!(e.contains("its parameters are `my_pool_param`") && e.contains("is the name right?"), "{e}");
}

#[test]
fn mistakes_in_the_mapping_file_are_told_with_their_line() {
    let path = net("mistakes", FANCY);
    let core = carafe::core();
    let error = |mapping: &str| read(&core, &path, mapping, &[]).unwrap_err().to_string();
    assert!(error("<m>").contains("not valid XML"));
    assert!(error("<m>\n<CustomLayer hasParam='false'/></m>").contains("line 2: <CustomLayer> needs `NativeType`"));
    assert!(error("<m><CustomLayer NativeType='a' hasParam='maybe'/></m>").contains("hasParam is `maybe`"));
    assert!(error("<m><CustomLayer NativeType='a' hasParam='True'/></m>").contains("needs `protoParamName`"));
    assert!(error("<m><CustomLayer NativeType='a' hasParam='false' outputShape='in0['/></m>").contains("column"));
    let twice = "<m><Other/><CustomLayer NativeType='Fancy' hasParam='false' outputShape='in'/>\
                 <CustomLayer NativeType='fancy' hasParam='false' outputShape='1'/></m>";
    let (model, _, warnings) = read(&core, &path, twice, &[]).unwrap();
    assert!(warnings.contains("<Other> is not read") && warnings.contains("a second entry for `fancy`"), "{warnings}");
    assert_eq!(shape(&model, "f"), "1,3,4,4");
    let missing = FormatOptions::default().set("custom_layers", "nowhere.xml").clone();
    let e = core.read(&ReadRequest { options: Some(&missing), ..ReadRequest::new(&path) }).unwrap_err().to_string();
    assert!(e.contains("custom layers `nowhere.xml`: cannot read"), "{e}");
}

#[test]
fn options_of_another_format_are_refused() {
    let path = written(
        "onnx.onnxtxt",
        r#"<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y) { y = Abs (x) }"#,
    );
    let options = FormatOptions::default().set("custom_layers", "a.xml").clone();
    let core = carafe::core();
    let e = core.read(&ReadRequest { options: Some(&options), ..ReadRequest::new(&path) }).unwrap_err().to_string();
    assert!(e.contains("option `--custom_layers` means nothing for a model of format ONNX"), "{e}");
}

#[test]
fn layers_are_replaced_before_translation() {
    let path = net("replaced", FIVE);
    let config = written(
        "replaced.json",
        r#"[{"id": "middle", "match_kind": "points", "op": "Sigmoid",
             "instances": {"start_points": ["layer2"], "end_points": ["layer3"]}},
            {"id": "end", "match_kind": "scope", "op": "acme::Shift", "custom_attributes": {"by": 4.0},
             "instances": ["layer5"]}]"#,
    );
    let core = carafe::core();
    core.add_extension(Extension::new("acme").op::<Shift>()).unwrap();
    let conversion = Conversion { transformations_config: Some(&config), ..Conversion::new(ReadRequest::new(&path)) };
    let model = conversion.run(&core).unwrap().model;
    assert!(model.nodes().all(|(_, n)| !n.op().is::<FrameworkNode>()));
    let out = model.evaluate(&[Tensor::from_slice(&[1, 3, 4, 4], &[0f32; 48]).unwrap()]).unwrap();
    assert_eq!(out[0].as_slice::<f32>().unwrap(), [4.5f32; 48]);
    assert_eq!(model.result_name(model.results()[0]), "b5");
}
