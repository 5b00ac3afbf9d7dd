//! What a model keeps from frame to frame.

use crate::common::{case, compile, row};
use carafe::{InputShape, PartialShape, ReadRequest, Tensor};

#[test]
fn the_state_can_be_looked_at_and_put_back() {
    let (core, case) = (carafe::core(), case("recurrent", "lstm-of-delay-three"));
    let model = core.read(&ReadRequest::from_bytes(&case.binary)).unwrap();
    let compiled = compile(&core, &model, "CPU").unwrap();
    let request = compiled.create_infer_request();
    let step = |at: usize| {
        request.set_input(0, row(&case.inputs[0], at)).unwrap();
        request.infer(()).unwrap();
        request.output(0).unwrap().to_vec::<f32>().unwrap().into_owned()
    };
    (0..5).for_each(|at| drop(step(at)));
    let kept: Vec<(String, Tensor)> =
        request.query_state().unwrap().iter().map(|s| (s.name().to_string(), s.get().unwrap().unwrap())).collect();
    let names: Vec<&str> = kept.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(names, ["l1.c_trunc/memory", "l1.r_trunc/memory"]);
    let wanted = step(5);
    assert_ne!(step(5), wanted);
    for state in request.query_state().unwrap() {
        let (_, value) = kept.iter().find(|(n, _)| n == state.name()).unwrap();
        state.set(value.clone()).unwrap();
    }
    assert_eq!(step(5), wanted);
}

#[test]
fn several_streams_go_side_by_side() {
    let (core, case) = (carafe::core(), case("recurrent", "tdnn-lstm"));
    let shapes = [InputShape { name: Some("input".into()), shape: PartialShape::of(&[2, 4]) }];
    let request = ReadRequest { input_shapes: &shapes, ..ReadRequest::from_bytes(&case.binary) };
    let two = core.read(&request).unwrap();
    let one = core.read(&ReadRequest::from_bytes(&case.binary)).unwrap();
    let (one, two) = (compile(&core, &one, "CPU").unwrap(), compile(&core, &two, "CPU").unwrap());
    let (one, two) = (one.create_infer_request(), two.create_infer_request());
    for at in 0..case.inputs[0].shape()[0] {
        let x = row(&case.inputs[0], at);
        let values = x.to_vec::<f32>().unwrap();
        let both: Vec<f32> = values.iter().copied().chain(values.iter().map(|v| -v)).collect();
        one.set_input(0, x.clone()).unwrap();
        two.set_input(0, Tensor::from_vec(&[2, 4], both).unwrap()).unwrap();
        one.infer(()).unwrap();
        two.infer(()).unwrap();
        let (a, b) = (one.output(0).unwrap().to_vec::<f32>().unwrap().into_owned(), two.output(0).unwrap());
        let b = b.to_vec::<f32>().unwrap();
        a.iter().zip(b.iter()).for_each(|(a, b)| assert!((a - b).abs() < 1e-5, "frame {at}: {a} and {b}"));
        assert_ne!(b[..a.len()], b[a.len()..]);
    }
}

#[test]
fn a_cut_network_keeps_what_its_memories_need() {
    let (core, case) = (carafe::core(), case("recurrent", "lstm"));
    let wanted = ["l1.rp".to_string()];
    let model = core.read(&ReadRequest { wanted: &wanted, ..ReadRequest::from_bytes(&case.binary) }).unwrap();
    let count = |name: &str| model.nodes().filter(|(_, n)| n.op().info().name == name).count();
    assert_eq!((count("ReadValue"), count("Assign")), (2, 2));
    assert!(model.find_node("output.affine").is_none());
}
