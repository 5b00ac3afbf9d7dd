//! Resizing against plain loops.

use crate::spatial_common::{Random, close};
use carafe_kernels::{Exec, Isa, Pool, PoolOptions, Resize, ResizeAxis, Scratch};

/// An axis with random positions and weights.
fn axis(random: &mut Random, from: usize, to: usize, taps: usize) -> ResizeAxis {
    let index: Vec<u32> = (0..to * taps).map(|_| (random.next() % from as u64) as u32).collect();
    let weight = if taps == 1 { vec![1.0; to] } else { random.floats(to * taps) };
    ResizeAxis { taps, index, weight }
}

/// Runs at every level with one and three threads and compares; gaps between pixels where asked for.
fn check(batch: usize, channels: usize, from: [usize; 3], to: [usize; 3], taps: [usize; 3], gap: usize) {
    let mut random = Random::new(channels + to[2]);
    let axes = [0, 1, 2].map(|i| axis(&mut random, from[i], to[i], taps[i]));
    let stride = channels + gap;
    let input = random.floats(batch * from.iter().product::<usize>() * stride);
    let mut wanted = vec![];
    for i in 0..batch * to.iter().product::<usize>() {
        let at = [i / to[2] / to[1] % to[0], i / to[2] % to[1], i % to[2]];
        for c in 0..channels {
            let mut sum = 0.0;
            for t in 0..taps.iter().product::<usize>() {
                let t = [t / taps[2] / taps[1], t / taps[2] % taps[1], t % taps[2]];
                let p = [0, 1, 2].map(|i| axes[i].index[at[i] * taps[i] + t[i]] as usize);
                let w: f64 = (0..3).map(|i| axes[i].weight[at[i] * taps[i] + t[i]] as f64).product();
                let image = i / to.iter().product::<usize>();
                sum += w * input[(((image * from[0] + p[0]) * from[1] + p[1]) * from[2] + p[2]) * stride + c] as f64;
            }
            wanted.push(sum);
        }
    }
    for isa in Isa::available() {
        for threads in [1, 3] {
            let pool = Pool::new(PoolOptions::threads(threads));
            let kernel = Resize::new(isa, batch, channels, from, axes.clone());
            let scratch = Scratch::new(threads, kernel.scratch_floats()).unwrap();
            let mut out = vec![f32::NAN; batch * to.iter().product::<usize>() * stride];
            kernel.run(&Exec::new(&pool, isa, &scratch), &input, stride, &mut out, stride);
            let found: Vec<f32> = out.chunks_exact(stride).flat_map(|p| p[..channels].to_vec()).collect();
            assert!(out.chunks_exact(stride).all(|p| p[channels..].iter().all(|x| x.is_nan())), "a gap was written to");
            close(&found, &wanted, 1e-5, &format!("{isa:?} {threads} {channels} {from:?} {to:?} {taps:?}"));
        }
    }
}

#[test]
fn one_tap_copies_pixels() {
    for channels in [1, 3, 16, 70] {
        for gap in [0, 2] {
            check(2, channels, [1, 5, 7], [1, 10, 14], [1, 1, 1], gap);
            check(1, channels, [3, 4, 5], [2, 8, 3], [1, 1, 1], gap);
        }
    }
}

#[test]
fn two_taps_blend_neighbours() {
    for channels in [1, 3, 16, 70, 129] {
        for gap in [0, 2] {
            check(2, channels, [1, 5, 7], [1, 10, 14], [1, 2, 2], gap);
            check(1, channels, [3, 4, 5], [4, 9, 3], [2, 2, 2], gap);
        }
    }
}

#[test]
fn axes_may_have_different_taps() {
    for taps in [[1, 4, 4], [1, 1, 2], [1, 2, 1], [2, 1, 1], [1, 4, 1], [3, 5, 7]] {
        check(1, 19, [3, 6, 5], [2, 7, 11], taps, 0);
    }
}
