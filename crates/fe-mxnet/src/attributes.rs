//! Settings of operators. The file holds them as text in the notation of Python; rules and mappings read numbers, lists and
//! words, whatever language they are written in. What only training, devices or other tools look at has no effect on the result.

use carafe_graph::{AttrMap, AttrValue};

/// Settings that say nothing about the result, of whatever operator.
const WITHOUT_EFFECT: &[&str] = &[
    "ctx",
    "ctx_group",
    "cudnn_algo_bwd_data",
    "cudnn_algo_bwd_filter",
    "cudnn_algo_fwd",
    "cudnn_off",
    "cudnn_tensor_core",
    "cudnn_tune",
    "force_mirroring",
    "forward_stype",
    "is_int",
    "lr_mult",
    "mirror_stage",
    "momentum",
    "sparse_grad",
    "wd_mult",
    "workspace",
];

/// Whether an attribute says nothing about the result.
pub(crate) fn is_without_effect(name: &str) -> bool {
    let is_hidden = name.starts_with("__") && name.ends_with("__");
    is_hidden || WITHOUT_EFFECT.contains(&name) || name.ends_with("_lr_mult") || name.ends_with("_wd_mult")
}

/// The attributes of a node as rules read them.
pub(crate) fn of(attrs: &[(String, String)]) -> AttrMap {
    let is_hidden = |name: &str| name.starts_with("__") && name.ends_with("__");
    attrs.iter().filter(|(name, _)| !is_hidden(name)).map(|(name, text)| (name.clone(), value(text))).collect()
}

/// What a text stands for: a number, True or False, a tuple of numbers, else a word. `None` is a word, which rules know.
pub(crate) fn value(text: &str) -> AttrValue {
    let plain = text.trim();
    if let Some(items) = items(plain) {
        let numbers: Option<Vec<i64>> = items.iter().map(|i| int(i)).collect();
        if let Some(numbers) = numbers {
            return AttrValue::Ints(numbers);
        }
        let numbers: Option<Vec<f64>> = items.iter().map(|i| float(i)).collect();
        return numbers.map_or_else(|| AttrValue::Text(plain.to_string()), AttrValue::Floats);
    }
    match (plain, int(plain), float(plain)) {
        ("True", ..) => AttrValue::Bool(true),
        ("False", ..) => AttrValue::Bool(false),
        (_, Some(number), _) => AttrValue::Int(number),
        (_, None, Some(number)) => AttrValue::Float(number),
        _ => AttrValue::Text(plain.to_string()),
    }
}

/// The elements of a tuple or list as text; `None` for what is neither.
pub(crate) fn items(text: &str) -> Option<Vec<&str>> {
    let inner = text.strip_prefix('(').and_then(|t| t.strip_suffix(')'));
    let inner = inner.or_else(|| text.strip_prefix('[').and_then(|t| t.strip_suffix(']')))?;
    Some(inner.split(',').map(str::trim).filter(|s| !s.is_empty()).collect())
}

pub(crate) fn int(text: &str) -> Option<i64> {
    text.strip_suffix('L').unwrap_or(text).parse().ok()
}

pub(crate) fn float(text: &str) -> Option<f64> {
    text.strip_suffix('L').unwrap_or(text).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_of_numbers_become_lists() {
        assert_eq!(value("(3, 3)"), AttrValue::Ints(vec![3, 3]));
        assert_eq!(value("[3L,]"), AttrValue::Ints(vec![3]));
        assert_eq!(value("()"), AttrValue::Ints(vec![]));
        assert_eq!(value("(0.5, 1)"), AttrValue::Floats(vec![0.5, 1.0]));
    }

    #[test]
    fn numbers_and_truth_values_are_what_they_say() {
        assert_eq!(value("1e-05"), AttrValue::Float(1e-5));
        assert_eq!(value("64L"), AttrValue::Int(64));
        assert_eq!(value("True"), AttrValue::Bool(true));
    }

    #[test]
    fn other_values_stay_text() {
        assert_eq!(value("(None, 2)"), AttrValue::Text("(None, 2)".into()));
        assert_eq!(value("relu"), AttrValue::Text("relu".into()));
    }

    #[test]
    fn hidden_attributes_are_left_out() {
        let attrs = [("__lr_mult__".to_string(), "2".to_string()), ("axis".to_string(), "1".to_string())];
        assert_eq!(of(&attrs).iter().map(|(n, _)| n).collect::<Vec<_>>(), ["axis"]);
    }
}
