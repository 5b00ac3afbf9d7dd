//! Which instructions the processor has, as a value that proves it.

/// A level of vector instructions, from the plainest up.
///
/// A level above [`Isa::Scalar`] carries a token that only detection makes, so whoever holds an `Isa` may run its
/// instructions. Tests run every level of [`Isa::tested`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// Plain Rust; what the compiler's baseline gives.
    Scalar,
    /// NEON: 4 floats.
    #[cfg(target_arch = "aarch64")]
    Neon(Neon),
    /// AVX2 with FMA: 8 floats.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX-512 F, BW, DQ, VL, with AVX2 and FMA: 16 floats.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
    /// AVX-512 with VNNI and BF16, and the tile registers of AMX for products of bf16 and bytes, on some processors of f16.
    #[cfg(target_arch = "x86_64")]
    Amx(Amx),
    /// Plain Rust in all, with tile registers that are imitated: slow, and there for tests. Built without debug assertions it
    /// has none and is [`Isa::Scalar`].
    TileTwin,
}

macro_rules! tokens {
    ($($arch:literal $Name:ident, $detected:ident: $($feature:tt),*;)*) => {$(
        #[doc = concat!("Proof that this machine has the instructions of `Isa::", stringify!($Name), "`.")]
        #[cfg(target_arch = $arch)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $Name(());

        #[cfg(target_arch = $arch)]
        impl $Name {
            /// The token, if the processor has the instructions and the system saves their registers.
            pub fn detect() -> Option<$Name> {
                ($(std::arch::$detected!($feature))&&*).then_some($Name(()))
            }
        }
    )*};
}

tokens! {
    "aarch64" Neon, is_aarch64_feature_detected: "neon";
    "x86_64" Avx2, is_x86_feature_detected: "avx2", "fma";
    "x86_64" Avx512, is_x86_feature_detected: "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx2", "fma";
}

/// Proof that this machine has the instructions of `Isa::Amx`, and lets this process use them.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Amx {
    /// Whether f16 are multiplied, too.
    halves: bool,
}

#[cfg(target_arch = "x86_64")]
impl Amx {
    /// The token, or why there is none. The first call asks the system for the registers, for all threads of the process, and
    /// tries a few instructions.
    pub fn detect() -> Result<Amx, &'static str> {
        use std::sync::OnceLock;
        static FOUND: OnceLock<Result<bool, &'static str>> = OnceLock::new();
        let found = FOUND.get_or_init(|| {
            let vectors = Avx512::detect().is_some()
                && std::arch::is_x86_feature_detected!("avx512bf16")
                && std::arch::is_x86_feature_detected!("avx512vnni");
            if vectors { crate::simd::amx::probe() } else { Err("the processor has no AVX-512 for bf16 and bytes") }
        });
        found.map(|halves| Amx { halves })
    }

    /// For tests that carry the instructions out themselves.
    #[cfg(test)]
    pub(crate) fn unproven() -> Amx {
        Amx { halves: true }
    }
}

impl Isa {
    /// The best level of this machine, found once.
    pub fn best() -> Isa {
        use std::sync::OnceLock;
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| Isa::available().last().unwrap_or(Isa::Scalar))
    }

    /// Every level this machine can run, the plainest first.
    pub fn available() -> impl Iterator<Item = Isa> {
        let levels = [
            Some(Isa::Scalar),
            #[cfg(target_arch = "aarch64")]
            Neon::detect().map(Isa::Neon),
            #[cfg(target_arch = "x86_64")]
            Avx2::detect().map(Isa::Avx2),
            #[cfg(target_arch = "x86_64")]
            Avx512::detect().map(Isa::Avx512),
            #[cfg(target_arch = "x86_64")]
            Amx::detect().ok().map(Isa::Amx),
        ];
        levels.into_iter().flatten()
    }

    /// The levels of [`Isa::available`], and those that imitate others.
    pub fn tested() -> impl Iterator<Item = Isa> {
        Isa::available().chain(cfg!(any(test, debug_assertions)).then_some(Isa::TileTwin))
    }

    /// Whether products of bf16 and bytes run in tile registers.
    pub fn has_tiles(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Amx(_) => true,
            Isa::TileTwin => cfg!(any(test, debug_assertions)),
            _ => false,
        }
    }

    /// Whether products of f16 do.
    pub fn has_tiles_of_halves(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Amx(token) => token.halves,
            _ => self.has_tiles(),
        }
    }

    /// Whether floats are those of the compiler's baseline.
    pub(crate) fn is_plain(self) -> bool {
        matches!(self, Isa::Scalar | Isa::TileTwin)
    }

    /// Whether vectors are those of AVX-512.
    pub(crate) fn is_avx512(self) -> bool {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) | Isa::Amx(_) => true,
            _ => false,
        }
    }

    /// Floats in one vector.
    pub fn lanes(self) -> usize {
        match self {
            Isa::Scalar | Isa::TileTwin => 4,
            #[cfg(target_arch = "aarch64")]
            Isa::Neon(_) => 4,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(_) => 8,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) | Isa::Amx(_) => 16,
        }
    }

    /// Vector registers, which bound the sums that a kernel keeps.
    pub fn registers(self) -> usize {
        match self {
            Isa::Scalar | Isa::TileTwin => 16,
            #[cfg(target_arch = "aarch64")]
            Isa::Neon(_) => 32,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(_) => 16,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) | Isa::Amx(_) => 32,
        }
    }

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            #[cfg(target_arch = "aarch64")]
            Isa::Neon(_) => "neon",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) => "avx512",
            #[cfg(target_arch = "x86_64")]
            Isa::Amx(_) => "amx",
            Isa::TileTwin => "tile-twin",
        }
    }
}

#[cfg(target_arch = "x86_64")]
impl Isa {
    /// Proof of AVX2, which AVX-512 includes; `None` below it.
    pub(crate) fn avx2(self) -> Option<Avx2> {
        match self {
            Isa::Scalar | Isa::TileTwin => None,
            Isa::Avx2(token) => Some(token),
            Isa::Avx512(_) | Isa::Amx(_) => Some(Avx2(())),
        }
    }

    /// Proof of AVX-512, which AMX includes; `None` below it.
    pub(crate) fn avx512(self) -> Option<Avx512> {
        match self {
            Isa::Avx512(token) => Some(token),
            Isa::Amx(_) => Some(Avx512(())),
            _ => None,
        }
    }
}
