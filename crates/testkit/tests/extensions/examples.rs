//! The examples as they stand in the repository, with ONNX models.

use crate::support::*;
use carafe_testkit::libraries::{Workshop, rust_library};

#[test]
fn the_c_example_runs_onnx_models() {
    let shop = Workshop::new();
    let core = core_with(&shop.example("template_extension_c", "examples/template-extension-c/extension.c"));
    let one = |call: &str, ty: &str| {
        let model = onnx(&core, &format!("g (float[3] x) => ({ty} y) {{ y = {call} }}")).unwrap();
        floats(&run(&core, &model, &[1.0, 2.0, -3.0]).unwrap())
    };
    assert_eq!(one("acme.ai.Cube(x)", "float[3]"), [1., 8., -27.]);
    assert_eq!(one("acme.ai.Cube<exponent = 2.0>(x)", "float[3]"), [1., 4., 9.]);
    assert_eq!(one("acme.ai.KeepPositive(x)", "float[N]"), [1., 2.]);
    let swish = |beta: f32| [1f32, 2., -3.].map(|x| x / (1.0 + (-beta * x).exp()));
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
    assert!(near(&one("acme.ai.SoftSwish(x)", "float[3]"), &swish(1.0)));
    assert!(near(&one("acme.ai.Swish2<steepness = 0.5>(x)", "float[3]"), &swish(0.5)));
    let model = onnx(&core, "g (float[3] x) => (float[3] y) { a = Relu(x)  y = Relu(a) }").unwrap();
    assert_eq!(model.nodes().filter(|(_, n)| n.op().type_name() == "ReLU").count(), 1);
}

#[test]
fn the_cpp_example_runs_onnx_models() {
    let shop = Workshop::new();
    let core = core_with(&shop.example("template_extension_cpp", "examples/template-extension-cpp/extension.cpp"));
    let one = |call: &str, ty: &str| {
        let model = onnx(&core, &format!("g (float[4] x) => ({ty} y) {{ y = {call} }}"))?;
        run(&core, &model, &[1.0, 2.0, -3.0, 2.0])
    };
    assert_eq!(floats(&one("acme.cpp.Cube(x)", "float[4]").unwrap()), [1., 8., -27., 8.]);
    assert_eq!(floats(&one("acme.cpp.Softplus2<threshold = 0.5>(x)", "float[4]").unwrap())[..2], [1., 2.]);
    let graph = "g (float[4] x) => (float[N] v, int64[N] n) { v, n = acme.cpp.Histogram(x) }";
    let model = onnx(&core, graph).unwrap();
    let r = request(&core, &model).unwrap();
    r.set_input(0, carafe::Tensor::from_slice(&[4], &[1f32, 2., -3., 2.]).unwrap()).unwrap();
    r.infer(()).unwrap();
    assert_eq!(floats(&r.output(0).unwrap()), [-3., 1., 2.]);
    assert_eq!(ints(&r.output(1).unwrap()), [1, 1, 2]);
    let model = onnx(&core, "g (float[4] x) => (float[4] y) { a = Neg(x)  y = Neg(a) }").unwrap();
    assert_eq!(model.nodes().filter(|(_, n)| n.op().type_name() == "Negative").count(), 0);
    // An exception of a constructor.
    let wanted = ["`limit` must be above zero, found -1.0", "template_extension_cpp"];
    tells(one("acme.cpp.LimitedSoftplus<limit = -1.0>(x)", "float[4]"), &wanted);
    goes_on(&core);
}

#[test]
fn the_three_examples_live_side_by_side() {
    let shop = Workshop::new();
    let core = carafe::core();
    let libraries = [
        shop.example("template_extension_cpp", "examples/template-extension-cpp/extension.cpp"),
        rust_library("template_extension"),
        shop.example("template_extension_c", "examples/template-extension-c/extension.c"),
    ];
    core.add_extension(Vec::from(libraries)).unwrap();
    let graph = "g (float[2] x) => (float[2] y) {
        a = acme.ai.SoftSwish(x)  b = acme.ai.LimitedSoftplus(a)  y = acme.ai.HardShrink<threshold = 1.0>(b) }";
    let y = floats(&run(&core, &onnx(&core, graph).unwrap(), &[0.0, 3.0]).unwrap());
    assert!(y[0] == 0.0 && y[1] > 2.0, "{y:?}");
}
