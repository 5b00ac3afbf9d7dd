//! Timing and the peak that figures are compared with.
#![allow(dead_code, unreachable_pub)]

use carafe_kernels::{Buffer, Isa, Pool, PoolOptions, Scratch};
use std::time::{Duration, Instant};

/// What a bench runs on: `THREADS` in the environment, or two.
pub struct Ground {
    pub pool: Pool,
    pub scratch: Scratch,
    pub threads: usize,
    /// `ISA` in the environment, or the best.
    pub isa: Isa,
    /// Flop/s that all threads reach with nothing but multiply-adds.
    pub peak: f64,
}

impl Ground {
    pub fn new(scratch: usize) -> Ground {
        let threads = std::env::var("THREADS").ok().and_then(|t| t.parse().ok()).unwrap_or(2);
        let pool = Pool::new(PoolOptions::threads(threads));
        let scratch = Scratch::new(threads, scratch).expect("memory");
        let seconds = best(|| {
            pool.run(threads, |_, _| {
                std::hint::black_box(multiply_adds(20_000));
            })
        });
        let peak = threads as f64 * 20_000.0 * 16.0 * 2.0 * Isa::best().lanes() as f64 / seconds;
        println!("{} threads, peak {:.0} GFlop/s", threads, peak / 1e9);
        let isa = std::env::var("ISA").ok().and_then(|name| Isa::available().find(|isa| isa.name() == name));
        Ground { pool, scratch, threads, isa: isa.unwrap_or(Isa::best()), peak }
    }
    /// Packed weights: once, or as often as it takes to find none of them in the caches when `COLD` is set and they are used
    /// in turn.
    pub fn copies(&self, floats: usize) -> Vec<Buffer> {
        let bytes = floats * 4 + 1;
        let count = if std::env::var("COLD").is_ok() { (160 << 20) / bytes + 1 } else { 1 };
        (0..count.min(4000)).map(|_| Buffer::floats(floats).expect("memory")).collect()
    }
    pub fn report(&self, name: &str, flop: usize, seconds: f64) {
        let rate = flop as f64 / seconds;
        let (us, percent) = (seconds * 1e6, 100.0 * rate / self.peak);
        println!("{name:34} {us:9.1} us {:7.1} GFlop/s {percent:5.1} %", rate / 1e9);
    }
}

/// Seconds of a call: of the fastest of many, or of the middle one when `COLD` is set.
pub fn best(mut call: impl FnMut()) -> f64 {
    let limit = Duration::from_millis(std::env::var("MS").ok().and_then(|t| t.parse().ok()).unwrap_or(150));
    let (start, mut times) = (Instant::now(), Vec::new());
    while start.elapsed() < limit || times.len() < 3 {
        let t = Instant::now();
        call();
        times.push(t.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    if std::env::var("COLD").is_ok() { times[times.len() / 2] } else { times[0] }
}

fn multiply_adds(n: usize) -> f32 {
    #[cfg(target_arch = "x86_64")]
    match Isa::best() {
        // SAFETY: the level is there.
        Isa::Avx512(_) | Isa::Amx(_) => return unsafe { avx512(n) },
        // SAFETY: as above.
        Isa::Avx2(_) => return unsafe { avx2(n) },
        Isa::Scalar | Isa::TileTwin => {}
    }
    let mut sums = [[1.0f32; 4]; 16];
    for _ in 0..n {
        sums.iter_mut().flatten().for_each(|s| *s = *s * 0.5 + 0.25);
    }
    sums[0][0]
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn avx512(n: usize) -> f32 {
    use std::arch::x86_64::*;
    let (x, y) = (_mm512_set1_ps(0.5), _mm512_set1_ps(0.25));
    let mut sums: [__m512; 16] = std::array::from_fn(|i| _mm512_set1_ps(i as f32));
    for _ in 0..n {
        for s in &mut sums {
            *s = _mm512_fmadd_ps(*s, x, y);
        }
    }
    sums.iter().map(|s| _mm512_reduce_add_ps(*s)).sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2(n: usize) -> f32 {
    use std::arch::x86_64::*;
    let (x, y) = (_mm256_set1_ps(0.5), _mm256_set1_ps(0.25));
    let mut sums: [__m256; 16] = std::array::from_fn(|i| _mm256_set1_ps(i as f32));
    for _ in 0..n {
        for s in &mut sums {
            *s = _mm256_fmadd_ps(*s, x, y);
        }
    }
    sums.iter().map(|s| _mm256_cvtss_f32(*s)).sum()
}
