//! Models that take and give sequences and optionals, from Rust; and what a damaged packed list does to them.

use carafe::{CompiledModel, ItemType, Model, Properties, Tensor, pack_sequence};

fn load(name: &str) -> (Model, CompiledModel) {
    let file = format!("{}/../testkit/fixtures/onnx-sequences/{name}/model.onnx", env!("CARGO_MANIFEST_DIR"));
    let core = carafe::core();
    let model = core.read_model(file).unwrap();
    let compiled = core.compile_model(&model, "TEMPLATE", &Properties::new()).unwrap();
    (model, compiled)
}

fn input_type(model: &Model, name: &str) -> ItemType {
    model.packed_type(model.parameters()[model.find_parameter(name).unwrap()]).unwrap()
}

fn rows() -> Vec<Tensor> {
    [&[1f32][..], &[2.0, 3.0]].iter().map(|v| Tensor::from_slice(&[v.len()], v).unwrap()).collect()
}

#[test]
fn a_sequence_is_packed_and_unpacked_by_its_type() {
    let (model, compiled) = load("loop-reverses");
    let request = compiled.create_infer_request();
    let ty = input_type(&model, "s");
    assert_eq!(ty.to_string(), "sequence(f32[?])");
    request.set_input(0, ty.pack(Some(&rows())).unwrap()).unwrap();
    request.infer(()).unwrap();
    let at = model.find_result("y").unwrap();
    let ty = model.packed_type(model.results()[at]).unwrap();
    let found = ty.unpack(&request.output(at).unwrap()).unwrap().unwrap();
    assert!(found.len() == 2 && found[0].content_eq(&rows()[1]) && found[1].content_eq(&rows()[0]));
}

#[test]
fn an_optional_may_be_full_or_empty_from_run_to_run() {
    let (model, compiled) = load("perhaps-full");
    let request = compiled.create_infer_request();
    let (o, x) = (model.find_parameter("o").unwrap(), model.find_parameter("x").unwrap());
    let ty = input_type(&model, "o");
    request.set_input(x, rows()[1].clone()).unwrap();
    let two = Tensor::from_slice(&[2], &[2f32, 2.0]).unwrap();
    for (content, expected) in [(Some(&[two][..]), [4f32, 6.0]), (None, [-2.0, -3.0]), (Some(&[]), [-2.0, -3.0])] {
        request.set_input(o, ty.pack(content).unwrap()).unwrap();
        request.infer(()).unwrap();
        assert_eq!(request.output(model.find_result("y").unwrap()).unwrap().as_slice::<f32>().unwrap(), expected);
    }
}

#[test]
fn a_damaged_list_is_an_error_and_no_panic() {
    let (_, compiled) = load("loop-reverses");
    let request = compiled.create_infer_request();
    let whole = pack_sequence(&rows()).unwrap();
    let bytes = whole.as_slice::<u8>().unwrap();
    for n in 1..bytes.len() {
        request.set_input(0, Tensor::from_slice(&[n], &bytes[..n]).unwrap()).unwrap();
        let text = request.infer(()).unwrap_err().to_string();
        assert!(text.contains("SequenceLength"), "{n}: {text}");
    }
    for i in 0..bytes.len() {
        let mut damaged = bytes.to_vec();
        damaged[i] ^= 0x81;
        request.set_input(0, Tensor::from_slice(&[damaged.len()], &damaged).unwrap()).unwrap();
        let _ = request.infer(());
    }
    request.set_input(0, whole).unwrap();
    request.infer(()).unwrap();
}

#[test]
fn an_element_that_is_not_what_the_model_declares_is_refused() {
    let (_, compiled) = load("loop-reverses");
    let request = compiled.create_infer_request();
    request.set_input(0, pack_sequence(&[Tensor::scalar(1i64)]).unwrap()).unwrap();
    let text = request.infer(()).unwrap_err().to_string();
    assert!(text.contains("inferred as f32[?] and evaluated to i64[]"), "{text}");
}
