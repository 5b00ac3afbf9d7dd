//! `carafe extension`, `extgen`, `plugin` and `explain`: what is generated compiles and passes its tests unchanged. All combinations
//! are in `scripts/generator-matrix`.

use crate::common::{carafe, folder, ok, repo};
use std::path::Path;

const ATTRIBUTES: [&str; 8] = [
    "alpha:float=0.5",
    "axis:int=1",
    "type:bool=true",
    "mode:string=near",
    "steps:ints=1,2",
    "scales:floats=0.5,2",
    "names:strings=a,b",
    "need:float",
];

const ALL_BUT_KALDI: [&str; 6] =
    ["--onnx-ext", "--tf-ext", "--tflite-ext", "--mo-caffe-ext", "--mxnet-ext", "--paddle-ext"];

fn generate(name: &str, dir: &Path, words: &[&str]) {
    let mut all = vec!["extension", "new", name, "-o", dir.to_str().unwrap()];
    all.extend(words);
    ok(&all);
}

fn fails(args: &[&str], code: i32) -> String {
    let done = carafe(args);
    assert_eq!(done.status.code(), Some(code), "{args:?}");
    String::from_utf8(done.stderr).unwrap()
}

#[test]
fn every_attribute_framework_and_kernel_works_in_c_and_cpp() {
    for language in ["c", "cpp"] {
        let dir = folder(&format!("extension-all-{language}"));
        let mut words = vec!["--language", language, "--kaldi-ext", "--ie-cpu-ext", "--gpu-ext", "--vpu-ext"];
        words.extend(ALL_BUT_KALDI);
        words.extend(ATTRIBUTES.iter().flat_map(|a| ["--attribute", a]));
        generate("Acme", &dir, &words);
        let said = ok(&["extension", "test", dir.to_str().unwrap()]);
        assert!(said.contains(" 0 failed, 0 skipped"), "{said}");
        for model in ["xml", "onnxtxt", "pbtxt", "tflite", "prototxt", "nnet", "pdmodel"] {
            assert!(said.contains(&format!("acme.{model} ")), "{said}");
        }
    }
}

#[test]
fn several_ports_and_the_old_folders_work_in_c_and_cpp() {
    for language in ["c", "cpp"] {
        let dir = folder(&format!("extension-mix-{language}"));
        let mut words = vec!["--language", language, "--layout", "extgen", "--inputs", "a,b", "--outputs", "y,z"];
        words.extend(["--changes-shape", "--cpu-ext", "--gpu-ext", "--vpu-ext"]);
        words.extend(ALL_BUT_KALDI);
        generate("Mix", &dir, &words);
        let said = ok(&["extension", "test", dir.to_str().unwrap()]);
        assert!(said.contains(" 0 failed, 0 skipped"), "{said}");
        assert!(dir.join("user_ie_extensions/gpu/mix_kernel.cl").is_file());
    }
}

#[test]
fn a_kernel_that_differs_fails_its_row() {
    let dir = folder("extension-wrong");
    generate("Wrong", &dir, &["--language", "c", "--cpu-ext"]);
    let kernel = dir.join("src/kernel.h");
    let text = std::fs::read_to_string(&kernel).unwrap();
    let call = "    wrong_part(loop->op, loop->x, loop->y, begin, end < loop->n ? end : loop->n);";
    assert!(text.contains(call));
    std::fs::write(&kernel, text.replace(call, &format!("{call}\n    if (loop->n) loop->y[0] += 1;"))).unwrap();
    let done = carafe(&["extension", "test", dir.to_str().unwrap()]);
    let said = String::from_utf8(done.stdout).unwrap();
    assert_eq!(done.status.code(), Some(1), "{said}");
    let failed = |check: &str| said.lines().any(|l| l.contains(&format!("CPU     {check}")) && l.contains("FAILED"));
    assert!(failed("kernel") && failed("cases"), "{said}");
}

#[test]
fn an_unknown_node_leads_to_a_project_that_runs_it() {
    let dir = folder("extension-from-model");
    let model = dir.join("net.onnxtxt");
    let text = "<ir_version: 8, opset_import: [\"\": 17, \"mine\": 1]>\n\
                net (float[3] x) => (float[3] y) { y = mine.Acme <alpha = 0.5, steps = [1, 2], mode = \"near\"> (x) }\n";
    std::fs::write(&model, text).unwrap();
    let model = model.to_str().unwrap();
    let error = fails(&["run", model], 1);
    assert!(error.contains(&format!("`carafe extension new --from-model {model}` writes one")), "{error}");
    let project = dir.join("acme");
    let project = project.to_str().unwrap();
    ok(&["extension", "new", "--from-model", model, "--language", "c", "-o", project]);
    let library = ok(&["extension", "build", project]);
    let said = ok(&["run", model, "--extension", library.trim(), "--fill", "random"]);
    assert!(said.starts_with("y: f32[3]"), "{said}");
    let manifest = std::fs::read_to_string(format!("{project}/carafe-extension.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["frameworks"][0]["domain"], "mine");
    assert_eq!(manifest["attributes"][1]["default"], serde_json::json!([1, 2]));
}

#[test]
fn an_edited_file_is_not_overwritten() {
    let dir = folder("extension-edited");
    generate("Acme", &dir, &["--language", "c"]);
    // Other answers change files that nobody touched.
    generate("Acme", &dir, &["--language", "c", "--onnx-ext"]);
    std::fs::write(dir.join("src/op.h"), "/* mine */").unwrap();
    let words = ["extension", "new", "Acme", "--language", "c", "-o", dir.to_str().unwrap()];
    let error = fails(&words, 2);
    assert!(
        error.contains("nothing was written") && error.contains("src/op.h") && error.contains("--force"),
        "{error}"
    );
    assert_eq!(std::fs::read_to_string(dir.join("src/op.h")).unwrap(), "/* mine */");
    ok(&[&words[..], &["--force"]].concat());
    assert_ne!(std::fs::read_to_string(dir.join("src/op.h")).unwrap(), "/* mine */");
}

#[test]
fn the_old_generator_prints_its_help_and_reads_its_json() {
    let help = ok(&["extgen", "new", "--help"]);
    assert!(
        help.starts_with("usage: You can use any combination of the following arguments:\n\nArguments to configure"),
        "{help}"
    );
    assert!(help.contains("  --mo-caffe-ext        generate a Model Optimizer Caffe* extractor\n"), "{help}");
    let dir = folder("extension-legacy");
    let config = dir.join("config.json");
    let text = r#"{"mo_tf_extractor": {"op": "cosh", "params": [{"old_name": "alpha", "new_name": "alpha", "type": "f"}]},
        "mo_op": {"op": "cosh", "supported_attrs": ["alpha"]}, "ie_op": {"op": "cosh", "plugin": "cpu"}}"#;
    std::fs::write(&config, text).unwrap();
    let said = ok(&["extgen", config.to_str().unwrap(), "--output_dir", dir.to_str().unwrap(), "--language", "c"]);
    assert!(said.contains("Stub file for TensorFlow Model Optimizer extractor is in"), "{said}");
    assert!(dir.join("user_mo_extensions/front/tf/cosh_ext.h").is_file());
    let error = fails(&["extgen", "new"], 2);
    assert!(error.contains("nothing to generate"), "{error}");
}

#[test]
fn a_crate_in_rust_passes_its_tests() {
    let dir = folder("extension-rust");
    let mut words = vec!["--kaldi-ext", "--cpu-ext", "--gpu-ext"];
    words.extend(ALL_BUT_KALDI);
    words.extend(ATTRIBUTES.iter().flat_map(|a| ["--attribute", a]));
    generate("Acme", &dir, &words);
    let mut test = std::process::Command::new(env!("CARGO_BIN_EXE_carafe"));
    test.args(["extension", "test", dir.to_str().unwrap()]).current_dir(repo());
    // Kept from one run to the next.
    let done = test.env("CARGO_TARGET_DIR", repo().join("target/generated")).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains(" 0 failed, 0 skipped"), "{said}");
}

#[test]
fn a_plugin_in_c_passes_the_checks_under_its_name() {
    let dir = folder("extension-plugin");
    ok(&["plugin", "new", "ACME", "--language", "c", "-o", dir.to_str().unwrap()]);
    let library = ok(&["extension", "build", dir.to_str().unwrap()]);
    let plugin = format!("ACME={}", library.trim());
    let said = ok(&["conformance", "-d", "ACME", "--plugin", &plugin, "--filter", "tensors::"]);
    assert!(said.contains("device ACME") && said.contains(" 0 failed"), "{said}");
    let error = fails(&["plugin", "new", "acme"], 2);
    assert!(error.contains("is no name of a device"), "{error}");
}

#[test]
fn errors_are_explained() {
    assert!(ok(&["explain", "unsupported-op"]).starts_with("E0024 UNSUPPORTED-OP"));
    assert!(ok(&["explain"]).lines().count() > 20);
    assert!(fails(&["explain", "E9999"], 2).contains("`carafe explain` lists them"));
}
