//! Sums of rows, and rotations, against plain loops.

use carafe_kernels::movement::Indices;
use carafe_kernels::{EmbeddingTerm, Exec, Isa, Pool, PoolOptions, Rope, RopeForm, RopeParams, Scratch, embedding_sum};

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
fn rows_of_three_tables_are_added() {
    for (len, width) in [(1, 1), (5, 7), (40, 96), (128, 768)] {
        let (words, positions, types) = (numbers(30 * width, 1), numbers(len * width, 2), numbers(2 * width, 3));
        let ids: Vec<i64> = (0..2 * len).map(|i| (i * 7 % 30) as i64).collect();
        let kinds: Vec<i32> = (0..2 * len).map(|i| (i / 3 % 2) as i32).collect();
        let mut wanted = vec![0.0; 2 * len * width];
        for (t, row) in wanted.chunks_exact_mut(width).enumerate() {
            let at = |table: &[f32], r: usize, i: usize| table[r * width + i] as f64;
            for (i, y) in row.iter_mut().enumerate() {
                let sum = at(&words, ids[t] as usize, i) + at(&positions, t % len, i);
                *y = (sum + at(&types, kinds[t] as usize, i)) as f32;
            }
        }
        everywhere(|exec| {
            let terms = [
                EmbeddingTerm { table: &words, ids: Some(Indices::I64(&ids)) },
                EmbeddingTerm { table: &positions, ids: None },
                EmbeddingTerm { table: &types, ids: Some(Indices::I32(&kinds)) },
            ];
            let mut out = vec![7.0; 2 * len * width];
            embedding_sum(exec, width, &terms, &mut out);
            near(&out, &wanted);
        });
    }
}

#[test]
fn negative_ids_count_from_the_end_and_others_outside_give_zeros() {
    everywhere(|exec| {
        let mut out = [7.0; 5];
        let ids = Indices::I32(&[-1, 2, 3, -4, 0]);
        embedding_sum(exec, 1, &[EmbeddingTerm { table: &[1.0, 2.0, 3.0], ids: Some(ids) }], &mut out);
        assert_eq!(out, [3.0, 3.0, 0.0, 0.0, 1.0]);
    });
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
