//! Matrix products. Integer products subtract the zero points first; the products themselves are then exact.

use super::convolution::centred;
use super::quantized::{check_scale, to_integer};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::linear::{Einsum, MatMul};
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("Einsum", 12, einsum),
    rule("Gemm", 1, gemm),
    rule("MatMul", 1, mat_mul),
    rule("MatMulInteger", 10, mat_mul_integer),
    rule("QLinearMatMul", 10, q_linear_mat_mul),
];

fn mat_mul(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    Ok(n.product(a, b, false)?.into())
}

fn einsum(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let equation: String = n.required("equation")?;
    let equation = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let inputs = n.inputs()?;
    Ok(n.emit(Einsum { equation }, &inputs)?.into())
}

fn gemm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    // Before version 7 a flag allowed what is always allowed since.
    n.ignore(&["broadcast"]);
    let (alpha, beta): (f64, f64) = (n.attr("alpha", 1.0)?, n.attr("beta", 1.0)?);
    let (transpose_a, transpose_b) = (n.attr("transA", false)?, n.attr("transB", false)?);
    let (a, b, c) = (n.input(0)?, n.input(1)?, n.opt(2)?);
    let mut y = n.emit(MatMul { transpose_a, transpose_b }, &[a, b])?;
    if alpha != 1.0 {
        y = n.times_number(y, alpha)?;
    }
    let Some(mut c) = c.filter(|_| beta != 0.0) else { return Ok(y.into()) };
    if beta != 1.0 {
        c = n.times_number(c, beta)?;
    }
    Ok(n.plus(y, c)?.into())
}

/// A vector over the rows of the left matrix stands as a column; everything else broadcasts as it is.
fn per_row(n: &mut NodeCx<'_>, v: Value, matrix: Value) -> Result<Value> {
    match (n.rank(v), n.rank(matrix)) {
        (Some(1), Some(r)) if r > 1 => n.unsqueeze(v, &[-1]),
        _ => Ok(v),
    }
}

fn mat_mul_integer(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (a, b, a_zero, b_zero) = (n.input(0)?, n.input(1)?, n.opt(2)?, n.opt(3)?);
    let a_zero = a_zero.map(|z| per_row(n, z, a)).transpose()?;
    let a = centred(n, a, a_zero, ElementType::I32)?;
    let b = centred(n, b, b_zero, ElementType::I32)?;
    Ok(n.product(a, b, false)?.into())
}

fn q_linear_mat_mul(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (a, a_scale, a_zero) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (b, b_scale, b_zero) = (n.input(3)?, n.input(4)?, n.input(5)?);
    let (y_scale, y_zero) = (n.input(6)?, n.input(7)?);
    for (scale, divides) in [(1, false), (4, false), (6, true)] {
        check_scale(n, scale, divides)?;
    }
    let (a_scale, a_zero) = (per_row(n, a_scale, a)?, per_row(n, a_zero, a)?);
    let y_scale = per_row(n, y_scale, a)?;
    let y_zero = per_row(n, y_zero, a)?;
    let a = centred(n, a, Some(a_zero), ElementType::F32)?;
    let b = centred(n, b, Some(b_zero), ElementType::F32)?;
    let y = n.product(a, b, false)?;
    let mut factor = |v: Value| n.convert(v, ElementType::F32);
    let (a_scale, b_scale, y_scale) = (factor(a_scale)?, factor(b_scale)?, factor(y_scale)?);
    let scale = n.times(a_scale, b_scale)?;
    let scale = n.over(scale, y_scale)?;
    let y = n.times(y, scale)?;
    Ok(to_integer(n, y, y_zero)?.into())
}
