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
use carafe_tensor::ElementType;

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

// Our shifts look only at the low bits of the distance; here everything is shifted out by a distance as wide as the type.
fn bit_shift(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let direction: String = n.required("direction")?;
    let (a, b) = (n.input(0)?, n.input(1)?);
    let shifted = match direction.as_str() {
        "LEFT" => n.emit(BitwiseLeftShift::default(), &[a, b])?,
        "RIGHT" => n.emit(BitwiseRightShift::default(), &[a, b])?,
        other => return Err(n.fail(format!("attribute `direction` must be LEFT or RIGHT, found {other}"))),
    };
    let bits = match n.ty(a) {
        ElementType::Dynamic => return Ok(shifted.into()),
        ty => ty.bits(),
    };
    let known = n.ints(b).is_some_and(|by| by.iter().all(|d| (0..bits as i64).contains(d)));
    if known {
        return Ok(shifted.into());
    }
    let (bits, zero) = (n.scalar_like(b, bits as f64)?, n.scalar_like(a, 0.0)?);
    let inside = n.emit(Less::default(), &[b, bits])?;
    Ok(n.emit(Select { auto_broadcast: Default::default(), auto_broadcast_axis: None }, &[inside, shifted, zero])?.into())
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
