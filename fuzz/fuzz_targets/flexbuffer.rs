//! Reads arbitrary bytes as the options of a custom operator in a TensorFlow Lite file.
#![no_main]

use carafe_fe_tflite::TfLite;
use carafe_frontend::ReadRequest;
use carafe_tensor::SharedBytes;
use libfuzzer_sys::fuzz_target;

#[allow(dead_code)]
#[path = "../../crates/fe-tflite/tests/all/common.rs"]
mod common;

use common::{Table, code, file, model, operator, subgraph, tensor};

fuzz_target!(|data: &[u8]| {
    let tensors = [tensor("x", &[2], 0), tensor("y", &[2], 0)];
    let custom: Table = operator(0, &[0], &[1]).bytes(5, data);
    let bytes = file(&model(&[code(32).str(1, "Mine")], &[subgraph(&tensors, &[custom])], &[]));
    let bytes = SharedBytes::from_vec(bytes);
    let request = ReadRequest { keep_unknown: true, ..ReadRequest::from_bytes(&bytes) };
    let model = carafe_frontend::read(&TfLite, &request).expect("an unknown operator is kept, whatever its options are");
    carafe_graph::verify(&model).expect("a model to be looked at holds its invariants");
});
