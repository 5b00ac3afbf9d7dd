//! Products with compressed weights in integers: while it runs, each row of `A` is rounded to 8 bits in groups, each with a scale
//! of its own, and multiplied with the codes as they are. Codes count from zero here, so
//!
//! ```text
//! sum of x * w  =  scale of w * (sum over groups of (scale of x * sum of (x * code)) - zero of w * sum of x)
//! ```
//!
//! Sums of one group are exact.

use super::pack::{self, Steps};
use super::unpack::{BYTES, INTEGERS, TABLE, way};
use super::{Codes, CompressedMatrix, Compression, Form, Out};
use crate::gemm::Micro;
use crate::gemm::region::TileEpilogue;
use crate::simd::dispatch;
use crate::{Epilogue, Exec, Isa, Machine, SharedMut, part_of};
use std::ops::Range;

/// `C = A * B` for a `B` of `k x n` that was packed in compressed form and an `A` that is rounded.
#[derive(Clone, Copy, Debug)]
pub struct RoundedGemm {
    isa: Isa,
    micro: &'static Micro,
    matrix: CompressedMatrix,
    /// Numbers of a row that share a scale.
    each: usize,
    /// Numbers of a column that are multiplied in one go: a group of weights, or a part of a long one.
    piece: usize,
}

/// Numbers of a column that stay in the first-level cache while rows pass.
const BLOCK: usize = 512;
/// Groups of fewer numbers are multiplied as floats.
const LEAST_PIECE: usize = 8;
/// Rows of `A` at once.
pub(in crate::gemm) const MOST_ROWS: usize = 6;
/// Sums of a row, at least as many as a panel has columns.
pub(in crate::gemm) const SUMS: usize = 32;
/// Pieces of panels for each thread.
const PIECES: usize = 2;
/// Bytes from which rows start in other lines of the first-level cache.
const LINE: usize = 64;

impl RoundedGemm {
    /// `each` numbers of a row share a scale. `None` when they do not divide groups of weights, or codes stand for
    /// numbers that do not lie on equal steps.
    pub fn new(isa: Isa, n: usize, k: usize, compression: Compression, each: usize) -> Option<RoundedGemm> {
        let Compression { codes, group, .. } = compression;
        let cell = match codes {
            Codes::I8 => 4,
            Codes::I4 => 8,
            Codes::Table(table) => Steps::of(&table).filter(|_| !compression.zeros).map(|_| 8)?,
        };
        let divides = |a: usize, b: usize| a > 0 && b.is_multiple_of(a);
        if k == 0 || group < LEAST_PIECE || !divides(group, k) || !divides(each, group) || !divides(cell, each) {
            return None;
        }
        let longest = BLOCK.max(each);
        let piece = if group <= longest { group } else { longest / each * each };
        let matrix = CompressedMatrix::new(isa, n, k, compression, true)?;
        Some(RoundedGemm { isa, micro: Micro::of(isa), matrix, each, piece })
    }
    /// The matrix, to be packed.
    pub fn matrix(&self) -> &CompressedMatrix {
        &self.matrix
    }
    /// Floats of scratch that a thread needs for `m` rows.
    pub fn scratch_floats(&self, m: usize) -> usize {
        self.strip_rows(m) * SUMS + self.unpacked_bytes() / size_of::<f32>()
    }
    // Bytes for codes of four bits that many rows are multiplied with.
    fn unpacked_bytes(&self) -> usize {
        if self.matrix.form.compression.codes.bits() == 8 { 0 } else { BLOCK.max(self.piece) * self.matrix.form.width }
    }
    /// Bytes for `m` rounded rows.
    pub fn rounded_bytes(&self, m: usize) -> usize {
        m * (size_of::<f32>() * (self.scales() + self.pieces()) + self.pitch())
    }

    // Scales of a row.
    fn scales(&self) -> usize {
        self.matrix.k() / self.each
    }
    fn pieces_of_group(&self) -> usize {
        self.matrix.form.compression.group.div_ceil(self.piece)
    }
    fn pieces(&self) -> usize {
        self.matrix.form.groups() * self.pieces_of_group()
    }
    fn piece(&self, i: usize) -> Range<usize> {
        let (group, of_group) = (self.matrix.form.compression.group, self.pieces_of_group());
        let start = i / of_group * group + i % of_group * self.piece;
        start..(start + self.piece).min((i / of_group + 1) * group)
    }
    // Bytes from row to row of the rounded numbers.
    fn pitch(&self) -> usize {
        self.matrix.k().next_multiple_of(LINE) + LINE
    }
    // Rows that stay in half of the second-level cache while panels pass.
    fn strip_rows(&self, m: usize) -> usize {
        let fit = Machine::here().l2 / 2 / self.pitch();
        (fit / MOST_ROWS).max(1).min(m.div_ceil(MOST_ROWS)) * MOST_ROWS
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
        let n = self.matrix.n();
        if m == 0 || n == 0 {
            return;
        }
        self.matrix.check((m, a, lda), packed, c, ldc);
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
            kernels: kernels(self.isa, self.matrix.panels.width, way(&self.matrix.form).0),
            table: table(&self.matrix.form),
            out: Out { panels: self.matrix.panels, c: c.as_mut_ptr(), ldc, tile_epilogue },
        };
        let panels = self.matrix.panels.count();
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
        let (k, each, isa) = (self.matrix.k(), self.each, exec.isa);
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
    /// What zero is as a byte without zero points.
    pub(in crate::gemm) center: f32,
    /// The bytes that codes of four bits stand for.
    pub(in crate::gemm) table: [u8; 16],
    pub(in crate::gemm) each: usize,
    pub(in crate::gemm) count: usize,
    pub(in crate::gemm) width: usize,
    /// Rows of 32 sums.
    pub(in crate::gemm) to: *mut f32,
}

impl Piece {
    /// Goes from a piece that is a whole group to the next one.
    fn advance(&mut self, scales: usize, bytes: usize) {
        self.steps = self.steps.wrapping_add(self.count);
        self.scales = self.scales.wrapping_add(scales);
        self.sums = self.sums.wrapping_add(1);
        self.codes = self.codes.wrapping_add(bytes);
        self.head = self.head.wrapping_add(bytes);
    }
}

/// Adds the products of some rows with a piece to their sums.
///
/// # Safety
/// All that the piece points to is there for that many rows, at most [`MOST_ROWS`], and the processor has the instructions.
pub(in crate::gemm) type PieceFn = unsafe fn(&Piece, usize);

/// Writes the bytes that stand for codes of four bits, cells of each half in rows of their own.
///
/// # Safety
/// The codes are there, and room for twice as many bytes; the processor has the instructions.
pub(in crate::gemm) type UnpackFn = unsafe fn(&[u8; 16], &[u8], &mut [u8], usize);

/// The functions for panels of so many columns.
#[derive(Clone, Copy)]
struct Kernels {
    /// Multiplies codes as they are packed.
    packed: PieceFn,
    /// Multiplies codes of eight bits.
    bytes: PieceFn,
    unpack: UnpackFn,
}

// For codes that become bytes in a way.
fn kernels(isa: Isa, width: usize, way: usize) -> Kernels {
    #[cfg(target_arch = "x86_64")]
    if isa.avx512().is_some() && width == SUMS && is_x86_feature_detected!("avx512vnni") {
        use super::rounded_avx512::{rows, unpack};
        let packed = [rows::<BYTES>, rows::<INTEGERS>, rows::<TABLE>][way];
        return Kernels { packed, bytes: rows::<BYTES>, unpack };
    }
    let _ = (isa, width);
    Kernels { packed: [plain::<BYTES>, plain::<INTEGERS>, plain::<TABLE>][way], bytes: plain::<BYTES>, unpack }
}

/// The function for panels of so many columns whose codes are bytes.
pub(in crate::gemm) fn of_bytes(isa: Isa, width: usize) -> PieceFn {
    kernels(isa, width, BYTES).packed
}

// What codes of four bits are as bytes.
fn table(form: &Form) -> [u8; 16] {
    match form.compression.codes {
        Codes::Table(table) => Steps::of(&table).map_or([0; 16], |steps| steps.bytes),
        _ => std::array::from_fn(|i| i as u8),
    }
}

// One code at a time.
unsafe fn unpack(table: &[u8; 16], from: &[u8], to: &mut [u8], width: usize) {
    for (from, to) in from.chunks_exact(4 * width).zip(to.chunks_exact_mut(8 * width)) {
        let (low, high) = to.split_at_mut(4 * width);
        for ((from, low), high) in from.iter().zip(low).zip(high) {
            (*low, *high) = (table[usize::from(from & 15)], table[usize::from(from >> 4)]);
        }
    }
}

// One number at a time.
unsafe fn plain<const WAY: usize>(p: &Piece, rows: usize) {
    for i in 0..rows {
        for j in 0..p.width {
            // SAFETY: the caller's promise.
            unsafe {
                let mut sum = 0f32;
                for g in 0..p.count / p.each {
                    let mut exact = 0i32;
                    for x in g * p.each..(g + 1) * p.each {
                        let step = i32::from(*p.steps.add(i * p.pitch + x) as i8);
                        let code = match WAY {
                            BYTES => *p.codes.add((x / 4 * p.width + j) * 4 + x % 4),
                            _ => {
                                let both = *p.codes.add((x / 8 * p.width + j) * 4 + x % 4);
                                p.table[usize::from(both >> (x % 8 / 4 * 4) & 15)]
                            }
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
    kernels: Kernels,
    table: [u8; 16],
    out: Out<'a>,
}

impl Product<'_> {
    unsafe fn columns(&self, exec: &Exec<'_>, panels: Range<usize>, thread: usize) {
        let RoundedGemm { micro, piece, .. } = *self.gemm;
        let width = self.gemm.matrix.form.width;
        let pieces = self.gemm.pieces();
        let block = (BLOCK / piece).max(1);
        let rows = self.gemm.strip_rows(self.m);
        let (whole_groups, per_piece) = (self.gemm.pieces_of_group() == 1, piece / self.gemm.each);
        let group_bytes = self.gemm.matrix.form.group_bytes();
        let mut scratch = exec.scratch.of(thread);
        let (sums, unpacked) = scratch.split_at_mut(rows * SUMS);
        let unpacked = &mut bytemuck::cast_slice_mut(unpacked)[..self.gemm.unpacked_bytes()];
        let strips = self.m.div_ceil(rows);
        for s in 0..strips {
            let strip = part_of(self.m, strips, s);
            for panel in panels.clone() {
                exec.stop.check();
                sums[..strip.len() * SUMS].fill(0.0);
                for first in (0..pieces).step_by(block) {
                    let these = first..pieces.min(first + block);
                    // Codes that several tiles meet are bytes for all of them.
                    let unpacks = !unpacked.is_empty() && strip.len() > MOST_ROWS;
                    let mut codes = [std::ptr::null(); BLOCK / LEAST_PIECE];
                    if unpacks {
                        let mut room = &mut *unpacked;
                        for (i, codes) in these.clone().zip(&mut codes) {
                            let to;
                            (to, room) = room.split_at_mut(self.gemm.piece(i).len() * width);
                            // SAFETY: there is room for all codes of the piece; the level was detected.
                            unsafe {
                                (self.kernels.unpack)(&self.table, &self.packed[self.codes(panel, i)], to, width)
                            };
                            *codes = to.as_ptr();
                        }
                    }
                    let mut piece = self.piece(strip.start, panel, first, sums.as_mut_ptr());
                    for i in these.clone() {
                        match i > first {
                            true if whole_groups => piece.advance(per_piece, group_bytes),
                            true => piece = self.piece(strip.start, panel, i, sums.as_mut_ptr()),
                            false => {}
                        }
                        let mut kernel = self.kernels.packed;
                        if unpacks {
                            (piece.codes, kernel) = (codes[i - first], self.kernels.bytes);
                        }
                        // Few numbers change from one to the next, and what does not is not written again.
                        let (steps, scales, sums, to) = (piece.steps, piece.scales, piece.sums, piece.to);
                        let mut row = strip.start;
                        loop {
                            // SAFETY: rows and pieces are inside of what `run` has checked; sums have room for a strip.
                            unsafe { kernel(&piece, MOST_ROWS.min(strip.end - row)) };
                            row += MOST_ROWS;
                            if row >= strip.end {
                                break;
                            }
                            piece.steps = piece.steps.wrapping_add(MOST_ROWS * piece.pitch);
                            piece.scales = piece.scales.wrapping_add(MOST_ROWS * piece.scales_pitch);
                            piece.sums = piece.sums.wrapping_add(MOST_ROWS * piece.sums_pitch);
                            piece.to = piece.to.wrapping_add(MOST_ROWS * SUMS);
                        }
                        (piece.steps, piece.scales, piece.sums, piece.to) = (steps, scales, sums, to);
                    }
                }
                // SAFETY: the rows are this thread's own, and so are the columns of the panel.
                unsafe { (micro.store)(&self.out.task(strip.start, panel, true), sums.as_ptr(), strip.len()) };
            }
            // SAFETY: this thread has just written the rectangle.
            unsafe { self.out.after(strip, &panels, thread) };
        }
    }

    // Where the head of a piece's group starts, and where its codes lie.
    fn head(&self, panel: usize, i: usize) -> usize {
        let form = &self.gemm.matrix.form;
        panel * form.panel_bytes() + self.gemm.piece(i).start / form.compression.group * form.group_bytes()
    }
    fn codes(&self, panel: usize, i: usize) -> Range<usize> {
        let (form, range) = (&self.gemm.matrix.form, self.gemm.piece(i));
        let start = self.head(panel, i) + form.head() + range.start % form.compression.group * form.row();
        start..start + range.len() * form.row()
    }

    fn piece(&self, row: usize, panel: usize, i: usize, to: *mut f32) -> Piece {
        let RoundedGemm { matrix: CompressedMatrix { form, .. }, each, .. } = *self.gemm;
        let range = self.gemm.piece(i);
        let (pitch, scales_pitch, sums_pitch) = (self.gemm.pitch(), self.gemm.scales(), self.gemm.pieces());
        Piece {
            steps: self.steps[row * pitch + range.start..].as_ptr(),
            pitch,
            scales: self.scales[row * scales_pitch + range.start / each..].as_ptr(),
            scales_pitch,
            sums: self.sums[row * sums_pitch + i..].as_ptr(),
            sums_pitch,
            codes: self.packed[self.codes(panel, i)].as_ptr(),
            head: self.packed[self.head(panel, i)..].as_ptr(),
            has_zeros: form.compression.zeros,
            center: f32::from(pack::center(&form)),
            table: self.table,
            each,
            count: range.len(),
            width: form.width,
            to,
        }
    }
}
