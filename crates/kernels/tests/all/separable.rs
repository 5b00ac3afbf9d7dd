//! Depthwise and pointwise convolutions in one go, against the kernels one after the other.

use crate::spatial_common::Random;
use carafe_kernels::{
    Act, Behind, ConvShape, Depthwise, Epilogue, Exec, Gemm, Isa, Pool, PoolKind, PoolOptions, PoolShape, Scratch,
    Separable, SpatialPool, Stage,
};

/// Height and width, channels before, between and behind, stride, batch.
type Case = ([usize; 2], usize, usize, usize, usize, usize);

const CASES: [Case; 5] = [
    ([9, 7], 4, 5, 3, 1, 2),
    ([33, 40], 7, 37, 50, 2, 1),
    ([120, 64], 16, 32, 16, 1, 1),
    ([1, 1], 2, 1, 1, 1, 3),
    ([101, 96], 3, 96, 24, 2, 1),
];

fn shape_of(&(size, _, channels, _, stride, batch): &Case) -> ConvShape {
    ConvShape {
        batch,
        in_spatial: [1, size[0], size[1]],
        in_channels: channels,
        out_channels: channels,
        kernel: [1, 3, 3],
        stride: [1, stride, stride],
        dilation: [1; 3],
        pad_begin: [0, 1, 1],
        pad_end: [0, 1, 1],
        groups: channels,
    }
}

/// Compares one go with one kernel after the other, on all levels, with the pointwise convolutions that are wanted.
fn check(case: Case, before: bool, behind: bool, act: Act) {
    let (_, ins, channels, outs, ..) = case;
    let shape = shape_of(&case);
    let ins = if before { ins } else { channels };
    let outs = if behind { outs } else { channels };
    let (in_pixels, pixels) = (shape.in_pixels(), shape.out_pixels());
    let mut random = Random::new(channels);
    // Pixels of both images are further apart than their channels.
    let (in_stride, out_stride) = (ins + 3, outs + 2);
    let input = random.floats(in_pixels * in_stride);
    let (spread, taps) = (random.floats(ins * channels), random.floats(channels * 9));
    let mixed = random.floats(channels * outs);
    let (bias, add) = (random.floats(channels), random.floats(pixels * outs));
    let between = Epilogue { bias: Some(&bias), act, ..Epilogue::default() };
    let end = Epilogue { add: Some((&add, outs)), act: Act::Sigmoid, ..Epilogue::default() };
    for isa in Isa::available() {
        for threads in [1, 3] {
            let pool = Pool::new(PoolOptions::threads(threads));
            let kernel = Separable::new(
                isa,
                threads,
                shape,
                before.then_some(ins),
                if behind { Behind::Mixed(outs) } else { Behind::Nothing },
            );
            let depthwise = Depthwise::new(isa, threads, shape);
            let [first, last] = [Gemm::new(isa, channels, ins), Gemm::new(isa, outs, channels)];
            let floats = kernel.scratch_floats().max(first.scratch_floats()).max(last.scratch_floats());
            let scratch = Scratch::new(threads, floats).unwrap();
            let exec = Exec::new(&pool, isa, &scratch);
            let sizes = [first.packed_floats(), depthwise.packed_floats(), last.packed_floats()];
            let mut packed = sizes.map(|floats| vec![0.0; floats]);
            first.pack(None, &spread, true, &mut packed[0]);
            depthwise.pack(&taps, &mut packed[1]);
            last.pack(None, &mixed, true, &mut packed[2]);
            let mut wide = vec![0.0; in_pixels * channels];
            match before {
                true => first.run(&exec, in_pixels, &input, in_stride, &packed[0], &mut wide, channels, &between),
                false => {
                    let pixels = input.chunks_exact(in_stride).flat_map(|pixel| &pixel[..channels]);
                    wide = pixels.copied().collect();
                }
            }
            let mut wanted = vec![0.0; pixels * channels];
            depthwise.run(&exec, &wide, channels, &packed[1], &mut wanted, channels, &between);
            if behind {
                let inner = std::mem::replace(&mut wanted, vec![0.0; pixels * outs]);
                last.run(&exec, pixels, &inner, channels, &packed[2], &mut wanted, outs, &end);
            }
            let stages = [
                before.then_some(Stage { weights: &packed[0], epilogue: &between }),
                Some(Stage { weights: &packed[1], epilogue: &between }),
                behind.then_some(Stage { weights: &packed[2], epilogue: &end }),
            ];
            let mut out = vec![f32::NAN; pixels * out_stride];
            kernel.run(&exec, (&input, in_stride), stages, (&mut out, out_stride));
            for (i, w) in wanted.iter().enumerate() {
                let y = out[i / outs * out_stride + i % outs];
                assert!((y - w).abs() < 1e-4, "{isa:?} {threads} {shape:?}: {y} is not {w} at {i}");
            }
        }
    }
}

#[test]
fn depthwise_and_pointwise_in_one_go_give_what_two_kernels_give() {
    CASES.into_iter().for_each(|case| check(case, false, true, Act::Relu));
}

#[test]
fn pointwise_and_depthwise_in_one_go_give_what_two_kernels_give() {
    CASES.into_iter().for_each(|case| check(case, true, false, Act::Relu));
}

#[test]
fn all_three_in_one_go_give_what_three_kernels_give() {
    CASES.into_iter().for_each(|case| check(case, true, true, Act::HSwish));
}

/// The same with a pool behind in place of a convolution.
fn check_pooled(case: Case, before: bool, window: [usize; 2]) {
    let (_, ins, channels, ..) = case;
    let shape = shape_of(&case);
    let ins = if before { ins } else { channels };
    let [_, height, width] = shape.out_spatial();
    let pooled = [1, height / window[0], width / window[1]];
    let (in_pixels, pixels) = (shape.in_pixels(), shape.batch * pooled[1] * pooled[2]);
    let mut random = Random::new(channels);
    let (in_stride, out_stride) = (ins + 3, channels + 2);
    let input = random.floats(in_pixels * in_stride);
    let (spread, taps, bias) = (random.floats(ins * channels), random.floats(channels * 9), random.floats(channels));
    let between = Epilogue { bias: Some(&bias), act: Act::Relu, ..Epilogue::default() };
    for (isa, threads) in Isa::available().flat_map(|isa| [(isa, 1), (isa, 3)]) {
        let pool = Pool::new(PoolOptions::threads(threads));
        let behind = |behind| Separable::new(isa, threads, shape, before.then_some(ins), behind);
        let (plain, kernel) = (behind(Behind::Nothing), behind(Behind::Pooled(window)));
        let scratch = Scratch::new(threads, plain.scratch_floats().max(kernel.scratch_floats())).unwrap();
        let exec = Exec::new(&pool, isa, &scratch);
        let mut packed = [kernel.spread().map_or(0, Gemm::packed_floats), kernel.depthwise().packed_floats()]
            .map(|floats| vec![0.0; floats]);
        if let Some(gemm) = kernel.spread() {
            gemm.pack(None, &spread, true, &mut packed[0]);
        }
        kernel.depthwise().pack(&taps, &mut packed[1]);
        let stages = [
            before.then_some(Stage { weights: &packed[0], epilogue: &between }),
            Some(Stage { weights: &packed[1], epilogue: &between }),
            None,
        ];
        let mut whole = vec![0.0; shape.out_pixels() * channels];
        plain.run(&exec, (&input, in_stride), stages, (&mut whole, channels));
        let kernel_of = [1, window[0], window[1]];
        let pool_shape = PoolShape {
            batch: shape.batch,
            channels,
            in_spatial: shape.out_spatial(),
            out_spatial: pooled,
            kernel: kernel_of,
            stride: kernel_of,
            dilation: [1; 3],
            pad_begin: [0; 3],
        };
        let mut wanted = vec![0.0; pixels * channels];
        SpatialPool::new(isa, threads, pool_shape, PoolKind::Max).run(&exec, &whole, channels, &mut wanted, channels);
        let mut out = vec![f32::NAN; pixels * out_stride];
        kernel.run(&exec, (&input, in_stride), stages, (&mut out, out_stride));
        for (i, w) in wanted.iter().enumerate() {
            let y = out[i / channels * out_stride + i % channels];
            assert!((y - w).abs() < 1e-5, "{isa:?} {threads} {shape:?} {window:?}: {y} is not {w} at {i}");
        }
    }
}

#[test]
fn a_pool_in_one_go_gives_what_two_kernels_give() {
    for case in CASES {
        for window in [[2, 2], [3, 1], [1, 2]] {
            check_pooled(case, false, window);
            check_pooled(case, true, window);
        }
    }
}

#[test]
fn a_function_of_many_instructions_may_stand_between() {
    check(CASES[1], true, true, Act::Swish(1.0));
    check(CASES[1], true, false, Act::GeluErf);
}
