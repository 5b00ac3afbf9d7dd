//! Products of matrices.

use super::reshape::flattened;
use super::slots::Slots;
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::activation::Relu;
use carafe_ops::linear::{Einsum, Inverse, MatMul};

pub(super) const RULES: &[StaticRule] = &[
    rule("addmm", 0, addmm),
    rule("bmm", 0, |n| {
        let (x, y) = (n.slot("X")?, n.slot("Y")?);
        let out = n.emit(MatMul { transpose_a: false, transpose_b: false }, &[x, y])?;
        Ok(n.give(&[("Out", out)]))
    }),
    rule("dot", 0, |n| {
        let (x, y) = (n.slot("X")?, n.slot("Y")?);
        let product = n.times(x, y)?;
        let out = n.sum_over(product, &[-1], false)?;
        Ok(n.give(&[("Out", out)]))
    }),
    rule("einsum", 0, |n| {
        let all = n.inputs_named("Operands")?;
        let equation: String = n.required("equation")?;
        let out = n.emit(Einsum { equation: equation.replace(' ', "") }, &all)?;
        Ok(n.give(&[("Out", out)]))
    }),
    rule("fc", 0, fc),
    rule("inverse", 0, |n| {
        let x = n.slot("Input")?;
        let out = n.emit(Inverse { adjoint: false }, &[x])?;
        Ok(n.give(&[("Output", out)]))
    }),
    rule("matmul", 0, |n| matmul(n, "transpose_X", "transpose_Y")),
    rule("matmul_v2", 0, |n| matmul(n, "trans_x", "trans_y")),
    rule("mul", 0, mul),
    rule("mv", 0, |n| {
        let (x, v) = (n.slot("X")?, n.slot("Vec")?);
        let out = n.emit(MatMul { transpose_a: false, transpose_b: false }, &[x, v])?;
        Ok(n.give(&[("Out", out)]))
    }),
];

fn matmul(n: &mut NodeCx<'_>, transpose_x: &str, transpose_y: &str) -> Result<Outputs> {
    let (x, y) = (n.slot("X")?, n.slot("Y")?);
    let op = MatMul { transpose_a: n.attr(transpose_x, false)?, transpose_b: n.attr(transpose_y, false)? };
    let alpha: f64 = n.attr("alpha", 1.0)?;
    let mut out = n.put(op, &[x, y])?;
    if alpha != 1.0 {
        out = n.times_number(out, alpha)?;
    }
    Ok(n.give(&[("Out", out)]))
}

// Both operands as matrices; the other axes come back in the result.
fn mul(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, y) = (n.slot("X")?, n.slot("Y")?);
    let (a, b): (i64, i64) = (n.attr("x_num_col_dims", 1)?, n.attr("y_num_col_dims", 1)?);
    n.ignore(&["scale_x", "scale_y", "scale_out"]);
    let out = product(n, x, y, a, b)?;
    Ok(n.give(&[("Out", out)]))
}

fn product(n: &mut NodeCx<'_>, x: Value, y: Value, a: i64, b: i64) -> Result<Value> {
    let (x_rank, y_rank) = (n.known_rank(x)?, n.known_rank(y)?);
    let rows = if (x_rank, a) == (2, 1) { x } else { flattened(n, x, a)? };
    let columns = if (y_rank, b) == (2, 1) { y } else { flattened(n, y, b)? };
    let out = n.product(rows, columns, false)?;
    if (x_rank, y_rank, a, b) == (2, 2, 1, 1) {
        return Ok(out);
    }
    let (x_shape, y_shape) = (n.shape_of(x)?, n.shape_of(y)?);
    let front = n.part(x_shape, 0, a, 0)?;
    let back = n.part(y_shape, b, y_rank as i64, 0)?;
    let shape = n.concat(&[front, back], 0)?;
    n.reshaped(out, shape, false)
}

fn fc(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, w) = (n.slot("Input")?, n.slot("W")?);
    let bias = n.opt_slot("Bias")?;
    let columns: i64 = n.attr("in_num_col_dims", 1)?;
    let activation: String = n.attr("activation_type", String::new())?;
    let padded: bool = n.attr("padding_weights", false)?;
    if padded {
        return Err(n.unsupported("`padding_weights` is set; export the model without passes of a device"));
    }
    let mut out = product(n, x, w, columns, 1)?;
    if let Some(bias) = bias {
        let bias = n.reshape(bias, &[-1])?;
        out = n.plus(out, bias)?;
    }
    match activation.as_str() {
        "" => {}
        "relu" => out = n.put(Relu, &[out])?,
        other => return Err(n.unsupported(format!("`activation_type` is `{other}`"))),
    }
    Ok(n.give(&[("Out", out)]))
}

// beta * input + alpha * x * y.
fn addmm(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (input, x, y) = (n.slot("Input")?, n.slot("X")?, n.slot("Y")?);
    let (alpha, beta): (f64, f64) = (n.attr("Alpha", 1.0)?, n.attr("Beta", 1.0)?);
    let mut out = n.product(x, y, false)?;
    if alpha != 1.0 {
        out = n.times_number(out, alpha)?;
    }
    let input = if beta == 1.0 { input } else { n.times_number(input, beta)? };
    let out = n.plus(input, out)?;
    Ok(n.give(&[("Out", out)]))
}
