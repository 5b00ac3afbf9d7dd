//! `--mapping FILE.json` and `--map FROM=TO`: operations of a source format that are ours under another name.

use crate::common::carafe;
use carafe_testkit::libraries::Workshop;

const LIMIT: &str = r#"<ir_version: 8, opset_import: ["" : 17, "acme.ai" : 1]>
    g (float[3] x) => (float[3] y) { y = acme.ai.Limit <top = 1.5> (x) }"#;

/// Minus 1, 0 and 2.
const X: [u8; 12] = [0, 0, 128, 191, 0, 0, 0, 0, 0, 0, 0, 64];

/// Exit code and all that a run with mappings printed.
fn run(shop: &Workshop, model: &str, options: &[&str]) -> (i32, String) {
    let (model, x) = (shop.write("m.onnxtxt", model), shop.write("x.raw", X));
    let fixed = ["run", model.to_str().unwrap(), "-i", x.to_str().unwrap()];
    let done = carafe(&[&fixed, options].concat());
    let text = [done.stdout, done.stderr].map(|b| String::from_utf8(b).unwrap()).concat();
    (done.status.code().unwrap(), text)
}

fn with_file(json: &str) -> (i32, String) {
    let shop = Workshop::new();
    let file = shop.write("maps.json", json);
    run(&shop, LIMIT, &["--mapping", file.to_str().unwrap(), "--explain"])
}

#[test]
fn a_file_renames_attributes_and_fixes_others() {
    let (code, text) =
        with_file(r#"[{"from": "acme.ai::Limit", "to": "Clamp", "attributes": {"max": "top"}, "values": {"min": 0}}]"#);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("y: f32[3] min 0 max 1.5  0 0 1.5"), "{text}");
    assert!(text.contains("maps.json") && text.contains("opset1::Clamp"), "{text}");
}

#[test]
fn a_line_says_the_same() {
    let shop = Workshop::new();
    let (code, text) = run(&shop, LIMIT, &["--map", "acme.ai::Limit=opset1::Clamp(max=top, min=-0.5)", "--explain"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("y: f32[3] min -0.5 max 1.5  -0.5 0 1.5") && text.contains("`--map`"), "{text}");
}

#[test]
fn a_mapping_works_for_other_formats_too() {
    let shop = Workshop::new();
    let net =
        "name: 'n' input: 'x' input_shape { dim: 1 dim: 3 } layer { name: 'y' type: 'MyTanh' bottom: 'x' top: 'y' }";
    let model = shop.write("net.prototxt", net);
    let done = carafe(&["run", model.to_str().unwrap(), "--map", "MyTanh=Tanh", "--explain"]);
    let text = [done.stdout, done.stderr].map(|b| String::from_utf8(b).unwrap()).concat();
    assert!(done.status.success() && text.contains("opset1::Tanh"), "{text}");
}

#[test]
fn mistakes_in_a_file_are_told_with_their_place() {
    for (json, wanted) in [
        ("{", "not valid JSON"),
        ("{}", "expected a list of mappings, found an object"),
        (r#"[{"from": "Limit"}]"#, "`[0].to`: is missing"),
        (r#"[{"from": "Limit", "to": "Clampp"}]"#, "`[0].to`: there is no operation `Clampp`; near: Clamp"),
        (r#"[{"from": "Limit", "to": "Clamp", "valuse": {}}]"#, "`[0].valuse`: there is no such key; known: from, to"),
        (
            r#"[{"from": "Limit", "to": "Clamp", "values": {"lo": 1}}]"#,
            "`[0].values.lo`: Clamp has no attribute `lo`; it has: min, max",
        ),
        (r#"[{"from": "Limit", "to": "Clamp", "values": {"min": "a"}}]"#, "`[0].values.min`: expected a number"),
        (
            r#"[{"from": "Limit", "to": "Clamp", "attributes": {"min": 1}}]"#,
            "`[0].attributes.min`: expected the name of a source attribute, found 1",
        ),
        (r#"[{"from": "Limit", "to": "Clamp", "outputs": ["a", "b"]}]"#, "`[0].outputs`: 2 are named, Clamp has 1"),
        (r#"[{"from": "Limit", "to": "Clamp", "framework": "torch"}]"#, "`[0].framework`: is `torch`; known: onnx"),
        (r#"[{"from": "a::Limit", "domain": "b", "to": "Clamp"}]"#, "`[0].domain`: is `b`, and `from` says `a`"),
    ] {
        let (code, text) = with_file(json);
        assert!(code == 1 && text.contains(wanted), "{json}: {code} {text}");
        assert!(text.contains("maps.json"), "{text}");
    }
}

#[test]
fn a_node_with_other_ports_than_the_operation_is_refused() {
    let shop = Workshop::new();
    let model = LIMIT.replace("(x) }", "(x, x) }");
    let (code, text) = run(&shop, &model, &["--map", "Limit=Clamp(max=top, min=0)"]);
    assert!(code == 1 && text.contains("node `y`") && text.contains("input"), "{code} {text}");
}

#[test]
fn a_line_that_is_no_mapping_is_wrong_usage() {
    let shop = Workshop::new();
    for (line, wanted) in [
        ("Limit", "is no mapping; expected `Type=Operation`"),
        ("Limit=Clamp(min=0", "is no mapping"),
        ("Limit=Clamp(min=a b)", "`a b` is neither the name of an attribute nor a value"),
        ("Limit=Clampp", "there is no operation `Clampp`"),
    ] {
        let (code, text) = run(&shop, LIMIT, &["--map", line]);
        assert!(code == 2 && text.contains("option `--map`") && text.contains(wanted), "{line}: {code} {text}");
    }
}
