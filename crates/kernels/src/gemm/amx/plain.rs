//! Products of whole tiles as they lie in memory: nothing is packed here, and nothing but the sums is stored.

use super::chunk::{self, Chunk};
use super::{PAIR, SIDE, Shape, Unit};
use crate::Isa;

/// `c = a * b` or `c += a * b`, of cells of two bf16 that lie next to each other along the sum.
pub(crate) struct Plain {
    pub(crate) a: *const f32,
    /// Floats from row to row, here and below.
    pub(crate) lda: usize,
    /// A row for each cell of `a`.
    pub(crate) b: *const f32,
    pub(crate) ldb: usize,
    pub(crate) c: *mut f32,
    pub(crate) ldc: usize,
    /// All three are multiples of [`SIDE`].
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) cells: usize,
    pub(crate) add: bool,
}

/// The functions of a unit.
#[derive(Debug)]
pub(crate) struct PlainUnit {
    product: unsafe fn(&Plain),
    around: unsafe fn(&mut dyn FnMut()),
}

#[cfg(target_arch = "x86_64")]
static REAL: PlainUnit = unit::<super::real::Amx>();
#[cfg(any(test, debug_assertions))]
static TWIN: PlainUnit = unit::<super::twin::Twin>();

const fn unit<U: Unit>() -> PlainUnit {
    PlainUnit { product: product::<U>, around: chunk::around::<U> }
}

impl PlainUnit {
    /// That of a level which has tiles.
    pub(crate) fn of(isa: Isa) -> Option<&'static PlainUnit> {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Amx(_) => Some(&REAL),
            #[cfg(any(test, debug_assertions))]
            Isa::TileTwin => Some(&TWIN),
            _ => None,
        }
    }
    /// Runs products on this thread, for which registers are configured once.
    ///
    /// # Safety
    /// The processor has the unit.
    pub(crate) unsafe fn around(&self, mut work: impl FnMut()) {
        // SAFETY: the caller's promise.
        unsafe { (self.around)(&mut work) }
    }
    /// # Safety
    /// The processor has the unit; rows of all three may be read, and those of `c` written. It runs inside of [`PlainUnit::around`].
    pub(crate) unsafe fn product(&self, p: &Plain) {
        // SAFETY: the caller's promise.
        unsafe { (self.product)(p) }
    }
}

unsafe fn product<U: Unit>(p: &Plain) {
    debug_assert!(p.rows.is_multiple_of(SIDE) && p.columns.is_multiple_of(SIDE) && p.cells.is_multiple_of(SIDE));
    // SAFETY: a chunk lives as long as it is the thread's; the rest is the caller's promise.
    unsafe {
        let chunk: Option<&Chunk> = U::chunk().get().as_ref();
        chunk.expect("a product runs in a chunk").configure::<U>(WHOLE);
        for j in (0..p.columns).step_by(2 * SIDE) {
            for i in (0..p.rows).step_by(2 * SIDE) {
                match (i + SIDE < p.rows, j + SIDE < p.columns) {
                    (false, false) => square::<U, false, false>(p, i, j),
                    (false, true) => square::<U, false, true>(p, i, j),
                    (true, false) => square::<U, true, false>(p, i, j),
                    (true, true) => square::<U, true, true>(p, i, j),
                }
            }
        }
    }
}

const WHOLE: Shape = Shape::Square { rows: [SIDE as u8; 2], wide: true, step: SIDE as u8 };

/// Two rows of tiles when `TALL`, by two columns when `WIDE`, named as [`Shape::Square`] says.
#[inline(always)]
unsafe fn square<U: Unit, const TALL: bool, const WIDE: bool>(p: &Plain, row: usize, column: usize) {
    let c = p.c.wrapping_add(row * p.ldc + column);
    let (right, low) = (c.wrapping_add(SIDE), c.wrapping_add(SIDE * p.ldc));
    let lowest = low.wrapping_add(SIDE);
    // SAFETY: the caller promises rows and columns.
    unsafe {
        sums::<U, 0>(p, c);
        if WIDE {
            sums::<U, 1>(p, right);
        }
        if TALL {
            sums::<U, 2>(p, low);
        }
        if TALL && WIDE {
            sums::<U, 3>(p, lowest);
        }
        let mut a = p.a.wrapping_add(row * p.lda);
        let mut b = p.b.wrapping_add(column);
        for _ in 0..p.cells / SIDE {
            U::load::<6>(b, p.ldb);
            U::load::<4>(a, p.lda);
            U::multiply::<PAIR, 0, 4, 6>();
            if WIDE {
                U::load::<7>(b.wrapping_add(SIDE), p.ldb);
                U::multiply::<PAIR, 1, 4, 7>();
            }
            if TALL {
                U::load::<5>(a.wrapping_add(SIDE * p.lda), p.lda);
                U::multiply::<PAIR, 2, 5, 6>();
            }
            if TALL && WIDE {
                U::multiply::<PAIR, 3, 5, 7>();
            }
            a = a.wrapping_add(SIDE);
            b = b.wrapping_add(SIDE * p.ldb);
        }
        U::store::<0>(c, p.ldc);
        if WIDE {
            U::store::<1>(right, p.ldc);
        }
        if TALL {
            U::store::<2>(low, p.ldc);
        }
        if TALL && WIDE {
            U::store::<3>(lowest, p.ldc);
        }
    }
}

/// Brings what is there, or zeros, into the sums `T`.
#[inline(always)]
unsafe fn sums<U: Unit, const T: usize>(p: &Plain, at: *const f32) {
    // SAFETY: the caller's promise.
    unsafe {
        match p.add {
            true => U::load::<T>(at, p.ldc),
            false => U::zero::<T>(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of eighths, whose sums are exact.
    fn numbers(count: usize, seed: usize) -> Vec<u16> {
        let value = |i: usize| ((i * 7 + seed * 5 + i / 11) % 15) as f32 - 7.0;
        (0..count).map(|i| crate::Halves::Bf16.bits(value(i) / 8.0)).collect()
    }

    fn wide(x: u16) -> f32 {
        crate::Halves::Bf16.wide(x)
    }

    #[test]
    fn products_of_whole_tiles_are_those_of_plain_loops() {
        for isa in Isa::tested().filter(|isa| isa.has_tiles()) {
            for [rows, columns, cells] in [[16, 16, 16], [32, 48, 32], [16, 80, 64], [48, 32, 16]] {
                for add in [false, true] {
                    let (lda, ldb, ldc) = (cells + 3, columns + 16, columns + 5);
                    let (a, b) = (numbers(2 * rows * lda, 1), numbers(2 * cells * ldb, 2));
                    let before: Vec<f32> = (0..rows * ldc).map(|i| (i % 9) as f32).collect();
                    let mut c = before.clone();
                    let [at, bt] = [&a, &b].map(|x| {
                        x.chunks_exact(2)
                            .map(|x| f32::from_bits(u32::from(x[1]) << 16 | u32::from(x[0])))
                            .collect::<Vec<f32>>()
                    });
                    let p = Plain {
                        a: at.as_ptr(),
                        lda,
                        b: bt.as_ptr(),
                        ldb,
                        c: c.as_mut_ptr(),
                        ldc,
                        rows,
                        columns,
                        cells,
                        add,
                    };
                    let unit = PlainUnit::of(isa).unwrap();
                    // SAFETY: the level has the unit, and operands have these sizes.
                    unsafe { unit.around(|| unit.product(&p)) };
                    for i in 0..rows {
                        for j in 0..ldc {
                            let sum: f32 = (0..2 * cells)
                                .map(|k| {
                                    wide(a[2 * i * lda + k]) * wide(b[2 * (k / 2 * ldb + j.min(columns - 1)) + k % 2])
                                })
                                .sum();
                            let old = before[i * ldc + j];
                            let wanted = if j >= columns { old } else { sum + if add { old } else { 0.0 } };
                            assert_eq!(c[i * ldc + j], wanted, "{isa:?}, {rows} {columns} {cells}, {add}, at {i}, {j}");
                        }
                    }
                }
            }
        }
    }
}
