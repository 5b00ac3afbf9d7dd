//! Reads arbitrary text in every form a model may be written in. Nothing may panic or hang, and a model
//! that is accepted, operations without a rule included, must hold its invariants.
#![no_main]

use carafe_fe_onnx::Onnx;
use carafe_frontend::{Format, ReadRequest};
use carafe_tensor::SharedBytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = carafe_textproto::parse_text(text);
    let _ = carafe_textproto::parse_json(text);
    if Onnx.recognizes(text.as_bytes()) {
        let bytes = SharedBytes::from_vec(text.as_bytes().to_vec());
        let request = ReadRequest { keep_unknown: true, ..ReadRequest::from_bytes(&bytes) };
        if let Ok(mut model) = carafe_frontend::read(&Onnx, &request) {
            carafe_graph::verify(&model).expect("a model that was read holds its invariants");
            model.infer().expect("inference succeeds again");
        }
    }
});
