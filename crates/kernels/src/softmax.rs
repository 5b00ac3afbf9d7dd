//! Softmax and its logarithm along one axis of a row-major array. Lines are shifted by their maximum; each element costs
//! one `exp`. A line that holds plus infinity, NaN, or nothing but minus infinity becomes NaN.

use crate::eltwise::pieces;
use crate::simd::{Simd, dispatch};
use crate::vmath::functions::{exp_or_zero, log};
use crate::vmath::{put, take};
use crate::{Exec, Isa, SharedMut, part_of};
use std::ops::Range;

/// Columns that are worked on together when the axis is not the last.
const WIDTH: usize = 256;

/// Numbers added before the exponential: row `r` of the data meets the row that begins at
/// `r / outer_rows * outer_step + r % inner_rows * inner_step`. So a mask of attention scores `[B, H, Q, K]` has
/// `outer_rows = H * Q` and `inner_rows = Q`, and a step of 0 where it is repeated.
#[derive(Clone, Copy, Debug)]
pub struct RowMask<'a> {
    pub data: &'a [f32],
    pub outer_rows: usize,
    pub outer_step: usize,
    pub inner_rows: usize,
    pub inner_step: usize,
}

impl RowMask<'_> {
    fn row(&self, r: usize, len: usize) -> &[f32] {
        &self.data[r / self.outer_rows * self.outer_step + r % self.inner_rows * self.inner_step..][..len]
    }
}

/// Softmax along the middle of `outer` x `len` x `inner`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Softmax {
    outer: usize,
    len: usize,
    inner: usize,
    log: bool,
    scale: f32,
}

impl Softmax {
    pub fn new(outer: usize, len: usize, inner: usize) -> Softmax {
        Softmax { outer, len, inner, log: false, scale: 1.0 }
    }
    /// Gives logarithms instead.
    pub fn log(self, log: bool) -> Softmax {
        Softmax { log, ..self }
    }
    /// Multiplies the numbers first.
    pub fn scale(self, scale: f32) -> Softmax {
        Softmax { scale, ..self }
    }

    pub fn run(&self, exec: &Exec<'_>, x: &[f32], out: &mut [f32]) {
        self.run_masked(exec, x, None, out);
    }

    /// The mask is added after the scale; only for the last axis.
    pub fn run_masked(&self, exec: &Exec<'_>, x: &[f32], mask: Option<RowMask<'_>>, out: &mut [f32]) {
        assert_eq!(x.len(), self.outer * self.len * self.inner, "the input");
        assert_eq!(x.len(), out.len(), "the output");
        let to = SharedMut::new(out);
        // SAFETY: both are as long as the shape says, and do not overlap.
        unsafe { self.run_raw(exec, Whole(x.as_ptr()), mask, to) }
    }

    pub fn run_in_place(&self, exec: &Exec<'_>, data: &mut [f32], mask: Option<RowMask<'_>>) {
        assert_eq!(data.len(), self.outer * self.len * self.inner, "the data");
        let data = SharedMut::new(data);
        // SAFETY: as long as the shape says; lines are read before they are written.
        unsafe { self.run_raw(exec, Whole(data.as_ptr()), mask, data) }
    }

    unsafe fn run_raw(&self, exec: &Exec<'_>, x: Whole, mask: Option<RowMask<'_>>, out: SharedMut<'_, f32>) {
        let Softmax { outer, len, inner, log, scale } = *self;
        if out.is_empty() {
            return;
        }
        let work = out.len() * 10;
        if inner == 1 {
            let chunks = pieces(exec, work).min(outer);
            let line = Line { len, scale, log };
            exec.each(chunks, |chunk, _| {
                let (x, mine) = (&x, part_of(outer, chunks, chunk));
                if mask.is_none() {
                    // SAFETY: the rows are inside of both, and this chunk's own.
                    unsafe { rows(exec.isa, x.0, std::ptr::null(), out.as_ptr(), line, mine) };
                    return;
                }
                for r in mine {
                    let mask = mask.as_ref().map_or(std::ptr::null(), |m| m.row(r, len).as_ptr());
                    // SAFETY: as above, and the mask is as long.
                    unsafe { rows(exec.isa, x.0.add(r * len), mask, out.as_ptr().add(r * len), line, 0..1) };
                }
            });
            return;
        }
        assert!(mask.is_none(), "a mask needs the last axis");
        let across = inner.div_ceil(WIDTH);
        let chunks = pieces(exec, work).min(outer * across);
        exec.each(chunks, |chunk, _| {
            let x = &x;
            for piece in part_of(outer * across, chunks, chunk) {
                let columns = piece % across * WIDTH;
                let (at, width) = (piece / across * len * inner + columns, WIDTH.min(inner - columns));
                let line = Line { len, scale, log };
                // SAFETY: the columns are inside of both, and this chunk's own.
                unsafe { strip(exec.isa, x.0.add(at), out.as_ptr().add(at), inner, width, line) };
            }
        });
    }
}

/// How each line is treated.
#[derive(Clone, Copy)]
struct Line {
    len: usize,
    scale: f32,
    log: bool,
}

/// The start of what is read; it may be what is written.
struct Whole(*const f32);

// SAFETY: it stands for a slice that the caller holds; threads only read their own lines.
unsafe impl Sync for Whole {}

/// Softmax of one line in place, as part of another kernel: `exp(x * scale + mask)` divided by the sum.
pub fn softmax_row(isa: Isa, data: &mut [f32], scale: f32, mask: Option<&[f32]>) {
    let mask = mask.map_or(std::ptr::null(), |m| m[..data.len()].as_ptr());
    let line = Line { len: data.len(), scale, log: false };
    if !data.is_empty() {
        // SAFETY: one slice, one length.
        unsafe { rows(isa, data.as_ptr(), mask, data.as_mut_ptr(), line, 0..1) }
    }
}

/// Rows of `x`; the mask, null for none, is that of all of them.
unsafe fn rows(isa: Isa, x: *const f32, mask: *const f32, out: *mut f32, line: Line, mine: Range<usize>) {
    // SAFETY: `dispatch!` checks the machine; the caller promises the rows.
    unsafe {
        dispatch!(isa, <S>(x: *const f32, mask: *const f32, out: *mut f32, line: Line, mine: Range<usize>) {
            let vectors = line.len.div_ceil(S::N);
            for r in mine {
                let (x, out) = (x.add(r * line.len), out.add(r * line.len));
                match vectors {
                    1 if !line.log => short::<S, 1>(x, mask, out, line),
                    2 if !line.log => short::<S, 2>(x, mask, out, line),
                    3..=4 if !line.log => short::<S, 4>(x, mask, out, line),
                    5..=8 if !line.log => short::<S, 8>(x, mask, out, line),
                    _ => long::<S>(x, mask, out, line),
                }
            }
        })
    }
}

/// `x * scale + mask` from `i` on, and `fill` beyond the end.
#[inline(always)]
unsafe fn at<S: Simd>(x: *const f32, mask: *const f32, i: usize, left: usize, scale: S, fill: S) -> S {
    // SAFETY: the caller's promise.
    unsafe {
        if left >= S::N {
            let y = S::load(x.add(i)) * scale;
            return if mask.is_null() { y } else { y + S::load(mask.add(i)) };
        }
        let y = S::load_partial(x.add(i), left) * scale;
        let y = if mask.is_null() { y } else { y + S::load_partial(mask.add(i), left) };
        S::select(S::first(left), y, fill)
    }
}

/// A line of up to `K` vectors, which stays in registers. The last vector of a line that has at least one whole reaches back
/// over the one before it: a vector that is stored in part would keep the next line waiting, whose start lies under the rest of
/// it.
#[inline(always)]
unsafe fn short<S: Simd, const K: usize>(x: *const f32, mask: *const f32, out: *mut f32, line: Line) {
    let (lowest, scale, len) = (S::splat(f32::NEG_INFINITY), S::splat(line.scale), line.len);
    // Where vector `k` begins, and how much of it is there.
    let position = |k: usize| if len < S::N { (0, len) } else { ((k * S::N).min(len - S::N), S::N) };
    let mut v = [lowest; K];
    let mut max = lowest;
    for k in 0..K {
        if k * S::N < len {
            let (i, left) = position(k);
            // SAFETY: the caller's promise.
            v[k] = unsafe { at(x, mask, i, left, scale, lowest) };
            max = v[k].max(max);
        }
    }
    let max = S::splat(max.reduce_max());
    let mut sum = S::splat(0.0);
    for k in 0..K {
        if k * S::N < len {
            v[k] = exp_or_zero(v[k] - max);
            let twice = k * S::N - position(k).0;
            sum = sum + if twice == 0 { v[k] } else { S::select(S::first(twice), S::splat(0.0), v[k]) };
        }
    }
    let inverse = S::splat(1.0 / sum.reduce_add());
    for k in 0..K {
        if k * S::N < len {
            let (i, left) = position(k);
            // SAFETY: the caller's promise.
            unsafe { put(v[k] * inverse, out, i, left) };
        }
    }
}

#[inline(always)]
unsafe fn long<S: Simd>(x: *const f32, mask: *const f32, out: *mut f32, line: Line) {
    let Line { len, scale, log } = line;
    let (lowest, factor) = (S::splat(f32::NEG_INFINITY), S::splat(scale));
    let (mut m0, mut m1) = (lowest, lowest);
    // SAFETY: the caller promises `len` floats everywhere.
    unsafe {
        let mut i = 0;
        while i + 2 * S::N <= len {
            m0 = at(x, mask, i, len - i, factor, lowest).max(m0);
            m1 = at(x, mask, i + S::N, len - i - S::N, factor, lowest).max(m1);
            i += 2 * S::N;
        }
        while i < len {
            m0 = at(x, mask, i, len - i, factor, lowest).max(m0);
            i += S::N;
        }
        let max = S::splat(m0.max(m1).reduce_max());
        // Lanes are emptied into f64 now and then, so that long lines keep their digits.
        let (mut sum, mut i) = (0.0f64, 0);
        while i < len {
            let end = len.min(i + 512 * S::N);
            let mut part = S::splat(0.0);
            while i < end {
                let e = exp_or_zero(at(x, mask, i, len - i, factor, lowest) - max);
                if !log {
                    put(e, out, i, len - i);
                }
                part = part + e;
                i += S::N;
            }
            sum += f64::from(part.reduce_add());
        }
        let last = S::splat(if log { sum.ln() } else { 1.0 / sum } as f32);
        let mut i = 0;
        while i < len {
            let y = if log {
                at(x, mask, i, len - i, factor, lowest) - max - last
            } else {
                take::<S>(out, i, len - i) * last
            };
            put(y, out, i, len - i);
            i += S::N;
        }
    }
}

/// Up to [`WIDTH`] neighbouring columns, `step` floats from element to element of a line.
unsafe fn strip(isa: Isa, x: *const f32, out: *mut f32, step: usize, width: usize, line: Line) {
    // SAFETY: `dispatch!` checks the machine; the caller promises the columns.
    unsafe {
        dispatch!(isa, <S>(x: *const f32, out: *mut f32, step: usize, width: usize, line: Line) {
            let mut c = 0;
            while c < width {
                let left = width - c;
                if left >= 4 * S::N {
                    columns::<S, 4>(x.add(c), out.add(c), step, left, line);
                    c += 4 * S::N;
                } else {
                    columns::<S, 1>(x.add(c), out.add(c), step, left, line);
                    c += S::N;
                }
            }
        })
    }
}

/// `K` vectors of columns, of which `left` are there.
#[inline(always)]
unsafe fn columns<S: Simd, const K: usize>(x: *const f32, out: *mut f32, step: usize, left: usize, line: Line) {
    let factor = S::splat(line.scale);
    let mut max = [S::splat(f32::NEG_INFINITY); K];
    let mut sum = [S::splat(0.0); K];
    // SAFETY: the caller promises the columns.
    unsafe {
        for k in 0..line.len {
            for v in 0..K {
                max[v] = (take::<S>(x.add(k * step), v * S::N, left - v * S::N) * factor).max(max[v]);
            }
        }
        for k in 0..line.len {
            for v in 0..K {
                let e = exp_or_zero(take::<S>(x.add(k * step), v * S::N, left - v * S::N) * factor - max[v]);
                sum[v] = sum[v] + e;
                if !line.log {
                    put(e, out.add(k * step), v * S::N, left - v * S::N);
                }
            }
        }
        for v in 0..K {
            sum[v] = if line.log { log(sum[v]) } else { S::splat(1.0) / sum[v] };
        }
        for k in 0..line.len {
            for v in 0..K {
                let at = v * S::N;
                let y = if line.log {
                    take::<S>(x.add(k * step), at, left - at) * factor - max[v] - sum[v]
                } else {
                    take::<S>(out.add(k * step), at, left - at) * sum[v]
                };
                put(y, out.add(k * step), at, left - at);
            }
        }
    }
}
