//! Arithmetic on elements. Before version 7 the two sides of an arithmetic operation meet only when `broadcast` says so,
//! and then the second begins at `axis` of the first; from 7 on they meet as in numpy.

use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Op, Result, Value};
use carafe_ops::arithmetic::{
    Add, AutoBroadcast, Divide, FloorMod, Maximum, Minimum, Mod, Multiply, Power, Subtract,
};
use carafe_ops::compare::Less;
use carafe_ops::indexing::Select;
use carafe_ops::logic::LogicalAnd;
use carafe_ops::math::{self, round::RoundMode};
use carafe_ops::carafe;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Abs", 1, |n| same(n, math::Abs)),
    rule("Acos", 7, |n| same(n, math::Acos)),
    rule("Acosh", 9, |n| same(n, math::Acosh)),
    rule("Add", 1, |n| legacy(n, |mode, axis| Add { auto_broadcast: mode, auto_broadcast_axis: axis })),
    rule("Add", 7, |n| binary(n, Add::default())),
    rule("Asin", 7, |n| same(n, math::Asin)),
    rule("Asinh", 9, |n| same(n, math::Asinh)),
    rule("Atan", 7, |n| same(n, math::Atan)),
    rule("Atanh", 9, |n| same(n, math::Atanh)),
    rule("Ceil", 1, |n| same(n, math::Ceiling)),
    rule("Cos", 7, |n| same(n, math::Cos)),
    rule("Cosh", 9, |n| same(n, math::Cosh)),
    rule("Det", 11, |n| same(n, carafe::Det)),
    rule("Div", 1, |n| {
        legacy(n, |mode, axis| Divide { m_pythondiv: false, auto_broadcast: mode, auto_broadcast_axis: axis })
    }),
    rule("Div", 7, |n| binary(n, Divide { m_pythondiv: false, ..Divide::default() })),
    rule("Erf", 9, |n| same(n, math::Erf)),
    rule("Exp", 1, |n| same(n, math::Exp)),
    rule("Floor", 1, |n| same(n, math::Floor)),
    rule("Log", 1, |n| same(n, math::Log)),
    rule("Max", 1, |n| chain(n, Maximum::default())),
    rule("Mean", 1, mean),
    rule("Min", 1, |n| chain(n, Minimum::default())),
    rule("Mod", 10, remainder),
    rule("Mul", 1, |n| legacy(n, |mode, axis| Multiply { auto_broadcast: mode, auto_broadcast_axis: axis })),
    rule("Mul", 7, |n| binary(n, Multiply::default())),
    rule("Neg", 1, |n| same(n, math::Negative)),
    rule("Pow", 1, |n| legacy(n, |mode, axis| Power { auto_broadcast: mode, auto_broadcast_axis: axis })),
    rule("Pow", 7, power),
    rule("Reciprocal", 1, reciprocal),
    rule("Round", 11, |n| same(n, math::Round { mode: RoundMode::HalfToEven })),
    rule("Sign", 9, |n| same(n, math::Sign)),
    rule("Sin", 7, |n| same(n, math::Sin)),
    rule("Sinh", 9, |n| same(n, math::Sinh)),
    rule("Sqrt", 1, |n| same(n, math::Sqrt)),
    rule("Sub", 1, |n| legacy(n, |mode, axis| Subtract { auto_broadcast: mode, auto_broadcast_axis: axis })),
    rule("Sub", 7, |n| binary(n, Subtract::default())),
    rule("Sum", 1, |n| chain(n, Add::default())),
    rule("Tan", 7, |n| same(n, math::Tan)),
    rule("Tanh", 1, |n| same(n, math::Tanh)),
];

/// One input, the same operation on our side.
pub(super) fn same<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    n.ignore(&["consumed_inputs"]);
    let x = n.input(0)?;
    Ok(n.emit(op, &[x])?.into())
}

/// Two inputs with numpy broadcasting.
pub(super) fn binary<O: Op>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    Ok(n.emit(op, &[a, b])?.into())
}

/// Two inputs as before version 7.
pub(super) fn legacy<O: Op>(
    n: &mut NodeCx<'_>,
    op: impl Fn(AutoBroadcast, Option<i64>) -> O,
) -> Result<Outputs> {
    n.ignore(&["consumed_inputs"]);
    let broadcast: bool = n.attr("broadcast", false)?;
    let axis: Option<i64> = n.opt_attr("axis")?;
    let (a, b) = (n.input(0)?, n.input(1)?);
    let Some(axis) = axis.filter(|_| broadcast) else {
        return Ok(n.emit(op(AutoBroadcast::Numpy, None), &[a, b])?.into());
    };
    let (Some(into), Some(from)) = (n.rank(a), n.rank(b)) else {
        return Ok(n.emit(op(AutoBroadcast::Pdpd, Some(axis)), &[a, b])?.into());
    };
    let axis = if axis < 0 { axis + into as i64 } else { axis };
    let behind = into as i64 - axis - from as i64;
    if axis < 0 || behind < 0 {
        return Err(n.fail(format!("the second input has {from} axes, which do not fit into {into} at axis {axis}")));
    }
    let ones: Vec<i64> = (0..behind).map(|i| from as i64 + i).collect();
    let b = if ones.is_empty() { b } else { n.unsqueeze(b, &ones)? };
    Ok(n.emit(op(AutoBroadcast::Numpy, None), &[a, b])?.into())
}

// Any number of inputs, joined from the left.
fn chain<O: Op + Clone>(n: &mut NodeCx<'_>, op: O) -> Result<Outputs> {
    Ok(joined(n, op)?.into())
}

fn joined<O: Op + Clone>(n: &mut NodeCx<'_>, op: O) -> Result<Value> {
    n.ignore(&["consumed_inputs"]);
    let inputs = n.inputs()?;
    let Some((&first, rest)) = inputs.split_first() else { return Err(n.fail("at least one input is needed")) };
    rest.iter().try_fold(first, |a, &b| n.emit(op.clone(), &[a, b]))
}

fn mean(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let sum = joined(n, Add::default())?;
    let count = n.scalar_like(sum, n.n_inputs() as f64)?;
    Ok(n.emit(Divide::default(), &[sum, count])?.into())
}

fn remainder(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let of_dividend: bool = n.attr("fmod", false)?;
    let (a, b) = (n.input(0)?, n.input(1)?);
    if !of_dividend && n.ty(a).is_float() && n.version() < 28 {
        return Err(n.fail("attribute `fmod` must be 1 for floats before opset 28, found 0"));
    }
    let rest = match of_dividend {
        true => n.emit(Mod::default(), &[a, b])?,
        false => n.emit(FloorMod::default(), &[a, b])?,
    };
    let finite = n.tensor(b).and_then(|t| t.to_vec::<f64>().ok().map(|v| v.iter().all(|x| x.is_finite())));
    if !n.ty(a).is_float() || finite == Some(true) {
        return Ok(rest.into());
    }
    // What is left of a finite number by infinity is that number, or the infinity where the sign must be the other one.
    let choice = || Select { auto_broadcast: AutoBroadcast::Numpy, auto_broadcast_axis: None };
    let endless = n.emit(math::IsInf { detect_negative: true, detect_positive: true }, &[b])?;
    let finite = n.emit(math::IsFinite, &[a])?;
    let special = n.emit(LogicalAnd::default(), &[endless, finite])?;
    let mut whole = a;
    if !of_dividend {
        let (sign, zero) = (n.emit(math::Sign, &[b])?, n.scalar_like(a, 0.0)?);
        let along = n.emit(Multiply::default(), &[a, sign])?;
        let against = n.emit(Less::default(), &[along, zero])?;
        whole = n.emit(choice(), &[against, b, a])?;
    }
    Ok(n.emit(choice(), &[special, whole, rest])?.into())
}

fn reciprocal(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["consumed_inputs"]);
    let x = n.input(0)?;
    let one = n.scalar_like(x, 1.0)?;
    Ok(n.emit(Divide::default(), &[one, x])?.into())
}

// The result has the type of the base; a float exponent of an integer base must keep its fraction until then.
fn power(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    let (base, exponent) = (n.ty(a), n.ty(b));
    if base.is_integer() && exponent.is_float() {
        let wide = if base.bits() > 16 { ElementType::F64 } else { exponent };
        let (x, y) = (n.convert(a, wide)?, n.convert(b, wide)?);
        let y = n.emit(Power::default(), &[x, y])?;
        return Ok(n.convert(y, base)?.into());
    }
    let b = n.convert_like(b, a)?;
    Ok(n.emit(Power::default(), &[a, b])?.into())
}
