//! Softmax against f64.

use carafe_kernels::softmax::{RowMask, Softmax, softmax_row};
use carafe_kernels::{Exec, Isa, Pool, PoolOptions, Scratch};

fn floats(seed: u64, n: usize) -> Vec<f32> {
    let mut s = seed;
    (0..n)
        .map(|_| {
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
            (s >> 40) as f32 / 2f32.powi(20) - 8.0
        })
        .collect()
}

fn each_exec(f: impl Fn(&Exec<'_>)) {
    for isa in Isa::available() {
        for threads in [1, 3] {
            let (pool, scratch) = (Pool::new(PoolOptions::threads(threads)), Scratch::new(threads, 0).unwrap());
            f(&Exec::new(&pool, isa, &scratch));
        }
    }
}

fn naive(x: &[f32], (outer, len, inner): (usize, usize, usize), log: bool) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    for (o, i) in (0..outer).flat_map(|o| (0..inner).map(move |i| (o, i))) {
        let at = |k: usize| (o * len + k) * inner + i;
        let max = (0..len).map(|k| f64::from(x[at(k)])).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = (0..len).map(|k| (f64::from(x[at(k)]) - max).exp()).sum();
        for k in 0..len {
            let t = f64::from(x[at(k)]) - max;
            out[at(k)] = if log { t - sum.ln() } else { t.exp() / sum } as f32;
        }
    }
    out
}

fn assert_close(found: &[f32], want: &[f32], what: &str) {
    for (i, (&y, &w)) in found.iter().zip(want).enumerate() {
        let fine = (y.is_nan() && w.is_nan()) || (y - w).abs() <= 1e-6 * w.abs() + 1e-30;
        assert!(fine, "{what} at {i}: {y} not {w}");
    }
}

#[test]
fn every_axis_and_length_is_normalised() {
    let shapes = [
        (1, 1, 1),
        (5, 3, 1),
        (100, 16, 1),
        (7, 17, 1),
        (33, 128, 1),
        (20, 197, 1),
        (3, 1000, 1),
        (1, 40_000, 1),
        (2, 3, 5),
        (3, 16, 300),
        (1, 21, 257),
        (2, 4, 1000),
        (0, 3, 1),
        (3, 0, 2),
    ];
    for shape in shapes {
        let x = floats(9, shape.0 * shape.1 * shape.2);
        for log in [false, true] {
            let want = naive(&x, shape, log);
            let softmax = Softmax::new(shape.0, shape.1, shape.2).log(log);
            each_exec(|exec| {
                let mut out = vec![f32::NAN; x.len()];
                softmax.run(exec, &x, &mut out);
                let fine = |y: &[f32]| {
                    // Logarithms near 0 lose what the subtraction cancels.
                    let close = |(y, w): (&f32, &f32)| (y - w).abs() <= 2e-6 * w.abs().max(1.0);
                    if log {
                        assert!(y.iter().zip(&want).all(close), "log {shape:?}")
                    } else {
                        assert_close(y, &want, &format!("{shape:?}"))
                    }
                };
                fine(&out);
                let mut data = x.clone();
                softmax.run_in_place(exec, &mut data, None);
                fine(&data);
            });
        }
    }
}

#[test]
fn numbers_are_scaled_and_masked_first() {
    let (b, h, q, k) = (2, 3, 4, 21);
    let x = floats(4, b * h * q * k);
    let masks = floats(5, b * q * k);
    for (outer_step, inner_step) in [(q * k, k), (k, 0), (0, k), (0, 0)] {
        let mask = RowMask { data: &masks, outer_rows: h * q, outer_step, inner_rows: q, inner_step };
        let row_of = |r: usize| r / (h * q) * outer_step + r % q * inner_step;
        for scale in [0.125, -2.0] {
            let moved: Vec<f32> =
                x.iter().enumerate().map(|(i, &x)| x * scale + masks[row_of(i / k) + i % k]).collect();
            let want = naive(&moved, (b * h * q, k, 1), false);
            each_exec(|exec| {
                let mut out = vec![0.0; x.len()];
                Softmax::new(b * h * q, k, 1).scale(scale).run_masked(exec, &x, Some(mask), &mut out);
                for (y, w) in out.iter().zip(&want) {
                    assert!((y - w).abs() < 2e-6 * w.abs() + 1e-8, "{y} {w}");
                }
            });
        }
    }
}

#[test]
fn infinities_and_nan_are_as_in_the_formula() {
    let inf = f32::INFINITY;
    let rows = [[1.0, -inf, 2.0], [-inf, -inf, -inf], [inf, 0.0, 1.0], [f32::NAN, 0.0, 1.0], [1e30, -1e30, 1e30]];
    let x = rows.concat();
    for log in [false, true] {
        let want = naive(&x, (5, 3, 1), log);
        each_exec(|exec| {
            let mut out = vec![0.0; 15];
            Softmax::new(5, 3, 1).log(log).run(exec, &x, &mut out);
            for (i, (y, w)) in out.iter().zip(&want).enumerate() {
                assert!(y == w || (y.is_nan() && w.is_nan()) || (y - w).abs() < 1e-6, "{log} {i}: {y} {w}");
            }
        });
    }
}

#[test]
fn a_single_row_is_replaced() {
    for isa in Isa::available() {
        let x = floats(2, 37);
        let mut y = x.clone();
        softmax_row(isa, &mut y, 1.0, None);
        assert_close(&y, &naive(&x, (1, 37, 1), false), "row");
    }
}

#[test]
fn lines_that_no_vector_divides_are_whole_and_leave_their_neighbours_alone() {
    for len in 1..=130 {
        let x = floats(len as u64, 5 * len);
        let want = naive(&x, (5, len, 1), false);
        each_exec(|exec| {
            let mut data = [vec![7.0; 16], x.clone(), vec![7.0; 16]].concat();
            Softmax::new(5, len, 1).run_in_place(exec, &mut data[16..16 + 5 * len], None);
            assert_close(&data[16..16 + 5 * len], &want, &format!("{len}"));
            assert!(data[..16].iter().chain(&data[16 + 5 * len..]).all(|x| *x == 7.0), "{len}");
        });
    }
}
