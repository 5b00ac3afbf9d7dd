//! Where the largest or smallest element along an axis is: the first of equals. NaN never wins.

use crate::eltwise::pieces;
use crate::vmath::simd::level;
use crate::{Exec, SharedMut, part_of};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    Max,
    Min,
}

/// Columns that are worked on together when the axis is not the last.
const WIDTH: usize = 128;

/// The index of the extreme along the middle of `outer` x `len` x `inner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgReduce {
    which: Extreme,
    outer: usize,
    len: usize,
    inner: usize,
}

impl ArgReduce {
    /// Panics when there is nothing to choose from.
    pub fn new(which: Extreme, outer: usize, len: usize, inner: usize) -> ArgReduce {
        assert!(len > 0 || outer * inner == 0, "an axis without elements");
        ArgReduce { which, outer, len, inner }
    }

    /// `values`, when wanted, gets the elements themselves.
    pub fn run(&self, exec: &Exec<'_>, x: &[f32], indices: &mut [i64], values: Option<&mut [f32]>) {
        let ArgReduce { which, outer, len, inner } = *self;
        assert_eq!(x.len(), outer * len * inner, "the input");
        assert_eq!(indices.len(), outer * inner, "the indices");
        assert!(values.as_ref().is_none_or(|v| v.len() == outer * inner), "the values");
        if indices.is_empty() {
            return;
        }
        let shared = SharedMut::new(indices);
        let shared_values = values.map(SharedMut::new);
        let across = inner.div_ceil(WIDTH);
        let chunks = pieces(exec, x.len()).min(outer * across);
        let isa = exec.isa;
        exec.each(chunks, |chunk, _| {
            for unit in part_of(outer * across, chunks, chunk) {
                let (o, column) = (unit / across, unit % across * WIDTH);
                let width = WIDTH.min(inner - column);
                let x = &x[o * len * inner + column..(o + 1) * len * inner];
                let (mut best, mut at) = ([0.0f32; WIDTH], [0u32; WIDTH]);
                let (best, at) = (&mut best[..width], &mut at[..width]);
                // SAFETY: the body is safe code; `level!` checks the machine.
                unsafe {
                    level!(isa, <S>(which: Extreme, x: &[f32], len: usize, inner: usize, best: &mut [f32], at: &mut [u32]) {
                        match which {
                            Extreme::Max => scan(x, len, inner, best, at, |x, best| x > best),
                            Extreme::Min => scan(x, len, inner, best, at, |x, best| x < best),
                        }
                    })
                }
                let to = o * inner + column;
                // SAFETY: units have columns of their own.
                let out = unsafe { shared.part(to..to + width) };
                out.iter_mut().zip(&*at).for_each(|(y, &i)| *y = i64::from(i));
                if let Some(values) = &shared_values {
                    // SAFETY: as above.
                    unsafe { values.part(to..to + width) }.copy_from_slice(best);
                }
            }
        });
    }
}

#[inline(always)]
fn scan(x: &[f32], len: usize, inner: usize, best: &mut [f32], at: &mut [u32], wins: impl Fn(f32, f32) -> bool) {
    if inner == 1 {
        // Lanes take turns, so the loop has no single chain; the first of equals is found afterwards.
        const LANES: usize = 32;
        let mut lanes = [x[0]; LANES];
        let groups = x[..len].chunks_exact(LANES);
        let rest = groups.remainder();
        for group in groups {
            for (lane, &x) in lanes.iter_mut().zip(group) {
                // A NaN gives way to whatever comes.
                *lane = if wins(x, *lane) | lane.is_nan() { x } else { *lane };
            }
        }
        let top = lanes.iter().chain(rest).fold(f32::NAN, |a, &x| if wins(x, a) || a.is_nan() { x } else { a });
        best[0] = top;
        at[0] = x[..len].iter().position(|&x| x == top).unwrap_or(0) as u32;
        return;
    }
    let width = best.len();
    best.copy_from_slice(&x[..width]);
    for k in 1..len {
        let row = &x[k * inner..k * inner + width];
        for c in 0..width {
            let better = wins(row[c], best[c]) | (best[c].is_nan() & !row[c].is_nan());
            best[c] = if better { row[c] } else { best[c] };
            at[c] = if better { k as u32 } else { at[c] };
        }
    }
}
