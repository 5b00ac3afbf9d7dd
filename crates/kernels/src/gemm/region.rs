//! A rectangle of a product on one thread: strips of rows small enough for the second-level cache, every panel over a
//! strip, every tile of the strip over a panel. What does not fit in registers is done to a strip when it is whole.

use super::panels::Panels;
use super::task::{Post, Task};
use super::{FIRST_ROWS, Micro, SKINNY};
use crate::{Act, Epilogue, Finish, Isa, Tile, part_of};
use std::ops::Range;

/// Floats of `A` in a strip, and of `C`: a quarter of the second-level cache each.
pub(crate) const STRIP: usize = 64 * 1024;

/// What follows the sums, checked against the size of the output.
#[derive(Clone, Copy)]
pub(crate) struct Ending<'a> {
    post: Post,
    later: Act,
    bias: *const f32,
    add: *const f32,
    ld_add: usize,
    add_later: bool,
    finish: Option<&'a dyn Finish>,
    isa: Isa,
}

// SAFETY: it stands for the shared slices of an `Epilogue`, which may be read by any thread.
unsafe impl Sync for Ending<'_> {}
// SAFETY: as above.
unsafe impl Send for Ending<'_> {}

impl<'a> Ending<'a> {
    /// For an output of `rows x columns`. Panics when the slices of the epilogue are too short for it.
    pub(crate) fn new(isa: Isa, epilogue: &Epilogue<'a>, scale: f32, rows: usize, columns: usize) -> Ending<'a> {
        let (post, later) = Post::of(epilogue, scale);
        if let Some(bias) = epilogue.bias {
            assert!(bias.len() >= columns, "a bias of {} for {columns} columns", bias.len());
        }
        if let Some((add, stride)) = epilogue.add {
            assert!(rows == 0 || add.len() >= (rows - 1) * stride + columns, "the added matrix is too small");
        }
        let (add, ld_add) = epilogue.add.map_or((std::ptr::null(), 0), |(a, s)| (a.as_ptr(), s));
        let add_later = !add.is_null() && epilogue.add_last && later != Act::None;
        let bias = epilogue.bias.map_or(std::ptr::null(), <[f32]>::as_ptr);
        Ending { post, later, bias, add, ld_add, add_later, finish: epilogue.finish, isa }
    }

    /// Fills in the part of a task that says what follows.
    ///
    /// # Safety
    /// Row and column are inside the output.
    pub(crate) unsafe fn direct(&self, task: &mut Task, row: usize, column: usize) {
        task.post = self.post;
        task.ld_add = self.ld_add;
        // SAFETY: inside the slices, whose lengths `new` has checked.
        unsafe {
            task.bias = if self.bias.is_null() { self.bias } else { self.bias.add(column) };
            let now = !self.add.is_null() && !self.add_later;
            task.add = if now { self.add.add(row * self.ld_add + column) } else { std::ptr::null() };
        }
    }

    /// Whether there is work for [`Ending::after`].
    pub(crate) fn has_more(&self) -> bool {
        self.later != Act::None || self.finish.is_some()
    }

    /// What is left to do on a rectangle whose sums are stored. `alone` says that nobody works on the columns beside it.
    ///
    /// # Safety
    /// `c` is the output of the size given to `new`, and this thread alone works on the rectangle.
    pub(crate) unsafe fn after(
        &self,
        c: *mut f32,
        ldc: usize,
        rows: Range<usize>,
        columns: Range<usize>,
        alone: bool,
        thread: usize,
    ) {
        if !self.has_more() || rows.is_empty() || columns.is_empty() {
            return;
        }
        let step = if alone { rows.len() } else { 1 };
        for row in rows.clone().step_by(step) {
            let len = (step - 1) * ldc + columns.len();
            // SAFETY: inside the output; nobody else uses it, nor what lies between its rows when they are taken together.
            let data = unsafe { std::slice::from_raw_parts_mut(c.wrapping_add(row * ldc + columns.start), len) };
            self.later(data, ldc, row, &columns);
            if let Some(finish) = self.finish {
                let tile = Tile { data, stride: ldc, row, column: columns.start, rows: step, columns: columns.len() };
                finish.finish(tile, thread);
            }
        }
    }

    fn later(&self, data: &mut [f32], ldc: usize, row: usize, columns: &Range<usize>) {
        if self.later == Act::None {
            return;
        }
        if ldc == columns.len() {
            crate::vmath::act_in_place(self.isa, self.later, data);
        } else {
            for line in data.chunks_mut(ldc) {
                crate::vmath::act_in_place(self.isa, self.later, &mut line[..columns.len()]);
            }
        }
        if self.add_later {
            for (i, line) in data.chunks_mut(ldc).enumerate() {
                // SAFETY: inside the added matrix, whose length `new` has checked.
                let add = unsafe {
                    let start = self.add.add((row + i) * self.ld_add + columns.start);
                    std::slice::from_raw_parts(start, columns.len())
                };
                line.iter_mut().zip(add).for_each(|(x, y)| *x += y);
            }
        }
    }
}

/// `C = A * B` with `B` in panels.
#[derive(Clone, Copy)]
pub(crate) struct Product<'a> {
    pub(crate) micro: &'static Micro,
    pub(crate) panels: Panels,
    pub(crate) k: usize,
    pub(crate) a: *const f32,
    pub(crate) lda: usize,
    pub(crate) b: *const f32,
    pub(crate) c: *mut f32,
    pub(crate) ldc: usize,
    pub(crate) ending: Ending<'a>,
    /// The row of the whole output that row 0 of `a` and `c` is; `add` and `finish` count from there.
    pub(crate) first_row: usize,
    /// The same for column 0 of `b` and `c`.
    pub(crate) first_column: usize,
    /// Columns of the whole output.
    pub(crate) all_columns: usize,
}

// SAFETY: the pointers stand for slices that outlive the job; each thread writes its own rectangle.
unsafe impl Sync for Product<'_> {}
// SAFETY: as above.
unsafe impl Send for Product<'_> {}

impl Product<'_> {
    /// Rows of a strip.
    pub(crate) fn strip_rows(micro: &Micro, k: usize, columns: usize) -> usize {
        let rows = STRIP / k.max(columns).max(1);
        (rows / micro.rows).max(1) * micro.rows
    }

    /// Computes a rectangle. With `copy`, rows whose distance makes them share few cache lines are moved there first.
    ///
    /// # Safety
    /// The pointers hold what the sizes say; this thread alone writes the rectangle.
    pub(crate) unsafe fn run(&self, rows: Range<usize>, panels: Range<usize>, copy: Option<&mut [f32]>, thread: usize) {
        if rows.is_empty() || panels.is_empty() {
            return;
        }
        let first = panels.start * self.panels.width;
        let columns = first..self.panels.n.min(panels.end * self.panels.width);
        let alone = columns.len() == self.all_columns;
        let skinny = rows.len() <= SKINNY && self.k >= 16;
        let mut strip_rows = Self::strip_rows(self.micro, self.k, columns.len());
        let pitch = self.k + 16;
        let copy = copy.filter(|c| c.len() >= self.micro.rows * pitch && !skinny);
        if let Some(copy) = &copy {
            strip_rows = strip_rows.min(copy.len() / pitch / self.micro.rows * self.micro.rows);
        }
        let copy = copy.map(|c| c.as_mut_ptr());
        let strips = rows.len().div_ceil(strip_rows);
        let tap = 0usize;
        for s in 0..strips {
            let strip = part_of(rows.len(), strips, s);
            let strip = rows.start + strip.start..rows.start + strip.end;
            let (a, lda) = match copy {
                None => (self.a.wrapping_add(strip.start * self.lda), self.lda),
                Some(copy) => {
                    for (i, row) in strip.clone().enumerate() {
                        // SAFETY: a row of `a`, and a row of the copy, which has room for the strip.
                        unsafe {
                            std::ptr::copy_nonoverlapping(self.a.add(row * self.lda), copy.add(i * pitch), self.k)
                        };
                    }
                    (copy.cast_const(), pitch)
                }
            };
            let tiles = strip.len().div_ceil(self.micro.rows);
            for panel in panels.clone() {
                let width = self.panels.width_of(panel);
                let column = panel * self.panels.width;
                let mut task = Task {
                    a: [a; 2],
                    lda,
                    taps: &tap,
                    tap_count: 1,
                    depth: self.k,
                    b: self.b.wrapping_add(self.panels.start(panel, self.k)),
                    c: self.c,
                    ldc: self.ldc,
                    columns: self.panels.columns(panel),
                    ..Task::default()
                };
                for t in 0..tiles {
                    let tile = part_of(strip.len(), tiles, t);
                    let row = strip.start + tile.start;
                    task.a[0] = a.wrapping_add(tile.start * lda);
                    task.a[1] = task.a[0].wrapping_add(FIRST_ROWS * lda);
                    task.c = self.c.wrapping_add(row * self.ldc + column);
                    let run = match skinny {
                        true => self.micro.skinny(tile.len(), width),
                        false => self.micro.tile(tile.len(), width),
                    };
                    // SAFETY: the tile lies inside the matrices.
                    unsafe {
                        self.ending.direct(&mut task, self.first_row + row, self.first_column + column);
                        run(&task);
                    }
                }
            }
            if self.ending.has_more() {
                // SAFETY: this thread has just written the rectangle.
                unsafe {
                    let c = self.c.wrapping_sub(self.first_row * self.ldc + self.first_column);
                    let columns = self.first_column + columns.start..self.first_column + columns.end;
                    let rows = self.first_row + strip.start..self.first_row + strip.end;
                    self.ending.after(c, self.ldc, rows, columns, alone, thread);
                }
            }
        }
    }
}

/// How a product is shared out: parts of its rows times parts of its panels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) rows: usize,
    pub(crate) panels: usize,
}

/// Products below this many multiplications stay on one thread.
const ALONE: usize = 32 * 1024;
/// Chunks of a thread: one that is held up leaves the others to the rest.
const CHUNKS: usize = 4;

impl Grid {
    pub(crate) fn new(micro: &Micro, threads: usize, m: usize, panels: usize, k: usize) -> Grid {
        let (m, panels) = (m.max(1), panels.max(1));
        if threads == 1 || m * panels * micro.width * k < ALONE {
            return Grid { rows: 1, panels: 1 };
        }
        let tiles = m.div_ceil(micro.rows);
        let weights = panels * micro.width * k;
        if tiles < 2 * threads && panels >= threads {
            return Grid { rows: 1, panels: panels.min(CHUNKS * threads) };
        }
        // Rows stay with their thread. Weights that the cache holds cost nothing to read again; others are read once.
        if weights <= STRIP {
            return Grid { rows: tiles.min(CHUNKS * threads), panels: 1 };
        }
        let parts = tiles.min(threads);
        Grid { rows: parts, panels: panels.min(CHUNKS * threads / parts) }
    }
    pub(crate) fn chunks(&self) -> usize {
        self.rows * self.panels
    }
    /// Rows and panels of a chunk.
    pub(crate) fn part(&self, chunk: usize, m: usize, panels: usize) -> (Range<usize>, Range<usize>) {
        (part_of(m, self.rows, chunk / self.panels), part_of(panels, self.panels, chunk % self.panels))
    }
}
