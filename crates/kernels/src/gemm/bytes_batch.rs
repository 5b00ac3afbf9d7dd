//! Products of two matrices of bytes that both come at run time, many at once: numbers on grids, `(byte - zero) * scale`. `B` is
//! packed by the thread that multiplies with it, and rows of `A` get a sign:
//!
//! ```text
//! sum of (a - za) * (b - zb)  =  sum of a * b  -  zb * sum of a  -  za * (sum of b - k * zb)
//! ```
//!
//! The last part belongs to a column, and sums begin with it.

use super::compressed::{MOST_ROWS, Piece, SUMS, of_bytes};
use super::panels::Panels;
use super::region::TileEpilogue;
use super::task::Task;
use super::{Micro, Operand};
use crate::simd::dispatch;
use crate::{Epilogue, Exec, Isa, SharedMut, part_of};
use std::ops::Range;

/// `C[i] = A[i] * B[i]` for every `i` of a batch, with `A[i]` of `m x k` and `B[i]` of `k x n` numbers on grids.
#[derive(Clone, Debug)]
pub struct BytesMatMul {
    isa: Isa,
    micro: &'static Micro,
    panels: Panels,
    m: usize,
    k: usize,
    a: Operand,
    b: Operand,
    c: Operand,
    /// The zero of `A`, as a byte with a sign, and that of `B`.
    zeros: (i32, f32),
    scale: f32,
    /// Panels packed at a time.
    group: usize,
    lens: [usize; 3],
}

/// Products below this many multiplications stay on one thread.
const ALONE: usize = 128 * 1024;
/// Bytes of panels that are packed at a time.
const GROUP_BYTES: usize = 256 * 1024;

impl BytesMatMul {
    /// `scale` is that of both grids together, `zeros` are their zero points. Panics when operands differ in number, when
    /// matrices of `c` overlap, or when `k` is longer than [`super::LONGEST_INTEGER_SUM`].
    pub fn new(
        isa: Isa,
        [m, n, k]: [usize; 3],
        (a, b, c): (Operand, Operand, Operand),
        scale: f32,
        zeros: [u8; 2],
    ) -> BytesMatMul {
        let batch = c.offsets.len();
        assert!(a.offsets.len() == batch && b.offsets.len() == batch, "operands of different batches");
        assert!(!c.transposed && super::batch::are_disjoint(&c.offsets, m, n, c.stride), "the output is not plain");
        assert!(k <= super::LONGEST_INTEGER_SUM, "{k} numbers are too many for one sum");
        let micro = Micro::of(isa);
        let panels = Panels::new(micro, n);
        let group = (GROUP_BYTES / (micro.width * k.next_multiple_of(4)).max(1)).clamp(1, panels.count().max(1));
        let lens = [a.span(m, k), b.span(k, n), c.span(m, n)];
        let zeros = (i32::from(zeros[0]) - 128, f32::from(zeros[1]));
        BytesMatMul { isa, micro, panels, m, k, a, b, c, zeros, scale, group, lens }
    }

    pub fn batch(&self) -> usize {
        self.c.offsets.len()
    }
    /// Floats of scratch of each thread.
    pub fn scratch_floats(&self) -> usize {
        let codes = self.group * self.panel_bytes() + MOST_ROWS * self.pitch();
        codes / size_of::<f32>() + self.group * SUMS
    }
    fn panel_bytes(&self) -> usize {
        self.panels.width * self.k.next_multiple_of(4)
    }
    // Bytes from row to row of what is copied of `A`.
    fn pitch(&self) -> usize {
        self.k.next_multiple_of(64) + 64
    }

    /// The epilogue counts rows through the whole batch: row `r` of matrix `i` is row `i * m + r`.
    pub fn run(&self, exec: &Exec<'_>, a: &[u8], b: &[u8], c: &mut [f32], epilogue: &Epilogue<'_>) {
        let (batch, m, n, k) = (self.batch(), self.m, self.panels.n, self.k);
        if batch * m * n == 0 {
            return;
        }
        for (name, len, need) in
            [("A", a.len(), self.lens[0]), ("B", b.len(), self.lens[1]), ("C", c.len(), self.lens[2])]
        {
            assert!(len >= need, "{name} has {len} elements of {need}");
        }
        assert!(exec.scratch.floats() >= self.scratch_floats(), "scratch of {} floats", exec.scratch.floats());
        let tile_epilogue = TileEpilogue::new(self.isa, epilogue, 1.0, batch * m, n);
        let out = SharedMut::new(c);
        let parts = match batch * m * n * k < ALONE || exec.threads() == 1 {
            true => 1,
            false => (4 * exec.threads()).div_ceil(batch).min(m.div_ceil(4 * MOST_ROWS)),
        };
        let (one, chunks) = if batch * m * n * k < ALONE { (batch * parts, 1) } else { (1, batch * parts) };
        exec.each(chunks, |chunk, thread| {
            let mut scratch = exec.scratch.of(thread);
            for part in chunk * one..(chunk + 1) * one {
                exec.stop.check();
                let item = part / parts;
                let matrices = Matrices {
                    a: &a[self.a.offsets[item]..],
                    b: &b[self.b.offsets[item]..],
                    c: out.as_ptr().wrapping_add(self.c.offsets[item]),
                    item,
                    tile_epilogue,
                };
                // SAFETY: `lens` covers every row of every matrix; parts are disjoint rectangles of matrices that do not
                // overlap.
                unsafe { self.part(&matrices, part_of(m, parts, part % parts), &mut scratch, thread) };
            }
        });
    }

    // Some rows of one product.
    unsafe fn part(&self, matrices: &Matrices<'_>, rows: Range<usize>, scratch: &mut [f32], thread: usize) {
        let (width, pitch, ldc) = (self.panels.width, self.pitch(), self.c.stride);
        let (first_columns, codes) = scratch.split_at_mut(self.group * SUMS);
        let codes: &mut [u8] = bytemuck::cast_slice_mut(codes);
        let (packed, steps) = codes.split_at_mut(self.group * self.panel_bytes());
        let steps = &mut steps[..MOST_ROWS * pitch];
        let kernel = of_bytes(self.isa, width);
        let head = [self.scale; SUMS];
        let count = self.panels.count();
        for first in (0..count).step_by(self.group) {
            let group = first..count.min(first + self.group);
            for panel in group.clone() {
                let at = panel - first;
                let to = &mut packed[at * self.panel_bytes()..(at + 1) * self.panel_bytes()];
                self.pack(matrices.b, panel, to, &mut first_columns[at * SUMS..(at + 1) * SUMS]);
            }
            for row in rows.clone().step_by(MOST_ROWS) {
                let count = MOST_ROWS.min(rows.end - row);
                let mut row_sums = [0f32; MOST_ROWS];
                for (i, sum) in row_sums.iter_mut().enumerate().take(count) {
                    *sum = self.copy_row(matrices.a, row + i, &mut steps[i * pitch..(i + 1) * pitch]);
                }
                for panel in group.clone() {
                    let at = panel - first;
                    let mut sums = [0f32; MOST_ROWS * SUMS];
                    for line in sums.chunks_mut(SUMS).take(count) {
                        line.copy_from_slice(&first_columns[at * SUMS..(at + 1) * SUMS]);
                    }
                    let piece = Piece {
                        steps: steps.as_ptr(),
                        pitch,
                        scales: &1.0,
                        scales_pitch: 0,
                        sums: row_sums.as_ptr(),
                        sums_pitch: 1,
                        codes: packed[at * self.panel_bytes()..].as_ptr(),
                        head: head.as_ptr().cast(),
                        has_zeros: false,
                        center: self.zeros.1,
                        table: [0; 16],
                        each: self.k.next_multiple_of(4),
                        count: self.k.next_multiple_of(4),
                        width,
                        to: sums.as_mut_ptr(),
                    };
                    let column = panel * width;
                    let mut task = Task {
                        c: matrices.c.wrapping_add(row * ldc + column),
                        ldc,
                        columns: self.panels.columns(panel),
                        ..Task::default()
                    };
                    // SAFETY: rows and columns are inside of the matrices; the panel and the rows were just made.
                    unsafe {
                        kernel(&piece, count);
                        matrices.tile_epilogue.direct(&mut task, matrices.item * self.m + row, column, true);
                        (self.micro.store)(&task, sums.as_ptr(), count);
                    }
                }
            }
            let columns = group.start * width..self.panels.n.min(group.end * width);
            let alone = columns.len() == self.panels.n && ldc == self.panels.n;
            let (ahead, c) = (matrices.item * self.m, matrices.c);
            // SAFETY: this thread has just written the rectangle.
            unsafe {
                let c = c.wrapping_sub(ahead * ldc);
                let rows = ahead + rows.start..ahead + rows.end;
                matrices.tile_epilogue.after(c, ldc, rows, columns, alone, thread);
            }
        }
    }

    // A row of `A` as bytes with a sign, and their sum.
    fn copy_row(&self, a: &[u8], row: usize, to: &mut [u8]) -> f32 {
        let Operand { stride, transposed, .. } = self.a;
        let to = &mut to[..self.k.next_multiple_of(4)];
        to[self.k..].fill(0);
        let to = &mut to[..self.k];
        match transposed {
            true => to.iter_mut().enumerate().for_each(|(x, to)| *to = a[x * stride + row]),
            false => to.copy_from_slice(&a[row * stride..row * stride + self.k]),
        }
        // SAFETY: the body is safe code.
        unsafe {
            dispatch!(self.isa, <'a, S>(to: &'a mut [u8]) -> f32 {
                let _ = S::N;
                let mut sum = 0i32;
                for x in to {
                    *x ^= 0x80;
                    sum += i32::from(*x as i8);
                }
                sum as f32
            })
        }
    }

    // A panel of `B` in cells, and what its columns begin with.
    fn pack(&self, b: &[u8], panel: usize, to: &mut [u8], begin: &mut [f32]) {
        let (k, width, columns) = (self.k, self.panels.width, self.panels.columns(panel));
        let (first, stride) = (panel * width, self.b.stride);
        let mut sums = [0i32; SUMS];
        if columns < width || !k.is_multiple_of(4) {
            to.fill(0);
        }
        if self.b.transposed {
            for (j, sum) in sums.iter_mut().enumerate().take(columns) {
                let from = &b[(first + j) * stride..(first + j) * stride + k];
                for (c, four) in from.chunks(4).enumerate() {
                    to[(c * width + j) * 4..][..four.len()].copy_from_slice(four);
                }
                *sum = from.iter().map(|x| i32::from(*x)).sum();
            }
        } else {
            for (c, cells) in to.chunks_exact_mut(4 * width).enumerate() {
                let row = |t: usize| (4 * c + t < k).then(|| &b[(4 * c + t) * stride + first..][..columns]);
                let four = [row(0), row(1), row(2), row(3)];
                weave(self.isa, four.map(|r| r.unwrap_or(&[])), cells, &mut sums[..columns]);
            }
        }
        let (za, zb) = self.zeros;
        for (to, sum) in begin.iter_mut().zip(sums) {
            // A difference of whole numbers below 2^24 is exact, and larger ones are near.
            *to = -(za as f32) * self.scale * (sum as f32 - k as f32 * zb);
        }
    }
}

// Four rows as cells; rows that are not there stay as they are. Adds them up.
fn weave(isa: Isa, rows: [&[u8]; 4], cells: &mut [u8], sums: &mut [i32]) {
    let [a, b, c, d] = rows;
    let n = sums.len();
    if d.len() < n {
        for (t, row) in rows.iter().enumerate() {
            for (j, x) in row.iter().enumerate() {
                cells[4 * j + t] = *x;
                sums[j] += i32::from(*x);
            }
        }
        return;
    }
    let (a, b, c, d) = (&a[..n], &b[..n], &c[..n], &d[..n]);
    // SAFETY: the body is safe code.
    unsafe {
        dispatch!(isa, <'a, S>(a: &'a [u8], b: &'a [u8], c: &'a [u8], d: &'a [u8], cells: &'a mut [u8], sums: &'a mut [i32]) {
            let _ = S::N;
            for (j, cell) in cells.chunks_exact_mut(4).enumerate().take(a.len()) {
                cell.copy_from_slice(&[a[j], b[j], c[j], d[j]]);
            }
            for (j, sum) in sums.iter_mut().enumerate() {
                *sum += i32::from(a[j]) + i32::from(b[j]) + i32::from(c[j]) + i32::from(d[j]);
            }
        })
    }
}

/// One product of the batch.
struct Matrices<'a> {
    a: &'a [u8],
    b: &'a [u8],
    c: *mut f32,
    item: usize,
    tile_epilogue: TileEpilogue<'a>,
}
