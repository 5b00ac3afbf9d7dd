//! Arithmetic with a number of the node, `scalar`. The operators of mxnet.numpy turn whole numbers into floats where the number
//! is one, the others keep the type of the data.

use super::arithmetic::{arctan2, copysign, hypot, ldexp, modulo, true_divide};
use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_tensor::ElementType;

type Binary = fn(&mut NodeCx<'_>, Value, Value) -> Result<Value>;

pub(super) const RULES: &[StaticRule] = &[
    rule("_div_scalar", 0, |n| with(n, |n, a, b| n.over(a, b))),
    rule("_hypot_scalar", 0, |n| with(n, hypot)),
    rule("_maximum_scalar", 0, |n| with(n, |n, a, b| n.max(a, b))),
    rule("_minimum_scalar", 0, |n| with(n, |n, a, b| n.min(a, b))),
    rule("_minus_scalar", 0, |n| with(n, |n, a, b| n.minus(a, b))),
    rule("_mod_scalar", 0, |n| with(n, modulo)),
    rule("_mul_scalar", 0, |n| with(n, |n, a, b| n.times(a, b))),
    rule("_npi_add_scalar", 0, |n| promoted(n, |n, a, b| n.plus(a, b))),
    rule("_npi_arctan2_scalar", 0, |n| with(n, arctan2)),
    rule("_npi_copysign_scalar", 0, |n| with(n, copysign)),
    rule("_npi_ldexp_scalar", 0, |n| with(n, ldexp)),
    rule("_npi_mod_scalar", 0, |n| promoted(n, modulo)),
    rule("_npi_multiply_scalar", 0, |n| promoted(n, |n, a, b| n.times(a, b))),
    rule("_npi_power_scalar", 0, |n| promoted(n, |n, a, b| n.power(a, b))),
    rule("_npi_rarctan2_scalar", 0, |n| with(n, |n, a, b| arctan2(n, b, a))),
    rule("_npi_rcopysign_scalar", 0, |n| with(n, |n, a, b| copysign(n, b, a))),
    rule("_npi_rldexp_scalar", 0, |n| with(n, |n, a, b| ldexp(n, b, a))),
    rule("_npi_rmod_scalar", 0, |n| promoted(n, |n, a, b| modulo(n, b, a))),
    rule("_npi_rpower_scalar", 0, |n| promoted(n, |n, a, b| n.power(b, a))),
    rule("_npi_rsubtract_scalar", 0, |n| promoted(n, |n, a, b| n.minus(b, a))),
    rule("_npi_rtrue_divide_scalar", 0, |n| with(n, |n, a, b| true_divide(n, b, a))),
    rule("_npi_subtract_scalar", 0, |n| promoted(n, |n, a, b| n.minus(a, b))),
    rule("_npi_true_divide_scalar", 0, |n| with(n, true_divide)),
    rule("_plus_scalar", 0, |n| with(n, |n, a, b| n.plus(a, b))),
    rule("_power_scalar", 0, |n| with(n, |n, a, b| n.power(a, b))),
    rule("_rdiv_scalar", 0, |n| with(n, |n, a, b| n.over(b, a))),
    rule("_rminus_scalar", 0, |n| with(n, |n, a, b| n.minus(b, a))),
    rule("_rmod_scalar", 0, |n| with(n, |n, a, b| modulo(n, b, a))),
    rule("_rpower_scalar", 0, |n| with(n, |n, a, b| n.power(b, a))),
    rule("_scatter_minus_scalar", 0, |n| with(n, |n, a, b| n.minus(a, b))),
    rule("_scatter_plus_scalar", 0, |n| with(n, |n, a, b| n.plus(a, b))),
];

/// The data and the number, in the type of the data.
pub(super) fn number(n: &mut NodeCx<'_>) -> Result<(Value, Value)> {
    let x = n.input(0)?;
    let number = n.float("scalar", 1.0)?;
    Ok((x, n.scalar_like(x, number)?))
}

fn with(n: &mut NodeCx<'_>, f: Binary) -> Result<Outputs> {
    let (x, number) = number(n)?;
    Ok(f(n, x, number)?.into())
}

fn promoted(n: &mut NodeCx<'_>, f: Binary) -> Result<Outputs> {
    let x = n.input(0)?;
    let number = n.float("scalar", 1.0)?;
    let is_whole = n.flag("is_int", true)?;
    let x = match n.ty(x) {
        ty if ty.is_integer() && !is_whole => n.convert(x, ElementType::F64)?,
        ElementType::Boolean => n.convert(x, if is_whole { ElementType::I64 } else { ElementType::F64 })?,
        _ => x,
    };
    let number = n.scalar_like(x, number)?;
    Ok(f(n, x, number)?.into())
}
