//! Softmax and its logarithm along one axis of a row-major array. Lines are shifted by their maximum; each element costs
//! one `exp`. A line that holds plus infinity, NaN, or nothing but minus infinity becomes NaN.

use crate::eltwise::pieces;
use crate::vmath::functions::exp_of_negative;
use crate::vmath::simd::{Simd, level};
use crate::{Exec, Isa, SharedMut, part_of};

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
            exec.each(chunks, |chunk, _| {
                let x = &x;
                for r in part_of(outer, chunks, chunk) {
                    let mask = mask.as_ref().map(|m| m.row(r, len));
                    // SAFETY: row `r` is inside of both, and this chunk's own.
                    unsafe { row(exec.isa, x.0.add(r * len), mask, out.as_ptr().add(r * len), len, scale, log) };
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
                // SAFETY: the columns are inside of both, and this chunk's own.
                unsafe { strip(exec.isa, x.0.add(at), out.as_ptr().add(at), len, inner, width, scale, log) };
            }
        });
    }
}

/// The start of what is read; it may be what is written.
struct Whole(*const f32);

// SAFETY: it stands for a slice that the caller holds; threads only read their own lines.
unsafe impl Sync for Whole {}

/// Softmax of one line in place, as part of another kernel: `exp(x * scale + mask)` divided by the sum.
pub fn softmax_row(isa: Isa, data: &mut [f32], scale: f32, mask: Option<&[f32]>) {
    let mask = mask.map(|m| &m[..data.len()]);
    if !data.is_empty() {
        // SAFETY: one slice, one length.
        unsafe { row(isa, data.as_ptr(), mask, data.as_mut_ptr(), data.len(), scale, false) }
    }
}

unsafe fn row(isa: Isa, x: *const f32, mask: Option<&[f32]>, out: *mut f32, len: usize, scale: f32, log: bool) {
    let mask = mask.map_or(std::ptr::null(), <[f32]>::as_ptr);
    /// `x * scale + mask`, and `fill` beyond the end.
    #[inline(always)]
    unsafe fn at<S: Simd>(x: *const f32, mask: *const f32, i: usize, n: usize, scale: S, fill: S) -> S {
        // SAFETY: the caller's promise.
        unsafe {
            let y = S::load_or(x.add(i), n, fill) * scale;
            if mask.is_null() { y } else { y + S::load_or(mask.add(i), n, S::splat(0.0)) }
        }
    }
    // SAFETY: `level!` checks the machine; the caller promises `len` floats everywhere.
    unsafe {
        level!(isa, <S>(x: *const f32, mask: *const f32, out: *mut f32, len: usize, scale: f32, log: bool) {
            let lowest = S::splat(f32::NEG_INFINITY);
            let factor = S::splat(scale);
            let whole = len / S::N * S::N;
            let rest = len - whole;
            let (mut m0, mut m1) = (lowest, lowest);
            let mut i = 0;
            while i + 2 * S::N <= whole {
                m0 = m0.max(at(x, mask, i, S::N, factor, lowest));
                m1 = m1.max(at(x, mask, i + S::N, S::N, factor, lowest));
                i += 2 * S::N;
            }
            if i < whole {
                m0 = m0.max(at(x, mask, i, S::N, factor, lowest));
            }
            if rest > 0 {
                // What lies beyond the end may have turned with the scale, so it is put in place once more.
                let last = at(x, mask, whole, rest, factor, lowest);
                m1 = m1.max(S::select(S::first(rest), last, lowest));
            }
            let max = S::splat(m0.max(m1).largest());
            // Lanes are emptied into f64 now and then, so that long lines keep their digits.
            let (mut sum, mut i) = (0.0f64, 0);
            while i < whole {
                let end = whole.min(i + 512 * S::N);
                let mut part = S::splat(0.0);
                while i < end {
                    let e = exp_of_negative(at(x, mask, i, S::N, factor, lowest) - max);
                    if !log {
                        e.store(out.add(i));
                    }
                    part = part + e;
                    i += S::N;
                }
                sum += f64::from(part.sum());
            }
            if rest > 0 {
                let e = exp_of_negative(at(x, mask, whole, rest, factor, lowest) - max);
                if !log {
                    e.store_part(out.add(whole), rest);
                }
                sum += f64::from(S::select(S::first(rest), e, S::splat(0.0)).sum());
            }
            if log {
                let log = S::splat(sum.ln() as f32);
                let mut i = 0;
                while i < whole {
                    (at(x, mask, i, S::N, factor, lowest) - max - log).store(out.add(i));
                    i += S::N;
                }
                (at(x, mask, i, rest, factor, lowest) - max - log).store_part(out.add(i), rest);
            } else {
                let inverse = S::splat((1.0 / sum) as f32);
                let mut i = 0;
                while i < whole {
                    (S::load(out.add(i)) * inverse).store(out.add(i));
                    i += S::N;
                }
                (S::load_part(out.add(i), rest) * inverse).store_part(out.add(i), rest);
            }
        })
    }
}

/// Up to [`WIDTH`] neighbouring columns, `step` floats from element to element of a line.
unsafe fn strip(isa: Isa, x: *const f32, out: *mut f32, len: usize, step: usize, width: usize, scale: f32, log: bool) {
    // SAFETY: `level!` checks the machine; the caller promises the columns.
    unsafe {
        level!(isa, <S>(x: *const f32, out: *mut f32, len: usize, step: usize, width: usize, scale: f32, log: bool) {
            let (mut max, mut sum) = ([f32::NEG_INFINITY; WIDTH], [0.0f32; WIDTH]);
            let (max, sum) = (max.as_mut_ptr(), sum.as_mut_ptr());
            let factor = S::splat(scale);
            for k in 0..len {
                let line = x.add(k * step);
                let mut c = 0;
                while c < width {
                    let n = S::N.min(width - c);
                    let y = S::load_part(line.add(c), n) * factor;
                    S::load(max.add(c)).max(y).store(max.add(c));
                    c += S::N;
                }
            }
            for k in 0..len {
                let (line, to) = (x.add(k * step), out.add(k * step));
                let mut c = 0;
                while c < width {
                    let n = S::N.min(width - c);
                    let e = exp_of_negative((S::load_part(line.add(c), n) * factor) - S::load(max.add(c)));
                    (S::load(sum.add(c)) + e).store(sum.add(c));
                    if !log {
                        e.store_part(to.add(c), n);
                    }
                    c += S::N;
                }
            }
            let mut c = 0;
            while c < width {
                let total = S::load(sum.add(c));
                let last = if log { crate::vmath::functions::log(total) } else { S::splat(1.0) / total };
                last.store(sum.add(c));
                c += S::N;
            }
            for k in 0..len {
                let (line, to) = (x.add(k * step), out.add(k * step));
                let mut c = 0;
                while c < width {
                    let n = S::N.min(width - c);
                    let last = S::load(sum.add(c));
                    let y = if log {
                        S::load_part(line.add(c), n) * factor - S::load(max.add(c)) - last
                    } else {
                        S::load_part(to.add(c), n) * last
                    };
                    y.store_part(to.add(c), n);
                    c += S::N;
                }
            }
        })
    }
}
