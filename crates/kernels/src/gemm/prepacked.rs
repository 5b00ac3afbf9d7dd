//! A product with a constant `B`, packed once.

use super::grid::{Grid, Size};
use super::pack;
use super::panels::Panels;
use super::region::{Product, TileEpilogue};
use super::{Micro, SKINNY};
use crate::{Epilogue, Exec, Isa, SharedMut};

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
        let micro = Micro::of(isa);
        Gemm { isa, micro, panels: Panels::new(micro, n), k }
    }
    pub fn n(&self) -> usize {
        self.panels.n
    }
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
        assert!(m == 1 || (lda >= k && ldc >= n), "rows overlap: {lda} for {k}, {ldc} for {n}");
        assert!(a.len() >= (m - 1) * lda + k, "{} floats for {m} rows of {k}", a.len());
        assert!(c.len() >= (m - 1) * ldc + n, "{} floats for {m} rows of {n}", c.len());
        assert!(packed.len() >= self.packed_floats(), "{} floats for the packed matrix", packed.len());
        let product = Product {
            micro: self.micro,
            panels: self.panels,
            k,
            a: a.as_ptr(),
            lda,
            b: packed.as_ptr(),
            c: c.as_mut_ptr(),
            ldc,
            tile_epilogue: TileEpilogue::new(self.isa, epilogue, 1.0, m, n),
            first_row: 0,
            first_column: 0,
            all_columns: n,
            stop: exec.stop,
        };
        let panels = self.panels.count();
        let moved = (lda * 4).is_multiple_of(ALIASED) && m > SKINNY && exec.scratch.floats() > 0;
        let grid = Grid::new(self.micro, exec.threads(), Size { m, units: m, panels, k, copied: moved });
        exec.each(grid.chunks(), |chunk, thread| {
            let (rows, panels) = grid.part(chunk, m, panels);
            let mut scratch = moved.then(|| exec.scratch.of(thread));
            // SAFETY: the slices were checked above, and chunks are disjoint rectangles.
            unsafe { product.run(rows, panels, scratch.as_deref_mut(), thread) };
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
