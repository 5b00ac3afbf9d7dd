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
        for (device, kernel) in [("CPU", "by acme"), ("GPU", "by custom acme"), ("VPU", "by custom acme")] {
            assert!(row(&said, device, "kernel").contains(kernel), "{device}: {said}");
        }
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

/// The rows of `carafe extension test` after an edit of the operation, which is in C.
fn tested_with(name: &str, from: &str, to: &str) -> String {
    let dir = folder(&format!("extension-{name}"));
    generate("Acme", &dir, &["--language", "c"]);
    let file = dir.join("src/op.h");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "{text}");
    std::fs::write(&file, text.replace(from, to)).unwrap();
    String::from_utf8(carafe(&["extension", "test", dir.to_str().unwrap()]).stdout).unwrap()
}

fn row<'t>(table: &'t str, device: &str, check: &str) -> &'t str {
    let is_it = |l: &&str| l.contains(&format!(" {device} ")) && l.contains(&format!(" {check} "));
    table.lines().find(is_it).unwrap_or_else(|| panic!("no row {device} {check} in {table}"))
}

#[test]
fn an_instance_that_is_not_freed_fails_the_row_of_memory() {
    let said = tested_with("leak-instance", "    free(op);", "    (void)op;");
    assert!(row(&said, "-", "memory").contains("FAILED  20000 instances that were made and released leave"), "{said}");
}

#[test]
fn memory_that_an_evaluation_keeps_fails_the_rows_of_memory() {
    let part = "    for (size_t i = begin; i < end; i++)";
    let leak = format!("    static void *volatile kept;\n    kept = malloc(256);\n{part}");
    let said = tested_with("leak-eval", part, &leak);
    assert!(row(&said, "-", "memory").contains("FAILED  2000 evaluations leave"), "{said}");
    assert!(row(&said, "CPU", "memory").contains("FAILED  2000 inferences of"), "{said}");
}

#[test]
fn requests_that_share_a_buffer_fail_the_row_of_threads() {
    let part = "    for (size_t i = begin; i < end; i++) y[i] = acme_apply(op, x[i]);";
    // The others get their turn while the buffer is full.
    let shared = "    static float scratch[65536];\n\
                  \x20   int sched_yield(void);\n\
                  \x20   for (size_t i = begin; i < end; i++) scratch[i % 65536] = acme_apply(op, x[i]);\n\
                  \x20   sched_yield();\n\
                  \x20   for (size_t i = begin; i < end; i++) y[i] = scratch[i % 65536];";
    let said = tested_with("race", part, shared);
    assert!(row(&said, "CPU", "threads").contains("FAILED  8 requests at once"), "{said}");
}

#[test]
fn a_project_that_was_moved_is_built_anew() {
    let dir = folder("extension-moved");
    let (before, after) = (dir.join("before"), dir.join("after"));
    generate("Acme", &before, &["--language", "c"]);
    ok(&["extension", "build", before.to_str().unwrap()]);
    std::fs::rename(&before, &after).unwrap();
    assert!(ok(&["extension", "build", after.to_str().unwrap()]).contains("after/build/libacme.so"));
}

#[test]
fn an_ir_with_an_unknown_layer_names_the_command_that_writes_it() {
    let dir = folder("extension-ir");
    generate("Acme", &dir, &["--language", "c"]);
    let model = dir.join("tests/models/acme.xml");
    let error = fails(&["run", model.to_str().unwrap()], 1);
    let command = format!("`carafe extension new --from-model {}` writes one", model.display());
    assert!(error.contains(&command) && error.contains("carafe explain E0201"), "{error}");
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
    let library = repo().join("target/generated/debug/libacme.so");
    let bytes = std::fs::metadata(&library).unwrap().len();
    assert!(bytes < 5_000_000, "{} has {bytes} bytes", library.display());
    // Plain cargo finds Carafe too.
    let mut cargo = std::process::Command::new(env!("CARGO"));
    cargo.args(["test", "--quiet", "--offline"]).current_dir(&dir);
    let done = cargo.env("CARGO_TARGET_DIR", repo().join("target/generated")).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
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
