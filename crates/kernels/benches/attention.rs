//! Attention of well-known models in f32 and bf16: microseconds a call and GFlop/s, best of many.

use carafe_kernels::{
    Attention, AttentionInputs, AttentionParams, Exec, Halves, Isa, Mask, Pool, PoolOptions, Scratch,
};
use std::time::Instant;

fn main() {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let isa = std::env::var("ISA").ok().and_then(|name| Isa::available().find(|isa| isa.name() == name));
    let isa = isa.unwrap_or(Isa::best());
    let cases: &[(&str, usize, usize, usize, usize, usize, bool)] = &[
        ("bert 12x128x64", 1, 12, 128, 128, 64, false),
        ("vit 12x197x64", 1, 12, 197, 197, 64, false),
        ("minilm 12x128x32", 1, 12, 128, 128, 32, false),
        ("gpt prefill 12x128x64", 1, 12, 128, 128, 64, true),
        ("swin 64x3x49x32", 64, 3, 49, 49, 32, false),
        ("swin masked 64x3x49x32", 64, 3, 49, 49, 32, false),
        ("swin masked 1x24x49x32", 1, 24, 49, 49, 32, false),
        ("ocr 8x40x15", 1, 8, 40, 40, 15, false),
        ("short 12x64x64", 1, 12, 64, 64, 64, false),
        ("short 12x96x64", 1, 12, 96, 96, 64, false),
        ("sd 8x1024x40", 1, 8, 1024, 1024, 40, false),
        ("long 8x4096x64", 1, 8, 4096, 4096, 64, false),
        ("long causal 8x4096x64", 1, 8, 4096, 4096, 64, true),
        ("decode 12x128x64", 1, 12, 1, 128, 64, false),
        ("decode 12x1024x64", 1, 12, 1, 1024, 64, false),
        ("decode 12x4096x64", 1, 12, 1, 4096, 64, false),
        ("decode 32x2048x128", 1, 32, 1, 2048, 128, false),
    ];
    for threads in [1, 2] {
        let pool = Pool::new(PoolOptions::threads(threads));
        for &(name, batch, heads, q_len, kv_len, size, causal) in cases {
            if !name.contains(&filter) {
                continue;
            }
            for packed in [false, true] {
                let hidden = heads * size;
                let strides = |len: usize, of: usize| [len * hidden * of, size, hidden * of];
                let mut p = AttentionParams::dense(batch, heads, q_len, kv_len, size, size);
                p.causal = causal.then_some(0);
                if packed {
                    // Views into [batch, length, 3 * hidden], the usual outcome of one product for q, k and v.
                    (p.q, p.k, p.v, p.out) =
                        (strides(q_len, 3), strides(kv_len, 3), strides(kv_len, 3), strides(q_len, 1));
                }
                let data: Vec<f32> =
                    (0..batch * q_len.max(kv_len) * hidden * 3).map(|i| (i % 251) as f32 / 251.0 - 0.5).collect();
                let mut out = vec![0.0; batch * q_len * hidden];
                let mask = vec![0.1; batch * heads * q_len * kv_len];
                let masked = name.contains("masked");
                p.mask = [heads * q_len * kv_len, q_len * kv_len, kv_len, 1];
                let attention = Attention::new(p);
                let scratch = Scratch::new(threads, attention.scratch_floats()).unwrap();
                let exec = Exec::new(&pool, isa, &scratch);
                let mask = if masked { Mask::Add(&mask) } else { Mask::None };
                let x = AttentionInputs { q: &data[..], k: &data[..], v: &data[..], mask, sink: None };
                let floats = best(|| attention.run(&exec, &x, &mut out));
                let (data, mut out) = (Halves::Bf16.all_bits(&data), Halves::Bf16.all_bits(&out));
                let x = AttentionInputs { q: &data[..], k: &data[..], v: &data[..], mask, sink: None };
                let halves = best(|| attention.run_halves(&exec, Halves::Bf16, &x, &mut out));
                let flops = 4.0 * (batch * heads * q_len * kv_len * size) as f64 / if causal { 2.0 } else { 1.0 };
                let numbers = 2.0 * (batch * heads * kv_len * size) as f64;
                let layout = if packed { "qkv  " } else { "dense" };
                for (ty, best, bytes) in [("f32 ", floats, 4.0 * numbers), ("bf16", halves, 2.0 * numbers)] {
                    println!(
                        "{threads} threads {name:24} {layout} {ty} {:10.1} us {:7.1} GFlop/s {:6.1} GB/s",
                        best * 1e6,
                        flops / best / 1e9,
                        bytes / best / 1e9
                    );
                }
            }
        }
    }
}

/// Seconds of the fastest of many calls.
fn best(mut call: impl FnMut()) -> f64 {
    let (mut best, begin) = (f64::MAX, Instant::now());
    while begin.elapsed().as_secs_f64() < 0.15 {
        let start = Instant::now();
        call();
        best = best.min(start.elapsed().as_secs_f64());
    }
    best
}
