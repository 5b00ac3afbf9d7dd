//! Attention of many queries. Queries lie across the lanes: `S^T = K Q^T` has a key a row, the softmax runs down the
//! columns, and `O^T = V^T P^T` takes that same memory as its right side. Only the queries and the result are transposed.

use super::{BLOCK, Job, Pieces, Starts, WIDTH, lines};
use crate::part_of;
use crate::simd::{Block, Entry, Kernel, Simd, dispatch};
use crate::vmath::functions::exp_or_zero;
use std::ops::Range;

/// Blocks of queries of one item, which share the copies of keys and values.
pub(super) const GROUP: usize = 4;
/// Rows of the largest tile.
const TALL: usize = 14;

pub(super) fn scratch_floats(p: &super::AttentionParams) -> usize {
    let states = GROUP * (lines(p.head_size * WIDTH) + lines(p.value_size * WIDTH) + 2 * WIDTH);
    let copies = lines(BLOCK * p.head_size) + lines(BLOCK * p.value_size);
    states + lines(BLOCK * WIDTH) + 2 * WIDTH + lines(BLOCK) + copies
}

/// Keys and values of a block: where they lie, and floats from one to the next.
#[derive(Clone, Copy)]
struct KeysValues {
    keys: (*const f32, usize),
    values: (*const f32, usize),
}

impl KeysValues {
    /// Where they are; or copied, when several blocks of queries read them and they lie far apart: rows of other heads between
    /// them make them share few lines of the first-level cache.
    #[inline(always)]
    unsafe fn of(item: &Item, keys: Range<usize>, several: bool, copies: [&mut [f32]; 2]) -> KeysValues {
        let p = item.job.p;
        let [to_keys, to_values] = copies;
        let place = |from: *const f32, stride: usize, size: usize, to: &mut [f32]| {
            let from = from.wrapping_add(keys.start * stride);
            if !several || stride == size {
                return (from, stride);
            }
            for (i, row) in to.chunks_exact_mut(size.max(1)).take(keys.len()).enumerate() {
                // SAFETY: the row is one of the operand's, whose length was checked.
                row.copy_from_slice(unsafe { std::slice::from_raw_parts(from.wrapping_add(i * stride), size) });
            }
            (to.as_ptr(), size)
        };
        KeysValues {
            keys: place(item.at.k, p.k[2], p.head_size, to_keys),
            values: place(item.at.v, p.v[2], p.value_size, to_values),
        }
    }
}

/// Queries `queries` of one head.
pub(super) fn run(job: &Job, batch: usize, head: usize, queries: Range<usize>, scratch: &mut [f32]) {
    let item = Item { job, batch, head, queries, at: job.starts(batch, head) };
    let item = &item;
    // SAFETY: lengths and strides were checked by `Attention::run`.
    unsafe { dispatch!(job.isa, <'a, V>(item: &'a Item<'a>, scratch: &'a mut [f32]) { item_of::<V>(item, scratch) }) }
}

struct Item<'a> {
    job: &'a Job<'a>,
    batch: usize,
    head: usize,
    queries: Range<usize>,
    at: Starts,
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
    /// Simd below this number do not see the first key; each next key hides from one more.
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
struct ScoresTile<const M: usize, const N: usize>;
/// `M` values with `N` vectors of queries.
struct SumsTile<const M: usize, const N: usize>;

impl<const M: usize, const N: usize> Kernel for ScoresTile<M, N> {
    type Args<'a> = &'a Scores;
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Simd>(t: &Scores) {
        // SAFETY: the caller gives a tile inside of its data.
        unsafe { scores_tile::<V, M, N>(t) }
    }
}

impl<const M: usize, const N: usize> Kernel for SumsTile<M, N> {
    type Args<'a> = &'a Sums;
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Simd>(t: &Sums) {
        // SAFETY: the caller gives a tile inside of its data.
        unsafe { sums_tile::<V, M, N>(t) }
    }
}

/// The tiles of a level by their height, less one: for one vector of queries, then for two.
struct Tiles<V>(std::marker::PhantomData<V>);

macro_rules! tiles {
    ($tile:ident: $($m:literal)*) => { [&[$(V::call::<$tile<$m, 1>>),*], &[$(V::call::<$tile<$m, 2>>),*]] };
}

impl<V: Simd> Tiles<V> {
    const SCORES: [&[Entry<Scores>]; 2] = match V::REGISTERS >= 32 {
        true => tiles!(ScoresTile: 1 2 3 4 5 6 7 8 9 10 11 12 13 14),
        false => tiles!(ScoresTile: 1 2 3 4 5 6),
    };
    const SUMS: [&[Entry<Sums>]; 2] = match V::REGISTERS >= 32 {
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
unsafe fn scores_tile<V: Simd, const M: usize, const N: usize>(t: &Scores) {
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
                            acc[$i][j] = x.mul_add(q[j], acc[$i][j]);
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
unsafe fn sums_tile<V: Simd, const M: usize, const N: usize>(t: &Sums) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut acc = [[V::splat(0.0); N]; M];
        let (mut values, mut shares) = (t.values, t.shares);
        for _ in 0..t.keys {
            let p: [V; N] = V::load_many(shares);
            for i in 0..M {
                let x = V::splat(*values.add(i));
                for j in 0..N {
                    acc[i][j] = x.mul_add(p[j], acc[i][j]);
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
unsafe fn item_of<V: Simd>(item: &Item, scratch: &mut [f32]) {
    let (job, p) = (item.job, item.job.p);
    let width = 2 * V::N;
    let mut pieces = Pieces(scratch);
    let (scores, mask) = (pieces.take(BLOCK * WIDTH), pieces.take(BLOCK));
    let (new_largest, factors) = (pieces.take(WIDTH), pieces.take(WIDTH));
    let (copied_keys, copied_values) = (pieces.take(BLOCK * p.head_size), pieces.take(BLOCK * p.value_size));
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
        unsafe { begin::<V>(item, state) };
    }
    let keys = job.visible(item.queries.end - 1);
    let blocks = keys.div_ceil(BLOCK);
    for block in 0..blocks {
        let keys = part_of(keys, blocks, block);
        let by_row = job.masked() && p.mask[2] == 0;
        if by_row {
            job.mask_row(item.batch, item.head, 0, keys.start, &mut mask[..keys.len()]);
        }
        // SAFETY: the keys are there.
        let from = unsafe { KeysValues::of(item, keys.clone(), count > 1, [&mut *copied_keys, &mut *copied_values]) };
        for state in states.iter_mut().flatten() {
            let seen = job.visible(state.first + state.queries - 1).min(keys.end);
            if seen <= keys.start {
                continue;
            }
            let keys = keys.start..seen;
            let rows = if by_row { mask.as_ptr() } else { std::ptr::null() };
            // SAFETY: the caller's promise; the pieces are as large as `scratch_floats` says.
            unsafe {
                add_scores::<V>(item, state, keys.clone(), from.keys, rows, scores, new_largest);
                exp_scores::<V>(state, keys.len(), scores, new_largest, factors);
                add_values::<V>(item, state, keys.len(), from.values, scores, factors);
            }
        }
    }
    for state in states.iter_mut().flatten() {
        // SAFETY: the caller's promise.
        unsafe { finish::<V>(item, state) };
    }
}

/// Transposes the queries.
#[inline(always)]
unsafe fn begin<V: Simd>(item: &Item, s: &mut State) {
    let (job, p) = (item.job, item.job.p);
    let row = s.vectors * V::N;
    for vector in 0..s.vectors {
        let first = s.first + vector * V::N;
        for at in (0..p.head_size).step_by(V::N) {
            // SAFETY: queries beyond the last are not read, nor floats beyond the head's size.
            unsafe {
                V::transpose(Block {
                    from: item.at.q.wrapping_add(first * p.q[2] + at),
                    from_stride: p.q[2],
                    to: s.transposed.as_mut_ptr().add(at * row + vector * V::N),
                    to_stride: row,
                    rows: (s.first + s.queries - first).min(V::N),
                    width: (p.head_size - at).min(V::N),
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
unsafe fn add_scores<V: Simd>(
    item: &Item,
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
        unsafe { mask_block::<V>(item, s, keys.clone(), scores) };
    }
    largest[..row].copy_from_slice(&s.largest[..row]);
    let kernels = Tiles::<V>::SCORES[s.vectors - 1];
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
                size: p.head_size,
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
unsafe fn mask_block<V: Simd>(item: &Item, s: &State, keys: Range<usize>, scores: &mut [f32]) {
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

/// Turns scores into shares and moves the state on to the new largest scores.
#[inline(always)]
unsafe fn exp_scores<V: Simd>(s: &mut State, keys: usize, scores: &mut [f32], largest: &[f32], factors: &mut [f32]) {
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
            for _ in 0..keys {
                let share = exp_or_zero(V::load(at) - by);
                total = total + share;
                share.store(at);
                at = at.wrapping_add(row);
            }
            let before = s.total.as_mut_ptr().add(vector);
            V::load(before).mul_add(factor, total).store(before);
            new.store(s.largest.as_mut_ptr().add(vector));
            factor.store(factors.as_mut_ptr().add(vector));
        }
    }
}

#[inline(always)]
unsafe fn add_values<V: Simd>(
    item: &Item,
    s: &mut State,
    keys: usize,
    (from, stride): (*const f32, usize),
    scores: &[f32],
    factors: &[f32],
) {
    let p = item.job.p;
    let row = s.vectors * V::N;
    let kernels = Tiles::<V>::SUMS[s.vectors - 1];
    let parts = p.value_size.div_ceil(kernels.len());
    for part in 0..parts {
        let rows = part_of(p.value_size, parts, part);
        // SAFETY: the tile's values, shares and sums are all there.
        unsafe {
            kernels[rows.len() - 1](&Sums {
                values: from.wrapping_add(rows.start),
                stride,
                keys,
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
unsafe fn finish<V: Simd>(item: &Item, s: &mut State) {
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
            for at in (0..p.value_size).step_by(V::N) {
                V::transpose(Block {
                    from: s.sums.as_ptr().add(at * row + vector),
                    from_stride: row,
                    to: item.at.out.wrapping_add(first * p.out[2] + at),
                    to_stride: p.out[2],
                    rows: (p.value_size - at).min(V::N),
                    width: (s.first + s.queries - first).min(V::N),
                    to_width: (p.value_size - at).min(V::N),
                });
            }
        }
    }
}
