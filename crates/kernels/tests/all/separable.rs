//! A depthwise and a pointwise convolution in one go, against the two kernels one after the other.

use crate::spatial_common::Random;
use carafe_kernels::{Act, ConvShape, Depthwise, Epilogue, Exec, Gemm, Isa, Pool, PoolOptions, Scratch, Separable};

#[test]
fn one_go_gives_what_two_kernels_give() {
    for (size, channels, out_channels, stride, batch) in
        [([9, 7], 5, 3, 1, 2), ([33, 40], 37, 50, 2, 1), ([120, 64], 32, 16, 1, 1), ([1, 1], 1, 1, 1, 3)]
    {
        let shape = ConvShape {
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
        };
        let pixels = batch * shape.out_spatial().iter().product::<usize>();
        let mut random = Random::new(channels);
        let input = random.floats(batch * size[0] * size[1] * channels);
        let (taps, weights) = (random.floats(channels * 9), random.floats(channels * out_channels));
        let (bias, add) = (random.floats(channels), random.floats(pixels * out_channels));
        let between = Epilogue { bias: Some(&bias), act: Act::Relu, ..Epilogue::default() };
        let end = Epilogue { add: Some((&add, out_channels)), act: Act::Sigmoid, ..Epilogue::default() };
        for isa in Isa::available() {
            for threads in [1, 3] {
                let pool = Pool::new(PoolOptions::threads(threads));
                let kernel = Separable::new(isa, threads, shape, out_channels);
                let (first, second) = (Depthwise::new(isa, threads, shape), Gemm::new(isa, out_channels, channels));
                let floats = kernel.scratch_floats().max(second.scratch_floats());
                let scratch = Scratch::new(threads, floats).unwrap();
                let exec = Exec::new(&pool, isa, &scratch);
                let mut packed = [vec![0.0; first.packed_floats()], vec![0.0; second.packed_floats()]];
                first.pack(&taps, &mut packed[0]);
                second.pack(None, &weights, true, &mut packed[1]);
                let (mut inner, mut wanted) = (vec![0.0; pixels * channels], vec![0.0; pixels * out_channels]);
                first.run(&exec, &input, channels, &packed[0], &mut inner, channels, &between);
                second.run(&exec, pixels, &inner, channels, &packed[1], &mut wanted, out_channels, &end);
                let mut out = vec![f32::NAN; pixels * out_channels];
                kernel.run(&exec, &input, [&packed[0], &packed[1]], &between, &mut out, &end);
                for (i, (y, w)) in out.iter().zip(&wanted).enumerate() {
                    assert!((y - w).abs() < 1e-5, "{isa:?} {threads} {shape:?}: {y} is not {w} at {i}");
                }
            }
        }
    }
}

#[test]
fn only_cheap_functions_stand_between() {
    assert!(Separable::does(Act::None) && Separable::does(Act::HSwish) && !Separable::does(Act::GeluErf));
}
