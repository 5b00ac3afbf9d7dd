//! Pooling over regions against plain loops.

use crate::spatial_common::Random;
use carafe_kernels::{Exec, Isa, Pool, PoolOptions, RoiGrid, RoiMap, RoiMode, RoiRegion, Scratch};

// One sample of a map of one channel count, as the definition has it.
fn sample(map: &RoiMap<'_>, channels: usize, c: usize, y: f32, x: f32) -> f32 {
    let inside = |v: f32, n: usize| (-1.0..=n as f32).contains(&v);
    if !inside(y, map.height) || !inside(x, map.width) {
        return 0.0;
    }
    let axis = |v: f32, n: usize| {
        let v = v.max(0.0);
        let low = (v as usize).min(n - 1);
        if low == n - 1 { (low, low, 0.0) } else { (low, low + 1, v - low as f32) }
    };
    let ((y0, y1, fy), (x0, x1, fx)) = (axis(y, map.height), axis(x, map.width));
    let at = |y: usize, x: usize| map.data[(y * map.width + x) * channels + c];
    (1.0 - fy) * ((1.0 - fx) * at(y0, x0) + fx * at(y0, x1)) + fy * ((1.0 - fx) * at(y1, x0) + fx * at(y1, x1))
}

#[test]
fn samples_are_averaged_or_compared() {
    let (channels, height, width) = (19, 7, 9);
    let mut random = Random::new(5);
    let data = random.floats(height * width * channels);
    let map = RoiMap { data: &data, height, width };
    // The last two are turned around and far outside.
    let starts = [[0.5, 1.5], [-3.0, 2.0], [4.0, 6.5], [6.0, 7.0], [50.0, 50.0]];
    let bins = [[1.3, 0.7], [2.0, 2.5], [0.1, 3.0], [-1.0, -0.5], [1.0, 1.0]];
    let region = |i: usize| RoiRegion { start: starts[i], bin: bins[i], samples: [1 + i % 3, 2] };
    let grid = RoiGrid { channels, bins: [3, 2] };
    for mode in [RoiMode::Average, RoiMode::Max] {
        let mut wanted = vec![];
        for i in 0..5 {
            let r = region(i);
            for (by, bx) in (0..3).flat_map(|y| (0..2).map(move |x| (y, x))) {
                for c in 0..channels {
                    let along = |axis: usize, b: usize, k: usize| {
                        r.start[axis] + r.bin[axis] * (b as f32 + (k as f32 + 0.5) / r.samples[axis] as f32)
                    };
                    let all = (0..r.samples[0]).flat_map(|y| (0..r.samples[1]).map(move |x| (y, x)));
                    let values = all.map(|(y, x)| sample(&map, channels, c, along(0, by, y), along(1, bx, x)));
                    wanted.push(match mode {
                        RoiMode::Max => values.fold(0.0, f32::max),
                        RoiMode::Average => values.sum::<f32>() / (r.samples[0] * r.samples[1]) as f32,
                    });
                }
            }
        }
        for isa in Isa::available() {
            for threads in [1, 3] {
                let pool = Pool::new(PoolOptions::threads(threads));
                let scratch = Scratch::new(threads, RoiGrid::scratch_floats(height, width)).unwrap();
                let exec = Exec::new(&pool, isa, &scratch);
                let mut out = vec![f32::NAN; 6 * 6 * channels];
                grid.align(&exec, mode, |i| (i < 5).then(|| (map, region(i))), &mut out);
                let zeros = vec![0.0; 6 * channels];
                for (i, (y, w)) in out.iter().zip(wanted.iter().chain(&zeros)).enumerate() {
                    assert!((y - w).abs() < 1e-5, "{isa:?} {mode:?}: {y} is not {w} at {i}");
                }
            }
        }
    }
}
