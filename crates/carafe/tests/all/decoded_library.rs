//! Rewrites of the graph as decoded that come out of a C library.

use carafe::Tensor;
use std::path::{Path, PathBuf};
use std::process::Command;

fn library() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libdecoded.so");
    let done = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(here.join("../../include"))
        .arg(here.join("tests/decoded_library.c"))
        .arg("-o")
        .arg(&out)
        .output()
        .expect("a C compiler");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    out
}

#[test]
fn a_library_rewrites_before_translation() {
    let text = r#"<ir_version: 8, opset_import: ["" : 17, "acme" : 1]> g (float[3] x) => (float[3] y) {
        a = acme.MyRelu (x)
        s = HardSigmoid <alpha = 0.1666667, beta = 0.5> (a)
        m = Mul (a, s)
        n = Neg (m)
        y = LeakyRelu <alpha = 0.5> (n)
    }"#;
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("decoded.onnxtxt");
    std::fs::write(&path, text).unwrap();
    let core = carafe::core();
    assert!(core.read_model(&path).unwrap_err().to_string().contains("`MyRelu` of domain `acme`"));
    core.add_extension(library()).unwrap();
    let model = core.read_model(&path).unwrap();
    let types: Vec<&str> = model.nodes().map(|(_, n)| n.op().type_name()).collect();
    assert!(types.contains(&"ReLU") && types.contains(&"HSwish") && !types.contains(&"Multiply"), "{types:?}");
    let y = &model.evaluate(&[Tensor::from_slice(&[3], &[-1.0f32, 3.0, 6.0]).unwrap()]).unwrap()[0];
    assert_eq!(*y.to_vec::<f32>().unwrap(), [0.0, -0.75, -1.5]);
}
