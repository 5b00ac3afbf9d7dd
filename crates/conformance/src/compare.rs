//! Compares tensors element by element and tells the first difference. NaN equals NaN, an infinity only itself, and 0.0
//! equals -0.0; everything else is close when `|expected - found| <= atol + rtol * |expected|`.

use carafe_tensor::{ElementType, Tensor};

/// How far a number may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    pub rtol: f64,
    pub atol: f64,
}

impl Tolerance {
    pub const EXACT: Tolerance = Tolerance { rtol: 0.0, atol: 0.0 };

    /// The default of a type: 1e-5 for floats, exact for the rest.
    pub fn of_type(ty: ElementType) -> Tolerance {
        if ty.is_float() { Tolerance { rtol: 1e-5, atol: 1e-5 } } else { Tolerance::EXACT }
    }

    fn allows(self, expected: f64, found: f64) -> bool {
        if !expected.is_finite() || !found.is_finite() {
            return expected == found || expected.is_nan() && found.is_nan();
        }
        (expected - found).abs() <= self.atol + self.rtol * expected.abs()
    }
}

/// Panics with the first difference.
#[track_caller]
pub fn assert_close(expected: &Tensor, found: &Tensor, tolerance: Tolerance) {
    if let Err(message) = compare(expected, found, tolerance) {
        panic!("{message}");
    }
}

/// Checks type, shape and every element. The error says where the first difference is and how large they get.
pub fn compare(expected: &Tensor, found: &Tensor, tolerance: Tolerance) -> Result<(), String> {
    let ty = expected.element_type();
    if ty != found.element_type() || expected.shape() != found.shape() {
        return Err(format!("expected {}, found {}", describe(expected), describe(found)));
    }
    if ty == ElementType::String {
        return differences(expected, strings(expected)?, strings(found)?, |e, f| e == f, |_, _| None);
    }
    if ty.is_float() {
        let (e, f) = (numbers::<f64>(expected)?, numbers::<f64>(found)?);
        return differences(expected, &e, &f, |e, f| tolerance.allows(*e, *f), |e, f| Some((e - f).abs()));
    }
    // Through u64 for u64 and through i64 for the rest, so that no bit is lost.
    let wide = |t: &Tensor| -> Result<Vec<i128>, String> {
        Ok(match ty {
            ElementType::U64 => numbers::<u64>(t)?.into_iter().map(i128::from).collect(),
            _ => numbers::<i64>(t)?.into_iter().map(i128::from).collect(),
        })
    };
    let (e, f) = (wide(expected)?, wide(found)?);
    let close = |e: &i128, f: &i128| e == f || tolerance.allows(*e as f64, *f as f64) && tolerance != Tolerance::EXACT;
    differences(expected, &e, &f, close, |e, f| Some((e - f).unsigned_abs() as f64))
}

fn differences<T: std::fmt::Debug>(
    shape_of: &Tensor,
    expected: &[T],
    found: &[T],
    close: impl Fn(&T, &T) -> bool,
    error: impl Fn(&T, &T) -> Option<f64>,
) -> Result<(), String> {
    let wrong: Vec<usize> = (0..expected.len()).filter(|&i| !close(&expected[i], &found[i])).collect();
    let Some(&first) = wrong.first() else { return Ok(()) };
    let index = unravel(first, shape_of.shape());
    let mut message = format!("element {index:?}: expected {:?}, found {:?}", expected[first], found[first]);
    let largest =
        wrong.iter().filter_map(|&i| Some((error(&expected[i], &found[i])?, i))).max_by(|a, b| a.0.total_cmp(&b.0));
    message += &format!(" ({} of {} elements differ", wrong.len(), expected.len());
    if let Some((error, i)) = largest {
        message += &format!(", largest error {error:.3e} at {:?}", unravel(i, shape_of.shape()));
    }
    message += ")";
    if expected.len() <= 24 {
        message += &format!("\n    expected {expected:?}\n    found    {found:?}");
    }
    Err(message)
}

fn numbers<T: carafe_tensor::Number>(t: &Tensor) -> Result<Vec<T>, String> {
    t.to_vec::<T>().map(|v| v.into_owned()).map_err(|e| e.to_string())
}

fn strings(t: &Tensor) -> Result<&[String], String> {
    t.strings().map_err(|e| e.to_string())
}

fn describe(t: &Tensor) -> String {
    format!("{}{:?}", t.element_type(), t.shape())
}

fn unravel(mut flat: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        index[axis] = flat % shape[axis];
        flat /= shape[axis];
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f(values: &[f32]) -> Tensor {
        Tensor::from_slice(&[values.len()], values).unwrap()
    }

    #[test]
    fn the_message_has_the_first_difference_and_the_largest_error() {
        let (a, b) = (f(&[1.0, 2.0, 3.0]).reshaped(&[1, 3]).unwrap(), f(&[1.0, 2.5, 5.0]).reshaped(&[1, 3]).unwrap());
        let m = compare(&a, &b, Tolerance::EXACT).unwrap_err();
        assert!(
            m.starts_with(
                "element [0, 1]: expected 2.0, found 2.5 (2 of 3 elements differ, largest error 2.000e0 at [0, 2])"
            ),
            "{m}"
        );
    }

    #[test]
    fn tolerance_is_absolute_plus_relative() {
        let t = Tolerance { rtol: 0.1, atol: 1.0 };
        assert!(compare(&f(&[100.0]), &f(&[110.9]), t).is_ok());
        assert!(compare(&f(&[100.0]), &f(&[111.5]), t).is_err());
    }

    #[test]
    fn nan_equals_nan_and_infinity_only_itself() {
        let t = Tolerance { rtol: 1.0, atol: 1.0 };
        let inf = f32::INFINITY;
        assert!(compare(&f(&[f32::NAN, inf]), &f(&[f32::NAN, inf]), t).is_ok());
        for (a, b) in [(f32::NAN, 0.0), (0.0, f32::NAN), (inf, -inf), (inf, 1.0), (1.0, inf)] {
            assert!(compare(&f(&[a]), &f(&[b]), t).is_err(), "{a} {b}");
        }
    }

    #[test]
    fn integers_are_exact_unless_told_otherwise() {
        let i = |n: i64| Tensor::from_slice(&[1], &[n]).unwrap();
        assert!(compare(&i(i64::MAX), &i(i64::MAX - 1), Tolerance::EXACT).is_err());
        assert!(compare(&i(100), &i(101), Tolerance { rtol: 0.0, atol: 1.0 }).is_ok());
    }

    #[test]
    fn type_and_shape_count() {
        let m = compare(&f(&[1.0]), &Tensor::scalar(1.0f32), Tolerance::EXACT).unwrap_err();
        assert_eq!(m, "expected f32[1], found f32[]");
        assert!(compare(&f(&[1.0]), &Tensor::scalar(1.0f64), Tolerance::EXACT).is_err());
    }

    #[test]
    fn strings_are_compared_as_they_are() {
        let s = |t: &str| Tensor::from_strings(&[1], vec![t.to_string()]).unwrap();
        assert!(compare(&s("a"), &s("a"), Tolerance::EXACT).is_ok());
        assert!(compare(&s("a"), &s("b"), Tolerance::EXACT).unwrap_err().starts_with("element [0]: expected \"a\""));
    }
}
