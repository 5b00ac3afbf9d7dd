//! Sums and bags of rows, and rotations, against plain loops.

use carafe_kernels::{
    Bags, EmbeddingBag, EmbeddingNorm, EmbeddingTerm, Exec, Ids, Isa, Pool, PoolOptions, Rope, RopeForm, RopeParams,
    Scratch, embedding_sum,
};

fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut state = seed * 7919 + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

fn everywhere(test: impl Fn(&Exec)) {
    for threads in [1, 3] {
        let pool = Pool::new(PoolOptions::threads(threads));
        let scratch = Scratch::new(threads, 0).unwrap();
        Isa::available().for_each(|isa| test(&Exec::new(&pool, isa, &scratch)));
    }
}

fn near(found: &[f32], wanted: &[f32]) {
    assert_eq!(found.len(), wanted.len());
    for (i, (y, w)) in found.iter().zip(wanted).enumerate() {
        assert!((y - w).abs() < 1e-5, "{y} is not {w} at {i}");
    }
}

#[test]
fn rows_of_three_tables_are_added_and_normalized() {
    for (len, width) in [(1, 1), (5, 7), (40, 96), (128, 768)] {
        let (words, positions, types) = (numbers(30 * width, 1), numbers(len * width, 2), numbers(2 * width, 3));
        let (gamma, beta) = (numbers(width, 4), numbers(width, 5));
        let ids: Vec<i64> = (0..2 * len).map(|i| (i * 7 % 30) as i64).collect();
        let kinds: Vec<i32> = (0..2 * len).map(|i| (i / 3 % 2) as i32).collect();
        let mut wanted = vec![0.0; 2 * len * width];
        for (t, row) in wanted.chunks_exact_mut(width).enumerate() {
            let at = |table: &[f32], r: usize, i: usize| table[r * width + i] as f64;
            let sum: Vec<f64> = (0..width)
                .map(|i| at(&words, ids[t] as usize, i) + at(&positions, t % len, i) + at(&types, kinds[t] as usize, i))
                .collect();
            let mean = sum.iter().sum::<f64>() / width as f64;
            let variance = sum.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
            for i in 0..width {
                let x = (sum[i] - mean) / (variance + 1e-5).sqrt();
                row[i] = (x * gamma[i] as f64 + beta[i] as f64) as f32;
            }
        }
        everywhere(|exec| {
            let terms = [
                EmbeddingTerm { table: &words, ids: Some(Ids::I64(&ids)) },
                EmbeddingTerm { table: &positions, ids: None },
                EmbeddingTerm { table: &types, ids: Some(Ids::I32(&kinds)) },
            ];
            let norm = EmbeddingNorm { gamma: Some(&gamma), beta: Some(&beta), epsilon: 1e-5 };
            let mut out = vec![7.0; 2 * len * width];
            embedding_sum(exec, width, &terms, Some(norm), &mut out);
            near(&out, &wanted);
        });
    }
}

#[test]
fn negative_ids_count_from_the_end_and_others_outside_give_zeros() {
    everywhere(|exec| {
        let mut out = [7.0; 5];
        let ids = Ids::I32(&[-1, 2, 3, -4, 0]);
        embedding_sum(exec, 1, &[EmbeddingTerm { table: &[1.0, 2.0, 3.0], ids: Some(ids) }], None, &mut out);
        assert_eq!(out, [3.0, 3.0, 0.0, 0.0, 1.0]);
    });
}

#[test]
fn bags_are_parts_of_a_list() {
    let table = [1.0, 10.0, 2.0, 20.0, 3.0, 30.0];
    let bag = EmbeddingBag {
        width: 2,
        mean: false,
        table: &table,
        ids: Ids::I64(&[0, 1, 2, 2]),
        bags: Bags::Size(2),
        weights: None,
        default: None,
    };
    everywhere(|exec| {
        let run = |bag: EmbeddingBag, bags: usize| {
            let mut out = vec![7.0; 2 * bags];
            bag.run(exec, &mut out);
            out
        };
        assert_eq!(run(bag, 2), [3.0, 30.0, 6.0, 60.0]);
        assert_eq!(run(EmbeddingBag { mean: true, ..bag }, 2), [1.5, 15.0, 3.0, 30.0]);
        let offsets = EmbeddingBag { bags: Bags::Offsets(Ids::I32(&[0, 3, 3])), default: Some(1), ..bag };
        assert_eq!(run(offsets, 3), [6.0, 60.0, 2.0, 20.0, 3.0, 30.0]);
        let segments = EmbeddingBag { bags: Bags::Segments(Ids::I64(&[1, 1, 3, 9])), ..bag };
        assert_eq!(run(segments, 4), [0.0, 0.0, 3.0, 30.0, 0.0, 0.0, 3.0, 30.0]);
        let weights = EmbeddingBag { weights: Some(&[1.0, 0.5, 2.0, 0.0]), ..bag };
        assert_eq!(run(weights, 2), [2.0, 20.0, 6.0, 60.0]);
    });
}

#[test]
fn ids_outside_can_be_found() {
    assert_eq!(Ids::I32(&[0, 2, 3]).first_outside(3), Some(3));
    assert_eq!(Ids::I64(&[-1]).first_outside(3), Some(-1));
    assert_eq!(Ids::I64(&[0, 2]).first_outside(3), None);
}

fn rotate(p: &RopeParams, x: &[f32], cos: &[f32], sin: &[f32], out: &mut [f32]) {
    let half = p.rotated / 2;
    for b in 0..p.batch {
        for h in 0..p.heads {
            for t in 0..p.len {
                let x = &x[b * p.x[0] + h * p.x[1] + t * p.x[2]..];
                let y = &mut out[b * p.out[0] + h * p.out[1] + t * p.out[2]..];
                let table = b * p.table[0] + t * p.table[1];
                for pair in 0..half {
                    let (i, j) = match p.form {
                        RopeForm::Half => (pair, pair + half),
                        RopeForm::Interleaved => (2 * pair, 2 * pair + 1),
                    };
                    let of = |at: usize| table + if p.full_table { at } else { pair };
                    y[i] = x[i] * cos[of(i)] - x[j] * sin[of(i)];
                    y[j] = x[j] * cos[of(j)] + x[i] * sin[of(j)];
                }
                y[p.rotated..p.head_size].copy_from_slice(&x[p.rotated..p.head_size]);
            }
        }
    }
}

#[test]
fn pairs_are_turned_in_both_forms() {
    for form in [RopeForm::Half, RopeForm::Interleaved] {
        for (len, heads, head_size, rotated) in [(1, 1, 2, 2), (3, 2, 64, 64), (40, 4, 80, 34), (7, 3, 50, 46)] {
            for full_table in [false, true] {
                let (batch, width) = (2, if full_table { rotated } else { rotated / 2 });
                let p = RopeParams {
                    batch,
                    heads,
                    len,
                    head_size,
                    rotated,
                    form,
                    x: [len * heads * head_size, head_size, heads * head_size],
                    out: [heads * len * head_size, len * head_size, head_size],
                    table: [0, width],
                    full_table,
                };
                let x = numbers(batch * len * heads * head_size, 1);
                let (cos, sin) = (numbers(len * width, 2), numbers(len * width, 3));
                let mut wanted = vec![0.0; x.len()];
                rotate(&p, &x, &cos, &sin, &mut wanted);
                let in_place = RopeParams { x: p.out, ..p };
                let mut wanted_in_place = vec![0.0; x.len()];
                rotate(&in_place, &x, &cos, &sin, &mut wanted_in_place);
                everywhere(|exec| {
                    let mut out = vec![7.0; x.len()];
                    Rope::new(p).run(exec, &x, &cos, &sin, &mut out);
                    near(&out, &wanted);
                    out.copy_from_slice(&x);
                    Rope::new(p).run_in_place(exec, &cos, &sin, &mut out);
                    near(&out, &wanted_in_place);
                });
            }
        }
    }
}
