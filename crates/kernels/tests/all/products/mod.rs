//! Random numbers, plain references and comparison for tests of products.
#![allow(dead_code, unreachable_pub)]

use carafe_kernels::{Act, Epilogue, Exec, Isa, Pool, PoolOptions, Scratch};

/// xorshift.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n.max(1)
    }
    pub fn between(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }
    pub fn float(&mut self) -> f32 {
        ((self.next() >> 40) as f32 / (1 << 24) as f32) * 2.0 - 1.0
    }
    pub fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.float()).collect()
    }
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Every level with one and three threads, imitated ones too.
pub fn everywhere(scratch: usize, test: impl Fn(&Exec<'_>)) {
    for threads in [1, 3] {
        let pool = Pool::new(PoolOptions::threads(threads));
        let scratch = Scratch::new(threads, scratch).unwrap();
        for isa in Isa::tested() {
            test(&Exec::new(&pool, isa, &scratch));
        }
    }
}

pub const ACTS: [Act; 8] = [
    Act::None,
    Act::Relu,
    Act::Clamp { min: -0.5, max: 0.75 },
    Act::LeakyRelu(0.1),
    Act::HSwish,
    Act::HSigmoid,
    Act::HardSigmoid { alpha: 0.3, beta: 0.4 },
    Act::Sigmoid,
];

pub fn act(act: Act, x: f64) -> f64 {
    match act {
        Act::None => x,
        Act::Relu => x.max(0.0),
        Act::Clamp { min, max } => x.clamp(min.into(), max.into()),
        Act::LeakyRelu(f) => {
            if x < 0.0 {
                x * f64::from(f)
            } else {
                x
            }
        }
        Act::HSwish => x * (x + 3.0).clamp(0.0, 6.0) / 6.0,
        Act::HSigmoid => (x + 3.0).clamp(0.0, 6.0) / 6.0,
        Act::HardSigmoid { alpha, beta } => (x * f64::from(alpha) + f64::from(beta)).clamp(0.0, 1.0),
        Act::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        _ => unimplemented!(),
    }
}

/// The epilogue on one sum.
pub fn ended(epilogue: &Epilogue<'_>, sum: f64, row: usize, column: usize) -> f64 {
    let x = sum + epilogue.bias.map_or(0.0, |b| f64::from(b[column]));
    let add = epilogue.add.map_or(0.0, |(a, stride)| f64::from(a[row * stride + column]));
    if epilogue.add_last { act(epilogue.act, x) + add } else { act(epilogue.act, x + add) }
}

pub fn check(found: f32, expected: f64, k: usize, what: &dyn Fn() -> String) {
    let bound = 3e-7 * (k as f64 + 8.0);
    assert!((f64::from(found) - expected).abs() <= bound, "{found} instead of {expected}: {}", what());
}
