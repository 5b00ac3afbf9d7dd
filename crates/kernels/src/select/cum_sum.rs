//! Running sums along an axis. Floats are summed in double precision, each sum rounded once; integers wrap.

use super::Number;
use super::best::for_levels;
use crate::movement::product;
use crate::{Exec, Isa, SharedMut, part_of};

/// Sum of all elements up to each one.
#[derive(Clone, Debug)]
pub struct CumSum {
    outer: usize,
    n: usize,
    inner: usize,
    exclusive: bool,
    reverse: bool,
}

/// Rows whose sums run side by side.
const LANES: usize = 16;

impl CumSum {
    /// `exclusive` leaves the element itself out, `reverse` runs from the end.
    pub fn new(dims: &[usize], axis: usize, exclusive: bool, reverse: bool) -> CumSum {
        CumSum { outer: product(&dims[..axis]), n: dims[axis], inner: product(&dims[axis + 1..]), exclusive, reverse }
    }

    pub fn run<T: Number>(&self, exec: &Exec<'_>, data: &[T], out: &mut [T]) {
        (T::compiled().cum_sum)(self, exec, data, out);
    }

    pub(super) fn run_any<T: Number>(&self, exec: &Exec<'_>, data: &[T], out: &mut [T]) {
        let CumSum { outer, n, inner, .. } = *self;
        assert_eq!(data.len(), product(&[outer, n, inner]), "elements of the data");
        assert_eq!(out.len(), data.len(), "elements of the output");
        if data.is_empty() {
            return;
        }
        // A block is some neighbouring rows: across the inner axes, or, where there are none, the outer ones.
        let (across, step, along, blocks_of) = if inner > 1 { (inner, 1, inner, outer) } else { (outer, n, 1, 1) };
        let blocks = across.div_ceil(LANES);
        let chunks = if data.len() < 1 << 14 || exec.threads() == 1 { 1 } else { blocks_of * blocks };
        let chunks = chunks.min(8 * exec.threads());
        let (isa, out) = (exec.isa, SharedMut::new(out));
        exec.each(chunks, |c, _| {
            for block in part_of(blocks_of * blocks, chunks, c) {
                let first = block % blocks * LANES;
                let lanes = LANES.min(across - first);
                let start = block / blocks * n * inner + first * step;
                if step == 1 && lanes == LANES {
                    columns(isa, data, &out, (start, n, along), (self.exclusive, self.reverse));
                } else {
                    // SAFETY: chunks have different blocks of rows.
                    unsafe { self.block(data, &out, start, step, along, lanes) };
                }
            }
        });
    }

    // Rows begin at `start + lane * step`; their elements are `along` apart.
    //
    // # Safety
    // Nobody else writes these rows.
    unsafe fn block<T: Number>(
        &self,
        data: &[T],
        out: &SharedMut<'_, T>,
        start: usize,
        step: usize,
        along: usize,
        lanes: usize,
    ) {
        let last = start + (lanes - 1) * step + (self.n - 1) * along;
        assert!(last < data.len() && last < out.len());
        let mut sums = [T::ZERO; LANES];
        for i in 0..self.n {
            let i = if self.reverse { self.n - 1 - i } else { i };
            let at = start + i * along;
            for (lane, sum) in sums[..lanes].iter_mut().enumerate() {
                let at = at + lane * step;
                // SAFETY: not behind `last`, which lies within both.
                unsafe {
                    let next = T::add(*sum, data.get_unchecked(at).wide());
                    *out.as_ptr().add(at) = T::narrow(if self.exclusive { *sum } else { next });
                    *sum = next;
                }
            }
        }
    }
}

for_levels! {
    /// Rows that lie side by side: from `start` on, `n` elements that are `along` apart. Only the caller writes them.
    fn columns<'a, T: Number>(
        data: &'a [T],
        out: &'a SharedMut<'a, T>,
        position: (usize, usize, usize),
        how: (bool, bool),
    ) { columns_any }
}

#[inline(always)]
fn columns_any<T: Number>(
    data: &[T],
    out: &SharedMut<'_, T>,
    (start, n, along): (usize, usize, usize),
    (exclusive, reverse): (bool, bool),
) {
    let mut sums = [T::ZERO; LANES];
    for i in 0..n {
        let at = start + if reverse { n - 1 - i } else { i } * along;
        let from = &data[at..at + LANES];
        // SAFETY: chunks have different columns, as `run` gives them out.
        let to = unsafe { out.part(at..at + LANES) };
        for l in 0..LANES {
            let next = T::add(sums[l], from[l].wide());
            to[l] = T::narrow(if exclusive { sums[l] } else { next });
            sums[l] = next;
        }
    }
}
