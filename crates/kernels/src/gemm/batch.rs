//! Products of two matrices that both come at run time, many at once. `B` is packed by the thread that multiplies with it.

use super::dots::dots;
use super::panels::Panels;
use super::region::{Product, STRIP, TileEpilogue};
use super::task::Task;
use super::{Micro, SKINNY, pack};
use crate::{Epilogue, Exec, Isa, SharedMut, part_of};
use std::ops::Range;

/// Where the matrices of one operand lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The first element of each matrix. Equal offsets are a broadcast.
    pub offsets: Vec<usize>,
    /// Elements from row to row as stored.
    pub stride: usize,
    /// Whether what is stored is the transpose of what is multiplied.
    pub transposed: bool,
}

impl Operand {
    /// Elements up to the last of matrices of that size. Panics when rows overlap.
    pub(crate) fn span(&self, rows: usize, columns: usize) -> usize {
        let (rows, columns) = if self.transposed { (columns, rows) } else { (rows, columns) };
        assert!(rows <= 1 || self.stride >= columns, "rows of {columns} elements overlap: stride {}", self.stride);
        match rows * columns {
            0 => 0,
            _ => self.offsets.iter().max().map_or(0, |o| o + (rows - 1) * self.stride + columns),
        }
    }
}

/// `C[i] = scale * A[i] * B[i]` for every `i` of a batch, with `A[i]` of `m x k` and `B[i]` of `k x n`.
#[derive(Clone, Debug)]
pub struct BatchMatMul {
    isa: Isa,
    micro: &'static Micro,
    panels: Panels,
    m: usize,
    k: usize,
    a: Operand,
    b: Operand,
    c: Operand,
    scale: f32,
    /// Panels packed at a time.
    group: usize,
    lens: [usize; 3],
}

/// Products below this many multiplications stay on one thread.
const ALONE: usize = 32 * 1024;

impl BatchMatMul {
    /// Panics when the operands differ in number, or when matrices of `c` overlap.
    pub fn new(isa: Isa, [m, n, k]: [usize; 3], a: Operand, b: Operand, c: Operand, scale: f32) -> BatchMatMul {
        let batch = c.offsets.len();
        assert!(a.offsets.len() == batch && b.offsets.len() == batch, "operands of different batches");
        assert!(!c.transposed, "the output cannot be transposed");
        assert!(are_disjoint(&c.offsets, m, n, c.stride), "matrices of the output overlap");

        let micro = Micro::of(isa);
        let panels = Panels::new(micro, n);
        let group = (STRIP / (micro.width * k).max(1)).clamp(1, panels.count().max(1));
        let lens = [a.span(m, k), b.span(k, n), c.span(m, n)];
        BatchMatMul { isa, micro, panels, m, k, a, b, c, scale, group, lens }
    }

    pub fn batch(&self) -> usize {
        self.c.offsets.len()
    }

    /// Floats of scratch of each thread.
    pub fn scratch_floats(&self) -> usize {
        self.group_floats() + if self.a.transposed { self.strip() * self.pitch() } else { 0 }
    }

    fn group_floats(&self) -> usize {
        (self.group * self.panels.width * self.k).next_multiple_of(16)
    }
    fn pitch(&self) -> usize {
        self.k.next_multiple_of(16) + 16
    }
    fn strip(&self) -> usize {
        (STRIP / self.pitch() / self.micro.rows).max(1) * self.micro.rows
    }

    /// The epilogue counts rows through the whole batch: row `r` of matrix `i` is row `i * m + r`.
    pub fn run(&self, exec: &Exec<'_>, a: &[f32], b: &[f32], c: &mut [f32], epilogue: &Epilogue<'_>) {
        let (batch, m, n, k) = (self.batch(), self.m, self.panels.n, self.k);
        if batch * m * n == 0 {
            return;
        }
        for (name, len, need) in
            [("A", a.len(), self.lens[0]), ("B", b.len(), self.lens[1]), ("C", c.len(), self.lens[2])]
        {
            assert!(len >= need, "{name} has {len} floats of {need}");
        }
        assert!(exec.scratch.floats() >= self.scratch_floats(), "scratch of {} floats", exec.scratch.floats());
        let tile_epilogue = TileEpilogue::new(self.isa, epilogue, self.scale, batch * m, n);
        let out = SharedMut::new(c);
        let panels = self.panels.count();
        let (by_panel, by_row) = self.split(exec.threads());
        let parts = by_panel * by_row;
        let (one, chunks) = if batch * m * n * k < ALONE { (batch * parts, 1) } else { (1, batch * parts) };
        exec.each(chunks, |chunk, thread| {
            let mut scratch = exec.scratch.of(thread);
            for part in chunk * one..(chunk + 1) * one {
                let (item, part) = (part / parts, part % parts);
                let rows = part_of(m, by_row, part % by_row);
                let panels = part_of(panels, by_panel, part / by_row);
                let product = Product {
                    micro: self.micro,
                    panels: self.panels,
                    k,
                    // The operand starts inside its slice; `lens` covers every row of every matrix.
                    a: a.as_ptr().wrapping_add(self.a.offsets[item]),
                    lda: self.a.stride,
                    b: b.as_ptr().wrapping_add(self.b.offsets[item]),
                    c: out.as_ptr().wrapping_add(self.c.offsets[item]),
                    ldc: self.c.stride,
                    tile_epilogue,
                    first_row: item * m,
                    first_column: 0,
                    all_columns: self.c.stride,
                    stop: exec.stop,
                };
                // SAFETY: the slices hold the matrices (checked above), and parts are disjoint rectangles of matrices that
                // do not overlap (checked when this was made).
                unsafe { self.part(product, rows, panels, &mut scratch, thread) };
            }
        });
    }

    /// Parts of the panels and of the rows of each matrix. Panels first: then nothing is packed twice.
    fn split(&self, threads: usize) -> (usize, usize) {
        let want = if threads == 1 { 1 } else { (4 * threads).div_ceil(self.batch()) };
        let by_panel = want.min(self.panels.count());
        let by_row = want.div_ceil(by_panel).min((self.m / (4 * self.micro.rows)).max(1));
        (by_panel, by_row)
    }

    unsafe fn part(
        &self,
        whole: Product<'_>,
        rows: Range<usize>,
        panels: Range<usize>,
        scratch: &mut [f32],
        thread: usize,
    ) {
        if rows.len() <= SKINNY && !self.a.transposed {
            // SAFETY: the caller's promise.
            return unsafe { self.few(whole, rows, panels, scratch, thread) };
        }
        let (packed, turned) = scratch.split_at_mut(self.group_floats());
        let groups = panels.len().div_ceil(self.group);
        for g in 0..groups {
            let group = part_of(panels.len(), groups, g);
            let group = panels.start + group.start..panels.start + group.end;
            for panel in group.clone() {
                let (width, columns) = (self.panels.width_of(panel), self.panels.columns(panel));
                let at = self.panels.start(panel - group.start, self.k);
                let first = panel * self.panels.width;
                let to = packed[at..at + width * self.k].as_mut_ptr();
                // SAFETY: the panel lies inside B, and the scratch has room for the group.
                unsafe {
                    if self.b.transposed {
                        let from = whole.b.add(first * self.b.stride);
                        pack::columns(self.isa, from, self.b.stride, self.k, columns, 1, to, width);
                    } else {
                        pack::rows(whole.b.add(first), self.b.stride, self.k, columns, to, width);
                    }
                }
            }
            // Panels are counted from the first of all, packed ones from the first of the group.
            let b = packed.as_ptr().wrapping_sub(self.panels.start(group.start, self.k));
            if !self.a.transposed {
                // SAFETY: the caller's promise.
                unsafe { Product { b, ..whole }.run(rows.clone(), group, None, thread) };
                continue;
            }
            let pitch = self.pitch();
            let mut row = rows.start;
            while row < rows.end {
                let count = self.strip().min(rows.end - row);
                // SAFETY: the strip lies inside A; the scratch has room for it; the rectangle is ours.
                unsafe {
                    let to = turned.as_mut_ptr();
                    pack::columns(self.isa, whole.a.add(row), self.a.stride, count, self.k, 1, to, pitch);
                    let part = Product {
                        a: to,
                        lda: pitch,
                        b,
                        c: whole.c.add(row * whole.ldc),
                        first_row: whole.first_row + row,
                        ..whole
                    };
                    part.run(0..count, group.clone(), None, thread);
                }
                row += count;
            }
        }
    }
}

impl BatchMatMul {
    /// Few rows: `B` is read where it lies.
    unsafe fn few(
        &self,
        whole: Product<'_>,
        rows: Range<usize>,
        panels: Range<usize>,
        scratch: &mut [f32],
        thread: usize,
    ) {
        let tap = 0usize;
        for panel in panels.clone() {
            whole.stop.check();
            let (width, columns) = (self.panels.width_of(panel), self.panels.columns(panel));
            let column = panel * self.panels.width;
            let mut task = Task {
                a: [whole.a.wrapping_add(rows.start * whole.lda); 2],
                lda: whole.lda,
                taps: &tap,
                tap_count: 1,
                depth: self.k,
                ldb: self.b.stride,
                c: whole.c.wrapping_add(rows.start * whole.ldc + column),
                ldc: whole.ldc,
                columns,
                ..Task::default()
            };
            // SAFETY: rows and panel lie inside the matrices; the scratch has room for a panel.
            unsafe {
                whole.tile_epilogue.direct(&mut task, whole.first_row + rows.start, column, true);
                if self.b.transposed {
                    task.b = whole.b.add(column * self.b.stride);
                    dots(self.isa, self.micro, &task, rows.len(), self.b.stride);
                    continue;
                }
                task.b = whole.b.add(column);
                if columns < width || self.isa.is_plain() {
                    pack::rows(task.b, self.b.stride, self.k, columns, scratch.as_mut_ptr(), width);
                    (task.b, task.ldb) = (scratch.as_ptr(), width);
                }
                (self.micro.skinny(rows.len(), width))(&task);
            }
        }
        if whole.tile_epilogue.has_more() {
            let first = panels.start * self.panels.width;
            let columns = first..self.panels.n.min(panels.end * self.panels.width);
            let alone = columns.len() == whole.all_columns;
            let c = whole.c.wrapping_sub(whole.first_row * whole.ldc);
            let rows = whole.first_row + rows.start..whole.first_row + rows.end;
            // SAFETY: this thread has just written the rectangle.
            unsafe { whole.tile_epilogue.after(c, whole.ldc, rows, columns, alone, thread) };
        }
    }
}

/// Whether matrices of `m x n` at these offsets share no float: they follow one another, or lie on a grid of their stride.
pub(super) fn are_disjoint(offsets: &[usize], m: usize, n: usize, stride: usize) -> bool {
    if m * n == 0 || offsets.len() < 2 {
        return true;
    }
    let mut sorted = offsets.to_vec();
    sorted.sort_unstable();
    if sorted.windows(2).all(|w| w[0] + (m - 1) * stride + n <= w[1]) {
        return true;
    }
    if stride < n {
        return false;
    }
    let mut cells: Vec<(usize, usize)> = offsets.iter().map(|o| (o % stride, o / stride)).collect();
    cells.sort_unstable();
    cells.iter().all(|c| c.0 + n <= stride)
        && cells.windows(2).all(|w| if w[0].0 == w[1].0 { w[0].1 + m <= w[1].1 } else { w[0].0 + n <= w[1].0 })
}
