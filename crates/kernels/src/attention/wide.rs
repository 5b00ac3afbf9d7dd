//! Attention of many queries. Queries lie across the lanes: `S^T = K Q^T` has a key a row, the softmax runs down the
//! columns, and `O^T = V^T P^T` takes that same memory as its right side. Only the queries and the result are transposed.
//!
//! All operands of products are cells, see [`Cell`]: a float, or two bf16, which then are next to each other along the sum. Pairs of
//! a head's numbers are so by themselves; keys next to each other are woven: their values on the way into the copy, their shares
//! when they are made.

use super::{BLOCK, Job, Pieces, Starts, WIDTH, lines};
use crate::part_of;
use crate::simd::{Block, Cell, Entry, Kernel, Number, Readable, Simd, dispatch};
use crate::vmath::functions::exp_or_zero;
use std::marker::PhantomData;
use std::ops::Range;

/// Blocks of queries of one item, which share the copies of keys and values.
pub(super) const GROUP: usize = 4;
/// Rows of the largest tile.
const TALL: usize = 14;

pub(super) fn scratch_floats(p: &super::AttentionParams) -> usize {
    let states = GROUP * (lines(p.head_size * WIDTH) + lines(p.value_size * WIDTH) + 2 * WIDTH);
    // Queries are copied unless they are floats.
    let copies = lines(BLOCK * p.head_size) + lines(BLOCK * p.value_size) + lines(WIDTH * p.head_size);
    states + lines(BLOCK * WIDTH) + 2 * WIDTH + lines(BLOCK) + copies
}

/// Keys and values of a block: where their cells lie, and cells from one to the next.
#[derive(Clone, Copy)]
struct KeysValues {
    keys: (*const f32, usize),
    values: (*const f32, usize),
}

impl KeysValues {
    /// Where they are; or copied, when several blocks of queries read them and they lie far apart: rows of other heads between
    /// them make them share few lines of the first-level cache. What is no float is always copied.
    #[inline(always)]
    unsafe fn of<C: Cell, V: Simd>(
        item: &Item<'_, C::Number>,
        keys: Range<usize>,
        several: bool,
        copies: [&mut [f32]; 2],
    ) -> KeysValues {
        let p = item.job.p;
        let [to_keys, to_values] = copies;
        let from = [item.at.k.wrapping_add(keys.start * p.k[2]), item.at.v.wrapping_add(keys.start * p.v[2])];
        if const { C::COUNT == 1 && !C::WIDENED } {
            let place = |from: *const C::Number, stride: usize, size: usize, to: &mut [f32]| {
                if !several || stride == size {
                    return (from.cast(), stride);
                }
                // SAFETY: the rows are those of the operand, whose length was checked.
                unsafe { copy_rows::<C, V>(from, stride, size, keys.len(), to) };
                (to.as_ptr(), size)
            };
            let [k, v] = from;
            return KeysValues {
                keys: place(k, p.k[2], p.head_size, to_keys),
                values: place(v, p.v[2], p.value_size, to_values),
            };
        }
        // SAFETY: as above; there is room for a cell of each number.
        unsafe {
            let cells = copy_rows::<C, V>(from[0], p.k[2], p.head_size, keys.len(), to_keys);
            if const { C::WIDENED } {
                let values = copy_rows::<C, V>(from[1], p.v[2], p.value_size, keys.len(), to_values);
                return KeysValues { keys: (to_keys.as_ptr(), cells), values: (to_values.as_ptr(), values) };
            }
            weave_rows::<C::Number, V>(from[1], p.v[2], p.value_size, keys.len(), to_values, p.value_size);
            KeysValues { keys: (to_keys.as_ptr(), cells), values: (to_values.as_ptr(), p.value_size) }
        }
    }
}

/// Copies rows of numbers, each as whole cells, the last one filled up with zero. Gives the cells of a row.
#[inline(always)]
unsafe fn copy_rows<C: Cell, V: Simd>(
    from: *const C::Number,
    stride: usize,
    size: usize,
    rows: usize,
    to: &mut [f32],
) -> usize {
    let cells = size.div_ceil(C::COUNT);
    for (i, row) in to.chunks_exact_mut(cells.max(1)).take(rows).enumerate() {
        if const { C::WIDENED } {
            for at in (0..size).step_by(V::N) {
                let left = (size - at).min(V::N);
                // SAFETY: the caller promises the rows; `row` has room for a float of each number.
                unsafe {
                    let x: V = C::Number::load_first(from.wrapping_add(i * stride + at), V::first(left), left);
                    x.store_partial(row.as_mut_ptr().add(at), left);
                }
            }
            continue;
        }
        if !size.is_multiple_of(C::COUNT) {
            row[cells - 1] = 0.0;
        }
        // SAFETY: the caller promises the rows; `row` has room for as many bytes.
        unsafe { std::ptr::copy_nonoverlapping(from.wrapping_add(i * stride), row.as_mut_ptr().cast(), size) };
    }
    cells
}

/// Two rows of numbers become one of cells, `to_stride` from one to the next; behind an odd one stand zeros.
#[inline(always)]
pub(super) unsafe fn weave_rows<T: Number, V: Simd>(
    from: *const T,
    stride: usize,
    size: usize,
    rows: usize,
    to: &mut [f32],
    to_stride: usize,
) {
    for row in (0..rows).step_by(2) {
        for at in (0..size).step_by(V::N) {
            let left = (size - at).min(V::N);
            // SAFETY: the caller promises the rows and a cell of each number.
            unsafe {
                let load =
                    |row: usize| -> V { T::load_first(from.wrapping_add(row * stride + at), V::first(left), left) };
                let second = if row + 1 < rows { load(row + 1) } else { V::splat(0.0) };
                load(row).weave_brains(second).store_partial(to.as_mut_ptr().add(row / 2 * to_stride + at), left);
            }
        }
    }
}

/// Queries `queries` of one head.
pub(super) fn run<C: Cell>(
    job: &Job<'_, C::Number>,
    batch: usize,
    head: usize,
    queries: Range<usize>,
    scratch: &mut [f32],
) {
    let item = Item { job, batch, head, queries, at: job.starts(batch, head) };
    let item = &item;
    // SAFETY: lengths and strides were checked by `Attention::run`.
    unsafe {
        dispatch!(job.isa, <'a, V, C: Cell>(item: &'a Item<'a, C::Number>, scratch: &'a mut [f32]) {
            item_of::<C, V>(item, scratch)
        })
    }
}

struct Item<'a, T> {
    job: &'a Job<'a, T>,
    batch: usize,
    head: usize,
    queries: Range<usize>,
    at: Starts<T>,
}

/// `M` rows of scores: keys from `keys` on times a block of transposed queries.
struct Scores {
    keys: *const f32,
    stride: usize,
    queries: *const f32,
    size: usize,
    to: *mut f32,
    scale: f32,
    /// One number a key is added; null for none.
    add_rows: *const f32,
    /// What is in `to` is added.
    add: bool,
    /// Queries below this number do not see the first key; each next key hides from one more.
    hidden: f32,
    /// The largest score of each query so far.
    largest: *mut f32,
}

/// `M` rows of the transposed output: values times probabilities.
struct Sums {
    values: *const f32,
    stride: usize,
    keys: usize,
    shares: *const f32,
    to: *mut f32,
    /// Each column of what is there is scaled and added; null when there is nothing yet.
    factors: *const f32,
}

/// `M` keys with `N` vectors of queries.
struct ScoresTile<C, const M: usize, const N: usize>(PhantomData<C>);
/// `M` values with `N` vectors of queries.
struct SumsTile<C, const M: usize, const N: usize>(PhantomData<C>);

impl<C: Cell, const M: usize, const N: usize> Kernel for ScoresTile<C, M, N> {
    type Args<'a> = &'a Scores;
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Simd>(t: &Scores) {
        // SAFETY: the caller gives a tile inside of its data.
        unsafe { scores_tile::<C, V, M, N>(t) }
    }
}

impl<C: Cell, const M: usize, const N: usize> Kernel for SumsTile<C, M, N> {
    type Args<'a> = &'a Sums;
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Simd>(t: &Sums) {
        // SAFETY: the caller gives a tile inside of its data.
        unsafe { sums_tile::<C, V, M, N>(t) }
    }
}

/// The tiles of a level by their height, less one: for one vector of queries, then for two.
struct Tiles<C, V>(PhantomData<(C, V)>);

macro_rules! tiles {
    ($tile:ident: $($m:literal)*) => { [&[$(V::call::<$tile<C, $m, 1>>),*], &[$(V::call::<$tile<C, $m, 2>>),*]] };
}

impl<C: Cell, V: Simd> Tiles<C, V> {
    /// Pairs without an instruction for them are no faster than floats in any tile.
    const TALL: bool = V::REGISTERS >= 32 && (C::COUNT == 1 || !C::EVERYWHERE);
    const SCORES: [&[Entry<Scores>]; 2] = match Self::TALL {
        true => tiles!(ScoresTile: 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
        false => tiles!(ScoresTile: 1 2 3 4 5 6),
    };
    const SUMS: [&[Entry<Sums>]; 2] = match Self::TALL {
        true => tiles!(SumsTile: 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
        false => tiles!(SumsTile: 1 2 3 4 5 6),
    };
}

/// Rows of an operand, three pointers five rows apart: so few registers hold them all.
#[derive(Clone, Copy)]
struct Rows {
    base: [*const f32; 3],
    stride: usize,
}

impl Rows {
    #[inline(always)]
    fn new(from: *const f32, stride: usize) -> Rows {
        let mut base = [from, from.wrapping_add(5 * stride), from.wrapping_add(10 * stride)];
        #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
        {
            let [a, b, c] = &mut base;
            // SAFETY: no instruction at all; the compiler only forgets how the pointers are related.
            #[allow(clippy::pointers_in_nomem_asm_block)]
            unsafe {
                std::arch::asm!(
                    "/* {0} {1} {2} */",
                    inout(reg) * a,
                    inout(reg) * b,
                    inout(reg) * c,
                    options(pure, nomem, nostack, preserves_flags)
                );
            }
        }
        Rows { base, stride }
    }
}

#[inline(always)]
unsafe fn scores_tile<C: Cell, V: Simd, const M: usize, const N: usize>(t: &Scores) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut acc = [[V::splat(0.0); N]; TALL];
        let rows = Rows::new(t.keys, t.stride);
        let mut queries = t.queries;
        for k in 0..t.size {
            let q: [V; N] = V::load_many(queries);
            macro_rules! row {
                ($($i:literal)*) => {$(
                    if const { $i < M } {
                        let x = V::splat(*rows.base[$i / 5].wrapping_add(($i % 5) * rows.stride + k));
                        for j in 0..N {
                            acc[$i][j] = C::multiply(x, q[j], acc[$i][j]);
                        }
                    }
                )*};
            }
            row!(0 1 2 3 4 5 6 7 8 9 10 11 12 13);
            queries = queries.add(N * V::N);
        }
        let scale = V::splat(t.scale);
        let mut largest: [V; N] = V::load_many(t.largest);
        for i in 0..M {
            for j in 0..N {
                let to = t.to.add((i * N + j) * V::N);
                let plus = match (t.add, t.add_rows.is_null()) {
                    (true, _) => V::load(to),
                    (_, false) => V::splat(*t.add_rows.add(i)),
                    _ => V::splat(0.0),
                };
                let mut s = acc[i][j].mul_add(scale, plus);
                if t.hidden + i as f32 > 0.0 {
                    let lanes = V::load(LANES.as_ptr().add(j * V::N));
                    s = V::select(lanes.lt(V::splat(t.hidden + i as f32)), V::splat(f32::NEG_INFINITY), s);
                }
                largest[j] = s.max(largest[j]);
                s.store(to);
            }
        }
        for j in 0..N {
            largest[j].store(t.largest.add(j * V::N));
        }
    }
}

/// The number of each lane.
static LANES: [f32; WIDTH] = {
    let mut lanes = [0.0; WIDTH];
    let mut i = 0;
    while i < WIDTH {
        lanes[i] = i as f32;
        i += 1;
    }
    lanes
};

#[inline(always)]
unsafe fn sums_tile<C: Cell, V: Simd, const M: usize, const N: usize>(t: &Sums) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut acc = [[V::splat(0.0); N]; M];
        let (mut values, mut shares) = (t.values, t.shares);
        for _ in 0..t.keys {
            let p: [V; N] = V::load_many(shares);
            for i in 0..M {
                let x = V::splat(*values.add(i));
                for j in 0..N {
                    acc[i][j] = C::multiply(x, p[j], acc[i][j]);
                }
            }
            values = values.wrapping_add(t.stride);
            shares = shares.add(N * V::N);
        }
        if t.factors.is_null() {
            for i in 0..M {
                for j in 0..N {
                    acc[i][j].store(t.to.add((i * N + j) * V::N));
                }
            }
            return;
        }
        let factors: [V; N] = V::load_many(t.factors);
        for i in 0..M {
            for j in 0..N {
                let to = t.to.add((i * N + j) * V::N);
                V::load(to).mul_add(factors[j], acc[i][j]).store(to);
            }
        }
    }
}

/// What an item remembers of one block of queries.
struct State<'a> {
    first: usize,
    /// Queries that are there, and vectors that hold them.
    queries: usize,
    vectors: usize,
    transposed: &'a mut [f32],
    sums: &'a mut [f32],
    largest: &'a mut [f32],
    total: &'a mut [f32],
    started: bool,
}

#[inline(always)]
unsafe fn item_of<C: Cell, V: Simd>(item: &Item<'_, C::Number>, scratch: &mut [f32]) {
    if const { !(C::EVERYWHERE || V::BRAINS) } {
        unreachable!("no machine of the level has the instructions");
    }
    let (job, p) = (item.job, item.job.p);
    let width = 2 * V::N;
    let mut pieces = Pieces(scratch);
    let (scores, mask) = (pieces.take(BLOCK * WIDTH), pieces.take(BLOCK));
    let (new_largest, factors) = (pieces.take(WIDTH), pieces.take(WIDTH));
    let (copied_keys, copied_values) = (pieces.take(BLOCK * p.head_size), pieces.take(BLOCK * p.value_size));
    let copied_queries = pieces.take(WIDTH * p.head_size);
    let mut states: [Option<State>; GROUP] = [const { None }; GROUP];
    let count = item.queries.len().div_ceil(width);
    for (i, state) in states.iter_mut().take(count).enumerate() {
        let first = item.queries.start + i * width;
        let queries = width.min(item.queries.end - first);
        let state = state.insert(State {
            first,
            queries,
            vectors: queries.div_ceil(V::N),
            transposed: pieces.take(p.head_size * WIDTH),
            sums: pieces.take(p.value_size * WIDTH),
            largest: pieces.take(WIDTH),
            total: pieces.take(WIDTH),
            started: false,
        });
        // SAFETY: the caller's promise.
        unsafe { begin::<C, V>(item, state, copied_queries) };
    }
    let keys = job.visible(item.queries.end - 1);
    let blocks = keys.div_ceil(BLOCK);
    for block in 0..blocks {
        let keys = part_of(keys, blocks, block);
        let by_row = job.masked() && p.mask[2] == 0;
        if by_row {
            job.mask_row(item.batch, item.head, 0, keys.start, &mut mask[..keys.len()]);
        }
        let copies = [&mut *copied_keys, &mut *copied_values];
        // SAFETY: the keys are there.
        let from = unsafe { KeysValues::of::<C, V>(item, keys.clone(), count > 1, copies) };
        for state in states.iter_mut().flatten() {
            let seen = job.visible(state.first + state.queries - 1).min(keys.end);
            if seen <= keys.start {
                continue;
            }
            let keys = keys.start..seen;
            let rows = if by_row { mask.as_ptr() } else { std::ptr::null() };
            // SAFETY: the caller's promise; the pieces are as large as `scratch_floats` says.
            unsafe {
                add_scores::<C, V>(item, state, keys.clone(), from.keys, rows, scores, new_largest);
                exp_scores::<C, V>(state, keys.len(), scores, new_largest, factors);
                add_values::<C, V>(item, state, keys.len(), from.values, scores, factors);
            }
        }
    }
    for state in states.iter_mut().flatten() {
        // SAFETY: the caller's promise.
        unsafe { finish::<C, V>(item, state) };
    }
}

/// Transposes the cells of the queries.
#[inline(always)]
unsafe fn begin<C: Cell, V: Simd>(item: &Item<'_, C::Number>, s: &mut State, copy: &mut [f32]) {
    let (job, p) = (item.job, item.job.p);
    let row = s.vectors * V::N;
    let from = item.at.q.wrapping_add(s.first * p.q[2]);
    let (from, stride, cells): (*const f32, _, _) = match const { C::COUNT == 1 && !C::WIDENED } {
        true => (from.cast(), p.q[2], p.head_size),
        false => {
            // SAFETY: these queries are there, and `copy` has room for them.
            let cells = unsafe { copy_rows::<C, V>(from, p.q[2], p.head_size, s.queries, copy) };
            (copy.as_ptr(), cells, cells)
        }
    };
    for vector in 0..s.vectors {
        let first = vector * V::N;
        for at in (0..cells).step_by(V::N) {
            // SAFETY: queries beyond the last are not read, nor cells beyond the head's size.
            unsafe {
                V::transpose(Block {
                    from: from.wrapping_add(first * stride + at),
                    from_stride: stride,
                    to: s.transposed.as_mut_ptr().add(at * row + first),
                    to_stride: row,
                    rows: (s.queries - first).min(V::N),
                    width: (cells - at).min(V::N),
                    to_width: V::N,
                });
            }
        }
    }
    for i in 0..row {
        let sink = job.sink(item.batch, item.head, s.first + i.min(s.queries - 1));
        (s.largest[i], s.total[i]) = super::start(sink);
    }
}

#[inline(always)]
unsafe fn add_scores<C: Cell, V: Simd>(
    item: &Item<'_, C::Number>,
    s: &State,
    keys: Range<usize>,
    (from, stride): (*const f32, usize),
    mask_rows: *const f32,
    scores: &mut [f32],
    largest: &mut [f32],
) {
    let (job, p) = (item.job, item.job.p);
    let row = s.vectors * V::N;
    let by_query = job.masked() && mask_rows.is_null();
    if by_query {
        // SAFETY: the scores hold every key of the block.
        unsafe { mask_block::<V, C::Number>(item, s, keys.clone(), scores) };
    }
    largest[..row].copy_from_slice(&s.largest[..row]);
    let kernels = Tiles::<C, V>::SCORES[s.vectors - 1];
    let parts = keys.len().div_ceil(kernels.len());
    for part in 0..parts {
        let rows = part_of(keys.len(), parts, part);
        let key = keys.start + rows.start;
        let hidden = match p.causal {
            Some(offset) => (key as isize - offset - s.first as isize) as f32,
            None => f32::NEG_INFINITY,
        };
        // SAFETY: the tile's keys, queries and scores are all there.
        unsafe {
            kernels[rows.len() - 1](&Scores {
                keys: from.wrapping_add(rows.start * stride),
                stride,
                queries: s.transposed.as_ptr(),
                size: p.head_size.div_ceil(C::COUNT),
                to: scores.as_mut_ptr().add(rows.start * row),
                scale: p.scale,
                add_rows: if mask_rows.is_null() { mask_rows } else { mask_rows.add(rows.start) },
                add: by_query,
                hidden,
                largest: largest.as_mut_ptr(),
            });
        }
    }
}

/// Puts what the mask adds into the scores.
#[inline(always)]
unsafe fn mask_block<V: Simd, T: Number>(item: &Item<'_, T>, s: &State, keys: Range<usize>, scores: &mut [f32]) {
    let row = s.vectors * V::N;
    let mut block = [0.0; 16 * 16];
    for vector in 0..s.vectors {
        let first = s.first + vector * V::N;
        let queries = (s.first + s.queries - first).min(V::N);
        for at in keys.clone().step_by(V::N) {
            let width = (keys.end - at).min(V::N);
            let (from, from_stride) = match item.job.mask_rows(item.batch, item.head, first, at) {
                Some(rows) => rows,
                None => {
                    for i in 0..queries {
                        item.job.mask_row(item.batch, item.head, first + i, at, &mut block[i * V::N..][..width]);
                    }
                    (block.as_ptr(), V::N)
                }
            };
            // SAFETY: there are `queries` rows of `width` floats; the scores have a row for every key.
            unsafe {
                V::transpose(Block {
                    from,
                    from_stride,
                    to: scores.as_mut_ptr().add((at - keys.start) * row + vector * V::N),
                    to_stride: row,
                    rows: queries,
                    width,
                    to_width: V::N,
                });
            }
        }
    }
}

/// Turns scores into shares, and those of two keys into one row of pairs, and moves the state on to the new largest scores.
#[inline(always)]
unsafe fn exp_scores<C: Cell, V: Simd>(
    s: &mut State,
    keys: usize,
    scores: &mut [f32],
    largest: &[f32],
    factors: &mut [f32],
) {
    let row = s.vectors * V::N;
    // SAFETY: every buffer holds `vectors` vectors, the scores that many for every key.
    unsafe {
        for vector in (0..row).step_by(V::N) {
            let new = V::load(largest.as_ptr().add(vector));
            // While nothing but hidden keys was seen, any finite number serves.
            let by = V::select(new.lt(V::splat(f32::MIN)), V::splat(0.0), new);
            let factor = exp_or_zero(V::load(s.largest.as_ptr().add(vector)) - by);
            let mut total = V::splat(0.0);
            let mut at = scores.as_mut_ptr().add(vector);
            if const { C::COUNT == 1 } {
                for _ in 0..keys {
                    let share = exp_or_zero(V::load(at) - by);
                    total = total + share;
                    share.store(at);
                    at = at.wrapping_add(row);
                }
            } else {
                // Pairs are written behind what is read.
                let mut to = at;
                for _ in 0..keys / 2 {
                    let (first, second) = (exp_or_zero(V::load(at) - by), exp_or_zero(V::load(at.add(row)) - by));
                    total = total + first + second;
                    C::pair(first, second).store(to);
                    (at, to) = (at.wrapping_add(2 * row), to.wrapping_add(row));
                }
                if !keys.is_multiple_of(2) {
                    let share = exp_or_zero(V::load(at) - by);
                    total = total + share;
                    C::pair(share, V::splat(0.0)).store(to);
                }
            }
            let before = s.total.as_mut_ptr().add(vector);
            V::load(before).mul_add(factor, total).store(before);
            new.store(s.largest.as_mut_ptr().add(vector));
            factor.store(factors.as_mut_ptr().add(vector));
        }
    }
}

#[inline(always)]
unsafe fn add_values<C: Cell, V: Simd>(
    item: &Item<'_, C::Number>,
    s: &mut State,
    keys: usize,
    (from, stride): (*const f32, usize),
    scores: &[f32],
    factors: &[f32],
) {
    let p = item.job.p;
    let row = s.vectors * V::N;
    let kernels = Tiles::<C, V>::SUMS[s.vectors - 1];
    let parts = p.value_size.div_ceil(kernels.len());
    for part in 0..parts {
        let rows = part_of(p.value_size, parts, part);
        // SAFETY: the tile's values, shares and sums are all there.
        unsafe {
            kernels[rows.len() - 1](&Sums {
                values: from.wrapping_add(rows.start),
                stride,
                keys: keys.div_ceil(C::COUNT),
                shares: scores.as_ptr(),
                to: s.sums.as_mut_ptr().add(rows.start * row),
                factors: if s.started { factors.as_ptr() } else { std::ptr::null() },
            });
        }
    }
    s.started = true;
}

/// Divides by the totals and writes the rows of the result.
#[inline(always)]
unsafe fn finish<C: Cell, V: Simd>(item: &Item<'_, C::Number>, s: &mut State) {
    let p = item.job.p;
    let row = s.vectors * V::N;
    if !s.started {
        s.sums[..p.value_size * row].fill(0.0);
    }
    let empty = p.kv_len == 0;
    // SAFETY: the sums hold `value_size` rows; only queries that are there are written.
    unsafe {
        for vector in (0..row).step_by(V::N) {
            let one = V::splat(1.0);
            let factor = if empty { one } else { one / V::load(s.total.as_ptr().add(vector)) };
            for i in 0..p.value_size {
                let at = s.sums.as_mut_ptr().add(i * row + vector);
                (V::load(at) * factor).store(at);
            }
            let first = s.first + vector;
            let queries = (s.first + s.queries - first).min(V::N);
            let out = item.at.out.wrapping_add(first * p.out[2]);
            let mut turned = [0.0; 16 * 16];
            for at in (0..p.value_size).step_by(V::N) {
                let left = (p.value_size - at).min(V::N);
                let floats = const { C::COUNT == 1 && !C::WIDENED };
                V::transpose(Block {
                    from: s.sums.as_ptr().add(at * row + vector),
                    from_stride: row,
                    to: if floats { out.wrapping_add(at).cast() } else { turned.as_mut_ptr() },
                    to_stride: if floats { p.out[2] } else { V::N },
                    rows: left,
                    width: queries,
                    to_width: left,
                });
                if !floats {
                    for query in 0..queries {
                        let (x, to) =
                            (V::load(turned.as_ptr().add(query * V::N)), out.wrapping_add(query * p.out[2] + at));
                        C::Number::store_first(x, to, V::first(left), left);
                    }
                }
            }
        }
    }
}
