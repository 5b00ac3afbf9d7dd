//! Rows that are computed of other rows by products with stored matrices and sums: `a x M + b x N + c`.

use super::look::{made_by, stored};
use super::slices::{cut, width};
use carafe_graph::{Model, Value};
use carafe_ops::arithmetic::Add;
use carafe_ops::linear::MatMul;
use carafe_ops::movement::Concat;

/// Sums nested deeper are not looked into.
const MAX_DEPTH: usize = 16;

/// A matrix by rows.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Matrix {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) data: Vec<f32>,
}

impl Matrix {
    pub(super) fn zeros(rows: usize, columns: usize) -> Matrix {
        Matrix { rows, columns, data: vec![0.0; rows * columns] }
    }
    fn part(&self, rows: std::ops::Range<usize>, first: usize, columns: usize) -> Matrix {
        let row = |r: usize| &self.data[r * self.columns + first..][..columns];
        Matrix { rows: rows.len(), columns, data: rows.flat_map(row).copied().collect() }
    }
}

/// `terms`, each a row times a matrix, and `bias`.
#[derive(Clone, Debug, Default)]
pub(super) struct Affine {
    pub(super) terms: Vec<(Value, Matrix)>,
    pub(super) bias: Vec<f32>,
}

impl Affine {
    /// Of a matrix of rows; `None` where it is computed in another way.
    pub(super) fn of(model: &Model, v: Value) -> Option<Affine> {
        Affine::nested(model, v, 0)
    }

    fn nested(model: &Model, v: Value, depth: usize) -> Option<Affine> {
        let n = width(model, v)?;
        if depth > MAX_DEPTH || model.fact(v).shape.rank() != Some(2) {
            return None;
        }
        if let Some(&[a, b]) = made_by::<Add>(model, v) {
            return match (constant(model, a, n), constant(model, b, n)) {
                (_, Some(c)) => Affine::nested(model, a, depth + 1).map(|x| x.plus(&Affine { terms: vec![], bias: c })),
                (Some(c), _) => Affine::nested(model, b, depth + 1).map(|x| x.plus(&Affine { terms: vec![], bias: c })),
                _ => {
                    let same = width(model, a) == Some(n) && width(model, b) == Some(n);
                    let (a, b) = (Affine::nested(model, a, depth + 1), Affine::nested(model, b, depth + 1));
                    Some(a.filter(|_| same)?.plus(&b?))
                }
            };
        }
        if let Some(cut) = cut(model, v).filter(|c| c.step == 1) {
            return Some(Affine::nested(model, cut.of, depth + 1)?.columns(cut.first, cut.len));
        }
        product(model, v, n)
    }

    /// Some of its columns.
    pub(super) fn columns(&self, first: usize, len: usize) -> Affine {
        let terms = self.terms.iter().map(|(row, m)| (*row, m.part(0..m.rows, first, len)));
        Affine { terms: terms.collect(), bias: self.bias[first..][..len].to_vec() }
    }

    fn plus(mut self, other: &Affine) -> Affine {
        for (row, m) in &other.terms {
            match self.terms.iter_mut().find(|(r, have)| r == row && have.rows == m.rows) {
                Some((_, have)) => have.data.iter_mut().zip(&m.data).for_each(|(a, b)| *a += b),
                None => self.terms.push((*row, m.clone())),
            }
        }
        self.bias.iter_mut().zip(&other.bias).for_each(|(a, b)| *a += b);
        self
    }

    /// The matrix of each of these rows, zeros where it plays no part; `None` where another row plays one.
    pub(super) fn by_rows<const N: usize>(self, rows: [(Value, usize); N]) -> Option<([Matrix; N], Vec<f32>)> {
        let columns = self.bias.len();
        let mut found = rows.map(|(_, n)| Matrix::zeros(n, columns));
        for (row, m) in self.terms {
            let at = rows.iter().position(|(r, n)| *r == row && *n == m.rows)?;
            found[at] = m;
        }
        Some((found, self.bias))
    }
}

// A row times a stored matrix; a joined row is several.
fn product(model: &Model, v: Value, n: usize) -> Option<Affine> {
    let &[a, b] = made_by::<MatMul>(model, v)? else { return None };
    let (_, op) = model.producer::<MatMul>(v)?;
    let tensor = stored(model, b)?;
    if op.transpose_a || model.fact(a).shape.rank() != Some(2) || tensor.rank() != 2 {
        return None;
    }
    let k = width(model, a)?;
    let data = tensor.to_vec::<f32>().ok()?.into_owned();
    let [rows, columns] = [tensor.shape()[0], tensor.shape()[1]];
    let m = match op.transpose_b {
        false => Matrix { rows, columns, data },
        true => {
            let at = |i: usize| data[(i % rows) * columns + i / rows];
            Matrix { rows: columns, columns: rows, data: (0..data.len()).map(at).collect() }
        }
    };
    if (m.rows, m.columns) != (k, n) {
        return None;
    }
    let parts = match model.producer::<Concat>(a) {
        Some((node, concat)) if concat.axis == 1 || concat.axis == -1 => model.node(node).inputs().to_vec(),
        _ => vec![a],
    };
    let (mut terms, mut first) = (vec![], 0);
    for part in parts {
        let len = width(model, part)?;
        terms.push((part, m.part(first..first + len, 0, n)));
        first += len;
    }
    Some(Affine { terms, bias: vec![0.0; n] })
}

// A stored row that is added to all rows.
fn constant(model: &Model, v: Value, n: usize) -> Option<Vec<f32>> {
    let tensor = stored(model, v)?;
    let (last, others) = tensor.shape().split_last().map_or((1, &[][..]), |(l, o)| (*l, o));
    if others.iter().any(|d| *d != 1) || others.len() > 1 || (last != 1 && last != n) {
        return None;
    }
    let data = tensor.to_vec::<f32>().ok()?;
    Some(if last == n { data.into_owned() } else { vec![*data.first()?; n] })
}
