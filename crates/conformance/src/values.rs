//! Values in case files: literals, flat or nested lists, and generators for larger inputs. The generators are part of
//! the file format (`scripts/golden-case` has them too), so their numbers never change.

use crate::case::CaseError;
use crate::scan::Scan;
use carafe_tensor::{ElementType, PartialShape, Tensor, TensorError, elements};

/// Values past this count belong into a model file.
const MOST_ELEMENTS: usize = 1 << 24;

/// Reads a value for a tensor of this type and shape.
pub(crate) fn tensor(scan: &mut Scan<'_>, ty: ElementType, shape: &PartialShape) -> Result<Tensor, CaseError> {
    let Some(shape) = shape.to_static() else {
        return Err(scan.fail(format!("a value needs a static shape, found [{shape}]")));
    };
    let Some(count) = elements(&shape).filter(|n| *n <= MOST_ELEMENTS) else {
        return Err(scan.fail(format!("a case may hold {MOST_ELEMENTS} elements at most, found shape {shape:?}")));
    };
    let literals = match generator(scan)? {
        Some(g) => g.literals(ty, count).map_err(|m| scan.fail(m))?,
        None => list(scan)?,
    };
    if literals.len() != count {
        return Err(scan.fail(format!("shape {shape:?} needs {count} values, found {}", literals.len())));
    }
    build(ty, &shape, &literals).map_err(|m| scan.fail(m))
}

/// One value as it stands in the text, or as a generator makes it.
#[derive(Clone, Debug, PartialEq)]
enum Literal {
    Int(i128),
    Float(f64),
    Bool(bool),
    Str(String),
}

enum Generator {
    /// `start + step * i`; also iota and fill.
    Line {
        start: Literal,
        step: Literal,
    },
    Wave {
        seed: u64,
    },
}

fn generator(scan: &mut Scan<'_>) -> Result<Option<Generator>, CaseError> {
    let zero = || Literal::Int(0);
    Ok(Some(if scan.take("iota") {
        Generator::Line { start: zero(), step: Literal::Int(1) }
    } else if scan.take("fill(") {
        let start = literal(scan)?;
        scan.expect(")")?;
        Generator::Line { start, step: zero() }
    } else if scan.take("seq(") {
        let start = literal(scan)?;
        scan.expect(",")?;
        let step = literal(scan)?;
        scan.expect(")")?;
        Generator::Line { start, step }
    } else if scan.take("wave(") {
        let seed = match literal(scan)? {
            Literal::Int(n) if u64::try_from(n).is_ok() => n as u64,
            other => return Err(scan.fail(format!("wave needs a whole number as its seed, found {other:?}"))),
        };
        scan.expect(")")?;
        Generator::Wave { seed }
    } else {
        return Ok(None);
    }))
}

impl Generator {
    fn literals(&self, ty: ElementType, count: usize) -> Result<Vec<Literal>, String> {
        (0..count).map(|i| self.literal(ty, i)).collect()
    }

    fn literal(&self, ty: ElementType, i: usize) -> Result<Literal, String> {
        use Literal::*;
        Ok(match self {
            Generator::Line { start, step: Int(0) } => start.clone(),
            Generator::Line { start: Int(a), step: Int(b) } => Int(a + b * i as i128),
            Generator::Line { start, step } => match (start.as_f64(), step.as_f64()) {
                (Some(a), Some(b)) => Float(a + b * i as f64),
                _ => return Err("iota and seq make numbers".into()),
            },
            Generator::Wave { seed } if ty.is_float() => Float(wave_float(*seed, i as u64)),
            Generator::Wave { seed } if ty == ElementType::Boolean => Bool(mix(*seed, i as u64) >> 63 == 1),
            Generator::Wave { seed } if ty.is_integer() => {
                Int(i128::from(wave_int(*seed, i as u64)) % (range(ty).1 + 1))
            }
            Generator::Wave { .. } => return Err(format!("wave makes numbers, not {ty}")),
        })
    }
}

/// Element `i` of `wave(seed)` as a float in [-1, 1); exact in f32.
pub fn wave_float(seed: u64, i: u64) -> f64 {
    (mix(seed, i) >> 40) as f64 / (1u64 << 23) as f64 - 1.0
}

/// Element `i` of `wave(seed)` as an integer of 0 to 9.
pub fn wave_int(seed: u64, i: u64) -> u64 {
    (mix(seed, i) >> 33) % 10
}

// The output function of splitmix64 over a counter.
fn mix(seed: u64, i: u64) -> u64 {
    let mut z = seed.wrapping_mul(0xD1B5_4A32_D192_ED03).wrapping_add((i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// One literal, or a list whose nesting does not matter.
fn list(scan: &mut Scan<'_>) -> Result<Vec<Literal>, CaseError> {
    if !scan.take("[") {
        return Ok(vec![literal(scan)?]);
    }
    let mut out = Vec::new();
    while !scan.take("]") {
        if scan.sees("[") {
            out.extend(list(scan)?);
        } else {
            out.push(literal(scan)?);
        }
        if !scan.take(",") && !scan.sees("]") {
            return scan.fail_expecting("`,` or `]`");
        }
    }
    Ok(out)
}

fn literal(scan: &mut Scan<'_>) -> Result<Literal, CaseError> {
    if scan.sees("\"") {
        return Ok(Literal::Str(scan.quoted()?));
    }
    scan.skip();
    let word = scan.run(|c| c.is_alphanumeric() || "+-._".contains(c));
    let known = match word {
        "" => return scan.fail_expecting("a value"),
        "true" => Some(Literal::Bool(true)),
        "false" => Some(Literal::Bool(false)),
        _ => word.parse().ok().map(Literal::Int).or_else(|| word.parse().ok().map(Literal::Float)),
    };
    known.ok_or_else(|| scan.fail(format!("expected a number, true, false or a quoted text, found `{word}`")))
}

impl Literal {
    fn as_f64(&self) -> Option<f64> {
        match self {
            Literal::Int(n) => Some(*n as f64),
            Literal::Float(x) => Some(*x),
            _ => None,
        }
    }
}

fn build(ty: ElementType, shape: &[usize], literals: &[Literal]) -> Result<Tensor, String> {
    let wrong = |l: &Literal| format!("{l:?} is not a value of type {ty}");
    let text = |e: TensorError| e.to_string();
    if ty == ElementType::String {
        let strings = literals.iter().map(|l| match l {
            Literal::Str(s) => Ok(s.clone()),
            other => Err(wrong(other)),
        });
        return Tensor::from_strings(shape, strings.collect::<Result<_, _>>()?).map_err(text);
    }
    if ty.is_float() {
        let floats: Vec<f64> = literals.iter().map(|l| l.as_f64().ok_or_else(|| wrong(l))).collect::<Result<_, _>>()?;
        return Tensor::from_f64(ty, shape, &floats).map_err(text);
    }
    let (low, high) = range(ty);
    let ints = literals.iter().map(|l| match l {
        Literal::Int(n) if (low..=high).contains(n) => Ok(*n),
        Literal::Bool(b) => Ok(i128::from(*b)),
        other => Err(wrong(other)),
    });
    let ints: Vec<i128> = ints.collect::<Result<_, _>>()?;
    match ty {
        ElementType::U64 => Tensor::from_numbers(ty, shape, ints.iter().map(|&n| n as u64).collect()).map_err(text),
        _ => Tensor::from_numbers(ty, shape, ints.iter().map(|&n| n as i64).collect()).map_err(text),
    }
}

/// Smallest and largest value of an integer type.
fn range(ty: ElementType) -> (i128, i128) {
    match (ty, ty.bits()) {
        (ElementType::Boolean, _) => (0, 1),
        (_, bits) if ty.is_signed() => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        (_, bits) => (0, (1 << bits) - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read(text: &str, ty: ElementType, shape: &[usize]) -> Result<Tensor, String> {
        tensor(&mut Scan::new(Path::new("t"), text), ty, &PartialShape::of(shape)).map_err(|e| e.message)
    }

    fn ints(text: &str, ty: ElementType, n: usize) -> Vec<i64> {
        read(text, ty, &[n]).unwrap().to_vec::<i64>().unwrap().into_owned()
    }

    #[test]
    fn generators_make_lines() {
        assert_eq!(ints("iota", ElementType::I64, 3), [0, 1, 2]);
        assert_eq!(ints("fill(7)", ElementType::U8, 2), [7, 7]);
        assert_eq!(ints("seq(5, -2)", ElementType::I8, 3), [5, 3, 1]);
        let f = read("seq(0.5, 0.25)", ElementType::F32, &[3]).unwrap();
        assert_eq!(f.to_vec::<f64>().unwrap()[..], [0.5, 0.75, 1.0]);
    }

    #[test]
    fn wave_is_the_same_for_ever() {
        let f = read("wave(1)", ElementType::F32, &[3]).unwrap();
        assert_eq!(f.to_vec::<f64>().unwrap()[..], [-0.647974967956543, -0.08186542987823486, 0.050437331199645996]);
        assert!((0..1000).all(|i| (-1.0..=1.0).contains(&wave_float(3, i)) && wave_int(3, i) < 10));
    }

    #[test]
    fn nesting_is_flattened() {
        assert_eq!(ints("[[1, 2], [3, 4]]", ElementType::I32, 4), [1, 2, 3, 4]);
        assert_eq!(ints("[[], []]", ElementType::I32, 0), [0i64; 0]);
    }

    #[test]
    fn every_64_bit_integer_is_kept() {
        let t = read("[18446744073709551615]", ElementType::U64, &[1]).unwrap();
        assert_eq!(t.to_vec::<u64>().unwrap()[..], [u64::MAX]);
        assert_eq!(ints("[-9223372036854775808]", ElementType::I64, 1), [i64::MIN]);
    }

    #[test]
    fn a_value_outside_of_its_type_is_refused() {
        assert!(read("[256]", ElementType::U8, &[1]).unwrap_err().contains("not a value of type u8"));
        assert!(read("[0.5]", ElementType::I32, &[1]).unwrap_err().contains("not a value of type i32"));
        assert!(read("[\"a\"]", ElementType::F32, &[1]).unwrap_err().contains("not a value of type f32"));
        assert!(read("iota", ElementType::F32, &[1 << 40]).unwrap_err().contains("at most"));
    }

    #[test]
    fn nan_and_infinities_are_floats() {
        let t = read("[nan, inf, -inf, 1e3]", ElementType::F32, &[4]).unwrap();
        let v = t.to_vec::<f32>().unwrap();
        assert!(v[0].is_nan() && v[1] == f32::INFINITY && v[2] == f32::NEG_INFINITY && v[3] == 1000.0);
    }
}
