//! What a model is beyond its numbers: names, info, arrays in other forms.

use crate::common::case;
use carafe::{Core, Model, ReadRequest, SharedBytes, Tensor};

fn read(core: &Core, bytes: &[u8]) -> Model {
    core.read(&ReadRequest::from_bytes(&SharedBytes::from_vec(bytes.to_vec()))).unwrap()
}

fn info(model: &Model, key: &str) -> String {
    let info = model.rt_info.iter().find(|t| t.key == "framework").unwrap();
    info.child(key).unwrap().value.clone().unwrap()
}

#[test]
fn names_are_those_of_mo() {
    let core = carafe::core();
    let chain =
        "<Nnet> <Sigmoid> 2 2 <!EndOfComponent> <Tanh> 2 2 <!EndOfComponent> <Sigmoid> 2 2 <!EndOfComponent> </Nnet>";
    let model = read(&core, chain.as_bytes());
    assert_eq!(model.node(model.parameters()[0]).name(), "Parameter");
    for name in ["sigmoid", "tanh", "sigmoid4"] {
        assert!(model.find_node(name).is_some(), "{name}");
    }
    let model = read(&core, case("nnet2", "SpliceComponent").binary.as_slice());
    assert_eq!(model.node(model.parameters()[0]).name(), "Input");
    let model = read(&core, case("descriptors", "two-outputs-of-different-delay").text.as_slice());
    assert_eq!(model.node(model.parameters()[0]).name(), "input");
    let results: Vec<&str> = model.results().iter().map(|r| model.node(*r).name()).collect();
    assert_eq!(results, ["output/sink_port_0", "output-xent/sink_port_0"]);
}

#[test]
fn the_info_says_how_many_frames_around_an_utterance_are_looked_at() {
    let core = carafe::core();
    for (family, name) in [("nnet3", "TdnnComponent"), ("recurrent", "tdnn-lstm"), ("nnet2", "two-splices")] {
        let case = case(family, name);
        let model = read(&core, case.binary.as_slice());
        assert_eq!(
            (info(&model, "left_context"), info(&model, "right_context")),
            (case.context.0.to_string(), case.context.1.to_string())
        );
    }
}

#[test]
fn arrays_in_double_precision_and_compressed_are_read() {
    let core = carafe::core();
    let shift = |data: &[u8]| {
        let file =
            [b"\0B<Nnet> <AddShift> \x04\x02\0\0\0\x04\x02\0\0\0<LearnRateCoef> \x04\0\0\x80\x3f", data, b"</Nnet> "]
                .concat();
        let model = read(&core, &file);
        model.evaluate(&[Tensor::from_slice(&[1, 2], &[1f32, 2.0]).unwrap()]).unwrap()[0]
            .to_vec::<f32>()
            .unwrap()
            .into_owned()
    };
    assert_eq!(shift(b"FV \x04\x02\0\0\0\0\0\x80\x3f\0\0\0\x40"), [2.0, 4.0]);
    assert_eq!(shift(b"DV \x04\x02\0\0\0\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\x40"), [2.0, 4.0]);
    // From 0 on, a range of 255: a byte is its own number. A row of two is as good as a vector of two.
    assert_eq!(shift(b"CM3 \0\0\0\0\0\0\x7f\x43\x01\0\0\0\x02\0\0\0\x03\x05"), [4.0, 7.0]);
    assert_eq!(shift(b"CM2 \0\0\0\0\0\xff\x7f\x47\x01\0\0\0\x02\0\0\0\x03\0\x05\0"), [4.0, 7.0]);
}

#[test]
fn numbers_of_text_may_be_none() {
    let core = carafe::core();
    let model = read(&core, b"<Nnet> <AddShift> 3 3 [ inf -1.#INF 1e-3 ] </Nnet>");
    let y = model.evaluate(&[Tensor::from_slice(&[1, 3], &[0f32; 3]).unwrap()]).unwrap();
    assert_eq!(y[0].to_vec::<f32>().unwrap().as_ref(), [f32::INFINITY, f32::NEG_INFINITY, 1e-3]);
}
