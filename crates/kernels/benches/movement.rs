//! Speed of moves and selections on usual shapes: time, and bytes read and written in a second. `plain` is a copy of as many
//! bytes by one thread. Arguments pick those whose name has them in it.

use carafe_kernels::movement::*;
use carafe_kernels::select::*;
use carafe_kernels::{Buffer, Exec, Isa, Pool, PoolOptions, Scratch};
use std::time::Instant;

fn main() {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    for threads in [1, threads] {
        let pool = Pool::new(PoolOptions::threads(threads));
        let scratch = Scratch::new(threads, 1 << 20).expect("memory");
        let exec = Exec::new(&pool, Isa::best(), &scratch);
        println!("{} threads, {}", threads, exec.isa.name());
        moves(&exec);
        joins(&exec);
        gathers(&exec);
        selections(&exec);
    }
}

/// Seconds of the fastest of many runs.
fn best(mut work: impl FnMut()) -> f64 {
    let (mut best, begin) = (f64::MAX, Instant::now());
    let mut runs = 0;
    while runs < 5 || begin.elapsed().as_millis() < 60 {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
        runs += 1;
    }
    best
}

/// Runs what an argument of the program, if there is one, names.
fn report(name: &str, bytes: usize, work: impl FnMut()) {
    let mut wanted = std::env::args().skip(1).filter(|a| !a.starts_with("--")).peekable();
    if wanted.peek().is_some() && !wanted.any(|a| name.contains(&a)) {
        return;
    }
    let seconds = best(work);
    println!("  {name:44} {:9.2} us {:7.1} GB/s", seconds * 1e6, bytes as f64 / seconds / 1e9);
}

fn floats(n: usize) -> Buffer {
    let mut buffer = Buffer::floats(n).expect("memory");
    let mut x = 88172645463325252u64;
    for value in buffer.as_floats_mut() {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        *value = (x >> 40) as f32 / (1 << 24) as f32;
    }
    buffer
}

fn view(exec: &Exec<'_>, name: &str, view: &View) {
    let copy = StridedCopy::of(view, 4);
    let (src, mut dst) = (floats(copy.src_len() / 4), floats(copy.dst_len() / 4));
    report(name, 2 * copy.bytes(), || copy.run(exec, src.as_bytes(), dst.as_bytes_mut()));
    let n = copy.bytes().min(src.len());
    report(&format!("    {name}, plain"), 2 * n, || dst.as_bytes_mut()[..n].copy_from_slice(&src.as_bytes()[..n]));
}

fn moves(exec: &Exec<'_>) {
    let nhwc = |c, h, w| View::whole(&[1, c, h, w]).permuted(&[0, 2, 3, 1]);
    let nchw = |c, h, w| View::whole(&[1, h, w, c]).permuted(&[0, 3, 1, 2]);
    view(exec, "nhwc 3x224x224", &nhwc(3, 224, 224));
    view(exec, "nchw 3x224x224", &nchw(3, 224, 224));
    view(exec, "nhwc 3x640x640", &nhwc(3, 640, 640));
    view(exec, "nhwc 64x112x112", &nhwc(64, 112, 112));
    view(exec, "nchw 64x112x112", &nchw(64, 112, 112));
    view(exec, "nhwc 64x128x128", &nhwc(64, 128, 128));
    view(exec, "nhwc 512x7x7", &nhwc(512, 7, 7));
    view(exec, "nchw 2048x7x7", &nchw(2048, 7, 7));
    view(exec, "nchw 85x80x80", &nchw(85, 80, 80));
    view(exec, "transpose 768x768", &View::whole(&[768, 768]).permuted(&[1, 0]));
    view(exec, "transpose 1024x1024", &View::whole(&[1024, 1024]).permuted(&[1, 0]));
    view(exec, "heads 128x768", &View::whole(&[1, 128, 12, 64]).permuted(&[0, 2, 1, 3]));
    view(exec, "heads back", &View::whole(&[1, 12, 128, 64]).permuted(&[0, 2, 1, 3]));
    view(exec, "heads turned", &View::whole(&[1, 128, 12, 64]).permuted(&[0, 2, 3, 1]));
    view(exec, "heads 384x1024", &View::whole(&[1, 384, 16, 64]).permuted(&[0, 2, 1, 3]));
    let pixels = View::whole(&[6400, 256]);
    view(exec, "slice 128 of 256 channels 80x80", &pixels.sliced(1, 64, 1, 128));
    view(
        exec,
        "slice every second row and column",
        &View::whole(&[3, 640, 640]).sliced(1, 0, 2, 320).sliced(2, 1, 2, 320),
    );
    view(exec, "depth to space 2, 64x80x80", &View::whole(&[80, 80, 2, 2, 64]).permuted(&[0, 2, 1, 3, 4]));
    view(exec, "shuffle 2 groups of 58, 28x28", &View::whole(&[784, 2, 58]).permuted(&[0, 2, 1]));
    view(exec, "broadcast 128 to 784x128", &View::whole(&[128]).stretched(&[784, 128], &[1]));
    view(exec, "broadcast 784x1 to 784x128", &View::whole(&[784, 1]).stretched(&[784, 128], &[0, 1]));
    view(exec, "window partition 56x56x96 by 7", &View::whole(&[8, 7, 8, 7, 96]).permuted(&[0, 2, 1, 3, 4]));
}

fn joins(exec: &Exec<'_>) {
    let inputs: Vec<Buffer> = (0..4).map(|_| floats(6400 * 64)).collect();
    let mut out = floats(6400 * 256);
    let concat = Concat::new(&[6400, 64], 1, &[64; 4], 4);
    let bytes = 2 * out.len();
    report("concat 4 x 64 channels 80x80", bytes, || concat.run(exec, |i| inputs[i].as_bytes(), out.as_bytes_mut()));
    let qkv = floats(128 * 2304);
    let mut parts: Vec<Buffer> = (0..3).map(|_| floats(128 * 768)).collect();
    let split = Split::new(&[128, 2304], 1, &[768; 3], 4);
    let mut outputs: Vec<&mut [u8]> = parts.iter_mut().map(Buffer::as_bytes_mut).collect();
    report("split qkv 128x2304", 2 * qkv.len(), || split.run(exec, qkv.as_bytes(), &mut outputs));
    let image = floats(112 * 112 * 64);
    let mut padded = floats(114 * 114 * 64);
    let pad = Pad::new(&[112, 112, 64], &[1, 1, 0], &[1, 1, 0], PadMode::Constant, 4);
    let bytes = image.len() + padded.len();
    report("pad 112x112x64 by 1", bytes, || pad.run(exec, image.as_bytes(), None, padded.as_bytes_mut()));
    let pad = Pad::new(&[112, 112, 64], &[1, 1, 0], &[1, 1, 0], PadMode::Reflect, 4);
    report("pad 112x112x64 by 1, reflected", bytes, || pad.run(exec, image.as_bytes(), None, padded.as_bytes_mut()));
}

fn gathers(exec: &Exec<'_>) {
    let table = floats(30522 * 768);
    let indices: Vec<i32> = (0..128).map(|i| (i * 7919) % 30522).collect();
    let mut out = floats(128 * 768);
    let gather = Gather::new(&[30522, 768], &[1, 128], 0, 0, 4);
    let run = || gather.run(exec, table.as_bytes(), Indices::I32(&indices), out.as_bytes_mut());
    report("gather 128 rows of 768", 2 * 128 * 768 * 4, run);
    let positions: Vec<i64> = (0..100_000).map(|i| (i * 7919) % 65_536).collect();
    let (data, mut out) = (floats(65_536), floats(100_000));
    let gather = Gather::new(&[65_536], &[100_000], 0, 0, 4);
    let run = || gather.run(exec, data.as_bytes(), Indices::I64(&positions), out.as_bytes_mut());
    report("gather 100k single floats", 100_000 * 16, run);
    let (data, mut out) = (floats(128 * 3072), floats(128 * 3072));
    let positions: Vec<i32> = (0..128).map(|i| (i * 37) % 128).collect();
    let scatter = ScatterNd::new(&[128, 3072], &[128, 1], 4);
    let updates = floats(128 * 3072);
    let run = || {
        let done = scatter.run(exec, data.as_bytes(), Indices::I32(&positions), updates.as_bytes(), out.as_bytes_mut());
        done.expect("indices in range");
    };
    report("scatter 128 rows of 3072", 4 * data.len(), run);
    let bags = EmbeddingBag::new(30522, 768, false);
    let mut out = floats(8 * 768);
    let run = || {
        let done = bags.run(
            exec,
            table.as_floats(),
            Indices::I32(&indices),
            |b| b * 16..(b + 1) * 16,
            None,
            None,
            out.as_floats_mut(),
        );
        done.expect("indices in range");
    };
    report("sum of 8 bags of 16 rows of 768", 128 * 768 * 4, run);
}

fn selections(exec: &Exec<'_>) {
    let data = floats(100_000);
    let top = |name: &str, dims: &[usize], k: usize| {
        let top = TopK::new(dims, dims.len() - 1, k, true, Sort::Value);
        let (mut values, mut positions) = (vec![0f32; top.out_len()], vec![0i32; top.out_len()]);
        let run = || top.run(exec, data.as_floats(), &mut values, IndicesMut::I32(&mut positions));
        report(name, data.len(), run);
    };
    top("top 1000 of 100k", &[100_000], 1000);
    top("top 5 of 100 rows of 1000", &[100, 1000], 5);
    top("best of 100 rows of 1000", &[100, 1000], 1);
    top("best of 100k", &[100_000], 1);
    top("sort 100 rows of 1000", &[100, 1000], 1000);
    top("sort 100k", &[100_000], 100_000);
    let mut out = floats(100_000);
    let sums = CumSum::new(&[100, 1000], 1, false, false);
    report("running sums, 100 rows of 1000", 2 * data.len(), || sums.run(exec, data.as_floats(), out.as_floats_mut()));
    let sums = CumSum::new(&[100, 1000], 0, false, false);
    report("running sums, 100 by 1000 columns", 2 * data.len(), || {
        sums.run(exec, data.as_floats(), out.as_floats_mut())
    });
    let positions = NonZero::new(&[100, 1000]);
    let mut list = vec![0i64; 200_000];
    let run = || {
        let counts = positions.count(exec, data.as_floats());
        positions.fill(exec, data.as_floats(), &counts, IndicesMut::I64(&mut list[..2 * counts.total()]));
    };
    report("places of 100k that are not zero", data.len(), run);
    suppression(exec);
}

fn suppression(exec: &Exec<'_>) {
    let (classes, n) = (80, 8400);
    let numbers = floats(n * 4);
    let boxes: Vec<f32> = numbers
        .as_floats()
        .iter()
        .enumerate()
        .map(|(i, x)| if i % 4 < 2 { x * 640.0 } else { 10.0 + x * 100.0 })
        .collect();
    let random = floats(classes * n);
    let encoding = BoxEncoding::Center;
    let nms = Nms { images: 1, classes, boxes: n, encoding, from_threshold: false, by_score: true };
    let (mut work, mut selected) = (NmsWork::new(exec.threads()), vec![]);
    for (name, score) in [("suppression 80 x 8400, 1% pass", 0.99), ("suppression 80 x 8400, all pass", 0.0)] {
        let limits = NmsLimits { most: 100, candidates: usize::MAX, iou: 0.5, score, sigma: 0.0 };
        let run = || nms.run(exec, &boxes, random.as_floats(), limits, &mut work, &mut selected);
        report(name, random.len(), run);
    }
}
