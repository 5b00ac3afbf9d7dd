//! How far sums of many numbers are from the same sums in f64, as a part of their usual size. Numbers that are multiplied are
//! not negative, as behind a ReLU: errors then have a direction and grow with the length of the sum.

use crate::products::{Random, everywhere};
use crate::spatial_common::direct;
use carafe_kernels::{Conv, ConvShape, Epilogue, Exec, Gemm, Scratch, Winograd};

const SCRATCH: usize = 1 << 21;

fn shape(size: usize, channels: usize, outs: usize, dilation: usize) -> ConvShape {
    ConvShape {
        batch: 1,
        in_spatial: [1, size, size],
        in_channels: channels,
        out_channels: outs,
        kernel: [1, 3, 3],
        stride: [1; 3],
        dilation: [1, dilation, dilation],
        pad_begin: [0, dilation, dilation],
        pad_end: [0, dilation, dilation],
        groups: 1,
    }
}

/// Numbers behind a ReLU.
fn positive(r: &mut Random, n: usize) -> Vec<f32> {
    (0..n).map(|_| r.float().max(0.0)).collect()
}

/// Mean and largest error beside the mean size, both as squares are averaged.
fn distance(found: &[f32], exact: &[f64]) -> [f64; 2] {
    let mean = |squares: f64| (squares / exact.len() as f64).sqrt();
    let size = mean(exact.iter().map(|x| x * x).sum());
    let errors = || found.iter().zip(exact).map(|(f, e)| (f64::from(*f) - e).abs());
    [mean(errors().map(|x| x * x).sum()) / size, errors().fold(0.0, f64::max) / size]
}

fn check(exec: &Exec<'_>, found: &[f32], exact: &[f64], [mean, largest]: [f64; 2]) {
    let seen = distance(found, exact);
    assert!(seen[0] <= mean && seen[1] <= largest, "{seen:?}, {:?}", exec.isa);
}

#[test]
fn winograd_loses_little() {
    let s = shape(12, 512, 40, 1);
    let mut r = Random(11);
    let (input, weights) = (positive(&mut r, s.in_pixels() * s.in_channels), r.floats(s.weights()));
    let exact = direct(&s, &input, s.in_channels, &weights);
    everywhere(0, |exec| {
        let kernel = Winograd::new(exec.isa, exec.threads(), s);
        let scratch = Scratch::new(exec.threads(), kernel.scratch_floats()).unwrap();
        let mut packed = vec![0.0; kernel.packed_floats()];
        kernel.pack(None, &weights, &mut packed);
        let mut out = vec![0.0; exact.len()];
        let exec = exec.with_scratch(&scratch);
        kernel.run(&exec, &input, s.in_channels, &packed, &mut out, s.out_channels, &Epilogue::default());
        check(&exec, &out, &exact, [1.2e-6, 8e-6]);
    });
}

#[test]
fn long_sums_of_a_convolution_lose_little() {
    for dilation in [1, 2] {
        let s = shape(9, 512, 40, dilation);
        let mut r = Random(12);
        let (input, weights) = (positive(&mut r, s.in_pixels() * s.in_channels), r.floats(s.weights()));
        let exact = direct(&s, &input, s.in_channels, &weights);
        everywhere(SCRATCH, |exec| {
            let conv = Conv::new(exec.isa, exec.threads(), s);
            let mut packed = vec![0.0; conv.packed_floats()];
            conv.pack(None, &weights, &mut packed);
            let mut out = vec![0.0; exact.len()];
            conv.run(exec, &input, &packed, &mut out, s.out_channels, &Epilogue::default());
            check(exec, &out, &exact, [5e-7, 3e-6]);
        });
    }
}

#[test]
fn long_sums_of_a_product_lose_little() {
    let (n, k) = (40, 20_000);
    for m in [1, 3, 20] {
        let mut r = Random(13);
        let (a, b) = (positive(&mut r, m * k), r.floats(k * n));
        let at = |x: usize| (0..k).map(|i| f64::from(a[x / n * k + i]) * f64::from(b[i * n + x % n])).sum();
        let exact: Vec<f64> = (0..m * n).map(at).collect();
        everywhere(SCRATCH, |exec| {
            let gemm = Gemm::new(exec.isa, n, k);
            let mut packed = vec![0.0; gemm.packed_floats()];
            gemm.pack(None, &b, false, &mut packed);
            let mut out = vec![0.0; m * n];
            gemm.run(exec, m, &a, k, &packed, &mut out, n, &Epilogue::default());
            check(exec, &out, &exact, [6e-7, 3e-6]);
        });
    }
}
