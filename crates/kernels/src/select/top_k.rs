//! The k best elements along an axis, with their places. Value and place become one rank, so all orders are total: equal
//! elements stand in the order of their places, NaN behind all numbers. A row is read once; what cannot be among the
//! best any more is passed over a vector at a time.

use super::Number;
use crate::movement::IndicesMut;
use crate::movement::indices::Index;
use crate::{Exec, Isa, SharedMut, part_of};

/// Order of the taken elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Best first.
    Value,
    /// By their place.
    Index,
}

/// The best along an axis.
#[derive(Clone, Debug)]
pub struct TopK {
    outer: usize,
    n: usize,
    inner: usize,
    k: usize,
    max: bool,
    sort: Sort,
}

/// Elements that are looked at together.
const BLOCK: usize = 32;
/// Neighbouring rows that are searched together for their single best.
const LANES: usize = 64;

impl TopK {
    /// The `k` greatest (`max`) or least elements along `axis`.
    pub fn new(dims: &[usize], axis: usize, k: usize, max: bool, sort: Sort) -> TopK {
        let n = dims[axis];
        assert!(k <= n, "k is {k}, axis {axis} has {n}");
        assert!(u32::try_from(n).is_ok(), "an axis of {n} is too long");
        TopK { outer: dims[..axis].iter().product(), n, inner: dims[axis + 1..].iter().product(), k, max, sort }
    }

    /// All elements of the axis in order.
    pub fn sorted(dims: &[usize], axis: usize, descending: bool) -> TopK {
        TopK::new(dims, axis, dims[axis], descending, Sort::Value)
    }

    /// Elements of each output.
    pub fn out_len(&self) -> usize {
        self.outer * self.k * self.inner
    }

    /// Floats of scratch a thread needs for elements of this type.
    pub fn scratch_floats<T: Number>(&self) -> usize {
        self.candidates() * size_of::<T::Rank>() / 4
    }

    // Ranks held at once: all, or enough that thinning them out is rare.
    fn candidates(&self) -> usize {
        if self.k <= 1 { 0 } else { self.n.min((4 * self.k).max(self.k + 16 * BLOCK)) }
    }

    pub fn run<T: Number>(&self, exec: &Exec<'_>, data: &[T], values: &mut [T], indices: IndicesMut<'_>) {
        assert_eq!(data.len(), self.outer * self.n * self.inner, "elements of the data");
        assert_eq!(values.len(), self.out_len(), "values");
        assert_eq!(indices.len(), self.out_len(), "indices");
        if values.is_empty() {
            return;
        }
        let values = SharedMut::new(values);
        match indices {
            IndicesMut::I32(list) => self.all(exec, data, values, SharedMut::new(list)),
            IndicesMut::I64(list) => self.all(exec, data, values, SharedMut::new(list)),
        }
    }

    fn all<T: Number, I: Index>(
        &self,
        exec: &Exec<'_>,
        data: &[T],
        values: SharedMut<'_, T>,
        places: SharedMut<'_, I>,
    ) {
        let TopK { outer, n, inner, k, max, sort } = *self;
        let isa = exec.isa.here();
        let share = |things: usize| {
            let enough = data.len() < 1 << 14 || exec.threads() == 1;
            if enough { 1 } else { things.min(exec.threads() * 8) }
        };
        // Writes the element at `place` of row (o, i) as the one of this number.
        let put = |o: usize, i: usize, number: usize, place: usize| {
            let (to, from) = ((o * k + number) * inner + i, (o * n + place) * inner + i);
            // SAFETY: one element, which belongs to a row that one chunk has.
            unsafe {
                values.part(to..to + 1)[0] = data[from];
                places.part(to..to + 1)[0] = I::of(place);
            }
        };
        if k == 1 && inner > 1 {
            let blocks = inner.div_ceil(LANES);
            let chunks = share(outer * blocks);
            return exec.each(chunks, |c, _| {
                for block in part_of(outer * blocks, chunks, c) {
                    let (o, first) = (block / blocks, block % blocks * LANES);
                    let lanes = LANES.min(inner - first);
                    let mut best = [0u32; LANES];
                    best_of_lanes(isa, &data[o * n * inner + first..], inner, n, max, &mut best[..lanes]);
                    (0..lanes).for_each(|l| put(o, first + l, 0, best[l] as usize));
                }
            });
        }
        let chunks = share(outer * inner);
        exec.each(chunks, |c, thread| {
            if k == 1 {
                for o in part_of(outer, chunks, c) {
                    put(o, 0, 0, best_of_row(isa, &data[o * n..(o + 1) * n], max));
                }
                return;
            }
            let mut scratch = exec.scratch.of(thread);
            let floats = self.scratch_floats::<T>();
            let ranks: &mut [T::Rank] = bytemuck::cast_slice_mut(&mut scratch[..floats]);
            for row in part_of(outer * inner, chunks, c) {
                let (o, i) = (row / inner, row % inner);
                best_ranks(isa, &data[o * n * inner + i..], inner, n, k, max, ranks);
                let ranks = &mut ranks[..k];
                match sort {
                    Sort::Value => ranks.sort_unstable_by(|a, b| b.cmp(a)),
                    Sort::Index => ranks.sort_unstable_by_key(|&r| T::rank_place(r)),
                }
                ranks.iter().enumerate().for_each(|(number, &r)| put(o, i, number, T::rank_place(r) as usize));
            }
        });
    }
}

/// A function compiled for every level of instructions from one body.
macro_rules! for_levels {
    ($(#[$doc:meta])* fn $name:ident $(<$t:ident: Number>)? ($($arg:ident: $ty:ty),* $(,)?) $(-> $out:ty)? { $body:path }) => {
        $(#[$doc])*
        fn $name $(<$t: Number>)? (isa: Isa, $($arg: $ty),*) $(-> $out)? {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
            fn avx512 $(<$t: Number>)? ($($arg: $ty),*) $(-> $out)? {
                $body($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn avx2 $(<$t: Number>)? ($($arg: $ty),*) $(-> $out)? {
                $body($($arg),*)
            }
            match isa {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the machine has this level: callers pass it through `Isa::here`.
                Isa::Avx512 => unsafe { avx512($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                Isa::Avx2 => unsafe { avx2($($arg),*) },
                _ => $body($($arg),*),
            }
        }
    };
}
pub(super) use for_levels;

for_levels! {
    /// Brings the `k` highest ranks of a row to the front, in any order.
    fn best_ranks<T: Number>(data: &[T], step: usize, n: usize, k: usize, max: bool, ranks: &mut [T::Rank]) {
        best_ranks_any
    }
}

#[inline(always)]
fn best_ranks_any<T: Number>(data: &[T], step: usize, n: usize, k: usize, max: bool, ranks: &mut [T::Rank]) {
    let mut len = ranks.len().min(n);
    for (place, rank) in ranks[..len].iter_mut().enumerate() {
        *rank = data[place * step].rank(max, place as u32);
    }
    let mut at = len;
    loop {
        if len > k {
            ranks[..len].select_nth_unstable_by(k - 1, |a, b| b.cmp(a));
            len = k;
        }
        if at >= n {
            return;
        }
        // Later elements have later places, so an equal one is no better.
        let least = data[T::rank_place(ranks[k - 1]) as usize * step];
        let least_is_nan = !self_equal(least);
        let better = |x: T| if max { x > least } else { x < least } | (least_is_nan & self_equal(x));
        while at < n && len + BLOCK <= ranks.len() {
            let end = (at + BLOCK).min(n);
            if step == 1 && end - at == BLOCK && !data[at..end].iter().fold(false, |any, &x| any | better(x)) {
                at = end;
                continue;
            }
            for place in at..end {
                let x = data[place * step];
                if better(x) {
                    ranks[len] = x.rank(max, place as u32);
                    len += 1;
                }
            }
            at = end;
        }
    }
}

for_levels! {
    /// Place of the best element.
    fn best_of_row<T: Number>(row: &[T], max: bool) -> usize { best_of_row_any }
}

#[inline(always)]
fn best_of_row_any<T: Number>(row: &[T], max: bool) -> usize {
    let Some(&first) = row.iter().find(|x| self_equal(**x)) else { return 0 };
    let better = |x: T, than: T| if max { x > than } else { x < than };
    let mut best = [first; BLOCK];
    let blocks = row.chunks_exact(BLOCK);
    let rest = blocks.remainder();
    for block in blocks {
        for l in 0..BLOCK {
            best[l] = if better(block[l], best[l]) { block[l] } else { best[l] };
        }
    }
    let best = best.iter().chain(rest).fold(first, |best, &x| if better(x, best) { x } else { best });
    for (number, block) in row.chunks(BLOCK).enumerate() {
        if block.iter().fold(false, |any, &x| any | (x == best)) {
            return number * BLOCK + block.iter().position(|&x| x == best).unwrap_or(0);
        }
    }
    0
}

for_levels! {
    /// Places of the best elements of neighbouring rows: element `place` of row `l` is `data[place * step + l]`.
    fn best_of_lanes<T: Number>(data: &[T], step: usize, n: usize, max: bool, best: &mut [u32]) { best_of_lanes_any }
}

#[inline(always)]
fn best_of_lanes_any<T: Number>(data: &[T], step: usize, n: usize, max: bool, best: &mut [u32]) {
    let lanes = best.len();
    let mut values = [T::zeroed(); LANES];
    values[..lanes].copy_from_slice(&data[..lanes]);
    best.fill(0);
    for place in 1..n {
        let row = &data[place * step..][..lanes];
        for ((value, best), &x) in values[..lanes].iter_mut().zip(best.iter_mut()).zip(row) {
            let better = if max { x > *value } else { x < *value } | (!self_equal(*value) & self_equal(x));
            *value = if better { x } else { *value };
            *best = if better { place as u32 } else { *best };
        }
    }
}

// Whether it is a number.
#[inline(always)]
#[allow(clippy::eq_op)]
fn self_equal<T: Number>(x: T) -> bool {
    x == x
}
