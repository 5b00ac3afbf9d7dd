//! Each kind of extension, from each language.

use crate::support::*;
use carafe::convert::Conversion;
use carafe::{ElementType, Fact, Model, Notes, PartialShape, PassChoice, Phase, ReadRequest, Tensor};
use carafe_device::{ChosenKernel, Layout, Site};
use carafe_graph::Elementwise;
use carafe_testkit::libraries::Workshop;

#[test]
fn attributes_of_every_kind_come_from_ir() {
    let attrs = r#"flag="true" count="12" ratio="1.5" label="a text" ints="1,-2" floats="0.5,2" words="a,b" ty="i64" types="f32,u8" shape="1,?,2..5" mode="far" bound="9""#;
    in_each_language(|core| {
        let model = ir(core, "EveryAttr", "kinds", attrs, "STRING").unwrap();
        let told = "true|12|1.5|a text|1,-2|0.5,2|a,b|i64|f32,u8|1..1,0..-1,2..5|far|9|none";
        assert_eq!(run(core, &model, &[0.0; 4]).unwrap().strings().unwrap(), [told]);
    });
}

#[test]
fn attributes_that_are_left_out_have_their_defaults() {
    in_each_language(|core| {
        let model = ir(core, "EveryAttr", "kinds", "", "STRING").unwrap();
        let told = "false|-7|0.5|none||||f32||any|near|none|none";
        assert_eq!(run(core, &model, &[0.0; 4]).unwrap().strings().unwrap(), [told]);
    });
}

#[test]
fn attributes_of_every_kind_come_from_onnx() {
    in_each_language(|core| {
        let graph = r#"g (float[4] x) => (string[1] y) {
            y = kinds.EveryAttr<count = 3, ratio = 2.5, label = "l", ints = [4, 5], floats = [1.5, 2.5], words = ["p", "q"],
                table = float[3] {1.0, 2.0, 3.0}>(x)
        }"#;
        let model = onnx(core, graph).unwrap();
        let told = "false|3|2.5|l|4,5|1.5,2.5|p,q|f32||any|near|none|1,2,3";
        assert_eq!(run(core, &model, &[0.0; 4]).unwrap().strings().unwrap(), [told]);
    });
}

#[test]
fn an_attribute_of_a_wrong_kind_is_told() {
    in_each_language(|core| {
        tells(ir(core, "EveryAttr", "kinds", r#"count="many""#, "STRING"), &["count", "many"]);
    });
}

#[test]
fn an_output_shape_may_depend_on_data() {
    in_each_language(|core| {
        let model = ir(core, "Places", "kinds", "", "I64").unwrap();
        assert_eq!(ints(&run(core, &model, &[0.0, 5.0, 0.0, 7.0]).unwrap()), [1, 3]);
        assert_eq!(run(core, &model, &[0.0; 4]).unwrap().shape(), [0]);
    });
}

#[test]
fn an_operation_answers_what_passes_and_devices_ask() {
    in_each_language(|core| {
        let registry = core.registry();
        let info = |name: &str| registry.find(name, "kinds").unwrap().info;
        let twice = info("Twice");
        assert!(twice.elementwise == Elementwise::First && twice.keeps_zero && !twice.builtin && !twice.no_eval);
        assert_eq!((info("Hinted").rows, info("Twice").rows, info("Places").heavy), (&[0][..], &[][..], false));
        // BATCH goes by it.
        let batched = |name: &str| {
            let model = onnx(core, &format!("g (float[1,4] x) => (float[1,4] y) {{ y = kinds.{name}(x) }}")).unwrap();
            core.compile_model(&model, "BATCH:TEMPLATE(2)", &carafe::Properties::new()).map(|_| ())
        };
        batched("Twice").unwrap();
        batched("Hinted").unwrap();
        tells(batched("RunningSum"), &["rows"]);
    });
}

#[test]
fn an_operation_keeps_a_variable() {
    in_each_language(|core| {
        let model = ir(core, "RunningSum", "kinds", "", "FP32").unwrap();
        let r = request(core, &model).unwrap();
        r.set_input(0, Tensor::from_slice(&[4], &[1f32, 2., 3., 4.]).unwrap()).unwrap();
        r.infer(()).unwrap();
        r.infer(()).unwrap();
        assert_eq!(floats(&r.output(0).unwrap()), [2., 4., 6., 8.]);
        // Another request has a state of its own.
        assert_eq!(floats(&run(core, &model, &[1.0; 4]).unwrap()), [1.0; 4]);
    });
}

#[test]
fn a_built_in_operation_can_be_replaced() {
    in_each_language(|core| {
        let model = ir(core, "SoftSign", "opset9", "", "FP32").unwrap();
        assert_eq!(floats(&run(core, &model, &[1.0; 4]).unwrap()), [42.0; 4]);
    });
    let plain = carafe::core();
    let model = ir(&plain, "SoftSign", "opset9", "", "FP32").unwrap();
    assert_eq!(floats(&run(&plain, &model, &[1.0; 4]).unwrap()), [0.5; 4]);
}

#[test]
fn a_rule_sees_attributes_inputs_and_outputs() {
    in_each_language(|core| {
        let graph = r#"g (float[2] x) => (float[2] y) {
            y = kinds.Steep<scale = 1.5, times = 2, label = "ab", axes = [0, 1], weights = [0.5, 0.5], words = ["w"]>(x)
        }"#;
        // 1.5 * 2 + 2 letters + 2 axes + 1 word + 1.0 of weights
        assert_eq!(floats(&run(core, &onnx(core, graph).unwrap(), &[1.0, -1.0]).unwrap()), [9.0, -9.0]);
        let graph = "g (float[2] x) => (float[2] y) { y = kinds.Steep<scale = 2.0>(x, x) }";
        assert_eq!(floats(&run(core, &onnx(core, graph).unwrap(), &[1.0, 2.0]).unwrap()), [3.0, 6.0]);
        let graph = "g (float[2] x) => (float[2] z) { y, u = kinds.Steep<scale = 2.0>(x)  z = Add(y, u) }";
        assert_eq!(floats(&run(core, &onnx(core, graph).unwrap(), &[1.0, 2.0]).unwrap()), [3.0, 6.0]);
    });
}

#[test]
fn a_rule_may_emit_operations_of_its_library() {
    in_each_language(|core| {
        let model = onnx(core, "g (float[3] x) => (int64[N] y) { y = kinds.Nonzeros(x) }").unwrap();
        assert_eq!(ints(&run(core, &model, &[0.0, 1.0, 1.0]).unwrap()), [1, 2]);
    });
}

#[test]
fn a_rule_that_fails_names_library_and_node() {
    for (_, path) in &*ALL_KINDS {
        let file = path.file_name().unwrap().to_string_lossy();
        let core = core_with(path);
        let graph = "g (float[2] x) => (float[2] y) { [the_node] y = kinds.Steep(x) }";
        tells(onnx(&core, graph), &["scale", "Steep", &file]);
    }
}

#[test]
fn mappings_work_in_every_form() {
    in_each_language(|core| {
        let run_graph = |call: &str, ty: &str| {
            let model =
                onnx(core, &format!("g (float[3] x) => ({ty} y) {{ {call} }}")).unwrap_or_else(|e| panic!("{e}"));
            run(core, &model, &[0.0, -1.0, 2.0]).unwrap_or_else(|e| panic!("{e}"))
        };
        assert_eq!(ints(&run_graph("y = kinds.Places(x)", "int64[N]")), [1, 2]);
        assert_eq!(ints(&run_graph("y = kinds.WhereTrue(x)", "int64[N]")), [1, 2]);
        assert_eq!(floats(&run_graph("y = kinds.ReluAlias(x)", "float[3]")), [0., 0., 2.]);
        let elu = floats(&run_graph("y = kinds.Elu1(x)", "float[3]"));
        assert!((elu[1] - 2.0 * ((-1f32).exp() - 1.0)).abs() < 1e-6 && elu[2] == 2.0, "{elu:?}");
        assert_eq!(floats(&run_graph("y = kinds.Sigmoid1(x)", "float[3]"))[0], 0.5);
        let told = run_graph("y = kinds.Tell<text = \"renamed\">(x)", "string[1]");
        assert!(told.strings().unwrap()[0].starts_with("false|12|0.5|renamed|"), "{told:?}");
        let told = run_graph(
            "c = Constant<value_ints = [7, 8]>() r = Constant<value_float = 0.25>() y = kinds.TellInput(x, c, r)",
            "string[1]",
        );
        assert!(told.strings().unwrap()[0].starts_with("false|-7|0.25|none|7,8|"), "{told:?}");
        // Without a rule or a mapping: by its name.
        assert_eq!(floats(&run_graph("y = kinds.Twice(x)", "float[3]")), [0., -2., 4.]);
    });
}

#[test]
fn a_mapping_that_lacks_an_attribute_says_which() {
    in_each_language(|core| {
        let e = onnx(core, "g (float[2] x) => (string[1] y) { y = kinds.TellInput(x, x, x) }");
        tells(e, &["to be a constant"]);
    });
}

#[test]
fn rewrites_run_in_every_phase_and_in_order() {
    in_each_language(|core| {
        let graph = "g (float[2] x) => (float[2] y) { s = Sigmoid(x)  y = Tanh(s) }";
        let mut model = onnx(core, graph).unwrap();
        let marks = |model: &Model| {
            let (_, s) = model.nodes().find(|(_, n)| n.op().type_name() == "Sigmoid").unwrap();
            s.rt_info.user.iter().map(|t| t.key.clone()).collect::<Vec<_>>()
        };
        let name =
            |model: &Model| model.nodes().find(|(_, n)| n.op().type_name() == "Tanh").unwrap().1.name().to_string();
        let before = name(&model);
        assert_eq!(marks(&model), ["front"]);
        core.run_phase(&mut model, Phase::Middle, &mut Notes::default()).unwrap();
        assert_eq!(marks(&model), ["front", "middle"]);
        assert_eq!(name(&model), format!("{before}EL"));
        core.run_phase(&mut model, Phase::Back, &mut Notes::default()).unwrap();
        assert_eq!(marks(&model), ["front", "middle", "back"]);
        // Compiling runs what is for compiled models, on a copy.
        let model = onnx(core, graph).unwrap();
        run(core, &model, &[0.0, 0.0]).unwrap();
        assert_eq!(marks(&model), ["front"]);
    });
}

#[test]
fn a_rewrite_that_is_off_runs_when_it_is_asked_for() {
    in_each_language(|core| {
        let graph = "g (float[2] x) => (float[2] y) { y = Tanh(x) }";
        let name =
            |model: &Model| model.nodes().find(|(_, n)| n.op().type_name() == "Tanh").unwrap().1.name().to_string();
        let plain = name(&onnx(core, graph).unwrap());
        core.choose_passes(PassChoice { enable: ["asked".to_string()].into(), ..PassChoice::default() });
        assert_eq!(name(&onnx(core, graph).unwrap()), format!("{plain}A"));
    });
}

#[test]
fn a_replacement_is_handed_what_a_file_matches() {
    in_each_language(|core| {
        let shop = Workshop::new();
        let graph = "g (float[2] x) => (float[2] y) { [b1] a = kinds.Unknown(x) [b2] y = kinds.Secret(a) }";
        let head = "<ir_version: 8, opset_import: [\"\" : 17, \"kinds\" : 1]>";
        let path = shop.write("model.onnxtxt", format!("{head} {graph}"));
        let convert = |kind: &str| {
            let config = shop.write("config.json", format!(r#"[{{"id": "EluBlock", {kind}}}]"#));
            let all = Conversion::new(ReadRequest::new(&path));
            Conversion { transformations_config: Some(&config), ..all }.run(core).map(|c| c.model)
        };
        let scope = r#""match_kind": "scope", "instances": ["b"], "custom_attributes": {"alpha": 0.5}"#;
        let y = floats(&run(core, &convert(scope).unwrap(), &[-1.0, 2.0]).unwrap());
        assert!((y[0] - 0.5 * ((-1f32).exp() - 1.0)).abs() < 1e-6 && y[1] == 2.0, "{y:?}");
        tells(convert(r#""match_kind": "general""#), &["replacement `EluBlock`", "EluBlock needs a match"]);
    });
}

#[test]
fn kernels_negotiate_a_blocked_form_and_run_in_it() {
    in_each_language(|core| {
        let kernel = core.extensions()[0].kernels[0].clone();
        assert_eq!((kernel.device(), kernel.op(), kernel.opset()), ("TEMPLATE", "Twice", Some("kinds")));
        assert_eq!(kernel.name(), "twice_nchw8c");
        let site = |shape: &str| {
            let fact = Fact::new(ElementType::F32, shape.parse::<PartialShape>().unwrap());
            Site {
                name: "n".into(),
                op_type: "Twice".into(),
                opset: "kinds".into(),
                attrs: carafe::AttrMap::new(),
                inputs: vec![fact.clone()],
                outputs: vec![fact],
                ..Site::default()
            }
        };
        assert!(kernel.configs(&site("?,3,2,2")).unwrap().is_empty(), "open shapes are declined");
        let site = site("1,3,2,2");
        let configs = kernel.configs(&site).unwrap();
        let form = Layout::BlockedBy(8);
        assert_eq!(configs.len(), 2);
        assert_eq!(configs[0].inputs[0].layout, form);
        assert_eq!((&configs[1].inputs[0].layout, configs[1].outputs[0].in_place), (&Layout::Plain, Some(0)));

        let x = Tensor::from_vec(&[1, 3, 2, 2], (0..12).map(|i| i as f32).collect()).unwrap();
        let twice: Vec<f32> = (0..12).map(|i| 2.0 * i as f32).collect();
        let run = |config: usize, x: Tensor| {
            let kernel = ChosenKernel::of(&*kernel, &site, config).unwrap();
            kernel.execute_formed(&[x], &site.outputs).unwrap().remove(0)
        };
        let blocked = run(0, form.pack(&x).unwrap());
        assert_eq!(blocked.shape(), [1, 1, 2, 2, 8]);
        assert_eq!(floats(&form.unpack(&blocked, &[1, 3, 2, 2]).unwrap()), twice);
        assert_eq!(floats(&run(1, x)), twice);
        tells(kernel.init(&site, 9).map(|_| ()), &["offered"]);
    });
}

#[test]
fn kernel_sources_for_opencl_are_kept() {
    in_each_language(|core| {
        let cl = &core.extensions()[0].cl_kernels;
        assert_eq!((cl.len(), cl[0].device.as_str()), (1, "GPU"));
        assert!(cl[0].xml.contains("CustomLayer") && cl[0].source.contains("__kernel"));
    });
}

#[test]
fn progress_and_events_are_heard() {
    in_each_language(|core| {
        let graph = "g (float[1] x) => (int64[2] y) { y = kinds.Heard(x) }";
        let before = ints(&run(core, &onnx(core, graph).unwrap(), &[0.0]).unwrap());
        let e = core.extensions().remove(0);
        e.telemetry[0]("event", "mo", "framework", "onnx", 1);
        let after = ints(&run(core, &onnx(core, graph).unwrap(), &[0.0]).unwrap());
        assert!(after[0] > before[0], "steps: {before:?} then {after:?}");
        assert!(after[1] > before[1], "events: {before:?} then {after:?}");
    });
}

#[test]
fn operations_go_through_ir_and_back() {
    let attrs = r#"flag="true" count="12" ratio="1.5" label="a text" ints="1,-2" floats="0.5,2" words="a,b" ty="i64" types="f32,u8" shape="1,?,2..5" mode="far" bound="9""#;
    in_each_language(|core| {
        let model = ir(core, "EveryAttr", "kinds", attrs, "STRING").unwrap();
        let (xml, bin) = carafe::ir::write_to(&model, &Default::default()).unwrap();
        let bytes = carafe::SharedBytes::from_vec(bin);
        let again = carafe::ir::read(&xml, bytes, &core.registry(), &Default::default()).unwrap();
        let first = run(core, &model, &[0.0; 4]).unwrap();
        assert!(run(core, &again, &[0.0; 4]).unwrap().content_eq(&first));
        let (twice, _) = carafe::ir::write_to(&again, &Default::default()).unwrap();
        assert_eq!(xml, twice);
        assert!(xml.contains(r#"type="EveryAttr" version="kinds""#), "{xml}");
    });
}

#[test]
fn what_a_library_brings_is_listed_alike() {
    in_each_language(|core| {
        let e = &core.extensions()[0];
        assert_eq!((e.name.as_str(), e.version.as_str()), ("all kinds", "0.1.0"));
        assert_eq!((e.rules.len(), e.mappings.len(), e.passes.len()), (2, 8, 7));
        assert!(e.passes.iter().any(|p| p.phase == Phase::Decoded && p.pass.name() == "kinds_decoded"));
        assert_eq!((e.kernels.len(), e.progress.len(), e.telemetry.len()), (1, 1, 1));
        assert!(e.ops.len() >= 6);
    });
}

#[test]
fn a_panic_or_exception_in_an_operation_is_an_error_with_its_library() {
    for (language, how, wanted) in [
        ("Rust", "infer panics", "panicked: infer was told to panic"),
        ("Rust", "eval panics", "panic: eval was told to panic"),
        ("Rust", "eval errors", "eval was told to fail"),
        ("Rust", "no output", "output"),
        ("C++", "infer panics", "an exception that is no std::exception"),
        ("C++", "eval panics", "an exception that is no std::exception"),
        ("C++", "eval errors", "eval was told to fail"),
        ("C++", "part throws", "a part was told to fail"),
        ("C++", "wrong type", "was read as"),
        ("C++", "no output", "output"),
    ] {
        let path = &ALL_KINDS.iter().find(|(l, _)| *l == language).unwrap().1;
        let core = core_with(path);
        let result =
            ir(&core, "Fails", "kinds", &format!("how=\"{how}\""), "FP32").and_then(|m| run(&core, &m, &[0.0; 4]));
        let file = path.file_name().unwrap().to_string_lossy();
        let file = if how == "no output" { "the node" } else { &*file };
        tells(result, &[wanted, file]);
        goes_on(&core);
    }
}

#[test]
fn a_weight_at_an_odd_place_of_its_file_arrives_aligned() {
    let attrs = r#"element_type="f32" shape="4" offset="1" size="16""#;
    let text = r#"<?xml version="1.0"?><net name="n" version="11"><layers>
<layer id="0" name="w" type="Const" version="opset1"><data ATTRS/><output><port id="0" precision="FP32"><dim>4</dim></port></output></layer>
<layer id="1" name="heard" type="Twice" version="kinds"><input><port id="0"/></input><output><port id="1" precision="FP32"><dim>4</dim></port></output></layer>
<layer id="2" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges></net>"#;
    in_each_language(|core| {
        let shop = carafe_testkit::libraries::Workshop::new();
        let mut bin = vec![0u8];
        [1f32, 2., 3., 4.].iter().for_each(|x| bin.extend(x.to_le_bytes()));
        shop.write("m.bin", bin);
        let model = core.read_model(shop.write("m.xml", text.replace("ATTRS", attrs))).unwrap();
        let r = request(core, &model).unwrap();
        r.infer(()).unwrap();
        assert_eq!(floats(&r.output(0).unwrap()), [2., 4., 6., 8.]);
    });
}
