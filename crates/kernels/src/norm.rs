//! Normalisation by statistics of the data: of rows (LayerNorm, RMSNorm, L2), of rows whose parts lie apart, of groups of
//! channels over the pixels of an image (GroupNorm, InstanceNorm), and of a window of channels (LRN). Deviations are summed from the mean, never as a
//! difference of squares, so data far from zero keeps its digits.

mod groups;
mod lrn;
mod parts;

pub use groups::GroupNorm;
pub use lrn::Lrn;
pub use parts::PartedNorm;

use crate::cast::{Brain, Half};
use crate::eltwise::pieces;
use crate::simd::{Number, Simd, dispatch};
use crate::vmath::take;
use crate::{Exec, Halves, Isa, SharedMut, part_of};
use std::ops::Range;

/// What a row is divided by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NormKind {
    /// Mean subtracted, divided by the root of variance plus epsilon.
    Variance { eps: f32 },
    /// Mean subtracted, divided by the standard deviation plus epsilon.
    Deviation { eps: f32 },
    /// Mean subtracted.
    MeanOnly,
    /// Divided by the root of the mean square plus epsilon.
    Rms { eps: f32 },
    /// Divided by the root of the sum of squares plus epsilon.
    L2Add { eps: f32 },
    /// Divided by the root of the sum of squares, which counts as epsilon at least.
    L2Max { eps: f32 },
}

impl NormKind {
    /// The factor, from the sum of squared deviations (or squares) of `n` elements.
    fn factor(self, squares: f64, n: usize) -> f64 {
        let n = n as f64;
        1.0 / match self {
            NormKind::Variance { eps } | NormKind::Rms { eps } => (squares / n + f64::from(eps)).sqrt(),
            NormKind::Deviation { eps } => (squares / n).sqrt() + f64::from(eps),
            NormKind::MeanOnly => 1.0,
            NormKind::L2Add { eps } => (squares + f64::from(eps)).sqrt(),
            NormKind::L2Max { eps } => squares.max(f64::from(eps)).sqrt(),
        }
    }
    fn has_mean(self) -> bool {
        matches!(self, NormKind::Variance { .. } | NormKind::Deviation { .. } | NormKind::MeanOnly)
    }
}

/// Normalises every row of a matrix, then multiplies by `gamma` and adds `beta`, one number a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowNorm {
    kind: NormKind,
    rows: usize,
    len: usize,
}

impl RowNorm {
    pub fn new(kind: NormKind, rows: usize, len: usize) -> RowNorm {
        RowNorm { kind, rows, len }
    }

    pub fn run(&self, exec: &Exec<'_>, x: &[f32], gamma: Option<&[f32]>, beta: Option<&[f32]>, out: &mut [f32]) {
        self.run_from(exec, x, gamma, beta, out);
    }

    /// The same, where what is read, what is written or both are numbers of 16 bits, of one type.
    pub fn run_halves(
        &self,
        exec: &Exec<'_>,
        x: RowsIn<'_>,
        gamma: Option<&[f32]>,
        beta: Option<&[f32]>,
        out: RowsOut<'_>,
    ) {
        match (x, out) {
            (RowsIn::F32(x), RowsOut::F32(out)) => self.run_from(exec, x, gamma, beta, out),
            (x, RowsOut::Half(Halves::Bf16, out)) => self.to_halves::<Brain>(exec, Halves::Bf16, x, gamma, beta, out),
            (x, RowsOut::Half(Halves::F16, out)) => self.to_halves::<Half>(exec, Halves::F16, x, gamma, beta, out),
            (RowsIn::Half(Halves::Bf16, x), RowsOut::F32(out)) => {
                self.run_from::<Brain, _>(exec, bytemuck::cast_slice(x), gamma, beta, out);
            }
            (RowsIn::Half(Halves::F16, x), RowsOut::F32(out)) => {
                self.run_from::<Half, _>(exec, bytemuck::cast_slice(x), gamma, beta, out);
            }
        }
    }

    fn to_halves<H: Number + bytemuck::Pod>(
        self,
        exec: &Exec<'_>,
        halves: Halves,
        x: RowsIn<'_>,
        gamma: Option<&[f32]>,
        beta: Option<&[f32]>,
        out: &mut [u16],
    ) {
        let out: &mut [H] = bytemuck::cast_slice_mut(out);
        match x {
            RowsIn::F32(x) => self.run_from(exec, x, gamma, beta, out),
            RowsIn::Half(of, x) => {
                assert_eq!(of, halves, "rows of one type");
                self.run_from::<H, H>(exec, bytemuck::cast_slice(x), gamma, beta, out);
            }
        }
    }

    fn run_from<I: Number, O: Number>(
        &self,
        exec: &Exec<'_>,
        x: &[I],
        gamma: Option<&[f32]>,
        beta: Option<&[f32]>,
        out: &mut [O],
    ) {
        assert_eq!(x.len(), self.rows * self.len, "the input");
        assert_eq!(x.len(), out.len(), "the output");
        // SAFETY: as long as the shape says.
        unsafe { self.run_raw(exec, Whole(x.as_ptr()), gamma, beta, SharedMut::new(out)) }
    }

    pub fn run_in_place(&self, exec: &Exec<'_>, data: &mut [f32], gamma: Option<&[f32]>, beta: Option<&[f32]>) {
        assert_eq!(data.len(), self.rows * self.len, "the data");
        let data = SharedMut::new(data);
        // SAFETY: as long as the shape says; a row is read before it is written.
        unsafe { self.run_raw(exec, Whole(data.as_ptr().cast_const()), gamma, beta, data) }
    }

    unsafe fn run_raw<I: Number, O: Number>(
        &self,
        exec: &Exec<'_>,
        x: Whole<I>,
        gamma: Option<&[f32]>,
        beta: Option<&[f32]>,
        out: SharedMut<'_, O>,
    ) {
        let RowNorm { kind, rows, len } = *self;
        assert!([gamma, beta].iter().flatten().all(|v| v.len() == len), "a number for each of {len} columns");
        if out.is_empty() {
            return;
        }
        let chunks = pieces(exec, out.len() * 4).min(rows);
        let start = |v: Option<&[f32]>| v.map_or(std::ptr::null(), <[f32]>::as_ptr);
        let affine = Affine { gamma: start(gamma), beta: start(beta) };
        exec.each(chunks, |chunk, _| {
            let (x, affine) = (&x, &affine);
            // SAFETY: the rows are inside of both, and this chunk's own.
            unsafe { some_rows(exec.isa, kind, x.0, out.as_ptr(), len, affine, part_of(rows, chunks, chunk)) };
        });
    }
}

/// Rows that are read.
#[derive(Clone, Copy, Debug)]
pub enum RowsIn<'a> {
    F32(&'a [f32]),
    /// The bits of numbers of 16 bits.
    Half(Halves, &'a [u16]),
}

/// Rows that are written.
#[derive(Debug)]
pub enum RowsOut<'a> {
    F32(&'a mut [f32]),
    /// The bits of numbers of 16 bits, rounded to the nearest.
    Half(Halves, &'a mut [u16]),
}

/// The start of what is read; it may be what is written.
struct Whole<T>(*const T);

// SAFETY: it stands for a slice that the caller holds; threads only read their own rows.
unsafe impl<T> Sync for Whole<T> {}

/// Factors and terms of the columns, null where there are none.
struct Affine {
    gamma: *const f32,
    beta: *const f32,
}

// SAFETY: they stand for shared slices that the caller holds.
unsafe impl Sync for Affine {}

unsafe fn some_rows<I: Number, O: Number>(
    isa: Isa,
    kind: NormKind,
    x: *const I,
    out: *mut O,
    len: usize,
    affine: &Affine,
    mine: Range<usize>,
) {
    // SAFETY: `dispatch!` checks the machine; the caller promises the rows and `len` floats of the rest.
    unsafe {
        dispatch!(isa, <'a, S, I: Number, O: Number>(kind: NormKind, x: *const I, out: *mut O, len: usize, affine: &'a Affine, mine: Range<usize>) {
            for r in mine {
                row::<S, I, O>(kind, x.add(r * len), out.add(r * len), len, affine);
            }
        })
    }
}

#[inline(always)]
unsafe fn row<S: Simd, I: Number, O: Number>(kind: NormKind, x: *const I, out: *mut O, len: usize, affine: &Affine) {
    // SAFETY: the caller promises `len` floats everywhere.
    unsafe {
        let mean = if kind.has_mean() { sum::<S, I>(x, len) / len as f64 } else { 0.0 };
        let m = S::splat(mean as f32);
        // What the sum of deviations is not 0 by, the mean is off by.
        let (rest, squares) = deviations::<S, I>(x, len, m);
        let off = if kind.has_mean() { rest / len as f64 } else { 0.0 };
        let factor = kind.factor(squares - len as f64 * off * off, len);
        let (f, term) = (S::splat(factor as f32), S::splat((-off * factor) as f32));
        let mut i = 0;
        while i < len {
            let left = len - i;
            let mut y = (some::<S, I>(x, i, left) - m).fma(f, term);
            if !affine.gamma.is_null() {
                y = y * take::<S>(affine.gamma, i, left);
            }
            if !affine.beta.is_null() {
                y = y + take::<S>(affine.beta, i, left);
            }
            match left >= S::N {
                true => O::store(y, out.add(i)),
                false => O::store_first(y, out.add(i), S::first(left), left),
            }
            i += S::N;
        }
    }
}

/// Vectors that are summed in lanes of f32 before they go on in f64.
const SHORT: usize = 256;

/// A vector from position `i` on, of which `left` numbers are there.
#[inline(always)]
unsafe fn some<S: Simd, I: Number>(x: *const I, i: usize, left: usize) -> S {
    // SAFETY: the caller's promise.
    unsafe {
        match left >= S::N {
            true => I::load(x.add(i)),
            false => I::load_first(x.add(i), S::first(left), left),
        }
    }
}

/// The sum of a run.
#[inline(always)]
unsafe fn sum<S: Simd, I: Number>(x: *const I, len: usize) -> f64 {
    let (mut total, mut i) = (0.0f64, 0);
    while i < len {
        let end = len.min(i + SHORT * S::N);
        let mut lanes = [S::splat(0.0); 4];
        // SAFETY: the caller's promise of `len` floats.
        unsafe {
            while i + 4 * S::N <= end {
                for k in 0..4 {
                    lanes[k] = lanes[k] + I::load::<S>(x.add(i + k * S::N));
                }
                i += 4 * S::N;
            }
            while i < end {
                lanes[0] = lanes[0] + some::<S, I>(x, i, end - i);
                i += S::N;
            }
        }
        i = end;
        total += f64::from(((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])).reduce_add());
    }
    total
}

/// The sums of `x - mean` and of its square.
#[inline(always)]
unsafe fn deviations<S: Simd, I: Number>(x: *const I, len: usize, mean: S) -> (f64, f64) {
    let zero = S::splat(0.0);
    let (mut totals, mut i) = ((0.0f64, 0.0f64), 0);
    while i < len {
        let end = len.min(i + SHORT * S::N);
        let (mut a, mut b) = ([zero; 4], [zero; 4]);
        // SAFETY: the caller's promise of `len` floats.
        unsafe {
            while i + 4 * S::N <= end {
                for k in 0..4 {
                    let d = I::load::<S>(x.add(i + k * S::N)) - mean;
                    a[k] = a[k] + d;
                    b[k] = d.fma(d, b[k]);
                }
                i += 4 * S::N;
            }
            while i < end {
                let left = end - i;
                let d = some::<S, I>(x, i, left) - mean;
                let d = if left >= S::N { d } else { S::select(S::first(left), d, zero) };
                a[0] = a[0] + d;
                b[0] = d.fma(d, b[0]);
                i += S::N;
            }
        }
        i = end;
        totals.0 += f64::from(((a[0] + a[1]) + (a[2] + a[3])).reduce_add());
        totals.1 += f64::from(((b[0] + b[1]) + (b[2] + b[3])).reduce_add());
    }
    totals
}
