//! An inference on a device of a library leaves nothing behind: neither the model that the device keeps nor the one it
//! evaluates others' operations in grows. Alone in its file, because it looks at the memory of the whole process.
#![cfg(target_os = "linux")]

use carafe::{CompiledModel, ElementType, Model, PartialShape, Properties, Tensor, ops};
use carafe_testkit::libraries::Workshop;

fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn run(compiled: &CompiledModel, times: usize) {
    let request = compiled.create_infer_request();
    for i in 0..times {
        request.set_input(0, Tensor::from_slice(&[4], &[i as f32; 4]).unwrap()).unwrap();
        request.infer(()).unwrap();
        assert_eq!(request.output(0).unwrap().as_slice::<f32>().unwrap(), [i as f32 + 1.0; 4]);
    }
}

#[test]
fn a_hundred_thousand_inferences_take_no_more_memory_than_a_thousand() {
    let shop = Workshop::new();
    let core = carafe::core();
    let library = shop.example("template_plugin_c", "examples/template-plugin-c/plugin.c");
    assert_eq!(core.add_plugin(library).unwrap(), "C");
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[4])).unwrap();
    let one = m.constant("one", Tensor::from_slice(&[4], &[1f32; 4]).unwrap()).unwrap();
    let sum = m.add("sum", ops::arithmetic::Add::default(), &[x, one]).unwrap();
    let abs = m.add("abs", ops::math::Abs, &[sum.into()]).unwrap();
    m.result("y", abs.into()).unwrap();
    let compiled = core.compile_model(&m, "C", &Properties::new()).unwrap();
    run(&compiled, 1_000);
    let before = resident();
    run(&compiled, 100_000);
    let grown = resident().saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} bytes more after 100,000 inferences");
}
