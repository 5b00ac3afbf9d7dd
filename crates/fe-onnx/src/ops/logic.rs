//! Comparison, logic and bits. Comparisons and logic met as arithmetic did before version 7.

use super::elementwise::{binary, legacy, same};
use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::compare::{Equal, Greater, GreaterEqual, Less, LessEqual};
use carafe_ops::indexing::Select;
use carafe_ops::logic::{
    BitwiseAnd, BitwiseLeftShift, BitwiseNot, BitwiseOr, BitwiseRightShift, BitwiseXor, LogicalAnd, LogicalNot,
    LogicalOr, LogicalXor,
};
use carafe_ops::math::{IsFinite, IsInf, IsNaN};

pub(crate) const RULES: &[StaticRule] = &[
    rule("And", 1, |n| legacy(n, |mode, axis| LogicalAnd { auto_broadcast: mode, auto_broadcast_axis: axis })),
    rule("And", 7, |n| binary(n, LogicalAnd::default())),
    rule("BitShift", 11, bit_shift),
    rule("BitwiseAnd", 18, |n| binary(n, BitwiseAnd::default())),
    rule("BitwiseNot", 18, |n| same(n, BitwiseNot)),
    rule("BitwiseOr", 18, |n| binary(n, BitwiseOr::default())),
    rule("BitwiseXor", 18, |n| binary(n, BitwiseXor::default())),
    rule("Equal", 1, |n| legacy(n, |mode, axis| Equal { auto_broadcast: mode, auto_broadcast_axis: axis })),
    rule("Equal", 7, |n| binary(n, Equal::default())),
    rule("Greater", 1, |n| legacy(n, |mode, axis| Greater { auto_broadcast: mode, auto_broadcast_axis: axis })),
    rule("Greater", 7, |n| binary(n, Greater::default())),
    rule("GreaterOrEqual", 12, |n| binary(n, GreaterEqual::default())),
    rule("IsFinite", 1, |n| same(n, IsFinite)),
    rule("IsInf", 10, is_inf),
    rule("IsNaN", 9, |n| same(n, IsNaN)),
    rule("Less", 1, |n| legacy(n, |mode, axis| Less { auto_broadcast: mode, auto_broadcast_axis: axis })),
    rule("Less", 7, |n| binary(n, Less::default())),
    rule("LessOrEqual", 12, |n| binary(n, LessEqual::default())),
    rule("Not", 1, |n| same(n, LogicalNot)),
    rule("Or", 1, |n| legacy(n, |mode, axis| LogicalOr { auto_broadcast: mode, auto_broadcast_axis: axis })),
    rule("Or", 7, |n| binary(n, LogicalOr::default())),
    rule("Where", 9, choose),
    rule("Xor", 1, |n| legacy(n, |mode, axis| LogicalXor { auto_broadcast: mode, auto_broadcast_axis: axis })),
    rule("Xor", 7, |n| binary(n, LogicalXor::default())),
];

// Our shifts look only at the low bits of the distance. Here a distance that is negative or as wide as the type leaves only
// copies of what moves in: the sign on the way to the right, zeros otherwise.
fn bit_shift(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let direction: String = n.required("direction")?;
    let (a, b) = (n.input(0)?, n.input(1)?);
    let right = match direction.as_str() {
        "LEFT" => false,
        "RIGHT" => true,
        other => return Err(n.fail(format!("attribute `direction` must be LEFT or RIGHT, found {other}"))),
    };
    let shifted = match right {
        true => n.emit(BitwiseRightShift::default(), &[a, b])?,
        false => n.emit(BitwiseLeftShift::default(), &[a, b])?,
    };
    let ty = n.ty(a);
    let bits = ty.bits();
    let known = n.ints(b).is_some_and(|by| by.iter().all(|d| (0..bits as i64).contains(d)));
    if known || ty.is_dynamic() {
        return Ok(shifted.into());
    }
    let (width, zero) = (n.scalar_like(b, bits as f64)?, n.scalar_like(b, 0.0)?);
    let mut inside = n.emit(Less::default(), &[b, width])?;
    let mut filled = zero;
    if ty.is_signed() {
        let forward = n.emit(GreaterEqual::default(), &[b, zero])?;
        inside = n.emit(LogicalAnd::default(), &[inside, forward])?;
        if right {
            let all = n.scalar_like(b, bits as f64 - 1.0)?;
            filled = n.emit(BitwiseRightShift::default(), &[a, all])?;
        }
    }
    let op = Select { auto_broadcast: Default::default(), auto_broadcast_axis: None };
    Ok(n.emit(op, &[inside, shifted, filled])?.into())
}

fn is_inf(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (detect_negative, detect_positive) = (n.attr("detect_negative", true)?, n.attr("detect_positive", true)?);
    same(n, IsInf { detect_negative, detect_positive })
}

fn choose(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (condition, a, b) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let op = Select { auto_broadcast: Default::default(), auto_broadcast_axis: None };
    Ok(n.emit(op, &[condition, a, b])?.into())
}
