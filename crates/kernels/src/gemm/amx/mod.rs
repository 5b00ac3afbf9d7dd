//! Tiles of cells in the tile registers of AMX, up to 32 rows by 32 columns: two bf16 a cell (`tdpbf16ps`), two f16
//! (`tdpfp16ps`), or four bytes (`tdpbusd`). A row of `A` is a row of a tile register as it lies, and so is a row of half a panel, so that the same packing
//! serves vectors and tiles.
//!
//! What a tile register does is behind [`Unit`]: the processor's (`real.rs`), or a twin in plain Rust (`twin.rs`) that does and
//! refuses what the instructions do and refuse. All else (`block.rs`, `plain.rs`) is written once over both, so that machines without AMX
//! test packing, ends, taps, configurations and the choice of functions. Of `real.rs`, which is one instruction a function, they
//! test the encodings: the unit tests carry out what they decode from its machine code (`decoded.rs`).

mod block;
mod chunk;
#[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
mod decoded;
mod plain;
#[cfg(target_arch = "x86_64")]
mod real;
#[cfg(test)]
mod tests;
#[cfg(any(test, debug_assertions))]
mod twin;

use super::Micro;
#[cfg(any(test, debug_assertions))]
use super::cells_plain;
use super::task::Target;
use chunk::Chunk;
pub(crate) use plain::{Plain, PlainUnit};
use std::cell::Cell;
use std::thread::LocalKey;

/// Rows of a tile register, and cells of each.
pub(crate) const SIDE: usize = 16;

/// What cells hold.
pub(super) const PAIR: usize = 1;
pub(super) const BYTES: usize = 2;
pub(super) const HALF_PAIR: usize = 3;

/// With a processor that has AMX.
#[cfg(target_arch = "x86_64")]
pub(crate) static BF16: Micro = micro::<real::Amx, PAIR>(super::cells_avx512::micro::<PAIR>());
#[cfg(target_arch = "x86_64")]
pub(crate) static U8I8: Micro = micro::<real::Amx, BYTES>(super::cells_avx512::micro::<BYTES>());
/// Where there are instructions for f16, too.
#[cfg(target_arch = "x86_64")]
pub(crate) static F16: Micro = micro::<real::Amx, HALF_PAIR>(super::halves_avx512::MICRO);
/// Everywhere, but in programs that are not for tests.
#[cfg(any(test, debug_assertions))]
pub(crate) static TWIN_BF16: Micro = micro::<twin::Twin, PAIR>(cells_plain::micro::<PAIR>());
#[cfg(any(test, debug_assertions))]
pub(crate) static TWIN_F16: Micro = micro::<twin::Twin, HALF_PAIR>(cells_plain::micro::<HALF_PAIR>());
#[cfg(any(test, debug_assertions))]
pub(crate) static TWIN_U8I8: Micro = micro::<twin::Twin, BYTES>(cells_plain::micro::<BYTES>());

/// The functions of vectors keep what has few rows: a tile register would be loaded to be used once.
const fn micro<U: Unit, const OP: usize>(vectors: Micro) -> Micro {
    let unit = TileUnit { tile: block::tile::<U, OP>, around: chunk::around::<U> };
    Micro { rows: 2 * SIDE, pair_rows: SIDE, unit: Some(unit), strip: None, ..vectors }
}

/// Tile registers behind a table of functions.
#[derive(Debug)]
pub(crate) struct TileUnit {
    /// Computes a tile of any size; the task says which.
    pub(super) tile: super::TileFn,
    /// Runs what computes the tiles of a chunk.
    pub(super) around: unsafe fn(&mut dyn FnMut()),
}

impl TileUnit {
    /// Rows of a tile that come from its first start, and from its second, of which the largest tile beside it has `most`. Both are
    /// as many as in that one, so that one configuration serves all: in smaller tiles they overlap.
    pub(super) fn starts(rows: usize, most: usize) -> [usize; 2] {
        let half = most.div_ceil(2);
        if most <= SIDE || rows < half { [rows, 0] } else { [half; 2] }
    }
}

/// Eight tile registers of a thread, as instructions see them. `T`, `C`, `A` and `B` are their numbers, strides count floats.
///
/// # Safety
/// The processor has the unit; a tile that is named is configured, and for products they fit one another; memory holds the
/// rows and columns of the tile.
pub(super) trait Unit {
    /// `ldtilecfg`: sizes of all tiles, which become zero.
    unsafe fn configure(config: &Config);
    /// `tilerelease`: no tile is configured any more.
    unsafe fn release();
    /// `tilezero`.
    unsafe fn zero<const T: usize>();
    /// `tileloadd`: rows that are soon loaded again.
    unsafe fn load<const T: usize>(from: *const f32, stride: usize);
    /// `tileloaddt1`: rows that pass by, which leave the nearest cache to others.
    unsafe fn stream<const T: usize>(from: *const f32, stride: usize);
    /// `tdpbf16ps`, `tdpfp16ps` or `tdpbusd`: adds the product of `A` and `B` to `C`.
    unsafe fn multiply<const OP: usize, const C: usize, const A: usize, const B: usize>();
    /// `tilestored`.
    unsafe fn store<const T: usize>(to: *mut f32, stride: usize);
    /// `prefetcht1`: a cache line that is wanted soon, but not at once.
    fn ask(at: *const f32);
    /// Takes sums out of the buffer as the target says.
    unsafe fn leave(target: &Target, sums: *mut f32, rows: usize);
    /// The chunk that this thread is at, or null.
    fn chunk() -> &'static LocalKey<Cell<*const Chunk>>;
}

/// Which tiles there are, and their sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Two by two sums: 0 and 1 of the first rows, 2 and 3 of the others; 4 and 5 of `A`, 6 and 7 of `B`. A step is as many
    /// cells as all steps have.
    Square { rows: [u8; 2], wide: bool, step: u8 },
    /// Sums 0 and 1, 2 of `A`, 4 and 5 of `B`; steps are whole tiles, but for the last: 3 of `A`, 6 and 7 of `B`.
    Line { rows: u8, wide: bool, tail: u8 },
}

/// What `ldtilecfg` reads.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    column_bytes: [u16; 16],
    rows: [u8; 16],
}

impl Config {
    pub(crate) const NONE: Config =
        Config { palette: 0, start_row: 0, reserved: [0; 14], column_bytes: [0; 16], rows: [0; 16] };

    /// Tiles of so many rows and cells; those without either are not there. Palette 1 is 8 tiles of 16 by 16 cells, whatever a
    /// processor says: some virtual machines hide the leaves that describe it.
    pub(crate) const fn new(tiles: [(u8, u8); 8]) -> Config {
        let mut config = Config { palette: 1, ..Config::NONE };
        let mut i = 0;
        while i < 8 {
            let (rows, cells) = tiles[i];
            if rows > 0 && cells > 0 {
                config.rows[i] = rows;
                config.column_bytes[i] = 4 * cells as u16;
            }
            i += 1;
        }
        config
    }
}

impl Shape {
    fn config(self) -> Config {
        let side = SIDE as u8;
        let second = |wide: bool| if wide { side } else { 0 };
        match self {
            Shape::Square { rows: [m, n], wide, step } => {
                let w = second(wide);
                Config::new([(m, side), (m, w), (n, side), (n, w), (m, step), (n, step), (step, side), (step, w)])
            }
            Shape::Line { rows, wide, tail } => {
                let (w, k) = (second(wide), side);
                Config::new([(rows, k), (rows, w), (rows, k), (rows, tail), (k, k), (k, w), (tail, k), (tail, w)])
            }
        }
    }
}
