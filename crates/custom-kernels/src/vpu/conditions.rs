//! `Where`: conditions on attributes that a layer is for.

use crate::attributes::{parameter_text, to_number};
use crate::expression::Number;
use carafe_graph::AttrMap;

/// A restriction on one attribute, such as `kernel="3,3"` or `stride=">=2"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The attribute.
    pub name: String,
    /// What it must be.
    pub restriction: String,
}

impl Condition {
    /// Whether it holds. An attribute that is not there fulfils nothing.
    pub fn holds(&self, attrs: &AttrMap) -> bool {
        let Some(text) = attrs.get(&self.name).and_then(parameter_text) else { return false };
        let float = |text: &str| match to_number(text)? {
            Number::Int(i) => Some(i as f64),
            Number::Float(x) => Some(x),
        };
        let restriction = self.restriction.trim();
        let Some(value) = float(&text) else {
            let wanted = restriction.split(',').map(str::trim).collect::<Vec<_>>().join(",");
            return text.eq_ignore_ascii_case(&wanted);
        };
        let compared = [
            (">=", f64::ge as fn(&f64, &f64) -> bool),
            ("<=", f64::le),
            ("!=", f64::ne),
            (">", f64::gt),
            ("<", f64::lt),
            ("==", f64::eq),
            ("", f64::eq),
        ];
        let found = compared.iter().find_map(|(sign, holds)| Some((restriction.strip_prefix(sign)?, holds)));
        let wanted = |text: &str| match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(1.0),
            "false" => Some(0.0),
            text => float(text),
        };
        found.is_some_and(|(rest, holds)| wanted(rest).is_some_and(|limit| holds(&value, &limit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_graph::AttrValue;

    fn holds(restriction: &str, value: AttrValue) -> bool {
        let attrs: AttrMap = [("a".to_string(), value)].into_iter().collect();
        Condition { name: "a".into(), restriction: restriction.into() }.holds(&attrs)
    }

    #[test]
    fn numbers_are_compared() {
        let three = || AttrValue::Int(3);
        assert!(holds("3", three()) && holds(">=3", three()) && holds("<= 3", three()) && holds("!=2", three()));
        assert!(!holds(">3", three()) && !holds("<3", three()) && !holds("!=3", three()) && !holds("4", three()));
        assert!(holds("0.5", AttrValue::Float(0.5)) && holds(">0.25", AttrValue::Text("0.5".into())));
        assert!(!holds("three", three()) && !holds(">", three()));
    }

    #[test]
    fn texts_are_compared_without_case() {
        assert!(holds("3,3", AttrValue::Ints(vec![3, 3])) && !holds("3,3", AttrValue::Ints(vec![3, 1])));
        assert!(holds("NEAREST", AttrValue::Str("nearest".into())));
        assert!(!holds(">=3,3", AttrValue::Ints(vec![3, 3])));
    }

    #[test]
    fn booleans_are_numbers() {
        assert!(holds("1", AttrValue::Bool(true)) && holds("false", AttrValue::Bool(false)));
        assert!(holds("0", AttrValue::Text("False".into())));
    }

    #[test]
    fn an_attribute_that_is_not_there_fulfils_nothing() {
        assert!(!Condition { name: "b".into(), restriction: "!=1".into() }.holds(&AttrMap::new()));
    }
}
