//! Reductions against plain loops in f64.

use carafe_kernels::reduce::{ArgReduce, Extreme, IntegerReduction, Reduce, Reduction, reduce_bools, reduce_integers};
use carafe_kernels::{Exec, Isa, Pool, PoolOptions, Scratch};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }
    fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| (self.next() >> 40) as f32 / 2f32.powi(22) - 1.0).collect()
    }
}

fn each_exec(f: impl Fn(&Exec<'_>)) {
    for isa in Isa::available() {
        for threads in [1, 3] {
            let (pool, scratch) = (Pool::new(PoolOptions::threads(threads)), Scratch::new(threads, 0).unwrap());
            f(&Exec::new(&pool, isa, &scratch));
        }
    }
}

/// The position in the output of every element.
fn positions(dims: &[usize], axes: &[usize]) -> (Vec<usize>, usize) {
    let kept: Vec<usize> = (0..dims.len()).map(|a| if axes.contains(&a) { 1 } else { dims[a] }).collect();
    let total: usize = dims.iter().product();
    let at = (0..total).map(|i| {
        let (mut rest, mut at, mut step) = (i, 0, 1);
        for a in (0..dims.len()).rev() {
            if kept[a] > 1 {
                at += rest % dims[a] * step;
            }
            step *= kept[a];
            rest /= dims[a];
        }
        at
    });
    (at.collect(), kept.iter().product())
}

const OPS: [Reduction; 8] = [
    Reduction::Sum,
    Reduction::Mean,
    Reduction::Prod,
    Reduction::Max,
    Reduction::Min,
    Reduction::L1,
    Reduction::L2,
    Reduction::SumSquare,
];

fn naive(op: Reduction, dims: &[usize], axes: &[usize], x: &[f32]) -> Vec<(f64, f64)> {
    let (positions, n) = positions(dims, axes);
    let first = match op {
        Reduction::Prod => 1.0,
        Reduction::Max => f64::NEG_INFINITY,
        Reduction::Min => f64::INFINITY,
        _ => 0.0,
    };
    let mut out = vec![(first, 0.0, 0); n];
    for (&x, &at) in x.iter().zip(&positions) {
        let (a, x) = (&mut out[at], f64::from(x));
        a.0 = match op {
            Reduction::Sum | Reduction::Mean => a.0 + x,
            Reduction::Prod => a.0 * x,
            Reduction::Max => a.0.max(x),
            Reduction::Min => a.0.min(x),
            Reduction::L1 => a.0 + x.abs(),
            Reduction::L2 | Reduction::SumSquare => a.0 + x * x,
        };
        a.1 += x.abs();
        a.2 += 1;
    }
    out.into_iter()
        .map(|(value, size, n)| match op {
            Reduction::Mean if n == 0 => (0.0, 1.0),
            Reduction::Mean => (value / f64::from(n), size / f64::from(n)),
            Reduction::L2 => (value.sqrt(), value.sqrt()),
            Reduction::Sum => (value, size),
            _ => (value, value.abs()),
        })
        .collect()
}

fn check(dims: &[usize], axes: &[usize], x: &[f32]) {
    for op in OPS {
        let want = naive(op, dims, axes, x);
        let reduce = Reduce::new(op, dims, axes);
        each_exec(|exec| {
            let mut out = vec![f32::NAN; reduce.out_len()];
            reduce.run(exec, x, &mut out);
            assert_eq!(out.len(), want.len());
            for (&y, &(w, size)) in out.iter().zip(&want) {
                let fine = f64::from(y) == w || (f64::from(y) - w).abs() <= 1e-6 * size + 1e-37;
                assert!(fine, "{op:?} {dims:?} over {axes:?}: {y} not {w}");
            }
        });
    }
}

#[test]
fn any_axes_are_folded() {
    let mut random = Random(11);
    let sizes = [1, 2, 3, 5, 7, 16, 33, 130];
    for _ in 0..50 {
        let rank = random.below(5);
        let dims: Vec<usize> = (0..rank).map(|_| sizes[random.below(if rank > 3 { 5 } else { 8 })]).collect();
        let axes: Vec<usize> = (0..rank).filter(|_| random.below(2) == 0).collect();
        let x = random.floats(dims.iter().product());
        check(&dims, &axes, &x);
    }
}

#[test]
fn few_neighbours_are_folded() {
    let mut r = Random(11);
    for len in [2, 3, 4] {
        for outer in [1, 7, 9000] {
            check(&[outer, len], &[1], &r.floats(outer * len));
        }
    }
}

#[test]
fn large_arrays_are_shared_by_threads() {
    let mut random = Random(12);
    for (dims, axes) in [
        (vec![100_003], vec![0]),
        (vec![3, 40_001], vec![1]),
        (vec![5000, 17], vec![0]),
        (vec![2, 3137, 64], vec![1]),
        (vec![300, 7, 41], vec![0, 2]),
        (vec![1000, 128], vec![1]),
    ] {
        let x = random.floats(dims.iter().product());
        check(&dims, &axes, &x);
    }
}

#[test]
fn nothing_at_all_gives_the_first_value() {
    check(&[3, 0], &[1], &[]);
    check(&[0, 3], &[1], &[]);
    check(&[0], &[0], &[]);
}

#[test]
fn sums_that_leave_f32_come_back() {
    let x = [3e38f32, 3e38, -3e38, 1e30, 1e30, 0.0];
    each_exec(|exec| {
        let run = |op, x: &[f32]| {
            let mut out = [0.0];
            Reduce::new(op, &[x.len()], &[0]).run(exec, x, &mut out);
            out[0]
        };
        assert_eq!(run(Reduction::Mean, &[3e38, 3e38]), 3e38);
        assert_eq!(run(Reduction::Sum, &x[..3]), 3e38);
        assert_eq!(run(Reduction::L2, &x[4..]), 1e30);
        assert!(run(Reduction::Sum, &[f32::INFINITY, f32::NEG_INFINITY]).is_nan());
    });
}

#[test]
fn nan_never_wins_an_extreme() {
    let x = [f32::NAN, 3.0, -1.0, f32::NAN, f32::NAN, f32::NAN];
    each_exec(|exec| {
        for (op, want) in [(Reduction::Max, [3.0, f32::NEG_INFINITY]), (Reduction::Min, [-1.0, f32::INFINITY])] {
            let mut out = [0.0; 2];
            Reduce::new(op, &[2, 3], &[1]).run(exec, &x, &mut out);
            assert_eq!(out, want);
        }
        let mut at = [9; 2];
        ArgReduce::new(Extreme::Max, 2, 3, 1).run(exec, &x, &mut at, None);
        assert_eq!(at, [1, 0]);
    });
}

#[test]
fn the_first_of_equals_is_found() {
    let mut random = Random(13);
    for (outer, len, inner) in
        [(1, 1, 1), (4, 1000, 1), (3, 33, 1), (2, 21, 5), (3, 10, 300), (1, 70_000, 1), (5, 31, 1)]
    {
        let x: Vec<f32> = (0..outer * len * inner).map(|_| random.below(50) as f32).collect();
        for which in [Extreme::Max, Extreme::Min] {
            each_exec(|exec| {
                let (mut at, mut values) = (vec![0; outer * inner], vec![0.0; outer * inner]);
                ArgReduce::new(which, outer, len, inner).run(exec, &x, &mut at, Some(&mut values));
                for i in 0..outer * inner {
                    let line: Vec<f32> = (0..len).map(|k| x[(i / inner * len + k) * inner + i % inner]).collect();
                    let best =
                        line.iter().copied().reduce(if which == Extreme::Max { f32::max } else { f32::min }).unwrap();
                    assert_eq!((at[i], values[i]), (line.iter().position(|&x| x == best).unwrap() as i64, best));
                }
            });
        }
    }
}

#[test]
fn integers_and_booleans_fold_too() {
    let x = [1i64, -2, 3, i64::MAX, 5, 1];
    let run = |op, first| {
        let mut out = [0; 2];
        reduce_integers(op, &[2, 3], &[1], first, |n| n as i64, &x, &mut out);
        out
    };
    assert_eq!(run(IntegerReduction::Sum, 0), [2, i64::MIN + 5]);
    assert_eq!(run(IntegerReduction::Prod, 1), [-6, i64::MAX.wrapping_mul(5)]);
    assert_eq!(run(IntegerReduction::Max, i64::MIN), [3, i64::MAX]);
    assert_eq!(run(IntegerReduction::Min, i64::MAX), [-2, 1]);
    assert_eq!(run(IntegerReduction::Mean, 0), [0, (i64::MIN + 5) / 3]);
    let (mut all, mut any) = ([9; 3], [9; 3]);
    let bools = [1, 0, 2, 1, 0, 0];
    reduce_bools(true, &[2, 3], &[0], &bools, &mut all);
    reduce_bools(false, &[2, 3], &[0], &bools, &mut any);
    assert_eq!((all, any), ([1, 0, 0], [1, 0, 1]));
}
