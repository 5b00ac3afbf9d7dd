//! Normalizations over any axes, in both layouts, against their evaluation.

use crate::layouts::{FRONTS, Random, front, ints};
use carafe_cpu::CpuDevice;
use carafe_device::{Device, Properties};
use carafe_graph::Model;
use carafe_ops::activation::Relu;
use carafe_ops::normalization::mvn::EpsMode;
use carafe_ops::normalization::normalize_l2::EpsMode as L2Mode;
use carafe_ops::normalization::{Mvn, MvnV2, NormalizeL2};
use carafe_tensor::ElementType;

// The node `norm` must have a kernel and give what its evaluation gives.
fn check(model: &Model, random: &mut Random) {
    let fact = model.fact(model.parameters()[0].into());
    let input = random.tensor(ElementType::F32, &fact.shape.to_static().expect("known shapes"));
    let wanted = model.evaluate(std::slice::from_ref(&input)).expect("evaluation");
    // As `Core` does: devices meet current operations only.
    let newest = carafe_graph::upgraded(model).expect("current operations");
    let model = newest.as_ref().unwrap_or(model);
    let compiled = CpuDevice::default().compile(model, &Properties::new()).expect("a compiled model");
    let runtime = compiled.runtime_model();
    let kernel = runtime.find_node("norm").map(|id| format!("{:?}", runtime.node(id).rt_info.get("primitiveType")));
    let what =
        format!("{:?} of {:?} by {kernel:?}", model.find_node("norm").map(|n| model.node(n).op()), input.shape());
    assert!(!kernel.expect("the node").contains("reference"), "{what}");
    let mut request = compiled.create_request();
    request.set_input(0, input).expect("an input");
    request.infer().expect("an inference");
    let found = request.output(0).expect("an output");
    let (found, wanted) = (found.as_slice::<f32>().expect("floats"), wanted[0].as_slice::<f32>().expect("floats"));
    for (x, w) in found.iter().zip(wanted) {
        assert!((x - w).abs() <= 1e-5 * w.abs().max(1.0), "{what}: {x}, wanted {w}");
    }
}

const AXES: [&[i64]; 11] =
    [&[0], &[1], &[2], &[3], &[0, 2, 3], &[2, 3], &[0, 1], &[1, 3], &[0, -1], &[1, 2], &[3, 1, 0]];

#[test]
fn any_axes_have_a_mean_and_a_variance() {
    let mut random = Random(5);
    for round in 0..4 * AXES.len() {
        let axes = AXES[round % AXES.len()];
        let mut shape = random.shape(4);
        if round % 3 == 0 {
            shape[0] = 1;
        }
        for way in FRONTS {
            for older in [false, true] {
                let mut m = Model::new("m");
                let x = front(&mut m, &mut random, way, ElementType::F32, &shape);
                let normalize_variance = round % 5 != 4;
                let norm = if older {
                    let op =
                        MvnV2 { eps: 1e-3, across_channels: true, normalize_variance, reduction_axes: axes.to_vec() };
                    m.add("norm", op, &[x]).expect("a node")
                } else {
                    let eps_mode = [EpsMode::InsideSqrt, EpsMode::OutsideSqrt][round % 2];
                    let axes = ints(&mut m, "axes", axes);
                    m.add("norm", Mvn { eps: 1e-3, normalize_variance, eps_mode }, &[x, axes]).expect("a node")
                };
                let y = m.add("behind", Relu, &[norm.into()]).expect("a node");
                m.result("y", y.into()).expect("a result");
                check(&m, &mut random);
            }
        }
    }
}

#[test]
fn any_axes_have_a_length() {
    let mut random = Random(6);
    for round in 0..3 * AXES.len() {
        let shape = random.shape(4);
        for way in FRONTS {
            let mut m = Model::new("m");
            let x = front(&mut m, &mut random, way, ElementType::F32, &shape);
            let axes = ints(&mut m, "axes", AXES[round % AXES.len()]);
            let eps_mode = [L2Mode::Add, L2Mode::Max][round % 2];
            let norm = m.add("norm", NormalizeL2 { eps: 1e-2, eps_mode }, &[x, axes]).expect("a node");
            m.result("y", norm.into()).expect("a result");
            check(&m, &mut random);
        }
    }
}
