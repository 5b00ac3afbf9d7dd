//! Searches for the best of a row: one, a few in order, or many in any order. A rank is a value and its place in one, so
//! ranks differ and say all about the order. Elements that cannot be among the best any more are passed over a block at
//! a time.

use super::number::{Number, Rank};
use crate::Isa;

/// Elements that are looked at together.
const BLOCK: usize = 32;
/// Up to so many best are kept in order while a row is read.
pub(super) const FEW: usize = 16;
/// Neighbouring rows that are searched together for their single best.
pub(super) const LANES: usize = 64;

/// A function compiled for every level of instructions from one body of safe code.
macro_rules! for_levels {
    ($(#[$doc:meta])* $vis:vis fn $name:ident <$a:lifetime $(, $t:ident: $bound:path)?> ($($arg:ident: $ty:ty),* $(,)?) $(-> $out:ty)? { $body:path }) => {
        $(#[$doc])*
        $vis fn $name<$a $(, $t: $bound)?>(isa: Isa, $($arg: $ty),*) $(-> $out)? {
            // SAFETY: the body is safe code.
            unsafe { $crate::simd::dispatch!(isa, <$a, _S $(, $t: $bound)?>($($arg: $ty),*) $(-> $out)? { $body($($arg),*) }) }
        }
    };
}
pub(super) use for_levels;

/// How many ranks [`best_ranks`] holds while it looks for the best `k` of `n`: all, or enough that thinning them out is
/// rare.
pub(super) fn room_for(n: usize, k: usize) -> usize {
    n.min(k + (3 * k).max(8 * BLOCK))
}

/// Brings the `k` highest to the front, the least of them last. This and sorting know no element types and levels, so that
/// they are compiled for each kind of rank only.
#[inline(never)]
fn bring_highest<R: Rank>(ranks: &mut [R], k: usize) {
    ranks.select_nth_unstable_by(k - 1, |a, b| b.cmp(a));
}

/// The highest first.
#[inline(never)]
pub(super) fn sort_by_rank<R: Rank>(ranks: &mut [R]) {
    ranks.sort_unstable_by(|a, b| b.cmp(a));
}

#[inline(never)]
pub(super) fn sort_by_position<R: Rank>(ranks: &mut [R]) {
    ranks.sort_unstable_by_key(|r| r.position());
}

for_levels! {
    /// Brings the `k` highest ranks of a row, or all where it has fewer, to the front in any order, and says how many they
    /// are. `ranks` has the length that [`room_for`] says. With a `floor` only elements better than it count.
    pub(super) fn best_ranks<'a, T: Number>(
        row: (&'a [T], usize, usize),
        k: usize,
        max: bool,
        floor: Option<T>,
        ranks: &'a mut [T::Rank],
    ) -> usize { best_ranks_any }
}

// The row is its data, the distance of its elements and their number.
#[inline(always)]
fn best_ranks_any<T: Number>(
    (data, step, n): (&[T], usize, usize),
    k: usize,
    max: bool,
    floor: Option<T>,
    ranks: &mut [T::Rank],
) -> usize {
    let mut sieve = Sieve { max, least: floor };
    let (mut len, mut at) = (0, 0);
    while at < n {
        let end = (at + BLOCK).min(n);
        if len + (end - at) > ranks.len() {
            bring_highest(&mut ranks[..len], k);
            len = k;
            sieve.least = Some(data[T::rank_position(ranks[k - 1]) as usize * step]);
        }
        if sieve.least.is_none() {
            for l in 0..end - at {
                ranks[len + l] = data[(at + l) * step].rank(max, (at + l) as u32);
            }
            len += end - at;
        } else {
            let mut better = sieve.block(data, step, at, end);
            while better != 0 {
                let position = at + better.trailing_zeros() as usize;
                better &= better - 1;
                ranks[len] = data[position * step].rank(max, position as u32);
                len += 1;
            }
        }
        at = end;
    }
    if len > k {
        bring_highest(&mut ranks[..len], k);
        len = k;
    }
    len
}

for_levels! {
    /// The highest ranks of a row of at least as many elements, in order.
    pub(super) fn best_few<'a, T: Number>(row: (&'a [T], usize, usize), max: bool, ranks: &'a mut [T::Rank]) { best_few_any }
}

#[inline(always)]
fn best_few_any<T: Number>((data, step, n): (&[T], usize, usize), max: bool, ranks: &mut [T::Rank]) {
    let last = ranks.len() - 1;
    // Lower than any rank there is.
    ranks.fill(bytemuck::Zeroable::zeroed());
    let lowest = ranks[0];
    let mut sieve = Sieve { max, least: None };
    let mut at = 0;
    while at < n {
        let end = (at + BLOCK).min(n);
        let mut better = sieve.block(data, step, at, end);
        let any = better != 0;
        while better != 0 {
            let position = at + better.trailing_zeros() as usize;
            better &= better - 1;
            let rank = data[position * step].rank(max, position as u32);
            if rank > ranks[last] {
                let mut to = last;
                while to > 0 && ranks[to - 1] < rank {
                    ranks[to] = ranks[to - 1];
                    to -= 1;
                }
                ranks[to] = rank;
            }
        }
        if any && ranks[last] != lowest {
            sieve.least = Some(data[T::rank_position(ranks[last]) as usize * step]);
        }
        at = end;
    }
}

/// Tells which elements are better than the least that still counts. Of equal ones the earlier is better, so an element
/// that comes later must be truly greater.
struct Sieve<T> {
    max: bool,
    least: Option<T>,
}

impl<T: Number> Sieve<T> {
    /// A bit for each of the elements from `at` to `end`.
    #[inline(always)]
    fn block(&self, data: &[T], step: usize, at: usize, end: usize) -> u32 {
        let Some(least) = self.least else { return u32::MAX >> (BLOCK - (end - at)) };
        let least_is_nan = !is_number(least);
        let better = |x: T| if self.max { x > least } else { x < least } | (least_is_nan & is_number(x));
        if step == 1 && end - at == BLOCK {
            let block = &data[at..end];
            // Most blocks have none.
            let mut any = false;
            for l in 0..BLOCK {
                any |= better(block[l]);
            }
            let mut bits = 0;
            if any {
                for l in 0..BLOCK {
                    bits |= u32::from(better(block[l])) << l;
                }
            }
            return bits;
        }
        let mut bits = 0;
        for l in 0..end - at {
            bits |= u32::from(better(data[(at + l) * step])) << l;
        }
        bits
    }
}

for_levels! {
    /// Place of the best element.
    pub(super) fn best_of_row<'a, T: Number>(row: &'a [T], max: bool) -> usize { best_of_row_any }
}

#[inline(always)]
fn best_of_row_any<T: Number>(row: &[T], max: bool) -> usize {
    let Some(&first) = row.iter().find(|x| is_number(**x)) else { return 0 };
    let better = |x: T, than: T| if max { x > than } else { x < than };
    let mut best = [first; BLOCK];
    let blocks = row.chunks_exact(BLOCK);
    let rest = blocks.remainder();
    for block in blocks {
        for l in 0..BLOCK {
            best[l] = if better(block[l], best[l]) { block[l] } else { best[l] };
        }
    }
    // Halves meet until one is left.
    let mut halves = best;
    let mut half = BLOCK;
    while half > 1 {
        half /= 2;
        for l in 0..half {
            let (a, b) = (halves[l], halves[l + half]);
            halves[l] = if better(b, a) { b } else { a };
        }
    }
    let mut best = halves[0];
    for &x in rest {
        best = if better(x, best) { x } else { best };
    }
    for (number, block) in row.chunks(BLOCK).enumerate() {
        let mut any = false;
        for &x in block {
            any |= x == best;
        }
        if any {
            return number * BLOCK + block.iter().position(|&x| x == best).unwrap_or(0);
        }
    }
    0
}

for_levels! {
    /// Places of the best elements of neighbouring rows: element `position` of row `l` is `data[position * step + l]`.
    pub(super) fn best_of_lanes<'a, T: Number>(data: &'a [T], step: usize, n: usize, max: bool, best: &'a mut [u32]) { best_of_lanes_any }
}

#[inline(always)]
fn best_of_lanes_any<T: Number>(data: &[T], step: usize, n: usize, max: bool, best: &mut [u32]) {
    let lanes = best.len();
    let mut values = [T::zeroed(); LANES];
    values[..lanes].copy_from_slice(&data[..lanes]);
    best.fill(0);
    for position in 1..n {
        let row = &data[position * step..][..lanes];
        for ((value, best), &x) in values[..lanes].iter_mut().zip(best.iter_mut()).zip(row) {
            let better = if max { x > *value } else { x < *value } | (!is_number(*value) & is_number(x));
            *value = if better { x } else { *value };
            *best = if better { position as u32 } else { *best };
        }
    }
}

// Whether it is a number.
#[inline(always)]
#[allow(clippy::eq_op)]
fn is_number<T: Number>(x: T) -> bool {
    x == x
}
