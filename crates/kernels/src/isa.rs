//! Which instructions the processor has. A kernel family keeps one function per level and picks by this value, so tests run
//! every level the machine has.

/// A level of vector instructions, from the plainest up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// Plain Rust; what the compiler's baseline gives.
    Scalar,
    /// AVX2 with FMA: 8 floats.
    Avx2,
    /// AVX-512 F, BW, DQ, VL: 16 floats.
    Avx512,
}

impl Isa {
    /// The best level of this machine, found once.
    pub fn best() -> Isa {
        use std::sync::OnceLock;
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| {
            #[cfg(target_arch = "x86_64")]
            {
                let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
                let avx512 = is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl");
                if avx2 && avx512 {
                    return Isa::Avx512;
                }
                if avx2 {
                    return Isa::Avx2;
                }
            }
            Isa::Scalar
        })
    }

    /// Every level this machine can run, the plainest first.
    pub fn available() -> impl Iterator<Item = Isa> {
        [Isa::Scalar, Isa::Avx2, Isa::Avx512].into_iter().filter(|isa| *isa <= Isa::best())
    }

    /// The level itself, or the best one below it that the machine has. Every kernel passes its level through here, so a
    /// value made up by a caller cannot reach instructions that are missing.
    pub fn here(self) -> Isa {
        self.min(Isa::best())
    }

    /// Floats in one vector.
    pub fn lanes(self) -> usize {
        match self {
            Isa::Scalar => 4,
            Isa::Avx2 => 8,
            Isa::Avx512 => 16,
        }
    }

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }
}
