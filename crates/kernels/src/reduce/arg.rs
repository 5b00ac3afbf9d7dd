//! Where the largest or smallest element along an axis is: the first of equals. NaN never wins.

use crate::eltwise::pieces;
use crate::simd::{Simd, dispatch};
use crate::vmath::{put, take};
use crate::{Exec, Isa, SharedMut, part_of};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    Max,
    Min,
}

/// Columns that are worked on together when the axis is not the last.
const WIDTH: usize = 128;
/// Indices are counted in f32 lanes, which are exact up to here.
const LONGEST: usize = 1 << 24;

/// The index of the extreme along the middle of `outer` x `len` x `inner`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgReduce {
    which: Extreme,
    outer: usize,
    len: usize,
    inner: usize,
}

impl ArgReduce {
    /// Panics when there is nothing to choose from, or more than 2^24 elements along the axis.
    pub fn new(which: Extreme, outer: usize, len: usize, inner: usize) -> ArgReduce {
        assert!((1..=LONGEST).contains(&len) || outer * inner == 0, "an axis of {len} elements");
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
        // Minima are the maxima of the negatives.
        let sign = if which == Extreme::Max { 0.0 } else { -0.0 };
        let across = inner.div_ceil(WIDTH);
        let chunks = pieces(exec, x.len()).min(outer * across);
        exec.each(chunks, |chunk, _| {
            for unit in part_of(outer * across, chunks, chunk) {
                let (o, column) = (unit / across, unit % across * WIDTH);
                let width = WIDTH.min(inner - column);
                let x = &x[o * len * inner + column..(o + 1) * len * inner];
                let mut at = [0.0f32; WIDTH];
                // SAFETY: `x` holds `len` rows of `width` columns, `at` as many columns.
                unsafe { scan(exec.isa, x.as_ptr(), len, inner, width, at.as_mut_ptr(), sign) };
                let to = o * inner + column;
                // SAFETY: units have columns of their own.
                let out = unsafe { shared.part(to..to + width) };
                out.iter_mut().zip(&at).for_each(|(y, &i)| *y = i as i64);
                if let Some(values) = &shared_values {
                    // SAFETY: as above.
                    let values = unsafe { values.part(to..to + width) };
                    values.iter_mut().zip(&at).enumerate().for_each(|(c, (y, &i))| *y = x[i as usize * inner + c]);
                }
            }
        });
    }
}

unsafe fn scan(isa: Isa, x: *const f32, len: usize, inner: usize, width: usize, at: *mut f32, sign: f32) {
    // SAFETY: `dispatch!` checks the machine; the caller promises the columns.
    unsafe {
        dispatch!(isa, <S>(x: *const f32, len: usize, inner: usize, width: usize, at: *mut f32, sign: f32) {
            if inner == 1 {
                *at = line::<S>(x, len, sign);
                return;
            }
            let mut c = 0;
            while c < width {
                columns::<S>(x.add(c), len, inner, width - c, at.add(c), sign);
                c += S::N;
            }
        })
    }
}

/// One vector of columns.
#[inline(always)]
unsafe fn columns<S: Simd>(x: *const f32, len: usize, inner: usize, left: usize, at: *mut f32, sign: f32) {
    let sign = S::splat(sign);
    let (mut best, mut index) = (S::splat(f32::NEG_INFINITY), S::splat(0.0));
    let (mut now, one) = (S::splat(0.0), S::splat(1.0));
    for k in 0..len {
        // SAFETY: the caller's promise.
        let y = unsafe { take::<S>(x.add(k * inner), 0, left) }.xor(sign);
        let better = best.lt(y);
        best = S::select(better, y, best);
        index = S::select(better, now, index);
        now = now + one;
    }
    // SAFETY: as above.
    unsafe { put(index, at, 0, left) };
}

/// The index within one contiguous line.
#[inline(always)]
unsafe fn line<S: Simd>(x: *const f32, len: usize, sign: f32) -> f32 {
    let (flip, lowest) = (S::splat(sign), S::splat(f32::NEG_INFINITY));
    // Four chains; each lane knows its best and in which turn it was.
    let (mut best, mut turn) = ([lowest; 4], [S::splat(0.0); 4]);
    let (mut now, one) = (S::splat(0.0), S::splat(1.0));
    let mut i = 0;
    while i < len {
        for k in 0..4 {
            let from = i + k * S::N;
            if from < len {
                // SAFETY: the caller's promise.
                let y = unsafe { take::<S>(x, from, len - from) }.xor(flip);
                let y = if len - from >= S::N { y } else { S::select(S::first(len - from), y, lowest) };
                let better = best[k].lt(y);
                best[k] = S::select(better, y, best[k]);
                turn[k] = S::select(better, now, turn[k]);
            }
        }
        now = now + one;
        i += 4 * S::N;
    }
    let (mut values, mut turns) = ([f32::NEG_INFINITY; 64], [0.0f32; 64]);
    for k in 0..4 {
        // SAFETY: four vectors of at most 16 lanes.
        unsafe {
            best[k].store(values.as_mut_ptr().add(k * S::N));
            turn[k].store(turns.as_mut_ptr().add(k * S::N));
        }
    }
    let (mut top, mut first) = (f32::NEG_INFINITY, usize::MAX);
    for lane in 0..4 * S::N {
        let index = turns[lane] as usize * 4 * S::N + lane;
        if values[lane] > top || (values[lane] == top && top > f32::NEG_INFINITY && index < first) {
            (top, first) = (values[lane], index);
        }
    }
    if first == usize::MAX { 0.0 } else { first as f32 }
}
