//! Reads arbitrary text as a file of sub-graph replacements, and does what it says to a small model.
#![no_main]

use carafe::convert::{apply_config, update_config};
use carafe::{Core, Model, Notes, ReadRequest, SharedBytes};
use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;

static CORE: LazyLock<Core> = LazyLock::new(carafe::core);
static MODEL: LazyLock<Model> = LazyLock::new(|| {
    let text = r#"<ir_version: 8, opset_import: ["": 17]>
        net (float[2,3] a, float[2,3] b) => (float[2,3] y, float[2,3] z) {
            sum = Add(a, b)
            pos = Relu(sum)
            y = Mul(pos, a)
            z = Sigmoid(pos)
        }"#;
    let bytes = SharedBytes::from_vec(text.as_bytes().to_vec());
    carafe::core().read(&ReadRequest::from_bytes(&bytes)).expect("the model is right")
});

fuzz_target!(|text: &str| {
    let mut model = MODEL.clone();
    let _ = apply_config(&mut model, text, &CORE, &mut Notes::default());
    carafe_graph::verify(&model).expect("a rewrite keeps the invariants");
    let _ = update_config(&model, text);
});
