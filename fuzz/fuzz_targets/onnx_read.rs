//! Reads arbitrary bytes as an ONNX model with the built-in rules. Whatever is accepted must hold its invariants and infer
//! again; while it is small, it must also come back from an IR.
#![no_main]

use carafe_fe_onnx::Onnx;
use carafe_frontend::Format;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use std::sync::LazyLock;

mod protobuf;
mod sound;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    static WORDS: LazyLock<Vec<&str>> = LazyLock::new(|| Onnx.rules().names().into_iter().collect());
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
    Onnx.recognizes(data);
    sound::check(&Onnx, data);
});
