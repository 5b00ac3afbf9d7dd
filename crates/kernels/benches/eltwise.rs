//! Speed of elementwise programs, softmax, normalisation and reduction: nanoseconds an element and bytes moved a second.
//! `eltwise [filter] [threads]`.

use carafe_kernels::cast::{Half, convert};
use carafe_kernels::eltwise::{Elements, EltOp, Instr, Program};
use carafe_kernels::norm::{GroupNorm, NormKind, RowNorm};
use carafe_kernels::reduce::{ArgReduce, Extreme, Reduce, Reduction};
use carafe_kernels::softmax::Softmax;
use carafe_kernels::{Act, Exec, Isa, Pool, PoolOptions, Scratch, vmath};
use std::time::{Duration, Instant};

struct Bench {
    filter: String,
    threads: usize,
}

impl Bench {
    /// Times `run`, which handles `n` elements and moves `bytes`; the best of many.
    fn time(&self, name: &str, n: usize, bytes: usize, mut run: impl FnMut()) {
        if !name.contains(&self.filter) {
            return;
        }
        let (mut best, start) = (f64::MAX, Instant::now());
        let mut turns = 0;
        while turns < 5 || (start.elapsed() < Duration::from_millis(250) && turns < 20_000) {
            let begin = Instant::now();
            run();
            best = best.min(begin.elapsed().as_secs_f64());
            turns += 1;
        }
        let (each, rate) = (best * 1e9 / n as f64, bytes as f64 / best / 1e9);
        println!("{name:44} {:9.1} us {each:7.3} ns/element {rate:7.1} GB/s", best * 1e6);
    }
}

fn floats(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919) % 1000) as f32 / 125.0 - 4.0).collect()
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| a != "--bench");
    let filter = args.next().unwrap_or_default();
    let threads = args.next().and_then(|t| t.parse().ok()).unwrap_or(2);
    let bench = Bench { filter, threads };
    let (pool, scratch) =
        (Pool::new(PoolOptions::threads(bench.threads)), Scratch::new(bench.threads, 1 << 16).unwrap());
    let exec = Exec::new(&pool, Isa::best(), &scratch);
    functions(&bench);
    programs(&bench, &exec);
    lines(&bench, &exec);
    reductions(&bench, &exec);
    let n = 1 << 20;
    let (x, mut half, mut int) = (floats(n), vec![Half(0); n], vec![0i64; n]);
    bench.time("cast f32 to f16", n, 6 * n, || convert(&exec, &x, &mut half));
    bench.time("cast f32 to i64", n, 12 * n, || convert(&exec, &x, &mut int));
    let mut back = floats(n);
    bench.time("cast i64 to f32", n, 12 * n, || convert(&exec, &int, &mut back));
}

/// In the first cache, one thread.
fn functions(bench: &Bench) {
    let n = 2048;
    let (x, mut y) = (floats(n), floats(n));
    let acts = [
        Act::Relu,
        Act::Clamp { min: 0.0, max: 6.0 },
        Act::LeakyRelu(0.1),
        Act::Elu(1.0),
        Act::Sigmoid,
        Act::Tanh,
        Act::Swish(1.0),
        Act::HSwish,
        Act::GeluErf,
        Act::GeluTanh,
        Act::Mish,
        Act::SoftPlus,
    ];
    for isa in Isa::available().skip(1) {
        for act in acts {
            bench.time(&format!("vmath {act:?} {}", isa.name()), n, 8 * n, || vmath::act_into(isa, act, &x, &mut y));
        }
        let functions: [(&str, fn(Isa, &mut [f32])); 6] = [
            ("exp", vmath::exp),
            ("log", vmath::log),
            ("erf", vmath::erf),
            ("sin", vmath::sin),
            ("sqrt", vmath::sqrt),
            ("rsqrt", vmath::rsqrt),
        ];
        for (name, function) in functions {
            bench.time(&format!("vmath {name} {}", isa.name()), n, 8 * n, || {
                y.copy_from_slice(&x);
                function(isa, &mut y);
            });
        }
        y.copy_from_slice(&x);
        bench.time(&format!("vmath pow {}", isa.name()), n, 8 * n, || {
            y.copy_from_slice(&x);
            vmath::pow(isa, &mut y, 1.7);
        });
    }
}

fn programs(bench: &Bench, exec: &Exec<'_>) {
    let chain = |ops: &[EltOp]| {
        let one = |(i, &op): (usize, &EltOp)| Instr::unary(op, 1, if i == 0 { 0u8 } else { 1 });
        Program::new(1, ops.iter().enumerate().map(one).collect(), vec![1])
    };
    for (name, n) in [("4K", 4096), ("200K", 200_704), ("1M", 1 << 20), ("16M", 1 << 24)] {
        let (x, z, mut y) = (floats(n), floats(n), vec![0.0; n]);
        let add = Elements::new(Program::single(EltOp::Add), &[n], &[&[n], &[n]]);
        bench.time(&format!("add {name}"), n, 12 * n, || add.run(exec, &[&x, &z], &mut [&mut y]));
        let relu = Elements::new(Program::single(EltOp::Act(Act::Relu)), &[n], &[&[n]]);
        bench.time(&format!("relu {name}"), n, 8 * n, || relu.run(exec, &[&x], &mut [&mut y]));
        let swish = Elements::new(Program::single(EltOp::Act(Act::Swish(1.0))), &[n], &[&[n]]);
        bench.time(&format!("swish {name}"), n, 8 * n, || swish.run(exec, &[&x], &mut [&mut y]));
        let four = Elements::new(chain(&[EltOp::Abs, EltOp::Sqrt, EltOp::Neg, EltOp::Exp]), &[n], &[&[n]]);
        bench.time(&format!("chain of four {name}"), n, 8 * n, || four.run(exec, &[&x], &mut [&mut y]));
    }
    let shapes: [(&str, [usize; 3], [usize; 3]); 6] = [
        ("channels 56x56x64", [56, 56, 64], [1, 1, 64]),
        ("channels 112x112x24", [112, 112, 24], [1, 1, 24]),
        ("channels 300x300x3", [300, 300, 3], [1, 1, 3]),
        ("channels 14x14x960", [14, 14, 960], [1, 1, 960]),
        ("rows 8400x80", [1, 8400, 80], [1, 8400, 1]),
        ("middle 64x49x32", [64, 49, 32], [1, 49, 1]),
    ];
    for (name, out, vector) in shapes {
        let n = out.iter().product();
        let (x, v, mut y) = (floats(n), floats(vector.iter().product()), vec![0.0; n]);
        let program = Program::new(
            2,
            vec![Instr::binary(EltOp::Mul, 2, 0u8, 1u8), Instr::binary(EltOp::Add, 2, 2u8, 1u8)],
            vec![2],
        );
        let elements = Elements::new(program, &out, &[&out, &vector]);
        bench.time(&format!("mul add {name}"), n, 8 * n, || elements.run(exec, &[&x, &v], &mut [&mut y]));
    }
}

fn lines(bench: &Bench, exec: &Exec<'_>) {
    for (outer, len, inner) in [
        (33_600, 16, 1),
        (1536, 128, 1),
        (12 * 197, 197, 1),
        (64 * 3 * 49, 49, 1),
        (100, 1000, 1),
        (8, 32_000, 1),
        (1, 16, 33_600),
        (4, 21, 4096),
    ] {
        let n = outer * len * inner;
        let (x, mut y) = (floats(n), vec![0.0; n]);
        let softmax = Softmax::new(outer, len, inner);
        bench.time(&format!("softmax {outer}x{len}x{inner}"), n, 8 * n, || softmax.run(exec, &x, &mut y));
        bench.time("  in place", n, 8 * n, || softmax.run_in_place(exec, &mut y, None));
    }
    for (rows, len) in [(128, 768), (197, 768), (3136, 96), (512, 1024), (8, 4096)] {
        let n = rows * len;
        let (x, g, mut y) = (floats(n), floats(len), vec![0.0; n]);
        let norm = RowNorm::new(NormKind::Variance { eps: 1e-5 }, rows, len);
        bench.time(&format!("layer norm {rows}x{len}"), n, 8 * n, || norm.run(exec, &x, Some(&g), Some(&g), &mut y));
        let rms = RowNorm::new(NormKind::Rms { eps: 1e-5 }, rows, len);
        bench.time(&format!("rms norm {rows}x{len}"), n, 8 * n, || rms.run(exec, &x, Some(&g), None, &mut y));
    }
    for (pixels, channels, groups) in [(4096, 320, 32), (1024, 640, 32), (65_536, 32, 32)] {
        let n = pixels * channels;
        let (x, g, mut y) = (floats(n), floats(channels), vec![0.0; n]);
        let norm = GroupNorm::new(NormKind::Variance { eps: 1e-5 }, 1, pixels, channels, groups);
        bench.time(&format!("group norm {pixels}x{channels} of {groups}"), n, 8 * n, || {
            norm.run(exec, &x, Some(&g), Some(&g), &mut y);
        });
    }
}

fn reductions(bench: &Bench, exec: &Exec<'_>) {
    let cases: [(&str, &[usize], &[usize]); 6] = [
        ("mean 1x49x2048 over pixels", &[1, 49, 2048], &[1]),
        ("mean 1x3136x64 over pixels", &[1, 3136, 64], &[1]),
        ("mean 1x12544x32 over pixels", &[1, 12_544, 32], &[1]),
        ("mean 128x768 over columns", &[128, 768], &[1]),
        ("mean 1M to one", &[1 << 20], &[0]),
        ("mean 64x128x64 over the ends", &[64, 128, 64], &[0, 2]),
    ];
    for (name, dims, axes) in cases {
        let n: usize = dims.iter().product();
        let x = floats(n);
        for op in [Reduction::Mean, Reduction::Max] {
            let reduce = Reduce::new(op, dims, axes);
            let mut y = vec![0.0; reduce.out_len()];
            bench.time(&format!("{op:?} of {name}"), n, 4 * n, || reduce.run(exec, &x, &mut y));
        }
    }
    for (outer, len, inner) in [(1, 32_000, 1), (1, 21, 65_536), (8400, 80, 1)] {
        let n = outer * len * inner;
        let (x, mut y) = (floats(n), vec![0; outer * inner]);
        let arg = ArgReduce::new(Extreme::Max, outer, len, inner);
        bench.time(&format!("argmax {outer}x{len}x{inner}"), n, 4 * n, || arg.run(exec, &x, &mut y, None));
    }
}
