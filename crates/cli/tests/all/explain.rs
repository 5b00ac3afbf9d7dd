//! `--explain` as a user types it.

use std::path::{Path, PathBuf};
use std::process::Command;

const MODEL: &str = r#"<ir_version: 8, opset_import: ["" : 17, "acme.ai" : 1]>
    g (float[2] x) => (float[2] y) { t = Relu (x) y = Clip (t) }"#;

const PRODUCT: &str = r#"<ir_version: 8, opset_import: ["" : 17]>
    g (float[2, 3] x) => (float[2, 2] y) <float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[2] b = {1, 2}>
    { t = MatMul (x, w) s = Add (t, b) y = Relu (s) }"#;

fn folder(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("m.onnxtxt"), MODEL).unwrap();
    dir
}

fn carafe(dir: &Path, args: &[&str]) -> String {
    let done = Command::new(env!("CARGO_BIN_EXE_carafe")).args(args).current_dir(dir).output().unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

fn rows(json: &str) -> Vec<serde_json::Value> {
    let all: serde_json::Value = serde_json::from_str(json).unwrap();
    all["explain"].as_array().unwrap().clone()
}

#[test]
fn run_tells_rule_operation_and_kernel() {
    let dir = folder("explain_run");
    let text = carafe(&dir, &["run", "m.onnxtxt", "-d", "TEMPLATE", "--explain"]);
    assert!(text.contains("t     Relu  built-in  opset1::ReLU   built-in  TEMPLATE reference"), "{text}");
    let rows = rows(&carafe(&dir, &["run", "m.onnxtxt", "-d", "TEMPLATE", "--explain", "--json"]));
    assert_eq!((&rows[1]["name"], &rows[1]["op"]), (&"y".into(), &"opset1::Clamp".into()));
    assert_eq!((&rows[1]["device"], &rows[1]["kernel"]), (&"TEMPLATE".into(), &"reference".into()));
}

#[test]
fn the_default_device_tells_its_kernels_and_what_it_fused() {
    let dir = folder("explain_cpu");
    let text = carafe(&dir, &["run", "m.onnxtxt", "--explain"]);
    assert!(text.contains("y     Clip  built-in  opset1::Clamp  built-in  CPU elementwise_f32["), "{text}");
    std::fs::write(dir.join("m.onnxtxt"), PRODUCT).unwrap();
    let f32 = ["--property", "INFERENCE_PRECISION_HINT=f32"];
    let rows = rows(&carafe(&dir, &["run", "m.onnxtxt", "--explain", "--json", f32[0], f32[1]]));
    let kernel = |name: &str| rows.iter().find(|r| r["name"] == name).map(|r| r["kernel"].clone());
    assert_eq!(kernel("s"), Some("fused into y".into()), "{rows:?}");
    assert_eq!(kernel("y"), Some("gemm_f32+bias+relu".into()), "{rows:?}");
}

#[test]
fn query_tells_devices_those_of_hetero_too() {
    let dir = folder("explain_query");
    for device in ["CPU", "HETERO:CPU"] {
        let rows = rows(&carafe(&dir, &["query", "m.onnxtxt", "-d", device, "--explain", "--json"]));
        assert!(rows.iter().all(|r| r["device"] == "CPU" && r["rule"] == "built-in"), "{rows:?}");
    }
}

#[test]
fn convert_tells_what_was_read_and_writes_nothing_of_it() {
    let dir = folder("explain_convert");
    let rows = rows(&carafe(&dir, &["convert", "m.onnxtxt", "-o", "a.xml", "--explain", "--json"]));
    assert_eq!(rows.len(), 2);
    carafe(&dir, &["convert", "m.onnxtxt", "-o", "b.xml"]);
    let written = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    assert_eq!(written("a.xml"), written("b.xml"));
}
