//! Transposed convolution against plain loops.

use crate::spatial_common::{Random, act, close};
use carafe_kernels::{
    Act, Deconv, DeconvCells, DeconvShape, Epilogue, Exec, Halves, Isa, Numbers, Pool, PoolOptions, Quantizer, Scratch,
    TouchingDeconv, TypedEpilogue, TypedOut,
};

fn plain(s: &DeconvShape, input: &[f32], stride: usize, weights: &[f32]) -> Vec<f64> {
    let (ins, outs) = (s.in_channels / s.groups, s.out_channels / s.groups);
    let taps: usize = s.kernel.iter().product();
    let (from, to) = (s.in_spatial, s.out_spatial);
    let mut result = vec![0.0; s.batch * to.iter().product::<usize>() * s.out_channels];
    for i in 0..s.batch * from.iter().product::<usize>() {
        let at = [i / from[2] / from[1] % from[0], i / from[2] % from[1], i % from[2]];
        let batch = i / from.iter().product::<usize>();
        for tap in 0..taps {
            let k = [tap / s.kernel[2] / s.kernel[1], tap / s.kernel[2] % s.kernel[1], tap % s.kernel[2]];
            let p = [0, 1, 2].map(|i| (at[i] * s.stride[i] + k[i] * s.dilation[i]).wrapping_sub(s.pad_begin[i]));
            if (0..3).any(|i| p[i] >= to[i]) {
                continue;
            }
            let pixel = ((batch * to[0] + p[0]) * to[1] + p[1]) * to[2] + p[2];
            for c in 0..s.in_channels {
                for o in 0..outs {
                    let y = &mut result[pixel * s.out_channels + c / ins * outs + o];
                    *y += input[i * stride + c] as f64 * weights[(c * outs + o) * taps + tap] as f64;
                }
            }
        }
    }
    result
}

/// Runs at every level with one and three threads, with gaps between pixels, and compares.
fn check(s: DeconvShape, function: Act, add_last: Option<bool>) {
    let mut random = Random::new(s.in_channels + s.in_spatial[2]);
    let (ins, outs, gap) = (s.in_channels, s.out_channels, 2);
    let input = random.floats(s.batch * s.in_spatial.iter().product::<usize>() * (ins + gap));
    let weights = random.floats(ins * outs / s.groups * s.kernel.iter().product::<usize>());
    let bias = random.floats(outs);
    let pixels = s.batch * s.out_spatial.iter().product::<usize>();
    let add = random.floats(pixels * outs);
    let mut wanted = plain(&s, &input, ins + gap, &weights);
    for (i, y) in wanted.iter_mut().enumerate() {
        *y += bias[i % outs] as f64;
        *y += if add_last == Some(false) { add[i] as f64 } else { 0.0 };
        *y = act(function, *y);
        *y += if add_last == Some(true) { add[i] as f64 } else { 0.0 };
    }
    for isa in Isa::available() {
        for threads in [1, 3] {
            let pool = Pool::new(PoolOptions::threads(threads));
            let kernel = Deconv::new(isa, threads, s);
            let scratch = Scratch::new(threads, kernel.scratch_floats()).unwrap();
            let mut packed = vec![0.0; kernel.packed_floats()];
            kernel.pack(&weights, &mut packed);
            let mut out = vec![f32::NAN; pixels * (outs + gap)];
            let epilogue = Epilogue {
                bias: Some(&bias),
                add: add_last.map(|_| (&add[..], outs)),
                add_last: add_last.unwrap_or(false),
                act: function,
                finish: None,
                ..Epilogue::default()
            };
            let exec = Exec::new(&pool, isa, &scratch);
            kernel.run(&exec, &input, ins + gap, &packed, &mut out, outs + gap, &epilogue);
            let found: Vec<f32> = out.chunks_exact(outs + gap).flat_map(|p| p[..outs].to_vec()).collect();
            assert!(out.chunks_exact(outs + gap).all(|p| p[outs..].iter().all(|x| x.is_nan())), "a gap was written to");
            close(&found, &wanted, 1e-5, &format!("{isa:?} {threads} {s:?}"));
        }
    }
}

/// The same of windows that touch, with gaps between pixels of the output where the kernel takes them.
fn check_touching(s: DeconvShape, function: Act) {
    let mut random = Random::new(s.in_channels + s.in_spatial[2]);
    let (ins, outs) = (s.in_channels, s.out_channels);
    let input = random.floats(s.batch * s.in_spatial.iter().product::<usize>() * (ins + 2));
    let weights = random.floats(ins * outs * s.kernel.iter().product::<usize>());
    let bias = random.floats(outs);
    let pixels = s.batch * s.out_spatial.iter().product::<usize>();
    let wanted = plain(&s, &input, ins + 2, &weights);
    let wanted: Vec<f64> = wanted.iter().enumerate().map(|(i, y)| act(function, y + bias[i % outs] as f64)).collect();
    for isa in Isa::available() {
        for threads in [1, 3] {
            let (pool, scratch) = (Pool::new(PoolOptions::threads(threads)), Scratch::new(threads, 0).unwrap());
            let kernel = TouchingDeconv::new(isa, s, function);
            let gap = if kernel.is_dense() { 0 } else { 3 };
            let mut packed = vec![f32::NAN; kernel.packed_floats()];
            kernel.pack(&weights, &mut packed);
            let mut out = vec![f32::NAN; pixels * (outs + gap)];
            let exec = Exec::new(&pool, isa, &scratch);
            kernel.run(&exec, (&input, ins + 2), &packed, (&mut out, outs + gap), Some(&bias));
            let found: Vec<f32> = out.chunks_exact(outs + gap).flat_map(|p| p[..outs].to_vec()).collect();
            assert!(out.chunks_exact(outs + gap).all(|p| p[outs..].iter().all(|x| x.is_nan())), "a gap was written to");
            close(&found, &wanted, 1e-5, &format!("{isa:?} {threads} {s:?}"));
        }
    }
}

#[test]
fn windows_that_touch_are_products() {
    for channels in [[24, 1], [3, 5], [20, 49], [16, 32]] {
        for (kernel, size, function) in [(2, 17, Act::Relu), (3, 5, Act::Sigmoid), (2, 1, Act::None), (1, 6, Act::None)]
        {
            let mut s = square(size, channels, kernel, kernel, [0, 0]);
            check_touching(s, function);
            // An axis of depth as well.
            (s.in_spatial[0], s.kernel[0], s.stride[0], s.out_spatial[0]) = (3, 2, 2, 6);
            check_touching(s, function);
        }
    }
}

/// One image of `size`, kernel and stride the same on height and width.
fn square(size: usize, [ins, outs]: [usize; 2], kernel: usize, stride: usize, pads: [usize; 2]) -> DeconvShape {
    let out = (size - 1) * stride + kernel - pads[0] - pads[1];
    DeconvShape {
        batch: 2,
        in_channels: ins,
        out_channels: outs,
        in_spatial: [1, size, size],
        out_spatial: [1, out, out],
        kernel: [1, kernel, kernel],
        stride: [1, stride, stride],
        dilation: [1; 3],
        pad_begin: [0, pads[0], pads[0]],
        groups: 1,
    }
}

#[test]
fn kernels_and_strides_agree_with_plain_loops() {
    for channels in [[16, 32], [3, 5], [20, 49]] {
        for (kernel, stride, pads) in [
            (2, 2, [0, 0]),
            (3, 2, [1, 0]),
            (4, 2, [1, 1]),
            (3, 1, [1, 1]),
            (2, 3, [0, 0]),
            (5, 3, [2, 1]),
            (1, 2, [0, 0]),
        ] {
            for size in [1, 5, 17] {
                check(square(size, channels, kernel, stride, pads), Act::Relu, None);
            }
        }
    }
}

#[test]
fn outputs_may_be_longer_than_the_inputs_reach() {
    let mut s = square(4, [6, 7], 2, 3, [0, 0]);
    s.out_spatial = [1, 15, 14];
    check(s, Act::None, None);
}

#[test]
fn groups_depth_and_holes_agree_with_plain_loops() {
    let mut s = square(6, [12, 36], 3, 2, [1, 1]);
    s.groups = 3;
    check(s, Act::None, None);
    (s.in_spatial[0], s.kernel[0], s.stride[0], s.out_spatial[0]) = (3, 2, 2, 6);
    check(s, Act::None, None);
    (s.dilation, s.out_spatial) = ([1, 2, 3], [6, 13, 17]);
    check(s, Act::None, None);
}

#[test]
fn every_channel_may_be_a_group() {
    for channels in [1, 16, 35] {
        let mut s = square(7, [channels, channels], 4, 2, [1, 1]);
        s.groups = channels;
        check(s, Act::HSwish, Some(true));
    }
}

#[test]
fn functions_and_sums_come_in_their_order() {
    for function in [Act::Relu, Act::Swish(1.0)] {
        for add_last in [Some(false), Some(true)] {
            check(square(5, [8, 40], 2, 2, [0, 0]), function, add_last);
        }
    }
}

#[test]
fn windows_of_pairs_that_touch_agree_with_plain_loops() {
    for (halves, ins, outs, size, kernel) in [
        (Halves::Bf16, 8, 24, [1, 5, 9], [1, 2, 2]),
        (Halves::Bf16, 34, 7, [1, 3, 20], [1, 3, 2]),
        (Halves::F16, 34, 7, [1, 3, 20], [1, 3, 2]),
        (Halves::Bf16, 16, 1, [2, 4, 4], [2, 2, 4]),
        (Halves::Bf16, 64, 40, [1, 70, 33], [1, 2, 2]),
        (Halves::F16, 64, 40, [1, 70, 33], [1, 2, 2]),
        (Halves::Bf16, 2, 5, [1, 1, 6], [1, 1, 3]),
    ] {
        let s = DeconvShape {
            batch: 2,
            in_channels: ins,
            out_channels: outs,
            in_spatial: size,
            out_spatial: [0, 1, 2].map(|i| size[i] * kernel[i]),
            kernel,
            stride: kernel,
            dilation: [1; 3],
            pad_begin: [0; 3],
            groups: 1,
        };
        let padded = DeconvShape { pad_begin: [0, 0, 1], ..s };
        assert!(DeconvCells::fits(&s, halves.numbers()) && !DeconvCells::fits(&padded, halves.numbers()));
        let mut random = Random::new(ins);
        let mut numbers =
            |n: usize| -> Vec<f32> { random.floats(n).into_iter().map(|x| halves.wide(halves.bits(x))).collect() };
        let input = numbers(2 * size.iter().product::<usize>() * ins);
        let weights = numbers(ins * outs * kernel.iter().product::<usize>());
        let bias = numbers(outs);
        let mut wanted = plain(&s, &input, ins, &weights);
        wanted.iter_mut().enumerate().for_each(|(i, y)| *y = (*y + f64::from(bias[i % outs])).max(0.0));
        let cells: Vec<f32> = halves
            .all_bits(&input)
            .as_chunks::<2>()
            .0
            .iter()
            .map(|[a, b]| f32::from_bits(u32::from(*a) | u32::from(*b) << 16))
            .collect();
        for isa in Isa::tested() {
            for threads in [1, 3] {
                let (pool, scratch) =
                    (Pool::new(PoolOptions::threads(threads)), Scratch::new(threads, 1 << 16).unwrap());
                let conv = DeconvCells::new(isa, s, halves.numbers());
                let mut packed = vec![0.0; conv.packed_floats()];
                conv.pack_halves(&halves.all_bits(&weights), &mut packed);
                let columns = bias.repeat(kernel.iter().product());
                let end = TypedEpilogue { bias: Some(&columns), act: Act::Relu, ..TypedEpilogue::default() };
                let mut out = vec![f32::NAN; wanted.len()];
                let exec = Exec::new(&pool, isa, &scratch);
                conv.run(&exec, &cells, &packed, TypedOut::F32(&mut out), &end);
                close(&out, &wanted, 1e-5, &format!("{isa:?} {threads} {s:?}"));
            }
        }
    }
}

#[test]
fn windows_of_bytes_that_touch_have_a_bias_for_each_tap() {
    for (ins, outs, size, kernel) in [
        (8, 24, [1, 5, 9], [1, 2, 2]),
        (36, 7, [1, 3, 20], [1, 3, 2]),
        (16, 1, [2, 4, 4], [2, 2, 4]),
        (64, 40, [1, 9, 33], [1, 2, 2]),
    ] {
        let s = DeconvShape {
            batch: 2,
            in_channels: ins,
            out_channels: outs,
            in_spatial: size,
            out_spatial: [0, 1, 2].map(|i| size[i] * kernel[i]),
            kernel,
            stride: kernel,
            dilation: [1; 3],
            pad_begin: [0; 3],
            groups: 1,
        };
        let (taps, zero) = (kernel.iter().product::<usize>(), 9.0);
        let mut random = Random::new(ins);
        let mut whole =
            |n: usize, most: f32| -> Vec<f32> { random.floats(n).iter().map(|x| (x * most).round()).collect() };
        let input: Vec<f32> =
            whole(2 * size.iter().product::<usize>() * ins, 100.0).iter().map(|x| x + 100.0).collect();
        let weights = whole(ins * outs * taps, 127.0);
        let bytes: Vec<u8> = input.iter().map(|x| *x as u8).collect();
        let integers: Vec<i8> = weights.iter().map(|x| *x as i8).collect();
        let data: Vec<f32> = input.iter().map(|x| x - zero).collect();
        let scale = 1.0 / (40.0 * ins as f32);
        let steps = Quantizer { inverse: 1.0, shift: 0.0, low: -128.0, high: 127.0, zero: 128 };
        let wanted = plain(&s, &data, ins, &weights);
        // What the zero point of the data adds to the sums of a tap and a channel.
        let more = |j: usize| -> f32 {
            (0..ins).map(|i| weights[(i * outs + j % outs) * taps + j / outs]).sum::<f32>() * -zero
        };
        let bias: Vec<f32> = (0..outs * taps).map(|j| more(j) * scale).collect();
        for isa in Isa::tested() {
            for threads in [1, 3] {
                let (pool, scratch) =
                    (Pool::new(PoolOptions::threads(threads)), Scratch::new(threads, 1 << 16).unwrap());
                let conv = DeconvCells::new(isa, s, Numbers::U8I8);
                let mut packed = vec![0.0; conv.packed_floats()];
                conv.pack_i8(&integers, &mut packed);
                let scales = vec![scale; outs * taps];
                let end = TypedEpilogue { scale: Some(&scales), bias: Some(&bias), ..TypedEpilogue::default() };
                let mut out = vec![0u8; wanted.len()];
                let exec = Exec::new(&pool, isa, &scratch);
                let cells: Vec<f32> = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
                conv.run(&exec, &cells, &packed, TypedOut::U8(&mut out, steps), &end);
                for (found, sum) in out.iter().zip(&wanted) {
                    let step = (sum * f64::from(scale)).clamp(-128.0, 127.0) + 128.0;
                    assert!((f64::from(*found) - step).abs() <= 0.51, "{found} instead of {step}: {isa:?} {s:?}");
                }
            }
        }
    }
}
