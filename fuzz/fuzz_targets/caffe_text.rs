//! Reads arbitrary text as a net of Caffe, and as the `.proto` file of a fork. Nothing may panic or hang, and a model that is
//! accepted, layers without a rule included, must hold its invariants.
#![no_main]

use carafe_fe_caffe::Schema;
use carafe_frontend::{ReadOptions, RuleSet};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static RULES: LazyLock<RuleSet> = LazyLock::new(carafe_fe_caffe::rules);

fuzz_target!(|text: &str| {
    let _ = Schema::parse(text);
    if carafe_fe_caffe::is_caffe(text.as_bytes()) {
        let options = ReadOptions { keep_unknown: true, ..ReadOptions::default() };
        let bytes = text.as_bytes().to_vec();
        let read = carafe_fe_caffe::read_bytes_with(bytes, None, &RULES, &options, Schema::built_in());
        if let Ok(mut model) = read {
            carafe_graph::verify(&model).expect("a model that was read holds its invariants");
            model.infer().expect("inference succeeds again");
        }
    }
});
