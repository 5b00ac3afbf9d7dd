//! What is particular to products of f16: sums are floats, so nothing overflows and no small number is lost.

use crate::products::{Random, everywhere};
use carafe_kernels::{Act, Addend, Conv, ConvShape, Exec, Gemm, Halves, Isa, Numbers, TypedEpilogue, TypedOut};

const SCRATCH: usize = 1 << 20;
const F16: Halves = Halves::F16;
const LARGEST: f32 = 65504.0;

/// Cells of pairs of these numbers.
fn cells(numbers: &[f32]) -> Vec<f32> {
    let cell = |[a, b]: &[f32; 2]| f32::from_bits(u32::from(F16.bits(*a)) | u32::from(F16.bits(*b)) << 16);
    numbers.as_chunks::<2>().0.iter().map(cell).collect()
}

/// `m x k` times `k x n`.
fn product(exec: &Exec<'_>, [m, n, k]: [usize; 3], a: &[f32], b: &[f32]) -> Vec<f32> {
    let gemm = Gemm::of_cells(exec.isa, Numbers::F16, n, k).unwrap();
    let mut packed = vec![f32::NAN; gemm.packed_floats()];
    gemm.pack_halves(&F16.all_bits(b), false, &mut packed);
    let mut out = vec![77.0; m * n];
    let rows = (m, &cells(a)[..], k / 2);
    gemm.run_typed(exec, Numbers::F16, rows, &packed, TypedOut::F32(&mut out), n, &TypedEpilogue::default());
    out
}

/// Numbers of every size that the type has.
fn numbers(r: &mut Random, n: usize) -> Vec<f32> {
    r.floats(n).into_iter().map(|x| F16.wide(F16.bits(x * 2f32.powi(r.below(30) as i32 - 25)))).collect()
}

#[test]
fn sums_of_vectors_are_those_of_plain_rust_to_the_last_bit() {
    let sizes = [[1, 16, 2], [3, 33, 126], [4, 40, 128], [14, 32, 130], [15, 70, 258], [29, 17, 640], [75, 100, 66]];
    for (i, size) in sizes.into_iter().enumerate() {
        let [m, n, k] = size;
        let r = &mut Random(i as u64 + 3);
        let (a, b) = (numbers(r, m * k), numbers(r, k * n));
        let first = std::cell::OnceCell::<Vec<u32>>::new();
        everywhere(SCRATCH, |exec| {
            // Tile registers sum even and odd numbers apart.
            if !exec.isa.has_tiles_of_halves() {
                let found: Vec<u32> = product(exec, size, &a, &b).iter().map(|x| x.to_bits()).collect();
                let wanted = first.get_or_init(|| found.clone());
                assert!(found == *wanted, "{size:?} of {:?}", exec.isa);
            }
        });
    }
}

#[test]
fn taps_of_any_length_are_widened_whole() {
    // Taps that end inside of what is widened together, at its end, and beyond.
    for channels in [2, 20, 64, 126, 128, 130, 300] {
        let shape = ConvShape {
            batch: 1,
            in_spatial: [1, 4, 9],
            in_channels: channels,
            out_channels: 37,
            kernel: [1, 3, 3],
            stride: [1; 3],
            dilation: [1, 1, 2],
            pad_begin: [0, 1, 2],
            pad_end: [0, 1, 2],
            groups: 1,
        };
        let r = &mut Random(channels as u64);
        let input = r.floats(shape.in_pixels() * channels);
        let weights = r.floats(shape.weights());
        let at = |_: usize, [_, y, x]: [usize; 3], c: usize| F16.wide(F16.bits(input[(y * 9 + x) * channels + c]));
        let rounded: Vec<f32> = weights.iter().map(|w| F16.wide(F16.bits(*w))).collect();
        let wanted = crate::conv::plain(&shape, at, &rounded);
        everywhere(SCRATCH, |exec| {
            let conv = Conv::of_cells(exec.isa, exec.threads(), shape, Numbers::F16, 0).unwrap();
            let mut packed = vec![f32::NAN; conv.packed_floats()];
            conv.pack_halves(&F16.all_bits(&weights), &mut packed);
            let mut out = vec![77.0; wanted.len()];
            conv.run_typed(exec, &cells(&input), &packed, TypedOut::F32(&mut out), 37, &TypedEpilogue::default());
            for (x, y) in out.iter().zip(&wanted) {
                assert!(
                    (f64::from(*x) - y).abs() <= 1e-5 * (channels as f64).sqrt(),
                    "{x} {y}, {channels}, {:?}",
                    exec.isa
                );
            }
        });
    }
}

#[test]
fn products_near_those_of_floats_are_off_by_the_rounding_of_their_factors() {
    let [m, n, k] = [9, 40, 2048];
    let r = &mut Random(5);
    let (a, b) = (r.floats(m * k), r.floats(k * n));
    everywhere(SCRATCH, |exec| {
        for (i, found) in product(exec, [m, n, k], &a, &b).into_iter().enumerate() {
            let term = |x: usize| f64::from(a[i / n * k + x]) * f64::from(b[x * n + i % n]);
            let (sum, size) = (0..k).map(term).fold((0.0, 0.0), |(s, t), x: f64| (s + x, t + x * x));
            assert!((f64::from(found) - sum).abs() <= 2e-3 * size.sqrt(), "{found} {sum}, {:?}", exec.isa);
        }
    });
}

#[test]
fn no_product_overflows_and_no_small_one_is_lost() {
    let tiny = 2f32.powi(-24);
    everywhere(SCRATCH, |exec| {
        for m in [1, 20] {
            let (row, column) = ([LARGEST, 0.0, -LARGEST, tiny], [LARGEST, 0.0, LARGEST, tiny]);
            let a: Vec<f32> = row.repeat(m);
            let b: Vec<f32> = column.iter().flat_map(|x| [*x; 18]).collect();
            let found = product(exec, [m, 18, 4], &a, &b);
            // The largest products cancel, and the smallest one is left.
            assert!(found.iter().all(|x| *x == tiny * tiny), "{found:?}, {:?}", exec.isa);
            let a = [LARGEST, LARGEST].repeat(m);
            let found = product(exec, [m, 18, 2], &a, &[LARGEST; 36]);
            assert!(found.iter().all(|x| *x == 2.0 * LARGEST * LARGEST), "{found:?}, {:?}", exec.isa);
            let found = product(exec, [m, 18, 2], &[tiny; 40][..2 * m], &[tiny; 36]);
            assert!(found.iter().all(|x| *x == 2.0 * tiny * tiny), "{found:?}, {:?}", exec.isa);
        }
    });
}

#[test]
fn infinities_and_what_is_no_number_stay() {
    everywhere(SCRATCH, |exec| {
        for m in [2, 17] {
            let n = 5;
            // Columns of ones, zeros, and one with an infinity of its own.
            let b: Vec<f32> =
                (0..2).flat_map(|i| [1.0, 0.0, if i == 0 { f32::NEG_INFINITY } else { 1.0 }, -1.0, 2.0]).collect();
            let mut a = vec![1.0; 2 * m];
            a[0] = f32::INFINITY;
            a[3] = f32::NAN;
            let found = product(exec, [m, n, 2], &a, &b);
            let infinite = [f32::INFINITY, f32::NAN, f32::NEG_INFINITY, f32::NEG_INFINITY, f32::INFINITY];
            for (x, y) in found.iter().zip(infinite) {
                assert!(*x == y || (x.is_nan() && y.is_nan()), "{found:?}, {:?}", exec.isa);
            }
            assert!(found[n..2 * n].iter().all(|x| x.is_nan()), "{found:?}, {:?}", exec.isa);
            assert!(found[2 * n..].chunks(n).all(|line| line[0] == 2.0 && line[4] == 4.0), "{:?}", exec.isa);
        }
    });
}

#[test]
fn results_are_rounded_to_the_nearest_and_overflow_to_infinity() {
    let (n, values) = (6, [2049.0, 2051.0, 65519.0, 65520.0, -1e6, 2f32.powi(-25) * 1.5]);
    let wanted = [2048.0, 2052.0, LARGEST, f32::INFINITY, f32::NEG_INFINITY, 2f32.powi(-24)];
    everywhere(SCRATCH, |exec| {
        let gemm = Gemm::of_cells(exec.isa, Numbers::F16, n, 2).unwrap();
        let mut packed = vec![f32::NAN; gemm.packed_floats()];
        gemm.pack_halves(&[0; 12], false, &mut packed);
        for (m, add) in [(1, false), (20, true)] {
            let (a, ones) = (vec![0.0; m], F16.all_bits(&vec![1.0; m * n]));
            let mut out = vec![7u16; m * n];
            let bias = values.map(|x| if add { x - 1.0 } else { x });
            let epilogue = TypedEpilogue {
                bias: Some(&bias),
                add: add.then_some(Addend::Half(F16, &ones, n)),
                act: Act::None,
                ..TypedEpilogue::default()
            };
            let to = TypedOut::Half(F16, &mut out);
            gemm.run_typed(exec, Numbers::F16, (m, &a, 1), &packed, to, n, &epilogue);
            for (i, bits) in out.iter().enumerate() {
                // A small number is gone when one was taken away from it and added again.
                let right = F16.wide(*bits) == wanted[i % n] || (add && i % n == 5);
                assert!(right, "{} of {}, {:?}", F16.wide(*bits), values[i % n], exec.isa);
            }
        }
    });
}

#[test]
fn every_bit_pattern_comes_back() {
    for bits in 0..=u16::MAX {
        for halves in [Halves::Bf16, Halves::F16] {
            let x = halves.wide(bits);
            assert!(x.is_nan() || halves.bits(x) == bits, "{bits:x} of {halves:?}");
            assert!(!x.is_nan() || halves.wide(halves.bits(x)).is_nan(), "{bits:x} of {halves:?}");
        }
    }
}

#[test]
fn levels_without_tiles_are_not_faster_than_floats() {
    for isa in Isa::available() {
        assert_eq!(Numbers::F16.is_fast(isa), isa.has_tiles_of_halves(), "{isa:?}");
        assert!(!Numbers::F16.is_fast(isa) || Numbers::F16.is_native(isa), "{isa:?}");
    }
}
