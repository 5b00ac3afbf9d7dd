//! Elementwise operations of other types than f32, one at a time, with the same broadcasting. Integers wrap; the compiler
//! vectorises the loops for each level.

use super::Broadcast;
use super::rows::{Dense, Pair, check, dense, each_row};
use crate::Exec;
use crate::simd::dispatch;
use std::fmt;

/// A type that is moved without being looked at.
pub trait Element: bytemuck::Pod + Send + Sync {}

impl<T: bytemuck::Pod + Send + Sync> Element for T {}

/// A type that can be computed with.
pub trait Numeric: bytemuck::Pod + PartialOrd + Send + Sync + fmt::Debug {
    const ZERO: Self;
    /// Whether a division by zero has no result.
    const INTEGER: bool;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    /// Toward zero.
    fn div(self, other: Self) -> Self;
    /// Toward minus infinity; floats as [`Numeric::div`].
    fn div_floor(self, other: Self) -> Self;
    /// With the sign of the dividend.
    fn rem(self, other: Self) -> Self;
    /// With the sign of the divisor.
    fn rem_floor(self, other: Self) -> Self;
    /// The loops of this type.
    #[doc(hidden)]
    fn compiled() -> &'static Compiled<Self>;
}

/// What is compiled for each type, once and as this crate is built: a generic function would be compiled in the crate that calls
/// it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Compiled<T: Numeric> {
    arithmetic: fn(&Exec<'_>, Arithmetic, &Broadcast, &[T], &[T], &mut [T]) -> Result<(), ZeroDivisor>,
    compare: fn(&Exec<'_>, Comparison, &Broadcast, &[T], &[T], &mut [u8]),
    logical: fn(&Exec<'_>, Logic, &Broadcast, &[T], &[T], &mut [u8]),
    logical_not: fn(&[T], &mut [u8]),
}

impl<T: Numeric> Compiled<T> {
    const ALL: Compiled<T> = Compiled {
        arithmetic: arithmetic_any,
        compare: compare_any,
        logical: logical_any,
        logical_not: logical_not_any,
    };
}

macro_rules! integers {
    ($($t:ident)*) => {$(
        impl Numeric for $t {
            const ZERO: $t = 0;
            const INTEGER: bool = true;
            fn compiled() -> &'static Compiled<$t> {
                static ALL: Compiled<$t> = Compiled::ALL;
                &ALL
            }
            #[inline(always)]
            fn add(self, other: $t) -> $t {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: $t) -> $t {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: $t) -> $t {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn div(self, other: $t) -> $t {
                self.wrapping_div(other)
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn div_floor(self, other: $t) -> $t {
                let above = self.wrapping_rem(other) != 0 && (self < 0) != (other < 0);
                self.wrapping_div(other).wrapping_sub($t::from(above))
            }
            #[inline(always)]
            fn rem(self, other: $t) -> $t {
                self.wrapping_rem(other)
            }
            #[inline(always)]
            #[allow(unused_comparisons)]
            fn rem_floor(self, other: $t) -> $t {
                let rest = self.wrapping_rem(other);
                if rest != 0 && (rest < 0) != (other < 0) { rest.wrapping_add(other) } else { rest }
            }
        }
    )*};
}

integers! { i8 i16 i32 i64 u8 u16 u32 u64 }

macro_rules! floats {
    ($($t:ident)*) => {$(
        impl Numeric for $t {
            const ZERO: $t = 0.0;
            const INTEGER: bool = false;
            fn compiled() -> &'static Compiled<$t> {
                static ALL: Compiled<$t> = Compiled::ALL;
                &ALL
            }
            #[inline(always)]
            fn add(self, other: $t) -> $t {
                self + other
            }
            #[inline(always)]
            fn sub(self, other: $t) -> $t {
                self - other
            }
            #[inline(always)]
            fn mul(self, other: $t) -> $t {
                self * other
            }
            #[inline(always)]
            fn div(self, other: $t) -> $t {
                self / other
            }
            #[inline(always)]
            fn div_floor(self, other: $t) -> $t {
                self / other
            }
            #[inline(always)]
            fn rem(self, other: $t) -> $t {
                let (a, b) = (f64::from(self), f64::from(other));
                (a - b * (a / b).trunc()) as $t
            }
            #[inline(always)]
            fn rem_floor(self, other: $t) -> $t {
                let (a, b) = (f64::from(self), f64::from(other));
                (a - b * (a / b).floor()) as $t
            }
        }
    )*};
}

floats! { f32 f64 }

/// Arithmetic of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    Add,
    Sub,
    Mul,
    /// Integers toward zero.
    Div,
    /// Integers toward minus infinity.
    DivFloor,
    /// The first where they do not compare.
    Max,
    /// The first where they do not compare.
    Min,
    /// With the sign of the dividend.
    Mod,
    /// With the sign of the divisor.
    FloorMod,
    SquaredDifference,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logic {
    And,
    Or,
    Xor,
}

/// An integer was to be divided by zero; nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroDivisor;

impl fmt::Display for ZeroDivisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("integer division by zero")
    }
}

impl std::error::Error for ZeroDivisor {}

macro_rules! pairs {
    ($($Name:ident<$T:ident: $Bound:ident> -> $U:ty, |$a:ident, $b:ident| $body:expr;)*) => {$(
        #[derive(Clone, Copy, Default)]
        struct $Name;
        impl<$T: $Bound> Pair<$T, $U> for $Name {
            #[inline(always)]
            fn at(self, $a: $T, $b: $T) -> $U {
                $body
            }
        }
    )*};
}

pairs! {
    Add<T: Numeric> -> T, |a, b| a.add(b);
    Sub<T: Numeric> -> T, |a, b| a.sub(b);
    Mul<T: Numeric> -> T, |a, b| a.mul(b);
    Div<T: Numeric> -> T, |a, b| a.div(b);
    DivFloor<T: Numeric> -> T, |a, b| a.div_floor(b);
    Max<T: Numeric> -> T, |a, b| if a < b { b } else { a };
    Min<T: Numeric> -> T, |a, b| if b < a { b } else { a };
    Mod<T: Numeric> -> T, |a, b| a.rem(b);
    FloorMod<T: Numeric> -> T, |a, b| a.rem_floor(b);
    SquaredDifference<T: Numeric> -> T, |a, b| a.sub(b).mul(a.sub(b));
    Equal<T: Numeric> -> u8, |a, b| u8::from(a == b);
    NotEqual<T: Numeric> -> u8, |a, b| u8::from(a != b);
    Less<T: Numeric> -> u8, |a, b| u8::from(a < b);
    LessEqual<T: Numeric> -> u8, |a, b| u8::from(a <= b);
    Greater<T: Numeric> -> u8, |a, b| u8::from(a > b);
    GreaterEqual<T: Numeric> -> u8, |a, b| u8::from(a >= b);
    And<T: Numeric> -> u8, |a, b| u8::from((a != T::ZERO) & (b != T::ZERO));
    Or<T: Numeric> -> u8, |a, b| u8::from((a != T::ZERO) | (b != T::ZERO));
    Xor<T: Numeric> -> u8, |a, b| u8::from((a != T::ZERO) != (b != T::ZERO));
}

/// `out = a op b`. Refuses to divide an integer by zero.
pub fn arithmetic<T: Numeric>(
    exec: &Exec<'_>,
    op: Arithmetic,
    shapes: &Broadcast,
    a: &[T],
    b: &[T],
    out: &mut [T],
) -> Result<(), ZeroDivisor> {
    (T::compiled().arithmetic)(exec, op, shapes, a, b, out)
}

fn arithmetic_any<T: Numeric>(
    exec: &Exec<'_>,
    op: Arithmetic,
    shapes: &Broadcast,
    a: &[T],
    b: &[T],
    out: &mut [T],
) -> Result<(), ZeroDivisor> {
    use Arithmetic as A;
    let divides = matches!(op, A::Div | A::DivFloor | A::Mod | A::FloorMod);
    // Without an output nothing is divided.
    if T::INTEGER && divides && !out.is_empty() && b.contains(&T::ZERO) {
        return Err(ZeroDivisor);
    }
    let row = match op {
        A::Add => dense(exec, Add),
        A::Sub => dense(exec, Sub),
        A::Mul => dense(exec, Mul),
        A::Div => dense(exec, Div),
        A::DivFloor => dense(exec, DivFloor),
        A::Max => dense(exec, Max),
        A::Min => dense(exec, Min),
        A::Mod => dense(exec, Mod),
        A::FloorMod => dense(exec, FloorMod),
        A::SquaredDifference => dense(exec, SquaredDifference),
    };
    row.run(exec, shapes, a, b, out);
    Ok(())
}

/// 1 where it holds, else 0.
pub fn compare<T: Numeric>(exec: &Exec<'_>, op: Comparison, shapes: &Broadcast, a: &[T], b: &[T], out: &mut [u8]) {
    (T::compiled().compare)(exec, op, shapes, a, b, out);
}

fn compare_any<T: Numeric>(exec: &Exec<'_>, op: Comparison, shapes: &Broadcast, a: &[T], b: &[T], out: &mut [u8]) {
    let row: Dense<T, u8> = match op {
        Comparison::Equal => dense(exec, Equal),
        Comparison::NotEqual => dense(exec, NotEqual),
        Comparison::Less => dense(exec, Less),
        Comparison::LessEqual => dense(exec, LessEqual),
        Comparison::Greater => dense(exec, Greater),
        Comparison::GreaterEqual => dense(exec, GreaterEqual),
    };
    row.run(exec, shapes, a, b, out);
}

/// Of booleans, or of numbers where all but 0 are true.
pub fn logical<T: Numeric>(exec: &Exec<'_>, op: Logic, shapes: &Broadcast, a: &[T], b: &[T], out: &mut [u8]) {
    (T::compiled().logical)(exec, op, shapes, a, b, out);
}

fn logical_any<T: Numeric>(exec: &Exec<'_>, op: Logic, shapes: &Broadcast, a: &[T], b: &[T], out: &mut [u8]) {
    let row: Dense<T, u8> = match op {
        Logic::And => dense(exec, And),
        Logic::Or => dense(exec, Or),
        Logic::Xor => dense(exec, Xor),
    };
    row.run(exec, shapes, a, b, out);
}

/// 1 where it is 0, else 0.
pub fn logical_not<T: Numeric>(a: &[T], out: &mut [u8]) {
    (T::compiled().logical_not)(a, out);
}

fn logical_not_any<T: Numeric>(a: &[T], out: &mut [u8]) {
    assert_eq!(a.len(), out.len(), "as many results as numbers");
    out.iter_mut().zip(a).for_each(|(y, &x)| *y = u8::from(x == T::ZERO));
}

/// `condition != 0 ? a : b`; the inputs of `shapes` are condition, a, b.
pub fn select<T: Element>(exec: &Exec<'_>, shapes: &Broadcast, condition: &[u8], a: &[T], b: &[T], out: &mut [T]) {
    let bytes = bytemuck::cast_slice::<T, u8>;
    select_bytes(exec, shapes, condition, size_of::<T>(), [bytes(a), bytes(b)], bytemuck::cast_slice_mut(out));
}

// Elements are told apart by their size, and the loops are compiled in this crate.
fn select_bytes(exec: &Exec<'_>, shapes: &Broadcast, condition: &[u8], size: usize, from: [&[u8]; 2], out: &mut [u8]) {
    fn of<T: Element>(exec: &Exec<'_>, shapes: &Broadcast, condition: &[u8], [a, b]: [&[u8]; 2], out: &mut [u8]) {
        let elements = bytemuck::cast_slice::<u8, T>;
        select_any(exec, shapes, condition, elements(a), elements(b), bytemuck::cast_slice_mut::<u8, T>(out));
    }
    match size {
        1 => of::<u8>(exec, shapes, condition, from, out),
        2 => of::<u16>(exec, shapes, condition, from, out),
        4 => of::<u32>(exec, shapes, condition, from, out),
        8 => of::<u64>(exec, shapes, condition, from, out),
        _ => panic!("elements of {size} bytes"),
    }
}

fn select_any<T: Element>(exec: &Exec<'_>, shapes: &Broadcast, condition: &[u8], a: &[T], b: &[T], out: &mut [T]) {
    assert_eq!(shapes.inputs(), 3, "three shapes");
    assert!(condition.len() >= shapes.input_len(0), "the condition has {} elements", condition.len());
    check(shapes, [(1, a.len()), (2, b.len())], out.len());
    let (isa, steps) = (exec.isa, [0, 1, 2].map(|i| shapes.inner_steps(i).1));
    each_row(exec, shapes, out, 1, |at: [usize; 3], out: &mut [T]| {
        if out.is_empty() {
            return;
        }
        let last = |k: usize| at[k] + (out.len() - 1) * steps[k];
        let (condition, a, b) = (&condition[at[0]..=last(0)], &a[at[1]..=last(1)], &b[at[2]..=last(2)]);
        // SAFETY: the body is safe code; `dispatch!` checks the machine.
        unsafe {
            dispatch!(isa, <'a, S, T: Element>(condition: &'a [u8], a: &'a [T], b: &'a [T], out: &'a mut [T], steps: [usize; 3]) {
                // Both are read, so that the loop has no branch.
                let either = |c: u8, a: T, b: T| if c != 0 { a } else { b };
                let (first, other) = (a[0], b[0]);
                let (c, y) = (condition, out.iter_mut());
                match steps {
                    [1, 1, 1] => y.zip(c).zip(a.iter().zip(b)).for_each(|((y, &c), (&a, &b))| *y = either(c, a, b)),
                    [1, 1, 0] => y.zip(c).zip(a).for_each(|((y, &c), &a)| *y = either(c, a, other)),
                    [1, 0, 1] => y.zip(c).zip(b).for_each(|((y, &c), &b)| *y = either(c, first, b)),
                    [1, 0, 0] => y.zip(c).for_each(|(y, &c)| *y = either(c, first, other)),
                    [0, s, t] => {
                        let (from, step) = if c[0] != 0 { (a, s) } else { (b, t) };
                        y.enumerate().for_each(|(i, y)| *y = from[i * step]);
                    }
                    [r, s, t] => y.enumerate().for_each(|(i, y)| *y = either(c[i * r], a[i * s], b[i * t])),
                }
            })
        }
    });
}
