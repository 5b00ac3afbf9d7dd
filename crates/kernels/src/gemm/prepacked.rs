//! A product with a constant `B`, packed once.

use super::cells::{self, Numbers};
use super::grid::{Grid, Size};
use super::leave::Leaving;
use super::pack;
use super::panels::Panels;
use super::region::{self, Product, TileEpilogue};
use super::{Micro, SKINNY};
use crate::{Epilogue, Exec, Isa, SharedMut, TypedEpilogue, TypedOut};

/// `C = A * B` for a `B` of `k x n` that was packed beforehand. Any number of rows of `A` may be multiplied with it.
#[derive(Clone, Copy, Debug)]
pub struct Gemm {
    isa: Isa,
    micro: &'static Micro,
    panels: Panels,
    k: usize,
}

/// Rows this many bytes apart, or a multiple, meet in few lines of the first-level cache.
const ALIASED: usize = 2048;

impl Gemm {
    pub fn new(isa: Isa, n: usize, k: usize) -> Gemm {
        Gemm::with_micro(isa, Micro::of(isa), n, k)
    }
    pub(crate) fn with_micro(isa: Isa, micro: &'static Micro, n: usize, k: usize) -> Gemm {
        Gemm { isa, micro, panels: Panels::new(micro, n), k }
    }
    /// Of numbers in cells, with an output of any type: see [`Gemm::run_typed`]. `k` counts numbers; `None` when they do not
    /// fill their cells.
    pub fn of_cells(isa: Isa, numbers: Numbers, n: usize, k: usize) -> Option<Gemm> {
        let cells = k / numbers.per_cell();
        k.is_multiple_of(numbers.per_cell()).then(|| Gemm::with_micro(isa, numbers.micro(isa), n, cells))
    }
    pub fn n(&self) -> usize {
        self.panels.n
    }
    /// Rows of the matrix, in cells.
    pub fn k(&self) -> usize {
        self.k
    }
    /// Floats of the packed matrix.
    pub fn packed_floats(&self) -> usize {
        self.panels.floats(self.k)
    }
    /// Floats of scratch a thread uses to move rows that lie badly; without them they are read where they are.
    pub fn scratch_floats(&self) -> usize {
        if !self.k.is_multiple_of(ALIASED / 4) || self.k == 0 {
            return 0;
        }
        Product::copy_floats(self.micro, self.k)
    }

    /// Packs `b`, which is `k x n`, or `n x k` when `transposed`. Without `exec` on this thread alone.
    pub fn pack(&self, exec: Option<&Exec<'_>>, b: &[f32], transposed: bool, packed: &mut [f32]) {
        assert!(b.len() >= self.k * self.n(), "{} floats for a {} x {} matrix", b.len(), self.k, self.n());
        let ldb = if transposed { self.k } else { self.n() };
        // SAFETY: the matrix is whole, and columns of panels start inside it.
        unsafe { self.pack_from(exec, b.as_ptr(), ldb, transposed, 1, packed) }
    }

    /// # Safety
    /// `b` holds `k` rows of `n`, or `n` of `k` when transposed, `ldb` apart.
    pub(crate) unsafe fn pack_from(
        &self,
        exec: Option<&Exec<'_>>,
        b: *const f32,
        ldb: usize,
        transposed: bool,
        inner: usize,
        packed: &mut [f32],
    ) {
        assert!(packed.len() >= self.packed_floats(), "{} floats for the packed matrix", packed.len());
        if self.k == 0 || self.n() == 0 {
            return;
        }
        let out = SharedMut::new(packed);
        let from = From(b);
        let one = |panel: usize, _: usize| {
            let (width, columns) = (self.panels.width_of(panel), self.panels.columns(panel));
            let (start, first) = (self.panels.start(panel, self.k), panel * self.panels.width);
            // SAFETY: each panel is written once; the source is whole.
            unsafe {
                let to = out.part(start..start + width * self.k).as_mut_ptr();
                if transposed {
                    let b = from.get().add(first * ldb);
                    pack::columns(self.isa, b, ldb, self.k, columns, inner, to, width);
                } else {
                    pack::rows(from.get().add(first), ldb, self.k, columns, to, width);
                }
            }
        };
        match exec {
            Some(exec) => exec.each(self.panels.count(), one),
            None => (0..self.panels.count()).for_each(|p| one(p, 0)),
        }
    }

    /// Whether what the epilogue adds may lie in the output.
    pub fn adds_over(&self, epilogue: &Epilogue<'_>) -> bool {
        region::adds_over(self.k, epilogue)
    }

    /// Multiplies `m` rows of `a`, `lda` apart, and stores them `ldc` apart.
    pub fn run(
        &self,
        exec: &Exec<'_>,
        m: usize,
        a: &[f32],
        lda: usize,
        packed: &[f32],
        c: &mut [f32],
        ldc: usize,
        epilogue: &Epilogue<'_>,
    ) {
        let (n, k) = (self.n(), self.k);
        if m == 0 || n == 0 {
            return;
        }
        assert!(self.micro.resumes, "a product of cells has a typed output");
        assert!(m == 1 || (lda >= k && ldc >= n), "rows overlap: {lda} for {k}, {ldc} for {n}");
        assert!(c.len() >= (m - 1) * ldc + n, "{} floats for {m} rows of {n}", c.len());
        let (mut tile_epilogue, c) = (TileEpilogue::new(self.isa, epilogue, 1.0, m, n), c.as_mut_ptr());
        if epilogue.add_own {
            assert!(self.adds_over(epilogue), "{epilogue:?} cannot add what the output holds");
            tile_epilogue = tile_epilogue.over(c, ldc);
        }
        self.multiply(exec, (m, a, lda), packed, c, ldc, tile_epilogue);
    }

    /// Packs a matrix of 8-bit numbers, `k x n` or `n x k` when `transposed`; `k` counts numbers.
    pub fn pack_i8(&self, b: &[i8], transposed: bool, packed: &mut [f32]) {
        self.pack_cells(b, 4, transposed, packed, |cell| std::array::from_fn(|i| cell[i] as u8));
    }

    /// Packs a matrix of bits of bf16 or f16.
    pub fn pack_halves(&self, b: &[u16], transposed: bool, packed: &mut [f32]) {
        self.pack_cells(b, 2, transposed, packed, |cell| {
            let [a, b] = [cell[0], cell[1]].map(u16::to_le_bytes);
            [a[0], a[1], b[0], b[1]]
        });
    }

    /// Packs a matrix of floats, one a cell.
    pub fn pack_f32(&self, b: &[f32], transposed: bool, packed: &mut [f32]) {
        self.pack_cells(b, 1, transposed, packed, |cell| cell[0].to_le_bytes());
    }

    fn pack_cells<T: Copy + Default>(
        &self,
        b: &[T],
        each: usize,
        transposed: bool,
        packed: &mut [f32],
        bytes: impl Fn([T; 4]) -> [u8; 4],
    ) {
        let (k, n) = (self.k * each, self.n());
        assert!(b.len() >= k * n, "{} numbers for a {k} x {n} matrix", b.len());
        assert!(packed.len() >= self.packed_floats(), "{} floats for the packed matrix", packed.len());
        cells::pack(&self.panels, 1, self.k, packed, |column, _, cell| {
            let mut numbers = [T::default(); 4];
            for (i, number) in numbers[..each].iter_mut().enumerate() {
                let row = cell * each + i;
                *number = if transposed { b[column * k + row] } else { b[row * n + column] };
            }
            bytes(numbers)
        });
    }

    /// Multiplies `m` rows of cells, `lda` cells apart; rows of `out` are `ldc` elements apart.
    pub fn run_typed(
        &self,
        exec: &Exec<'_>,
        numbers: Numbers,
        (m, a, lda): (usize, &[f32], usize),
        packed: &[f32],
        out: TypedOut<'_>,
        ldc: usize,
        epilogue: &TypedEpilogue<'_>,
    ) {
        if m == 0 || self.n() == 0 {
            return;
        }
        assert!(std::ptr::eq(self.micro, numbers.micro(self.isa)), "a product of other numbers");
        let leaving = Leaving::new(self.isa, numbers == Numbers::U8I8, epilogue, out, ldc, m, self.n());
        let tile_epilogue = TileEpilogue::leaving(self.isa, &leaving);
        self.multiply(exec, (m, a, lda), packed, std::ptr::null_mut(), 0, tile_epilogue);
    }

    /// The output has been checked against the size.
    pub(crate) fn multiply(
        &self,
        exec: &Exec<'_>,
        (m, a, lda): (usize, &[f32], usize),
        packed: &[f32],
        c: *mut f32,
        ldc: usize,
        tile_epilogue: TileEpilogue<'_>,
    ) {
        let (n, k) = (self.n(), self.k);
        assert!(m == 1 || lda >= k, "rows overlap: {lda} for {k}");
        assert!(a.len() >= (m - 1) * lda + k, "{} floats for {m} rows of {k}", a.len());
        assert!(packed.len() >= self.packed_floats(), "{} floats for the packed matrix", packed.len());
        let product = Product {
            micro: self.micro,
            panels: self.panels,
            k,
            a: a.as_ptr(),
            lda,
            b: packed.as_ptr(),
            c,
            ldc,
            tile_epilogue,
            first_row: 0,
            first_column: 0,
            all_columns: n,
            stop: exec.stop,
        };
        let panels = self.panels.count();
        let moved = (lda * 4).is_multiple_of(ALIASED) && m > SKINNY && exec.scratch.floats() > 0;
        let copied = moved || tile_epilogue.has_finish();
        let grid = Grid::new(self.micro, exec.threads(), Size { m, units: m, panels, k, copied });
        exec.each(grid.chunks(), |chunk, thread| {
            let (rows, panels) = grid.part(chunk, m, panels);
            let mut scratch = moved.then(|| exec.scratch.of(thread));
            // SAFETY: the slices were checked above, and chunks are disjoint rectangles. The table is that of a level of this
            // machine.
            unsafe {
                self.micro.around(|| product.run(rows.clone(), panels.clone(), scratch.as_deref_mut(), thread));
            }
        });
    }
}

#[derive(Clone, Copy)]
struct From(*const f32);
// SAFETY: it stands for a shared slice that outlives the packing.
unsafe impl Sync for From {}
// SAFETY: as above.
unsafe impl Send for From {}

impl From {
    fn get(&self) -> *const f32 {
        self.0
    }
}
