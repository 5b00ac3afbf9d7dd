//! Products with compressed weights in integers: while it runs, each row of `A` is rounded to 8 bits in groups, each with a scale
//! of its own, and multiplied with the codes as they are. Codes count from zero here, so
//!
//! ```text
//! sum of x * w  =  scale of w * (sum over groups of (scale of x * sum of (x * code)) - zero of w * sum of x)
//! ```
//!
//! Sums of one group are exact.

use super::pack::{self, Stored};
use super::{Codes, Compression, Form, Out};
use crate::gemm::Micro;
use crate::gemm::panels::Panels;
use crate::gemm::region::TileEpilogue;
use crate::simd::dispatch;
use crate::{Epilogue, Exec, Isa, Machine, SharedMut, part_of};
use std::ops::Range;

/// `C = A * B` for a `B` of `k x n` that was packed in compressed form and an `A` that is rounded.
#[derive(Clone, Copy, Debug)]
pub struct RoundedGemm {
    isa: Isa,
    micro: &'static Micro,
    panels: Panels,
    form: Form,
    /// Numbers of a row that share a scale.
    each: usize,
    /// Numbers of a column that are multiplied in one go: a group of weights, or a part of a long one.
    piece: usize,
}

/// Numbers of a column that stay in the first-level cache while rows pass.
const BLOCK: usize = 512;
/// Rows of `A` at once.
pub(in crate::gemm) const MOST_ROWS: usize = 6;
/// Sums of a row, at least as many as a panel has columns.
pub(in crate::gemm) const SUMS: usize = 32;
/// Pieces of panels for each thread.
const PIECES: usize = 2;
/// Bytes from which rows start in other lines of the first-level cache.
const LINE: usize = 64;

impl RoundedGemm {
    /// `each` numbers of a row share a scale. `None` when they do not divide groups of weights, or codes are no integers.
    pub fn new(isa: Isa, n: usize, k: usize, compression: Compression, each: usize) -> Option<RoundedGemm> {
        let Compression { codes, group, .. } = compression;
        let cell = match codes {
            Codes::I8 => 4,
            Codes::I4 => 8,
            Codes::Table(_) => return None,
        };
        let divides = |a: usize, b: usize| a > 0 && b.is_multiple_of(a);
        if k == 0 || !divides(group, k) || !divides(each, group) || !divides(cell, each) {
            return None;
        }
        let micro = Micro::of(isa);
        let panels = Panels::new(micro, n);
        let form = Form { compression, k, width: panels.width, lanes: isa.lanes(), cells: true };
        let longest = BLOCK.max(each);
        let piece = if group <= longest { group } else { longest / each * each };
        Some(RoundedGemm { isa, micro, panels, form, each, piece })
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
    /// Floats of scratch that a thread needs for `m` rows.
    pub fn scratch_floats(&self, m: usize) -> usize {
        self.strip_rows(m) * SUMS
    }
    /// Bytes for `m` rounded rows.
    pub fn rounded_bytes(&self, m: usize) -> usize {
        m * (size_of::<f32>() * (self.scales() + self.pieces()) + self.pitch())
    }

    // Scales of a row.
    fn scales(&self) -> usize {
        self.k() / self.each
    }
    fn pieces_of_group(&self) -> usize {
        self.form.compression.group.div_ceil(self.piece)
    }
    fn pieces(&self) -> usize {
        self.form.groups() * self.pieces_of_group()
    }
    fn piece(&self, i: usize) -> Range<usize> {
        let (group, of_group) = (self.form.compression.group, self.pieces_of_group());
        let start = i / of_group * group + i % of_group * self.piece;
        start..(start + self.piece).min((i / of_group + 1) * group)
    }
    // Bytes from row to row of the rounded numbers.
    fn pitch(&self) -> usize {
        self.k().next_multiple_of(LINE) + LINE
    }
    // Rows that stay in half of the second-level cache while panels pass.
    fn strip_rows(&self, m: usize) -> usize {
        let fit = Machine::here().l2 / 2 / self.pitch();
        (fit / MOST_ROWS).max(1).min(m.div_ceil(MOST_ROWS)) * MOST_ROWS
    }

    /// Packs a matrix. Without `exec` on this thread alone.
    pub fn pack(&self, exec: Option<&Exec<'_>>, from: &Stored<'_>, packed: &mut [u8]) {
        assert!(packed.len() >= self.packed_bytes(), "{} bytes for the packed matrix", packed.len());
        pack::pack(&self.form, &self.panels, exec, from, packed);
    }

    /// Multiplies `m` rows of `a`, `lda` apart, and stores them `ldc` apart. `rounded` is memory for the rounded rows.
    #[allow(clippy::too_many_arguments)]
    pub fn run(
        &self,
        exec: &Exec<'_>,
        (m, a, lda): (usize, &[f32], usize),
        packed: &[u8],
        rounded: &mut [u8],
        c: &mut [f32],
        ldc: usize,
        epilogue: &Epilogue<'_>,
    ) {
        let (n, k) = (self.n(), self.k());
        if m == 0 || n == 0 {
            return;
        }
        assert!(m == 1 || (lda >= k && ldc >= n), "rows overlap: {lda} for {k}, {ldc} for {n}");
        assert!(a.len() >= (m - 1) * lda + k, "{} floats for {m} rows of {k}", a.len());
        assert!(c.len() >= (m - 1) * ldc + n, "{} floats for {m} rows of {n}", c.len());
        assert!(packed.len() >= self.packed_bytes(), "{} bytes for the packed matrix", packed.len());
        assert!(rounded.len() >= self.rounded_bytes(m), "{} bytes for {m} rounded rows", rounded.len());
        assert!(exec.scratch.floats() >= self.scratch_floats(m), "{} floats of scratch", exec.scratch.floats());
        let (scales, rest) = rounded.split_at_mut(m * self.scales() * size_of::<f32>());
        let (sums, steps) = rest.split_at_mut(m * self.pieces() * size_of::<f32>());
        self.round(exec, (m, a, lda), bytemuck::cast_slice_mut(scales), bytemuck::cast_slice_mut(sums), steps);
        let tile_epilogue = TileEpilogue::new(self.isa, epilogue, 1.0, m, n);
        let product = Product {
            gemm: self,
            m,
            scales: bytemuck::cast_slice(scales),
            sums: bytemuck::cast_slice(sums),
            steps,
            packed,
            kernel: kernel(self.isa, self.panels.width, self.form.compression.codes == Codes::I4),
            out: Out { panels: self.panels, c: c.as_mut_ptr(), ldc, tile_epilogue },
        };
        let panels = self.panels.count();
        let chunks = (exec.threads() * PIECES).min(panels);
        exec.each(chunks, |chunk, thread| {
            // SAFETY: the slices were checked above, and chunks have columns of their own.
            unsafe { product.columns(exec, part_of(panels, chunks, chunk), thread) };
        });
    }

    // Rounds rows: steps as bytes, the scale of each group of them, and the sum of each piece.
    fn round(
        &self,
        exec: &Exec<'_>,
        (m, a, lda): (usize, &[f32], usize),
        scales: &mut [f32],
        sums: &mut [f32],
        steps: &mut [u8],
    ) {
        let (k, each, isa) = (self.k(), self.each, exec.isa);
        let (per_row, pieces, pitch) = (self.scales(), self.pieces(), self.pitch());
        let (scales, sums, steps) = (SharedMut::new(scales), SharedMut::new(sums), SharedMut::new(steps));
        let parts = exec.threads().min(m);
        exec.each(parts, |part, _| {
            for i in part_of(m, parts, part) {
                let row = &a[i * lda..i * lda + k];
                // SAFETY: each row is written by one part.
                let (scales, sums, steps) = unsafe {
                    let sums = sums.part(i * pieces..(i + 1) * pieces);
                    (scales.part(i * per_row..(i + 1) * per_row), sums, steps.part(i * pitch..i * pitch + k))
                };
                for (p, sum) in sums.iter_mut().enumerate() {
                    let range = self.piece(p);
                    let scales = &mut scales[range.start / each..range.end / each];
                    *sum = rounded(isa, each, &row[range.clone()], &mut steps[range], scales);
                }
            }
        });
    }
}

// Rounds numbers in groups of `each` and gives the sum of what they became.
fn rounded(isa: Isa, each: usize, from: &[f32], to: &mut [u8], scales: &mut [f32]) -> f32 {
    /// Added to a small number it leaves the nearest integer in the last bits.
    const MAGIC: f32 = 12_582_912.0;
    /// From here on bits mean no finite number.
    const INFINITE: u32 = 0x7f80_0000;
    // SAFETY: the body is safe code.
    unsafe {
        dispatch!(isa, <'a, S>(each: usize, from: &'a [f32], to: &'a mut [u8], scales: &'a mut [f32]) -> f32 {
            let _ = S::N;
            let mut total = 0.0;
            for ((from, to), scale) in from.chunks_exact(each).zip(to.chunks_exact_mut(each)).zip(scales) {
                // Bits without a sign are in the order of the numbers.
                let most = from.iter().fold(0u32, |most, x| most.max(x.to_bits() & 0x7fff_ffff));
                let largest = f32::from_bits(most);
                *scale = if most >= INFINITE { f32::NAN } else { largest / 127.0 };
                let inverse = 127.0 / largest;
                let by = if most < INFINITE && inverse.is_finite() { inverse } else { 0.0 };
                let mut sum = 0i32;
                for (x, to) in from.iter().zip(to) {
                    let step = (x * by + MAGIC).to_bits() as i8;
                    *to = step as u8;
                    sum += i32::from(step);
                }
                total += sum as f32 * *scale;
            }
            total
        })
    }
}

/// A piece of a panel and the rows that it is multiplied with.
pub(in crate::gemm) struct Piece {
    /// Steps of the first row, and bytes from row to row.
    pub(in crate::gemm) steps: *const u8,
    pub(in crate::gemm) pitch: usize,
    /// Scales of the first row, and how many a row has.
    pub(in crate::gemm) scales: *const f32,
    pub(in crate::gemm) scales_pitch: usize,
    /// The sum of the first row's numbers, and floats from row to row.
    pub(in crate::gemm) sums: *const f32,
    pub(in crate::gemm) sums_pitch: usize,
    /// Codes, and the head of their group.
    pub(in crate::gemm) codes: *const u8,
    pub(in crate::gemm) head: *const u8,
    pub(in crate::gemm) has_zeros: bool,
    /// What zero is as a code without zero points.
    pub(in crate::gemm) center: f32,
    pub(in crate::gemm) each: usize,
    pub(in crate::gemm) count: usize,
    pub(in crate::gemm) width: usize,
    /// Rows of 32 sums.
    pub(in crate::gemm) to: *mut f32,
}

/// Adds the products of some rows with a piece to their sums.
///
/// # Safety
/// All that the piece points to is there for that many rows, at most [`MOST_ROWS`], and the processor has the instructions.
pub(in crate::gemm) type PieceFn = unsafe fn(&Piece, usize);

/// The function for panels of so many columns whose codes have eight bits, or four.
pub(in crate::gemm) fn kernel(isa: Isa, width: usize, four: bool) -> PieceFn {
    #[cfg(target_arch = "x86_64")]
    if isa.avx512().is_some() && width == SUMS && is_x86_feature_detected!("avx512vnni") {
        return if four { super::rounded_avx512::rows::<true> } else { super::rounded_avx512::rows::<false> };
    }
    let _ = (isa, width);
    if four { plain::<true> } else { plain::<false> }
}

// One number at a time.
unsafe fn plain<const FOUR: bool>(p: &Piece, rows: usize) {
    for i in 0..rows {
        for j in 0..p.width {
            // SAFETY: the caller's promise.
            unsafe {
                let mut sum = 0f32;
                for g in 0..p.count / p.each {
                    let mut exact = 0i32;
                    for x in g * p.each..(g + 1) * p.each {
                        let step = i32::from(*p.steps.add(i * p.pitch + x) as i8);
                        let code = match FOUR {
                            true => *p.codes.add((x / 8 * p.width + j) * 4 + x % 4) >> (x % 8 / 4 * 4) & 15,
                            false => *p.codes.add((x / 4 * p.width + j) * 4 + x % 4),
                        };
                        exact += step * i32::from(code);
                    }
                    sum += exact as f32 * *p.scales.add(i * p.scales_pitch + g);
                }
                let mut zero = p.center;
                if p.has_zeros {
                    zero += f32::from(*p.head.add(4 * p.width + j) as i8);
                }
                let scale = p.head.cast::<f32>().add(j).read_unaligned();
                *p.to.add(i * SUMS + j) += scale * (sum - zero * *p.sums.add(i * p.sums_pitch));
            }
        }
    }
}

/// A product that runs.
struct Product<'a> {
    gemm: &'a RoundedGemm,
    m: usize,
    scales: &'a [f32],
    sums: &'a [f32],
    steps: &'a [u8],
    packed: &'a [u8],
    kernel: PieceFn,
    out: Out<'a>,
}

impl Product<'_> {
    unsafe fn columns(&self, exec: &Exec<'_>, panels: Range<usize>, thread: usize) {
        let RoundedGemm { micro, piece, .. } = *self.gemm;
        let pieces = self.gemm.pieces();
        let block = (BLOCK / piece).max(1);
        let rows = self.gemm.strip_rows(self.m);
        let mut scratch = exec.scratch.of(thread);
        let sums = &mut scratch[..rows * SUMS];
        let strips = self.m.div_ceil(rows);
        for s in 0..strips {
            let strip = part_of(self.m, strips, s);
            for panel in panels.clone() {
                exec.stop.check();
                sums[..strip.len() * SUMS].fill(0.0);
                for first in (0..pieces).step_by(block) {
                    for row in strip.clone().step_by(MOST_ROWS) {
                        let to = &mut sums[(row - strip.start) * SUMS..];
                        for i in first..pieces.min(first + block) {
                            // SAFETY: rows and pieces are inside of what `run` has checked; sums have room for a strip.
                            unsafe {
                                let piece = self.piece(row, panel, i, to.as_mut_ptr());
                                (self.kernel)(&piece, MOST_ROWS.min(strip.end - row));
                            }
                        }
                    }
                }
                // SAFETY: the rows are this thread's own, and so are the columns of the panel.
                unsafe { (micro.store)(&self.out.task(strip.start, panel, true), sums.as_ptr(), strip.len()) };
            }
            // SAFETY: this thread has just written the rectangle.
            unsafe { self.out.after(strip, &panels, thread) };
        }
    }

    fn piece(&self, row: usize, panel: usize, i: usize, to: *mut f32) -> Piece {
        let RoundedGemm { form, each, .. } = *self.gemm;
        let (range, group) = (self.gemm.piece(i), form.compression.group);
        let head = panel * form.panel_bytes() + range.start / group * form.group_bytes();
        let codes = head + form.head() + range.start % group * form.row();
        let (pitch, scales_pitch, sums_pitch) = (self.gemm.pitch(), self.gemm.scales(), self.gemm.pieces());
        Piece {
            steps: self.steps[row * pitch + range.start..].as_ptr(),
            pitch,
            scales: self.scales[row * scales_pitch + range.start / each..].as_ptr(),
            scales_pitch,
            sums: self.sums[row * sums_pitch + i..].as_ptr(),
            sums_pitch,
            codes: self.packed[codes..].as_ptr(),
            head: self.packed[head..].as_ptr(),
            has_zeros: form.compression.zeros,
            center: f32::from(pack::center(&form)),
            each,
            count: range.len(),
            width: form.width,
            to,
        }
    }
}
