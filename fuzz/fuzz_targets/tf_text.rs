//! Reads arbitrary text as a graph of TensorFlow. Nothing may panic or hang, and a model that is accepted, operations without a
//! rule included, must hold its invariants.
#![no_main]

use carafe_fe_tensorflow::TensorFlow;
use carafe_frontend::{Format, FormatOptions, ReadRequest};
use carafe_tensor::SharedBytes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    TensorFlow.recognizes(text.as_bytes());
    let bytes = SharedBytes::from_vec(text.as_bytes().to_vec());
    let mut options = FormatOptions::default();
    options.set("input_model_is_text", "true");
    let request = ReadRequest { keep_unknown: true, options: Some(&options), ..ReadRequest::from_bytes(&bytes) };
    if let Ok(mut model) = carafe_frontend::read(&TensorFlow, &request) {
        carafe_graph::verify(&model).expect("a model that was read holds its invariants");
        model.infer().expect("inference succeeds again");
    }
});
