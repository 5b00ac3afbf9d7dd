//! Kernels that read and write numbers of 16 bits and compute in f32: what the kernels for floats give for the same numbers, rounded.

use crate::spatial_common::{Random, close, direct};
use carafe_kernels::eltwise::{Elements, EltOp, Instr, Program};
use carafe_kernels::norm::{NormKind, RowNorm, RowsIn, RowsOut};
use carafe_kernels::reduce::{Reduce, Reduction};
use carafe_kernels::{
    Act, Conv, ConvShape, Depthwise, Epilogue, Exec, Halves, Isa, Pool, PoolKind, PoolOptions, PoolShape, Scratch,
    SpatialPool, TypedEpilogue, TypedOut,
};

/// Calls `f` for every level and for 1 and 3 threads.
fn each_exec(scratch: usize, f: impl Fn(&Exec<'_>)) {
    for isa in Isa::available() {
        for threads in [1, 3] {
            let (pool, scratch) = (Pool::new(PoolOptions::threads(threads)), Scratch::new(threads, scratch).unwrap());
            f(&Exec::new(&pool, isa, &scratch));
        }
    }
}

const BOTH: [Halves; 2] = [Halves::Bf16, Halves::F16];

fn floats(halves: Halves, bits: &[u16]) -> Vec<f32> {
    bits.iter().map(|x| halves.wide(*x)).collect()
}

#[test]
fn depthwise_convolutions_of_16_bits_are_those_of_floats_rounded() {
    for (size, channels, kernel, stride) in [
        ([9, 14], 32, 3, 1),
        ([5, 37], 32, 3, 1),
        ([8, 7], 19, 3, 2),
        ([11, 12], 48, 5, 1),
        ([6, 21], 5, 7, 2),
        ([3, 3], 1, 5, 1),
    ] {
        let pad = [0, kernel / 2, kernel / 2];
        let s = ConvShape {
            batch: 2,
            in_spatial: [1, size[0], size[1]],
            in_channels: channels,
            out_channels: channels,
            kernel: [1, kernel, kernel],
            stride: [1, stride, stride],
            dilation: [1; 3],
            pad_begin: pad,
            pad_end: pad,
            groups: channels,
        };
        let (mut random, gap) = (Random::new(channels), 3);
        let numbers = random.floats(s.in_pixels() * (channels + gap));
        let weights = random.floats(channels * kernel * kernel);
        let bias = random.floats(channels);
        each_exec(0, |exec| {
            for halves in BOTH {
                let input = halves.all_bits(&numbers);
                let conv = Depthwise::new(exec.isa, exec.threads(), s);
                let mut packed = vec![0.0; conv.packed_floats()];
                conv.pack(&weights, &mut packed);
                let epilogue = Epilogue { bias: Some(&bias), act: Act::HSwish, ..Epilogue::default() };
                let (step, len) = (channels + gap, s.out_pixels() * (channels + gap));
                let wide = floats(halves, &input);
                let (mut wanted, mut found) = (vec![0.0; len], vec![0; len]);
                let mut run = |found: &mut [u16], act: Act, after: [f32; 2]| {
                    let epilogue = Epilogue { act, ..epilogue };
                    conv.run(exec, &wide, step, &packed, &mut wanted, step, &epilogue);
                    conv.run_halves(exec, halves, (&input, step), &packed, (found, step), &epilogue, after);
                    wanted.clone()
                };
                for act in [Act::Swish(1.0), Act::GeluErf, Act::Sigmoid, Act::HSwish] {
                    assert!(Depthwise::does(act, [1.0, 0.0]));
                    found.fill(0);
                    let wanted = run(&mut found, act, [1.0, 0.0]);
                    assert_eq!(found, halves.all_bits(&wanted), "{act:?} {s:?} {halves:?} {:?}", exec.isa);
                }
                assert!(Depthwise::does(Act::HSwish, [0.5, -0.25]));
                let wanted = run(&mut found, Act::HSwish, [0.5, -0.25]);
                for (x, y) in floats(halves, &found).iter().zip(&wanted).filter(|(_, y)| **y != 0.0) {
                    let y = y * 0.5 - 0.25;
                    assert!((x - y).abs() <= 1e-6 + y.abs() / 256.0, "{x} {y}");
                }
            }
        });
    }
}

#[test]
fn reductions_of_16_bits_are_those_of_the_same_floats() {
    let mut random = Random::new(7);
    for (dims, axes) in [
        (vec![2, 9, 7, 40], vec![1, 2]),
        (vec![3, 150], vec![1]),
        (vec![1, 64, 64, 33], vec![1, 2]),
        (vec![5, 6, 3], vec![0, 2]),
        (vec![70_000], vec![0]),
    ] {
        let numbers = random.floats(dims.iter().product());
        for op in [Reduction::Mean, Reduction::Max, Reduction::L2, Reduction::Prod] {
            let reduce = Reduce::new(op, &dims, &axes);
            each_exec(0, |exec| {
                for halves in BOTH {
                    let x = halves.all_bits(&numbers);
                    let (mut wanted, mut found) = (vec![0.0; reduce.out_len()], vec![1.0; reduce.out_len()]);
                    reduce.run(exec, &floats(halves, &x), &mut wanted);
                    reduce.run_halves(exec, halves, &x, &mut found);
                    assert_eq!(found, wanted, "{op:?} of {dims:?} over {axes:?} {halves:?} {:?}", exec.isa);
                }
            });
        }
    }
}

#[test]
fn rows_of_16_bits_are_normalised_as_those_of_floats() {
    let (rows, len) = (9, 77);
    let numbers = Random::new(13).floats(rows * len);
    let (gamma, beta) = (Random::new(5).floats(len), Random::new(6).floats(len));
    let affine = (Some(&gamma[..]), Some(&beta[..]));
    for kind in [NormKind::Variance { eps: 1e-6 }, NormKind::Rms { eps: 1e-6 }] {
        each_exec(0, |exec| {
            let norm = RowNorm::new(kind, rows, len);
            for halves in BOTH {
                let x = halves.all_bits(&numbers);
                let wide = floats(halves, &x);
                let (mut wanted, mut found) = (vec![0.0; rows * len], vec![1.0; rows * len]);
                norm.run(exec, &wide, affine.0, affine.1, &mut wanted);
                norm.run_halves(exec, RowsIn::Half(halves, &x), affine.0, affine.1, RowsOut::F32(&mut found));
                assert_eq!(found, wanted, "{kind:?} of {halves:?} {:?}", exec.isa);
                let mut bits = vec![0; rows * len];
                for from in [RowsIn::F32(&wide), RowsIn::Half(halves, &x)] {
                    bits.fill(0);
                    norm.run_halves(exec, from, affine.0, affine.1, RowsOut::Half(halves, &mut bits));
                    assert_eq!(bits, halves.all_bits(&wanted), "{kind:?} to {halves:?} {:?}", exec.isa);
                }
            }
        });
    }
}

#[test]
fn pools_of_16_bits_are_those_of_floats_rounded() {
    for (size, channels, kernel, stride) in
        [([12, 13], 64, 3, 2), ([7, 7], 19, 7, 1), ([9, 8], 5, 2, 2), ([8, 23], 35, 2, 2), ([20, 20], 33, 5, 1)]
    {
        let out = [0, 1].map(|i| (size[i] - kernel) / stride + 1);
        let s = PoolShape {
            batch: 2,
            channels,
            in_spatial: [1, size[0], size[1]],
            out_spatial: [1, out[0], out[1]],
            kernel: [1, kernel, kernel],
            stride: [1, stride, stride],
            dilation: [1; 3],
            pad_begin: [0; 3],
        };
        let numbers = Random::new(channels).floats(2 * size[0] * size[1] * channels);
        for kind in [PoolKind::Max, PoolKind::Mean] {
            each_exec(size[1] * channels, |exec| {
                let pool = SpatialPool::new(exec.isa, exec.threads(), s, kind);
                let len = 2 * out[0] * out[1] * channels;
                for halves in BOTH {
                    let input = halves.all_bits(&numbers);
                    let (mut wanted, mut found) = (vec![0.0; len], vec![0; len]);
                    pool.run(exec, &floats(halves, &input), channels, &mut wanted, channels);
                    pool.run_halves(exec, halves, (&input, channels), (&mut found, channels));
                    assert_eq!(found, halves.all_bits(&wanted), "{kind:?} {s:?} {halves:?} {:?}", exec.isa);
                }
            });
        }
    }
}

#[test]
fn elementwise_programs_take_16_bits_for_any_input_like_the_output() {
    // (a * b + c), and the larger of that and a.
    let program = || {
        let mul = Instr::binary(EltOp::Mul, 3, 0u8, 1u8);
        let add = Instr::binary(EltOp::Add, 4, 3u8, 2u8);
        Program::new(3, vec![mul, add, Instr::binary(EltOp::Max, 5, 4u8, 0u8)], vec![5])
    };
    let shapes: [([usize; 4], [usize; 4], [usize; 4]); 7] = [
        ([2, 5, 7, 16], [2, 5, 7, 16], [1, 1, 1, 16]),
        ([1, 9, 9, 24], [1, 1, 1, 24], [1, 9, 9, 24]),
        ([2, 3, 5, 7], [2, 1, 5, 1], [1, 3, 1, 7]),
        ([1, 1, 1, 3000], [1, 1, 1, 3000], [1, 1, 1, 1]),
        ([3, 1, 4, 33], [3, 1, 1, 33], [1, 1, 4, 1]),
        ([2, 2, 2, 3], [1, 2, 1, 3], [2, 2, 2, 3]),
        ([4, 6, 5, 1], [4, 1, 5, 1], [1, 6, 1, 1]),
    ];
    for ((out, b, c), kind) in shapes.into_iter().flat_map(|s| BOTH.map(|kind| (s, kind))) {
        let mut random = Random::new(out[3]);
        let data = [out, b, c].map(|s| floats(kind, &kind.all_bits(&random.floats(s.iter().product()))));
        let like: Vec<usize> = [out, b, c].iter().enumerate().filter(|(_, s)| **s == out).map(|(i, _)| i).collect();
        for (inputs, output) in [(vec![0], true), (like.clone(), true), (like, false), (vec![], true)] {
            each_exec(0, |exec| {
                let elements = Elements::new(program(), &out, &[&out, &b, &c]);
                let mut wanted = vec![0.0; elements.len()];
                elements.run(exec, &[&data[0], &data[1], &data[2]], &mut [&mut wanted]);
                let typed = elements.of_halves(kind, &inputs, output);
                let halves = [0, 1, 2].map(|i| kind.all_bits(&data[i]));
                let bytes = [0, 1, 2].map(|i| match inputs.contains(&i) {
                    true => bytemuck::cast_slice::<u16, u8>(&halves[i]),
                    false => bytemuck::cast_slice::<f32, u8>(&data[i]),
                });
                let (mut rounded, mut whole) = (vec![0u16; wanted.len()], vec![0f32; wanted.len()]);
                match output {
                    true => typed.run_halves(exec, &bytes, bytemuck::cast_slice_mut(&mut rounded)),
                    false => typed.run_halves(exec, &bytes, bytemuck::cast_slice_mut(&mut whole)),
                }
                let what = format!("{out:?} {b:?} {c:?} {inputs:?} {kind:?} {:?}", exec.isa);
                match output {
                    true => assert_eq!(rounded, kind.all_bits(&wanted), "{what}"),
                    false => assert_eq!(whole, wanted, "{what}"),
                }
            });
        }
    }
}

#[test]
fn planes_are_convolved_in_pairs() {
    let cases = [(1, 1), (2, 1), (3, 2), (4, 1), (3, 1)];
    for ((channels, stride), halves) in cases.into_iter().flat_map(|case| [(case, Halves::Bf16), (case, Halves::F16)]) {
        let shape = ConvShape {
            batch: 2,
            in_spatial: [1, 9, 37],
            in_channels: channels,
            out_channels: 21,
            kernel: [1, 3, 5],
            stride: [1, stride, stride],
            dilation: [1; 3],
            pad_begin: [0, 1, 2],
            pad_end: [0, 1, 2],
            groups: 1,
        };
        let mut random = Random::new(channels);
        let mut numbers =
            |n: usize| -> Vec<f32> { random.floats(n).into_iter().map(|x| halves.wide(halves.bits(x))).collect() };
        let (pixels, plane) = (2 * 9 * 37, 9 * 37);
        let planes = numbers(pixels * channels);
        let weights = numbers(21 * channels * 15);
        let at = |i: usize| (i / channels / plane * channels + i % channels) * plane + i / channels % plane;
        let last: Vec<f32> = (0..planes.len()).map(|i| planes[at(i)]).collect();
        let wanted = direct(&shape, &last, channels, &weights);
        each_exec(1 << 16, |exec| {
            let conv = Conv::of_planes(exec.isa, exec.threads(), shape, halves);
            let mut packed = vec![0.0; conv.packed_floats()];
            conv.pack_halves(&halves.all_bits(&weights), &mut packed);
            let mut out = vec![f32::NAN; wanted.len()];
            conv.run_typed(exec, &planes, &packed, TypedOut::F32(&mut out), 21, &TypedEpilogue::default());
            close(&out, &wanted, 1e-5, &format!("{channels} planes of {halves:?}, {:?}", exec.isa));
        });
    }
}
