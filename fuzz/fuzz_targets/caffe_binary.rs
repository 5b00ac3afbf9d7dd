//! Reads arbitrary bytes as a net of Caffe that holds its own weights. Whatever is accepted must hold its invariants and
//! infer again; while it is small, it must also come back from an IR.
#![no_main]

use carafe_fe_caffe::Caffe;
use carafe_frontend::{Format, ReadRequest};
use carafe_graph::{Constant, Model, Registry};
use carafe_ir::WriteOptions;
use carafe_tensor::SharedBytes;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use std::sync::LazyLock;

mod protobuf;

static REGISTRY: LazyLock<Registry> = LazyLock::new(carafe_ops::registry);

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    static CAFFE: LazyLock<Caffe> = LazyLock::new(Caffe::default);
    static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| CAFFE.rules().names().into_iter().collect());
    let structured = if seed % 8 == 0 { None } else { protobuf::mutate(&data[..size], &WORDS, seed) };
    match structured.filter(|new| new.len() <= max_size) {
        Some(new) => {
            data[..new.len()].copy_from_slice(&new);
            new.len()
        }
        None => fuzzer_mutate(data, size, max_size),
    }
});

fuzz_target!(|data: &[u8]| {
    Caffe::default().recognizes(data);
    let _ = carafe_fe_caffe::read_mean_bytes(data.to_vec());
    let bytes = SharedBytes::from_vec(data.to_vec());
    let request = ReadRequest::from_bytes(&bytes);
    let Ok(mut model) = carafe_frontend::read(&Caffe::default(), &request) else {
        let request = ReadRequest { keep_unknown: true, ..request };
        if let Ok(model) = carafe_frontend::read(&Caffe::default(), &request) {
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
        // The one thing a net can say and an IR cannot: control characters in names.
        Err(e) if e.message().contains("XML cannot hold") => return,
        Err(e) => panic!("a model that was read can be written: {e}"),
    };
    let options = carafe_ir::ReadOptions::default();
    carafe_ir::read(&text, SharedBytes::from_vec(bytes), &REGISTRY, &options).expect("what was written can be read");
});

fn is_small(model: &Model) -> bool {
    let weights = model.nodes().filter_map(|(_, n)| n.op().get::<Constant>()).map(|c| c.tensor().byte_len());
    model.len() < 1000 && weights.sum::<usize>() < 1 << 20
}
