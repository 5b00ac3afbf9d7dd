//! The device of `examples/template-plugin-c`, compiled here and used as any other.

use carafe::{Core, ElementType, ErrorKind, Model, PartialShape, Properties, Tensor, ops};
use carafe_testkit::libraries::Workshop;

fn with_device(test: impl FnOnce(&Core)) {
    let workshop = Workshop::new();
    let library = workshop.example("template_plugin_c", "examples/template-plugin-c/plugin.c");
    let core = carafe::core();
    assert_eq!(core.add_plugin(library).unwrap(), "C");
    test(&core);
}

// Relu and Add run in C, Exp is evaluated by the engine.
fn model() -> Model {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::any_of_rank(1)).unwrap();
    let relu = m.add("relu", ops::activation::Relu, &[x]).unwrap();
    let exp = m.add("exp", ops::math::Exp, &[relu.into()]).unwrap();
    let sum = m.add("sum", ops::arithmetic::Add::default(), &[exp.into(), exp.into()]).unwrap();
    m.result("y", sum.into()).unwrap();
    m
}

#[test]
fn a_model_runs_partly_in_c_and_partly_in_the_engine() {
    with_device(|core| {
        let compiled = core.compile_model(&model(), "C", &Properties::new()).unwrap();
        let mut request = compiled.create_request();
        for values in [&[-1.0f32, 0.0][..], &[0.0, -3.0, 0.0]] {
            request.set_input(0, Tensor::from_slice(&[values.len()], values).unwrap()).unwrap();
            request.infer().unwrap();
            assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), vec![2.0; values.len()]);
        }
    });
}

#[test]
fn inputs_have_their_tensor_names() {
    with_device(|core| {
        let compiled = core.compile_model(&model(), "C", &Properties::new()).unwrap();
        assert!(compiled.inputs()[0].names.contains("x"));
    });
}

#[test]
fn what_the_device_does_not_take_is_told_with_its_reason() {
    with_device(|core| {
        let mut m = Model::new("m");
        let x = m.parameter("x", ElementType::String, PartialShape::of(&[1])).unwrap();
        m.result("y", x).unwrap();
        let query = core.query_model(&m, "C", &Properties::new()).unwrap();
        assert!(query.unsupported.iter().all(|u| u.reason == "this device has no strings"));
        let e = core.compile_model(&m, "C", &Properties::new()).err().unwrap();
        assert_eq!(e.kind(), ErrorKind::Unsupported);
        assert!(e.to_string().contains("libtemplate_plugin_c.so"), "{e}");
    });
}

#[test]
fn hetero_shares_a_model_between_it_and_another_device() {
    with_device(|core| {
        let compiled = core.compile_model(&model(), "HETERO:C,TEMPLATE", &Properties::new()).unwrap();
        let mut request = compiled.create_request();
        request.set_input(0, Tensor::from_slice(&[1], &[-1.0f32]).unwrap()).unwrap();
        request.infer().unwrap();
        assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), [2.0]);
    });
}
