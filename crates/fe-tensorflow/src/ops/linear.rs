//! Matrices: products, inverses, bands and diagonals.

use super::complex;
use super::types::{element_type, is_complex};
use carafe_frontend::{Compose, NodeCx, Outputs, StaticRule, rule};
use carafe_graph::{Result, Value};
use carafe_ops::linear::{Einsum, Inverse, MatMul};
use carafe_ops::logic::LogicalOr;
use carafe_tensor::ElementType;

pub(crate) const RULES: &[StaticRule] = &[
    rule("BatchMatMul", 0, |n| mat_mul(n, ["adj_x", "adj_y"])),
    rule("BatchMatMulV2", 0, |n| mat_mul(n, ["adj_x", "adj_y"])),
    rule("BatchMatMulV3", 0, |n| mat_mul(n, ["adj_x", "adj_y"])),
    rule("BatchMatrixBandPart", 0, band_part),
    rule("BatchMatrixInverse", 0, inverse),
    rule("Cross", 0, |n| {
        // (a1 b2 - a2 b1, a2 b0 - a0 b2, a0 b1 - a1 b0)
        let (a, b) = (n.input(0)?, n.input(1)?);
        let (next, last) = (n.i64s(&[1, 2, 0])?, n.i64s(&[2, 0, 1])?);
        let (a1, b2) = (n.gather(a, next, -1)?, n.gather(b, last, -1)?);
        let (a2, b1) = (n.gather(a, last, -1)?, n.gather(b, next, -1)?);
        let (plus, minus) = (n.times(a1, b2)?, n.times(a2, b1)?);
        Ok(n.minus(plus, minus)?.into())
    }),
    rule("Einsum", 0, einsum),
    rule("MatMul", 0, |n| mat_mul(n, ["transpose_a", "transpose_b"])),
    rule("MatrixBandPart", 0, band_part),
    rule("MatrixDiag", 0, matrix_diag),
    rule("MatrixDiagPart", 0, diag_part),
    rule("MatrixDiagPartV2", 0, main_diag_part),
    rule("MatrixDiagPartV3", 0, main_diag_part),
    rule("MatrixDiagV2", 0, main_diag),
    rule("MatrixDiagV3", 0, main_diag),
    rule("MatrixInverse", 0, inverse),
    rule("MatrixSetDiag", 0, set_diag),
    rule("MatrixSetDiagV2", 0, set_main_diag),
    rule("MatrixSetDiagV3", 0, set_main_diag),
];

fn mat_mul(n: &mut NodeCx<'_>, [of_a, of_b]: [&str; 2]) -> Result<Outputs> {
    let (transpose_a, transpose_b): (bool, bool) = (n.attr(of_a, false)?, n.attr(of_b, false)?);
    let (a, b) = (n.input(0)?, n.input(1)?);
    let op = MatMul { transpose_a, transpose_b };
    if is_complex(n, "T") {
        let adjoint = of_a == "adj_x";
        let a = if adjoint && transpose_a { complex::conjugate(n, a)? } else { a };
        let b = if adjoint && transpose_b { complex::conjugate(n, b)? } else { b };
        let ((ar, ai), (br, bi)) = (complex::parts(n, a)?, complex::parts(n, b)?);
        let rr = n.emit(op.clone(), &[ar, br])?;
        let ii = n.emit(op.clone(), &[ai, bi])?;
        let ri = n.emit(op.clone(), &[ar, bi])?;
        let ir = n.emit(op, &[ai, br])?;
        let (re, im) = (n.minus(rr, ii)?, n.plus(ri, ir)?);
        return Ok(complex::pair(n, re, im)?.into());
    }
    // Of two types the result may be a third one, and the sums are in it.
    let ty = element_type(n, "Tout", n.ty(a))?;
    let (a, b) = (n.convert(a, ty)?, n.convert(b, ty)?);
    Ok(n.emit(op, &[a, b])?.into())
}

fn einsum(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let equation: String = n.required("equation")?;
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let inputs = n.inputs()?;
    Ok(n.emit(Einsum { equation }, &inputs)?.into())
}

fn inverse(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let adjoint: bool = n.attr("adjoint", false)?;
    let x = n.input(0)?;
    Ok(n.emit(Inverse { adjoint }, &[x])?.into())
}

// Row numbers `[rows, 1]` and column numbers `[columns]` of the last two axes.
fn grid(n: &mut NodeCx<'_>, x: Value) -> Result<(Value, Value)> {
    let (rows, columns) = (n.length(x, -2)?, n.length(x, -1)?);
    let (rows, columns) = (n.count_to(rows, ElementType::I64)?, n.count_to(columns, ElementType::I64)?);
    Ok((n.unsqueeze(rows, &[1])?, columns))
}

// Keeps `lower` diagonals below the main one and `upper` above; a negative number keeps all.
fn band_part(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, lower, upper) = (n.input(0)?, n.input(1)?, n.input(2)?);
    let (rows, columns) = grid(n, x)?;
    let below = n.minus(rows, columns)?;
    let above = n.minus(columns, rows)?;
    let zero = n.i64(0)?;
    let mut within = |distance: Value, most: Value| -> Result<Value> {
        let most = n.convert(most, ElementType::I64)?;
        let (all, few) = (n.less(most, zero)?, n.less_equal(distance, most)?);
        n.emit(LogicalOr::default(), &[all, few])
    };
    let (lower, upper) = (within(below, lower)?, within(above, upper)?);
    let (inside, nothing) = (n.and(lower, upper)?, n.scalar_like(x, 0.0)?);
    Ok(n.choose(inside, x, nothing)?.into())
}

fn matrix_diag(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    Ok(diagonal_matrix(n, x)?.into())
}

// A vector on the diagonal of zeros.
fn diagonal_matrix(n: &mut NodeCx<'_>, x: Value) -> Result<Value> {
    let size = n.length(x, -1)?;
    let columns = n.count_to(size, ElementType::I64)?;
    let rows = n.unsqueeze(columns, &[1])?;
    let on = n.equal(rows, columns)?;
    let (x, nothing) = (n.unsqueeze(x, &[-2])?, n.scalar_like(x, 0.0)?);
    n.choose(on, x, nothing)
}

fn diag_part(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let x = n.input(0)?;
    let (rows, columns) = grid(n, x)?;
    let on = n.equal(rows, columns)?;
    let nothing = n.scalar_like(x, 0.0)?;
    let kept = n.choose(on, x, nothing)?;
    // Rows are summed, which hold one element; a matrix with more columns than rows has no more than its rows.
    let (height, width) = (n.size(x, -2)?, n.size(x, -1)?);
    let (least, start) = (n.min(height, width)?, n.i64s(&[0])?);
    let diagonal = n.sum_over(kept, &[-1], false)?;
    Ok(n.cut(diagonal, start, least, -1)?.into())
}

// Only the main diagonal is known: another one is an error.
fn check_main(n: &mut NodeCx<'_>, input: usize) -> Result<()> {
    let k = n.input(input)?;
    match n.ints(k) {
        Some(k) if k.iter().all(|k| *k == 0) => Ok(()),
        Some(k) => Err(n.unsupported(format!("only the main diagonal is supported, found {k:?}"))),
        None => Err(n.unsupported("which diagonal it is must be known when the model is read")),
    }
}

fn main_diag_part(n: &mut NodeCx<'_>) -> Result<Outputs> {
    check_main(n, 1)?;
    n.ignore_inputs(2);
    diag_part(n)
}

fn main_diag(n: &mut NodeCx<'_>) -> Result<Outputs> {
    check_main(n, 1)?;
    for input in [2, 3] {
        let size = n.input(input)?;
        if n.ints(size).is_none_or(|s| s != [-1]) {
            return Err(n.unsupported("only square matrices of the size of the diagonal are supported"));
        }
    }
    let value = n.input(4)?;
    if n.tensor(value).and_then(|t| t.to_vec::<f64>().ok().map(|v| v[..] == [0.0])) != Some(true) {
        return Err(n.unsupported("the padding value must be 0"));
    }
    let x = n.input(0)?;
    Ok(diagonal_matrix(n, x)?.into())
}

fn set_main_diag(n: &mut NodeCx<'_>) -> Result<Outputs> {
    check_main(n, 2)?;
    set_diag(n)
}

fn set_diag(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let (x, diagonal) = (n.input(0)?, n.input(1)?);
    let (rows, columns) = grid(n, x)?;
    let on = n.equal(rows, columns)?;
    // The diagonal is as long as the shorter side; what lies behind it is not looked at.
    let (height, have) = (n.size(x, -2)?, n.size(diagonal, -1)?);
    let more = n.minus(height, have)?;
    let zeros = n.i64s(&vec![0; n.known_rank(diagonal)?])?;
    let front = n.i64s(&vec![0; n.known_rank(diagonal)?.saturating_sub(1)])?;
    let behind = n.concat(&[front, more], 0)?;
    let nothing = n.scalar_like(diagonal, 0.0)?;
    let pad = carafe_ops::movement::Pad { pad_mode: carafe_ops::movement::pad::PadMode::Constant };
    let diagonal = n.emit(pad, &[diagonal, zeros, behind, nothing])?;
    let diagonal = n.unsqueeze(diagonal, &[-1])?;
    Ok(n.choose(on, diagonal, x)?.into())
}
