//! Reads arbitrary text in every form a model may be written in. Nothing may panic or hang, and a model
//! that is accepted, operations without a rule included, must hold its invariants.
#![no_main]

use carafe_frontend::{ReadOptions, RuleSet};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static RULES: LazyLock<RuleSet> = LazyLock::new(carafe_fe_onnx::rules);

fuzz_target!(|text: &str| {
    let _ = carafe_textproto::parse_text(text);
    let _ = carafe_textproto::parse_json(text);
    if carafe_fe_onnx::is_onnx(text.as_bytes()) {
        let options = ReadOptions { keep_unknown: true, ..ReadOptions::default() };
        if let Ok(mut model) = carafe_fe_onnx::read_bytes_with(text.as_bytes().to_vec(), &RULES, &options) {
            carafe_graph::verify(&model).expect("a model that was read holds its invariants");
            model.infer().expect("inference succeeds again");
        }
    }
});
