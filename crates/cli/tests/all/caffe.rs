//! Caffe models as users give them: topology first or weights first, mo's spelling, custom layers, the stages of a conversion.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const FIXTURES: &str = "crates/fe-caffe/tests/fixtures";

fn carafe(args: &[&str]) -> Output {
    let repo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_carafe")).args(args).current_dir(repo).output().unwrap()
}

fn ok(args: &[&str]) -> (String, String) {
    let done = carafe(args);
    let err = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{args:?}: {err}");
    (String::from_utf8(done.stdout).unwrap(), err)
}

fn fails(args: &[&str]) -> String {
    let done = carafe(args);
    assert!(!done.status.success(), "{args:?} succeeded");
    String::from_utf8(done.stderr).unwrap()
}

fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("caffe").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn topology_and_weights_come_in_every_spelling() {
    let (proto, model) = (format!("{FIXTURES}/convolution.prototxt"), format!("{FIXTURES}/convolution.caffemodel"));
    let apart = folder("spellings");
    let (alone, weights) = (apart.join("net.prototxt"), apart.join("other.caffemodel"));
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&proto), &alone).unwrap();
    std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(&model), &weights).unwrap();
    let run = |args: &[&str]| ok(&[&["run"], args, &["--fill", "random", "--json"]].concat()).0;
    let outputs = |json: String| serde_json::from_str::<serde_json::Value>(&json).unwrap()["outputs"].clone();
    let beside = outputs(run(&[&proto]));
    assert_eq!(beside, outputs(run(&[&model])));
    assert_eq!(beside, outputs(run(&[text(&alone), "--weights", text(&weights)])));
    assert_eq!(beside, outputs(run(&[text(&weights), "--input_proto", text(&alone)])));
    for args in
        [["--input_model", text(&weights), "--input_proto", text(&alone)], ["-w", text(&weights), "-d", text(&alone)]]
    {
        let out = apart.join("out");
        let options = ["--output_dir", text(&out), "--framework", "caffe", "--compress_to_fp16=False"];
        ok(&[&["convert"], args.as_slice(), &options].concat());
        assert_eq!(beside, outputs(run(&[text(&out.join("other.xml"))])));
    }
    for args in [["--input_model", text(&weights)], ["-w", text(&weights)]] {
        assert_eq!(beside, outputs(run(&[&args[..], &["--input_proto", text(&alone)]].concat())));
        assert!(ok(&[&["inspect", "--input_proto", text(&alone)], &args[..]].concat()).0.contains("Convolution"));
    }
    let e = fails(&["run", text(&alone)]);
    assert!(e.contains("layer `") && e.contains("weights"), "{e}");
    assert!(ok(&["inspect", &proto]).0.contains("Convolution"));
}

#[test]
fn a_custom_layer_goes_into_the_ir() {
    let dir = folder("custom");
    let (net, mapping, out) = (dir.join("net.prototxt"), dir.join("mapping.xml"), dir.join("net.xml"));
    std::fs::write(
        &net,
        r#"input: "data" input_shape { dim: 1 dim: 3 dim: 8 dim: 8 }
           layer { name: "odd" type: "Oddity" bottom: "data" top: "odd" oddity_param { strength: 2 } }
           layer { name: "relu" type: "ReLU" bottom: "odd" top: "relu" }"#,
    )
    .unwrap();
    let e = fails(&["convert", text(&net), "-o", text(&out)]);
    assert!(e.contains("1 x `Oddity`") && e.contains("CustomLayersMapping.xml (-k)"), "{e}");
    std::fs::write(
        &mapping,
        r#"<CustomKernelsMapping>
             <CustomLayer NativeType="Oddity" hasParam="true" protoParamName="oddity_param"/>
             <CustomLayer NativeType="ReLU" hasParam="false"/>
           </CustomKernelsMapping>"#,
    )
    .unwrap();
    let e = fails(&["convert", text(&net), "-o", text(&out), "-k", text(&mapping)]);
    assert!(e.contains("nothing says its output shape"), "{e}");
    let shapes = ["--layer_shapes", "odd[1,3,4,4]"];
    let (table, warned) =
        ok(&[&["convert", text(&net), "-o", text(&out), "-k", text(&mapping), "--explain"], shapes.as_slice()]
            .concat());
    assert!(table.contains("CustomLayersMapping.xml"), "{table}");
    assert!(warned.contains("mapping.xml`: the entry for `ReLU` is not used"), "{warned}");
    let ir = std::fs::read_to_string(&out).unwrap();
    assert!(ir.contains(r#"type="Oddity" version="extension""#) && ir.contains(r#"strength="2""#), "{ir}");
}

#[test]
fn the_debug_log_tells_of_stages_passes_and_shapes() {
    let dir = folder("debug");
    let out = dir.join("net.xml");
    let net = format!("{FIXTURES}/convolution.prototxt");
    let (_, log) = ok(&["convert", &net, "-o", text(&out), "--log_level", "DEBUG"]);
    for wanted in [
        "stage load: Caffe",
        "stage extract",
        "extract: `",
        "(Convolution) by built-in",
        "stage front",
        "stage infer",
        "stage middle",
        "fold_constants: ",
        "stage back",
        "stage emit",
    ] {
        assert!(log.contains(&format!("[ DEBUG ] {wanted}")) || log.contains(wanted), "{wanted}: {log}");
    }
    let (_, without) = ok(&["convert", &net, "-o", text(&out), "--log_level", "DEBUG", "--disable", "fold_constants"]);
    assert!(!without.contains("fold_constants"), "{without}");
}

#[test]
fn the_scopes_of_a_replacement_file_are_filled_in() {
    let dir = folder("update");
    let (net, config) = (dir.join("net.prototxt"), dir.join("config.json"));
    std::fs::write(
        &net,
        r#"input: "data" input_shape { dim: 1 dim: 3 }
           layer { name: "block/a" type: "Mystery" bottom: "data" top: "a" }
           layer { name: "block/b" type: "TanH" bottom: "a" top: "b" }"#,
    )
    .unwrap();
    std::fs::write(&config, r#"[{"id": "Block", "match_kind": "scope", "instances": ["block/"], "op": "Sigmoid"}]"#)
        .unwrap();
    let (told, _) = ok(&["convert", text(&net), "--tensorflow_custom_operations_config_update", text(&config)]);
    assert_eq!(told.trim(), text(&config));
    let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&config).unwrap()).unwrap();
    assert_eq!(json[0]["inputs"], serde_json::json!([[{"node": "a$", "port": 0}]]));
    assert_eq!(json[0]["outputs"], serde_json::json!([{"node": "b$", "port": 0}]));
    let out = dir.join("net.xml");
    ok(&["convert", text(&net), "-o", text(&out), "--tensorflow_use_custom_operations_config", text(&config)]);
    assert!(ok(&["inspect", text(&out)]).0.contains("Sigmoid"));
}

const TANH: &str = r#"input: "data" input_shape { dim: 1 dim: 3 }
    layer { name: "block/a" type: "Mystery" bottom: "data" top: "a" }
    layer { name: "block/b" type: "TanH" bottom: "a" top: "b" }"#;

#[test]
fn a_topology_without_weights_is_a_model() {
    let dir = folder("alone");
    let (net, out) = (dir.join("net.prototxt"), dir.join("net.xml"));
    std::fs::write(&net, TANH.replace("Mystery", "ReLU")).unwrap();
    for flag in ["--input_proto", "-d"] {
        ok(&["convert", flag, text(&net), "-o", text(&out), "--framework", "caffe"]);
        std::fs::remove_file(&out).unwrap();
    }
    assert!(ok(&["run", "--input_proto", text(&net)]).0.starts_with("b: f32[1, 3]"));
    assert!(ok(&["inspect", "--input_proto", text(&net)]).0.contains("ReLU"));
    assert!(fails(&["convert", "-o", text(&out)]).contains("MODEL"));
}

#[test]
fn a_model_runs_with_its_replacements() {
    let dir = folder("replaced");
    let (net, config) = (dir.join("net.prototxt"), dir.join("config.json"));
    std::fs::write(&net, TANH).unwrap();
    std::fs::write(&config, r#"[{"id": "Block", "match_kind": "scope", "instances": ["block/"], "op": "Sigmoid"}]"#)
        .unwrap();
    assert!(fails(&["run", text(&net)]).contains("Mystery"));
    let (out, _) = ok(&["run", text(&net), "--transformations_config", text(&config)]);
    assert!(out.starts_with("b: f32[1, 3] min 0.5 max 0.5"), "{out}");
}

#[test]
fn outputs_that_are_no_numbers_are_counted() {
    let dir = folder("nan");
    let net = dir.join("net.prototxt");
    let log = r#"input: "x" input_shape { dim: 1 dim: 2 }
        layer { name: "l" type: "Log" bottom: "x" top: "y" log_param { shift: SHIFT } }"#;
    std::fs::write(&net, log.replace("SHIFT", "-1")).unwrap();
    let (out, _) = ok(&["run", text(&net)]);
    assert!(out.starts_with("y: f32[1, 2] NaN 2 of 2"), "{out}");
    std::fs::write(&net, log.replace("SHIFT", "1")).unwrap();
    assert!(ok(&["run", text(&net)]).0.starts_with("y: f32[1, 2] min 0 max 0  "));
}

#[test]
fn a_broken_text_is_told_with_its_place() {
    let dir = folder("broken");
    let net = dir.join("net.prototxt");
    std::fs::write(&net, b"name: 'n'\n layer { name: '\xff' }").unwrap();
    let e = fails(&["convert", text(&net), "-o", "never.xml", "--framework", "caffe"]);
    assert!(e.contains("line 2, column 17: the byte 0xff is no UTF-8"), "{e}");
    for empty in ["", "name: 'x'"] {
        std::fs::write(&net, empty).unwrap();
        let e = fails(&["convert", text(&net), "-o", "never.xml", "--framework", "caffe"]);
        assert!(e.contains("the net has no layers"), "{e}");
    }
}

#[test]
fn weights_without_a_topology_ask_for_it() {
    let dir = folder("only");
    let model = dir.join("only.caffemodel");
    // One layer (field 100) with the name `c1` (field 1) and a blob (field 7).
    std::fs::write(&model, b"\xa2\x06\x06\x0a\x02c1\x3a\x00").unwrap();
    let e = fails(&["run", text(&model)]);
    assert!(e.contains("layer `c1` has no `type`") && e.contains("--input_proto"), "{e}");
}

#[test]
fn names_out_of_a_model_do_not_steer_the_terminal() {
    let dir = folder("escapes");
    let net = dir.join("net.prototxt");
    let layer = |ty: &str| {
        let name = "evil\\033]0;title\\007\\033[2J";
        format!(
            "input: 'x' input_shape {{ dim: 2 }}\nlayer {{ name: \"{name}\" type: \"{ty}\" bottom: 'x' top: 'y' steep: 1 }}"
        )
    };
    std::fs::write(&net, layer("ReLU")).unwrap();
    let shown = r"evil\u{1b}]0;title\u{7}\u{1b}[2J";
    for args in
        [&["inspect", text(&net), "--graph"][..], &["query", text(&net), "--explain"], &["run", text(&net), "--perf"]]
    {
        let (out, err) = ok(args);
        assert!(!out.contains('\u{1b}') && !err.contains('\u{1b}') && !out.contains('\u{7}'), "{args:?}: {out}{err}");
        assert!(out.contains(shown) && err.contains(shown), "{args:?}: {out}{err}");
    }
    std::fs::write(&net, layer("Fancy\\033[31m")).unwrap();
    let err = fails(&["run", text(&net)]);
    assert!(!err.contains('\u{1b}') && err.contains(r"Fancy\u{1b}[31m"), "{err}");
    std::fs::write(&net, layer("ReLU")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&ok(&["query", text(&net), "--json", "--explain"]).0).unwrap();
    assert!(json.to_string().contains("\\u001b"), "{json}");
}

#[test]
fn a_sum_of_many_terms_in_a_list_of_custom_layers_is_read() {
    let dir = folder("many_terms");
    let (net, list) = (dir.join("net.prototxt"), dir.join("custom.xml"));
    std::fs::write(&net, "input: 'x' input_shape { dim: 2 } layer { name: 'a' type: 'Acme' bottom: 'x' top: 'y' }")
        .unwrap();
    let sum = vec!["1"; 40_000].join("+");
    let entry = format!("<CustomLayer NativeType=\"Acme\" hasParam=\"false\" outputShape=\"{sum}\"/>");
    std::fs::write(&list, format!("<CustomKernelsMapping>{entry}</CustomKernelsMapping>")).unwrap();
    let out = dir.join("out.xml");
    ok(&["convert", text(&net), "-k", text(&list), "-o", text(&out)]);
    assert!(std::fs::read_to_string(&out).unwrap().contains("<dim>40000</dim>"));
    // Elements inside of each other, and the same for a list of plugins.
    let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    std::fs::write(&list, &deep).unwrap();
    assert!(fails(&["convert", text(&net), "-k", text(&list), "-o", text(&out)]).contains("carafe: "));
    assert!(fails(&["devices", "--plugin", text(&list)]).contains("carafe: "));
}

#[test]
fn the_help_of_framework_lists_what_is_read() {
    let (help, _) = ok(&["convert", "--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("one of those that can be read: onnx, tf, tflite, paddle, caffe, ir"), "{help}");
    let model = format!("{FIXTURES}/convolution.prototxt");
    let err = fails(&["convert", &model, "--framework", "mxnet", "-o", "x.xml"]);
    assert!(err.contains("models of mxnet are not read; onnx, tf, tflite, paddle, caffe, ir can be"), "{err}");
}
