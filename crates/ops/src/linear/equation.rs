//! The text of an Einsum: which label each axis has. Upper and lower case letters are different labels, and without
//! `->` the result has every label that only one operand has, sorted, after the ellipsis.

use carafe_graph::{Error, Result};
use std::collections::BTreeMap;

/// Label of an axis; [`ELLIPSIS`] stands for any number of axes.
pub(super) type Label = char;
pub(super) const ELLIPSIS: Label = '.';

/// A parsed equation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Equation {
    pub inputs: Vec<Vec<Label>>,
    pub output: Vec<Label>,
}

impl Equation {
    pub(super) fn parse(text: &str) -> Result<Equation> {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let (left, right) = match text.split_once("->") {
            Some((left, right)) => (left, Some(right)),
            None => (text.as_str(), None),
        };
        let inputs = left.split(',').map(|s| labels(s, &text)).collect::<Result<Vec<_>>>()?;
        let output = match right {
            Some(right) => explicit_output(&inputs, labels(right, &text)?)?,
            None => implicit_output(&inputs)?,
        };
        Ok(Equation { inputs, output })
    }
}

fn labels(subscript: &str, equation: &str) -> Result<Vec<Label>> {
    let bad = |what: &str| Err(Error::invalid(format!("equation `{equation}`: {what}")));
    let mut labels = Vec::new();
    let mut rest = subscript;
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("...") {
            if labels.contains(&ELLIPSIS) {
                return bad("an operand has at most one ellipsis");
            }
            labels.push(ELLIPSIS);
            rest = after;
        } else if c.is_ascii_alphabetic() {
            labels.push(c);
            rest = &rest[1..];
        } else {
            return bad(&format!("expected letters and `...`, found `{c}`"));
        }
    }
    Ok(labels)
}

fn explicit_output(inputs: &[Vec<Label>], output: Vec<Label>) -> Result<Vec<Label>> {
    for (i, label) in output.iter().enumerate() {
        if output[..i].contains(label) {
            return Err(Error::invalid(format!("the result has label `{label}` twice")));
        }
        if *label != ELLIPSIS && !inputs.iter().any(|labels| labels.contains(label)) {
            return Err(Error::invalid(format!("the result has label `{label}`, which no operand has")));
        }
    }
    Ok(output)
}

fn implicit_output(inputs: &[Vec<Label>]) -> Result<Vec<Label>> {
    let mut operands: BTreeMap<Label, usize> = BTreeMap::new();
    for labels in inputs {
        for (i, &label) in labels.iter().enumerate() {
            if labels[..i].contains(&label) {
                return Err(Error::invalid(format!(
                    "an operand has label `{label}` twice, so the result must be written after `->`"
                )));
            }
            *operands.entry(label).or_default() += 1;
        }
    }
    // The dot sorts before the letters, upper case before lower case.
    Ok(operands.into_iter().filter(|&(l, n)| n == 1 || l == ELLIPSIS).map(|(l, _)| l).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str) -> String {
        match Equation::parse(text) {
            Ok(e) => e.output.into_iter().collect(),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    fn an_implicit_result_is_sorted_with_upper_case_and_ellipsis_first() {
        assert_eq!(output("ij,jk"), "ik");
        assert_eq!(output("ba"), "ab");
        assert_eq!(output("aB"), "Ba");
        assert_eq!(output("...ba"), ".ab");
        assert_eq!(output("...i,...i"), ".");
    }

    #[test]
    fn blanks_do_not_count() {
        assert_eq!(Equation::parse("i j , jk -> k i").unwrap(), Equation::parse("ij,jk->ki").unwrap());
    }

    #[test]
    fn nonsense_is_an_error() {
        assert!(output("ii").contains("must be written after `->`"));
        assert!(output("ij->ii").contains("label `i` twice"));
        assert!(output("ij->ik").contains("label `k`, which no operand has"));
        assert!(output("i1->i").contains("found `1`"));
        assert!(output("i..->i").contains("found `.`"));
        assert!(output("...i...->i").contains("at most one ellipsis"));
    }
}
