//! Speed of the spatial kernels on shapes of well-known networks: `cargo bench --bench spatial -- [part of a name]`.

use carafe_kernels::{
    Act, Buffer, Conv, ConvShape, Deformable, DeformableShape, Depthwise, Epilogue, Exec, Fold, GridSample, Halves,
    Isa, MaxPositions, Moves, Numbers, Places, Pool, PoolOptions, PoolShape, SampleMode, SamplePadding, Scratch,
    TypedEpilogue, TypedOut, Winograd, WinogradPairs,
};
use std::time::Instant;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|w| name.contains(w.as_str()));
    let threads = std::env::var("THREADS").ok().and_then(|t| t.parse().ok()).unwrap_or(2);
    let pool = Pool::new(PoolOptions::threads(threads));
    let scratch = Scratch::new(threads, 16 << 20).unwrap();
    let exec = Exec::new(&pool, Isa::best(), &scratch);
    if wants("depthwise") {
        depthwise(&exec);
    }
    if wants("winograd") {
        winograd(&exec);
    }
    if wants("grid") {
        grid(&exec);
    }
    if wants("deformable") {
        deformable(&exec);
    }
    if wants("fold") {
        fold(&exec);
    }
    if wants("places") {
        positions(&exec);
    }
}

/// The shortest of many runs, in microseconds.
fn best(mut run: impl FnMut()) -> f64 {
    run();
    let cpu = std::env::var("THREADS").is_ok_and(|t| t == "1");
    unsafe extern "C" {
        fn clock_gettime(id: i32, t: *mut [i64; 2]) -> i32;
    }
    let now = || {
        let mut t = [0i64; 2];
        // SAFETY: the clock writes two numbers, for which there is room.
        unsafe { clock_gettime(3, &mut t) };
        t[0] as f64 * 1e6 + t[1] as f64 / 1e3
    };
    let (mut best, start) = (f64::MAX, Instant::now());
    let mut runs = 0;
    while runs < 12 || (start.elapsed().as_millis() < 200 && runs < 2000) {
        let (start, s) = (Instant::now(), if cpu { now() } else { 0.0 });
        run();
        let t = start.elapsed().as_secs_f64() * 1e6;
        let t = if cpu && t > 100.0 { now() - s } else { t };
        best = best.min(t);
        runs += 1;
    }
    best
}

fn floats(n: usize) -> Buffer {
    let mut buffer = Buffer::floats(n).unwrap();
    buffer.as_floats_mut().iter_mut().enumerate().for_each(|(i, x)| *x = (i * 7919 % 1013) as f32 / 1013.0 - 0.5);
    buffer
}

fn square(size: usize, channels: usize, out: usize, k: usize, stride: usize, groups: usize) -> ConvShape {
    ConvShape {
        batch: 1,
        in_spatial: [1, size, size],
        in_channels: channels,
        out_channels: out,
        kernel: [1, k, k],
        stride: [1, stride, stride],
        dilation: [1; 3],
        pad_begin: [0, k / 2, k / 2],
        pad_end: [0, k / 2, k / 2],
        groups,
    }
}

fn depthwise(exec: &Exec<'_>) {
    for (size, channels, k, stride) in [
        (112, 32, 3, 1),
        (112, 96, 3, 2),
        (56, 144, 3, 1),
        (56, 144, 3, 2),
        (28, 192, 3, 1),
        (14, 576, 3, 1),
        (14, 576, 3, 2),
        (7, 960, 3, 1),
        (56, 72, 5, 2),
        (28, 240, 5, 1),
        (14, 672, 5, 1),
        (14, 672, 5, 2),
        (7, 1152, 5, 1),
        (20, 128, 3, 1),
        (40, 64, 3, 1),
        (80, 48, 3, 1),
        (14, 384, 7, 1),
        (7, 960, 3, 1),
    ] {
        let s = square(size, channels, channels, k, stride, channels);
        let kernel = Depthwise::new(exec.isa, exec.threads(), s);
        let out_pixels: usize = s.out_spatial().iter().product();
        let (input, mut out) = (floats(size * size * channels), floats(out_pixels * channels));
        let weights = floats(channels * k * k);
        let mut packed = floats(kernel.packed_floats());
        kernel.pack(weights.as_floats(), packed.as_floats_mut());
        let bias = floats(channels);
        let epilogue = Epilogue { bias: Some(bias.as_floats()), act: Act::Relu, ..Epilogue::default() };
        let us = best(|| {
            kernel.run(exec, input.as_floats(), channels, packed.as_floats(), out.as_floats_mut(), channels, &epilogue)
        });
        let flops = (out_pixels * channels * k * k * 2) as f64;
        println!("depthwise {k}x{k} s{stride} {size}x{size}x{channels}: {us:8.2} us {:7.1} Gflop/s", flops / us / 1e3);
    }
}

fn winograd(exec: &Exec<'_>) {
    for (size, ins, outs) in [
        (56, 64, 64),
        (28, 128, 128),
        (14, 256, 256),
        (7, 512, 512),
        (224, 64, 64),
        (112, 128, 128),
        (56, 256, 256),
        (28, 512, 512),
        (14, 512, 512),
        (80, 32, 32),
        (80, 64, 64),
        (40, 128, 128),
        (20, 256, 256),
        (160, 16, 16),
        (40, 48, 48),
        (35, 96, 96),
        (112, 3, 32),
    ] {
        let s = square(size, ins, outs, 3, 1, 1);
        let (input, mut out) = (floats(size * size * ins), floats(size * size * outs));
        let weights = floats(ins * outs * 9);
        let bias = floats(outs);
        let epilogue = Epilogue { bias: Some(bias.as_floats()), act: Act::Relu, ..Epilogue::default() };
        let flops = (size * size * ins * outs * 18) as f64;
        let conv = Conv::new(exec.isa, exec.threads(), s);
        let mut packed = floats(conv.packed_floats());
        conv.pack(None, weights.as_floats(), packed.as_floats_mut());
        let us = best(|| conv.run(exec, input.as_floats(), packed.as_floats(), out.as_floats_mut(), outs, &epilogue));
        println!("winograd - {size}x{size} {ins} to {outs}: {us:9.2} us {:7.1} Gflop/s, direct", flops / us / 1e3);
        {
            let kernel = Winograd::new(exec.isa, exec.threads(), s);
            let mut packed = floats(kernel.packed_floats());
            kernel.pack(Some(exec), weights.as_floats(), packed.as_floats_mut());
            let us = best(|| {
                kernel.run(exec, input.as_floats(), ins, packed.as_floats(), out.as_floats_mut(), outs, &epilogue)
            });
            println!("winograd 4 {size}x{size} {ins} to {outs}: {us:9.2} us {:7.1} Gflop/s", flops / us / 1e3);
        }
        if !WinogradPairs::fits(&s) {
            continue;
        }
        let end = TypedEpilogue { bias: Some(bias.as_floats()), act: Act::Relu, ..TypedEpilogue::default() };
        let (bits, mut to) = (vec![0x3f80u16; size * size * ins], vec![0u16; size * size * outs]);
        if let Some(conv) = Conv::of_cells(exec.isa, exec.threads(), s, Numbers::Bf16, 0) {
            let mut packed = floats(conv.packed_floats());
            conv.pack_halves(&Halves::Bf16.all_bits(weights.as_floats()), packed.as_floats_mut());
            let cells = bytemuck::cast_slice(&bits);
            let us = best(|| {
                conv.run_typed(exec, cells, packed.as_floats(), TypedOut::Half(Halves::Bf16, &mut to), outs, &end)
            });
            println!(
                "winograd - {size}x{size} {ins} to {outs}: {us:9.2} us {:7.1} Gflop/s, direct, bf16",
                flops / us / 1e3
            );
        }
        let kernel = WinogradPairs::new(exec.isa, exec.threads(), s);
        let mut packed = floats(kernel.packed_floats());
        kernel.pack(Some(exec), weights.as_floats(), packed.as_floats_mut());
        let us = best(|| {
            kernel.run(exec, &bits, ins, packed.as_floats(), TypedOut::Half(Halves::Bf16, &mut to), outs, &end)
        });
        println!("winograd 2 {size}x{size} {ins} to {outs}: {us:9.2} us {:7.1} Gflop/s, bf16", flops / us / 1e3);
    }
}

fn grid(exec: &Exec<'_>) {
    for (size, channels) in [(64, 64), (512, 3), (64, 8), (64, 16), (64, 32), (128, 256)] {
        for mode in [SampleMode::Nearest, SampleMode::Bilinear, SampleMode::Bicubic] {
            let kernel = GridSample {
                batch: 1,
                channels,
                height: size,
                width: size,
                points: size * size,
                mode,
                padding: SamplePadding::Zeros,
                align_corners: false,
            };
            let (input, mut out) = (floats(size * size * channels), floats(size * size * channels));
            let mut points = floats(2 * size * size);
            points.as_floats_mut().iter_mut().for_each(|x| *x *= 2.0);
            let (from, at) = (input.as_floats(), points.as_floats());
            let planes = best(|| kernel.run_planes(exec, from, at, out.as_floats_mut()));
            let pixels = best(|| kernel.run_pixels(exec, from, at, out.as_floats_mut()));
            println!("grid {mode:?} {size}x{size}x{channels}: planes {planes:8.2} us, pixels {pixels:8.2} us");
        }
    }
}

fn deformable(exec: &Exec<'_>) {
    for (size, ins, outs) in [(32, 64, 64), (56, 128, 128), (28, 256, 256), (14, 512, 512)] {
        let conv = square(size, ins, outs, 3, 1, 1);
        let kernel = Deformable::new(exec.isa, exec.threads(), DeformableShape { conv, moves: 1, fades: true });
        let (input, mut out) = (floats(size * size * ins), floats(size * size * outs));
        let (offsets, mask) = (floats(18 * size * size), floats(9 * size * size));
        let mut packed = floats(kernel.packed_floats());
        kernel.pack(Some(exec), floats(conv.weights()).as_floats(), packed.as_floats_mut());
        let moves =
            Moves { offsets: offsets.as_floats(), offsets_last: true, mask: Some(mask.as_floats()), mask_last: true };
        let (from, packed, end) = (input.as_floats(), packed.as_floats(), Epilogue::default());
        let us = best(|| kernel.run(exec, from, ins, moves, packed, out.as_floats_mut(), outs, &end));
        let flops = (size * size * ins * outs * 18) as f64;
        println!("deformable {size}x{size} {ins} to {outs}: {us:9.2} us {:7.1} Gflop/s", flops / us / 1e3);
    }
}

fn fold(exec: &Exec<'_>) {
    for (size, planes, stride) in [(64, 32, 1), (64, 32, 2), (224, 3, 1)] {
        let (pair, steps) = ([1; 2], [size / stride; 2]);
        let kernel = Fold {
            planes,
            size: [size; 2],
            kernel: [3; 2],
            positions: steps,
            stride: [stride; 2],
            dilation: pair,
            pad_begin: pair,
        };
        let (columns, mut image) = (floats(planes * 9 * steps[0] * steps[1]), floats(planes * size * size));
        let us = best(|| kernel.run(exec, columns.as_floats(), image.as_floats_mut()));
        println!("fold s{stride} {size}x{size}x{planes}: {us:8.2} us");
    }
}

fn positions(exec: &Exec<'_>) {
    for (size, channels, k) in [(56, 64, 2), (112, 64, 3), (224, 64, 2)] {
        let out = size / 2;
        let shape = PoolShape {
            batch: 1,
            channels,
            in_spatial: [1, size, size],
            out_spatial: [1, out, out],
            kernel: [1, k, k],
            stride: [1, 2, 2],
            dilation: [1; 3],
            pad_begin: [0, (k - 1) / 2, (k - 1) / 2],
        };
        let kernel = MaxPositions::new(shape, channels * size * size);
        let (input, mut largest) = (floats(channels * size * size), floats(channels * out * out));
        let mut at = vec![0i64; channels * out * out];
        let us = best(|| kernel.run(exec, input.as_floats(), largest.as_floats_mut(), Places::I64(&mut at)));
        println!("places {k}x{k} s2 {size}x{size}x{channels}: {us:8.2} us");
    }
}
