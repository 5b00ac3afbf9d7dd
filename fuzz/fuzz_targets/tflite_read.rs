//! Reads arbitrary bytes as a TensorFlow Lite file. Whatever is accepted must hold its invariants and infer again; while it is
//! small, it must also come back from an IR.
#![no_main]

use carafe_fe_tflite::TfLite;
use carafe_frontend::Format;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

mod sound;

/// Numbers that have a meaning somewhere, or just outside of it.
const NUMBERS: &[i64] =
    &[0, 1, 2, 3, 4, 5, 6, 8, 9, 16, 32, 92, 93, 118, 119, 127, 255, 1 << 16, 1 << 28, -1, -2, i32::MAX as i64, i32::MIN as i64];

// Numbers and offsets lie where their size divides: one of them becomes a number that hurts, another's, or one more or less.
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 4 == 0 || size < 16 {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut state = u64::from(seed);
    let mut below = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    for _ in 0..1 + below(3) {
        let width = [1, 2, 4, 4, 4][below(5)];
        let at = 8 + below((size - 8) / width) * width;
        let from = 8 + below((size - 8) / width) * width;
        let Some(old) = data[..size].get(at..at + width).map(<[u8]>::to_vec) else { continue };
        let number = i64::from_le_bytes(std::array::from_fn(|i| old.get(i).copied().unwrap_or(0)));
        let new = match below(5) {
            0 => number.wrapping_add(1),
            1 => number.wrapping_sub(1),
            2 if from + width <= size => {
                data.copy_within(from..from + width, at);
                continue;
            }
            _ => NUMBERS[below(NUMBERS.len())],
        };
        data[at..at + width].copy_from_slice(&new.to_le_bytes()[..width]);
    }
    size
});

fuzz_target!(|data: &[u8]| {
    TfLite.recognizes(data);
    sound::check(&TfLite, data);
});
