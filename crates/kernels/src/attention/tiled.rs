//! Attention of many queries of bf16 in tile registers. A query is a row: of the left side as it lies, of the scores `Q K^T`, of
//! the shares, which take the place of its scores, and of the output `P V`. Keys are transposed and values woven once for all
//! queries of an item, as cells of pairs, and all is filled up with zeros to whole tiles.

use super::wide::weave_rows;
use super::{BLOCK, Job, Pieces, Starts, lines};
use crate::cast::Brain;
use crate::gemm::amx::{Plain, PlainUnit, SIDE};
use crate::simd::{Block, Brains, Number, Simd, dispatch};
use crate::vmath::functions::exp2_of_negative_roughly;
use std::ops::Range;

/// Queries of one block: two rows of tiles.
pub(super) const WIDTH: usize = 2 * SIDE;
/// Blocks of queries of one item, which share the copies of keys and values.
pub(super) const GROUP: usize = 8;
/// Fewer queries leave tiles too empty.
pub(super) const LEAST: usize = 8;

/// Numbers of a cell.
const PAIR: usize = 2;
/// Keys whose cells are whole tiles.
const GRAIN: usize = PAIR * SIDE;
/// Floats from row to row of keys and scores: rows of a tile then lie in different sets of the nearest cache.
const STRIDE: usize = BLOCK + SIDE;

/// Cells of a query or key, as whole tiles.
fn cells(p: &super::AttentionParams) -> usize {
    p.head_size.div_ceil(PAIR).next_multiple_of(SIDE)
}

/// Columns of the output, as whole tiles.
fn columns(p: &super::AttentionParams) -> usize {
    p.value_size.next_multiple_of(SIDE)
}

pub(super) fn scratch_floats(p: &super::AttentionParams) -> usize {
    let states = GROUP * WIDTH * (cells(p) + columns(p) + 2);
    let copies = cells(p) * STRIDE + BLOCK / PAIR * columns(p) + SIDE * cells(p);
    states + copies + WIDTH * STRIDE + lines(BLOCK)
}

/// Queries `queries` of one head.
pub(super) fn run<B: Brains>(
    job: &Job<'_, Brain>,
    unit: &PlainUnit,
    batch: usize,
    head: usize,
    queries: Range<usize>,
    scratch: &mut [f32],
) {
    let item = Item { job, unit, batch, head, queries, at: job.starts(batch, head) };
    let item = &item;
    // SAFETY: a unit is that of the level, lengths and strides were checked by `Attention::run_items`.
    unsafe {
        unit.around(|| {
            let scratch = &mut *scratch;
            dispatch!(job.isa, <'a, V, B: Brains>(item: &'a Item<'a>, scratch: &'a mut [f32]) {
                item_of::<B, V>(item, scratch)
            });
        });
    }
}

struct Item<'a> {
    job: &'a Job<'a, Brain>,
    unit: &'a PlainUnit,
    batch: usize,
    head: usize,
    queries: Range<usize>,
    at: Starts<Brain>,
}

/// What an item remembers of one block of queries.
struct State<'a> {
    queries: Range<usize>,
    cells: &'a mut [f32],
    sums: &'a mut [f32],
    /// The largest score of each query so far, as a power of two, and the sum of all shares.
    largest: &'a mut [f32],
    total: &'a mut [f32],
    started: bool,
}

impl State<'_> {
    /// Rows of whole tiles.
    fn rows(&self) -> usize {
        self.queries.len().next_multiple_of(SIDE)
    }
}

/// What is added to the scores of a block of keys, and where scores and shares stand.
struct Scores<'a> {
    keys: Range<usize>,
    rows: &'a mut [f32],
    mask: &'a mut [f32],
    /// Whether `mask` holds what is added for every query.
    by_key: bool,
}

#[inline(always)]
unsafe fn item_of<B: Brains, V: Simd>(item: &Item<'_>, scratch: &mut [f32]) {
    if const { !(B::ANY_LEVEL || V::BRAINS) } {
        unreachable!("no machine of the level has the instructions");
    }
    let (job, p) = (item.job, item.job.p);
    let (cells, columns) = (cells(p), columns(p));
    let mut pieces = Pieces(scratch);
    let (keys_turned, values) = (pieces.take(cells * STRIDE), pieces.take(BLOCK / PAIR * columns));
    let (copied, rows, mask) = (pieces.take(SIDE * cells), pieces.take(WIDTH * STRIDE), pieces.take(BLOCK));
    let mut states: [Option<State>; GROUP] = [const { None }; GROUP];
    for (i, state) in states.iter_mut().take(item.queries.len().div_ceil(WIDTH)).enumerate() {
        let first = item.queries.start + i * WIDTH;
        let state = state.insert(State {
            queries: first..(first + WIDTH).min(item.queries.end),
            cells: pieces.take(WIDTH * cells),
            sums: pieces.take(WIDTH * columns),
            largest: pieces.take(WIDTH),
            total: pieces.take(WIDTH),
            started: false,
        });
        // SAFETY: these queries are there.
        unsafe {
            copy_rows(
                item.at.q.wrapping_add(first * p.q[2]),
                p.q[2],
                p.head_size,
                state.queries.len(),
                state.cells,
                cells,
            )
        };
        for (i, query) in state.queries.clone().enumerate() {
            let (largest, total) = super::start(job.sink(item.batch, item.head, query));
            (state.largest[i], state.total[i]) = (largest * std::f32::consts::LOG2_E, total);
        }
    }
    let seen = job.visible(item.queries.end - 1);
    let step = seen.div_ceil(seen.div_ceil(BLOCK).max(1)).next_multiple_of(GRAIN);
    for first in (0..seen).step_by(step.max(1)) {
        let keys = first..(first + step).min(seen);
        // SAFETY: these keys are there; the copies have room for a block of them.
        unsafe {
            turn_keys::<V>(item, &keys, copied, keys_turned);
            let from = item.at.v.wrapping_add(first * p.v[2]);
            weave_rows::<Brain, V>(from, p.v[2], p.value_size, keys.len(), values, columns);
        }
        values[keys.len().div_ceil(PAIR) * columns..keys.len().next_multiple_of(GRAIN) / PAIR * columns].fill(0.0);
        let by_key = job.masked() && p.mask[2] == 0;
        if by_key {
            job.mask_row(item.batch, item.head, 0, first, &mut mask[..keys.len()]);
        }
        for state in states.iter_mut().flatten() {
            let last = job.visible(state.queries.end - 1).min(keys.end);
            if last <= first {
                continue;
            }
            let mut scores = Scores { keys: first..last, rows, mask, by_key };
            // SAFETY: the operands are as large as the products say, and filled up to whole tiles.
            unsafe {
                item.unit.product(&Plain {
                    a: state.cells.as_ptr(),
                    lda: cells,
                    b: keys_turned.as_ptr(),
                    ldb: STRIDE,
                    c: scores.rows.as_mut_ptr(),
                    ldc: STRIDE,
                    rows: state.rows(),
                    columns: scores.keys.len().next_multiple_of(SIDE),
                    cells,
                    add: false,
                });
                match job.masked() {
                    true => shares::<B, V, true>(item, state, &mut scores),
                    false => shares::<B, V, false>(item, state, &mut scores),
                }
                item.unit.product(&Plain {
                    a: scores.rows.as_ptr(),
                    lda: STRIDE,
                    b: values.as_ptr(),
                    ldb: columns,
                    c: state.sums.as_mut_ptr(),
                    ldc: columns,
                    rows: state.rows(),
                    columns,
                    cells: scores.keys.len().next_multiple_of(GRAIN) / PAIR,
                    add: state.started,
                });
            }
            state.started = true;
        }
    }
    for state in states.iter_mut().flatten() {
        // SAFETY: the caller's promise.
        unsafe { finish::<V>(item, state) };
    }
}

/// Copies rows of numbers to rows of `to_stride` cells, filled up with zeros.
#[inline(always)]
unsafe fn copy_rows(from: *const Brain, stride: usize, size: usize, rows: usize, to: &mut [f32], to_stride: usize) {
    for (i, row) in to.chunks_exact_mut(to_stride.max(1)).take(rows).enumerate() {
        let row: &mut [Brain] = bytemuck::cast_slice_mut(row);
        // SAFETY: the caller promises the rows; one of `to` is as long.
        unsafe { std::ptr::copy_nonoverlapping(from.wrapping_add(i * stride), row.as_mut_ptr(), size) };
        row[size..].fill(Brain(0));
    }
}

/// The cells of keys as columns, up to whole tiles of them.
#[inline(always)]
unsafe fn turn_keys<V: Simd>(item: &Item<'_>, keys: &Range<usize>, copied: &mut [f32], to: &mut [f32]) {
    let (p, cells) = (item.job.p, cells(item.job.p));
    for first in (0..keys.len()).step_by(SIDE) {
        let rows = (keys.len() - first).min(SIDE);
        let from = item.at.k.wrapping_add((keys.start + first) * p.k[2]);
        // SAFETY: the caller promises the keys, and room for a block of them.
        unsafe {
            copy_rows(from, p.k[2], p.head_size, rows, copied, cells);
            for row in (0..rows).step_by(V::N) {
                for at in (0..cells).step_by(V::N) {
                    V::transpose(Block {
                        from: copied.as_ptr().add(row * cells + at),
                        from_stride: cells,
                        to: to.as_mut_ptr().add(at * STRIDE + first + row),
                        to_stride: STRIDE,
                        rows: (rows - row).min(V::N),
                        width: V::N,
                        to_width: V::N,
                    });
                }
            }
        }
    }
}

/// Turns the scores of a block into shares of bf16, with zeros behind those that a query sees, and moves the state on to the new
/// largest scores.
#[inline(always)]
unsafe fn shares<B: Brains, V: Simd, const MASKED: bool>(item: &Item<'_>, s: &mut State, scores: &mut Scores<'_>) {
    let (job, p) = (item.job, item.job.p);
    let columns = columns(p);
    let log = V::splat(std::f32::consts::LOG2_E);
    let scale = V::splat(p.scale) * log;
    let hidden = V::splat(f32::NEG_INFINITY);
    let whole = scores.keys.len().next_multiple_of(GRAIN);
    for (i, query) in s.queries.clone().enumerate() {
        let seen = job.visible(query).clamp(scores.keys.start, scores.keys.end) - scores.keys.start;
        // SAFETY: there is a row of scores for each query of the block, up to whole tiles of keys; what is there at each key of the
        // block is added. Shares are half as long as scores, and written behind what is read.
        unsafe {
            let row = scores.rows.as_mut_ptr().add(i * STRIDE);
            let plus = match MASKED && seen > 0 {
                true => mask_of(item, query, scores, seen),
                false => std::ptr::null(),
            };
            let mut largest = V::splat(s.largest[i]);
            for at in (0..seen).step_by(V::N) {
                let left = (seen - at).min(V::N);
                let mut x = V::load(row.add(at)) * scale;
                if MASKED {
                    x = V::load_partial(plus.wrapping_add(at), left).mul_add(log, x);
                }
                if left < V::N {
                    // Behind the last score of a row there may be anything.
                    let x = V::select(V::first(left), x, hidden);
                    largest = x.max(largest);
                    x.store(row.add(at));
                    continue;
                }
                largest = x.max(largest);
                if MASKED {
                    x.store(row.add(at));
                }
            }
            let new = largest.reduce_max();
            // While nothing but hidden keys was seen, any finite number serves.
            let by = V::splat(if new < f32::MIN { 0.0 } else { new });
            let mut total = V::splat(0.0);
            let to = row.cast::<Brain>();
            for at in (0..seen).step_by(V::N) {
                let x = V::load(row.add(at));
                let x = match MASKED || seen - at < V::N {
                    true => x - by,
                    false => x.mul_add(scale, -by),
                };
                let share = exp2_of_negative_roughly(x);
                total = total + share;
                B::store(share, to.add(at));
            }
            for at in (seen.next_multiple_of(V::N)..whole).step_by(V::N) {
                B::store(V::splat(0.0), to.add(at));
            }
            let factor = exp2_of_negative_roughly(V::splat(s.largest[i]) - by);
            let total = V::splat(s.total[i]).mul_add(factor, V::splat(total.reduce_add()));
            total.store_partial(&mut s.total[i], 1);
            s.largest[i] = new;
            if s.started {
                for at in (0..columns).step_by(V::N) {
                    let at = s.sums.as_mut_ptr().add(i * columns + at);
                    (V::load(at) * factor).store(at);
                }
            }
        }
    }
}

/// What is added to the scores of a query.
#[inline(always)]
fn mask_of(item: &Item<'_>, query: usize, scores: &mut Scores<'_>, seen: usize) -> *const f32 {
    if !scores.by_key {
        if let Some((row, _)) = item.job.mask_rows(item.batch, item.head, query, scores.keys.start) {
            return row;
        }
        item.job.mask_row(item.batch, item.head, query, scores.keys.start, &mut scores.mask[..seen]);
    }
    scores.mask.as_ptr()
}

/// Divides by the totals and writes the rows of the result.
#[inline(always)]
unsafe fn finish<V: Simd>(item: &Item<'_>, s: &mut State) {
    let (p, columns) = (item.job.p, columns(item.job.p));
    if !s.started {
        s.sums.fill(0.0);
    }
    for (i, query) in s.queries.clone().enumerate() {
        let factor = V::splat(if p.kv_len == 0 { 1.0 } else { 1.0 / s.total[i] });
        let out = item.at.out.wrapping_add(query * p.out[2]);
        for at in (0..p.value_size).step_by(V::N) {
            let left = (p.value_size - at).min(V::N);
            // SAFETY: the caller's promise; rows of sums are filled up to whole tiles.
            unsafe {
                let x = V::load(s.sums.as_ptr().add(i * columns + at)) * factor;
                Brain::store_first(x, out.wrapping_add(at), V::first(left), left);
            }
        }
    }
}
