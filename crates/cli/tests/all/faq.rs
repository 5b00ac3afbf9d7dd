//! Errors name the entry of docs/faq.md that tells more.

use crate::common::{MODEL, carafe, folder, ok, repo};
use std::path::Path;

/// Runs a command that must fail, and looks for the code in what it says.
fn points_to(code: &str, args: &[&str]) {
    let done = carafe(args);
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(!done.status.success() && said.contains(code), "{args:?} does not name {code}: {said}");
}

fn file(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn models_that_cannot_be_read_name_their_entry() {
    let dir = folder("faq-models");
    let layer = "layer { name: \"x\" type: \"Input\" top: \"x\" input_param { shape { dim: 1 dim: 3 } } }\n";
    let lost =
        format!("{layer}layer {{ name: \"r\" type: \"ReLU\" bottom: \"x\" top: \"y\" relu_param {{ slope: 1 }} }}");
    let data = format!("{layer}layer {{ name: \"d\" type: \"Data\" top: \"d\" }}");
    let python = format!("{layer}layer {{ name: \"p\" type: \"Python\" bottom: \"x\" top: \"p\" }}");
    let cycle = "node { name: \"a\" op: \"Relu\" input: \"b\" }\nnode { name: \"b\" op: \"Relu\" input: \"a\" }\nnode { name: \"c\" op: \"Relu\" input: \"b\" }";
    let shapes =
        "<ir_version: 8, opset_import: [\"\": 17]>\nm (float[2] a, float[3] b) => (float[3] y) { y = Add (a, b) }";
    let unknown = "<ir_version: 8, opset_import: [\"\": 17]>\nm (float[2] x) => (float[2] y) { y = Nobody (x) }";
    for (code, name, text) in [
        ("E0001", "lost.prototxt", lost.as_str()),
        ("E0007", "none.prototxt", "name: \"nothing\"\n"),
        ("E0011", "broken.prototxt", "layer { name: \"x\" type: }"),
        ("E0015", "what.ever", "neither this nor that"),
        ("E0024", "unknown.onnxtxt", unknown),
        ("E0037", "shapes.onnxtxt", shapes),
        ("E0042", "graph.pb", "not a graph of TensorFlow at all"),
        ("E0048", "net-0000.params", "these are no arrays"),
        ("E0079", "train.prototxt", data.as_str()),
        ("E0087", "python.prototxt", python.as_str()),
        ("E0089", "broken.nnet", "<Nnet>\n<AffineTransform> 3 x\n</Nnet>\n"),
        ("E0097", "cycle.pbtxt", cycle),
        ("E0103", "lonely.caffemodel", "\u{1}\u{2}\u{3}"),
    ] {
        points_to(code, &["run", &file(&dir, name, text)]);
    }
}

#[test]
fn options_that_cannot_be_followed_name_their_entry() {
    let dir = folder("faq-options");
    let out = dir.join("out.xml");
    let out = out.to_str().unwrap();
    let convert = |code: &str, options: &[&str]| points_to(code, &[&["convert", MODEL, "-o", out], options].concat());
    convert("E0004", &["--mean_file", "README.md"]);
    convert("E0017", &["--scale", "2", "--scale_values", "image[2]"]);
    convert("E0026", &["--output", "nosuch"]);
    convert("E0065", &["--transformations_config", &file(&dir, "t.json", "{}")]);
    points_to("E0022", &["convert", MODEL, "-o", &format!("{}/x/out.xml", file(&dir, "file", ""))]);
    let shapeless = file(
        &dir,
        "shapeless.pbtxt",
        "node { name: \"x\" op: \"Placeholder\" attr { key: \"dtype\" value { type: DT_FLOAT } } }\nnode { name: \"y\" op: \"Relu\" input: \"x\" }",
    );
    points_to("E0016", &["convert", &shapeless, "-o", out, "--batch", "2"]);
}

#[test]
fn extensions_that_cannot_be_used_name_their_entry() {
    let dir = folder("faq-extensions");
    let project = dir.join("acme");
    let project = project.to_str().unwrap();
    ok(&["extension", "new", "Acme", "--language", "c", "-o", project]);
    points_to("E0201", &["run", &format!("{project}/tests/models/acme.xml")]);
    points_to("E0202", &["run", MODEL, "--extension", "README.md"]);
    points_to("E0204", &["extension", "build", project, "--sdk", dir.to_str().unwrap()]);
    let op = dir.join("acme/src/op.h");
    let text = std::fs::read_to_string(&op).unwrap();
    std::fs::write(&op, text.replace("return x;", "return x + 1;")).unwrap();
    points_to("E0203", &["extension", "test", project]);
}

/// Entries that tell how something is done, which no error can point to.
const ADVICE: [&str; 2] = ["E0045", "E0047"];

#[test]
fn every_entry_is_tried_here_or_is_advice() {
    let here = std::fs::read_to_string(repo().join("crates/cli/tests/all/faq.rs")).unwrap();
    let page = std::fs::read_to_string(repo().join("docs/faq.md")).unwrap();
    let codes = page.lines().filter_map(|l| l.strip_prefix("## ")?.split(' ').next());
    let untried: Vec<&str> = codes.filter(|c| !here.contains(&format!("\"{c}\"")) && !ADVICE.contains(c)).collect();
    assert!(untried.is_empty(), "no error is known that points to {untried:?}");
}
