//! Pools of windows against plain loops.

use crate::spatial_common::{Random, close};
use carafe_kernels::{Exec, Isa, Pool, PoolKind, PoolOptions, PoolShape, Scratch, SpatialPool};

fn plain(s: &PoolShape, kind: PoolKind, input: &[f32], stride: usize) -> Vec<f64> {
    let mut result = vec![];
    let [depth, height, width] = s.in_spatial;
    let out = s.out_spatial;
    for i in 0..s.batch * out.iter().product::<usize>() {
        let at = [i / out[2] / out[1] % out[0], i / out[2] % out[1], i % out[2]];
        let batch = i / out[2] / out[1] / out[0];
        for c in 0..s.channels {
            let (mut best, mut sum, mut count) = (f32::MIN, 0.0, 0);
            for k in 0..s.kernel.iter().product::<usize>() {
                let k = [k / s.kernel[2] / s.kernel[1], k / s.kernel[2] % s.kernel[1], k % s.kernel[2]];
                let p = [0, 1, 2].map(|i| (at[i] * s.stride[i] + k[i] * s.dilation[i]).wrapping_sub(s.pad_begin[i]));
                if (0..3).all(|i| p[i] < s.in_spatial[i]) {
                    let x = input[(((batch * depth + p[0]) * height + p[1]) * width + p[2]) * stride + c];
                    best = if x > best { x } else { best };
                    sum += x as f64;
                    count += 1;
                }
            }
            let volume = s.kernel.iter().product::<usize>();
            result.push(match kind {
                PoolKind::Max => best as f64,
                PoolKind::Mean if count == 0 => 0.0,
                PoolKind::Mean => sum / count as f64,
                PoolKind::MeanOfAll => sum / volume as f64,
            });
        }
    }
    result
}

/// Runs at every level with one and three threads, with gaps between pixels, and compares.
fn check(s: PoolShape) {
    let (c, gap) = (s.channels, 1);
    let pixels = s.batch * s.out_spatial.iter().product::<usize>();
    let input = Random::new(c).floats(s.batch * s.in_spatial.iter().product::<usize>() * (c + gap));
    for kind in [PoolKind::Max, PoolKind::Mean, PoolKind::MeanOfAll] {
        let wanted = plain(&s, kind, &input, c + gap);
        for isa in Isa::available() {
            for threads in [1, 3] {
                let pool = Pool::new(PoolOptions::threads(threads));
                let kernel = SpatialPool::new(isa, threads, s, kind);
                let scratch = Scratch::new(threads, kernel.scratch_floats()).unwrap();
                let mut out = vec![f32::NAN; pixels * (c + gap)];
                kernel.run(&Exec::new(&pool, isa, &scratch), &input, c + gap, &mut out, c + gap);
                let found: Vec<f32> = out.chunks_exact(c + gap).flat_map(|p| p[..c].to_vec()).collect();
                assert!(out.iter().skip(c).step_by(c + gap).all(|x| x.is_nan()), "a gap was written to");
                close(&found, &wanted, 1e-5, &format!("{isa:?} {threads} {kind:?} {s:?}"));
            }
        }
    }
}

fn square(size: usize, out: usize, channels: usize, kernel: usize, stride: usize, pad: usize) -> PoolShape {
    PoolShape {
        batch: 2,
        channels,
        in_spatial: [1, size, size],
        out_spatial: [1, out, out],
        kernel: [1, kernel, kernel],
        stride: [1, stride, stride],
        dilation: [1; 3],
        pad_begin: [0, pad, pad],
    }
}

#[test]
fn square_windows_agree_with_plain_loops() {
    for channels in [1, 16, 70, 131] {
        check(square(9, 5, channels, 3, 2, 1));
        check(square(8, 4, channels, 2, 2, 0));
        check(square(6, 3, channels, 3, 2, 0));
        check(square(5, 5, channels, 3, 1, 1));
        check(square(22, 11, channels, 2, 2, 0));
        check(square(21, 11, channels, 3, 2, 1));
    }
}

#[test]
fn wide_windows_are_done_in_two_passes() {
    for kernel in [5, 9, 13] {
        check(square(11, 11, 37, kernel, 1, kernel / 2));
    }
}

#[test]
fn a_window_as_large_as_the_image_gives_one_pixel() {
    for channels in [3, 64, 200, 515] {
        check(square(7, 1, channels, 7, 1, 0));
    }
}

#[test]
fn depth_and_holes_agree_with_plain_loops() {
    let mut s = square(9, 4, 20, 3, 2, 2);
    (s.in_spatial[0], s.out_spatial[0], s.kernel[0], s.pad_begin[0]) = (4, 3, 2, 0);
    check(s);
    s.dilation = [1, 2, 2];
    check(s);
    let line = PoolShape {
        batch: 1,
        channels: 9,
        in_spatial: [1, 1, 40],
        out_spatial: [1, 1, 21],
        kernel: [1, 1, 4],
        stride: [1, 1, 2],
        dilation: [1; 3],
        pad_begin: [0, 0, 2],
    };
    check(line);
}

#[test]
fn windows_outside_of_the_image_have_a_value() {
    check(square(3, 4, 5, 2, 3, 0));
}

#[test]
fn what_is_not_a_number_is_never_the_largest() {
    let s = square(2, 1, 3, 2, 2, 0);
    let s = PoolShape { batch: 1, ..s };
    let input =
        [f32::NAN, -1.0, f32::NEG_INFINITY, 2.0, f32::NAN, f32::NAN, 1.0, -3.0, f32::NAN, f32::NAN, -4.0, f32::NAN];
    for isa in Isa::available() {
        let (pool, scratch) = (Pool::new(PoolOptions::threads(1)), Scratch::new(1, 0).unwrap());
        let mut out = [0.0; 3];
        let kernel = SpatialPool::new(isa, 1, s, PoolKind::Max);
        kernel.run(&Exec::new(&pool, isa, &scratch), &input, 3, &mut out, 3);
        assert_eq!(out, [2.0, -1.0, f32::MIN]);
    }
}
