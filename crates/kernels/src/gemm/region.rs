//! A rectangle of a product on one thread: strips of rows small enough for the second-level cache, long sums in blocks, every
//! panel over a strip, every tile of the strip over a panel. What does not fit in registers is done to a strip when it is
//! whole.

use super::leave::Leaving;
use super::panels::Panels;
use super::task::{Post, Task};
use super::{Micro, SKINNY, StripFn};
use crate::exec::Stop;
use crate::{Act, Epilogue, Finish, Isa, Machine, Tile, part_of, vmath};
use std::ops::Range;

/// Floats of `A` in a strip, and of `C`: a quarter of the second-level cache each.
pub(crate) const STRIP: usize = 64 * 1024;

/// The same where the cache is known and sums are floats: half of it, since panels only pass through. Tile registers multiply faster
/// than panels come from beyond it, so that they had better come once.
fn strip_floats(micro: &Micro) -> usize {
    let l2 = Machine::here().l2;
    match micro.resumes {
        true => (l2 / 8).clamp(STRIP, 2 * STRIP),
        false if micro.has_tiles() => (l2 / 32 * 5).clamp(STRIP, 8 * STRIP),
        false => STRIP,
    }
}

/// Longest sums that are taken at once.
const DEPTH: usize = 1024;

/// Whether the epilogue of a product may add what the output holds: sums of `k` are taken at once, and nothing is added to what
/// has been stored.
pub(crate) fn adds_over(k: usize, epilogue: &Epilogue<'_>) -> bool {
    let (_, later) = Post::of(epilogue, 1.0);
    k <= DEPTH && !(epilogue.add_last && later != Act::None)
}

/// Numbers after which a sum begins anew, more or less: the errors of the parts do not add up as those of one long sum do.
const CHUNK: usize = 512;

/// A run of numbers in equal pieces, between which sums may begin anew: how many pieces, and after how many a sum does.
pub(crate) fn chunks(run: usize) -> [usize; 2] {
    let least = ((run + CHUNK / 2) / CHUNK).max(1);
    let pieces = (least..=2 * least).find(|pieces| run.is_multiple_of(*pieces)).unwrap_or(1);
    let piece = (run / pieces).max(1);
    [pieces, ((CHUNK + piece / 2) / piece).max(1)]
}

/// Tiles of rows that make it cheap to read panels from afar.
pub(crate) const MANY: usize = 4;

/// Floats of panels that are near enough to be read anew for each tile; then the tile stays nearer.
const NEAR: usize = 32 * 1024;
/// Longest sums, in cells, that count as short.
const SHORT: usize = 160;
/// Tiles of short sums one below the other that stay near while panels pass.
const TOGETHER: usize = 8;

/// What follows the sums, checked against the size of the output.
#[derive(Clone, Copy)]
pub(crate) struct TileEpilogue<'a> {
    post: Post,
    later: Act,
    bias: *const f32,
    add: *const f32,
    ld_add: usize,
    add_later: bool,
    finish: Option<&'a dyn Finish>,
    isa: Isa,
    /// For tiles of cells, which look at nothing else of this.
    leaving: Option<&'a Leaving<'a>>,
}

// SAFETY: it stands for the shared slices of an `Epilogue`, which may be read by any thread.
unsafe impl Sync for TileEpilogue<'_> {}
// SAFETY: as above.
unsafe impl Send for TileEpilogue<'_> {}

impl<'a> TileEpilogue<'a> {
    /// For an output of `rows x columns`. Panics when the slices of the epilogue are too short for it.
    pub(crate) fn new(isa: Isa, epilogue: &Epilogue<'a>, scale: f32, rows: usize, columns: usize) -> TileEpilogue<'a> {
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
        TileEpilogue { post, later, bias, add, ld_add, add_later, finish: epilogue.finish, isa, leaving: None }
    }

    /// The same with what the output holds in the place of what is added. Nothing may be stored there before: see [`adds_over`].
    pub(crate) fn over(self, c: *const f32, ldc: usize) -> TileEpilogue<'a> {
        TileEpilogue { add: c, ld_add: ldc, ..self }
    }

    /// For tiles of cells.
    pub(crate) fn leaving(isa: Isa, leaving: &'a Leaving<'a>) -> TileEpilogue<'a> {
        TileEpilogue { leaving: Some(leaving), ..TileEpilogue::new(isa, &Epilogue::default(), 1.0, 0, 0) }
    }

    /// Fills in the part of a task that says what follows: nothing before the last block of the sums.
    ///
    /// # Safety
    /// Row and column are inside the output.
    pub(crate) unsafe fn direct(&self, task: &mut Task, row: usize, column: usize, last: bool) {
        if let Some(leaving) = self.leaving {
            (task.row, task.column) = (row, column);
            // The task is done before what this points to goes away.
            task.leaving = std::ptr::from_ref(leaving).cast();
            return;
        }
        if !last {
            task.post = Post::NONE;
            (task.bias, task.add) = (std::ptr::null(), std::ptr::null());
            return;
        }
        task.post = self.post;
        task.ld_add = self.ld_add;
        // SAFETY: inside the slices, whose lengths `new` has checked.
        unsafe {
            task.bias = if self.bias.is_null() { self.bias } else { self.bias.add(column) };
            let now = !self.add.is_null() && !self.add_later;
            task.add = if now { self.add.add(row * self.ld_add + column) } else { std::ptr::null() };
        }
    }

    /// Whether there is work for [`TileEpilogue::after`].
    pub(crate) fn has_more(&self) -> bool {
        self.later != Act::None || self.finish.is_some()
    }

    /// Whether finished rows are worked on, which is quicker for whole ones.
    pub(crate) fn has_finish(&self) -> bool {
        self.finish.is_some()
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
            vmath::act_in_place(self.isa, self.later, data);
        } else {
            for line in data.chunks_mut(ldc) {
                vmath::act_in_place(self.isa, self.later, &mut line[..columns.len()]);
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
    pub(crate) tile_epilogue: TileEpilogue<'a>,
    /// The row of the whole output that row 0 of `a` and `c` is; `add` and `finish` count from there.
    pub(crate) first_row: usize,
    /// The same for column 0 of `b` and `c`.
    pub(crate) first_column: usize,
    /// Columns of the whole output.
    pub(crate) all_columns: usize,
    /// Looked at before each panel of a strip.
    pub(crate) stop: Stop<'a>,
}

// SAFETY: the pointers stand for slices that outlive the job; each thread writes its own rectangle.
unsafe impl Sync for Product<'_> {}
// SAFETY: as above.
unsafe impl Send for Product<'_> {}

impl Product<'_> {
    /// How many blocks sums of `k` are taken in.
    fn blocks(micro: &Micro, k: usize) -> usize {
        if !micro.resumes || k <= DEPTH + DEPTH / 2 { 1 } else { k.div_ceil(DEPTH) }
    }

    /// The same with few rows, which have several sums for each number.
    fn skinny_blocks(micro: &Micro, k: usize) -> usize {
        if micro.resumes { k.div_ceil(2 * DEPTH).max(1) } else { 1 }
    }

    /// Rows of a strip whose `A` stays in the cache while panels pass.
    fn strip_rows(micro: &Micro, k: usize) -> usize {
        let depth = k.div_ceil(Self::blocks(micro, k));
        (strip_floats(micro) / depth.max(1) / micro.rows).max(1) * micro.rows
    }

    /// Floats from row to row of copied rows.
    fn pitch(micro: &Micro, k: usize) -> usize {
        k.div_ceil(Self::blocks(micro, k)).next_multiple_of(16) + 16
    }

    /// Floats that [`Product::run`] can use for copied rows.
    pub(crate) fn copy_floats(micro: &Micro, k: usize) -> usize {
        Self::strip_rows(micro, k) * Self::pitch(micro, k)
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
        let mut strip_rows = Self::strip_rows(self.micro, self.k);
        if self.tile_epilogue.has_more() {
            // What is left to do finds the strip of `C` in the cache, too.
            strip_rows = strip_rows.min((STRIP / columns.len() / self.micro.rows).max(MANY) * self.micro.rows);
        }
        let pitch = Self::pitch(self.micro, self.k);
        let copy = copy.filter(|c| c.len() >= self.micro.rows * pitch && !skinny);
        if let Some(copy) = &copy {
            strip_rows = strip_rows.min(copy.len() / pitch / self.micro.rows * self.micro.rows);
        }
        let copy = copy.map(|c| c.as_mut_ptr());
        let strips = rows.len().div_ceil(strip_rows);
        let blocks = match skinny {
            true => Self::skinny_blocks(self.micro, self.k),
            false => Self::blocks(self.micro, self.k),
        };
        for s in 0..strips {
            let strip = part_of(rows.len(), strips, s);
            let strip = rows.start + strip.start..rows.start + strip.end;
            for b in 0..blocks {
                let block = part_of(self.k, blocks, b);
                let (mut a, mut lda) = (self.a.wrapping_add(strip.start * self.lda + block.start), self.lda);
                if let Some(copy) = copy {
                    for i in 0..strip.len() {
                        // SAFETY: a row of `a`, and a row of the copy, which has room for the strip.
                        unsafe { std::ptr::copy_nonoverlapping(a.add(i * lda), copy.add(i * pitch), block.len()) };
                    }
                    (a, lda) = (copy.cast_const(), pitch);
                }
                // SAFETY: the strip lies inside the rectangle.
                unsafe { self.strip(&strip, &panels, &block, a, lda, skinny, thread) };
            }
            if self.tile_epilogue.has_more() {
                // SAFETY: this thread has just written the rectangle.
                unsafe {
                    let c = self.c.wrapping_sub(self.first_row * self.ldc + self.first_column);
                    let columns = self.first_column + columns.start..self.first_column + columns.end;
                    let rows = self.first_row + strip.start..self.first_row + strip.end;
                    self.tile_epilogue.after(c, self.ldc, rows, columns, alone, thread);
                }
            }
        }
    }

    /// Short sums of as many rows of a strip as a function for them does; gives how many.
    unsafe fn short(
        &self,
        run: StripFn,
        task: &mut Task,
        strip: &Range<usize>,
        panels: &Range<usize>,
        a: *const f32,
    ) -> usize {
        let mut first = 0;
        while first < strip.len() {
            let rows = (strip.len() - first).min(TOGETHER * self.micro.rows);
            let row = strip.start + first;
            let mut done = 0;
            for panel in panels.clone() {
                self.stop.check();
                task.a[0] = a.wrapping_add(first * task.lda);
                task.b = self.b.wrapping_add(self.panels.start(panel, self.k));
                task.columns = self.panels.columns(panel);
                task.ldb = self.panels.width_of(panel);
                task.c = self.c.wrapping_add(row * self.ldc + panel * self.panels.width);
                let column = self.first_column + panel * self.panels.width;
                // SAFETY: the rows lie inside the matrices.
                unsafe {
                    self.tile_epilogue.direct(task, self.first_row + row, column, true);
                    done = run(task, rows);
                }
                if done == 0 {
                    return first;
                }
            }
            first += done;
        }
        first
    }

    /// A block of the sums of a strip, whose first row lies at `a`.
    unsafe fn strip(
        &self,
        strip: &Range<usize>,
        panels: &Range<usize>,
        block: &Range<usize>,
        a: *const f32,
        lda: usize,
        skinny: bool,
        thread: usize,
    ) {
        // A block has at most six pieces.
        let [pieces, chunk_taps] = if skinny || !self.micro.resumes { [1, 0] } else { chunks(block.len()) };
        let depth = block.len() / pieces;
        let taps: [usize; 6] = std::array::from_fn(|i| i * depth);
        let mut task = Task {
            lda,
            taps: taps.as_ptr(),
            tap_count: taps[..pieces].len(),
            depth,
            chunk_taps,
            ldc: self.ldc,
            resume: block.start > 0,
            thread,
            ..Task::default()
        };
        let done = match self.micro.strip {
            Some(run) if block.len() <= SHORT && !skinny => {
                // SAFETY: the caller's promise.
                unsafe { self.short(run, &mut task, strip, panels, a) }
            }
            _ => 0,
        };
        let (strip, a) = (strip.start + done..strip.end, a.wrapping_add(done * lda));
        let tiles = strip.len().div_ceil(self.micro.rows);
        let most = strip.len().div_ceil(tiles.max(1));
        // Where a block of a panel lies.
        let lies = |panel: usize, from: usize| {
            self.b.wrapping_add(self.panels.start(panel, self.k) + from * self.panels.width_of(panel))
        };
        let mut one = |panel: usize, t: usize, next: Option<*const f32>| {
            let (width, column) = (self.panels.width_of(panel), panel * self.panels.width);
            let tile = part_of(strip.len(), tiles, t);
            let row = strip.start + tile.start;
            task.a[0] = a.wrapping_add(tile.start * lda);
            self.micro.start(&mut task, tile.len(), most);
            task.b = lies(panel, block.start);
            task.ask_for(next, width * block.len(), block.len(), t, tiles);
            task.c = self.c.wrapping_add(row * self.ldc + column);
            task.columns = self.panels.columns(panel);
            task.ldb = width;
            let run = match skinny {
                true => self.micro.skinny(tile.len(), width),
                false => self.micro.tile(tile.len(), width),
            };
            // SAFETY: the tile lies inside the matrices.
            unsafe {
                let (row, column) = (self.first_row + row, self.first_column + column);
                self.tile_epilogue.direct(&mut task, row, column, block.end == self.k);
                run(&task);
            }
        };
        if panels.len() * self.panels.width * block.len() <= NEAR {
            self.stop.check();
            (0..tiles).for_each(|t| panels.clone().for_each(|panel| one(panel, t, None)));
        } else {
            for panel in panels.clone() {
                self.stop.check();
                // Behind the last panel comes the next block of the first.
                let next = match panel + 1 < panels.end {
                    true => Some(lies(panel + 1, block.start)),
                    false => (block.end < self.k).then(|| lies(panels.start, block.end)),
                };
                (0..tiles).for_each(|t| one(panel, t, next));
            }
        }
    }
}
