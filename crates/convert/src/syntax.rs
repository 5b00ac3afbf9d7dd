//! The small grammar that options share: lists split at commas outside of brackets, names followed by a bracketed group,
//! shapes and numbers. Names come from frameworks and may hold dots, slashes, colons and spaces, but no brackets.

use carafe_graph::{Error, Result};
use carafe_tensor::{Dim, PartialShape};

/// Splits at `separator` outside of `()`, `[]` and `{}`; brackets that do not pair are an error.
pub(super) fn split_outside(text: &str, separator: char) -> Result<Vec<&str>> {
    let mut open = Vec::new();
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => open.push(c),
            ')' | ']' | '}' => {
                let fits = matches!((open.pop(), c), (Some('('), ')') | (Some('['), ']') | (Some('{'), '}'));
                if !fits {
                    return Err(Error::usage(format!("`{text}`: `{c}` closes a bracket that is not open")));
                }
            }
            _ if c == separator && open.is_empty() => {
                parts.push(text[start..at].trim());
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    if let Some(c) = open.last() {
        return Err(Error::usage(format!("`{text}`: `{c}` is never closed")));
    }
    parts.push(text[start..].trim());
    Ok(parts)
}

/// Items of a comma list; an empty item is an error.
pub(super) fn list(text: &str) -> Result<Vec<&str>> {
    let items = split_outside(text, ',')?;
    match items.iter().position(|i| i.is_empty()) {
        Some(at) => Err(Error::usage(format!("item {} of `{text}` is empty", at + 1))),
        None => Ok(items),
    }
}

/// `name(group)` as name and inside; the group may be missing. `brackets` are the pairs that may open it.
pub(super) fn name_and_group<'a>(item: &'a str, brackets: &[(char, char)]) -> (&'a str, Option<&'a str>) {
    for &(open, close) in brackets {
        if let (Some(inner), Some(at)) = (item.strip_suffix(close), item.find(open)) {
            return (item[..at].trim(), Some(inner[at + open.len_utf8()..].trim()));
        }
    }
    (item, None)
}

/// Dimensions between commas, spaces or both; the brackets are gone already.
pub(super) fn shape(inside: &str) -> Result<PartialShape> {
    if inside.trim() == "..." {
        return Ok(PartialShape::dynamic());
    }
    let dims = words(inside).map(str::parse::<Dim>).collect::<Result<Vec<_>, _>>();
    dims.map(PartialShape::new).map_err(|_| {
        Error::usage(format!(
            "`[{inside}]` is no shape; expected sizes such as [1,3,?,10..20], where ? or -1 is any size, 1..8, ..8 and 1.. \
             are ranges, and [...] is any shape"
        ))
    })
}

/// What commas and spaces separate.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == ',' || c.is_whitespace()).filter(|w| !w.is_empty())
}

/// Finite numbers between commas or spaces.
pub(super) fn numbers(inside: &str) -> Result<Vec<f64>> {
    let values: Option<Vec<f64>> = words(inside).map(|w| w.parse().ok().filter(|x: &f64| x.is_finite())).collect();
    match values {
        Some(values) if !values.is_empty() => Ok(values),
        _ => Err(Error::usage(format!("`({inside})` is no list of numbers; expected such as (123.7,116.3,103.5)"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_inside_brackets_do_not_split() {
        assert_eq!(list("a[1,2], b{f32}, (3,4)").unwrap(), ["a[1,2]", "b{f32}", "(3,4)"]);
    }

    #[test]
    fn brackets_must_pair() {
        assert!(list("a[1,2").unwrap_err().to_string().contains("`[` is never closed"));
        assert!(list("a[1,2)").unwrap_err().to_string().contains("`)` closes"));
        assert!(list("a,,b").unwrap_err().to_string().contains("item 2"));
    }

    #[test]
    fn shapes_take_commas_and_spaces() {
        assert_eq!(shape("1 3,?").unwrap(), shape("1,3,-1").unwrap());
        assert_eq!(shape("").unwrap(), PartialShape::scalar());
        assert!(shape("1,x").is_err());
    }
}
