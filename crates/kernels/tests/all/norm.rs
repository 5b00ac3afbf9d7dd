//! Normalisations against f64.

use carafe_kernels::norm::{GroupNorm, Lrn, NormKind, PartedNorm, RowNorm};
use carafe_kernels::{Exec, Isa, Pool, PoolOptions, Scratch};

fn floats(seed: u64, n: usize, around: f32) -> Vec<f32> {
    let mut s = seed;
    (0..n)
        .map(|_| {
            s ^= s << 13;
            s ^= s >> 7;
            s ^= s << 17;
            (s >> 40) as f32 / 2f32.powi(22) - 2.0 + around
        })
        .collect()
}

fn each_exec(f: impl Fn(&Exec<'_>)) {
    for isa in Isa::available() {
        for threads in [1, 3] {
            let (pool, scratch) = (Pool::new(PoolOptions::threads(threads)), Scratch::new(threads, 1 << 16).unwrap());
            f(&Exec::new(&pool, isa, &scratch));
        }
    }
}

const KINDS: [NormKind; 6] = [
    NormKind::Variance { eps: 1e-5 },
    NormKind::Deviation { eps: 1e-3 },
    NormKind::MeanOnly,
    NormKind::Rms { eps: 1e-6 },
    NormKind::L2Add { eps: 1e-3 },
    NormKind::L2Max { eps: 0.5 },
];

/// The mean that is subtracted and the factor, of the elements of one group.
fn moments(kind: NormKind, x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
    let squares = x.iter().map(|x| x * x).sum::<f64>();
    match kind {
        NormKind::Variance { eps } => (mean, 1.0 / (variance + f64::from(eps)).sqrt()),
        NormKind::Deviation { eps } => (mean, 1.0 / (variance.sqrt() + f64::from(eps))),
        NormKind::MeanOnly => (mean, 1.0),
        NormKind::Rms { eps } => (0.0, 1.0 / (squares / n + f64::from(eps)).sqrt()),
        NormKind::L2Add { eps } => (0.0, 1.0 / (squares + f64::from(eps)).sqrt()),
        NormKind::L2Max { eps } => (0.0, 1.0 / squares.max(f64::from(eps)).sqrt()),
    }
}

#[test]
fn rows_are_normalised_in_every_way() {
    for (rows, len) in [(1, 1), (7, 5), (30, 16), (3, 197), (50, 768), (2, 20_001), (0, 4)] {
        for around in [0.0, 30.0] {
            let x = floats(3, rows * len, around);
            let (gamma, beta) = (floats(4, len, 0.0), floats(5, len, 0.0));
            for kind in KINDS {
                let mut want = vec![];
                for row in x.chunks(len) {
                    let wide: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
                    let (mean, factor) = moments(kind, &wide);
                    want.extend((0..len).map(|c| (wide[c] - mean) * factor * f64::from(gamma[c]) + f64::from(beta[c])));
                }
                each_exec(|exec| {
                    let mut out = vec![0.0; x.len()];
                    RowNorm::new(kind, rows, len).run(exec, &x, Some(&gamma), Some(&beta), &mut out);
                    let bound = 3e-6;
                    for (y, w) in out.iter().zip(&want) {
                        assert!(
                            (f64::from(*y) - w).abs() <= bound * w.abs().max(1.0),
                            "{kind:?} {rows}x{len}: {y} {w}"
                        );
                    }
                });
            }
        }
    }
}

#[test]
fn rows_may_be_replaced_and_need_no_factors() {
    let x = floats(6, 21, 0.0);
    each_exec(|exec| {
        let norm = RowNorm::new(NormKind::Variance { eps: 0.0 }, 3, 7);
        let (mut out, mut data) = (vec![0.0; 21], x.clone());
        norm.run(exec, &x, None, None, &mut out);
        norm.run_in_place(exec, &mut data, None, None);
        assert_eq!(out, data);
        let mean: f32 = out[..7].iter().sum();
        assert!(mean.abs() < 1e-5);
    });
}

#[test]
fn rows_whose_parts_lie_apart_are_normalised_in_every_way() {
    let sizes = [(1, 1, 1, 1), (2, 3, 5, 7), (1, 8, 64, 49), (1, 2, 3, 20_001), (3, 40, 2, 1), (0, 2, 3, 4)];
    for (outer, parts, rows, len) in sizes {
        for around in [0.0, 30.0] {
            let x = floats(12, outer * parts * rows * len, around);
            for kind in KINDS {
                let mut want = vec![0.0; x.len()];
                for (o, r) in (0..outer).flat_map(|o| (0..rows).map(move |r| (o, r))) {
                    let at: Vec<usize> = (0..parts)
                        .flat_map(|p| (0..len).map(move |i| ((o * parts + p) * rows + r) * len + i))
                        .collect();
                    let wide: Vec<f64> = at.iter().map(|&i| f64::from(x[i])).collect();
                    let (mean, factor) = moments(kind, &wide);
                    at.iter().zip(&wide).for_each(|(&i, x)| want[i] = (x - mean) * factor);
                }
                each_exec(|exec| {
                    let mut out = vec![0.0; x.len()];
                    PartedNorm::new(kind, outer, parts, rows, len).run(exec, &x, &mut out);
                    for (y, w) in out.iter().zip(&want) {
                        assert!((f64::from(*y) - w).abs() <= 3e-6 * w.abs().max(1.0), "{kind:?} {x:?}: {y} {w}");
                    }
                });
            }
        }
    }
}

#[test]
fn groups_of_channels_share_their_statistics() {
    for (batch, pixels, channels, groups) in [
        (1, 1, 1, 1),
        (2, 50, 12, 3),
        (1, 1000, 64, 32),
        (1, 3137, 70, 70),
        (2, 33, 6, 1),
        (3, 7, 200, 200),
        (1, 9, 16, 2),
    ] {
        for around in [0.0, 100.0] {
            let x = floats(7, batch * pixels * channels, around);
            let (gamma, beta) = (floats(8, channels, 0.0), floats(9, channels, 0.0));
            let width = channels / groups;
            for kind in &KINDS[..3] {
                let mut want = vec![0.0; x.len()];
                for (b, g) in (0..batch).flat_map(|b| (0..groups).map(move |g| (b, g))) {
                    let at: Vec<usize> = (0..pixels)
                        .flat_map(|p| (0..width).map(move |c| (b * pixels + p) * channels + g * width + c))
                        .collect();
                    let wide: Vec<f64> = at.iter().map(|&i| f64::from(x[i])).collect();
                    let (mean, factor) = moments(*kind, &wide);
                    for (&i, x) in at.iter().zip(&wide) {
                        let c = i % channels;
                        want[i] = (x - mean) * factor * f64::from(gamma[c]) + f64::from(beta[c]);
                    }
                }
                each_exec(|exec| {
                    let norm = GroupNorm::new(*kind, batch, pixels, channels, groups);
                    assert!(norm.scratch_floats(exec.threads()) <= exec.scratch.floats());
                    let mut out = vec![0.0; x.len()];
                    norm.run(exec, &x, Some(&gamma), Some(&beta), &mut out);
                    let bound = 3e-6;
                    for (y, w) in out.iter().zip(&want) {
                        assert!(
                            (f64::from(*y) - w).abs() <= bound * w.abs().max(1.0),
                            "{kind:?} {batch} {pixels} {channels} {groups}: {y} {w}"
                        );
                    }
                });
            }
        }
    }
}

#[test]
fn a_window_of_channels_divides() {
    for (rows, channels, size, beta) in
        [(3, 5, 5, 0.75), (2, 64, 5, 0.75), (4, 1100, 4, 0.5), (2, 33, 1, 1.3), (1, 600, 513, 0.75)]
    {
        let x = floats(10, rows * channels, 0.0);
        let (alpha, bias) = (0.3f32, 2.0f32);
        let reach = (size - 1) / 2;
        let want = |i: usize| {
            let (row, c) = (i / channels * channels, i % channels);
            let near = c.saturating_sub(reach)..channels.min(c + reach + 1);
            let sum: f64 = near.map(|c| f64::from(x[row + c]).powi(2)).sum();
            f64::from(x[i]) / (f64::from(bias) + f64::from(alpha) / size as f64 * sum).powf(f64::from(beta))
        };
        each_exec(|exec| {
            let mut out = vec![0.0; x.len()];
            Lrn::new(rows, channels, size, alpha, beta, bias).run(exec, &x, &mut out);
            for (i, &y) in out.iter().enumerate() {
                assert!(
                    (f64::from(y) - want(i)).abs() <= 2e-6 * want(i).abs() + 1e-9,
                    "{channels} {size}: {y} {}",
                    want(i)
                );
            }
        });
    }
}
