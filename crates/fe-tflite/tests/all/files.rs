//! What a file holds besides operators: signatures and sub-graphs to choose from, buffers behind the flatbuffer.
//! `scripts/fixtures/tflite_file_cases.py` writes the files.

use carafe::{Core, FormatOptions, Model, Properties, ReadRequest, Result, SharedBytes, Tensor};

const TWO_SIGNATURES: &[u8] = include_bytes!("../fixtures/two_signatures.tflite");
const OUTSIDE_BUFFER: &[u8] = include_bytes!("../fixtures/outside_buffer.tflite");

fn read(core: &Core, file: &[u8], options: &[(&str, &str)]) -> Result<Model> {
    let bytes = SharedBytes::from_vec(file.to_vec());
    let mut given = FormatOptions::default();
    for (name, value) in options {
        given.set(*name, *value);
    }
    let mut request = ReadRequest::from_bytes(&bytes);
    request.options = Some(&given);
    core.read(&request)
}

fn run(core: &Core, model: &Model) -> Vec<f32> {
    let request = core.compile_model(model, "CPU", &Properties::new()).unwrap().create_infer_request();
    request.set_input(0, Tensor::from_slice(&[3], &[1f32, 2.0, 3.0]).unwrap()).unwrap();
    request.infer(()).unwrap();
    request.output(0).unwrap().to_vec().unwrap().into_owned()
}

#[test]
fn the_first_sub_graph_is_read_without_a_choice() {
    let core = carafe::core();
    assert_eq!(run(&core, &read(&core, TWO_SIGNATURES, &[]).unwrap()), [2.0, 4.0, 6.0]);
}

#[test]
fn a_signature_is_chosen_by_its_name_and_names_inputs_and_outputs() {
    let core = carafe::core();
    let model = read(&core, TWO_SIGNATURES, &[("signature", "shifted")]).unwrap();
    assert_eq!(run(&core, &model), [11.0, 12.0, 13.0]);
    for name in ["given", "shifted_in"] {
        assert!(model.find_parameter(name).is_some(), "{name}");
    }
    for name in ["found", "shifted_out"] {
        assert!(model.find_result(name).is_some(), "{name}");
    }
}

#[test]
fn a_sub_graph_is_chosen_by_its_name_or_number() {
    let core = carafe::core();
    for choice in ["graph_shifted", "1"] {
        let model = read(&core, TWO_SIGNATURES, &[("subgraph", choice)]).unwrap();
        assert_eq!(run(&core, &model), [11.0, 12.0, 13.0]);
    }
}

#[test]
fn an_unknown_signature_is_refused_with_those_that_there_are() {
    let core = carafe::core();
    let text = read(&core, TWO_SIGNATURES, &[("signature", "other")]).unwrap_err().to_string();
    assert!(text.contains("`double`, `shifted`"), "{text}");
}

#[test]
fn a_buffer_may_lie_behind_the_flatbuffer() {
    let core = carafe::core();
    assert_eq!(run(&core, &read(&core, OUTSIDE_BUFFER, &[]).unwrap()), [2.0, 4.0, 6.0]);
    let cut = &OUTSIDE_BUFFER[..OUTSIDE_BUFFER.len() - 4];
    assert!(read(&core, cut, &[]).is_err());
}
