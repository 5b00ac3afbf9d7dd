//! Matrix products against plain loops.

use crate::products::{ACTS, Random, check, ended, everywhere};
use carafe_kernels::{Act, BatchMatMul, Epilogue, Finish, Gemm, Operand, Stopped, Tile};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const SCRATCH: usize = 1 << 20;

fn product(a: &[f32], lda: usize, b: impl Fn(usize, usize) -> f32, k: usize, i: usize, j: usize) -> f64 {
    (0..k).map(|x| f64::from(a[i * lda + x]) * f64::from(b(x, j))).sum()
}

#[test]
fn a_packed_product_equals_plain_loops() {
    everywhere(SCRATCH, |exec| {
        let mut r = Random(7);
        for case in 0..60 {
            let m = r.pick(&[1, 2, 3, 4, 5, 7, 8, 13, 14, 15, 28, 29, 61, 130]);
            let n = r.pick(&[1, 5, 8, 15, 16, 17, 24, 31, 32, 33, 48, 64, 70, 97]);
            let k = r.pick(&[0, 1, 2, 3, 4, 7, 16, 19, 64, 100, 512, 1024]);
            let (lda, ldc, ldd) = (k + r.below(9), n + r.below(9), n + r.below(3));
            let (a, b) = (r.floats(m * lda.max(1)), r.floats(k * n));
            let (bias, add) = (r.floats(n), r.floats(m * ldd));
            let transposed = r.below(2) == 0;
            let epilogue = Epilogue {
                bias: (r.below(2) == 0).then_some(&bias[..]),
                add: (r.below(2) == 0).then_some((&add[..], ldd)),
                add_last: r.below(2) == 0,
                act: r.pick(&ACTS),
                finish: None,
                ..Epilogue::default()
            };
            let gemm = Gemm::new(exec.isa, n, k);
            let mut packed = vec![f32::NAN; gemm.packed_floats()];
            gemm.pack((case % 2 == 0).then_some(exec), &b, transposed, &mut packed);
            let mut c = vec![77.0; m * ldc];
            // What is added may lie in the output.
            let own = Epilogue { add: None, add_own: true, ..epilogue };
            if epilogue.add.is_some() && gemm.adds_over(&own) && r.below(2) == 0 {
                for (line, add) in c.chunks_mut(ldc).zip(add.chunks(ldd)) {
                    line[..n].copy_from_slice(&add[..n]);
                }
                gemm.run(exec, m, &a, lda, &packed, &mut c, ldc, &own);
            } else {
                gemm.run(exec, m, &a, lda, &packed, &mut c, ldc, &epilogue);
            }
            for i in 0..m {
                for j in 0..n {
                    let sum = product(&a, lda, |x, j| if transposed { b[j * k + x] } else { b[x * n + j] }, k, i, j);
                    let what = || format!("{m}x{n}x{k} at {i},{j}, {:?}, {epilogue:?}", exec.isa);
                    check(c[i * ldc + j], ended(&epilogue, sum, i, j), k, &what);
                }
                assert!(c[i * ldc + n..(i + 1) * ldc].iter().all(|x| *x == 77.0), "written beside the columns");
            }
        }
    });
}

#[test]
fn products_of_a_batch_equal_plain_loops() {
    everywhere(SCRATCH, |exec| {
        let mut r = Random(9);
        for _ in 0..50 {
            let batch = r.pick(&[1, 2, 3, 7]);
            let m = r.pick(&[1, 3, 14, 20, 65]);
            let n = r.pick(&[1, 8, 16, 31, 49, 64, 100]);
            let k = r.pick(&[1, 5, 16, 40, 64, 129]);
            let (turn_a, turn_b) = (r.below(2) == 0, r.below(2) == 0);
            let lda = if turn_a { m } else { k } + r.below(5);
            let ldb = if turn_b { k } else { n } + r.below(5);
            let (a_size, b_size) = (lda * if turn_a { k } else { m }, ldb * if turn_b { n } else { k });
            let shared = r.below(2) == 0;
            // Every other case writes the results side by side, as heads of an attention do.
            let beside = r.below(2) == 0;
            let ldc = if beside { n * batch } else { n };
            let offsets = |each: usize| (0..batch).map(|i| i * each).collect::<Vec<_>>();
            let a_offsets = offsets(a_size);
            let b_offsets = if shared { vec![0; batch] } else { offsets(b_size) };
            let c_offsets = offsets(if beside { n } else { m * n });
            let (a, b) = (r.floats(batch * a_size), r.floats(batch * b_size));
            let bias = r.floats(n);
            let epilogue = Epilogue { bias: Some(&bias), act: r.pick(&ACTS), ..Epilogue::default() };
            let operand = |o: &Vec<usize>, stride, transposed| Operand { offsets: o.clone(), stride, transposed };
            let matmul = BatchMatMul::new(
                exec.isa,
                [m, n, k],
                operand(&a_offsets, lda, turn_a),
                operand(&b_offsets, ldb, turn_b),
                operand(&c_offsets, ldc, false),
                0.5,
            );
            assert!(matmul.scratch_floats() <= SCRATCH);
            let mut c = vec![77.0; batch * m * n];
            matmul.run(exec, &a, &b, &mut c, &epilogue);
            for x in 0..batch * m * n {
                let (i, row, j) = (x / (m * n), x / n % m, x % n);
                let at =
                    |o: usize, ld: usize, turned, r: usize, c: usize| o + if turned { c * ld + r } else { r * ld + c };
                let sum: f64 = (0..k)
                    .map(|e| {
                        let (x, y) = (at(a_offsets[i], lda, turn_a, row, e), at(b_offsets[i], ldb, turn_b, e, j));
                        f64::from(a[x]) * f64::from(b[y])
                    })
                    .sum();
                let what = || format!("{batch} of {m}x{n}x{k}, item {i} at {row},{j}, {:?}", exec.isa);
                check(c[c_offsets[i] + row * ldc + j], ended(&epilogue, sum * 0.5, i * m + row, j), k, &what);
            }
        }
    });
}

#[test]
fn few_rows_read_the_right_matrix_where_it_lies() {
    everywhere(SCRATCH, |exec| {
        let mut r = Random(31);
        for (m, n) in (1..=6).flat_map(|m| [16, 17, 32, 49, 64].map(|n| (m, n))) {
            let (k, ldb) = (9, n + 3);
            let (a, b) = (r.floats(m * k), r.floats(k * ldb));
            let one = |stride| Operand { offsets: vec![0], stride, transposed: false };
            let matmul = BatchMatMul::new(exec.isa, [m, n, k], one(k), one(ldb), one(n), 1.0);
            let mut c = vec![77.0; m * n];
            matmul.run(exec, &a, &b, &mut c, &Epilogue::default());
            for x in 0..m * n {
                let sum = product(&a, k, |e, j| b[e * ldb + j], k, x / n, x % n);
                check(c[x], sum, k, &|| format!("{m}x{n}x{k} at {x}, {:?}", exec.isa));
            }
        }
    });
}

#[test]
fn large_products_of_a_batch_are_cut_into_groups_and_strips() {
    everywhere(SCRATCH, |exec| {
        let (m, n, k) = (150, 300, 700);
        let mut r = Random(3);
        let (a, b) = (r.floats(m * k), r.floats(k * n));
        for turn in [false, true] {
            let operand = |stride, transposed| Operand { offsets: vec![0], stride, transposed };
            let (lda, ldb) = if turn { (m, k) } else { (k, n) };
            let matmul =
                BatchMatMul::new(exec.isa, [m, n, k], operand(lda, turn), operand(ldb, turn), operand(n, false), 1.0);
            let mut c = vec![0.0; m * n];
            matmul.run(exec, &a, &b, &mut c, &Epilogue::default());
            for _ in 0..200 {
                let (i, j) = (r.below(m), r.below(n));
                let sum = (0..k)
                    .map(|e| {
                        let (x, y) = if turn { (e * m + i, j * k + e) } else { (i * k + e, e * n + j) };
                        f64::from(a[x]) * f64::from(b[y])
                    })
                    .sum();
                check(c[i * n + j], sum, k, &|| format!("{i},{j}"));
            }
        }
    });
}

#[test]
#[should_panic(expected = "overlap")]
fn overlapping_outputs_are_refused() {
    let operand = |offsets: Vec<usize>| Operand { offsets, stride: 4, transposed: false };
    BatchMatMul::new(
        carafe_kernels::Isa::best(),
        [4; 3],
        operand(vec![0, 0]),
        operand(vec![0, 0]),
        operand(vec![0, 3]),
        1.0,
    );
}

struct Seen(Mutex<Vec<u8>>, usize);

impl Finish for Seen {
    fn finish(&self, tile: Tile<'_>, _: usize) {
        let mut seen = self.0.lock().unwrap();
        for i in 0..tile.rows {
            for j in 0..tile.columns {
                tile.data[i * tile.stride + j] += 1.0;
                seen[(tile.row + i) * self.1 + tile.column + j] += 1;
            }
        }
    }
}

#[test]
fn the_finish_sees_every_number_once_and_last() {
    everywhere(SCRATCH, |exec| {
        for (m, n) in [(3, 200), (40, 70), (300, 40)] {
            let k = 33;
            let mut r = Random(5);
            let (a, b) = (r.floats(m * k), r.floats(k * n));
            let gemm = Gemm::new(exec.isa, n, k);
            let mut packed = vec![0.0; gemm.packed_floats()];
            gemm.pack(None, &b, false, &mut packed);
            let seen = Seen(Mutex::new(vec![0; m * n]), n);
            let epilogue = Epilogue { act: Act::Sigmoid, finish: Some(&seen), ..Epilogue::default() };
            let mut c = vec![0.0; m * n];
            gemm.run(exec, m, &a, k, &packed, &mut c, n, &epilogue);
            assert!(seen.0.lock().unwrap().iter().all(|x| *x == 1));
            for (x, c) in c.iter().enumerate() {
                let sum = product(&a, k, |x, j| b[x * n + j], k, x / n, x % n);
                check(*c, ended(&epilogue, sum, x / n, x % n) + 1.0, k, &|| format!("{x} of {m}x{n}"));
            }
        }
    });
}

#[test]
fn nan_and_infinity_pass_through() {
    everywhere(SCRATCH, |exec| {
        let gemm = Gemm::new(exec.isa, 40, 1);
        let mut packed = vec![0.0; gemm.packed_floats()];
        gemm.pack(None, &[1.0; 40], false, &mut packed);
        for act in [Act::None, Act::Relu, Act::Clamp { min: -1.0, max: 1.0 }, Act::LeakyRelu(0.5)] {
            let mut c = [0.0; 80];
            let epilogue = Epilogue { act, ..Epilogue::default() };
            gemm.run(exec, 2, &[f32::NAN, 1.0], 1, &packed, &mut c, 40, &epilogue);
            assert!(c[..40].iter().all(|x| x.is_nan()), "{act:?} {:?}", exec.isa);
            assert!(c[40..].iter().all(|x| *x == 1.0));
        }
    });
}

/// Sets the flag at the first finished rectangle and counts them.
struct StopAtOnce<'a>(&'a AtomicBool, AtomicUsize);

impl Finish for StopAtOnce<'_> {
    fn finish(&self, _: Tile<'_>, _: usize) {
        self.0.store(true, Ordering::Relaxed);
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn a_product_is_given_up_soon_after_the_flag_is_set() {
    // Fourteen strips or more on each thread.
    let (m, n, k) = (3000, 64, 1024);
    everywhere(SCRATCH, |exec| {
        let (a, b) = (vec![1.0; m * k], vec![1.0; k * n]);
        let gemm = Gemm::new(exec.isa, n, k);
        let mut packed = vec![0.0; gemm.packed_floats()];
        gemm.pack(None, &b, false, &mut packed);
        let mut c = vec![0.0; m * n];
        let stop = AtomicBool::new(false);
        let finish = StopAtOnce(&stop, AtomicUsize::new(0));
        let epilogue = Epilogue { finish: Some(&finish), ..Epilogue::default() };
        let exec = exec.until(&stop);
        let run = catch_unwind(AssertUnwindSafe(|| gemm.run(&exec, m, &a, k, &packed, &mut c, n, &epilogue)));
        assert!(run.unwrap_err().is::<Stopped>());
        // Each thread may have been inside of a strip.
        assert!(finish.1.load(Ordering::Relaxed) <= exec.threads(), "{:?}", finish.1);
        stop.store(false, Ordering::Relaxed);
        gemm.run(&exec, m, &a, k, &packed, &mut c, n, &Epilogue::default());
        assert!(c.iter().all(|x| *x == k as f32));
    });
}
