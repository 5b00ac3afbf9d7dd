//! Matrix products of usual sizes: GFlop/s and the part of what bare multiply-adds reach.

mod products;

use carafe_kernels::{
    BatchMatMul, Buffer, Codes, CompressedGemm, Compression, Epilogue, Exec, Gemm, Operand, RoundedGemm, Stored,
};
use products::{Ground, best};

fn buffer(n: usize) -> Buffer {
    let mut buffer = Buffer::floats(n.max(1)).expect("memory");
    buffer.as_floats_mut().iter_mut().enumerate().for_each(|(i, x)| *x = (i % 17) as f32 * 0.1 - 0.8);
    buffer
}

fn main() {
    let filter = std::env::args().skip(1).find(|a| !a.starts_with('-')).unwrap_or_default();
    let ground = Ground::new(1 << 20);
    let exec = Exec::new(&ground.pool, ground.isa, &ground.scratch);
    let sizes = [
        (128, 768, 768),
        (128, 3072, 768),
        (128, 768, 3072),
        (197, 768, 3072),
        (1, 1000, 2048),
        (1, 3072, 768),
        (1, 50257, 768),
        (2, 3072, 768),
        (4, 3072, 768),
        (8, 3072, 768),
        (3136, 64, 64),
        (784, 512, 128),
        (784, 128, 512),
        (196, 256, 1024),
        (196, 1024, 256),
        (49, 2048, 512),
        (49, 512, 2048),
        (384, 1024, 1024),
        (1024, 1024, 1024),
        (2048, 2048, 2048),
    ];
    for (m, n, k) in sizes {
        let name = format!("gemm {m}x{n}x{k}");
        if !name.contains(&filter) {
            continue;
        }
        let gemm = Gemm::new(exec.isa, n, k);
        let (a, b, mut c) = (buffer(m * k), buffer(k * n), buffer(m * n));
        let mut weights = ground.copies(gemm.packed_floats());
        for packed in &mut weights {
            gemm.pack(Some(&exec), b.as_floats(), false, packed.as_floats_mut());
        }
        let mut turn = weights.iter().cycle();
        let seconds = best(|| {
            let packed = turn.next().map_or(&[][..], Buffer::as_floats);
            gemm.run(&exec, m, a.as_floats(), k, packed, c.as_floats_mut(), n, &Epilogue::default());
        });
        ground.report(&name, 2 * m * n * k, seconds);
        if m == 1 {
            println!("{:34} {:9.1} GB/s", "", (n * k * 4) as f64 / seconds / 1e9);
        }
    }
    compressed(&filter, &ground, &exec);
    rounded(&filter, &ground, &exec);
    for transposed in [false, true] {
        let (n, k) = (4096, 4096);
        let gemm = Gemm::new(exec.isa, n, k);
        let (b, mut packed) = (buffer(k * n), buffer(gemm.packed_floats()));
        let seconds = best(|| gemm.pack(Some(&exec), b.as_floats(), transposed, packed.as_floats_mut()));
        println!("pack 64 MB transposed {transposed}: {:.1} GB/s read", (n * k * 4) as f64 / seconds / 1e9);
    }
    // Heads side by side in rows of the model's width, as attention has them.
    let heads = [
        (12, 128, 128, 64, true),
        (12, 128, 64, 128, false),
        (12, 197, 197, 64, true),
        (192, 49, 49, 32, true),
        (192, 49, 32, 49, false),
        (16, 1, 1024, 64, true),
        (16, 1, 64, 1024, false),
    ];
    for (batch, m, n, k, turned) in heads {
        let head = n.min(k).min(64);
        let beside = batch.min(12);
        let width = beside * head;
        let name = format!("heads {batch} {m}x{n}x{k} {turned}");
        let offsets = |each: usize| (0..batch).map(|i| i * each).collect::<Vec<_>>();
        let scores = Operand { offsets: offsets(m * n.max(k)), stride: n.max(k), transposed: false };
        let rows = m.max(if turned { n } else { k });
        let side = |i: usize| i / beside * rows * width + i % beside * head;
        let heads = Operand { offsets: (0..batch).map(side).collect(), stride: width, transposed: false };
        let (a, c) = if turned { (heads.clone(), scores) } else { (scores, heads.clone()) };
        let b = Operand { transposed: turned, ..heads };
        let matmul = BatchMatMul::new(exec.isa, [m, n, k], a, b, c, 0.125);
        let size = (batch * m * n.max(k)).max(batch.div_ceil(beside) * rows * width);
        let (a, b, mut c) = (buffer(size), buffer(size), buffer(size));
        let seconds = best(|| matmul.run(&exec, a.as_floats(), b.as_floats(), c.as_floats_mut(), &Epilogue::default()));
        ground.report(&name, 2 * batch * m * n * k, seconds);
    }
}

// Layers of language models, one token and many, with floats and with compressed weights.
fn compressed(filter: &str, ground: &Ground, exec: &Exec<'_>) {
    let table = std::array::from_fn(|i| i as f32 * 0.1);
    let forms = [
        ("f32", None),
        ("i8", Some(Compression { codes: Codes::I8, group: 4096, zeros: false })),
        ("u8_zeros", Some(Compression { codes: Codes::I8, group: 4096, zeros: true })),
        ("i4_g128", Some(Compression { codes: Codes::I4, group: 128, zeros: false })),
        ("u4_g128_zeros", Some(Compression { codes: Codes::I4, group: 128, zeros: true })),
        ("nf4_g64", Some(Compression { codes: Codes::Table(table), group: 64, zeros: false })),
    ];
    let (n, k) = (4096, 4096);
    for m in [1, 2, 4, 8, 128, 512] {
        for (form, compression) in forms {
            let name = format!("compressed {form} {m}x{n}x{k}");
            if !name.contains(filter) {
                continue;
            }
            let (a, mut c) = (buffer(m * k), buffer(m * n));
            let (seconds, bytes) = match compression {
                None => {
                    let gemm = Gemm::new(exec.isa, n, k);
                    let packed = buffer(gemm.packed_floats());
                    let packed = packed.as_floats();
                    let run =
                        || gemm.run(exec, m, a.as_floats(), k, packed, c.as_floats_mut(), n, &Epilogue::default());
                    (best(run), n * k * 4)
                }
                Some(compression) => {
                    let gemm = CompressedGemm::new(exec.isa, n, k, compression).expect("groups divide");
                    let bytes: Vec<u8> = (0..n * k).map(|i| (i % 251) as u8).collect();
                    let (scale, zero) = (|_, _| 0.01, |_, _| 3);
                    let stored = Stored { bytes: &bytes, flip: 0, transposed: true, scale: &scale, zero: &zero };
                    // In turns, so that a shared cache does not hold them.
                    let mut packed = ground.copies(gemm.matrix().packed_bytes() / 4);
                    packed.iter_mut().for_each(|p| gemm.matrix().pack(Some(exec), &stored, p.as_bytes_mut()));
                    let mut turn = packed.iter().cycle();
                    let run = || {
                        let packed = turn.next().map_or(&[][..], Buffer::as_bytes);
                        gemm.run(exec, (m, a.as_floats(), k), packed, c.as_floats_mut(), n, &Epilogue::default());
                    };
                    (best(run), gemm.matrix().packed_bytes())
                }
            };
            ground.report(&name, 2 * m * n * k, seconds);
            println!("{:34} {:9.1} GB/s", "", bytes as f64 / seconds / 1e9);
        }
    }
}

// The same with rows that are rounded in groups of 32.
fn rounded(filter: &str, ground: &Ground, exec: &Exec<'_>) {
    let forms = [
        ("i8", Compression { codes: Codes::I8, group: 4096, zeros: false }),
        ("u8_zeros", Compression { codes: Codes::I8, group: 4096, zeros: true }),
        ("i4_g128", Compression { codes: Codes::I4, group: 128, zeros: false }),
        ("u4_g128_zeros", Compression { codes: Codes::I4, group: 128, zeros: true }),
    ];
    let (n, k) = (4096, 4096);
    for m in [1, 8, 128, 512] {
        for (form, compression) in forms {
            let name = format!("rounded {form} {m}x{n}x{k}");
            if !name.contains(filter) {
                continue;
            }
            let gemm = RoundedGemm::new(exec.isa, n, k, compression, 32).expect("groups divide");
            let bytes: Vec<u8> = (0..n * k).map(|i| (i % 251) as u8).collect();
            let stored = Stored { bytes: &bytes, flip: 0, transposed: true, scale: &|_, _| 0.01, zero: &|_, _| 3 };
            let mut packed = ground.copies(gemm.matrix().packed_bytes() / 4);
            packed.iter_mut().for_each(|p| gemm.matrix().pack(Some(exec), &stored, p.as_bytes_mut()));
            let mut turn = packed.iter().cycle();
            let (a, mut c, mut steps) = (buffer(m * k), buffer(m * n), buffer(gemm.rounded_bytes(m) / 4));
            let seconds = best(|| {
                let packed = turn.next().map_or(&[][..], Buffer::as_bytes);
                let (steps, c) = (steps.as_bytes_mut(), c.as_floats_mut());
                gemm.run(exec, (m, a.as_floats(), k), packed, steps, c, n, &Epilogue::default());
            });
            ground.report(&name, 2 * m * n * k, seconds);
        }
    }
}
