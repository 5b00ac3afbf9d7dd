//! What holds for a model that a reader accepts: its invariants, that it infers again and, while it is small, that it comes back
//! from an IR. A model that is refused is read once more with what nobody knows left in it.

use carafe_frontend::{Content, Format, ReadRequest};
use carafe_graph::{Constant, Model, Registry};
use carafe_ir::WriteOptions;
use carafe_tensor::SharedBytes;
use std::sync::LazyLock;

static REGISTRY: LazyLock<Registry> = LazyLock::new(carafe_ops::registry);

#[allow(dead_code)]
pub fn check(format: &dyn Format, data: &[u8]) {
    check_parts(format, data, None);
}

/// As `check`, of a format whose weights are a file of their own.
#[allow(dead_code)]
pub fn check_parts(format: &dyn Format, data: &[u8], weights: Option<&[u8]>) {
    let bytes = SharedBytes::from_vec(data.to_vec());
    let weights = weights.map(|w| SharedBytes::from_vec(w.to_vec()));
    let request = ReadRequest { weights: weights.as_ref().map(Content::Bytes), ..ReadRequest::from_bytes(&bytes) };
    let Ok(mut model) = carafe_frontend::read(format, &request) else {
        let request = ReadRequest { keep_unknown: true, ..request };
        if let Ok(model) = carafe_frontend::read(format, &request) {
            carafe_graph::verify(&model).expect("a model to be looked at holds its invariants");
        }
        return;
    };
    carafe_graph::verify(&model).expect("a model that was read holds its invariants");
    model.infer().expect("inference succeeds again");
    if !is_small(&model) {
        return;
    }
    let (text, bytes) = match carafe_ir::write_to(&model, &WriteOptions::default()) {
        Ok(written) => written,
        // The one thing a file can say and an IR cannot: control characters in names.
        Err(e) if e.message().contains("XML cannot hold") => return,
        Err(e) => panic!("a model that was read can be written: {e}"),
    };
    let options = carafe_ir::ReadOptions::default();
    carafe_ir::read(&text, SharedBytes::from_vec(bytes), &REGISTRY, &options).expect("what was written can be read");
}

fn is_small(model: &Model) -> bool {
    let weights = model.nodes().filter_map(|(_, n)| n.op().get::<Constant>()).map(|c| c.tensor().byte_len());
    model.len() < 1000 && weights.sum::<usize>() < 1 << 20
}
