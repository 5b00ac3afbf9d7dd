//! Tile registers in plain Rust. They belong to a thread, as those of a processor do; what raises an exception there panics
//! here. Sums of bf16 and f16 are those of the instructions to the last bit: even and odd numbers are summed apart, each product
//! added with one rounding, and floats too small to be normal are zero before and after. Those of f16 that are so small count.

use super::{BYTES, Chunk, Config, HALF_PAIR, PAIR, SIDE, Unit};
use crate::cast::{Half, half_to_f32};
use crate::gemm::leave::leave_plain;
use crate::gemm::task::Target;
use std::cell::{Cell, RefCell};
use std::thread::LocalKey;

const TILES: usize = 8;
const ROW_BYTES: usize = 4 * SIDE;

thread_local! {
    static CHUNK: Cell<*const Chunk> = const { Cell::new(std::ptr::null()) };
    static REGISTERS: RefCell<Registers> = const { RefCell::new(Registers::NEW) };
}

/// The tile registers of a thread.
pub(super) struct Registers {
    config: Config,
    tiles: [[[u8; ROW_BYTES]; SIDE]; TILES],
}

impl Registers {
    const NEW: Registers = Registers { config: Config::NONE, tiles: [[[0; ROW_BYTES]; SIDE]; TILES] };

    /// Rows of a tile and bytes of each.
    fn size(&self, tile: usize) -> (usize, usize) {
        assert!(tile < TILES && self.config.rows[tile] > 0, "tile {tile} is not configured");
        (self.config.rows[tile].into(), self.config.column_bytes[tile].into())
    }

    pub(super) fn configure(&mut self, config: &Config) {
        assert!(config.palette == 1 && config.start_row == 0 && config.reserved == [0; 14], "{config:?}");
        for i in 0..16 {
            let (rows, bytes) = (config.rows[i], config.column_bytes[i]);
            assert!(rows <= 16 && bytes <= 64 && (rows == 0) == (bytes == 0), "tile {i} of {config:?}");
            assert!(i < TILES || rows == 0, "tile {i} of {config:?}");
        }
        *self = Registers { config: *config, ..Registers::NEW };
    }
    pub(super) fn release(&mut self) {
        *self = Registers::NEW;
    }
    #[cfg(test)]
    pub(super) fn is_configured(&self) -> bool {
        self.config.palette != 0
    }
    pub(super) fn zero(&mut self, tile: usize) {
        self.size(tile);
        self.tiles[tile] = Registers::NEW.tiles[0];
    }
    /// # Safety
    /// The rows of the tile lie at `from`, `stride` bytes apart.
    pub(super) unsafe fn load(&mut self, tile: usize, from: *const u8, stride: usize) {
        let (rows, bytes) = self.size(tile);
        self.tiles[tile] = Registers::NEW.tiles[0];
        for (i, row) in self.tiles[tile][..rows].iter_mut().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(from.wrapping_add(i * stride), row.as_mut_ptr(), bytes) };
        }
    }
    /// # Safety
    /// There is room for the rows of the tile at `to`, `stride` bytes apart.
    pub(super) unsafe fn store(&self, tile: usize, to: *mut u8, stride: usize) {
        let (rows, bytes) = self.size(tile);
        for (i, row) in self.tiles[tile][..rows].iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(row.as_ptr(), to.wrapping_add(i * stride), bytes) };
        }
    }

    /// `c += a * b`.
    pub(super) fn multiply(&mut self, op: usize, [c, a, b]: [usize; 3]) {
        assert!(c != a && a != b && b != c, "tiles {c}, {a} and {b} are not three");
        let ((m, c_bytes), (a_rows, a_bytes), (k, b_bytes)) = (self.size(c), self.size(a), self.size(b));
        assert!(m == a_rows && c_bytes == b_bytes && a_bytes == 4 * k, "tiles {c}, {a} and {b} do not fit");
        assert!(c_bytes.is_multiple_of(4), "columns of {c_bytes} bytes");
        let cell = |tile: &[[u8; ROW_BYTES]; SIDE], i: usize, j: usize| -> [u8; 4] {
            std::array::from_fn(|byte| tile[i][4 * j + byte])
        };
        for i in 0..m {
            for j in 0..c_bytes / 4 {
                let factors = (0..k).map(|x| (cell(&self.tiles[a], i, x), cell(&self.tiles[b], x, j)));
                let sum = cell(&self.tiles[c], i, j);
                let sum = match op {
                    PAIR => pairs(f32::from_le_bytes(sum), factors, brain).to_le_bytes(),
                    HALF_PAIR => pairs(f32::from_le_bytes(sum), factors, half).to_le_bytes(),
                    BYTES => bytes(i32::from_le_bytes(sum), factors).to_le_bytes(),
                    _ => panic!("no such product: {op}"),
                };
                self.tiles[c][i][4 * j..4 * j + 4].copy_from_slice(&sum);
            }
        }
    }
}

// Too small to be normal: zero of the same sign.
fn normal(x: f32) -> f32 {
    if x.is_subnormal() { 0f32.copysign(x) } else { x }
}

fn brain(bits: [u8; 2]) -> f32 {
    normal(f32::from_le_bytes([0, 0, bits[0], bits[1]]))
}

fn half(bits: [u8; 2]) -> f32 {
    half_to_f32(Half(u16::from_le_bytes(bits)))
}

fn pairs(sum: f32, factors: impl Iterator<Item = ([u8; 4], [u8; 4])>, wide: fn([u8; 2]) -> f32) -> f32 {
    let number = |cell: [u8; 4], odd: usize| wide([cell[2 * odd], cell[2 * odd + 1]]);
    let mut sums = [0f32; 2];
    for (x, y) in factors {
        for odd in 0..2 {
            sums[odd] = normal(number(x, odd).mul_add(number(y, odd), sums[odd]));
        }
    }
    normal(normal(sum) + normal(sums[0] + sums[1]))
}

fn bytes(sum: i32, factors: impl Iterator<Item = ([u8; 4], [u8; 4])>) -> i32 {
    factors
        .fold(sum, |sum, (x, y)| (0..4).fold(sum, |sum, i| sum.wrapping_add(i32::from(x[i]) * i32::from(y[i] as i8))))
}

/// The unit whose registers are those of this thread.
pub(super) struct Twin;

impl Twin {
    pub(super) fn with<R>(work: impl FnOnce(&mut Registers) -> R) -> R {
        REGISTERS.with(|registers| work(&mut registers.borrow_mut()))
    }
}

impl Unit for Twin {
    unsafe fn configure(config: &Config) {
        Twin::with(|r| r.configure(config));
    }
    unsafe fn release() {
        Twin::with(Registers::release);
    }
    unsafe fn zero<const T: usize>() {
        Twin::with(|r| r.zero(T));
    }
    unsafe fn load<const T: usize>(from: *const f32, stride: usize) {
        // SAFETY: the caller's promise.
        Twin::with(|r| unsafe { r.load(T, from.cast(), 4 * stride) });
    }
    unsafe fn stream<const T: usize>(from: *const f32, stride: usize) {
        // SAFETY: the caller's promise.
        Twin::with(|r| unsafe { r.load(T, from.cast(), 4 * stride) });
    }
    unsafe fn multiply<const OP: usize, const C: usize, const A: usize, const B: usize>() {
        Twin::with(|r| r.multiply(OP, [C, A, B]));
    }
    unsafe fn store<const T: usize>(to: *mut f32, stride: usize) {
        // SAFETY: the caller's promise.
        Twin::with(|r| unsafe { r.store(T, to.cast(), 4 * stride) });
    }
    fn ask(_: *const f32) {}
    unsafe fn leave(target: &Target, sums: *mut f32, rows: usize) {
        // SAFETY: the caller's promise.
        unsafe { leave_plain(target, sums, rows) }
    }
    fn chunk() -> &'static LocalKey<Cell<*const Chunk>> {
        &CHUNK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds `a * b` of one row, one column and one cell to `c`.
    fn one(op: usize, c: [u8; 4], a: [u8; 4], b: [u8; 4]) -> [u8; 4] {
        let mut r = Registers::NEW;
        r.configure(&Config::new([(1, 1); 8]));
        let mut sum = c;
        // SAFETY: a cell each.
        unsafe {
            r.load(0, c.as_ptr(), 64);
            r.load(1, a.as_ptr(), 64);
            r.load(2, b.as_ptr(), 64);
            r.multiply(op, [0, 1, 2]);
            r.store(0, sum.as_mut_ptr(), 64);
        }
        sum
    }

    fn halves(low: f32, high: f32) -> [u8; 4] {
        (high.to_bits() & 0xffff_0000 | low.to_bits() >> 16).to_le_bytes()
    }

    #[test]
    fn a_pair_is_summed_before_it_is_added() {
        // 1 and -1 cancel before they meet a number that would swallow both.
        let sum = one(PAIR, 1e-9f32.to_le_bytes(), halves(1.0, -1.0), halves(1.0, 1.0));
        assert_eq!(f32::from_le_bytes(sum), 1e-9);
    }

    #[test]
    fn numbers_too_small_to_be_normal_are_zero() {
        let tiny = f32::MIN_POSITIVE / 2.0;
        let add =
            |c: f32, x: f32, y: f32| f32::from_le_bytes(one(PAIR, c.to_le_bytes(), halves(x, 0.0), halves(y, 0.0)));
        assert_eq!(add(0.0, tiny, 1e30), 0.0, "before");
        assert_eq!(add(0.0, f32::MIN_POSITIVE, 0.5), 0.0, "behind");
        assert_eq!(add(tiny, 0.0, 0.0), 0.0, "in the sum");
        assert_eq!(add(1.0, 2.0, 3.0), 7.0);
    }

    #[test]
    fn small_numbers_of_half_precision_count() {
        let add = |c: f32, x: u16, y: u16| {
            let cell = |bits: u16| [bits.to_le_bytes(), [0; 2]].concat().try_into().unwrap();
            f32::from_le_bytes(one(HALF_PAIR, c.to_le_bytes(), cell(x), cell(y)))
        };
        // The least number there is, and its product with itself.
        assert_eq!(add(0.0, 1, 0x3c00), 2f32.powi(-24));
        assert_eq!(add(0.0, 1, 1), 2f32.powi(-48));
        assert_eq!(add(1.0, 0x7bff, 0x7bff), 65504.0 * 65504.0 + 1.0, "no product is too large");
        assert_eq!(add(f32::MIN_POSITIVE / 2.0, 0, 0), 0.0, "a sum that is too small");
        assert!(add(0.0, 0x7c00, 0).is_nan() && add(0.0, 0x7c00, 1) == f32::INFINITY);
    }

    #[test]
    fn of_bytes_the_first_are_unsigned_and_the_second_signed() {
        let sum = one(BYTES, 5i32.to_le_bytes(), [200, 1, 0, 255], [255, 2, 9, 128]);
        assert_eq!(i32::from_le_bytes(sum), 5 - 200 + 2 - 255 * 128);
    }

    #[test]
    #[should_panic(expected = "do not fit")]
    fn tiles_that_do_not_fit_are_refused() {
        let mut r = Registers::NEW;
        r.configure(&Config::new([(2, 1), (1, 1), (1, 1), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)]));
        r.multiply(PAIR, [0, 1, 2]);
    }

    #[test]
    #[should_panic(expected = "not configured")]
    fn a_tile_that_is_not_configured_is_refused() {
        let mut r = Registers::NEW;
        r.configure(&Config::new([(1, 1), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0), (0, 0)]));
        r.zero(3);
    }
}
