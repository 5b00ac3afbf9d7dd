//! Products and convolutions of bf16 and bytes, at the level that `ISA` names: `ISA=avx512 cargo bench --bench cells` beside
//! `ISA=amx`. GOp/s, and the part of what bare multiply-adds of floats reach.

mod products;

use carafe_kernels::{Act, Buffer, Conv, ConvShape, Exec, Gemm, Halves, Numbers, Quantizer, TypedEpilogue, TypedOut};
use products::{Ground, best};

const STEPS: Quantizer = Quantizer { inverse: 0.01, shift: 0.0, low: 0.0, high: 255.0, zero: 0 };

fn buffer(floats: usize) -> Buffer {
    Buffer::floats(floats.max(1)).expect("memory")
}

/// Runs with an output of the type that goes in.
struct Out {
    halves: Vec<u16>,
    bytes: Vec<u8>,
}

impl Out {
    fn new(len: usize) -> Out {
        Out { halves: vec![0; len], bytes: vec![0; len] }
    }
    fn of(&mut self, numbers: Numbers) -> TypedOut<'_> {
        match numbers {
            Numbers::U8I8 => TypedOut::U8(&mut self.bytes, STEPS),
            _ => TypedOut::Half(Halves::Bf16, &mut self.halves),
        }
    }
}

fn main() {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let ground = Ground::new(1 << 21);
    let exec = Exec::new(&ground.pool, ground.isa, &ground.scratch);
    println!("{}", ground.isa.name());
    for numbers in [Numbers::Bf16, Numbers::U8I8] {
        for size in [[128; 3], [256; 3], [512; 3], [1024; 3], [128, 768, 768], [128, 768, 3072], [512, 768, 3072]] {
            product(&ground, &exec, numbers, size, &filter);
        }
        for [channels, side] in [[64, 56], [128, 28], [256, 14], [512, 7], [32, 112]] {
            convolution(&ground, &exec, numbers, [channels, channels, 3, side], &filter);
        }
        for [from, to, side] in
            [[64, 256, 56], [128, 512, 28], [256, 1024, 14], [512, 2048, 7], [32, 192, 28], [144, 24, 56]]
        {
            convolution(&ground, &exec, numbers, [from, to, 1, side], &filter);
        }
    }
}

fn product(ground: &Ground, exec: &Exec<'_>, numbers: Numbers, [m, n, k]: [usize; 3], filter: &str) {
    let name = format!("{numbers:?} {m}x{n}x{k}");
    let Some(gemm) = Gemm::of_cells(exec.isa, numbers, n, k).filter(|_| name.contains(filter)) else { return };
    // Zeros take as long as other numbers.
    let (a, weights, mut out) = (buffer(m * gemm.k()), ground.copies(gemm.packed_floats()), Out::new(m * n));
    let epilogue = TypedEpilogue { act: Act::Relu, ..TypedEpilogue::default() };
    let mut turn = weights.iter().cycle();
    let seconds = best(|| {
        let packed = turn.next().map_or(&[][..], Buffer::as_floats);
        gemm.run_typed(exec, numbers, (m, a.as_floats(), gemm.k()), packed, out.of(numbers), n, &epilogue);
    });
    ground.report(&name, 2 * m * n * k, seconds);
}

fn convolution(ground: &Ground, exec: &Exec<'_>, numbers: Numbers, [from, to, kernel, side]: [usize; 4], filter: &str) {
    let name = format!("{numbers:?} {kernel}x{kernel} {from}->{to} {side}x{side}");
    let shape = ConvShape {
        batch: 1,
        in_spatial: [1, side, side],
        in_channels: from,
        out_channels: to,
        kernel: [1, kernel, kernel],
        stride: [1; 3],
        dilation: [1; 3],
        pad_begin: [0, kernel / 2, kernel / 2],
        pad_end: [0, kernel / 2, kernel / 2],
        groups: 1,
    };
    let conv = Conv::of_cells(exec.isa, ground.threads, shape, numbers, 0).filter(|_| name.contains(filter));
    let Some(conv) = conv else { return };
    let weights = ground.copies(conv.packed_floats());
    let input = buffer(side * side * from / numbers.per_cell());
    let mut out = Out::new(side * side * to);
    let epilogue = TypedEpilogue { act: Act::Relu, ..TypedEpilogue::default() };
    let mut turn = weights.iter().cycle();
    let seconds = best(|| {
        let packed = turn.next().map_or(&[][..], Buffer::as_floats);
        conv.run_typed(exec, input.as_floats(), packed, out.of(numbers), to, &epilogue);
    });
    ground.report(&name, 2 * side * side * to * from * kernel * kernel, seconds);
}
