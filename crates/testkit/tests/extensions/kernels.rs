//! Kernels in C and C++ as the CPU device runs them: in planned memory of the layout they asked for, with the work that follows,
//! on all streams at once.

use carafe::ops::{activation, arithmetic, convolution, math};
use carafe::{Core, ElementType, Model, NodeProfile, PartialShape, Properties, Tensor, Value};
use carafe_testkit::libraries::Workshop;

fn in_each_language(check: impl Fn(&Core)) {
    for (name, file) in [("kernels_c", "kernels.c"), ("kernels_cpp", "kernels.cpp")] {
        let shop = Workshop::new();
        let core = carafe_testkit::core_in_f32();
        core.add_extension(shop.example(name, &format!("crates/testkit/libraries/{file}"))).unwrap();
        println!("{file}");
        check(&core);
    }
}

fn numbers(shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    Tensor::from_vec(shape, (0..n).map(|i| ((i * 37 % 101) as f32 - 50.0) / 64.0).collect()).unwrap()
}

fn conv(m: &mut Model, name: &str, x: Value, from: usize, to: usize) -> Value {
    let w = m.constant(&format!("{name}_w"), numbers(&[to, from, 3, 3])).unwrap();
    let op = convolution::Convolution {
        strides: vec![1, 1],
        pads_begin: vec![1, 1],
        pads_end: vec![1, 1],
        dilations: vec![1, 1],
        auto_pad: convolution::window::PadType::Explicit,
    };
    m.add(name, op, &[x, w]).unwrap().into()
}

/// Two convolutions with the operation between, twelve channels, and what `more` puts behind it.
fn model(more: impl Fn(&mut Model, Value, Value) -> Value) -> Model {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[2, 5, 6, 7])).unwrap();
    let a = conv(&mut m, "a", x, 5, 12);
    let k = m.add("k", math::Abs, &[a]).unwrap();
    let more = more(&mut m, k.into(), a);
    let b = conv(&mut m, "b", more, 12, 4);
    m.result("y", b).unwrap();
    m
}

/// The output of a device and what ran.
fn run(core: &Core, m: &Model, device: &str) -> (Vec<f32>, Vec<NodeProfile>) {
    let on = Properties::new().with("PERF_COUNT", true);
    let r = core.compile_model(m, device, &on).unwrap().create_infer_request();
    r.set_input(0, numbers(&[2, 5, 6, 7])).unwrap();
    r.infer(()).unwrap();
    (r.output(0).unwrap().as_slice::<f32>().unwrap().to_vec(), r.profile().unwrap())
}

fn same_as_reference(core: &Core, m: &Model) -> Vec<NodeProfile> {
    let (y, rows) = run(core, m, "CPU");
    let (wanted, _) = run(core, m, "TEMPLATE");
    for (a, b) in y.iter().zip(&wanted) {
        assert!((a - b).abs() < 1e-3, "{a} {b}");
    }
    assert_eq!(y.len(), wanted.len());
    rows
}

fn kernel_of(rows: &[NodeProfile], name: &str) -> String {
    rows.iter().find(|r| r.name == name).unwrap_or_else(|| panic!("no `{name}` in {rows:?}")).kernel.clone()
}

#[test]
fn a_blocked_kernel_between_convolutions_gets_reorders() {
    in_each_language(|core| {
        let rows = same_as_reference(core, &model(|_, k, _| k));
        assert_eq!(kernel_of(&rows, "k"), "abs_c8");
        let reorders: Vec<&str> = rows.iter().map(|r| r.kernel.as_str()).filter(|k| k.contains("plain_c8")).collect();
        assert_eq!(reorders, ["reorder_f32[channels_last plain_c8]", "reorder_f32[plain_c8 channels_last]"]);
    });
}

#[test]
fn a_kernel_takes_the_sums_and_functions_that_follow() {
    in_each_language(|core| {
        let m = model(|m, k, a| {
            let bias = m.constant("bias", numbers(&[1, 12, 1, 1])).unwrap();
            let with_bias = m.add("add", arithmetic::Add::default(), &[k, bias]).unwrap();
            let whole = m.add("sum", arithmetic::Add::default(), &[with_bias.into(), a]).unwrap();
            m.add("relu", activation::Relu, &[whole.into()]).unwrap().into()
        });
        let rows = same_as_reference(core, &m);
        assert_eq!(kernel_of(&rows, "relu"), "abs_c8+add+add+relu", "{rows:?}");
    });
}

#[test]
fn a_kernel_leaves_what_it_does_not_know() {
    in_each_language(|core| {
        let m = model(|m, k, _| {
            let relu = m.add("relu", activation::Relu, &[k]).unwrap();
            m.add("exp", math::Exp, &[relu.into()]).unwrap().into()
        });
        let rows = same_as_reference(core, &m);
        assert_eq!(kernel_of(&rows, "relu"), "abs_c8+relu", "{rows:?}");
        assert_eq!(kernel_of(&rows, "exp"), "elementwise_f32[exp]", "{rows:?}");
    });
}

/// A model whose kernel ends only when two inferences are inside of it.
pub(crate) fn meets(core: &Core) {
    let mut m = Model::new("m");
    let x = m.parameter("x", ElementType::F32, PartialShape::of(&[64])).unwrap();
    let k = m.add("k", math::Negative, &[x]).unwrap();
    m.result("y", k.into()).unwrap();
    let two = Properties::new().with("NUM_STREAMS", 2).with("INFERENCE_NUM_THREADS", 2);
    let compiled = core.compile_model(&m, "CPU", &two).unwrap();
    std::thread::scope(|s| {
        for _ in 0..2 {
            let r = compiled.create_infer_request();
            s.spawn(move || {
                r.set_input(0, numbers(&[64])).unwrap();
                r.infer(()).unwrap();
                assert!(r.output(0).unwrap().content_eq(&numbers(&[64])));
            });
        }
    });
}

#[test]
fn two_streams_run_one_kernel_at_once() {
    in_each_language(meets);
}
