//! MXNet models as users give them: the symbol, the arrays, and mo's spellings.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SYMBOL: &str = "crates/fe-mxnet/tests/fixtures/scale-symbol.json";
const PARAMS: &str = "crates/fe-mxnet/tests/fixtures/scale-0003.params";

fn carafe(args: &[&str]) -> Output {
    let repo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_carafe")).args(args).current_dir(repo).output().unwrap()
}

fn ok(args: &[&str]) -> String {
    let done = carafe(args);
    let err = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{args:?}: {err}");
    String::from_utf8(done.stdout).unwrap()
}

fn fails(args: &[&str]) -> String {
    let done = carafe(args);
    assert!(!done.status.success(), "{args:?} succeeded");
    String::from_utf8(done.stderr).unwrap()
}

fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mxnet").join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn a_model_comes_in_every_spelling() {
    let shape = ["--shape", "data[2,3]"];
    let spellings: [&[&str]; 5] = [
        &[SYMBOL],
        &[PARAMS],
        &[SYMBOL, "--weights", PARAMS],
        &["--input_model", PARAMS, "--input_symbol", SYMBOL],
        &["--input_symbol", SYMBOL, "--legacy_mxnet_model", "--enable_ssd_gluoncv"],
    ];
    for given in spellings {
        let text = ok(&[&["inspect"], given, &shape].concat());
        assert!(text.contains("data: f32[2,3]") && text.contains("turned: f32[3,2]"), "{given:?}: {text}");
    }
}

#[test]
fn a_symbol_that_says_no_shape_is_given_one_or_named() {
    let e = fails(&["run", SYMBOL]);
    assert!(e.contains("node `turned` (transpose)") && e.contains("rank"), "{e}");
    let out = folder("run");
    ok(&["run", SYMBOL, "--shape", "[2,3]", "--fill", "random", "-o", out.to_str().unwrap()]);
    assert!(out.join("turned.npy").is_file());
}

#[test]
fn a_model_is_converted_with_mos_options() {
    let out = folder("convert");
    let xml = out.join("net.xml");
    let xml = xml.to_str().unwrap();
    ok(&["convert", "--framework", "mxnet", "--input_model", PARAMS, "--input_shape", "[2,3]", "-o", xml]);
    let text = ok(&["inspect", xml]);
    assert!(text.contains("data: f32[2,3]") && text.contains("turned: f32[3,2]"), "{text}");
    let e = fails(&["convert", "--framework", "onnx", PARAMS, "-o", xml]);
    assert!(e.contains("is MXNet, not onnx"), "{e}");
    let e = fails(&["convert", PARAMS, "--nd_prefix_name", "x", "-o", xml]);
    assert!(e.contains("--pretrained_model_name"), "{e}");
}
