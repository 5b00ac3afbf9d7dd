//! Attributes of an operation as text of OpenCL C and as numbers of expressions.

use crate::expression::Number;
use crate::layout::c_type;
use carafe_graph::{AttrMap, AttrValue, Error, Result};

/// How a `Define` prints a value: strings as they are, booleans as 0 and 1, floats with six decimals, lists with commas.
pub(crate) fn define_text(name: &str, value: &AttrValue) -> Result<String> {
    let list = |items: Vec<String>| items.join(",");
    Ok(match value {
        AttrValue::Text(s) | AttrValue::Str(s) => s.clone(),
        AttrValue::Bool(b) => u8::from(*b).to_string(),
        AttrValue::Int(i) => i.to_string(),
        AttrValue::Float(x) => format!("{x:.6}"),
        AttrValue::Ints(v) => list(v.iter().map(i64::to_string).collect()),
        AttrValue::Floats(v) => list(v.iter().map(|x| format!("{x:.6}")).collect()),
        AttrValue::Strs(v) => list(v.clone()),
        AttrValue::Type(t) if c_type(*t).is_some() => c_type(*t).unwrap_or_default().to_string(),
        AttrValue::Shape(s) if s.is_static() => s.to_string().replace(' ', ""),
        other => {
            return Err(Error::unsupported(format!(
                "attribute `{name}` can't be processed: {other} has no text in OpenCL C"
            )));
        }
    })
}

/// How conditions of the VPU see a value: as a file has it, lists without blanks, booleans as 0 and 1.
pub(crate) fn parameter_text(value: &AttrValue) -> Option<String> {
    Some(match value {
        AttrValue::Bool(b) => u8::from(*b).to_string(),
        AttrValue::Text(s) | AttrValue::Str(s) => match s.trim().to_ascii_lowercase().as_str() {
            "true" => "1".into(),
            "false" => "0".into(),
            _ => s.split(',').map(str::trim).collect::<Vec<_>>().join(","),
        },
        other => other.to_text()?.split(',').map(str::trim).collect::<Vec<_>>().join(","),
    })
}

/// One number, or one of a list by `NAME[0]`.
pub(crate) fn number(attrs: &AttrMap, name: &str) -> Option<Number> {
    if let Some((list, index)) = name.strip_suffix(']').and_then(|n| n.split_once('[')) {
        let text = parameter_text(attrs.get(list)?)?;
        return to_number(text.split(',').nth(index.parse().ok()?)?);
    }
    to_number(&parameter_text(attrs.get(name)?)?)
}

/// A text as a number, if it is one.
pub(crate) fn to_number(text: &str) -> Option<Number> {
    let text = text.trim();
    if let Ok(i) = text.parse::<i64>() {
        return Some(Number::Int(i));
    }
    text.parse::<f64>().ok().filter(|x| x.is_finite()).map(Number::Float)
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_tensor::ElementType;

    fn define(value: AttrValue) -> String {
        define_text("a", &value).unwrap()
    }

    #[test]
    fn a_define_prints_as_c_does() {
        assert_eq!(define(AttrValue::Text("left, right".into())), "left, right");
        assert_eq!(define(AttrValue::Bool(true)), "1");
        assert_eq!(define(AttrValue::Int(-3)), "-3");
        assert_eq!(define(AttrValue::Float(0.1)), "0.100000");
        assert_eq!(define(AttrValue::Ints(vec![1, 2])), "1,2");
        assert_eq!(define(AttrValue::Floats(vec![0.5, 2.0])), "0.500000,2.000000");
        assert_eq!(define(AttrValue::Type(ElementType::F16)), "half");
    }

    #[test]
    fn what_has_no_text_is_named() {
        let e = define_text("ty", &AttrValue::Type(ElementType::Bf16)).unwrap_err();
        assert_eq!(e.to_string(), "attribute `ty` can't be processed: bf16 has no text in OpenCL C");
    }

    #[test]
    fn parameters_have_no_blanks_and_booleans_are_numbers() {
        assert_eq!(parameter_text(&AttrValue::Ints(vec![3, 3])).unwrap(), "3,3");
        assert_eq!(parameter_text(&AttrValue::Text("3, 3".into())).unwrap(), "3,3");
        assert_eq!(parameter_text(&AttrValue::Text("True".into())).unwrap(), "1");
    }

    #[test]
    fn a_list_has_numbers_by_index() {
        let attrs: AttrMap = [("strides".to_string(), AttrValue::Ints(vec![2, 4]))].into_iter().collect();
        assert_eq!(number(&attrs, "strides[1]"), Some(Number::Int(4)));
        assert_eq!((number(&attrs, "strides[2]"), number(&attrs, "strides"), number(&attrs, "x")), (None, None, None));
    }
}
