//! Products of matrices.

use super::cx::MxCx;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::linear::{Einsum, MatMul};

pub(super) const RULES: &[StaticRule] = &[
    rule("FullyConnected", 0, fully_connected),
    rule("_linalg_gemm", 0, |n| gemm(n, true)),
    rule("_linalg_gemm2", 0, |n| gemm(n, false)),
    rule("_np_dot", 0, numpy_dot),
    rule("_npi_einsum", 0, einsum),
    rule("_npi_matmul", 0, |n| {
        let (a, b) = (n.input(0)?, n.input(1)?);
        Ok(n.emit(MatMul { transpose_a: false, transpose_b: false }, &[a, b])?.into())
    }),
    rule("_npi_tensordot", 0, |n| {
        let (a, b) = (n.ints_of("a_axes_summed")?, n.ints_of("b_axes_summed")?);
        tensordot(n, &a, &b)
    }),
    rule("_npi_tensordot_int_axes", 0, |n| {
        let axes = n.needed_int("axes")?;
        let (a, b): (Vec<i64>, Vec<i64>) = ((-axes..0).collect(), (0..axes).collect());
        tensordot(n, &a, &b)
    }),
    rule("batch_dot", 0, batch_dot),
    rule("dot", 0, dot),
];

fn fully_connected(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["num_hidden"]);
    let (mut x, weight) = (n.input(0)?, n.input(1)?);
    if n.flag("flatten", true)? && n.rank(x) != Some(2) {
        x = n.reshape(x, &[0, -1])?;
    }
    let weight = n.convert_like(weight, x)?;
    // Weights of convolutions turned into products keep their axes.
    let weight = if n.rank(weight).is_some_and(|r| r > 2) { n.reshape(weight, &[0, -1])? } else { weight };
    let mut y = n.product(x, weight, true)?;
    match n.flag("no_bias", false)? {
        true => n.ignore_inputs(2),
        false => {
            let bias = n.input(2)?;
            let bias = n.convert_like(bias, y)?;
            y = n.plus(y, bias)?;
        }
    }
    Ok(y.into())
}

fn batch_dot(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    let op = MatMul { transpose_a: n.flag("transpose_a", false)?, transpose_b: n.flag("transpose_b", false)? };
    Ok(n.emit(op, &[a, b])?.into())
}

// `alpha * a b`, and `beta * c` added to it.
fn gemm(n: &mut NodeCx<'_>, adds: bool) -> Result<Outputs> {
    if n.int("axis", -2)? != -2 {
        return Err(n.unsupported("attribute `axis` must be -2: rows stand in the axis before the last"));
    }
    let (a, b) = (n.input(0)?, n.input(1)?);
    let op = MatMul { transpose_a: n.flag("transpose_a", false)?, transpose_b: n.flag("transpose_b", false)? };
    let (alpha, beta) = (n.float("alpha", 1.0)?, n.float("beta", 1.0)?);
    let mut y = n.emit(op, &[a, b])?;
    if alpha != 1.0 {
        y = n.times_number(y, alpha)?;
    }
    if adds {
        let c = n.input(2)?;
        let c = if beta == 1.0 { c } else { n.times_number(c, beta)? };
        y = n.plus(y, c)?;
    }
    Ok(y.into())
}

// Sums over the last axis of the first and the first of the second, whatever their ranks.
fn dot(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    let (ta, tb) = (n.flag("transpose_a", false)?, n.flag("transpose_b", false)?);
    let (ra, rb) = (n.known_rank(a)?, n.known_rank(b)?);
    match (ra, rb) {
        (2, 2) => Ok(n.emit(MatMul { transpose_a: ta, transpose_b: tb }, &[a, b])?.into()),
        (1, 1) => {
            let product = n.times(a, b)?;
            Ok(n.sum_over(product, &[0], true)?.into())
        }
        _ => {
            let in_a = if ta { 0 } else { ra as i64 - 1 };
            let in_b = if tb { rb as i64 - 1 } else { 0 };
            Ok(contract(n, a, b, &[in_a], &[in_b])?.into())
        }
    }
}

fn numpy_dot(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    let (ra, rb) = (n.known_rank(a)?, n.known_rank(b)?);
    if ra == 0 || rb == 0 {
        return Ok(n.times(a, b)?.into());
    }
    let in_b = if rb == 1 { 0 } else { rb as i64 - 2 };
    Ok(contract(n, a, b, &[ra as i64 - 1], &[in_b])?.into())
}

fn tensordot(n: &mut NodeCx<'_>, in_a: &[i64], in_b: &[i64]) -> Result<Outputs> {
    let (a, b) = (n.input(0)?, n.input(1)?);
    Ok(contract(n, a, b, in_a, in_b)?.into())
}

// Sums over pairs of axes; what is left of the first stands before what is left of the second.
fn contract(n: &mut NodeCx<'_>, a: Value, b: Value, in_a: &[i64], in_b: &[i64]) -> Result<Value> {
    if in_a.len() != in_b.len() {
        return Err(n.fail(format!("sums over {} axes of one and {} of the other", in_a.len(), in_b.len())));
    }
    let (ra, rb) = (n.known_rank(a)?, n.known_rank(b)?);
    if ra + rb > 26 {
        return Err(n.unsupported(format!("tensors of {ra} and {rb} axes are too many")));
    }
    let letter = |i: usize| char::from(b'a' + i as u8);
    let left: Vec<char> = (0..ra).map(letter).collect();
    let mut right: Vec<char> = (ra..ra + rb).map(letter).collect();
    let mut summed = vec![];
    for (i, j) in in_a.iter().zip(in_b) {
        let (i, j) = (n.axis(*i, ra)?, n.axis(*j, rb)?);
        right[j] = left[i];
        summed.push(left[i]);
    }
    let rest = left.iter().chain(&right).filter(|c| !summed.contains(c));
    let text = |all: &[char]| all.iter().collect::<String>();
    let equation = format!("{},{}->{}", text(&left), text(&right), rest.collect::<String>());
    n.emit(Einsum { equation }, &[a, b])
}

fn einsum(n: &mut NodeCx<'_>) -> Result<Outputs> {
    n.ignore(&["num_args", "optimize"]);
    let equation = n.word("subscripts", "");
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let inputs = n.inputs()?;
    Ok(n.emit(Einsum { equation }, &inputs)?.into())
}
