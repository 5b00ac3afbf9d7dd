//! Normalisation of rows whose parts lie apart: a channel over all pixels of all images, as they lie plain.

use super::{NormKind, Whole, deviations, sum};
use crate::eltwise::pieces;
use crate::simd::{Simd, dispatch};
use crate::vmath::{put, take};
use crate::{Exec, Isa, SharedMut, part_of};
use std::ops::Range;

/// Normalises data of `outer` x `parts` x `rows` x `len` over the second and the last axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartedNorm {
    kind: NormKind,
    outer: usize,
    parts: usize,
    rows: usize,
    len: usize,
}

impl PartedNorm {
    pub fn new(kind: NormKind, outer: usize, parts: usize, rows: usize, len: usize) -> PartedNorm {
        PartedNorm { kind, outer, parts, rows, len }
    }

    pub fn run(&self, exec: &Exec<'_>, x: &[f32], out: &mut [f32]) {
        let PartedNorm { outer, parts, rows, len, .. } = *self;
        assert_eq!(x.len(), outer * parts * rows * len, "the input");
        assert_eq!(x.len(), out.len(), "the output");
        if x.is_empty() {
            return;
        }
        let chunks = pieces(exec, x.len() * 4).min(outer * rows);
        let (x, out) = (Whole(x.as_ptr()), SharedMut::new(out));
        exec.each(chunks, |chunk, _| {
            let (x, out) = (&x, out.as_ptr());
            // SAFETY: the rows are inside of both, and this chunk's own.
            unsafe { some_rows(exec.isa, self, x.0, out, part_of(outer * rows, chunks, chunk)) };
        });
    }
}

unsafe fn some_rows(isa: Isa, norm: &PartedNorm, x: *const f32, out: *mut f32, mine: Range<usize>) {
    // SAFETY: `dispatch!` checks the machine; the caller promises the rows.
    unsafe {
        dispatch!(isa, <'a, S>(norm: &'a PartedNorm, x: *const f32, out: *mut f32, mine: Range<usize>) {
            for r in mine {
                let start = r / norm.rows * norm.parts * norm.rows * norm.len + r % norm.rows * norm.len;
                row::<S>(norm, x.add(start), out.add(start));
            }
        })
    }
}

#[inline(always)]
unsafe fn row<S: Simd>(norm: &PartedNorm, x: *const f32, out: *mut f32) {
    let PartedNorm { kind, parts, len, .. } = *norm;
    let (apart, count) = (norm.rows * len, parts * len);
    // SAFETY: the caller promises `parts` runs of `len` floats, this far apart.
    unsafe {
        let mut mean = 0.0;
        if kind.has_mean() {
            for p in 0..parts {
                mean += sum::<S, f32>(x.add(p * apart), len);
            }
            mean /= count as f64;
        }
        let m = S::splat(mean as f32);
        let (mut rest, mut squares) = (0.0, 0.0);
        for p in 0..parts {
            let (r, s) = deviations::<S, f32>(x.add(p * apart), len, m);
            rest += r;
            squares += s;
        }
        // What the sum of deviations is not 0 by, the mean is off by.
        let off = if kind.has_mean() { rest / count as f64 } else { 0.0 };
        let factor = kind.factor(squares - count as f64 * off * off, count);
        let (f, term) = (S::splat(factor as f32), S::splat((-off * factor) as f32));
        for p in 0..parts {
            let (x, out) = (x.add(p * apart), out.add(p * apart));
            let mut i = 0;
            while i < len {
                let left = len - i;
                put((take::<S>(x, i, left) - m).fma(f, term), out, i, left);
                i += S::N;
            }
        }
    }
}
