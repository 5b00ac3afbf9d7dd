//! Recurrent layers against a plain loop in f64, at every level and with several threads.

use carafe_kernels::{
    Act, CellKind, Direction, Exec, Halves, Isa, Lengths, Pool, PoolOptions, Recurrent, RecurrentInputs,
    RecurrentOutputs, RecurrentParams, RecurrentWeights, Scratch,
};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 16) as usize % n
    }
    fn floats(&mut self, n: usize, scale: f32) -> Vec<f32> {
        (0..n).map(|_| ((self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0) * scale).collect()
    }
}

fn apply(act: Act, x: f64) -> f64 {
    match act {
        Act::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Act::Tanh => x.tanh(),
        Act::Relu => x.max(0.0),
        Act::HardSigmoid { alpha, beta } => (alpha as f64 * x + beta as f64).clamp(0.0, 1.0),
        other => panic!("{other:?}"),
    }
}

struct Data {
    w: Vec<f32>,
    r: Vec<f32>,
    b: Option<Vec<f32>>,
    peepholes: Option<Vec<f32>>,
    x: Vec<f32>,
    h: Option<Vec<f32>>,
    c: Option<Vec<f32>>,
    lengths: Option<Vec<i64>>,
    attention: Option<Vec<f32>>,
}

impl Data {
    fn new(r: &mut Random, p: &RecurrentParams) -> Data {
        let (d, n, g) = (p.directions(), p.hidden, p.kind.gates());
        let x = (p.batch - 1) * p.x[0] + (p.time - 1) * p.x[1] + p.input;
        Data {
            w: r.floats(d * g * n * p.input, 0.5),
            r: r.floats(d * g * n * n, 1.0 / (n as f32).sqrt()),
            b: Some(r.floats(d * p.kind.bias_blocks() * n, 0.5)),
            peepholes: None,
            x: r.floats(x, 1.0),
            h: Some(r.floats(p.batch * d * n, 1.0)),
            c: Some(r.floats(p.batch * d * n, 1.0)),
            lengths: None,
            attention: None,
        }
    }
}

fn brain(x: f64) -> f64 {
    f64::from(f32::from_bits(u32::from(Halves::Bf16.all_bits(&[x as f32])[0]) << 16))
}

fn rounded(all: &[f32]) -> Vec<f32> {
    all.iter().map(|x| brain(f64::from(*x)) as f32).collect()
}

// With `in_bf16` the states are rounded where they are multiplied.
fn naive(p: &RecurrentParams, a: &Data, in_bf16: bool, y: &mut [f32], last_h: &mut [f32], last_c: &mut [f32]) {
    let factor = |h: f64| if in_bf16 { brain(h) } else { h };
    let (dirs, n, gates) = (p.directions(), p.hidden, p.kind.gates());
    let clip = |x: f64| if p.clip > 0.0 { x.clamp(-p.clip as f64, p.clip as f64) } else { x };
    let act = |which: usize, x: f64| apply(p.acts[which], clip(x));
    for d in 0..dirs {
        for row in 0..p.batch {
            let length = a.lengths.as_ref().map_or(p.time, |l| l[row] as usize);
            let at = (row * dirs + d) * n;
            let begin = |from: &Option<Vec<f32>>| -> Vec<f64> {
                let ok = from.as_ref().filter(|_| length > 0);
                (0..n).map(|i| ok.map_or(0.0, |f| f[at + i] as f64)).collect()
            };
            let (mut h, mut c) = (begin(&a.h), begin(&a.c));
            for step in 0..length {
                let back = p.direction == Direction::Reverse || d == 1;
                let t = if back { length - 1 - step } else { step };
                let x = &a.x[row * p.x[0] + t * p.x[1]..][..p.input];
                let from_x = |g: usize, i: usize| -> f64 {
                    let w = &a.w[((d * gates + g) * n + i) * p.input..][..p.input];
                    w.iter().zip(x).map(|(w, x)| *w as f64 * *x as f64).sum::<f64>()
                };
                let of = |g: usize, i: usize, h: &[f64]| -> f64 {
                    let r = &a.r[((d * gates + g) * n + i) * n..][..n];
                    r.iter().zip(h).map(|(r, h)| *r as f64 * factor(*h)).sum()
                };
                let blocks = p.kind.bias_blocks();
                let bias = |g: usize, i: usize| a.b.as_ref().map_or(0.0, |b| b[(d * blocks + g) * n + i] as f64);
                let sum = |g: usize, i: usize| from_x(g, i) + of(g, i, &h) + bias(g, i);
                let (mut new_h, mut new_c) = (h.clone(), c.clone());
                match p.kind {
                    CellKind::Rnn => (0..n).for_each(|i| new_h[i] = act(0, sum(0, i))),
                    CellKind::Gru { linear_before_reset } => {
                        let keep = a.attention.as_ref().map_or(1.0, |a| 1.0 - a[row * p.time + t] as f64);
                        let r: Vec<f64> = (0..n).map(|i| act(0, sum(1, i))).collect();
                        let reset: Vec<f64> = r.iter().zip(&h).map(|(r, h)| r * h).collect();
                        for i in 0..n {
                            let z = act(0, sum(0, i)) * keep;
                            let pre = match linear_before_reset {
                                true => from_x(2, i) + bias(2, i) + r[i] * (of(2, i, &h) + bias(3, i)),
                                false => from_x(2, i) + bias(2, i) + of(2, i, &reset),
                            };
                            new_h[i] = (1.0 - z) * act(1, pre) + z * h[i];
                        }
                    }
                    CellKind::Lstm { input_forget } => {
                        let peep = |block: usize, i: usize| {
                            a.peepholes.as_ref().map_or(0.0, |p| p[(d * 3 + block) * n + i] as f64)
                        };
                        for i in 0..n {
                            let forget = act(0, sum(0, i) + peep(0, i) * c[i]);
                            let enter = if input_forget { 1.0 - forget } else { act(0, sum(1, i) + peep(1, i) * c[i]) };
                            new_c[i] = forget * c[i] + enter * act(1, sum(2, i));
                            new_h[i] = act(0, sum(3, i) + peep(2, i) * new_c[i]) * apply(p.acts[2], new_c[i]);
                        }
                    }
                }
                (h, c) = (new_h, new_c);
                let at = row * p.y[0] + d * p.y[1] + t * p.y[2];
                y[at..at + n].iter_mut().zip(&h).for_each(|(y, h)| *y = *h as f32);
            }
            for t in length..p.time {
                y[row * p.y[0] + d * p.y[1] + t * p.y[2]..][..n].fill(0.0);
            }
            last_h[at..at + n].iter_mut().zip(&h).for_each(|(y, h)| *y = *h as f32);
            last_c[at..at + n].iter_mut().zip(&c).for_each(|(y, c)| *y = *c as f32);
        }
    }
}

fn check(p: RecurrentParams, a: &Data) {
    check_in(p, a, false);
}

// The numbers of the data are rounded first, so that only sums differ and now and then the rounding of a state.
fn check_bf16(p: RecurrentParams, mut a: Data) {
    for all in [&mut a.w, &mut a.r, &mut a.x] {
        *all = rounded(all);
    }
    check_in(p, &a, true);
}

fn check_in(p: RecurrentParams, a: &Data, in_bf16: bool) {
    let (pairs, tolerance) = (Halves::Bf16.all_bits(&a.x), if in_bf16 { 4e-3 } else { 3e-5 });
    let cells = |c: &[u16]| f32::from_bits(u32::from(c[0]) | u32::from(c.get(1).copied().unwrap_or(0)) << 16);
    let x = if in_bf16 { pairs.chunks(2).map(cells).collect() } else { a.x.clone() };
    let d = p.directions();
    let y_len = (p.batch - 1) * p.y[0] + (d - 1) * p.y[1] + (p.time - 1) * p.y[2] + p.hidden;
    let state = p.batch * d * p.hidden;
    let mut wanted = [vec![7.0; y_len], vec![7.0; state], vec![7.0; state]];
    let [y, h, c] = &mut wanted;
    naive(&p, a, in_bf16, y, h, c);
    for threads in [1, 3] {
        let pool = Pool::new(PoolOptions::threads(threads));
        for isa in Isa::available() {
            let layer = if in_bf16 { Recurrent::of_bf16(isa, p).unwrap() } else { Recurrent::new(isa, p) };
            let scratch = Scratch::new(threads, layer.scratch_floats()).unwrap();
            let exec = Exec::new(&pool, isa, &scratch);
            let mut packed = vec![f32::NAN; layer.packed_floats()];
            let weights = RecurrentWeights { w: &a.w, r: &a.r, b: a.b.as_deref(), peepholes: a.peepholes.as_deref() };
            layer.pack(Some(&exec), &weights, &mut packed);
            let mut workspace = vec![f32::NAN; layer.workspace_floats()];
            let mut found = [vec![7.0; y_len], vec![7.0; state], vec![7.0; state]];
            let [y, h, c] = &mut found;
            let inputs = RecurrentInputs {
                x: &x,
                h: a.h.as_deref(),
                c: a.c.as_deref(),
                lengths: a.lengths.as_ref().map_or(Lengths::Full, |l| Lengths::I64(l)),
                attention: a.attention.as_deref(),
            };
            let outputs = RecurrentOutputs { y: Some(y), h: Some(h), c: Some(c) };
            layer.run(&exec, &packed, &inputs, outputs, &mut workspace);
            let states = if matches!(p.kind, CellKind::Lstm { .. }) { 3 } else { 2 };
            for (which, (found, wanted)) in found.iter().zip(&wanted).take(states).enumerate() {
                for (i, (y, w)) in found.iter().zip(wanted).enumerate() {
                    assert!(
                        (y - w).abs() < tolerance,
                        "{isa:?}, {threads} threads, {p:?}: output {which} is {y}, not {w}, at {i}"
                    );
                }
            }
        }
    }
}

const KINDS: [CellKind; 5] = [
    CellKind::Rnn,
    CellKind::Gru { linear_before_reset: false },
    CellKind::Gru { linear_before_reset: true },
    CellKind::Lstm { input_forget: false },
    CellKind::Lstm { input_forget: true },
];
const DIRECTIONS: [Direction; 3] = [Direction::Forward, Direction::Reverse, Direction::Both];

#[test]
fn all_kinds_in_all_directions() {
    let mut r = Random(1);
    for kind in KINDS {
        for direction in DIRECTIONS {
            for [batch, time, input, hidden] in
                [[1, 1, 1, 1], [1, 4, 3, 16], [2, 3, 5, 7], [3, 5, 8, 33], [7, 2, 4, 40], [1, 3, 10, 130]]
            {
                let p = RecurrentParams::dense(kind, direction, batch, time, input, hidden);
                check(p, &Data::new(&mut r, &p));
            }
        }
    }
}

#[test]
fn states_and_weights_in_bf16() {
    let mut r = Random(11);
    for kind in KINDS {
        for direction in DIRECTIONS {
            for [batch, time, input, hidden] in
                [[1, 1, 2, 1], [1, 4, 4, 16], [2, 3, 6, 7], [3, 5, 8, 33], [7, 2, 4, 40], [1, 3, 10, 130]]
            {
                let p = RecurrentParams::dense(kind, direction, batch, time, input, hidden);
                check_bf16(p, Data::new(&mut r, &p));
            }
            let p = RecurrentParams::dense(kind, direction, 8, 5, 6, 21);
            let mut data = Data::new(&mut r, &p);
            data.lengths = Some(vec![5, 0, 3, 1, 5, 2, 4, 0]);
            check_bf16(p, data);
        }
        let p = RecurrentParams::dense(kind, Direction::Forward, 1, 3, 20, 300);
        check_bf16(p, Data::new(&mut r, &p));
    }
}

#[test]
fn inputs_that_are_not_whole_pairs_are_declined_in_bf16() {
    let p = |input: usize| RecurrentParams::dense(CellKind::Rnn, Direction::Forward, 1, 2, input, 3);
    assert!(Recurrent::of_bf16(Isa::best(), p(3)).is_none());
    assert!(Recurrent::of_bf16(Isa::best(), p(4)).is_some());
}

#[test]
fn random_sizes() {
    let mut r = Random(2);
    for i in 0..40 {
        let [batch, time, input, hidden] = [9, 6, 40, 90].map(|n| 1 + r.below(n));
        let p = RecurrentParams::dense(KINDS[i % 5], DIRECTIONS[i / 5 % 3], batch, time, input, hidden);
        check(p, &Data::new(&mut r, &p));
    }
}

#[test]
fn large_weights_are_shared_by_threads() {
    let mut r = Random(3);
    for kind in KINDS {
        for direction in [Direction::Forward, Direction::Both] {
            let p = RecurrentParams::dense(kind, direction, 1, 3, 20, 300);
            check(p, &Data::new(&mut r, &p));
        }
    }
}

#[test]
fn rows_end_at_their_own_length() {
    let mut r = Random(4);
    for kind in KINDS {
        for direction in DIRECTIONS {
            let p = RecurrentParams::dense(kind, direction, 8, 5, 6, 20);
            let mut data = Data::new(&mut r, &p);
            data.lengths = Some(vec![5, 0, 3, 1, 5, 2, 4, 0]);
            check(p, &data);
            data.lengths = Some(vec![1, 0, 3, 1, 2, 2, 0, 0]);
            check(p, &data);
        }
    }
}

#[test]
fn lengths_beyond_the_ends_count_as_the_ends() {
    let p = RecurrentParams::dense(CellKind::Rnn, Direction::Forward, 2, 3, 1, 1);
    let layer = Recurrent::new(Isa::best(), p);
    let pool = Pool::new(PoolOptions::threads(1));
    let scratch = Scratch::new(1, layer.scratch_floats()).unwrap();
    let exec = Exec::new(&pool, Isa::best(), &scratch);
    let mut packed = vec![0.0; layer.packed_floats()];
    let weights = RecurrentWeights { w: &[1.0], r: &[0.0], b: None, peepholes: None };
    layer.pack(None, &weights, &mut packed);
    let (mut y, mut workspace) = ([7.0; 6], vec![0.0; layer.workspace_floats()]);
    let lengths = Lengths::I32(&[-5, 9]);
    let inputs = RecurrentInputs { x: &[1.0; 6], h: None, c: None, lengths, attention: None };
    let outputs = RecurrentOutputs { y: Some(&mut y), ..Default::default() };
    layer.run(&exec, &packed, &inputs, outputs, &mut workspace);
    assert_eq!(y[..3], [0.0; 3]);
    assert!(y[3..].iter().all(|y| (y - 1f32.tanh()).abs() < 1e-6));
}

#[test]
fn other_functions_and_limits() {
    let mut r = Random(5);
    let hard = Act::HardSigmoid { alpha: 0.2, beta: 0.5 };
    for kind in KINDS {
        for (clip, acts) in [
            (0.3, kind.usual_acts()),
            (0.0, [hard, Act::Relu, Act::Tanh]),
            (1.0, [Act::Relu, Act::Sigmoid, hard]),
            (0.0, [Act::Tanh; 3]),
        ] {
            let p = RecurrentParams { clip, acts, ..RecurrentParams::dense(kind, Direction::Both, 3, 3, 5, 18) };
            check(p, &Data::new(&mut r, &p));
        }
    }
}

#[test]
fn peepholes_look_at_the_cell_state() {
    let mut r = Random(6);
    for kind in [CellKind::Lstm { input_forget: false }, CellKind::Lstm { input_forget: true }] {
        let p = RecurrentParams::dense(kind, Direction::Both, 2, 3, 5, 19);
        let mut data = Data::new(&mut r, &p);
        data.peepholes = Some(r.floats(2 * 3 * 19, 1.0));
        check(p, &data);
    }
}

#[test]
fn attention_weakens_the_update_gate() {
    let mut r = Random(7);
    for linear_before_reset in [false, true] {
        let kind = CellKind::Gru { linear_before_reset };
        let p = RecurrentParams::dense(kind, Direction::Forward, 3, 4, 5, 19);
        let mut data = Data::new(&mut r, &p);
        data.attention = Some(r.floats(12, 1.0));
        check(p, &data);
    }
}

#[test]
fn without_bias_and_first_states_they_are_zero() {
    let mut r = Random(8);
    for kind in KINDS {
        let p = RecurrentParams::dense(kind, Direction::Both, 2, 3, 5, 19);
        let data = Data { b: None, h: None, c: None, ..Data::new(&mut r, &p) };
        check(p, &data);
    }
}

#[test]
fn inputs_and_outputs_may_lie_time_first() {
    let mut r = Random(9);
    let (batch, time, input, hidden) = (3, 4, 5, 17);
    for x in [[input, batch * input], [time * input, input], [100, 7], [50, 3]] {
        // Outputs as [time, batch, direction, hidden].
        let p = RecurrentParams {
            x,
            y: [2 * hidden, hidden, batch * 2 * hidden],
            ..RecurrentParams::dense(KINDS[3], Direction::Both, batch, time, input, hidden)
        };
        check(p, &Data::new(&mut r, &p));
    }
}

#[test]
fn large_arguments_saturate() {
    let mut r = Random(10);
    for kind in KINDS {
        let p = RecurrentParams::dense(kind, Direction::Forward, 1, 3, 5, 19);
        let mut data = Data::new(&mut r, &p);
        data.x.iter_mut().for_each(|x| *x *= 1000.0);
        check(p, &data);
    }
}

#[test]
#[should_panic(expected = "overlap")]
fn outputs_must_not_overlap() {
    let p = RecurrentParams::dense(CellKind::Rnn, Direction::Both, 1, 2, 1, 4);
    Recurrent::new(Isa::Scalar, RecurrentParams { y: [8, 4, 4], ..p });
}
