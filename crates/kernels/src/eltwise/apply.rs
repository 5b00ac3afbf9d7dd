//! One operation on one block: `rows` rows of `columns` floats, where each argument is a vector or one number along a row.

use super::op::{self, EltOp, Map2, Map3};
use crate::vmath::act::with_act;
use crate::vmath::{self, Map, simd::Simd, simd::level};
use crate::{Act, Isa};

/// Where an argument begins; `step` is 1, or 0 for one number a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source {
    pub at: *const f32,
    pub step: usize,
    /// Floats from row to row.
    pub row: usize,
}

impl Source {
    pub(super) const NONE: Source = Source { at: std::ptr::null(), step: 0, row: 0 };
}

/// Where the result goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub at: *mut f32,
    /// Floats from row to row.
    pub row: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub rows: usize,
    pub columns: usize,
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
            unsafe { unary(isa, $map, a, to, area) }
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

/// The body for every vector of a row, with the column and, for the last one, how many lanes are left. A macro and no
/// function: a closure would be compiled without the instructions of the level.
macro_rules! row {
    ($S:ident, $columns:expr, $to:expr, |$i:ident, $n:ident| $body:expr) => {{
        let (columns, to): (usize, *mut f32) = ($columns, $to);
        let mut $i = 0;
        while $i + $S::N <= columns {
            let $n: Option<usize> = None;
            let y: $S = $body;
            y.store(to.add($i));
            $i += $S::N;
        }
        if $i < columns {
            let $n = Some(columns - $i);
            let y: $S = $body;
            y.store_part(to.add($i), columns - $i);
        }
    }};
}

/// The lanes of an argument at a column: of the vector, or the one number already spread.
#[inline(always)]
unsafe fn lanes<S: Simd, const VECTOR: bool>(at: *const f32, spread: S, i: usize, n: Option<usize>) -> S {
    // SAFETY: the caller's promise.
    unsafe {
        match n {
            _ if !VECTOR => spread,
            None => S::load(at.add(i)),
            Some(n) => S::load_part(at.add(i), n),
        }
    }
}

unsafe fn unary<M: Map>(isa: Isa, map: M, a: Source, to: Target, area: Area) {
    // SAFETY: `level!` checks the machine; the rest is the caller's promise.
    unsafe {
        level!(isa, <S, M: Map>(map: M, a: Source, to: Target, area: Area) {
            for r in 0..area.rows {
                let (pa, pt) = (a.at.add(r * a.row), to.at.add(r * to.row));
                if a.step == 1 {
                    row!(S, area.columns, pt, |i, n| map.at(lanes::<S, true>(pa, S::splat(0.0), i, n)));
                } else if area.columns > 0 {
                    let y = map.at(S::splat(*pa));
                    row!(S, area.columns, pt, |i, _n| y);
                }
            }
        })
    }
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
        if area.columns == 0 {
            return;
        }
        for r in 0..area.rows {
            // SAFETY: the caller's promise; there is at least one column.
            unsafe {
                let (pa, pb) = (a.at.add(r * a.row), b.at.add(r * b.row));
                let (sa, sb) = (S::splat(*pa), S::splat(*pb));
                row!(S, area.columns, to.at.add(r * to.row), |i, n| {
                    map.at(lanes::<S, A>(pa, sa, i, n), lanes::<S, B>(pb, sb, i, n))
                });
            }
        }
    }
    // SAFETY: `level!` checks the machine; the rest is the caller's promise.
    unsafe {
        level!(isa, <S, M: Map2>(map: M, a: Source, b: Source, to: Target, area: Area) {
            match (a.step, b.step) {
                (1, 1) => rows::<S, M, true, true>(map, a, b, to, area),
                (1, _) => rows::<S, M, true, false>(map, a, b, to, area),
                (_, 1) => rows::<S, M, false, true>(map, a, b, to, area),
                _ => rows::<S, M, false, false>(map, a, b, to, area),
            }
        })
    }
}

unsafe fn ternary<M: Map3>(isa: Isa, map: M, a: Source, b: Source, c: Source, to: Target, area: Area) {
    #[inline(always)]
    unsafe fn rows<S: Simd, M: Map3, const A: bool, const B: bool, const C: bool>(
        map: M,
        [a, b, c]: [Source; 3],
        to: Target,
        area: Area,
    ) {
        if area.columns == 0 {
            return;
        }
        for r in 0..area.rows {
            // SAFETY: the caller's promise; there is at least one column.
            unsafe {
                let (pa, pb, pc) = (a.at.add(r * a.row), b.at.add(r * b.row), c.at.add(r * c.row));
                let (sa, sb, sc) = (S::splat(*pa), S::splat(*pb), S::splat(*pc));
                row!(S, area.columns, to.at.add(r * to.row), |i, n| {
                    map.at(lanes::<S, A>(pa, sa, i, n), lanes::<S, B>(pb, sb, i, n), lanes::<S, C>(pc, sc, i, n))
                });
            }
        }
    }
    // SAFETY: `level!` checks the machine; the rest is the caller's promise.
    unsafe {
        level!(isa, <S, M: Map3>(map: M, a: Source, b: Source, c: Source, to: Target, area: Area) {
            let all = [a, b, c];
            match (a.step, b.step, c.step) {
                (1, 1, 1) => rows::<S, M, true, true, true>(map, all, to, area),
                (1, 1, _) => rows::<S, M, true, true, false>(map, all, to, area),
                (1, _, 1) => rows::<S, M, true, false, true>(map, all, to, area),
                (1, _, _) => rows::<S, M, true, false, false>(map, all, to, area),
                (_, 1, 1) => rows::<S, M, false, true, true>(map, all, to, area),
                (_, 1, _) => rows::<S, M, false, true, false>(map, all, to, area),
                (_, _, 1) => rows::<S, M, false, false, true>(map, all, to, area),
                _ => rows::<S, M, false, false, false>(map, all, to, area),
            }
        })
    }
}
