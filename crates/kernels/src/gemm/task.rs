//! What a micro kernel gets: one tile of rows, one panel of columns, and what happens to the sums before they are
//! stored. The innermost functions of every instruction level take this one description.

use super::leave::Leaving;
use super::{opaque, opaque_pointer};
use crate::{Act, Epilogue};

/// One tile of `C`: `rows x columns` sums over every tap and `depth` numbers of each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// First row, and the first row of the second group of rows (see [`crate::gemm::Micro`]).
    pub(crate) a: [*const f32; 2],
    /// Rows from each of both. Only tile registers look at it, and at what follows.
    pub(crate) rows: [usize; 2],
    /// The row of the tile that the second start is. Less than the rows from the first one where both overlap.
    pub(crate) low: usize,
    /// Steps read rows that others have read, while too much of the panel passes by to stay near.
    pub(crate) rows_stay: bool,
    /// Floats from row to row of `A`.
    pub(crate) lda: usize,
    /// Offsets in floats added to the rows, one a tap.
    pub(crate) taps: *const usize,
    pub(crate) tap_count: usize,
    /// Numbers of one tap.
    pub(crate) depth: usize,
    /// After so many taps a sum begins anew, and what there is of it is put aside and added later: the errors of shorter sums
    /// are smaller. With 0 every sum is taken at once. Functions for few rows do not look at it.
    pub(crate) chunk_taps: usize,
    /// The panel: `tap_count * depth` rows of the panel's width.
    pub(crate) b: *const f32,
    /// Floats from row to row of the panel: its width, but for functions for few rows.
    pub(crate) ldb: usize,
    pub(crate) c: *mut f32,
    pub(crate) ldc: usize,
    /// Columns to store, at most the panel's width.
    pub(crate) columns: usize,
    /// Whether `c` holds an earlier part of the same sums.
    pub(crate) resume: bool,
    /// Null when there is none.
    pub(crate) bias: *const f32,
    /// Null when there is none.
    pub(crate) add: *const f32,
    pub(crate) ld_add: usize,
    pub(crate) post: Post,
    /// What is asked for while the sums are taken, so that it is near when its turn comes: so many bytes of it with each row of
    /// the panel. See [`Task::ask_for`].
    pub(crate) ahead: *const f32,
    pub(crate) ahead_step: usize,
    /// Where the tile lies in the whole output, and who computes it. Only tiles of cells look at these and at `leaving`.
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) thread: usize,
    pub(crate) leaving: *const Leaving<'static>,
}

/// Where sums of cells leave to: the rectangle of the whole output, who computes it, and what happens to them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub(crate) row: usize,
    pub(crate) column: usize,
    pub(crate) columns: usize,
    pub(crate) thread: usize,
    pub(crate) leaving: *const Leaving<'static>,
}

/// Tiles over a panel that share the work of asking for the next one, at most.
const ASKING: usize = 16;
/// Floats of a panel that is rather not asked for as a whole: much else would have to leave the second-level cache for it.
const LARGE: usize = 128 * 1024;

impl Task {
    /// Asks for a part of the panel at `next`: this is tile `t` of `tiles` over a panel of as many floats, in `steps` rows. Weights
    /// come from afar while a tile waits for them, all of them within the first tile of a panel; in this way they come bit by bit,
    /// while the tiles of the panel before it have enough to do.
    #[inline(always)]
    pub(crate) fn ask_for(&mut self, next: Option<*const f32>, floats: usize, steps: usize, t: usize, tiles: usize) {
        let asking = tiles.min(ASKING);
        (self.ahead, self.ahead_step) = (std::ptr::null(), 0);
        if let Some(next) = next
            && t < asking
            && floats <= LARGE
        {
            let step = (4 * floats).div_ceil(asking * steps.max(1));
            (self.ahead, self.ahead_step) = (next.wrapping_byte_add(t * step * steps), step);
        }
    }
    /// The first address that is asked for, where each step asks for one whatever it is: what is here already, when there is
    /// nothing else.
    #[inline(always)]
    pub(crate) fn asks(&self) -> *const f32 {
        if self.ahead_step == 0 { self.b } else { self.ahead }
    }
    #[inline(always)]
    pub(crate) fn target(&self) -> Target {
        Target {
            row: opaque(self.row),
            column: opaque(self.column),
            columns: opaque(self.columns),
            thread: opaque(self.thread),
            leaving: opaque_pointer(self.leaving),
        }
    }
}

/// What is done in registers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Post {
    pub(crate) scale: f32,
    pub(crate) simple: Simple,
    /// The numbers of `simple`.
    pub(crate) p: f32,
    pub(crate) q: f32,
    pub(crate) add_last: bool,
}

/// Functions that cost a few instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Simple {
    None,
    Relu,
    /// Between `p` and `q`.
    Clamp,
    /// Times `p` below zero.
    Leaky,
    /// `x * clamp(x * p + q, 0, 1)`.
    HardSwish,
    /// `clamp(x * p + q, 0, 1)`.
    HardSigmoid,
}

impl Post {
    pub(crate) const NONE: Post = Post { scale: 1.0, simple: Simple::None, p: 0.0, q: 0.0, add_last: false };

    /// The function in registers, and the one that is left for later.
    pub(crate) fn of(epilogue: &Epilogue<'_>, scale: f32) -> (Post, Act) {
        let sixth = 1.0 / 6.0;
        let (simple, p, q) = match epilogue.act {
            Act::Relu => (Simple::Relu, 0.0, 0.0),
            Act::Clamp { min, max } => (Simple::Clamp, min, max),
            Act::LeakyRelu(factor) => (Simple::Leaky, factor, 0.0),
            Act::HSwish => (Simple::HardSwish, sixth, 0.5),
            Act::HSigmoid => (Simple::HardSigmoid, sixth, 0.5),
            Act::HardSigmoid { alpha, beta } => (Simple::HardSigmoid, alpha, beta),
            _ => (Simple::None, 0.0, 0.0),
        };
        let later = if simple == Simple::None { epilogue.act } else { Act::None };
        (Post { scale, simple, p, q, add_last: epilogue.add_last && later == Act::None }, later)
    }

    pub(crate) fn apply(&self, x: f32) -> f32 {
        let limit = |x: f32, low: f32, high: f32| {
            if x < low {
                low
            } else if x > high {
                high
            } else {
                x
            }
        };
        match self.simple {
            Simple::None => x,
            Simple::Relu => {
                if x < 0.0 {
                    0.0
                } else {
                    x
                }
            }
            Simple::Clamp => limit(x, self.p, self.q),
            Simple::Leaky => {
                if x < 0.0 {
                    x * self.p
                } else {
                    x
                }
            }
            Simple::HardSwish => x * limit(x * self.p + self.q, 0.0, 1.0),
            Simple::HardSigmoid => limit(x * self.p + self.q, 0.0, 1.0),
        }
    }
}

/// Stores sums that lie in `sums` (`rows` of `width`) as the task says, one number at a time.
///
/// # Safety
/// The task's `c`, `bias` and `add` hold `rows x columns`.
pub(crate) unsafe fn store_plain(task: &Task, sums: *const f32, rows: usize, width: usize) {
    for i in 0..rows {
        for j in 0..task.columns {
            // SAFETY: inside, as the caller promises.
            unsafe {
                let mut x = *sums.add(i * width + j);
                if task.resume {
                    x += *task.c.add(i * task.ldc + j);
                }
                x *= task.post.scale;
                if !task.bias.is_null() {
                    x += *task.bias.add(j);
                }
                let add = if task.add.is_null() { 0.0 } else { *task.add.add(i * task.ld_add + j) };
                if !task.add.is_null() && !task.post.add_last {
                    x += add;
                }
                x = task.post.apply(x);
                if !task.add.is_null() && task.post.add_last {
                    x += add;
                }
                *task.c.add(i * task.ldc + j) = x;
            }
        }
    }
}

/// [`store_plain`] for rows of 32 sums.
///
/// # Safety
/// As there.
pub(crate) unsafe fn store_rows(task: &Task, sums: *const f32, rows: usize) {
    // SAFETY: the caller's promise.
    unsafe { store_plain(task, sums, rows, 32) }
}

impl Default for Task {
    fn default() -> Task {
        let none = std::ptr::null();
        Task {
            a: [none; 2],
            rows: [0; 2],
            low: 0,
            rows_stay: false,
            lda: 0,
            taps: std::ptr::null(),
            tap_count: 0,
            depth: 0,
            chunk_taps: 0,
            b: none,
            ldb: 0,
            c: std::ptr::null_mut(),
            ldc: 0,
            columns: 0,
            resume: false,
            bias: none,
            add: none,
            ld_add: 0,
            post: Post::NONE,
            ahead: none,
            ahead_step: 0,
            row: 0,
            column: 0,
            thread: 0,
            leaving: std::ptr::null(),
        }
    }
}
