//! Convolutions of usual layers: GFlop/s and the part of what bare multiply-adds reach.

mod products;

use carafe_kernels::{Act, Buffer, Conv, ConvPlanar, ConvShape, Epilogue, Exec, Machine, Scratch, Winograd, winograd};
use products::{Ground, best};

fn buffer(n: usize) -> Buffer {
    let mut buffer = Buffer::floats(n.max(1)).expect("memory");
    buffer.as_floats_mut().iter_mut().enumerate().for_each(|(i, x)| *x = (i % 17) as f32 * 0.1 - 0.8);
    buffer
}

fn main() {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let ground = Ground::new(1 << 21);
    let exec = Exec::new(&ground.pool, ground.isa, &ground.scratch);
    // Kernel, stride, input channels, output channels, size, planes, groups.
    let layers = [
        (3, 1, 64, 64, 56, false, 1),
        (3, 1, 128, 128, 28, false, 1),
        (3, 1, 256, 256, 14, false, 1),
        (3, 1, 512, 512, 7, false, 1),
        (3, 2, 128, 128, 56, false, 1),
        (3, 2, 256, 256, 28, false, 1),
        (3, 2, 512, 512, 14, false, 1),
        (7, 2, 3, 64, 224, true, 1),
        (3, 2, 3, 32, 224, true, 1),
        (3, 1, 16, 16, 160, false, 1),
        (3, 1, 64, 64, 80, false, 1),
        (3, 1, 128, 128, 40, false, 1),
        (3, 1, 64, 64, 224, false, 1),
        (1, 1, 16, 96, 112, false, 1),
        (1, 1, 24, 144, 56, false, 1),
        (1, 1, 144, 24, 56, false, 1),
        (1, 1, 192, 32, 28, false, 1),
        (1, 1, 96, 576, 14, false, 1),
        (1, 1, 320, 1280, 7, false, 1),
        (1, 1, 64, 256, 56, false, 1),
        (1, 1, 256, 64, 56, false, 1),
        (1, 1, 512, 128, 28, false, 1),
        (1, 1, 1024, 256, 14, false, 1),
        (1, 1, 256, 1024, 14, false, 1),
        (1, 1, 2048, 512, 7, false, 1),
        (1, 2, 256, 512, 56, false, 1),
        (1, 2, 1024, 2048, 14, false, 1),
        (3, 1, 24, 24, 56, false, 1),
        (1, 1, 120, 40, 28, false, 1),
        (1, 1, 40, 240, 28, false, 1),
        (3, 1, 128, 128, 56, false, 32),
        (3, 1, 512, 512, 14, false, 32),
    ];
    let mut total = 0.0;
    for (kernel, stride, ci, co, size, planar, groups) in layers {
        let name = format!("{kernel}x{kernel}s{stride} {ci}->{co} {size}x{size} g{groups}");
        if !name.contains(&filter) {
            continue;
        }
        let pad = [0, kernel / 2, kernel / 2];
        let shape = ConvShape {
            batch: 1,
            in_spatial: [1, size, size],
            in_channels: ci,
            out_channels: co,
            kernel: [1, kernel, kernel],
            stride: [1, stride, stride],
            dilation: [1; 3],
            pad_begin: pad,
            pad_end: pad,
            groups,
        };
        let (input, weights) = (buffer(shape.in_pixels() * ci), buffer(shape.weights()));
        let (mut out, bias) = (buffer(shape.out_pixels() * co), buffer(co));
        let epilogue = Epilogue { bias: Some(bias.as_floats()), act: Act::Relu, ..Epilogue::default() };
        let (x, y) = (input.as_floats(), out.as_floats_mut());
        let seconds = if planar {
            let conv = ConvPlanar::new(exec.isa, ground.threads, shape);
            let mut copies = ground.copies(conv.packed_floats());
            for packed in &mut copies {
                conv.pack(Some(&exec), weights.as_floats(), packed.as_floats_mut());
            }
            let mut turn = copies.iter().cycle();
            best(|| {
                let packed = turn.next().map_or(&[][..], Buffer::as_floats);
                conv.run(&exec, x, packed, y, co, &epilogue);
            })
        } else {
            let conv = Conv::new(exec.isa, ground.threads, shape);
            let mut copies = ground.copies(conv.packed_floats());
            for packed in &mut copies {
                conv.pack(Some(&exec), weights.as_floats(), packed.as_floats_mut());
            }
            let mut turn = copies.iter().cycle();
            best(|| {
                let packed = turn.next().map_or(&[][..], Buffer::as_floats);
                conv.run(&exec, x, packed, y, co, &epilogue);
            })
        };
        total += seconds;
        ground.report(&name, 2 * shape.out_pixels() * shape.weights(), seconds);
        if Winograd::fits(&shape) && !planar {
            let conv = Winograd::new(exec.isa, ground.threads, shape);
            let mut copies = ground.copies(conv.packed_floats());
            for packed in &mut copies {
                conv.pack(Some(&exec), weights.as_floats(), packed.as_floats_mut());
            }
            let scratch = Scratch::new(ground.threads, conv.scratch_floats()).expect("memory");
            let exec = exec.with_scratch(&scratch);
            let mut turn = copies.iter().cycle();
            let seconds = best(|| {
                let packed = turn.next().map_or(&[][..], Buffer::as_floats);
                conv.run(&exec, x, ci, packed, y, co, &epilogue);
            });
            let chosen = winograd::worthwhile(&shape, ground.threads, Machine::here());
            let name = format!("  winograd{}", if chosen { ", chosen" } else { "" });
            ground.report(&name, 2 * shape.out_pixels() * shape.weights(), seconds);
        }
    }
    println!("total {:.1} us", total * 1e6);
}
