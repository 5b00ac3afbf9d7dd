//! Depthwise convolution against plain loops.

use crate::spatial_common::{Random, act, close, direct};
use carafe_kernels::{Act, ConvShape, Depthwise, Epilogue, Exec, Isa, Pool, PoolOptions, Scratch};

fn shape(size: [usize; 3], channels: usize, kernel: [usize; 3]) -> ConvShape {
    ConvShape {
        batch: 1,
        in_spatial: size,
        in_channels: channels,
        out_channels: channels,
        kernel,
        stride: [1; 3],
        dilation: [1; 3],
        pad_begin: [0; 3],
        pad_end: [0; 3],
        groups: channels,
    }
}

/// Runs at every level with one and three threads, with gaps between pixels, and compares.
fn check(s: ConvShape, epilogue: Act, add_last: Option<bool>) {
    let mut random = Random::new(s.in_channels + s.in_spatial[2]);
    let (c, gap) = (s.in_channels, 3);
    let pixels = |v: [usize; 3]| s.batch * v.iter().product::<usize>();
    let input = random.floats(pixels(s.in_spatial) * (c + gap));
    let weights = random.floats(c * s.kernel.iter().product::<usize>());
    let bias = random.floats(c);
    let out_pixels = pixels(s.out_spatial());
    let add = random.floats(out_pixels * c);
    let mut wanted = direct(&s, &input, c + gap, &weights);
    for (i, y) in wanted.iter_mut().enumerate() {
        *y += bias[i % c] as f64;
        if add_last == Some(false) {
            *y += add[i] as f64;
        }
        *y = act(epilogue, *y);
        if add_last == Some(true) {
            *y += add[i] as f64;
        }
    }
    for isa in Isa::available() {
        for threads in [1, 3] {
            let pool = Pool::new(PoolOptions::threads(threads));
            let kernel = Depthwise::new(isa, threads, s);
            let scratch = Scratch::new(threads, kernel.scratch_floats()).unwrap();
            let mut packed = vec![0.0; kernel.packed_floats()];
            kernel.pack(&weights, &mut packed);
            let mut out = vec![f32::NAN; out_pixels * (c + gap)];
            let epilogue = Epilogue {
                bias: Some(&bias),
                add: add_last.map(|_| (&add[..], c)),
                add_last: add_last.unwrap_or(false),
                act: epilogue,
                finish: None,
                ..Epilogue::default()
            };
            kernel.run(&Exec::new(&pool, isa, &scratch), &input, c + gap, &packed, &mut out, c + gap, &epilogue);
            for (pixel, out) in out.chunks_exact(c + gap).enumerate() {
                assert!(out[c..].iter().all(|x| x.is_nan()), "a gap was written to");
                close(&out[..c], &wanted[pixel * c..][..c], 1e-5, &format!("{isa:?} {threads} {s:?} pixel {pixel}"));
            }
        }
    }
}

#[test]
fn square_kernels_agree_with_plain_loops() {
    for k in [3, 5] {
        for stride in [1, 2] {
            for (h, w) in [(7, 7), (14, 14), (9, 21), (1, 1), (2, 3), (11, 40), (6, 4)] {
                for (channels, pads) in [(32, (k / 2, k / 2)), (19, (0, 1)), (1, (k - 1, 0)), (96, (k / 2, k / 2))] {
                    let mut s = shape([1, h, w], channels, [1, k, k]);
                    s.stride = [1, stride, stride];
                    s.pad_begin = [0, pads.0, pads.0];
                    s.pad_end = [0, pads.1, pads.1];
                    check(s, Act::Relu, None);
                }
            }
        }
    }
}

#[test]
fn any_kernel_agrees_with_plain_loops() {
    for (size, kernel, stride, dilation) in [
        ([1, 1, 33], [1, 1, 15], [1, 1, 1], [1, 1, 1]),
        ([1, 30, 5], [1, 7, 1], [1, 2, 1], [1, 1, 1]),
        ([1, 20, 21], [1, 3, 3], [1, 1, 1], [1, 2, 3]),
        ([5, 6, 17], [3, 3, 3], [1, 2, 2], [1, 1, 1]),
        ([4, 4, 4], [2, 3, 5], [2, 1, 3], [2, 1, 1]),
        ([1, 9, 9], [1, 7, 7], [1, 1, 1], [1, 1, 1]),
        ([1, 4, 4], [1, 2, 2], [1, 3, 3], [1, 1, 1]),
    ] {
        for channels in [5, 16, 37] {
            let mut s = shape(size, channels, kernel);
            (s.batch, s.stride, s.dilation) = (2, stride, dilation);
            s.pad_begin = [0, 1, 2].map(|i| kernel[i] / 2);
            s.pad_end = [0, 1, 2].map(|i| (kernel[i] - 1) / 2);
            check(s, Act::None, None);
        }
    }
}

#[test]
fn functions_and_sums_come_in_their_order() {
    let mut s = shape([1, 5, 37], 24, [1, 3, 3]);
    (s.pad_begin, s.pad_end, s.batch) = ([0, 1, 1], [0, 1, 1], 2);
    for act in [
        Act::None,
        Act::Relu,
        Act::Clamp { min: -0.5, max: 0.25 },
        Act::LeakyRelu(0.1),
        Act::HSwish,
        Act::HSigmoid,
        Act::HardSigmoid { alpha: 0.3, beta: 0.4 },
        Act::Swish(1.0),
        Act::Sigmoid,
    ] {
        for add_last in [None, Some(false), Some(true)] {
            check(s, act, add_last);
        }
    }
}

#[test]
fn a_kernel_larger_than_the_padded_image_gives_nothing() {
    check(shape([1, 2, 2], 8, [1, 3, 3]), Act::None, None);
}
