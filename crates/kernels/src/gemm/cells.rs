//! Products of numbers smaller than a float. Four bytes, a cell, hold one f32, two bf16 or f16, or four 8-bit integers; everything
//! that moves or counts floats (strips, taps, panels, copied rows) moves and counts cells, and only the innermost
//! multiplication knows what is inside. `A` holds u8 where `B` holds i8.

use super::Micro;
use super::task::Task;
use crate::Isa;

/// What is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Numbers {
    F32,
    Bf16,
    F16,
    /// u8 times i8, summed in i32.
    U8I8,
}

/// Longest sums of [`Numbers::U8I8`] that i32 holds.
pub const LONGEST_INTEGER_SUM: usize = 1 << 16;

impl Numbers {
    /// Numbers in a cell.
    pub fn per_cell(self) -> usize {
        match self {
            Numbers::F32 => 1,
            Numbers::Bf16 | Numbers::F16 => 2,
            Numbers::U8I8 => 4,
        }
    }
    /// Whether the processor multiplies them faster than floats.
    pub fn is_fast(self, isa: Isa) -> bool {
        // Vectors of Intel's cores multiply pairs of bf16 at half the rate of floats; tiles are many times faster.
        let fast = || match self {
            Numbers::F32 | Numbers::U8I8 => true,
            Numbers::Bf16 => isa.has_tiles() || crate::machine::multiplies_pairs_fast(),
            // Vectors widen them, and multiply floats.
            Numbers::F16 => isa.has_tiles_of_halves(),
        };
        self.is_native(isa) && fast()
    }
    /// Whether the processor has instructions that multiply them.
    pub fn is_native(self, isa: Isa) -> bool {
        match self {
            Numbers::F32 => true,
            #[cfg(target_arch = "x86_64")]
            Numbers::Bf16 => isa.avx512().is_some() && is_x86_feature_detected!("avx512bf16"),
            #[cfg(target_arch = "x86_64")]
            // Vectors need no more than AVX-512, but where that is all they are slower than those of floats.
            Numbers::F16 => {
                isa.has_tiles_of_halves() || (isa.avx512().is_some() && is_x86_feature_detected!("avx512fp16"))
            }
            #[cfg(target_arch = "x86_64")]
            // Without VNNI bytes are widened, which costs what they save.
            Numbers::U8I8 => match isa {
                Isa::Avx512(_) | Isa::Amx(_) => is_x86_feature_detected!("avx512vnni"),
                Isa::Avx2(_) => is_x86_feature_detected!("avxvnni"),
                _ => false,
            },
            #[cfg(not(target_arch = "x86_64"))]
            _ => {
                let _ = isa;
                false
            }
        }
    }
    /// The innermost functions; in plain Rust where the level has none.
    pub(crate) fn micro(self, isa: Isa) -> &'static Micro {
        match (isa, self) {
            #[cfg(any(test, debug_assertions))]
            (Isa::TileTwin, Numbers::Bf16) => return &super::amx::TWIN_BF16,
            #[cfg(any(test, debug_assertions))]
            (Isa::TileTwin, Numbers::F16) => return &super::amx::TWIN_F16,
            #[cfg(any(test, debug_assertions))]
            (Isa::TileTwin, Numbers::U8I8) => return &super::amx::TWIN_U8I8,
            #[cfg(target_arch = "x86_64")]
            (Isa::Amx(_), Numbers::Bf16) => return &super::amx::BF16,
            #[cfg(target_arch = "x86_64")]
            (Isa::Amx(_), Numbers::F16) if isa.has_tiles_of_halves() => return &super::amx::F16,
            #[cfg(target_arch = "x86_64")]
            (Isa::Amx(_), Numbers::U8I8) => return &super::amx::U8I8,
            _ => {}
        }
        #[cfg(target_arch = "x86_64")]
        if isa.avx512().is_some() && (self.is_native(isa) || self == Numbers::F16) {
            return match self {
                Numbers::F32 => &super::cells_avx512::F32,
                Numbers::Bf16 => &super::cells_avx512::BF16,
                Numbers::F16 => &super::halves_avx512::F16,
                Numbers::U8I8 => &super::cells_avx512::U8I8,
            };
        }
        #[cfg(target_arch = "x86_64")]
        if let (Isa::Avx2(_) | Isa::Avx512(_), Numbers::U8I8) = (isa, self) {
            return match is_x86_feature_detected!("avxvnni") {
                true => &super::cells_avx2::VNNI,
                false => &super::cells_avx2::WIDENED,
            };
        }
        match self {
            Numbers::F32 => &super::cells_plain::F32,
            Numbers::Bf16 => &super::cells_plain::BF16,
            Numbers::F16 => &super::cells_plain::F16,
            Numbers::U8I8 => &super::cells_plain::U8I8,
        }
    }
}

/// Packs weights of `taps x cells` a column into panels. `cell(column, tap, cell)` gives the four bytes.
pub(crate) fn pack(
    panels: &super::panels::Panels,
    taps: usize,
    cells: usize,
    packed: &mut [f32],
    cell: impl Fn(usize, usize, usize) -> [u8; 4],
) {
    let k = taps * cells;
    for panel in 0..panels.count() {
        let (start, width, columns) = (panels.start(panel, k), panels.width_of(panel), panels.columns(panel));
        let first = panel * panels.width;
        for (row, line) in packed[start..start + k * width].chunks_exact_mut(width).enumerate() {
            for (j, to) in line.iter_mut().enumerate() {
                let bytes = if j < columns { cell(first + j, row / cells, row % cells) } else { [0; 4] };
                *to = f32::from_bits(u32::from_le_bytes(bytes));
            }
        }
    }
}

/// Rows of a tile that start at `a[0]`, then those at `a[1]`: the address of each.
///
/// # Safety
/// The rows are inside of what the task points to.
#[inline(always)]
pub(crate) unsafe fn row_of(task: &Task, i: usize, first: usize) -> *const f32 {
    match i < first {
        true => task.a[0].wrapping_add(i * task.lda),
        false => task.a[1].wrapping_add((i - first) * task.lda),
    }
}
