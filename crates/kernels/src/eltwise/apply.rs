//! One operation on one block: `rows` rows of `columns` floats, where each argument is a vector or one number along a row.

use super::op::{self, EltOp, Map2, Map3};
use crate::simd::{Simd, dispatch};
use crate::vmath::act::with_act;
use crate::vmath::{self, fill, map_rows, put, take};
pub(super) use crate::vmath::{Area, Source, Target};
use crate::{Act, Isa};

impl Source {
    pub(super) const NONE: Source = Source { at: std::ptr::null(), step: 0, row: 0 };
}

impl Area {
    /// One long row, when nothing lies between the rows.
    fn joined(self, sources: &[Source], to: Target) -> Area {
        let dense = |s: &Source| if s.step == 0 { s.row == 0 } else { s.row == self.columns };
        if to.row == self.columns && sources.iter().all(dense) {
            return Area { rows: 1, columns: self.rows * self.columns };
        }
        self
    }
}

/// # Safety
/// Every argument that the operation takes can be read for the whole area and the target be written; an argument is the
/// target itself or does not overlap it.
pub(super) unsafe fn apply(isa: Isa, op: EltOp, args: &[Source; 3], to: Target, area: Area) {
    let [a, b, c] = *args;
    let area = area.joined(&args[..op.arity()], to);
    macro_rules! one {
        ($map:expr) => {
            // SAFETY: the caller's promise.
            unsafe { map_rows(isa, $map, a, to, area) }
        };
    }
    macro_rules! two {
        ($map:expr) => {
            // SAFETY: the caller's promise.
            unsafe { binary(isa, $map, a, b, to, area) }
        };
    }
    macro_rules! three {
        ($map:expr) => {
            // SAFETY: the caller's promise.
            unsafe { ternary(isa, $map, a, b, c, to, area) }
        };
    }
    match op {
        EltOp::Act(act) => with_act!(act, map => one!(map), none => one!(op::Same)),
        EltOp::Abs => one!(op::Abs),
        EltOp::Neg => one!(op::Neg),
        EltOp::Exp => one!(vmath::Exp),
        EltOp::Log => one!(vmath::Log),
        EltOp::Sqrt => one!(vmath::Sqrt),
        EltOp::PowHalf => one!(op::PowHalf),
        EltOp::Rsqrt => one!(vmath::Rsqrt),
        EltOp::Reciprocal => one!(op::Reciprocal),
        EltOp::Square => one!(op::Square),
        EltOp::Floor => one!(vmath::Floor),
        EltOp::Ceil => one!(vmath::Ceil),
        EltOp::Trunc => one!(op::Trunc),
        EltOp::RoundEven => one!(vmath::RoundEven),
        EltOp::RoundAway => one!(op::RoundAway),
        EltOp::Sign => one!(op::Sign),
        EltOp::Sin => one!(vmath::Sin),
        EltOp::Cos => one!(vmath::Cos),
        EltOp::Tan => one!(vmath::Tan),
        EltOp::Asin => one!(op::Asin),
        EltOp::Acos => one!(op::Acos),
        EltOp::Atan => one!(op::Atan),
        EltOp::Sinh => one!(op::Sinh),
        EltOp::Cosh => one!(op::Cosh),
        EltOp::Asinh => one!(op::Asinh),
        EltOp::Acosh => one!(op::Acosh),
        EltOp::Atanh => one!(op::Atanh),
        EltOp::Erf => one!(vmath::Erf),
        EltOp::Not => one!(op::Not),
        EltOp::IsNan => one!(op::IsNan),
        EltOp::IsInf { negative: true, positive: true } => one!(op::IsInfinite),
        EltOp::IsInf { negative: true, positive: false } => one!(op::IsNegativeInfinity),
        EltOp::IsInf { negative: false, positive: true } => one!(op::IsPositiveInfinity),
        EltOp::IsInf { negative: false, positive: false } => one!(op::Never),
        EltOp::IsFinite => one!(op::IsFinite),
        EltOp::Quantize(map) => one!(map),
        EltOp::RoundTrip(map) => one!(map),
        EltOp::Add => two!(op::Add),
        EltOp::Sub => two!(op::Sub),
        EltOp::Mul => two!(op::Mul),
        EltOp::Div => two!(op::Div),
        EltOp::Max => two!(op::Max),
        EltOp::Min => two!(op::Min),
        EltOp::Pow => two!(op::Pow),
        EltOp::SquaredDifference => two!(op::SquaredDifference),
        EltOp::Mod => two!(op::Mod),
        EltOp::FloorMod => two!(op::FloorMod),
        EltOp::PRelu => two!(op::PRelu),
        EltOp::Equal => two!(op::Equal),
        EltOp::NotEqual => two!(op::NotEqual),
        EltOp::Less => two!(op::Less),
        EltOp::LessEqual => two!(op::LessEqual),
        EltOp::Greater => two!(op::Greater),
        EltOp::GreaterEqual => two!(op::GreaterEqual),
        EltOp::And => two!(op::And),
        EltOp::Or => two!(op::Or),
        EltOp::Xor => two!(op::Xor),
        EltOp::MulAdd => three!(op::MulAdd),
        EltOp::Select => three!(op::Select),
    }
}

/// The lanes of an argument from column `i` on: of the vector, or the one number already spread.
#[inline(always)]
unsafe fn lanes<S: Simd, const VECTOR: bool>(at: *const f32, spread: S, i: usize, left: usize) -> S {
    // SAFETY: the caller's promise.
    unsafe { if VECTOR { take(at, i, left) } else { spread } }
}

unsafe fn binary<M: Map2>(isa: Isa, map: M, a: Source, b: Source, to: Target, area: Area) {
    #[inline(always)]
    unsafe fn rows<S: Simd, M: Map2, const A: bool, const B: bool>(
        map: M,
        a: Source,
        b: Source,
        to: Target,
        area: Area,
    ) {
        for r in 0..area.rows {
            // SAFETY: the caller's promise; there is at least one column.
            unsafe {
                let (pa, pb, pt) = (a.at.add(r * a.row), b.at.add(r * b.row), to.at.add(r * to.row));
                let (sa, sb) = (S::splat(*pa), S::splat(*pb));
                let mut i = 0;
                while i < area.columns {
                    let left = area.columns - i;
                    put(map.at(lanes::<S, A>(pa, sa, i, left), lanes::<S, B>(pb, sb, i, left)), pt, i, left);
                    i += S::N;
                }
            }
        }
    }
    if area.columns == 0 {
        return;
    }
    // SAFETY: `dispatch!` checks the machine; the rest is the caller's promise.
    unsafe {
        dispatch!(isa, <S, M: Map2>(map: M, a: Source, b: Source, to: Target, area: Area) {
            match (a.step, b.step) {
                (1, 1) => rows::<S, M, true, true>(map, a, b, to, area),
                (1, _) => rows::<S, M, true, false>(map, a, b, to, area),
                (_, 1) => rows::<S, M, false, true>(map, a, b, to, area),
                _ => {
                    // One result a row: as if there were one column, and then all along.
                    rows::<S, M, true, false>(map, a, b, to, Area { columns: 1, ..area });
                    for r in 0..area.rows {
                        let pt = to.at.add(r * to.row);
                        fill(S::splat(*pt), pt, area.columns);
                    }
                }
            }
        })
    }
}

unsafe fn ternary<M: Map3>(isa: Isa, map: M, a: Source, b: Source, c: Source, to: Target, area: Area) {
    #[inline(always)]
    unsafe fn rows<S: Simd, M: Map3, const B: bool, const C: bool>(map: M, all: [Source; 3], to: Target, area: Area) {
        let [a, b, c] = all;
        for r in 0..area.rows {
            // SAFETY: the caller's promise; there is at least one column.
            unsafe {
                let (pa, pb, pc) = (a.at.add(r * a.row), b.at.add(r * b.row), c.at.add(r * c.row));
                let (sa, sb, sc, pt) = (S::splat(*pa), S::splat(*pb), S::splat(*pc), to.at.add(r * to.row));
                let mut i = 0;
                while i < area.columns {
                    let left = area.columns - i;
                    let first = if a.step == 1 { lanes::<S, true>(pa, sa, i, left) } else { sa };
                    let y = map.at(first, lanes::<S, B>(pb, sb, i, left), lanes::<S, C>(pc, sc, i, left));
                    put(y, pt, i, left);
                    i += S::N;
                }
            }
        }
    }
    if area.columns == 0 {
        return;
    }
    // SAFETY: `dispatch!` checks the machine; the rest is the caller's promise.
    unsafe {
        dispatch!(isa, <S, M: Map3>(map: M, a: Source, b: Source, c: Source, to: Target, area: Area) {
            let all = [a, b, c];
            match (b.step, c.step) {
                (1, 1) => rows::<S, M, true, true>(map, all, to, area),
                (1, _) => rows::<S, M, true, false>(map, all, to, area),
                (_, 1) => rows::<S, M, false, true>(map, all, to, area),
                _ => rows::<S, M, false, false>(map, all, to, area),
            }
        })
    }
}
