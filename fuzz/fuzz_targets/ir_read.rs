//! Reads arbitrary bytes as an IR: the text up to the first zero byte, the weights after it. Whatever is accepted must
//! infer again, be written, and come back the same.
#![no_main]

use carafe_graph::{Model, Registry};
use carafe_ir::{ReadOptions, WriteOptions};
use carafe_tensor::SharedBytes;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use std::sync::LazyLock;

mod mutate;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let structured = if seed % 4 == 0 { None } else { mutate::mutate(data, size, max_size, seed) };
    structured.unwrap_or_else(|| fuzzer_mutate(data, size, max_size))
});

static REGISTRY: LazyLock<Registry> = LazyLock::new(carafe_ops::registry);

fuzz_target!(|data: &[u8]| {
    let (text, weights) = match data.iter().position(|b| *b == 0) {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[][..]),
    };
    carafe_ir::is_ir(data);
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(problems) = carafe_ir::problems(text, &REGISTRY) else { return };
    let read = |text: &str, weights: &[u8], keep_unknown: bool| {
        let options = ReadOptions { keep_unknown, ..ReadOptions::default() };
        carafe_ir::read(text, SharedBytes::from_vec(weights.to_vec()), &REGISTRY, &options)
    };
    if !problems.is_empty() {
        assert!(read(text, weights, false).is_err(), "unknown types must be an error");
    }
    let Ok(mut model) = read(text, weights, true) else { return };
    carafe_graph::verify(&model).expect("a model that was read holds its invariants");
    model.infer().expect("inference succeeds again");
    let write = |model: &Model| carafe_ir::write_to(model, &WriteOptions::default());
    let (first, bytes) = write(&model).expect("a model that was read can be written");
    let again = read(&first, &bytes, true).expect("what was written can be read");
    assert!(model.same_as(&again) || first.contains("nan"), "changed by writing and reading:\n{first}");
    let (second, more) = write(&again).expect("a model that was read can be written");
    assert_eq!(first, second, "writing again gives the same text");
    assert_eq!(bytes, more, "writing again gives the same weights");
});
