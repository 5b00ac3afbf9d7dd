//! Products with compressed weights against plain loops.

use crate::products::{ACTS, Random, check, ended, everywhere};
use carafe_kernels::{Codes, CompressedGemm, Compression, Epilogue, Stored};

const SCRATCH: usize = 1 << 20;
const TABLE: [f32; 16] = [-1., -0.7, -0.5, -0.4, -0.3, -0.2, -0.1, 0., 0.1, 0.2, 0.25, 0.3, 0.4, 0.6, 0.7, 1.];

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
            };
            let gemm = CompressedGemm::new(exec.isa, n, k, compression).unwrap();
            let mut packed = vec![0xff; gemm.packed_bytes()];
            let groups = k / group;
            let stored = Stored {
                bytes: &b.bytes,
                flip: b.flip,
                transposed,
                scale: &|column, group| b.scales[column * groups + group],
                zero: &|column, group| b.zeros[column * groups + group],
            };
            gemm.pack((case % 3 == 0).then_some(exec), &stored, &mut packed);
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
            CompressedGemm::new(exec.isa, 4096, 4096, compression).unwrap().packed_bytes()
        };
        let numbers = 4096 * 4096;
        assert!(bytes(Codes::I8) < numbers * 105 / 100 && bytes(Codes::I4) < numbers / 2 * 109 / 100);
    });
}
