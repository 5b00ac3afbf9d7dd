//! What the tests share: a library in each language, and models of a few words.

use carafe::{Core, InferRequest, Model, Properties, Result, Tensor};
use carafe_testkit::libraries::{Workshop, rust_library};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

// Never dropped; the folder is removed with cargo's own output.
static SHOP: LazyLock<Workshop> = LazyLock::new(|| Workshop::within(Path::new(env!("CARGO_TARGET_TMPDIR"))));

/// The library with one of everything in each language, compiled once for all tests.
pub(crate) static ALL_KINDS: LazyLock<[(&str, PathBuf); 3]> = LazyLock::new(|| {
    [
        ("Rust", rust_library("carafe_all_kinds")),
        ("C", SHOP.example("all_kinds_c", "crates/testkit/libraries/all_kinds.c")),
        ("C++", SHOP.example("all_kinds_cpp", "crates/testkit/libraries/all_kinds.cpp")),
    ]
});

/// Runs a check with the library of each language.
pub(crate) fn in_each_language(check: impl Fn(&Core)) {
    for (language, path) in &*ALL_KINDS {
        println!("{language}: {}", path.display());
        check(&core_with(path));
    }
}

pub(crate) fn core_with(path: &Path) -> Core {
    let core = carafe::core();
    core.add_extension(path).unwrap_or_else(|e| panic!("{e}"));
    core
}

/// A model in ONNX's text; operations of the domain `kinds` and of other ones are written with it.
pub(crate) fn onnx(core: &Core, graph: &str) -> Result<Model> {
    let shop = Workshop::new();
    let imports = "\"\" : 17, \"kinds\" : 1, \"acme.ai\" : 1, \"acme.cpp\" : 1";
    core.read_model(shop.write("model.onnxtxt", format!("<ir_version: 8, opset_import: [{imports}]> {graph}")))
}

/// A model of one operation in IR: `x` of this shape, f32, then the layer, then the result.
pub(crate) fn ir(core: &Core, op: &str, opset: &str, attrs: &str, ty: &str) -> Result<Model> {
    let shop = Workshop::new();
    core.read_model(shop.write("model.xml", ir_text(op, opset, attrs, ty, "")))
}

pub(crate) fn ir_text(op: &str, opset: &str, attrs: &str, ty: &str, rt_info: &str) -> String {
    format!(
        r#"<?xml version="1.0"?>
<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="4" element_type="f32"/><output><port id="0" precision="FP32"><dim>4</dim></port></output></layer>
<layer id="1" name="the node" type="{op}" version="{opset}"><data {attrs}/><input><port id="0"><dim>4</dim></port></input><output><port id="1" precision="{ty}"><dim>4</dim></port></output></layer>
<layer id="2" name="y" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/><edge from-layer="1" from-port="1" to-layer="2" to-port="0"/></edges>{rt_info}</net>"#
    )
}

pub(crate) fn request(core: &Core, model: &Model) -> Result<InferRequest> {
    Ok(core.compile_model(model, "TEMPLATE", &Properties::new())?.create_infer_request())
}

/// The first output for one input of f32.
pub(crate) fn run(core: &Core, model: &Model, x: &[f32]) -> Result<Tensor> {
    let request = request(core, model)?;
    request.set_input(0, Tensor::from_slice(&[x.len()], x)?)?;
    request.infer(())?;
    Ok(request.output(0)?.clone())
}

pub(crate) fn floats(t: &Tensor) -> Vec<f32> {
    t.as_slice::<f32>().expect("f32").to_vec()
}

pub(crate) fn ints(t: &Tensor) -> Vec<i64> {
    t.as_slice::<i64>().expect("i64").to_vec()
}

/// After whatever went wrong: the same core takes a good library and runs a model with it.
#[track_caller]
pub(crate) fn goes_on(core: &Core) {
    core.add_extension(&ALL_KINDS[1].1).expect("a good library");
    let model = ir(core, "Twice", "kinds", "", "FP32").expect("a good model");
    assert_eq!(floats(&run(core, &model, &[1., 2., 3., 4.]).expect("a good inference")), [2., 4., 6., 8.]);
}

#[track_caller]
pub(crate) fn tells<T: std::fmt::Debug>(result: Result<T>, wanted: &[&str]) {
    let text = result.expect_err("this must be refused").to_string();
    for w in wanted {
        assert!(text.contains(w), "wanted `{w}` in `{text}`");
    }
}
