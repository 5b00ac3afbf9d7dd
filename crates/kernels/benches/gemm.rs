//! Matrix products of usual sizes: GFlop/s and the part of what bare multiply-adds reach.

mod products;

use carafe_kernels::{BatchMatMul, Buffer, Epilogue, Exec, Gemm, Operand};
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
