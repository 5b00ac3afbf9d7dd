//! One model written in four ways is one model: binary, protobuf text, JSON, and ONNX's own text. The fixtures were written
//! by the `onnx` and `protobuf` packages.

use crate::common::{is_onnx, read};
use carafe_graph::Model;
use std::path::Path;

fn fixture(name: &str, form: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/fixtures/{name}.{form}"));
    std::fs::read(path).expect("a fixture")
}

#[track_caller]
fn check(name: &str) {
    let binary = read(fixture(name, "onnx")).unwrap();
    for form in ["onnxtxt", "pbtxt", "json"] {
        let text = fixture(name, form);
        assert!(is_onnx(&text), "{form} is not recognized");
        let model = read(text).unwrap_or_else(|e| panic!("{form}: {e}"));
        assert!(Model::same_as(&binary, &model), "{form} differs");
    }
}

#[test]
fn sub_graphs_read_alike() {
    check("loop11");
}

#[test]
fn sequences_read_alike() {
    check("if_seq");
}

#[test]
fn tensors_with_data_read_alike() {
    check("constant");
}

#[test]
fn functions_read_alike() {
    check("functions");
}

#[test]
fn expanded_functions_read_alike() {
    check("gelu_default_1_expanded");
}

#[test]
fn attributes_of_other_domains_read_alike() {
    check("ai_onnx_ml_label_encoder_string_int");
}

#[test]
fn a_text_is_recognized_by_its_first_words() {
    for text in [
        "# head\nir_version: 8",
        "graph {",
        "\u{feff}{ \"graph\": {",
        "{\"producerName\": \"x\", \"irVersion\": \"8\"",
        "<ir_version: 8, opset_import",
        "agraph (float[N] x) => (float[N] y) {",
        "\"a graph\" (float[N] x) => (",
    ] {
        assert!(is_onnx(text.as_bytes()), "{text}");
    }
}

#[test]
fn texts_of_other_formats_are_not_recognized() {
    for text in [
        "",
        "hello",
        "<?xml version=\"1.0\"?><net name=\"x\">",
        "<net name=\"x\" version=\"11\">",
        "name: \"CaffeNet\"\nlayer { name: \"data\" }",
        "input: \"data\"",
        "node { name: \"x\" op: \"Placeholder\" }",
        "{\"nodes\": [{\"op\": \"null\"}]}",
        "fn main() {}",
    ] {
        assert!(!is_onnx(text.as_bytes()), "{text}");
    }
}
