//! Functions of many numbers at once: `exp`, `tanh` and so on over slices of f32, vectorised for every instruction level.
//! Each states its largest error in units of the last position (ulp) of the result; NaN gives NaN. Results differ between
//! levels by such errors, and never within one: an element's value does not depend on where in the slice it lies.

pub(crate) mod act;
pub(crate) mod functions;

use crate::Isa;
use crate::simd::{Simd, dispatch};
pub use act::{act_in_place, act_into};
use functions as f;

/// A function of one number in all widths.
pub(crate) trait Map: Copy {
    fn at<S: Simd>(self, x: S) -> S;
}

/// Rows of floats to read: `step` is 1, or 0 for one number along each row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub at: *const f32,
    pub step: usize,
    /// Floats from row to row.
    pub row: usize,
}

/// Rows of floats to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub at: *mut f32,
    /// Floats from row to row.
    pub row: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub rows: usize,
    pub columns: usize,
}

/// Applies `map` to every element of an area. The body of the loop stands once, for whole vectors and for the last one of a
/// row, and takes no closures: what is not inlined would not be compiled for the level.
///
/// # Safety
/// The area can be read at `a` and written at `to`; the two are the same or do not overlap.
pub(crate) unsafe fn map_rows<M: Map>(isa: Isa, map: M, a: Source, to: Target, area: Area) {
    if area.columns == 0 {
        return;
    }
    // SAFETY: `dispatch!` checks the machine; the rest is the caller's promise.
    unsafe {
        dispatch!(isa, <S, M: Map>(map: M, a: Source, to: Target, area: Area) {
            for r in 0..area.rows {
                let (pa, pt) = (a.at.add(r * a.row), to.at.add(r * to.row));
                let columns = if a.step == 1 { area.columns } else { 1 };
                let mut i = 0;
                while i < columns {
                    put(map.at(take::<S>(pa, i, columns - i)), pt, i, columns - i);
                    i += S::N;
                }
                if a.step == 0 {
                    fill(S::splat(*pt), pt, area.columns);
                }
            }
        })
    }
}

/// A vector from `i` on, or as much of it as is left.
///
/// # Safety
/// `left` floats can be read there, up to a vector.
#[inline(always)]
pub(crate) unsafe fn take<S: Simd>(at: *const f32, i: usize, left: usize) -> S {
    // SAFETY: the caller's promise.
    unsafe { if left >= S::N { S::load(at.add(i)) } else { S::load_partial(at.add(i), left) } }
}

/// Stores `y`, or as much of it as is left.
///
/// # Safety
/// `left` floats can be written there, up to a vector.
#[inline(always)]
pub(crate) unsafe fn put<S: Simd>(y: S, to: *mut f32, i: usize, left: usize) {
    // SAFETY: the caller's promise.
    unsafe { if left >= S::N { y.store(to.add(i)) } else { y.store_partial(to.add(i), left) } }
}

/// One number all along a row.
///
/// # Safety
/// `columns` floats can be written.
#[inline(always)]
pub(crate) unsafe fn fill<S: Simd>(y: S, to: *mut f32, columns: usize) {
    let mut i = 0;
    while i < columns {
        // SAFETY: the caller's promise.
        unsafe { put(y, to, i, columns - i) };
        i += S::N;
    }
}

/// Applies `map` to `len` floats.
///
/// # Safety
/// `len` floats can be read at `from` and written at `to`; the two are the same or do not overlap.
pub(crate) unsafe fn map_raw<M: Map>(isa: Isa, map: M, from: *const f32, to: *mut f32, len: usize) {
    let area = Area { rows: 1, columns: len };
    // SAFETY: the caller's promise.
    unsafe { map_rows(isa, map, Source { at: from, step: 1, row: len }, Target { at: to, row: len }, area) }
}

/// Applies `map` to a slice in place.
pub(crate) fn map_in_place<M: Map>(isa: Isa, map: M, data: &mut [f32]) {
    // SAFETY: both addresses are the slice's own.
    unsafe { map_raw(isa, map, data.as_ptr(), data.as_mut_ptr(), data.len()) }
}

/// Declares functions of one number: the type for [`Map`] and the public function over a slice.
macro_rules! maps {
    ($($(#[$doc:meta])* $Name:ident $name:ident |$x:ident| $body:expr;)*) => {$(
        #[derive(Clone, Copy, Debug)]
        pub(crate) struct $Name;
        impl Map for $Name {
            #[inline(always)]
            fn at<S: Simd>(self, $x: S) -> S {
                $body
            }
        }
        $(#[$doc])*
        pub fn $name(isa: Isa, data: &mut [f32]) {
            map_in_place(isa, $Name, data);
        }
    )*};
}

maps! {
    /// `e^x`; at most 1.5 ulp. Overflow gives infinity, underflow 0 after the denormals.
    Exp exp |x| f::exp(x);
    /// Natural logarithm; at most 2 ulp. 0 gives minus infinity, negatives NaN.
    Log log |x| f::log(x);
    /// At most 2.5 ulp.
    Sigmoid sigmoid |x| f::sigmoid(x);
    /// At most 3.5 ulp.
    Tanh tanh |x| f::tanh(x);
    /// Gauss error function; at most 5 ulp.
    Erf erf |x| f::erf(x);
    /// `x / 2 * (1 + erf(x / sqrt(2)))`; at most 1.5e-7 times `|x|`.
    GeluErf gelu_erf |x| f::gelu_erf(x);
    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`; at most 5 ulp, or 1e-7 times `|x|`.
    GeluTanh gelu_tanh |x| f::gelu_tanh(x);
    /// `ln(1 + e^x)`; at most 4 ulp.
    SoftPlus softplus |x| f::softplus(x);
    /// `x * tanh(ln(1 + e^x))`; at most 6 ulp.
    Mish mish |x| f::mish(x);
    /// At most 2 ulp.
    Sin sin |x| f::sin(x);
    /// At most 2 ulp.
    Cos cos |x| f::cos(x);
    /// Rounded correctly.
    Tan tan |x| f::by_lane(x, |x| f64::from(x).tan() as f32);
    /// Rounded correctly; negatives give NaN.
    Sqrt sqrt |x| x.sqrt();
    /// `1 / sqrt(x)`; at most 1.5 ulp.
    Rsqrt rsqrt |x| S::splat(1.0) / x.sqrt();
    /// Toward minus infinity.
    Floor floor |x| x.floor();
    /// Toward plus infinity.
    Ceil ceil |x| x.ceil();
    /// To the nearest whole number, halves to the even one.
    RoundEven round_even |x| x.round_even();
}

/// `base[i] ^ exponent`; at most 3 ulp. The special cases are those of `f64::powf`.
pub fn pow(isa: Isa, base: &mut [f32], exponent: f32) {
    #[derive(Clone, Copy)]
    struct Pow(f32);
    impl Map for Pow {
        #[inline(always)]
        fn at<S: Simd>(self, x: S) -> S {
            f::pow(x, S::splat(self.0))
        }
    }
    map_in_place(isa, Pow(exponent), base);
}
