use super::*;
use carafe_graph::Value;
use carafe_ops::activation::Relu;
use carafe_ops::convolution::window::PadType;
use carafe_ops::movement::Concat;
use carafe_plan::{Action, Slot};
use carafe_tensor::PartialShape;

fn parameter(m: &mut Model, name: &str, shape: &[usize]) -> Value {
    m.parameter(name, ElementType::F32, PartialShape::of(shape)).unwrap()
}

fn counted(shape: &[usize]) -> Tensor {
    let n = shape.iter().product::<usize>();
    Tensor::from_vec(shape, (0..n).map(|i| (i % 13) as f32 - 6.0).collect::<Vec<_>>()).unwrap()
}

fn conv(m: &mut Model, name: &str, x: Value, filters: &[usize]) -> Value {
    let w = m.constant(&format!("{name}_w"), counted(filters)).unwrap();
    let (strides, dilations, pads) = (vec![1, 1], vec![1, 1], vec![0, 0]);
    let (pads_begin, pads_end) = (pads.clone(), pads);
    let op = Convolution { strides, dilations, pads_begin, pads_end, auto_pad: PadType::Explicit };
    m.add(name, op, &[x, w]).unwrap().into()
}

fn kernels(plan: &Plan<Blocked>) -> Vec<String> {
    plan.steps.iter().map(|s| s.exec_type()).collect()
}

#[test]
fn units_of_several_precisions_stand_in_one_plan() {
    let mut m = Model::new("m");
    let x = parameter(&mut m, "x", &[3, 4]);
    let w = m.constant("w", counted(&[4, 5])).unwrap();
    let v = m.constant("v", counted(&[5, 2])).unwrap();
    let product = |transpose_a, transpose_b| MatMul { transpose_a, transpose_b };
    let a = m.add("a", product(false, false), &[x, w]).unwrap();
    let b = m.add("b", product(false, false), &[a.into(), v]).unwrap();
    let y = m.add("y", Relu {}, &[b.into()]).unwrap();
    m.result("out", y.into()).unwrap();
    let input = counted(&[3, 4]);
    let wanted = m.evaluate(std::slice::from_ref(&input)).unwrap();
    let (plan, outputs) = run_model(&m, &[input], ElementType::Bf16).unwrap();
    // Small integers are exact in bf16; between the products nothing is converted.
    assert!(outputs[0].content_eq(&wanted[0]));
    assert_eq!(kernels(&plan), ["convert_bf16", "matmul_bf16", "matmul_bf16", "convert_f32", "elementwise_f32"]);
    let stored = |s: usize| plan.values[plan.steps[s].writes[0]].ty;
    assert_eq!([stored(1), stored(4)], [ElementType::Bf16, ElementType::F32]);
}

#[test]
fn images_stay_in_blocks_and_what_is_concatenated_is_made_in_its_place() {
    let mut m = Model::new("m");
    let x = parameter(&mut m, "x", &[1, 3, 5, 5]);
    let (left, right) = (conv(&mut m, "left", x, &[4, 3, 3, 3]), conv(&mut m, "right", x, &[8, 3, 3, 3]));
    let right = m.add("relu", Relu {}, &[right]).unwrap();
    let both = m.add("both", Concat { axis: 1 }, &[left, right.into()]).unwrap();
    let y = conv(&mut m, "last", both.into(), &[2, 12, 1, 1]);
    m.result("out", y).unwrap();
    let input = counted(&[1, 3, 5, 5]);
    let wanted = m.evaluate(std::slice::from_ref(&input)).unwrap();
    let (plan, outputs) = run_model(&m, &[input], ElementType::F32).unwrap();
    assert!(outputs[0].content_eq(&wanted[0]));
    let conv = "conv_blocked_f32+epilogue";
    assert_eq!(kernels(&plan), ["reorder_f32", conv, conv, conv, "reorder_f32"]);
    let slot = |s: usize| match plan.values[plan.steps[s].writes[0]].slot {
        Slot::Planned(region) => region,
        slot => panic!("{slot:?}"),
    };
    // Four channels of nine pixels, then eight.
    assert_eq!((slot(1).buffer, slot(1).len, slot(2).start), (slot(2).buffer, 4 * 36, 4 * 36));
    assert!(plan.buffers.len() > 1 && plan.steps.iter().all(|s| matches!(s.action, Action::Kernel(_))));
}
