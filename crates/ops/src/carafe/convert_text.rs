//! ConvertText: numbers as text, or text as numbers. Floats are written with eight digits, of f64 as many as it takes, and
//! with an exponent where C's `%g` has one; special values are `NaN`, `INF` and `-INF`.

use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{ElementType, Tensor};

/// Converts between strings and numbers.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe")]
pub struct ConvertText {
    /// String, or the type of the numbers.
    pub destination_type: ElementType,
}

impl Op for ConvertText {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let (from, to) = (cx.ty(0), self.destination_type);
        let text = |ty: ElementType| ty == ElementType::String;
        let fits = !to.is_dynamic() && (from.is_dynamic() || text(from) != text(to));
        cx.require(fits, || format!("either side must be text, found {from} to {to}"))?;
        cx.set(0, to, cx.shape(0).clone());
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let (from, to) = (cx.ty(0), self.destination_type);
        if from != ElementType::String {
            let y = Tensor::from_strings(&shape, written(cx)?)?;
            return cx.set(0, y);
        }
        let bad = |s: &String| cx.fail(format!("`{s}` is not a number"));
        let texts = cx.input(0).strings()?;
        let y = if to.is_float() || to == ElementType::Boolean {
            let numbers = texts.iter().map(|s| float(s).ok_or_else(|| bad(s))).collect::<Result<Vec<f64>>>()?;
            Tensor::from_numbers(to, &shape, numbers)?
        } else if to == ElementType::U64 {
            let numbers = texts.iter().map(|s| unsigned(s).ok_or_else(|| bad(s))).collect::<Result<Vec<u64>>>()?;
            Tensor::from_numbers(to, &shape, numbers)?
        } else {
            let numbers = texts.iter().map(|s| integer(s).ok_or_else(|| bad(s))).collect::<Result<Vec<i64>>>()?;
            Tensor::from_numbers(to, &shape, numbers)?
        };
        cx.set(0, y)
    }
}

fn written(cx: &EvalCx<'_>) -> Result<Vec<String>> {
    Ok(match cx.ty(0) {
        ElementType::U64 => cx.get::<u64>(0)?.iter().map(u64::to_string).collect(),
        ElementType::F64 => cx.get::<f64>(0)?.iter().map(|&x| general(x, shortest_digits(x))).collect(),
        ty if ty.is_float() => cx.get::<f64>(0)?.iter().map(|&x| general(x, 8)).collect(),
        _ => cx.get::<i64>(0)?.iter().map(i64::to_string).collect(),
    })
}

fn float(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}
// A fraction is cut off.
fn integer(text: &str) -> Option<i64> {
    text.trim().parse().ok().or_else(|| float(text).map(|x| x as i64))
}
fn unsigned(text: &str) -> Option<u64> {
    text.trim().parse().ok().or_else(|| float(text).map(|x| x as u64))
}

fn shortest_digits(x: f64) -> usize {
    let text = format!("{x:e}");
    text.split('e').next().map_or(17, |m| m.bytes().filter(u8::is_ascii_digit).count().max(1))
}

/// A number with this many significant digits, trailing zeros left out, as C's `%g` writes it.
fn general(x: f64, digits: usize) -> String {
    if x.is_nan() {
        return "NaN".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "INF".into() } else { "-INF".into() };
    }
    let trimmed = |s: &str| match s.contains('.') {
        true => s.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => s.to_string(),
    };
    let scientific = format!("{x:.*e}", digits - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= digits.max(8) as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    trimmed(&format!("{x:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_with_eight_digits() {
        let written = |x: f32| general(f64::from(x), 8);
        let found = [0.1, 1.0, 1e10, 1e-7, 123456789.0, 0.00001234, 314.15926, -2.5].map(written);
        assert_eq!(found, ["0.1", "1", "1e+10", "1e-07", "1.2345679e+08", "1.234e-05", "314.15927", "-2.5"]);
        assert_eq!([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0].map(written), ["NaN", "INF", "-INF", "-0"]);
    }

    #[test]
    fn doubles_keep_every_digit() {
        let written = |x: f64| general(x, shortest_digits(x));
        assert_eq!([0.1, 1.0 / 3.0, 1e20, 1234567.8901234567].map(written), [
            "0.1",
            "0.3333333333333333",
            "1e+20",
            "1234567.8901234567"
        ]);
    }
}
