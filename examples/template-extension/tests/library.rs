//! The library as a user loads it: from the file, into a program that knows nothing of it.

use carafe::{Core, Properties, Tensor};
use std::path::PathBuf;

fn library() -> PathBuf {
    // Beside this test's own file.
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_path_buf();
    folder.join(format!("{}template_extension{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX))
}

fn run(core: &Core, name: &str, graph: &str, input: &[f32]) -> carafe::Result<Vec<f32>> {
    let path = std::env::temp_dir().join(format!("template-extension-{name}-{}.onnxtxt", std::process::id()));
    std::fs::write(&path, format!("<ir_version: 8, opset_import: [\"\" : 17, \"acme.rust\" : 1]> {graph}")).unwrap();
    let model = core.read_model(&path);
    std::fs::remove_file(&path).unwrap();
    let request = core.compile_model(&model?, "CPU", &Properties::new())?.create_infer_request();
    request.set_input(0, Tensor::from_slice(&[input.len()], input)?)?;
    request.infer(())?;
    Ok(request.output(0)?.as_slice::<f32>()?.to_vec())
}

#[test]
fn an_onnx_model_runs_through_the_library() {
    let core = carafe::core();
    core.add_extension(library()).unwrap();
    let cube = "g (float[3] x) => (float[3] y) { y = acme.rust.Cube(x) }";
    assert_eq!(run(&core, "cube", cube, &[1.0, 2.0, -3.0]).unwrap(), [1.0, 8.0, -27.0]);
    let mapped = "g (float[3] x) => (float[3] y) { y = acme.rust.Shrink2<lambd = 1.5>(x) }";
    assert_eq!(run(&core, "mapped", mapped, &[1.0, 2.0, -3.0]).unwrap(), [0.0, 2.0, -3.0]);
    let by_name = "g (float[3] x) => (float[3] y) { y = acme.rust.HardShrink<threshold = 2.5>(x) }";
    assert_eq!(run(&core, "by_name", by_name, &[1.0, 2.0, -3.0]).unwrap(), [0.0, 0.0, -3.0]);
}

#[test]
fn a_bad_attribute_is_told_with_the_node() {
    let core = carafe::core();
    core.add_extension(library()).unwrap();
    let graph = "g (float[3] x) => (float[3] y) { y = acme.rust.HardShrink<threshold = -1.0>(x) }";
    let error = run(&core, "negative", graph, &[0.0; 3]).unwrap_err().to_string();
    assert!(error.contains("must not be negative, found -1"), "{error}");
}
