//! Numbers below the smallest normal one on the devices: CPU takes them as zero unless told otherwise, TEMPLATE computes them,
//! also in the same inference of HETERO.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

use carafe::{Core, ElementType, Model, PartialShape, Properties, Tensor, ops};

const SMALL: f32 = 1e-40;

// Twice `x`, and the same twice more.
fn run(device: &str, properties: &Properties) -> [f32; 2] {
    let core: Core = carafe::core();
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[3])).unwrap();
    let two = m.constant("two", Tensor::scalar(2f32)).unwrap();
    let a = m.add("a", ops::arithmetic::Multiply::default(), &[x, two]).unwrap();
    let b = m.add("b", ops::math::Abs, &[a.into()]).unwrap();
    m.result("first", a.into()).unwrap();
    m.result("second", b.into()).unwrap();
    let compiled = core.compile_model(&m, device, properties).unwrap();
    let request = compiled.create_infer_request();
    request.set_input(0, Tensor::from_slice(&[3], &[SMALL; 3]).unwrap()).unwrap();
    request.infer(()).unwrap();
    [0, 1].map(|i| request.output(i).unwrap().as_slice::<f32>().unwrap()[0])
}

#[test]
fn cpu_takes_them_as_zero_unless_told_otherwise() {
    assert_eq!(run("CPU", &Properties::new())[0], 0.0);
    assert_eq!(run("CPU", &Properties::new().with("CPU_DENORMALS_OPTIMIZATION", "NO")), [2.0 * SMALL; 2]);
}

#[test]
fn template_computes_them_also_on_a_thread_that_ran_cpu_before() {
    run("CPU", &Properties::new());
    assert_eq!(run("TEMPLATE", &Properties::new()), [2.0 * SMALL; 2]);
}
