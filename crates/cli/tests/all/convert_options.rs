//! `carafe convert` with the options users know from OpenVINO's converters, as they are typed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MODEL: &str = "demo/digits/digits.xml";

fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn carafe(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_carafe")).args(args).current_dir(repo()).output().unwrap()
}

fn ok(args: &[&str]) -> String {
    let done = carafe(args);
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn fails(args: &[&str]) -> (i32, String) {
    let done = carafe(args);
    assert!(!done.status.success(), "{args:?} succeeded");
    (done.status.code().unwrap(), String::from_utf8(done.stderr).unwrap())
}

/// A path in a fresh folder of this name.
fn file(folder: &str, name: &str) -> String {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("convert_options").join(folder);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir.join(name).to_str().unwrap().to_string()
}

/// Converts the demo with these options and tells what the result is made of.
fn inspect(name: &str, options: &[&str]) -> String {
    let out = file(name, "model.xml");
    ok(&[&["convert", MODEL, "-o", &out], options].concat());
    ok(&["inspect", &out])
}

#[test]
fn output_dir_holds_the_model_under_its_name() {
    let dir = file("output_dir", "deep/folder");
    assert_eq!(ok(&["convert", MODEL, "--output_dir", &dir]), format!("{dir}/digits.xml\n{dir}/digits.bin\n"));
    let text = ok(&["convert", MODEL, "--output_dir", &dir, "-n", "named"]);
    assert_eq!(text, format!("{dir}/named.xml\n{dir}/named.bin\n"));
    assert!(std::fs::read_to_string(format!("{dir}/named.xml")).unwrap().contains("<net name=\"named\""));
}

#[test]
fn the_model_may_be_given_as_an_option() {
    for option in ["--input_model", "-m", "-w"] {
        let out = file("input_model", "model.xml");
        ok(&["convert", option, MODEL, "-o", &out]);
        assert!(Path::new(&out).exists());
    }
    assert_eq!(fails(&["convert", MODEL, "-m", MODEL, "-o", "x.xml"]).0, 2);
}

#[test]
fn a_place_to_write_to_is_given_once() {
    assert_eq!(fails(&["convert", MODEL]).0, 2);
    assert_eq!(fails(&["convert", MODEL, "-o", "x.xml", "--output_dir", "x"]).0, 2);
}

#[test]
fn silent_prints_nothing() {
    let out = file("silent", "model.xml");
    assert_eq!(ok(&["convert", MODEL, "-o", &out, "--silent", "--log_level", "DEBUG"]), "");
}

#[test]
fn framework_is_checked_against_the_file() {
    let out = file("framework", "model.xml");
    ok(&["convert", MODEL, "-o", &out, "--framework", "ir"]);
    let (code, text) = fails(&["convert", MODEL, "-o", &out, "--framework", "onnx"]);
    assert_eq!(code, 2);
    assert!(text.contains("`demo/digits/digits.xml` is OpenVINO IR, not onnx"), "{text}");
    assert!(
        fails(&["convert", MODEL, "-o", &out, "--framework", "torch"])
            .1
            .contains("is unknown; onnx, tf, tflite, paddle, caffe, mxnet, kaldi, ir can be read")
    );
}

#[test]
fn shapes_come_from_input_input_shape_or_batch() {
    for (i, options) in [["--input", "image[5,1,8,8]"], ["--input_shape", "[5,1,8,8]"], ["--batch", "5"], ["-b", "5"]]
        .iter()
        .enumerate()
    {
        let text = inspect(&format!("shapes{i}"), options);
        assert!(text.contains("image: f32[5,1,8,8]"), "{options:?}: {text}");
        assert!(text.contains("probabilities: f32[5,10]"), "{options:?}: {text}");
    }
}

#[test]
fn scale_divides_and_changes_the_numbers() {
    let out = file("scale", "model.xml");
    ok(&["convert", MODEL, "-o", &out, "--compress_to_fp16=False", "-s", "-2.0"]);
    assert_ne!(ok(&["run", MODEL, "-i", "demo/digits/two.png"]), ok(&["run", &out, "-i", "demo/digits/two.png"]));
}

#[test]
fn mean_and_scale_that_undo_each_other_leave_the_answer_alone() {
    let (a, b) = (file("undo_a", "model.xml"), file("undo_b", "model.xml"));
    ok(&["convert", MODEL, "-o", &a, "--compress_to_fp16=False", "--mean_values", "image(4)", "--scale_values", "(2)"]);
    ok(&["convert", &a, "-o", &b, "--compress_to_fp16=False", "--mean_values", "[-2]", "--scale_values", "[0.5]"]);
    let run = |m: &str| ok(&["run", m, "-i", "demo/digits/six.png"]);
    assert_eq!(run(MODEL), run(&b));
}

#[test]
fn a_layout_is_written_and_turned() {
    assert!(inspect("layout", &["--layout", "nchw->nhwc"]).contains("image: f32[?,8,8,1]"));
    let text = inspect("halves", &["--source_layout", "image(nchw)", "--target_layout", "image(nhwc)"]);
    assert!(text.contains("image: f32[?,8,8,1]"), "{text}");
    let out = file("noted", "model.xml");
    ok(&["convert", MODEL, "-o", &out, "--layout", "nchw"]);
    assert!(std::fs::read_to_string(&out).unwrap().contains("layout=\"[N,C,H,W]\""));
}

#[test]
fn an_unknown_name_ends_with_the_names_there_are() {
    let (code, text) = fails(&["convert", MODEL, "-o", "never.xml", "--input", "imgae[1,1,8,8]"]);
    assert_eq!(code, 1);
    assert!(text.contains("did you mean `image`?") && text.contains("its inputs are: `image`"), "{text}");
    assert!(!repo().join("never.xml").exists());
}

#[test]
fn wrong_options_end_with_two() {
    for options in [
        ["--mean_values", "(1,2"],
        ["--layout", "nn"],
        ["--transform", "LowLatency"],
        ["--input_shape", "1,2"],
        ["--batch", "0"],
        ["--batch", "x"],
    ] {
        let args = [&["convert", MODEL, "-o", "never.xml"], &options[..]].concat();
        assert_eq!(fails(&args).0, 2, "{options:?}");
    }
}

#[test]
fn help_shows_every_option() {
    let text = ok(&["convert", "--help"]);
    for option in ["--input_shape", "--reverse_input_channels", "--static_shape", "--transform", "--output_dir"] {
        assert!(text.contains(option), "{option}");
    }
}

#[test]
fn a_limit_of_the_opset_names_the_nodes_above_it() {
    let (model, out) = (file("opset", "best.onnxtxt"), file("opset_out", "model.xml"));
    let text = r#"<ir_version: 8, opset_import: ["" : 17]> g (float[1,1,4,4] x) => (float[1,1,2,2] p, float[2] v, int64[2] i)
        <int64[1] k = {2}, int64[1] all = {-1}> {
        p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x)  flat = Reshape (x, all)  v, i = TopK (flat, k) }"#;
    std::fs::write(&model, text).unwrap();
    let (code, error) = fails(&["convert", &model, "-o", &out, "--opset", "10"]);
    assert!(code == 1 && error.contains("1 node needs a newer opset than opset10"), "{error}");
    assert!(error.contains("(TopK, opset11)") && !Path::new(&out).exists(), "{error}");
    ok(&["convert", &model, "-o", &out, "--opset", "11"]);
    assert!(std::fs::read_to_string(&out).unwrap().contains("type=\"MaxPool\" version=\"opset1\""));
    assert_eq!(fails(&["convert", &model, "-o", &out, "--opset", "0"]).0, 2);
}
