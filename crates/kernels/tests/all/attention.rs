//! Attention against a plain loop in f64, at every level and with several threads.

use carafe_kernels::{
    Attention, AttentionInputs, AttentionParams, Exec, Halves, Isa, Mask, Pool, PoolOptions, Scratch,
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
    fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0).collect()
    }
}

fn naive(p: &AttentionParams, x: &AttentionInputs, out: &mut [f32]) {
    let shared = p.heads / p.kv_heads;
    for b in 0..p.batch {
        for h in 0..p.heads {
            for i in 0..p.q_len {
                let q = &x.q[b * p.q[0] + h * p.q[1] + i * p.q[2]..];
                let score = |j: usize| {
                    if p.causal.is_some_and(|offset| j as isize > i as isize + offset) {
                        return f64::NEG_INFINITY;
                    }
                    let k = &x.k[b * p.k[0] + h / shared * p.k[1] + j * p.k[2]..];
                    let dot: f64 = (0..p.head_size).map(|d| q[d] as f64 * k[d] as f64).sum();
                    let at = b * p.mask[0] + h * p.mask[1] + i * p.mask[2] + j * p.mask[3];
                    let plus = match x.mask {
                        Mask::None => 0.0,
                        Mask::Add(m) => m[at] as f64,
                        Mask::Keep(m) => [f64::NEG_INFINITY, 0.0][usize::from(m[at] != 0)],
                    };
                    dot * p.scale as f64 + plus
                };
                let sink = x.sink.map(|s| s[b * p.sink[0] + h * p.sink[1] + i * p.sink[2]] as f64);
                let scores: Vec<f64> = (0..p.kv_len).map(score).collect();
                let largest = scores.iter().copied().chain(sink).fold(f64::NEG_INFINITY, f64::max);
                let shares: Vec<f64> = scores.iter().map(|s| (s - largest).exp()).collect();
                let total = shares.iter().sum::<f64>() + sink.map_or(0.0, |s| (s - largest).exp());
                for d in 0..p.value_size {
                    let v = |j: usize| x.v[b * p.v[0] + h / shared * p.v[1] + j * p.v[2] + d] as f64;
                    let y: f64 = shares.iter().enumerate().map(|(j, s)| s / total * v(j)).sum();
                    out[b * p.out[0] + h * p.out[1] + i * p.out[2] + d] = y as f32;
                }
            }
        }
    }
}

fn check(p: AttentionParams, x: &AttentionInputs, out_len: usize) {
    let mut wanted = vec![7.0; out_len];
    naive(&p, x, &mut wanted);
    let attention = Attention::new(p);
    for threads in [1, 3] {
        let pool = Pool::new(PoolOptions::threads(threads));
        let scratch = Scratch::new(threads, attention.scratch_floats()).unwrap();
        for isa in Isa::available() {
            let mut out = vec![7.0; out_len];
            attention.run(&Exec::new(&pool, isa, &scratch), x, &mut out);
            for (i, (y, w)) in out.iter().zip(&wanted).enumerate() {
                let same = (y - w).abs() < 2e-5 || (y.is_nan() && w.is_nan());
                assert!(same, "{isa:?}, {threads} threads, {p:?}: {y} is not {w} at {i}");
            }
        }
    }
}

/// The same in numbers of 16 bits: results are rounded, those of bf16 after their shares were, and products are exact.
fn check_halves(p: AttentionParams, x: &AttentionInputs, out_len: usize, halves: Halves) {
    let floats = |x: &[u16]| x.iter().map(|x| halves.wide(*x)).collect::<Vec<_>>();
    let [q, k, v] = [x.q, x.k, x.v].map(|x| halves.all_bits(x));
    let bound = if halves == Halves::Bf16 { 6e-3 } else { 6e-4 };
    let mut wanted = vec![7.0; out_len];
    naive(
        &p,
        &AttentionInputs { q: &floats(&q), k: &floats(&k), v: &floats(&v), mask: x.mask, sink: x.sink },
        &mut wanted,
    );
    let attention = Attention::new(p);
    for threads in [1, 3] {
        let pool = Pool::new(PoolOptions::threads(threads));
        let scratch = Scratch::new(threads, attention.scratch_floats()).unwrap();
        for isa in Isa::tested() {
            let mut out = halves.all_bits(&vec![7.0; out_len]);
            let inputs = AttentionInputs { q: &q[..], k: &k[..], v: &v[..], mask: x.mask, sink: x.sink };
            attention.run_halves(&Exec::new(&pool, isa, &scratch), halves, &inputs, &mut out);
            for (i, (y, w)) in floats(&out).iter().zip(&wanted).enumerate() {
                let same = (y - w).abs() <= bound * w.abs().max(0.5) || (y.is_nan() && w.is_nan());
                assert!(same, "{halves:?} {isa:?}, {threads} threads, {p:?}: {y} is not {w} at {i}");
            }
        }
    }
}

fn dense(r: &mut Random, p: AttentionParams, mask: Mask, sink: Option<&[f32]>) {
    let kv = p.batch * p.kv_heads * p.kv_len;
    let q = r.floats(p.batch * p.heads * p.q_len * p.head_size);
    let (k, v) = (r.floats(kv * p.head_size), r.floats(kv * p.value_size));
    let out = p.batch * p.heads * p.q_len * p.value_size;
    check(p, &AttentionInputs { q: &q, k: &k, v: &v, mask, sink }, out);
    for halves in [Halves::Bf16, Halves::F16] {
        check_halves(p, &AttentionInputs { q: &q, k: &k, v: &v, mask, sink }, out, halves);
    }
}

const SHAPES: [[usize; 6]; 14] = [
    [1, 1, 1, 1, 1, 1],
    [1, 2, 3, 5, 7, 4],
    [2, 3, 16, 16, 8, 8],
    [1, 2, 17, 31, 16, 33],
    [1, 2, 49, 49, 32, 32],
    [1, 1, 63, 70, 40, 24],
    [1, 1, 65, 300, 64, 64],
    [2, 1, 1, 600, 64, 80],
    [1, 3, 2, 257, 20, 65],
    [1, 1, 150, 513, 13, 17],
    [1, 1, 5, 4, 128, 128],
    [3, 2, 25, 1, 3, 2],
    [1, 1, 33, 29, 1, 1],
    [1, 1, 300, 7, 9, 70],
];

#[test]
fn dense_inputs_of_all_sizes() {
    let mut r = Random(1);
    for [b, h, q, kv, d, dv] in SHAPES {
        dense(&mut r, AttentionParams::dense(b, h, q, kv, d, dv), Mask::None, None);
    }
}

#[test]
fn causal_rows_see_keys_up_to_their_own() {
    let mut r = Random(2);
    for [b, h, q, kv, d, dv] in SHAPES {
        for causal in [0, kv as isize - q as isize, -3, 2] {
            let p = AttentionParams { causal: Some(causal), ..AttentionParams::dense(b, h, q, kv, d, dv) };
            dense(&mut r, p, Mask::None, None);
        }
    }
}

#[test]
fn masks_are_added_however_they_repeat() {
    let mut r = Random(3);
    for [b, h, q, kv, d, dv] in SHAPES {
        let full = [h * q * kv, q * kv, kv, 1];
        for keep in [[1, 1, 1, 1], [1, 0, 0, 1], [0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 0]] {
            let mask = std::array::from_fn(|i| full[i] * keep[i]);
            let p = AttentionParams { mask, ..AttentionParams::dense(b, h, q, kv, d, dv) };
            let mut add = r.floats(b * h * q * kv);
            // Most stay visible, some are hidden for good.
            add.iter_mut().step_by(3).for_each(|x| *x = f32::NEG_INFINITY);
            dense(&mut r, p, Mask::Add(&add), None);
            let bools: Vec<u8> = add.iter().map(|x| u8::from(*x > -0.5)).collect();
            dense(&mut r, p, Mask::Keep(&bools), None);
        }
    }
}

#[test]
fn keys_may_lie_apart_in_the_mask() {
    let mut r = Random(4);
    let p = AttentionParams { mask: [0, 0, 1, 40], ..AttentionParams::dense(2, 2, 40, 50, 8, 8) };
    let add = r.floats(40 * 50);
    dense(&mut r, p, Mask::Add(&add), None);
}

#[test]
fn a_sink_takes_its_share() {
    let mut r = Random(5);
    for [b, h, q, kv, d, dv] in SHAPES {
        let mut sink = r.floats(h * q);
        sink[0] = 5.0;
        if let Some(s) = sink.get_mut(2) {
            *s = f32::NEG_INFINITY;
        }
        let p = AttentionParams { sink: [0, q, 1], ..AttentionParams::dense(b, h, q, kv, d, dv) };
        dense(&mut r, p, Mask::None, Some(&sink));
    }
}

#[test]
fn query_heads_share_heads_of_keys() {
    let mut r = Random(6);
    for (heads, kv_heads, q, kv) in [(8, 2, 1, 300), (6, 3, 20, 40), (4, 1, 3, 9), (40, 1, 1, 33), (12, 4, 18, 600)] {
        let dense_p = AttentionParams::dense(2, heads, q, kv, 24, 16);
        let p = AttentionParams {
            kv_heads,
            k: [kv_heads * kv * 24, kv * 24, 24],
            v: [kv_heads * kv * 16, kv * 16, 16],
            causal: Some(kv as isize - q as isize),
            ..dense_p
        };
        dense(&mut r, p, Mask::None, None);
    }
}

#[test]
fn parts_of_one_tensor_need_no_transpose() {
    let mut r = Random(7);
    let (batch, len, heads, d) = (2, 37, 3, 16);
    let all = r.floats(batch * len * 3 * heads * d);
    let strides = [len * 3 * heads * d, d, 3 * heads * d];
    let p = AttentionParams {
        q: strides,
        k: strides,
        v: strides,
        out: [len * heads * d, d, heads * d],
        ..AttentionParams::dense(batch, heads, len, len, d, d)
    };
    let x = AttentionInputs { q: &all, k: &all[heads * d..], v: &all[2 * heads * d..], mask: Mask::None, sink: None };
    check(p, &x, batch * len * heads * d);
    check_halves(p, &x, batch * len * heads * d, Halves::Bf16);
}

#[test]
fn random_shapes() {
    let mut r = Random(8);
    for _ in 0..60 {
        let [b, h, q, kv, d, dv] = [2, 3, 90, 90, 70, 70].map(|n| 1 + r.below(n));
        dense(&mut r, AttentionParams::dense(b, h, q, kv, d, dv), Mask::None, None);
    }
}

#[test]
fn a_row_that_sees_no_key_is_nan_and_no_keys_at_all_give_zeros() {
    let mut r = Random(9);
    for q in [1, 20] {
        let p = AttentionParams { mask: [0, 0, 1, 0], ..AttentionParams::dense(1, 1, q, 300, 8, 8) };
        let mut mask = vec![0.0; q];
        mask[q / 2] = f32::NEG_INFINITY;
        dense(&mut r, p, Mask::Add(&mask), None);
        dense(&mut r, AttentionParams::dense(1, 2, q, 0, 8, 8), Mask::None, None);
    }
}

#[test]
fn a_nan_score_spoils_its_row_alone() {
    let mut r = Random(10);
    for q in [2, 20] {
        let p = AttentionParams::dense(1, 1, q, 30, 8, 8);
        let (mut queries, k, v) = (r.floats(q * 8), r.floats(30 * 8), r.floats(30 * 8));
        queries[8] = f32::NAN;
        let inputs = AttentionInputs { q: &queries[..], k: &k[..], v: &v[..], mask: Mask::None, sink: None };
        check(p, &inputs, q * 8);
        check_halves(p, &inputs, q * 8, Halves::Bf16);
    }
}

#[test]
fn hidden_blocks_before_visible_ones_do_not_spoil_them() {
    let mut r = Random(11);
    for q in [1, 20] {
        let mut mask = vec![f32::NEG_INFINITY; 600];
        mask[590..].fill(0.0);
        let p = AttentionParams { mask: [0, 0, 0, 1], ..AttentionParams::dense(1, 1, q, 600, 8, 8) };
        dense(&mut r, p, Mask::Add(&mask), None);
    }
}

#[test]
#[should_panic(expected = "overlap")]
fn outputs_must_not_overlap() {
    Attention::new(AttentionParams { out: [0, 0, 8], ..AttentionParams::dense(1, 2, 4, 4, 8, 8) });
}

#[test]
#[should_panic(expected = "key has 8 elements")]
fn short_inputs_are_refused() {
    let p = AttentionParams::dense(1, 1, 1, 2, 8, 8);
    let x = [0.0; 16];
    let pool = Pool::new(PoolOptions::threads(1));
    let scratch = Scratch::new(1, Attention::new(p).scratch_floats()).unwrap();
    let inputs = AttentionInputs { q: &x, k: &x[..8], v: &x, mask: Mask::None, sink: None };
    Attention::new(p).run(&Exec::new(&pool, Isa::best(), &scratch), &inputs, &mut [0.0; 8]);
}
