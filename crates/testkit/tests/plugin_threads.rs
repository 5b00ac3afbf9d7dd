//! The model that a device keeps is asked by many threads at once: the C template asks it for every node of every inference.

use carafe::{ElementType, Model, PartialShape, Properties, Tensor, ops};
use carafe_testkit::libraries::Workshop;

// Relu and Add run in C, Exp and Multiply are evaluated by the engine; the constants come out of the model.
fn model() -> Model {
    let mut m = Model::new("m");
    let mut v = m.parameter("x", ElementType::F32, PartialShape::of(&[4])).unwrap();
    for i in 0..6 {
        let c = m.constant(&format!("c{i}"), Tensor::from_slice(&[4], &[i as f32; 4]).unwrap()).unwrap();
        let sum = m.add(format!("add{i}"), ops::arithmetic::Add::default(), &[v, c]).unwrap();
        let relu = m.add(format!("relu{i}"), ops::activation::Relu, &[sum.into()]).unwrap();
        v = m.add(format!("abs{i}"), ops::math::Abs, &[relu.into()]).unwrap().into();
    }
    m.result("y", v).unwrap();
    m
}

#[test]
fn many_threads_infer_on_one_compiled_model() {
    let shop = Workshop::new();
    let core = carafe::core();
    let library = shop.example("template_plugin_c", "examples/template-plugin-c/plugin.c");
    assert_eq!(core.add_plugin(library).unwrap(), "C");
    let compiled = core.compile_model(&model(), "C", &Properties::new()).unwrap();
    std::thread::scope(|s| {
        for thread in 0..16 {
            let compiled = compiled.clone();
            s.spawn(move || {
                for round in 0..20 {
                    let request = compiled.create_infer_request();
                    for i in 0..10 {
                        let x = (thread * 1000 + round * 10 + i) as f32;
                        request.set_input(0, Tensor::from_slice(&[4], &[x; 4]).unwrap()).unwrap();
                        request.infer(()).unwrap();
                        assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), [x + 15.0; 4]);
                    }
                }
            });
        }
    });
}
