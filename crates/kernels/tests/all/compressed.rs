//! Products with compressed weights against plain loops.

use crate::products::{ACTS, Random, check, ended, everywhere};
use carafe_kernels::{Codes, CompressedGemm, Compression, Epilogue, RoundedGemm, Stored};

const SCRATCH: usize = 1 << 20;
const TABLE: [f32; 16] = [-1., -0.7, -0.5, -0.4, -0.3, -0.2, -0.1, 0., 0.1, 0.2, 0.25, 0.3, 0.4, 0.6, 0.7, 1.];
/// Numbers on equal steps, as those of f4e2m1 are.
const STEPS: [f32; 16] = [0., 0.5, 1., 1.5, 2., 3., 4., 6., -0., -0.5, -1., -1.5, -2., -3., -4., -6.];

/// A compressed matrix of random numbers, and what it stands for, column by column.
struct Matrix {
    compression: Compression,
    bytes: Vec<u8>,
    flip: u8,
    scales: Vec<f32>,
    zeros: Vec<i8>,
    numbers: Vec<f32>,
}

fn matrix(r: &mut Random, n: usize, k: usize, compression: Compression, unsigned: bool, transposed: bool) -> Matrix {
    let groups = k / compression.group;
    let scales: Vec<f32> = (0..n * groups).map(|_| 0.01 + r.float().abs() * 0.1).collect();
    let zeros: Vec<i8> = (0..n * groups).map(|_| r.between(0, 14) as i8 - 7).collect();
    let bytes: Vec<u8> = (0..n * k).map(|_| r.next() as u8).collect();
    let flip = match compression.codes {
        Codes::I8 if unsigned => 0x80,
        Codes::I4 if unsigned => 8,
        _ => 0,
    };
    let number = |column: usize, row: usize| {
        let at = if transposed { column * k + row } else { row * n + column };
        let nibble = (bytes[at / 2] >> (4 * (at % 2)) & 15) ^ flip;
        let code = match compression.codes {
            Codes::I8 => f32::from((bytes[at] ^ flip) as i8),
            Codes::I4 => f32::from((nibble << 4) as i8 >> 4),
            Codes::Table(table) => table[usize::from(nibble)],
        };
        let group = column * groups + row / compression.group;
        (code - if compression.zeros { f32::from(zeros[group]) } else { 0.0 }) * scales[group]
    };
    let numbers = (0..n * k).map(|i| number(i / k, i % k)).collect();
    Matrix { compression, bytes, flip, scales, zeros, numbers }
}

#[test]
fn compressed_products_equal_plain_loops() {
    everywhere(SCRATCH, |exec| {
        let mut r = Random(11);
        for case in 0..90 {
            let m = r.pick(&[1, 2, 3, 4, 5, 8, 15, 29, 61, 300]);
            let n = r.pick(&[1, 5, 8, 16, 17, 24, 31, 32, 33, 48, 70, 97]);
            let group = r.pick(&[1, 3, 16, 32, 50, 128]);
            let k = group * r.pick(&[1, 2, 5, 12]);
            let codes = r.pick(&[Codes::I8, Codes::I4, Codes::Table(TABLE)]);
            let compression = Compression { codes, group, zeros: r.below(2) == 0 };
            let transposed = r.below(2) == 0;
            let b = matrix(&mut r, n, k, compression, case % 2 == 0, transposed);
            let lda = r.pick(&[k, k + 3, k.next_multiple_of(512)]);
            let ldc = n + r.below(9);
            let (a, bias, add) = (r.floats(m * lda), r.floats(n), r.floats(m * n));
            let epilogue = Epilogue {
                bias: (r.below(2) == 0).then_some(&bias[..]),
                add: (r.below(2) == 0).then_some((&add[..], n)),
                add_last: r.below(2) == 0,
                act: r.pick(&ACTS),
                finish: None,
                ..Epilogue::default()
            };
            let gemm = CompressedGemm::new(exec.isa, n, k, compression).unwrap();
            let mut packed = vec![0xff; gemm.matrix().packed_bytes()];
            let groups = k / group;
            let stored = Stored {
                bytes: &b.bytes,
                flip: b.flip,
                transposed,
                scale: &|column, group| b.scales[column * groups + group],
                zero: &|column, group| b.zeros[column * groups + group],
            };
            gemm.matrix().pack((case % 3 == 0).then_some(exec), &stored, &mut packed);
            let mut c = vec![77.0; m * ldc];
            gemm.run(exec, (m, &a, lda), &packed, &mut c, ldc, &epilogue);
            for i in 0..m {
                for j in 0..n {
                    let terms = (0..k).map(|x| f64::from(a[i * lda + x]) * f64::from(b.numbers[j * k + x]));
                    // Numbers up to 30, where others are up to 1.
                    let what = || format!("{m}x{n}x{k} at {i},{j}, {:?}, {:?}", exec.isa, b.compression);
                    let expected = ended(&epilogue, terms.sum(), i, j);
                    check(c[i * ldc + j] / 8.0, expected / 8.0, 8 * k, &what);
                }
                assert!(c[i * ldc + n..(i + 1) * ldc].iter().all(|x| *x == 77.0), "written beside the columns");
            }
        }
    });
}

// A row as it is rounded: groups of numbers share a scale.
fn rounded(row: &[f32], each: usize) -> Vec<f64> {
    let of_group = |group: &[f32]| {
        let largest = group.iter().fold(0f32, |m, x| m.max(x.abs()));
        let by = if largest > 0.0 { 127.0 / largest } else { 0.0 };
        let scale = f64::from(largest / 127.0);
        group.iter().map(move |x| f64::from((x * by).round_ties_even()) * scale).collect::<Vec<_>>()
    };
    row.chunks(each).flat_map(of_group).collect()
}

#[test]
fn products_of_rounded_rows_equal_plain_loops_over_them() {
    everywhere(SCRATCH, |exec| {
        let mut r = Random(13);
        for case in 0..60 {
            let m = r.pick(&[1, 2, 3, 5, 6, 7, 12, 29, 61]);
            let n = r.pick(&[1, 8, 17, 32, 33, 70, 97]);
            let each = r.pick(&[8, 16, 32, 64]);
            let group = each * r.pick(&[1, 2, 4, 20]);
            let k = group * r.pick(&[1, 2, 5]);
            let codes = r.pick(&[Codes::I8, Codes::I4, Codes::Table(STEPS)]);
            let zeros = r.below(2) == 0 && codes != Codes::Table(STEPS);
            let compression = Compression { codes, group, zeros };
            let transposed = r.below(2) == 0;
            let b = matrix(&mut r, n, k, compression, case % 2 == 0, transposed);
            let (lda, ldc) = (r.pick(&[k, k + 3]), n + r.below(9));
            let (mut a, bias, add) = (r.floats(m * lda), r.floats(n), r.floats(m * n));
            a[..each].fill(0.0);
            let epilogue = Epilogue {
                bias: (r.below(2) == 0).then_some(&bias[..]),
                add: (r.below(2) == 0).then_some((&add[..], n)),
                add_last: r.below(2) == 0,
                act: r.pick(&ACTS),
                finish: None,
                ..Epilogue::default()
            };
            let gemm = RoundedGemm::new(exec.isa, n, k, compression, each).unwrap();
            let mut packed = vec![0xff; gemm.matrix().packed_bytes()];
            let groups = k / group;
            let stored = Stored {
                bytes: &b.bytes,
                flip: b.flip,
                transposed,
                scale: &|column, group| b.scales[column * groups + group],
                zero: &|column, group| b.zeros[column * groups + group],
            };
            gemm.matrix().pack((case % 3 == 0).then_some(exec), &stored, &mut packed);
            let (mut c, mut memory) = (vec![77.0; m * ldc], vec![0f32; gemm.rounded_bytes(m).div_ceil(4)]);
            let memory = bytemuck::cast_slice_mut(&mut memory);
            gemm.run(exec, (m, &a, lda), &packed, memory, &mut c, ldc, &epilogue);
            for i in 0..m {
                let row = rounded(&a[i * lda..i * lda + k], each);
                for j in 0..n {
                    let terms = (0..k).map(|x| row[x] * f64::from(b.numbers[j * k + x]));
                    let what = || format!("{m}x{n}x{k} at {i},{j}, {:?}, {:?}, {each}", exec.isa, b.compression);
                    let expected = ended(&epilogue, terms.sum(), i, j);
                    check(c[i * ldc + j] / 32.0, expected / 32.0, 8 * k, &what);
                }
                assert!(c[i * ldc + n..(i + 1) * ldc].iter().all(|x| *x == 77.0), "written beside the columns");
            }
        }
    });
}

#[test]
fn numbers_that_are_not_finite_are_not_hidden_by_rounding() {
    everywhere(SCRATCH, |exec| {
        let mut r = Random(15);
        let compression = Compression { codes: Codes::I4, group: 32, zeros: false };
        let b = matrix(&mut r, 8, 64, compression, true, true);
        let gemm = RoundedGemm::new(exec.isa, 8, 64, compression, 32).unwrap();
        let mut packed = vec![0; gemm.matrix().packed_bytes()];
        let scale = |column: usize, group: usize| b.scales[column * 2 + group];
        let stored = Stored { bytes: &b.bytes, flip: b.flip, transposed: true, scale: &scale, zero: &|_, _| 0 };
        gemm.matrix().pack(None, &stored, &mut packed);
        for odd in [f32::NAN, f32::INFINITY] {
            let mut a = r.floats(2 * 64);
            a[40] = odd;
            let (mut c, mut memory) = (vec![0.0; 16], vec![0f32; gemm.rounded_bytes(2)]);
            let memory = bytemuck::cast_slice_mut(&mut memory);
            gemm.run(exec, (2, &a, 64), &packed, memory, &mut c, 8, &Epilogue::default());
            assert!(c[..8].iter().all(|x| x.is_nan()) && c[8..].iter().all(|x| x.is_finite()), "{odd}: {c:?}");
        }
    });
}

#[test]
fn groups_of_rows_that_do_not_divide_those_of_weights_are_refused() {
    everywhere(0, |exec| {
        let gemm = |codes: Codes, group: usize, each: usize| {
            RoundedGemm::new(exec.isa, 8, 96, Compression { codes, group, zeros: false }, each).is_some()
        };
        assert!(gemm(Codes::I4, 96, 32) && gemm(Codes::I8, 32, 4) && gemm(Codes::I4, 32, 32));
        assert!(!gemm(Codes::I4, 96, 36) && !gemm(Codes::I4, 32, 4) && !gemm(Codes::I8, 96, 0));
        assert!(!gemm(Codes::Table(TABLE), 96, 32) && !gemm(Codes::I8, 36, 12));
    });
}

#[test]
fn tables_off_equal_steps_and_tables_with_zero_points_are_not_multiplied_as_integers() {
    everywhere(SCRATCH, |exec| {
        let takes = |table, zeros| {
            let compression = Compression { codes: Codes::Table(table), group: 32, zeros };
            RoundedGemm::new(exec.isa, 8, 64, compression, 32).is_some()
        };
        assert!(takes(STEPS, false));
        assert!(!takes(STEPS, true));
        assert!(!takes(TABLE.map(|x| x * x), false));
    });
}

#[test]
fn groups_that_do_not_divide_the_rows_are_refused() {
    everywhere(0, |exec| {
        let gemm =
            |group: usize| CompressedGemm::new(exec.isa, 8, 96, Compression { codes: Codes::I4, group, zeros: false });
        assert!(gemm(32).is_some() && gemm(96).is_some());
        assert!(gemm(36).is_none() && gemm(0).is_none() && gemm(128).is_none());
    });
}

#[test]
fn four_bits_take_half_the_memory_of_eight() {
    everywhere(0, |exec| {
        let bytes = |codes: Codes| {
            let compression = Compression { codes, group: 128, zeros: true };
            CompressedGemm::new(exec.isa, 4096, 4096, compression).unwrap().matrix().packed_bytes()
        };
        let numbers = 4096 * 4096;
        assert!(bytes(Codes::I8) < numbers * 105 / 100 && bytes(Codes::I4) < numbers / 2 * 109 / 100);
    });
}
