//! A value written on the command line, `5`, `True` or `[1 2 3]`, and the tensor it becomes. A number that the element type
//! cannot hold exactly enough to be meant is refused.

use super::syntax;
use carafe_graph::{Error, Result};
use carafe_tensor::{ElementType, PartialShape, Tensor};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Literal {
    words: Vec<String>,
    /// Written with brackets.
    is_list: bool,
}

impl Literal {
    pub(super) fn read(text: &str) -> Result<Literal> {
        let text = text.trim();
        let inside =
            [('[', ']'), ('(', ')')].iter().find_map(|&(open, close)| text.strip_prefix(open)?.strip_suffix(close));
        let words: Vec<String> = match inside {
            Some(inside) => syntax::words(inside).map(str::to_string).collect(),
            None => vec![text.to_string()],
        };
        if text.is_empty() {
            return Err(Error::usage("nothing stands behind `->`; expected a value such as 5, True or [1 2 3]"));
        }
        Ok(Literal { words, is_list: inside.is_some() })
    }

    /// The tensor, of a shape that fits the number of values.
    pub(super) fn tensor(&self, ty: ElementType, shape: &PartialShape) -> Result<Tensor> {
        let shape = self.shape(shape)?;
        let bad = |word: &str, expected: &str| Error::usage(format!("value `{word}` is no {ty}; expected {expected}"));
        if ty == ElementType::String {
            return Ok(Tensor::from_strings(&shape, self.words.clone())?);
        }
        if ty == ElementType::Boolean {
            let one = |w: &String| match w.to_ascii_lowercase().as_str() {
                "true" | "1" => Ok(1),
                "false" | "0" => Ok(0),
                _ => Err(bad(w, "True or False")),
            };
            let values: Vec<i64> = self.words.iter().map(one).collect::<Result<_>>()?;
            return Ok(Tensor::from_i64(ty, &shape, &values)?);
        }
        if ty.is_integer() {
            let one = |w: &String| w.parse::<i64>().map_err(|_| bad(w, "a whole number"));
            let values: Vec<i64> = self.words.iter().map(one).collect::<Result<_>>()?;
            let tensor = Tensor::from_i64(ty, &shape, &values)?;
            let kept = tensor.to_vec::<i64>()?;
            return match kept.iter().zip(&values).position(|(a, b)| a != b) {
                Some(i) => Err(bad(&self.words[i], "a number within its range")),
                None => Ok(tensor),
            };
        }
        let one = |w: &String| w.parse::<f64>().map_err(|_| bad(w, "a number"));
        let values: Vec<f64> = self.words.iter().map(one).collect::<Result<_>>()?;
        Ok(Tensor::from_f64(ty, &shape, &values)?)
    }

    // The wanted shape where it is known; one open size follows from the number of values.
    fn shape(&self, wanted: &PartialShape) -> Result<Vec<usize>> {
        let n = self.words.len();
        let misfit = || Error::usage(format!("found {n} values for shape [{wanted}]; give as many values as it holds"));
        let Some(dims) = wanted.dims() else {
            return Ok(if self.is_list { vec![n] } else { vec![] });
        };
        let open: Vec<usize> = (0..dims.len()).filter(|&i| dims[i].size().is_none()).collect();
        let known =
            dims.iter().filter_map(|d| d.size()).try_fold(1usize, |a, b| a.checked_mul(b)).ok_or_else(misfit)?;
        let mut shape: Vec<usize> = dims.iter().map(|d| d.size().unwrap_or(1)).collect();
        if let [axis] = open.as_slice() {
            shape[*axis] = n.checked_div(known).ok_or_else(misfit)?;
        } else if open.len() > 1 {
            return Err(Error::usage(format!(
                "the shape [{wanted}] has several open sizes; give the shape before the value, such as name[2 2]->[1 2 3 4]"
            )));
        }
        if shape.iter().try_fold(1usize, |a, &b| a.checked_mul(b)) == Some(n) && wanted.accepts(&shape) {
            Ok(shape)
        } else {
            Err(misfit())
        }
    }
}
