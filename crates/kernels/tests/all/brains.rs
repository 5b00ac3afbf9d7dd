//! Kernels that read and write bf16 and compute in f32: what the kernels for floats give for the same numbers, rounded.

use crate::spatial_common::{Random, close, direct};
use carafe_kernels::cast::{Brain, brain_to_f32, f32_to_brain};
use carafe_kernels::eltwise::{Elements, EltOp, Instr, Program};
use carafe_kernels::reduce::{Reduce, Reduction};
use carafe_kernels::{
    Act, Conv, ConvShape, Depthwise, Epilogue, Exec, Isa, Pool, PoolKind, PoolOptions, PoolShape, Scratch, SpatialPool,
    TypedEpilogue, TypedOut, brain_bits,
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

fn brains(floats: &[f32]) -> Vec<Brain> {
    floats.iter().map(|x| f32_to_brain(*x)).collect()
}

fn floats(brains: &[Brain]) -> Vec<f32> {
    brains.iter().map(|x| brain_to_f32(*x)).collect()
}

#[test]
fn depthwise_convolutions_of_bf16_are_those_of_floats_rounded() {
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
        let input = brains(&random.floats(s.in_pixels() * (channels + gap)));
        let weights = random.floats(channels * kernel * kernel);
        let bias = random.floats(channels);
        each_exec(0, |exec| {
            let conv = Depthwise::new(exec.isa, exec.threads(), s);
            let mut packed = vec![0.0; conv.packed_floats()];
            conv.pack(&weights, &mut packed);
            let epilogue = Epilogue { bias: Some(&bias), act: Act::HSwish, ..Epilogue::default() };
            let (step, len) = (channels + gap, s.out_pixels() * (channels + gap));
            let mut wanted = vec![0.0; len];
            conv.run(exec, &floats(&input), step, &packed, &mut wanted, step, &epilogue);
            let mut found = vec![Brain(0); len];
            conv.run_brains(exec, (&input, step), &packed, (&mut found, step), &epilogue, [1.0, 0.0]);
            assert_eq!(found, brains(&wanted), "{s:?} {:?}", exec.isa);
            for act in [Act::Swish(1.0), Act::GeluErf, Act::Sigmoid] {
                assert!(Depthwise::does(act, [1.0, 0.0]));
                let epilogue = Epilogue { act, ..epilogue };
                let (mut wanted, mut found) = (vec![0.0; len], vec![Brain(0); len]);
                conv.run(exec, &floats(&input), step, &packed, &mut wanted, step, &epilogue);
                conv.run_brains(exec, (&input, step), &packed, (&mut found, step), &epilogue, [1.0, 0.0]);
                assert_eq!(found, brains(&wanted), "{act:?} {s:?} {:?}", exec.isa);
            }
            assert!(Depthwise::does(Act::HSwish, [0.5, -0.25]));
            conv.run_brains(exec, (&input, step), &packed, (&mut found, step), &epilogue, [0.5, -0.25]);
            for (x, y) in floats(&found).iter().zip(&wanted).filter(|(_, y)| **y != 0.0) {
                let y = y * 0.5 - 0.25;
                assert!((x - y).abs() <= 1e-6 + y.abs() / 256.0, "{x} {y}");
            }
        });
    }
}

#[test]
fn reductions_of_bf16_are_those_of_the_same_floats() {
    let mut random = Random::new(7);
    for (dims, axes) in [
        (vec![2, 9, 7, 40], vec![1, 2]),
        (vec![3, 150], vec![1]),
        (vec![1, 64, 64, 33], vec![1, 2]),
        (vec![5, 6, 3], vec![0, 2]),
        (vec![70_000], vec![0]),
    ] {
        let x = brains(&random.floats(dims.iter().product()));
        for op in [Reduction::Mean, Reduction::Max, Reduction::L2, Reduction::Prod] {
            let reduce = Reduce::new(op, &dims, &axes);
            each_exec(0, |exec| {
                let (mut wanted, mut found) = (vec![0.0; reduce.out_len()], vec![1.0; reduce.out_len()]);
                reduce.run(exec, &floats(&x), &mut wanted);
                reduce.run_brains(exec, &x, &mut found);
                assert_eq!(found, wanted, "{op:?} of {dims:?} over {axes:?} {:?}", exec.isa);
            });
        }
    }
}

#[test]
fn pools_of_bf16_are_those_of_floats_rounded() {
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
        let input = brains(&Random::new(channels).floats(2 * size[0] * size[1] * channels));
        for kind in [PoolKind::Max, PoolKind::Mean] {
            each_exec(size[1] * channels, |exec| {
                let pool = SpatialPool::new(exec.isa, exec.threads(), s, kind);
                let len = 2 * out[0] * out[1] * channels;
                let (mut wanted, mut found) = (vec![0.0; len], vec![Brain(0); len]);
                pool.run(exec, &floats(&input), channels, &mut wanted, channels);
                pool.run_brains(exec, (&input, channels), (&mut found, channels));
                assert_eq!(found, brains(&wanted), "{kind:?} {s:?} {:?}", exec.isa);
            });
        }
    }
}

#[test]
fn elementwise_programs_take_bf16_for_any_input_like_the_output() {
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
    for (out, b, c) in shapes {
        let mut random = Random::new(out[3]);
        let data = [out, b, c].map(|s| floats(&brains(&random.floats(s.iter().product()))));
        let like: Vec<usize> = [out, b, c].iter().enumerate().filter(|(_, s)| **s == out).map(|(i, _)| i).collect();
        for (inputs, output) in [(vec![0], true), (like.clone(), true), (like, false), (vec![], true)] {
            each_exec(0, |exec| {
                let elements = Elements::new(program(), &out, &[&out, &b, &c]);
                let mut wanted = vec![0.0; elements.len()];
                elements.run(exec, &[&data[0], &data[1], &data[2]], &mut [&mut wanted]);
                let typed = elements.of_brains(&inputs, output);
                let halves = [0, 1, 2].map(|i| brains(&data[i]));
                let bytes = [0, 1, 2].map(|i| match inputs.contains(&i) {
                    true => bytemuck::cast_slice::<Brain, u8>(&halves[i]),
                    false => bytemuck::cast_slice::<f32, u8>(&data[i]),
                });
                let (mut rounded, mut whole) = (vec![Brain(0); wanted.len()], vec![0f32; wanted.len()]);
                match output {
                    true => typed.run_brains(exec, &bytes, bytemuck::cast_slice_mut(&mut rounded)),
                    false => typed.run_brains(exec, &bytes, bytemuck::cast_slice_mut(&mut whole)),
                }
                let what = format!("{out:?} {b:?} {c:?} {inputs:?} {:?}", exec.isa);
                match output {
                    true => assert_eq!(rounded, brains(&wanted), "{what}"),
                    false => assert_eq!(whole, wanted, "{what}"),
                }
            });
        }
    }
}

#[test]
fn planes_are_convolved_in_pairs() {
    for (channels, stride) in [(1, 1), (2, 1), (3, 2), (4, 1), (3, 1)] {
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
            |n: usize| -> Vec<f32> { random.floats(n).into_iter().map(|x| brain_to_f32(f32_to_brain(x))).collect() };
        let (pixels, plane) = (2 * 9 * 37, 9 * 37);
        let planes = numbers(pixels * channels);
        let weights = numbers(21 * channels * 15);
        let at = |i: usize| (i / channels / plane * channels + i % channels) * plane + i / channels % plane;
        let last: Vec<f32> = (0..planes.len()).map(|i| planes[at(i)]).collect();
        let wanted = direct(&shape, &last, channels, &weights);
        each_exec(1 << 16, |exec| {
            let conv = Conv::of_planes(exec.isa, exec.threads(), shape);
            let mut packed = vec![0.0; conv.packed_floats()];
            conv.pack_bf16(&brain_bits(&weights), &mut packed);
            let mut out = vec![f32::NAN; wanted.len()];
            conv.run_typed(exec, &planes, &packed, TypedOut::F32(&mut out), 21, &TypedEpilogue::default());
            close(&out, &wanted, 1e-5, &format!("{channels} planes, {:?}", exec.isa));
        });
    }
}
