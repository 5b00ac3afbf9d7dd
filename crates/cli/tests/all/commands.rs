//! The command as a user types it, on the demo model.

use crate::common::{MODEL, carafe, folder, ok, repo};
use carafe_testkit::libraries::Workshop;
use std::path::Path;
use std::process::Command;

/// Exit code and message of a command that must fail.
fn fails(args: &[&str]) -> (i32, String) {
    let done = carafe(args);
    assert!(!done.status.success(), "{args:?} succeeded");
    (done.status.code().unwrap(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn what_the_command_made_up_is_told() {
    let done = carafe(&["run", MODEL]);
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        told.contains(
            "input `image` got no file and is filled with zeros, f32[1, 1, 8, 8]; its shape [?,1,8,8] is open"
        ),
        "{told}"
    );
    let done = carafe(&["run", MODEL, "--shape", "[2,1,8,8]", "--fill", "random"]);
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(told.contains("filled with random values, f32[2, 1, 8, 8]\n"), "{told}");
    assert!(carafe(&["run", MODEL, "-i", "demo/digits/one.png"]).stderr.is_empty());
}

#[test]
fn open_sizes_of_pictures_are_guessed() {
    let dir = folder("guessed");
    let model = dir.join("m.onnxtxt");
    let text = r#"<ir_version: 8, opset_import: ["" : 17]>
m (float[n,3,h,w] x) => (float[n,3,h2,w2] y) { y = MaxPool<kernel_shape=[32,32], strides=[32,32]>(x) }"#;
    std::fs::write(&model, text).unwrap();
    let model = model.to_str().unwrap();
    assert!(ok(&["run", model]).starts_with("y: f32[1, 3, 8, 8] "));
    assert!(ok(&["run", model, "--shape", "x[2,3,64,32]"]).starts_with("y: f32[2, 3, 2, 1] "));
    assert!(ok(&["query", model, "--shape", "[1,3,64,64]"]).contains("nodes run on CPU"));
}

#[test]
fn numbers_are_short() {
    let text = ok(&["run", MODEL, "-i", "demo/digits/one.png"]);
    let words = text.split_whitespace().filter(|w| w.parse::<f64>().is_ok());
    assert!(words.clone().count() > 8 && words.into_iter().all(|w| w.len() <= 12), "{text}");
}

#[test]
fn every_sample_image_is_classified_right() {
    let words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    for word in words {
        let image = format!("demo/digits/{word}.png");
        let text = ok(&["run", MODEL, "-i", &image, "--top", "1", "--labels", "demo/digits/labels.txt"]);
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn run_writes_tensors_and_a_list_of_them() {
    let dir = folder("run_writes");
    ok(&["run", MODEL, "--fill", "random", "--seed", "3", "-o", dir.to_str().unwrap()]);
    let list: serde_json::Value = serde_json::from_slice(&std::fs::read(dir.join("outputs.json")).unwrap()).unwrap();
    let row = &list["outputs"][0];
    assert_eq!((row["name"].as_str(), row["element_type"].as_str()), (Some("probabilities"), Some("f32")));
    let file = std::fs::read(dir.join(row["file"].as_str().unwrap())).unwrap();
    assert_eq!(carafe_npy::read_npy(&file).unwrap().shape(), [1, 10]);
}

#[test]
fn the_same_seed_gives_the_same_outputs() {
    let run = |seed| ok(&["run", MODEL, "--fill", "random", "--seed", seed]);
    assert_eq!(run("5"), run("5"));
    assert_ne!(run("5"), run("6"));
}

#[test]
fn inputs_come_from_npy_npz_and_raw_files_alike() {
    let dir = folder("inputs");
    let tensor = carafe::Tensor::from_f64(carafe::ElementType::F32, &[1, 1, 8, 8], &[7.0; 64]).unwrap();
    let path = |name: &str| dir.join(name).to_str().unwrap().to_string();
    std::fs::write(path("a.npy"), carafe_npy::write_npy(&tensor).unwrap()).unwrap();
    std::fs::write(path("a.npz"), carafe_npy::write_npz(&[("image".into(), tensor.clone())]).unwrap()).unwrap();
    let named = ok(&["run", MODEL, "-i", &format!("image={}", path("a.npy"))]);
    assert_eq!(named, ok(&["run", MODEL, "-i", &path("a.npy")]));
    assert_eq!(named, ok(&["run", MODEL, "-i", &path("a.npz")]));
}

#[test]
fn a_raw_file_of_the_wrong_size_says_both_sizes() {
    let dir = folder("raw");
    let converted = dir.join("static.xml");
    // The demo has a dynamic batch, so raw bytes are refused with the way out.
    std::fs::write(dir.join("x.raw"), [0u8; 12]).unwrap();
    let (code, text) = fails(&["run", MODEL, "-i", dir.join("x.raw").to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(text.contains("raw bytes need a static shape") && text.contains("use .npy"), "{text}");
    assert!(!converted.exists());
}

#[test]
fn convert_writes_a_model_that_gives_the_same_numbers() {
    let dir = folder("convert");
    let plain = dir.join("plain.xml");
    let small = dir.join("small.xml");
    ok(&["convert", MODEL, "-o", plain.to_str().unwrap(), "--compress_to_fp16=False"]);
    ok(&["convert", MODEL, "-o", small.to_str().unwrap()]);
    let run = |m: &str| ok(&["run", m, "-i", "demo/digits/four.png"]);
    assert_eq!(run(MODEL), run(plain.to_str().unwrap()));
    assert!(ok(&["run", small.to_str().unwrap(), "-i", "demo/digits/four.png", "--top", "1"]).contains("     4  "));
    let size = |p: &Path| std::fs::metadata(p.with_extension("bin")).unwrap().len();
    assert!(size(&small) * 10 < size(&plain) * 6, "{} {}", size(&small), size(&plain));
}

#[test]
fn converting_a_model_onto_itself_is_safe() {
    let dir = folder("onto_itself");
    for name in ["digits.xml", "digits.bin"] {
        std::fs::copy(repo().join("demo/digits").join(name), dir.join(name)).unwrap();
    }
    let model = dir.join("digits.xml");
    let model = model.to_str().unwrap();
    let before = ok(&["run", model, "-i", "demo/digits/nine.png"]);
    ok(&["convert", model, "-o", model, "--compress_to_fp16=False"]);
    assert_eq!(before, ok(&["run", model, "-i", "demo/digits/nine.png"]));
}

#[test]
fn inspect_tells_what_a_model_is_made_of() {
    let text = ok(&["inspect", MODEL]);
    for part in ["input       image: f32[?,1,8,8]", "output      probabilities: f32[?,10]", "MatMul", "opset1 (8)"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    let json: serde_json::Value = serde_json::from_str(&ok(&["inspect", MODEL, "--json"])).unwrap();
    assert_eq!(json["ops"]["MatMul"], 2);
    assert!(ok(&["inspect", MODEL, "--graph"]).contains("MatMul(%"));
    assert!(ok(&["inspect", MODEL, "--dot"]).starts_with("digraph"));
}

#[test]
fn devices_and_query_name_the_devices() {
    let text = ok(&["devices"]);
    assert!(text.starts_with("CPU") && text.contains("\nTEMPLATE"), "{text}");
    assert!(ok(&["devices", "--properties"]).contains("PERF_COUNT"));
    assert!(ok(&["query", MODEL]).contains("nodes run on CPU"));
    assert!(ok(&["query", MODEL, "-d", "TEMPLATE"]).contains("nodes run on TEMPLATE"));
}

#[test]
fn a_query_of_hetero_shows_the_split() {
    let text = ok(&["query", MODEL, "-d", "HETERO:CPU"]);
    assert!(text.contains("on CPU: 1 sub-models\nsubgraph0 `"), "{text}");
    assert!(ok(&["query", MODEL, "-d", "HETERO:CPU", "--json"]).contains("\"sub_models\": ["));
}

#[test]
fn the_split_can_be_drawn() {
    let dir = folder("hetero_drawn");
    let mut command = Command::new(env!("CARGO_BIN_EXE_carafe"));
    command.args(["run", MODEL, "-d", "HETERO:CPU"]).current_dir(repo()).env("CARAFE_HETERO_VISUALIZE", &dir);
    assert!(command.output().unwrap().status.success());
    let mut names: Vec<String> =
        std::fs::read_dir(&dir).unwrap().map(|f| f.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert!(names.len() == 2 && names[0].starts_with("hetero_affinity_") && names[1].starts_with("hetero_subgraphs_"));
    assert!(std::fs::read_to_string(dir.join(&names[0])).unwrap().starts_with("digraph \""));
}

#[test]
fn a_model_runs_on_devices_made_of_devices() {
    let whole = ok(&["run", MODEL, "-i", "demo/digits/one.png"]);
    for device in ["HETERO:CPU", "MULTI:CPU(2)", "AUTO"] {
        assert_eq!(ok(&["run", MODEL, "-i", "demo/digits/one.png", "-d", device]), whole, "{device}");
    }
}

#[test]
fn an_unknown_device_lists_the_known_ones() {
    let (code, text) = fails(&["run", MODEL, "-d", "TPU"]);
    assert_eq!(
        (code, text.as_str()),
        (
            1,
            "carafe: device `TPU` is not registered; registered: AUTO, BATCH, CPU, GPU, HETERO, MULTI, TEMPLATE, VPU\n"
        )
    );
}

#[test]
fn an_unknown_input_lists_the_known_ones() {
    let (code, text) = fails(&["run", MODEL, "-i", "picture=demo/digits/one.png"]);
    assert_eq!((code, text.as_str()), (2, "carafe: the model has no input `picture`; it has: image\n"));
}

#[test]
fn a_bad_property_says_what_it_takes() {
    let (code, text) = fails(&["run", MODEL, "--property", "PERF_COUNT=maybe"]);
    assert_eq!(code, 2);
    assert!(text.contains("property `PERF_COUNT` takes true or false, found `maybe`"), "{text}");
}

#[test]
fn a_missing_file_and_a_file_of_another_kind_are_told_apart() {
    let (_, text) = fails(&["run", "no/such/model.xml"]);
    assert!(text.starts_with("carafe: model `no/such/model.xml`: cannot open: No such file"), "{text}");
    let (_, text) = fails(&["run", "Cargo.toml"]);
    assert!(text.contains("is of no known format; known: OpenVINO IR, ONNX"), "{text}");
}

#[test]
fn a_plugin_that_cannot_be_opened_is_told_among_the_devices() {
    let done = carafe(&["devices", "--plugin", "X=README.md"]);
    let [out, err] = [done.stdout, done.stderr].map(|b| String::from_utf8(b).unwrap());
    assert_eq!(done.status.code(), Some(1), "{err}");
    assert!(
        out.contains("CPU") && err.contains("device `X`, library `README.md`: it is not a dynamic library"),
        "{err}"
    );
}

#[test]
fn the_path_of_a_model_stands_once_in_an_error() {
    let folder = folder("paths");
    std::fs::write(folder.join("junk.onnx"), "junk").unwrap();
    let junk = folder.join("junk.onnx");
    for path in ["no/such/model.onnx", "crates", junk.to_str().unwrap(), "Cargo.toml"] {
        for command in [&["run"][..], &["inspect"], &["query"], &["convert", "-o", "target/never.xml"]] {
            let (_, text) = fails(&[command, &[path]].concat());
            assert_eq!(text.matches(path).count(), 1, "{text}");
        }
    }
}

#[test]
fn query_runs_the_rewrites_of_extensions() {
    let shop = Workshop::new();
    let source = r#"#include "carafe.hpp"
CARAFE_EXTENSION(r) {
    r.describe("cancels", "1");
    r.matcher(CARAFE_PHASE_BACK, "cancel", "Negative", [](carafe::Graph &g, uint32_t id) {
        carafe::Value inner = g.input(id, 0);
        if (g.node(inner.node).op_type != "Negative") return false;
        g.replace({id, 0}, g.input(inner.node, 0));
        return true;
    });
}"#;
    let library = shop.cpp("cancels", source);
    let graph = "<ir_version: 8, opset_import: [\"\" : 17]> g (float[2] x) => (float[2] y) { a = Neg (x) b = Neg (a) y = Abs (b) }";
    let model = shop.write("m.onnxtxt", graph);
    let args = ["query", model.to_str().unwrap(), "--extension", library.to_str().unwrap()];
    assert!(!ok(&args).contains("Negative"), "{}", ok(&args));
    assert!(ok(&args[..2]).contains("Negative"));
}

#[test]
fn wrong_usage_ends_with_two() {
    assert_eq!(fails(&["run"]).0, 2);
    assert_eq!(fails(&["convert", MODEL]).0, 2);
    assert_eq!(fails(&["convert", MODEL, "-o", "x.bin"]).0, 2);
}

#[test]
fn a_batch_runs_every_item_and_keeps_errors_apart() {
    let dir = folder("batch");
    let list = serde_json::json!([
        {"model": MODEL, "inputs": {"image": "demo/digits/two.png"}, "out": dir.join("good"), "convert": dir.join("good/again.xml")},
        {"model": "Cargo.toml", "out": dir.join("bad")},
    ]);
    std::fs::write(dir.join("list.json"), list.to_string()).unwrap();
    assert_eq!(ok(&["run", "--batch", dir.join("list.json").to_str().unwrap()]), "1 of 2 models ran\n");
    assert!(dir.join("good/outputs.json").exists() && dir.join("good/again.bin").exists());
    assert!(std::fs::read_to_string(dir.join("bad/error.txt")).unwrap().contains("no known format"));
}

#[test]
fn completions_and_manual_pages_come_from_the_same_options() {
    assert!(ok(&["completions", "bash"]).contains("--compress_to_fp16"));
    assert!(ok(&["man"]).contains(".TH carafe"));
    let dir = folder("man");
    ok(&["man", "-o", dir.to_str().unwrap()]);
    assert!(dir.join("carafe-run.1").exists());
}

#[test]
fn conformance_reports_as_text_json_and_html() {
    let dir = folder("conformance");
    let (html, json) = (dir.join("report.html"), dir.join("report.json"));
    let files = ["--html", html.to_str().unwrap(), "--json", json.to_str().unwrap()];
    let text = ok(&[&["conformance", "-d", "CPU", "--filter", "soft"], &files[..]].concat());
    assert!(text.contains("operation cases: ") && text.contains(" 0 failed"), "{text}");
    let list: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(list["passed"], true);
    assert!(list["operations"].as_array().unwrap().iter().any(|o| o["name"] == "Softmax" && o["opset"] == "opset8"));
    assert!(std::fs::read_to_string(html).unwrap().contains("<h2>Summary</h2>"));
    let text = ok(&["conformance", "--filter", "version::", "--all"]);
    assert!(text.contains("passed  the_version_is_told"), "{text}");
}

#[test]
fn conformance_of_nothing_is_refused() {
    let (code, message) = fails(&["conformance", "--filter", "no such check"]);
    assert!(code == 2 && message.contains("nothing has a name that contains `no such check`"), "{message}");
    let (code, message) = fails(&["conformance", "-d", "NOBODY"]);
    assert!(code == 1 && message.contains("device `NOBODY` is not registered"), "{message}");
}

#[test]
fn a_device_that_fails_its_checks_is_exit_code_1() {
    let late = ["conformance", "--filter", "compile::a_model_compiles_and_runs", "--timeout", "0"];
    let done = carafe(&late);
    assert_eq!(done.status.code(), Some(1));
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("there was no end after 0 s"), "{text}");
}

#[test]
fn convert_replaces_sub_graphs_under_the_old_names_of_the_option() {
    let dir = folder("replace");
    let config = dir.join("config.json");
    let entry =
        r#"[{"id": "a", "match_kind": "scope", "op": "Relu", "instances": ["nowhere/"], "inputs": [], "outputs": []}]"#;
    std::fs::write(&config, entry).unwrap();
    for option in ["--transformations_config", "--tensorflow_use_custom_operations_config"] {
        let out = dir.join("out.xml");
        let args = ["convert", MODEL, "-o", out.to_str().unwrap(), option, config.to_str().unwrap()];
        let done = carafe(&args);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(String::from_utf8_lossy(&done.stderr).contains("no replacement matches this model"));
    }
}
