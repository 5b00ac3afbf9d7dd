//! Functions of one number, element by element.

pub(crate) mod special;
pub(crate) mod unary;

opset! {
    abs::{Abs}, acos::{Acos}, acosh::{Acosh}, asin::{Asin}, asinh::{Asinh}, atan::{Atan}, atanh::{Atanh},
    ceiling::{Ceiling}, cos::{Cos}, cosh::{Cosh}, erf::{Erf}, erf_inv::{ErfInv}, exp::{Exp}, floor::{Floor},
    is_finite::{IsFinite}, is_inf::{IsInf}, is_nan::{IsNaN}, log::{Log}, negative::{Negative}, round::{Round},
    sign::{Sign}, sin::{Sin}, sinh::{Sinh}, sqrt::{Sqrt}, tan::{Tan}, tanh::{Tanh},
}
