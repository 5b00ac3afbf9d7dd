//! Samples between pixels against plain loops in f64.

use crate::spatial_common::Random;
use carafe_kernels::{
    Act, ConvShape, Deformable, DeformableShape, Epilogue, Exec, GridSample, Isa, Moves, Pool, PoolOptions, SampleMode,
    SamplePadding, Scratch,
};

// The pixel at an index of an axis, as the definition has it.
fn padded(of: &GridSample, at: i64, size: usize) -> Option<usize> {
    let n = size as i64;
    let at = match (of.padding, of.align_corners) {
        (SamplePadding::Zeros, _) => at,
        (SamplePadding::Border, _) => at.clamp(0, n - 1),
        (SamplePadding::Reflection, true) if n == 1 => 0,
        (SamplePadding::Reflection, true) => (n - 1) - ((at.rem_euclid(2 * (n - 1))) - (n - 1)).abs(),
        (SamplePadding::Reflection, false) => {
            let at = at.rem_euclid(2 * n);
            at.min(2 * n - 1 - at)
        }
    };
    (0..n).contains(&at).then_some(at as usize)
}

fn sampled(of: &GridSample, plane: &[f32], x: f32, y: f32) -> f64 {
    let position = |v: f32, n: usize| match of.align_corners {
        true => (v + 1.0) * (n as f32 - 1.0) / 2.0,
        false => ((v + 1.0) * n as f32 - 1.0) / 2.0,
    };
    let pixel = |y: i64, x: i64| match (padded(of, y, of.height), padded(of, x, of.width)) {
        (Some(y), Some(x)) => f64::from(plane[y * of.width + x]),
        _ => 0.0,
    };
    let (y, x) = (position(y, of.height), position(x, of.width));
    if of.mode == SampleMode::Nearest {
        return pixel(y.round_ties_even() as i64, x.round_ties_even() as i64);
    }
    if !y.is_finite() || !x.is_finite() {
        return f64::NAN;
    }
    let weight = |d: f64| {
        let d = d.abs();
        match of.mode {
            SampleMode::Bicubic if d < 1.0 => (1.25 * d - 2.25) * d * d + 1.0,
            SampleMode::Bicubic if d < 2.0 => -0.75 * (((d - 5.0) * d + 8.0) * d - 4.0),
            SampleMode::Bicubic => 0.0,
            _ => (1.0 - d).max(0.0),
        }
    };
    let (y0, x0) = (y.floor() as i64, x.floor() as i64);
    let mut sum = 0.0;
    for yy in y0 - 1..=y0 + 2 {
        for xx in x0 - 1..=x0 + 2 {
            let w = weight(f64::from(y) - yy as f64) * weight(f64::from(x) - xx as f64);
            if w != 0.0 {
                sum += w * pixel(yy, xx);
            }
        }
    }
    sum
}

fn same(found: f32, wanted: f64, what: &str) {
    let equal =
        (found.is_nan() && wanted.is_nan()) || (f64::from(found) - wanted).abs() <= 1e-5 || wanted == f64::from(found);
    assert!(equal, "{what}: found {found}, wanted {wanted}");
}

fn each_grid(mut check: impl FnMut(GridSample)) {
    for mode in [SampleMode::Nearest, SampleMode::Bilinear, SampleMode::Bicubic] {
        for padding in [SamplePadding::Zeros, SamplePadding::Border, SamplePadding::Reflection] {
            for align_corners in [false, true] {
                for (batch, channels, height, width, points) in
                    [(2, 3, 7, 9, 301), (1, 83, 5, 6, 140), (1, 16, 1, 4, 65), (1, 1, 6, 1, 17)]
                {
                    check(GridSample { batch, channels, height, width, points, mode, padding, align_corners });
                }
            }
        }
    }
}

// Both layouts at every level; data, grid and results as the operation has them.
fn run_both(of: &GridSample, data: &[f32], grid: &[f32], mut check: impl FnMut(&[f32], &str)) {
    let (plane, pixels) = (of.height * of.width, of.batch * of.points);
    let mut last = vec![0.0; data.len()];
    for (i, x) in data.iter().enumerate() {
        let (n, c, p) = (i / plane / of.channels, i / plane % of.channels, i % plane);
        last[(n * plane + p) * of.channels + c] = *x;
    }
    for isa in Isa::available() {
        for threads in [1, 3] {
            let pool = Pool::new(PoolOptions::threads(threads));
            let scratch = Scratch::new(threads, 0).unwrap();
            let exec = Exec::new(&pool, isa, &scratch);
            let mut out = vec![7.0; pixels * of.channels];
            of.run_planes(&exec, data, grid, &mut out);
            check(&out, &format!("planes {isa:?} {of:?}"));
            let mut out = vec![7.0; pixels * of.channels];
            of.run_pixels(&exec, &last, grid, &mut out);
            let mut planes = vec![0.0; out.len()];
            for (i, x) in out.iter().enumerate() {
                let (n, p, c) = (i / of.channels / of.points, i / of.channels % of.points, i % of.channels);
                planes[(n * of.channels + c) * of.points + p] = *x;
            }
            check(&planes, &format!("pixels {isa:?} {of:?}"));
        }
    }
}

#[test]
fn grids_are_sampled_as_defined() {
    each_grid(|of| {
        let mut random = Random::new(of.points);
        let data = random.floats(of.batch * of.channels * of.height * of.width);
        let mut grid: Vec<f32> = random.floats(2 * of.batch * of.points).iter().map(|v| v * 3.0).collect();
        // Corners, halves, and whole pixels.
        for (at, v) in grid.iter_mut().zip([-1.0, -1.0, 1.0, 1.0, 0.0, 0.0, -1.5, 0.5, 0.25, 1.0, -3.0, 5.0]) {
            *at = v;
        }
        run_both(&of, &data, &grid, |out, what| {
            for (i, y) in out.iter().enumerate() {
                let (n, plane, p) = (i / of.points / of.channels, i / of.points, i % of.points);
                let point = &grid[2 * (n * of.points + p)..];
                let pixels = of.height * of.width;
                let wanted = sampled(&of, &data[plane * pixels..][..pixels], point[0], point[1]);
                same(*y, wanted, &format!("{what} at {i}"));
            }
        });
    });
}

#[test]
fn points_far_away_or_without_a_number_do_no_harm() {
    each_grid(|of| {
        let mut random = Random::new(of.points);
        let mut data = random.floats(of.batch * of.channels * of.height * of.width);
        data[0] = f32::INFINITY;
        let odd = [0.0, -1.0, 1.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e6, -1e7, 1e12, -1e30, f32::MAX, 0.3];
        let value = |random: &mut Random| odd[random.next() as usize % odd.len()];
        let grid: Vec<f32> = (0..2 * of.batch * of.points).map(|_| value(&mut random)).collect();
        run_both(&of, &data, &grid, |out, what| {
            for (i, y) in out.iter().enumerate() {
                let (n, plane, p) = (i / of.points / of.channels, i / of.points, i % of.points);
                let point = &grid[2 * (n * of.points + p)..];
                let whole = |v: f32| v.abs() <= 1e12;
                // Beyond that, which pixel is met is a matter of rounding alone.
                if point[..2].iter().all(|v| whole(*v) || v.is_nan()) {
                    let pixels = of.height * of.width;
                    let wanted = sampled(&of, &data[plane * pixels..][..pixels], point[0], point[1]);
                    same(*y, wanted, &format!("{what} at {i}, {:?}", &point[..2]));
                }
            }
        });
    });
}

// By its definition, from planes.
fn deformed(s: &DeformableShape, data: &[f32], offsets: &[f32], mask: Option<&[f32]>, weights: &[f32]) -> Vec<f64> {
    let c = &s.conv;
    let ([_, oh, ow], [_, h, w]) = (c.out_spatial(), c.in_spatial);
    let (taps, ins, outs) = (c.taps(), c.in_channels / c.groups, c.out_channels / c.groups);
    let mut result = vec![];
    for image in 0..c.batch {
        for (y, x) in (0..oh).flat_map(|y| (0..ow).map(move |x| (y, x))) {
            for o in 0..c.out_channels {
                let mut sum = 0.0;
                for (i, tap) in (0..ins).flat_map(|i| (0..taps).map(move |t| (i, t))) {
                    let channel = o / outs * ins + i;
                    let plane = (image * s.moves + channel / (c.in_channels / s.moves)) * taps + tap;
                    let at = |plane: usize| (plane * oh + y) * ow + x;
                    let still = |axis: usize, o: usize, k: usize| {
                        (o * c.stride[axis] + k * c.dilation[axis]) as f64 - c.pad_begin[axis] as f64
                    };
                    let py = still(1, y, tap / c.kernel[2]) + f64::from(offsets[at(2 * plane)]);
                    let px = still(2, x, tap % c.kernel[2]) + f64::from(offsets[at(2 * plane + 1)]);
                    let low = if s.fades { -1.0 } else { 0.0 };
                    if py.is_nan() || px.is_nan() || py < low || px < low || py >= h as f64 || px >= w as f64 {
                        continue;
                    }
                    let pixel = |y: f64, x: f64| {
                        let (y, x) = if s.fades { (y, x) } else { (y.min(h as f64 - 1.0), x.min(w as f64 - 1.0)) };
                        let there = y >= 0.0 && x >= 0.0 && y < h as f64 && x < w as f64;
                        let at = ((image * c.in_channels + channel) * h + y as usize) * w + x as usize;
                        if there { f64::from(data[at]) } else { 0.0 }
                    };
                    let (y0, x0) = (py.floor(), px.floor());
                    let (fy, fx) = (py - y0, px - x0);
                    let value = (1.0 - fy) * ((1.0 - fx) * pixel(y0, x0) + fx * pixel(y0, x0 + 1.0))
                        + fy * ((1.0 - fx) * pixel(y0 + 1.0, x0) + fx * pixel(y0 + 1.0, x0 + 1.0));
                    let scale = mask.map_or(1.0, |m| f64::from(m[at(plane)]));
                    sum += scale * value * f64::from(weights[(o * ins + i) * taps + tap]);
                }
                result.push(sum);
            }
        }
    }
    result
}

// Planes of `[images, planes, pixels]` side by side.
fn to_last(data: &[f32], images: usize, planes: usize) -> Vec<f32> {
    let pixels = data.len() / images / planes;
    let at = |i: usize| (i / planes / pixels * planes + i % planes) * pixels + i / planes % pixels;
    (0..data.len()).map(|i| data[at(i)]).collect()
}

#[test]
fn taps_are_moved_as_defined() {
    for (groups, moves, ins, outs, k) in
        [(1, 1, 5, 7, 3), (2, 1, 8, 4, 3), (1, 2, 40, 33, 2), (3, 2, 12, 6, 3), (1, 1, 1, 1, 1)]
    {
        for (fades, masked, last) in
            [(false, false, false), (true, true, false), (false, true, true), (true, false, true)]
        {
            let conv = ConvShape {
                batch: 2,
                in_spatial: [1, 7, 6],
                in_channels: ins,
                out_channels: outs,
                kernel: [1, k, k],
                stride: [1, 2, 1],
                dilation: [1, 1, 2],
                pad_begin: [0, 1, 1],
                pad_end: [0, 1, 0],
                groups,
            };
            let shape = DeformableShape { conv, moves, fades };
            let mut random = Random::new(ins + outs);
            let data = random.floats(conv.in_pixels() * ins);
            let weights = random.floats(conv.weights());
            let (planes, pixels) = (moves * conv.taps(), conv.out_pixels());
            let mut offsets: Vec<f32> = random.floats(2 * planes * pixels).iter().map(|v| v * 3.0).collect();
            for (i, v) in [f32::NAN, f32::INFINITY, -1e30, 1e9, 0.0, 0.0, 1.0, -1.0].into_iter().enumerate() {
                let at = i * 5 % offsets.len();
                offsets[at] = v;
            }
            let mask = random.floats(planes * pixels);
            let bias = random.floats(outs);
            let mut wanted = deformed(&shape, &data, &offsets, masked.then_some(&mask[..]), &weights);
            wanted.iter_mut().enumerate().for_each(|(i, w)| *w = (*w + f64::from(bias[i % outs])).max(0.0));
            let input = to_last(&data, 2, ins);
            let (offsets, mask) = match last {
                true => (to_last(&offsets, 2, 2 * planes), to_last(&mask, 2, planes)),
                false => (offsets, mask),
            };
            let given = Moves { offsets: &offsets, offsets_last: last, mask: masked.then_some(&mask), mask_last: last };
            for isa in Isa::available() {
                for threads in [1, 3] {
                    let kernel = Deformable::new(isa, threads, shape);
                    let pool = Pool::new(PoolOptions::threads(threads));
                    let scratch = Scratch::new(threads, kernel.scratch_floats()).unwrap();
                    let exec = Exec::new(&pool, isa, &scratch);
                    let mut packed = vec![0.0; kernel.packed_floats()];
                    kernel.pack(None, &weights, &mut packed);
                    let mut out = vec![f32::NAN; pixels * outs];
                    let end = Epilogue { bias: Some(&bias), act: Act::Relu, ..Epilogue::default() };
                    kernel.run(&exec, &input, ins, given, &packed, &mut out, outs, &end);
                    crate::spatial_common::close(&out, &wanted, 1e-5, &format!("{isa:?} {shape:?}"));
                }
            }
        }
    }
}
