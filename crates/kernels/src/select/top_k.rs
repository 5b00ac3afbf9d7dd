//! The k best elements along an axis, with their positions. Value and position become one rank, so all orders are total: equal
//! elements stand in the order of their positions, NaN behind all numbers. A row is read once; what cannot be among the
//! best any more is passed over a vector at a time.

use super::Number;
use super::best::{
    FEW, LANES, best_few, best_of_lanes, best_of_row, best_ranks, room_for, sort_by_position, sort_by_rank,
};
use crate::movement::{IndicesMut, product};
use crate::{Exec, SharedMut, part_of};

/// Order of the taken elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Best first.
    Value,
    /// By their place.
    Index,
}

/// Where positions are written, of either type.
#[derive(Clone, Copy)]
enum Positions<'a> {
    I32(SharedMut<'a, i32>),
    I64(SharedMut<'a, i64>),
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

impl TopK {
    /// The `k` greatest (`max`) or least elements along `axis`.
    pub fn new(dims: &[usize], axis: usize, k: usize, max: bool, sort: Sort) -> TopK {
        let n = dims[axis];
        assert!(k <= n, "k is {k}, axis {axis} has {n}");
        assert!(u32::try_from(n).is_ok(), "an axis of {n} is too long");
        TopK { outer: product(&dims[..axis]), n, inner: product(&dims[axis + 1..]), k, max, sort }
    }

    /// All elements of the axis in order.
    pub fn sorted(dims: &[usize], axis: usize, descending: bool) -> TopK {
        TopK::new(dims, axis, dims[axis], descending, Sort::Value)
    }

    /// Elements of each output.
    pub fn out_len(&self) -> usize {
        product(&[self.outer, self.k, self.inner])
    }

    /// Floats of scratch a thread needs for elements of this type.
    pub fn scratch_floats<T: Number>(&self) -> usize {
        let ranks = if self.k <= FEW { 0 } else { room_for(self.n, self.k) };
        ranks * size_of::<T::Rank>() / 4
    }

    pub fn run<T: Number>(&self, exec: &Exec<'_>, data: &[T], values: &mut [T], indices: IndicesMut<'_>) {
        (T::compiled().top_k)(self, exec, data, values, indices);
    }

    pub(super) fn run_any<T: Number>(&self, exec: &Exec<'_>, data: &[T], values: &mut [T], indices: IndicesMut<'_>) {
        assert_eq!(data.len(), product(&[self.outer, self.n, self.inner]), "elements of the data");
        assert_eq!(values.len(), self.out_len(), "values");
        assert_eq!(indices.len(), self.out_len(), "indices");
        if values.is_empty() {
            return;
        }
        let positions = match indices {
            IndicesMut::I32(list) => Positions::I32(SharedMut::new(list)),
            IndicesMut::I64(list) => Positions::I64(SharedMut::new(list)),
        };
        self.all(exec, data, SharedMut::new(values), positions);
    }

    fn all<T: Number>(&self, exec: &Exec<'_>, data: &[T], values: SharedMut<'_, T>, positions: Positions<'_>) {
        let TopK { outer, n, inner, k, max, sort } = *self;
        let isa = exec.isa;
        let share = |things: usize| {
            let enough = data.len() < 1 << 14 || exec.threads() == 1;
            if enough { 1 } else { things.min(exec.threads() * 8) }
        };
        // Writes the element at `position` of row (o, i) as the one of this number.
        let put = |o: usize, i: usize, number: usize, position: usize| {
            let (to, from) = ((o * k + number) * inner + i, (o * n + position) * inner + i);
            // SAFETY: one element, which belongs to a row that one chunk has.
            unsafe {
                values.part(to..to + 1)[0] = data[from];
                match positions {
                    Positions::I32(list) => list.part(to..to + 1)[0] = position as i32,
                    Positions::I64(list) => list.part(to..to + 1)[0] = position as i64,
                }
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
            let mut few = [<T::Rank as bytemuck::Zeroable>::zeroed(); FEW];
            let mut scratch = exec.scratch.of(thread);
            let floats = self.scratch_floats::<T>();
            let many: &mut [T::Rank] = bytemuck::cast_slice_mut(&mut scratch[..floats]);
            for row in part_of(outer * inner, chunks, c) {
                let (o, i) = (row / inner, row % inner);
                let row = (&data[o * n * inner + i..], inner, n);
                let ranks = if k <= FEW { &mut few[..k] } else { &mut many[..] };
                if k <= FEW {
                    best_few(isa, row, max, ranks);
                } else {
                    best_ranks(isa, row, k, max, None, ranks);
                }
                let ranks = &mut ranks[..k];
                match sort {
                    Sort::Value if k <= FEW => {}
                    Sort::Value => sort_by_rank(ranks),
                    Sort::Index => sort_by_position(ranks),
                }
                ranks.iter().enumerate().for_each(|(number, &r)| put(o, i, number, T::rank_position(r) as usize));
            }
        });
    }
}
