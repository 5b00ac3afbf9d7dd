//! Attention of few queries: each key and value is read once, as it lies, for a handful of queries whose numbers stay in
//! registers. Queries of all heads that share keys count together.

use super::{BLOCK, Job, Pieces, Starts, lines};
use crate::simd::{Number, Simd, dispatch};
use crate::vmath::functions::exp_or_zero;
use std::ops::Range;

/// Queries of one item at most.
pub(super) const ROWS: usize = 32;
/// Queries that share one read at most.
const MANY: usize = 4;
/// Keys, and vectors of values, that are worked on at once.
const KEYS: usize = 4;

pub(super) fn scratch_floats(p: &super::AttentionParams) -> usize {
    MANY * lines(BLOCK + 16) + lines(BLOCK) + ROWS * lines(p.value_size + 16)
}

/// Rows `rows` of those left over: row `i` is query `wide + i % left` of head `i / left` among those that share keys.
pub(super) fn run<T: Number>(job: &Job<'_, T>, batch: usize, kv_head: usize, rows: Range<usize>, scratch: &mut [f32]) {
    let item = Item { job, batch, kv_head, rows };
    let item = &item;
    // SAFETY: lengths and strides were checked by `Attention::run`.
    unsafe {
        dispatch!(job.isa, <'a, V, T: Number>(item: &'a Item<'a, T>, scratch: &'a mut [f32]) {
            item_of::<V, T>(item, scratch)
        })
    }
}

struct Item<'a, T> {
    job: &'a Job<'a, T>,
    batch: usize,
    kv_head: usize,
    rows: Range<usize>,
}

impl<T: Number> Item<'_, T> {
    /// Head and query of a row.
    fn position(&self, row: usize) -> (usize, usize) {
        let left = self.job.p.q_len - self.job.split.wide;
        let row = self.rows.start + row;
        (self.kv_head * self.job.split.shared + row / left, self.job.split.wide + row % left)
    }
}

/// A block of keys and the rows that look at it.
struct Look<'a> {
    first: usize,
    keys: Range<usize>,
    /// Scores of each row, `stride` apart.
    scores: &'a mut [f32],
    stride: usize,
}

#[inline(always)]
unsafe fn item_of<V: Simd, T: Number>(item: &Item<'_, T>, scratch: &mut [f32]) {
    let (job, p) = (item.job, item.job.p);
    let mut pieces = Pieces(scratch);
    let stride = lines(BLOCK + 16);
    let (scores, mask) = (pieces.take(MANY * stride), pieces.take(BLOCK));
    let sums_stride = lines(p.value_size + 16);
    let sums = pieces.take(ROWS * sums_stride);
    let n = item.rows.len();
    sums[..n * sums_stride].fill(0.0);
    let (mut largest, mut total, mut factors) = ([0.0; ROWS], [0.0; ROWS], [0.0; ROWS]);
    let mut last = 0;
    for row in 0..n {
        let (head, query) = item.position(row);
        (largest[row], total[row]) = super::start(job.sink(item.batch, head, query));
        last = last.max(query);
    }
    let at = &job.starts(item.batch, item.kv_head * job.split.shared);
    let seen = job.visible(last);
    for from in (0..seen).step_by(BLOCK) {
        let keys = from..(from + BLOCK).min(seen);
        let many = if V::REGISTERS >= 32 { MANY } else { MANY / 2 };
        for first in (0..n).step_by(many) {
            let rows = many.min(n - first);
            let mut look = Look { first, keys: keys.clone(), scores, stride };
            // SAFETY: the caller's promise; the pieces are as large as `scratch_floats` says.
            unsafe {
                match rows {
                    1 => scores_of::<V, T, 1>(item, at, &mut look),
                    2 => scores_of::<V, T, 2>(item, at, &mut look),
                    3 => scores_of::<V, T, 3>(item, at, &mut look),
                    _ => scores_of::<V, T, 4>(item, at, &mut look),
                }
                for row in 0..rows {
                    let state = (&mut largest[first + row], &mut total[first + row]);
                    factors[first + row] = shares::<V, T>(item, &mut look, row, mask, state);
                }
                let sums = sums.as_mut_ptr().add(first * sums_stride);
                match rows {
                    1 => values::<V, T, 1>(item, at, &look, sums, sums_stride, &factors),
                    2 => values::<V, T, 2>(item, at, &look, sums, sums_stride, &factors),
                    3 => values::<V, T, 3>(item, at, &look, sums, sums_stride, &factors),
                    _ => values::<V, T, 4>(item, at, &look, sums, sums_stride, &factors),
                }
            }
        }
    }
    for row in 0..n {
        let (head, query) = item.position(row);
        let out = job.starts(item.batch, head).out.wrapping_add(query * p.out[2]);
        let factor = V::splat(if p.kv_len == 0 { 1.0 } else { 1.0 / total[row] });
        for i in (0..p.value_size).step_by(V::N) {
            let left = p.value_size - i;
            // SAFETY: a row of the output, which no other item writes; sums have room for whole vectors.
            unsafe {
                let x = V::load(sums.as_ptr().add(row * sums_stride + i)) * factor;
                T::store_first(x, out.wrapping_add(i), V::first(left), left.min(V::N));
            }
        }
    }
}

/// Products of `R` queries with the keys of a block.
#[inline(always)]
unsafe fn scores_of<V: Simd, T: Number, const R: usize>(item: &Item<'_, T>, at: &Starts<T>, look: &mut Look) {
    let (job, p) = (item.job, item.job.p);
    let queries: [*const T; R] = std::array::from_fn(|row| {
        let (head, query) = item.position(look.first + row);
        job.starts(item.batch, head).q.wrapping_add(query * p.q[2])
    });
    let n = look.keys.len();
    // SAFETY: keys beyond the block repeat its last one; scores have room for them.
    unsafe {
        let start = at.k.wrapping_add(look.keys.start * p.k[2]);
        for key in (0..n).step_by(KEYS) {
            let keys: [*const T; KEYS] = std::array::from_fn(|i| start.wrapping_add((key + i).min(n - 1) * p.k[2]));
            let mut acc = [[V::splat(0.0); KEYS]; R];
            let mut d = 0;
            while d < p.head_size {
                let left = p.head_size - d;
                let mut k = [V::splat(0.0); KEYS];
                for i in 0..KEYS {
                    let from = keys[i].wrapping_add(d);
                    k[i] = if left >= V::N { T::load(from) } else { T::load_first(from, V::first(left), left) };
                }
                for row in 0..R {
                    let from = queries[row].wrapping_add(d);
                    let q: V = if left >= V::N { T::load(from) } else { T::load_first(from, V::first(left), left) };
                    for i in 0..KEYS {
                        acc[row][i] = k[i].mul_add(q, acc[row][i]);
                    }
                }
                d += V::N;
            }
            for row in 0..R {
                let four = V::reduce_add4(acc[row]);
                look.scores.as_mut_ptr().add(row * look.stride + key).cast::<[f32; 4]>().write_unaligned(four);
            }
        }
    }
}

/// Turns the scores of a row into shares; gives the factor of what was added up before.
#[inline(always)]
unsafe fn shares<V: Simd, T: Number>(
    item: &Item<'_, T>,
    look: &mut Look,
    row: usize,
    mask: &mut [f32],
    (largest, total): (&mut f32, &mut f32),
) -> f32 {
    let (job, p) = (item.job, item.job.p);
    let n = look.keys.len();
    let scores = &mut look.scores[row * look.stride..][..n.next_multiple_of(V::N)];
    let (head, query) = item.position(look.first + row);
    // SAFETY: the scores of a row are whole vectors, as is the mask.
    unsafe {
        let scale = V::splat(p.scale);
        if job.masked() {
            job.mask_row(item.batch, head, query, look.keys.start, &mut mask[..n]);
        }
        let seen = job.visible(query).clamp(look.keys.start, look.keys.end) - look.keys.start;
        let mut new = V::splat(*largest);
        for at in (0..n).step_by(V::N) {
            let to = scores.as_mut_ptr().add(at);
            let plus = if job.masked() { V::load(mask.as_ptr().add(at)) } else { V::splat(0.0) };
            V::load(to).mul_add(scale, plus).store(to);
            if at + V::N > seen {
                scores[seen.max(at)..at + V::N].fill(f32::NEG_INFINITY);
            }
            new = V::load(to).max(new);
        }
        let new = new.reduce_max();
        let by = if new == f32::NEG_INFINITY { 0.0 } else { new };
        let factor = exp_of::<V>(*largest - by);
        let mut sum = V::splat(0.0);
        for at in (0..n).step_by(V::N) {
            let to = scores.as_mut_ptr().add(at);
            let share = exp_or_zero(V::load(to) - V::splat(by));
            sum = sum + share;
            share.store(to);
        }
        *total = *total * factor + sum.reduce_add();
        *largest = new;
        factor
    }
}

#[inline(always)]
unsafe fn exp_of<V: Simd>(x: f32) -> f32 {
    let mut out = 0.0;
    // SAFETY: one float is written.
    unsafe { exp_or_zero(V::splat(x)).store_partial(&mut out, 1) };
    out
}

/// Adds the values of a block to the sums of `R` rows.
#[inline(always)]
unsafe fn values<V: Simd, T: Number, const R: usize>(
    item: &Item<'_, T>,
    at: &Starts<T>,
    look: &Look,
    sums: *mut f32,
    stride: usize,
    factors: &[f32; ROWS],
) {
    let p = item.job.p;
    let start = at.v.wrapping_add(look.keys.start * p.v[2]);
    let factors: [f32; R] = std::array::from_fn(|row| factors[look.first + row]);
    let mut d = 0;
    // SAFETY: values are read up to `value_size`; the sums of a row have room for whole vectors.
    unsafe {
        while d + 4 * V::N <= p.value_size {
            values_part::<V, T, R, 4, true>(p, start.wrapping_add(d), look, sums.add(d), stride, factors, V::N);
            d += 4 * V::N;
        }
        while d + V::N <= p.value_size {
            values_part::<V, T, R, 1, true>(p, start.wrapping_add(d), look, sums.add(d), stride, factors, V::N);
            d += V::N;
        }
        if d < p.value_size {
            let left = p.value_size - d;
            values_part::<V, T, R, 1, false>(p, start.wrapping_add(d), look, sums.add(d), stride, factors, left);
        }
    }
}

#[inline(always)]
unsafe fn values_part<V: Simd, T: Number, const R: usize, const C: usize, const WHOLE: bool>(
    p: &super::AttentionParams,
    mut value: *const T,
    look: &Look,
    sums: *mut f32,
    stride: usize,
    factors: [f32; R],
    width: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let mut acc = [[V::splat(0.0); C]; R];
        for row in 0..R {
            let factor = V::splat(factors[row]);
            for i in 0..C {
                acc[row][i] = V::load(sums.add(row * stride + i * V::N)) * factor;
            }
        }
        let shares = look.scores.as_ptr();
        for key in 0..look.keys.len() {
            let mut v = [V::splat(0.0); C];
            for i in 0..C {
                let from = value.wrapping_add(i * V::N);
                v[i] = if WHOLE { T::load(from) } else { T::load_first(from, V::first(width), width) };
            }
            for row in 0..R {
                let share = V::splat(*shares.add(row * look.stride + key));
                for i in 0..C {
                    acc[row][i] = v[i].mul_add(share, acc[row][i]);
                }
            }
            value = value.wrapping_add(p.v[2]);
        }
        for row in 0..R {
            for i in 0..C {
                acc[row][i].store(sums.add(row * stride + i * V::N));
            }
        }
    }
}
