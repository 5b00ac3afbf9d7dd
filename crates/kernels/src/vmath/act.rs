//! [`Act`] over slices and single vectors.

use super::{Map, functions as f, map_in_place, map_raw};
use crate::simd::Simd;
use crate::{Act, Isa};

macro_rules! act_maps {
    ($($Name:ident($($p:ident),*) |$x:ident| $body:expr;)*) => {$(
        #[derive(Clone, Copy)]
        pub(crate) struct $Name($(pub(crate) act_maps!(@f32 $p)),*);
        impl Map for $Name {
            #[inline(always)]
            fn at<S: Simd>(self, $x: S) -> S {
                #[allow(unused_variables)]
                let $Name($($p),*) = self;
                $(let $p = S::splat($p);)*
                $body
            }
        }
    )*};
    (@f32 $p:ident) => { f32 };
}

act_maps! {
    Relu() |x| S::splat(0.0).max(x);
    Clamp(min, max) |x| max.min(min.max(x));
    LeakyRelu(slope) |x| S::select(x.lt(S::splat(0.0)), x * slope, x);
    Elu(alpha) |x| f::elu(x, alpha);
    Selu(alpha, scale) |x| scale * f::elu(x, alpha);
    Swish(beta) |x| f::swish(x, beta);
    HSigmoid() |x| S::splat(6.0).min(S::splat(0.0).max(x + S::splat(3.0))) * S::splat(1.0 / 6.0);
    HSwish() |x| x * (S::splat(6.0).min(S::splat(0.0).max(x + S::splat(3.0))) * S::splat(1.0 / 6.0));
    HardSigmoid(alpha, beta) |x| S::splat(1.0).min(S::splat(0.0).max(alpha.fma(x, beta)));
    SoftSign() |x| x / (S::splat(1.0) + x.abs());
}

/// Runs `$body` with `$map` bound to the function of `$act`, or `$none` for none.
macro_rules! with_act {
    ($act:expr, $map:ident => $body:expr, none => $none:expr) => {
        match $act {
            Act::None => $none,
            Act::Relu => {
                let $map = $crate::vmath::act::Relu();
                $body
            }
            Act::Clamp { min, max } => {
                let $map = $crate::vmath::act::Clamp(min, max);
                $body
            }
            Act::LeakyRelu(slope) => {
                let $map = $crate::vmath::act::LeakyRelu(slope);
                $body
            }
            Act::Elu(alpha) => {
                let $map = $crate::vmath::act::Elu(alpha);
                $body
            }
            Act::Selu { alpha, scale } => {
                let $map = $crate::vmath::act::Selu(alpha, scale);
                $body
            }
            Act::Sigmoid => {
                let $map = $crate::vmath::Sigmoid;
                $body
            }
            Act::Tanh => {
                let $map = $crate::vmath::Tanh;
                $body
            }
            Act::Swish(beta) => {
                let $map = $crate::vmath::act::Swish(beta);
                $body
            }
            Act::HSwish => {
                let $map = $crate::vmath::act::HSwish();
                $body
            }
            Act::HSigmoid => {
                let $map = $crate::vmath::act::HSigmoid();
                $body
            }
            Act::HardSigmoid { alpha, beta } => {
                let $map = $crate::vmath::act::HardSigmoid(alpha, beta);
                $body
            }
            Act::GeluErf => {
                let $map = $crate::vmath::GeluErf;
                $body
            }
            Act::GeluTanh => {
                let $map = $crate::vmath::GeluTanh;
                $body
            }
            Act::Mish => {
                let $map = $crate::vmath::Mish;
                $body
            }
            Act::SoftPlus => {
                let $map = $crate::vmath::SoftPlus;
                $body
            }
            Act::SoftSign => {
                let $map = $crate::vmath::act::SoftSign();
                $body
            }
        }
    };
}

pub(crate) use with_act;

/// Applies a function to every element.
pub fn act_in_place(isa: Isa, act: Act, data: &mut [f32]) {
    with_act!(act, map => map_in_place(isa, map, data), none => ());
}

/// Applies a function to every element of `from`.
pub fn act_into(isa: Isa, act: Act, from: &[f32], to: &mut [f32]) {
    assert_eq!(from.len(), to.len(), "as many results as numbers");
    // SAFETY: equally long by the check; a shared and an exclusive slice do not overlap.
    unsafe { act_raw(isa, act, from.as_ptr(), to.as_mut_ptr(), from.len()) }
}

/// Applies a function to `len` floats.
///
/// # Safety
/// As [`map_raw`].
pub(crate) unsafe fn act_raw(isa: Isa, act: Act, from: *const f32, to: *mut f32, len: usize) {
    // SAFETY: the caller's promise; `copy` allows both to be the same.
    unsafe { with_act!(act, map => map_raw(isa, map, from, to, len), none => std::ptr::copy(from, to, len)) }
}
