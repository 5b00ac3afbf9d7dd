//! Recurrent layers of common sizes: microseconds a call and the rate at which weights of the state are read, best of many.

use carafe_kernels::{
    CellKind, Direction, Exec, Isa, Lengths, Pool, PoolOptions, Recurrent, RecurrentInputs, RecurrentOutputs,
    RecurrentParams, RecurrentWeights, Scratch,
};
use std::time::Instant;

fn main() {
    let lstm = CellKind::Lstm { input_forget: false };
    let (gru, linear) = (CellKind::Gru { linear_before_reset: false }, CellKind::Gru { linear_before_reset: true });
    let (one, both) = (Direction::Forward, Direction::Both);
    let cases = [
        ("lstm", lstm, one, 1, 128, 128),
        ("lstm", lstm, one, 1, 256, 256),
        ("lstm", lstm, one, 1, 512, 512),
        ("lstm", lstm, both, 1, 128, 128),
        ("lstm", lstm, both, 1, 256, 256),
        ("lstm", lstm, both, 1, 512, 256),
        ("lstm", lstm, both, 1, 512, 512),
        ("lstm", lstm, one, 16, 256, 256),
        ("lstm", lstm, one, 64, 512, 512),
        ("gru", gru, one, 1, 256, 256),
        ("gru linear", linear, one, 1, 256, 256),
        ("gru linear", linear, both, 1, 256, 256),
        ("rnn", CellKind::Rnn, one, 1, 256, 256),
    ];
    let time = 100;
    for threads in [1, 2] {
        let pool = Pool::new(PoolOptions::threads(threads));
        for (name, kind, direction, batch, input, hidden) in cases {
            let p = RecurrentParams::dense(kind, direction, batch, time, input, hidden);
            let layer = Recurrent::new(Isa::best(), p);
            let scratch = Scratch::new(threads, layer.scratch_floats()).unwrap();
            let exec = Exec::new(&pool, Isa::best(), &scratch);
            let numbers = |n: usize| (0..n).map(|i| (i % 251) as f32 / 2510.0 - 0.05).collect::<Vec<f32>>();
            let rows = p.directions() * kind.gates() * hidden;
            let (w, r) = (numbers(rows * input), numbers(rows * hidden));
            let mut packed = vec![0.0; layer.packed_floats()];
            layer.pack(None, &RecurrentWeights { w: &w, r: &r, b: None, peepholes: None }, &mut packed);
            let x = numbers(batch * time * input);
            let mut y = vec![0.0; batch * p.directions() * time * hidden];
            let mut workspace = vec![0.0; layer.workspace_floats()];
            let (mut best, begin) = (f64::MAX, Instant::now());
            while begin.elapsed().as_secs_f64() < 0.2 {
                let inputs = RecurrentInputs { x: &x, h: None, c: None, lengths: Lengths::Full, attention: None };
                let outputs = RecurrentOutputs { y: Some(&mut y), ..Default::default() };
                let start = Instant::now();
                layer.run(&exec, &packed, &inputs, outputs, &mut workspace);
                best = best.min(start.elapsed().as_secs_f64());
            }
            let flops = 2.0 * (rows * (input + hidden) * time * batch) as f64;
            let bytes = 4.0 * (rows * hidden * time) as f64;
            println!(
                "{threads} threads {name:10} {direction:?} batch {batch:2} time {time} {input:4} -> {hidden:4} {:9.1} us \
                 {:6.1} GFlop/s {:6.1} GB/s",
                best * 1e6,
                flops / best / 1e9,
                bytes / best / 1e9
            );
        }
    }
}
