//! A product whose `B` stays compressed: integers of 8 or 4 bits, or codes of 4 bits that a table has floats for. Along `k` they
//! form groups, and each group of a column has a scale and may have a zero point: `w = (code - zero) * scale`.
//!
//! Few rows (generating one token) wait for memory: codes become floats in registers and are multiplied there (`few.rs`), so
//! the time is that of the compressed bytes. With more rows a block of a panel is decompressed once into scratch
//! (`unpack.rs`), and the tiles of the product of floats run over it.
//!
//! Where rows may be rounded while the product runs, codes are multiplied as integers (`rounded.rs`).

mod few;
mod pack;
mod rounded;
#[cfg(target_arch = "x86_64")]
mod rounded_avx512;
mod unpack;

pub use pack::Stored;
pub use rounded::RoundedGemm;
pub(super) use rounded::{MOST_ROWS, Piece, SUMS, of_bytes};

use super::grid::{Grid, Size};
use super::panels::Panels;
use super::region::TileEpilogue;
use super::task::Task;
use super::{FIRST_ROWS, Micro, SKINNY};
use crate::{Epilogue, Exec, Isa, Machine, part_of};
use std::ops::Range;

/// How a number is stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Codes {
    /// A signed byte.
    I8,
    /// A signed integer of four bits.
    I4,
    /// Four bits that count into a table.
    Table([f32; 16]),
}

impl Codes {
    fn bits(&self) -> usize {
        if *self == Codes::I8 { 8 } else { 4 }
    }
}

/// How the numbers of a matrix are compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compression {
    pub codes: Codes,
    /// Numbers of a column that share a scale and a zero point.
    pub group: usize,
    /// Whether there are zero points.
    pub zeros: bool,
}

/// How a `B` of `k x n` is packed in compressed form.
#[derive(Clone, Copy, Debug)]
pub struct CompressedMatrix {
    panels: Panels,
    form: Form,
}

impl CompressedMatrix {
    /// `None` when groups do not divide `k`.
    fn new(isa: Isa, n: usize, k: usize, compression: Compression, cells: bool) -> Option<CompressedMatrix> {
        let panels = Panels::new(Micro::of(isa), n);
        let fits = compression.group > 0 && k.is_multiple_of(compression.group);
        let form = Form { compression, k, width: panels.width, lanes: isa.lanes(), cells };
        fits.then_some(CompressedMatrix { panels, form })
    }
    pub fn n(&self) -> usize {
        self.panels.n
    }
    pub fn k(&self) -> usize {
        self.form.k
    }
    pub fn compression(&self) -> &Compression {
        &self.form.compression
    }
    /// Bytes of the packed matrix.
    pub fn packed_bytes(&self) -> usize {
        self.panels.count() * self.form.panel_bytes()
    }
    /// Packs a matrix. Without `exec` on this thread alone.
    pub fn pack(&self, exec: Option<&Exec<'_>>, from: &Stored<'_>, packed: &mut [u8]) {
        assert!(packed.len() >= self.packed_bytes(), "{} bytes for the packed matrix", packed.len());
        pack::pack(&self.form, &self.panels, exec, from, packed);
    }

    // Panics unless all of a product is there: `m` rows of `a`, `lda` apart, the packed matrix, and as many rows of `c`.
    fn check(&self, (m, a, lda): (usize, &[f32], usize), packed: &[u8], c: &[f32], ldc: usize) {
        let (n, k) = (self.n(), self.k());
        assert!(m == 1 || (lda >= k && ldc >= n), "rows overlap: {lda} for {k}, {ldc} for {n}");
        assert!(a.len() >= (m - 1) * lda + k, "{} floats for {m} rows of {k}", a.len());
        assert!(c.len() >= (m - 1) * ldc + n, "{} floats for {m} rows of {n}", c.len());
        assert!(packed.len() >= self.packed_bytes(), "{} bytes for the packed matrix", packed.len());
    }
}

/// `C = A * B` for a `B` that was packed in compressed form.
#[derive(Clone, Copy, Debug)]
pub struct CompressedGemm {
    isa: Isa,
    micro: &'static Micro,
    matrix: CompressedMatrix,
}

/// How a panel lies in memory: group after group, each a row of scales, one of zero points, and then rows of codes. Codes of
/// four bits are stored in pairs of vectors, the first in the low halves of the bytes. In cells four codes of a column, which
/// count from zero then, follow one another; of four bits the next four lie in the high halves.
#[derive(Clone, Copy, Debug)]
struct Form {
    compression: Compression,
    k: usize,
    /// Columns of a panel, the last one too.
    width: usize,
    /// Floats of a vector; a pair of vectors divides the width.
    lanes: usize,
    cells: bool,
}

impl Form {
    fn groups(&self) -> usize {
        self.k / self.compression.group
    }
    /// Bytes of a row of codes.
    fn row(&self) -> usize {
        self.width * self.compression.codes.bits() / 8
    }
    /// Bytes in front of the codes of a group.
    fn head(&self) -> usize {
        self.width * if self.compression.zeros { 5 } else { 4 }
    }
    fn group_bytes(&self) -> usize {
        self.head() + self.compression.group * self.row()
    }
    fn panel_bytes(&self) -> usize {
        self.groups() * self.group_bytes()
    }
}

/// Longest sums over decompressed weights that are taken at once.
const DEPTH: usize = 512;
/// Rows this many bytes apart, or a multiple, meet in few lines of the first-level cache.
const ALIASED: usize = 2048;
/// Pieces of panels for each thread. All rows of `A` pass for each of them.
const PIECES: usize = 2;

impl CompressedGemm {
    /// `None` when groups do not divide `k`.
    pub fn new(isa: Isa, n: usize, k: usize, compression: Compression) -> Option<CompressedGemm> {
        let matrix = CompressedMatrix::new(isa, n, k, compression, false)?;
        Some(CompressedGemm { isa, micro: Micro::of(isa), matrix })
    }
    /// The matrix, to be packed.
    pub fn matrix(&self) -> &CompressedMatrix {
        &self.matrix
    }
    /// Floats of scratch that a thread needs for `m` rows.
    pub fn scratch_floats(&self, m: usize) -> usize {
        if m <= SKINNY {
            return if self.matrix.form.compression.zeros { m * self.matrix.form.groups() } else { 0 };
        }
        let depth = self.depth();
        depth * self.matrix.panels.width + self.strip_rows(m) * (depth + 16)
    }

    fn depth(&self) -> usize {
        self.matrix.k().div_ceil(self.blocks())
    }
    fn blocks(&self) -> usize {
        self.matrix.k().div_ceil(DEPTH).max(1)
    }
    // Rows of `A` that stay in half of the second-level cache while panels pass.
    fn strip_rows(&self, m: usize) -> usize {
        let fit = Machine::here().l2 / 2 / size_of::<f32>() / self.depth().max(1);
        (fit / self.micro.rows).max(1).min(m.div_ceil(self.micro.rows)) * self.micro.rows
    }

    /// Multiplies `m` rows of `a`, `lda` apart, and stores them `ldc` apart.
    pub fn run(
        &self,
        exec: &Exec<'_>,
        (m, a, lda): (usize, &[f32], usize),
        packed: &[u8],
        c: &mut [f32],
        ldc: usize,
        epilogue: &Epilogue<'_>,
    ) {
        let (n, k) = (self.matrix.n(), self.matrix.k());
        if m == 0 || n == 0 {
            return;
        }
        self.matrix.check((m, a, lda), packed, c, ldc);
        assert!(exec.scratch.floats() >= self.scratch_floats(m), "{} floats of scratch", exec.scratch.floats());
        let tile_epilogue = TileEpilogue::new(self.isa, epilogue, 1.0, m, n);
        let (a, b, c) = (a.as_ptr(), packed.as_ptr(), c.as_mut_ptr());
        let out = Out { panels: self.matrix.panels, c, ldc, tile_epilogue };
        let product = Product { gemm: self, m, a, lda, b, out };
        let panels = self.matrix.panels.count();
        if m <= SKINNY {
            let grid = Grid::new(self.micro, exec.threads(), Size { m, units: m, panels, k, copied: false });
            exec.each(grid.chunks(), |chunk, thread| {
                let (_, panels) = grid.part(chunk, m, panels);
                // SAFETY: the slices were checked above, and chunks have columns of their own.
                unsafe { product.few(exec, panels, thread) };
            });
        } else {
            let chunks = (exec.threads() * PIECES).min(panels);
            exec.each(chunks, |chunk, thread| {
                // SAFETY: as above.
                unsafe { product.many(exec, part_of(panels, chunks, chunk), thread) };
            });
        }
    }
}

/// Where sums go.
struct Out<'a> {
    panels: Panels,
    c: *mut f32,
    ldc: usize,
    tile_epilogue: TileEpilogue<'a>,
}

// SAFETY: the pointer stands for a slice that outlives the job; each thread writes columns of its own.
unsafe impl Sync for Out<'_> {}
// SAFETY: as above.
unsafe impl Send for Out<'_> {}

impl Out<'_> {
    // A task for tiles that start at a row and at the first column of a panel.
    unsafe fn task(&self, row: usize, panel: usize, last: bool) -> Task {
        let column = panel * self.panels.width;
        let mut task = Task {
            c: self.c.wrapping_add(row * self.ldc + column),
            ldc: self.ldc,
            columns: self.panels.columns(panel),
            ..Task::default()
        };
        // SAFETY: the caller names a position inside of the output.
        unsafe { self.tile_epilogue.direct(&mut task, row, column, last) };
        task
    }

    // What follows the sums of a rectangle.
    unsafe fn after(&self, rows: Range<usize>, panels: &Range<usize>, thread: usize) {
        let (width, n) = (self.panels.width, self.panels.n);
        let columns = panels.start * width..n.min(panels.end * width);
        let alone = columns.len() == n;
        // SAFETY: this thread has just written the rectangle.
        unsafe { self.tile_epilogue.after(self.c, self.ldc, rows, columns, alone, thread) };
    }
}

/// A product that runs.
struct Product<'a> {
    gemm: &'a CompressedGemm,
    m: usize,
    a: *const f32,
    lda: usize,
    b: *const u8,
    out: Out<'a>,
}

// SAFETY: the pointers stand for slices that outlive the job and are only read.
unsafe impl Sync for Product<'_> {}
// SAFETY: as above.
unsafe impl Send for Product<'_> {}

impl Product<'_> {
    unsafe fn few(&self, exec: &Exec<'_>, panels: Range<usize>, thread: usize) {
        let form = &self.gemm.matrix.form;
        let mut scratch = form.compression.zeros.then(|| exec.scratch.of(thread));
        // SAFETY: rows of `a` and panels of `b` are whole; scratch has room for the sums of all groups.
        unsafe {
            let group_sums = match &mut scratch {
                Some(scratch) => few::group_sums(self.gemm.isa, form, self.m, self.a, self.lda, scratch),
                None => std::ptr::null(),
            };
            for panel in panels.clone() {
                exec.stop.check();
                let mut sums = [0.0f32; 32 * SKINNY];
                let b = self.b.add(panel * form.panel_bytes());
                few::panel(self.gemm.isa, form, self.m, (self.a, self.lda), b, group_sums, &mut sums);
                (self.gemm.micro.store)(&self.out.task(0, panel, true), sums.as_ptr(), self.m);
            }
            self.out.after(0..self.m, &panels, thread);
        }
    }

    unsafe fn many(&self, exec: &Exec<'_>, panels: Range<usize>, thread: usize) {
        let CompressedGemm { isa, micro, matrix: CompressedMatrix { form, .. } } = *self.gemm;
        let (depth, blocks) = (self.gemm.depth(), self.gemm.blocks());
        let pitch = depth + 16;
        let mut scratch = exec.scratch.of(thread);
        let (floats, copy) = scratch.split_at_mut(depth * self.gemm.matrix.panels.width);
        let aliased = (self.lda * size_of::<f32>()).is_multiple_of(ALIASED);
        let strips = self.m.div_ceil(self.gemm.strip_rows(self.m));
        for s in 0..strips {
            let strip = part_of(self.m, strips, s);
            for b in 0..blocks {
                let block = part_of(form.k, blocks, b);
                let (mut a, mut lda) = (self.a.wrapping_add(strip.start * self.lda + block.start), self.lda);
                if aliased {
                    for i in 0..strip.len() {
                        // SAFETY: a row of `a`; the copy has room for a strip.
                        unsafe { std::ptr::copy_nonoverlapping(a.add(i * lda), &mut copy[i * pitch], block.len()) };
                    }
                    (a, lda) = (copy.as_ptr(), pitch);
                }
                for panel in panels.clone() {
                    exec.stop.check();
                    let width = self.gemm.matrix.panels.width_of(panel);
                    // SAFETY: the block lies inside the panel and scratch has room for it; tiles lie inside the strip.
                    unsafe {
                        let packed = self.b.add(panel * form.panel_bytes());
                        unpack::block(isa, &form, packed, &block, width, floats);
                        let tap = 0usize;
                        let tiles = strip.len().div_ceil(micro.rows);
                        for t in 0..tiles {
                            let tile = part_of(strip.len(), tiles, t);
                            let first = a.wrapping_add(tile.start * lda);
                            let task = Task {
                                a: [first, first.wrapping_add(FIRST_ROWS * lda)],
                                lda,
                                taps: &tap,
                                tap_count: 1,
                                depth: block.len(),
                                b: floats.as_ptr(),
                                ldb: width,
                                resume: block.start > 0,
                                thread,
                                ..self.out.task(strip.start + tile.start, panel, block.end == form.k)
                            };
                            micro.tile(tile.len(), width)(&task);
                        }
                    }
                }
            }
            // SAFETY: this thread has just written the rectangle.
            unsafe { self.out.after(strip, &panels, thread) };
        }
    }
}
