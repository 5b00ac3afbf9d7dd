//! The elementwise operations by name, and each as a function of vectors. What a NaN or a zero of either sign gives is as
//! in the operations of the graph.

use crate::Act;
use crate::simd::Simd;
use crate::vmath::Map;
use crate::vmath::functions::{self as f, by_lane, by_lane2};

/// An elementwise operation on f32. Truth is 1 and 0; any number but 0 counts as true.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EltOp {
    /// `Act::None` copies.
    Act(Act),
    Abs,
    Neg,
    Exp,
    Log,
    Sqrt,
    /// `x ^ 0.5`: unlike the root, minus zero gives zero and minus infinity infinity.
    PowHalf,
    Rsqrt,
    Reciprocal,
    Square,
    Floor,
    Ceil,
    Trunc,
    RoundEven,
    RoundAway,
    Sign,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Asinh,
    Acosh,
    Atanh,
    Erf,
    Not,
    IsNan,
    IsInf {
        negative: bool,
        positive: bool,
    },
    IsFinite,
    Quantize(Quantize),
    RoundTrip(Steps),
    Add,
    Sub,
    Mul,
    Div,
    /// The first where they do not compare.
    Max,
    /// The first where they do not compare.
    Min,
    Pow,
    SquaredDifference,
    /// `a - b * trunc(a / b)`.
    Mod,
    /// `a - b * floor(a / b)`.
    FloorMod,
    /// `a < 0 ? a * b : a`.
    PRelu,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
    Xor,
    /// `a * b + c`, rounded once.
    MulAdd,
    /// `a != 0 ? b : c`.
    Select,
}

impl EltOp {
    /// How many arguments it takes.
    pub fn arity(self) -> usize {
        use EltOp::*;
        match self {
            MulAdd | Select => 3,
            Add | Sub | Mul | Div | Max | Min | Pow | SquaredDifference | Mod | FloorMod | PRelu | Equal | NotEqual
            | Less | LessEqual | Greater | GreaterEqual | And | Or | Xor => 2,
            _ => 1,
        }
    }

    /// What one element costs, in additions.
    pub(super) fn cost(self) -> usize {
        use EltOp::*;
        match self {
            Act(act) => match act {
                crate::Act::None
                | crate::Act::Relu
                | crate::Act::Clamp { .. }
                | crate::Act::LeakyRelu(_)
                | crate::Act::HSwish
                | crate::Act::HSigmoid
                | crate::Act::HardSigmoid { .. } => 1,
                _ => 8,
            },
            Quantize(_) | RoundTrip(_) => 4,
            Exp | Log | Erf | Sin | Cos | Div | Sqrt | Rsqrt => 8,
            Pow => 20,
            Tan | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh | Mod | FloorMod => 100,
            _ => 1,
        }
    }
}

/// A function of two numbers in all widths.
pub(super) trait Map2: Copy {
    fn at<S: Simd>(self, a: S, b: S) -> S;
}

/// A function of three numbers in all widths.
pub(super) trait Map3: Copy {
    fn at<S: Simd>(self, a: S, b: S, c: S) -> S;
}

macro_rules! unary {
    ($($Name:ident |$x:ident| $body:expr;)*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $Name;
        impl Map for $Name {
            #[inline(always)]
            fn at<S: Simd>(self, $x: S) -> S {
                $body
            }
        }
    )*};
}

macro_rules! binary {
    ($($Name:ident |$a:ident, $b:ident| $body:expr;)*) => {$(
        #[derive(Clone, Copy)]
        pub(super) struct $Name;
        impl Map2 for $Name {
            #[inline(always)]
            fn at<S: Simd>(self, $a: S, $b: S) -> S {
                $body
            }
        }
    )*};
}

#[inline(always)]
fn zero<S: Simd>() -> S {
    S::splat(0.0)
}

#[inline(always)]
fn one<S: Simd>() -> S {
    S::splat(1.0)
}

#[inline(always)]
fn truth<S: Simd>(mask: S::Mask) -> S {
    S::select(mask, one(), zero())
}

/// 1 and 0 for what is not 0 and what is.
#[inline(always)]
fn as_truth<S: Simd>(x: S) -> S {
    S::select(x.equal(zero()), zero(), one())
}

unary! {
    Same |x| x;
    Abs |x| x.abs();
    Neg |x| -x;
    PowHalf |x| {
        let root = x.sqrt() + zero();
        S::select(x.equal(S::splat(f32::NEG_INFINITY)), S::splat(f32::INFINITY), root)
    };
    Reciprocal |x| one::<S>() / x;
    Square |x| x * x;
    Trunc |x| x.trunc();
    RoundAway |x| {
        let whole = x.trunc();
        let up = whole + one::<S>().or(x.sign_bit());
        S::select(S::splat(0.5).le((x - whole).abs()), up, whole)
    };
    Sign |x| S::select(x.lt(zero()), S::splat(-1.0), S::select(zero::<S>().lt(x), one(), x + zero()));
    Asin |x| by_lane(x, |x| f64::from(x).asin() as f32);
    Acos |x| by_lane(x, |x| f64::from(x).acos() as f32);
    Atan |x| by_lane(x, |x| f64::from(x).atan() as f32);
    Sinh |x| by_lane(x, |x| f64::from(x).sinh() as f32);
    Cosh |x| by_lane(x, |x| f64::from(x).cosh() as f32);
    Asinh |x| by_lane(x, |x| f64::from(x).asinh() as f32);
    Acosh |x| by_lane(x, |x| f64::from(x).acosh() as f32);
    Atanh |x| by_lane(x, |x| f64::from(x).atanh() as f32);
    Not |x| truth(x.equal(zero()));
    IsNan |x| S::select(x.equal(x), zero(), one());
    IsNegativeInfinity |x| truth(x.equal(S::splat(f32::NEG_INFINITY)));
    IsPositiveInfinity |x| truth(x.equal(S::splat(f32::INFINITY)));
    IsInfinite |x| truth(x.abs().equal(S::splat(f32::INFINITY)));
    IsFinite |x| truth(x.abs().lt(S::splat(f32::INFINITY)));
    Never |x| x.and_bits(0);
}

binary! {
    Add |a, b| a + b;
    Sub |a, b| a - b;
    Mul |a, b| a * b;
    Div |a, b| a / b;
    Max |a, b| b.max(a);
    Min |a, b| b.min(a);
    Pow |a, b| f::pow(a, b);
    SquaredDifference |a, b| {
        let d = a - b;
        d * d
    };
    Mod |a, b| by_lane2(a, b, |a, b| {
        let (a, b) = (f64::from(a), f64::from(b));
        (a - b * (a / b).trunc()) as f32
    });
    FloorMod |a, b| by_lane2(a, b, |a, b| {
        let (a, b) = (f64::from(a), f64::from(b));
        (a - b * (a / b).floor()) as f32
    });
    PRelu |a, b| S::select(a.lt(zero()), a * b, a);
    Equal |a, b| truth(a.equal(b));
    NotEqual |a, b| S::select(a.equal(b), zero(), one());
    Less |a, b| truth(a.lt(b));
    LessEqual |a, b| truth(a.le(b));
    Greater |a, b| truth(b.lt(a));
    GreaterEqual |a, b| truth(b.le(a));
    And |a, b| S::select(a.equal(zero()), zero(), as_truth(b));
    Or |a, b| S::select(a.equal(zero()), as_truth(b), one());
    Xor |a, b| {
        let other = as_truth(b);
        S::select(a.equal(zero()), other, one::<S>() - other)
    };
}

/// Limits numbers to a range, rounds them to equal steps of it and stretches the steps over another range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantize {
    low: f32,
    range: f32,
    steps: f32,
    out_low: f32,
    out_range: f32,
    /// Of range and steps.
    inverse: [f32; 2],
}

impl Quantize {
    /// `None` for ranges that do not rise, or are too small or large for the way it divides.
    pub fn new([low, high]: [f32; 2], [out_low, out_high]: [f32; 2], steps: f32) -> Option<Quantize> {
        let (range, out_range) = (high - low, out_high - out_low);
        let inverse = [1.0 / range, 1.0 / steps];
        let usual = (1e-15..1e15).contains(&range) && (1.0..1e7).contains(&steps) && low.is_finite();
        usual.then_some(Quantize { low, range, steps, out_low, out_range, inverse })
    }
}

/// The quotient as division gives it, by a divisor whose rounded inverse is known; for numbers of usual size.
#[inline(always)]
fn quotient<S: Simd>(a: S, by: f32, inverse: f32) -> S {
    let (by, inverse) = (S::splat(by), S::splat(inverse));
    let near = a * inverse;
    near.fnma(by, a).fma(inverse, near)
}

impl Map for Quantize {
    #[inline(always)]
    fn at<S: Simd>(self, x: S) -> S {
        let inside = S::splat(self.range).min(zero::<S>().max(x - S::splat(self.low)));
        let step = (quotient(inside, self.range, self.inverse[0]) * S::splat(self.steps)).round_even();
        quotient(step, self.steps, self.inverse[1]) * S::splat(self.out_range) + S::splat(self.out_low)
    }
}

/// Rounds numbers to the steps of a grid: `(clamp(round(x / scale) + zero, low, high) - zero) * scale`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steps {
    scale: f32,
    zero: f32,
    low: f32,
    high: f32,
    inverse: f32,
}

impl Steps {
    /// `None` for scales too small or large for the way it divides.
    pub fn new(scale: f32, zero: f32, low: f32, high: f32) -> Option<Steps> {
        let usual = (1e-15..1e15).contains(&scale) && [zero, low, high].iter().all(|x| x.abs() < 1e7);
        usual.then_some(Steps { scale, zero, low, high, inverse: 1.0 / scale })
    }
}

impl Map for Steps {
    #[inline(always)]
    fn at<S: Simd>(self, x: S) -> S {
        let (zero, scale) = (S::splat(self.zero), S::splat(self.scale));
        // Far beyond all steps the quotient would be none.
        let reach = (self.high - self.low + self.zero.abs() + 2.0) * self.scale;
        let x = S::splat(reach).min(S::splat(-reach).max(x));
        let step = quotient(x, self.scale, self.inverse).round_even() + zero;
        (S::splat(self.high).min(S::splat(self.low).max(step)) - zero) * scale
    }
}

#[derive(Clone, Copy)]
pub(super) struct MulAdd;
impl Map3 for MulAdd {
    #[inline(always)]
    fn at<S: Simd>(self, a: S, b: S, c: S) -> S {
        a.fma(b, c)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Select;
impl Map3 for Select {
    #[inline(always)]
    fn at<S: Simd>(self, a: S, b: S, c: S) -> S {
        S::select(a.equal(zero()), c, b)
    }
}
