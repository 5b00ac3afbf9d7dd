//! The sum of products behind MatMul, the convolutions, Einsum and attention. Factors are f32, f64 or i64; sums are kept
//! in f64 or wrapping i64, so that f16 and f32 results are rounded once and integers wrap as in their own width.

use carafe_graph::{Error, Result};
use carafe_tensor::{ElementType, Number, elements};

/// A number whose products are summed in a type at least as wide.
pub(crate) trait Factor: Number {
    type Sum: Number;
    fn wide(self) -> Self::Sum;
    fn narrow(sum: Self::Sum) -> Self;
    fn add_product(sum: Self::Sum, a: Self::Sum, b: Self::Sum) -> Self::Sum;
}

macro_rules! float_factor {
    ($($t:ty)*) => {$(
        impl Factor for $t {
            type Sum = f64;
            #[inline(always)]
            fn wide(self) -> f64 {
                self as f64
            }
            #[inline(always)]
            fn narrow(sum: f64) -> $t {
                sum as $t
            }
            #[inline(always)]
            fn add_product(sum: f64, a: f64, b: f64) -> f64 {
                sum + a * b
            }
        }
    )*};
}
float_factor!(f32 f64);

impl Factor for i64 {
    type Sum = i64;
    #[inline(always)]
    fn wide(self) -> i64 {
        self
    }
    #[inline(always)]
    fn narrow(sum: i64) -> i64 {
        sum
    }
    #[inline(always)]
    fn add_product(sum: i64, a: i64, b: i64) -> i64 {
        sum.wrapping_add(a.wrapping_mul(b))
    }
}

/// Runs the body with `T` as the factor type for elements of `$ty`: f64 for f64, f32 for other floats, i64 for integers,
/// whose low bits are right in any width.
macro_rules! with_factor {
    ($ty:expr, $T:ident => $body:expr) => {{
        let ty: ::carafe_tensor::ElementType = $ty;
        if ty == ::carafe_tensor::ElementType::F64 {
            type $T = f64;
            $body
        } else if ty.is_float() {
            type $T = f32;
            $body
        } else {
            type $T = i64;
            $body
        }
    }};
}
pub(crate) use with_factor;

/// Columns worked on at once, so that the sums stay in the nearest cache.
pub(crate) const COLUMNS: usize = 256;

/// A matrix inside a slice: element `(i, j)` is `data[i * stride + j]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a, T> {
    pub data: &'a [T],
    pub stride: usize,
}

impl<'a, T> Rows<'a, T> {
    pub(crate) fn new(data: &'a [T], stride: usize) -> Rows<'a, T> {
        Rows { data, stride }
    }
    fn row(&self, i: usize, start: usize, len: usize) -> &'a [T] {
        &self.data[i * self.stride + start..][..len]
    }
}

/// `out[i, j] += sum over p of a[i, p] * b[p, j]` for `m` rows, `n` columns and `k` products; `out` has stride `n`.
pub(crate) fn add_product<T: Factor>(out: &mut [T::Sum], a: Rows<'_, T>, b: Rows<'_, T>, m: usize, k: usize, n: usize) {
    let mut start = 0;
    while start < n {
        let len = COLUMNS.min(n - start);
        for (block, rows) in out[..m * n].chunks_mut(4 * n).enumerate() {
            let row = |i: usize| a.row(4 * block + i, 0, k);
            if m - 4 * block >= 4 {
                let (first, second) = rows.split_at_mut(2 * n);
                let ((r0, r1), (r2, r3)) = (first.split_at_mut(n), second.split_at_mut(n));
                let sums = [r0, r1, r2, r3].map(|r| &mut r[start..start + len]);
                add_to_four(sums, [row(0), row(1), row(2), row(3)], b, start);
            } else {
                for i in 0..m - 4 * block {
                    add_to_one(&mut rows[i * n + start..][..len], row(i), b, start);
                }
            }
        }
        start += len;
    }
}

// The two innermost loops count by hand: in builds with little optimisation, which tests use, chains of iterators are
// calls that cost twenty times as much.

fn add_to_four<T: Factor>(sums: [&mut [T::Sum]; 4], a: [&[T]; 4], b: Rows<'_, T>, start: usize) {
    let [s0, s1, s2, s3] = sums;
    let len = s0.len();
    let (s1, s2, s3) = (&mut s1[..len], &mut s2[..len], &mut s3[..len]);
    for p in 0..a[0].len() {
        let [a0, a1, a2, a3] = [a[0][p].wide(), a[1][p].wide(), a[2][p].wide(), a[3][p].wide()];
        let row = b.row(p, start, len);
        let mut j = 0;
        while j < len {
            let x = row[j].wide();
            s0[j] = T::add_product(s0[j], a0, x);
            s1[j] = T::add_product(s1[j], a1, x);
            s2[j] = T::add_product(s2[j], a2, x);
            s3[j] = T::add_product(s3[j], a3, x);
            j += 1;
        }
    }
}

fn add_to_one<T: Factor>(sums: &mut [T::Sum], a: &[T], b: Rows<'_, T>, start: usize) {
    let len = sums.len();
    for p in 0..a.len() {
        let (w, row) = (a[p].wide(), b.row(p, start, len));
        let mut j = 0;
        while j < len {
            sums[j] = T::add_product(sums[j], w, row[j].wide());
            j += 1;
        }
    }
}

/// As [`add_product`] with the second matrix given by its columns: `out[i, j] += sum over p of a[i, p] * b[j, p]`.
pub(crate) fn add_product_of_rows<T: Factor>(
    out: &mut [T::Sum],
    a: Rows<'_, T>,
    b: Rows<'_, T>,
    m: usize,
    k: usize,
    n: usize,
) {
    if n == 0 {
        return;
    }
    for (i, row) in out[..m * n].chunks_mut(n).enumerate() {
        let left = a.row(i, 0, k);
        for (j, y) in row.iter_mut().enumerate() {
            *y = T::Sum::wrapping_add(*y, dot(left, b.row(j, 0, k)));
        }
    }
}

/// Sum of products of two rows of equal length.
pub(crate) fn dot<T: Factor>(a: &[T], b: &[T]) -> T::Sum {
    let b = &b[..a.len()];
    let [mut s0, mut s1, mut s2, mut s3] = [T::Sum::default(); 4];
    let mut i = 0;
    while i + 4 <= a.len() {
        s0 = T::add_product(s0, a[i].wide(), b[i].wide());
        s1 = T::add_product(s1, a[i + 1].wide(), b[i + 1].wide());
        s2 = T::add_product(s2, a[i + 2].wide(), b[i + 2].wide());
        s3 = T::add_product(s3, a[i + 3].wide(), b[i + 3].wide());
        i += 4;
    }
    while i < a.len() {
        s0 = T::add_product(s0, a[i].wide(), b[i].wide());
        i += 1;
    }
    s0.wrapping_add(s1).wrapping_add(s2.wrapping_add(s3))
}

/// The transposed copy of an `m` by `n` matrix.
pub(crate) fn transposed<T: Copy>(data: &[T], m: usize, n: usize) -> Vec<T> {
    (0..n).flat_map(|j| (0..m).map(move |i| data[i * n + j])).collect()
}

/// As many zeros as the shape has elements. A size past memory is an error, not an abort.
pub(crate) fn zeros<T: Number>(shape: &[usize]) -> Result<Vec<T>> {
    let too_large = || Error::invalid(format!("a tensor of shape {shape:?} does not fit into memory"));
    let count = elements(shape).ok_or_else(too_large)?;
    let mut data = Vec::new();
    data.try_reserve_exact(count).map_err(|_| too_large())?;
    data.resize(count, T::default());
    Ok(data)
}

/// Whether a type can be multiplied and summed here.
pub(crate) fn is_factor(ty: ElementType) -> bool {
    ty.is_dynamic() || ty.is_float() || ty.is_integer()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(a: &[f32], b: &[f32], m: usize, k: usize, n: usize) -> Vec<f64> {
        let mut out = vec![0.0; m * n];
        for i in 0..m {
            for j in 0..n {
                out[i * n + j] = (0..k).map(|p| f64::from(a[i * k + p]) * f64::from(b[p * n + j])).sum();
            }
        }
        out
    }

    #[test]
    fn blocks_and_remainders_agree_with_the_definition() {
        for (m, k, n) in [(1, 1, 1), (4, 3, 5), (7, 9, 300), (5, 17, 2), (3, 0, 2), (0, 2, 2), (2, 2, 0)] {
            let a: Vec<f32> = (0..m * k).map(|i| (i % 7) as f32 - 3.0).collect();
            let b: Vec<f32> = (0..k * n).map(|i| (i % 5) as f32 - 2.0).collect();
            let mut out = vec![0.0; m * n];
            add_product(&mut out, Rows::new(&a, k), Rows::new(&b, n), m, k, n);
            assert_eq!(out, naive(&a, &b, m, k, n), "{m} {k} {n}");
            let mut out = vec![0.0; m * n];
            let columns = transposed(&b, k, n);
            add_product_of_rows(&mut out, Rows::new(&a, k), Rows::new(&columns, k), m, k, n);
            assert_eq!(out, naive(&a, &b, m, k, n), "{m} {k} {n} by rows");
        }
    }

    #[test]
    fn integers_wrap() {
        assert_eq!(dot(&[i64::MAX, 1], &[2, 2]), 0);
    }

    #[test]
    fn an_absurd_size_is_an_error() {
        assert!(zeros::<f64>(&[1 << 40, 1 << 20]).is_err());
        assert!(zeros::<f64>(&[usize::MAX, 2]).is_err());
    }
}
