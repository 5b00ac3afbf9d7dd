//! The command on ONNX models: written as text, broken, or with operations nobody knows.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn carafe(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_carafe")).args(args).output().unwrap()
}

fn ok(args: &[&str]) -> String {
    let done = carafe(args);
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn written(name: &str, graph: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, format!("<ir_version: 8, opset_import: [\"\" : 17, \"acme\" : 1]> {graph}")).unwrap();
    path
}

const UNKNOWN: &str = "g (float[2,3] x) => (float[2,3] y) { t = acme.Wobble <k = 3> (x) y = Relu (t) }";

#[test]
fn a_model_written_as_text_runs() {
    let model = written("text.onnxtxt", "g (float[2] x) => (float[2] y) { y = Relu (x) }");
    assert!(ok(&["run", model.to_str().unwrap(), "--fill", "random"]).contains('y'));
}

#[test]
fn inspect_shows_a_model_with_unknown_operations() {
    let model = written("inspect.onnxtxt", UNKNOWN);
    let text = ok(&["inspect", model.to_str().unwrap()]);
    assert!(text.contains("Wobble from `acme`: t") && text.contains("ReLU"), "{text}");
}

#[test]
fn query_tells_that_an_unknown_operation_runs_nowhere() {
    let model = written("query.onnxtxt", UNKNOWN);
    let text = ok(&["query", model.to_str().unwrap()]);
    assert!(text.contains("unsupported: `t` (Wobble)") && text.contains("3 of 4 nodes run on CPU"), "{text}");
}

#[test]
fn convert_refuses_unknown_operations_and_names_file_and_node() {
    let model = written("convert.onnxtxt", UNKNOWN);
    let done = carafe(&["convert", model.to_str().unwrap(), "-o", model.with_extension("xml").to_str().unwrap()]);
    let text = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(text.contains("convert.onnxtxt`") && text.contains("`Wobble` of domain `acme`"), "{text}");
}

#[test]
fn an_error_names_the_file_and_the_node() {
    let model = written("broken.onnxtxt", "g (float[2] x) => (float[2] y) { [n] y = Add (x, w) }");
    let text = String::from_utf8(carafe(&["inspect", model.to_str().unwrap()]).stderr).unwrap();
    assert!(text.contains("broken.onnxtxt`") && text.contains("node `n` (Add, opset 17)"), "{text}");
}

#[test]
fn no_progress_is_written_where_nobody_looks() {
    let nodes: String = (0..2000).map(|i| format!("v{} = Relu (v{i}) ", i + 1)).collect();
    let model = written("long.onnxtxt", &format!("g (float[2] v0) => (float[2] v2000) {{ {nodes} }}"));
    let done = carafe(&["convert", model.to_str().unwrap(), "-o", model.with_extension("xml").to_str().unwrap()]);
    assert!(done.status.success() && done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
}
