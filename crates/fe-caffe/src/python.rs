//! `param_str` of Python layers: a dictionary of Python literals, its braces optional. Lists become lists of one kind; a
//! dictionary inside is `outer__inner`. A text that is something else stays one attribute, `param_str`.

use carafe_graph::AttrValue;
use carafe_textproto::{Cursor, TextError, Value};

/// Lists and dictionaries inside of each other deeper than this are refused.
const MAX_DEPTH: usize = 50;

/// The attributes of a `param_str`.
pub(crate) fn attributes(text: &str) -> Vec<(String, AttrValue)> {
    if text.trim().is_empty() {
        return vec![];
    }
    match dictionary(text) {
        Ok(entries) => {
            let mut all = vec![];
            flatten("", entries, &mut all);
            all
        }
        Err(_) => vec![("param_str".into(), AttrValue::Str(text.to_string()))],
    }
}

#[derive(Debug, PartialEq)]
enum Literal {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Str(String),
    List(Vec<Literal>),
    Dict(Vec<(String, Literal)>),
}

fn flatten(prefix: &str, entries: Vec<(String, Literal)>, into: &mut Vec<(String, AttrValue)>) {
    for (name, literal) in entries {
        let name = if prefix.is_empty() { name } else { format!("{prefix}__{name}") };
        let value = match literal {
            Literal::Dict(inner) => {
                flatten(&name, inner, into);
                continue;
            }
            // An absent value is an absent attribute.
            Literal::None => continue,
            Literal::Bool(b) => AttrValue::Bool(b),
            Literal::Int(i) => AttrValue::Int(i),
            Literal::Float(x) => AttrValue::Float(x),
            Literal::Str(s) => AttrValue::Str(s),
            Literal::List(items) => list(&items),
        };
        into.push((name, value));
    }
}

fn list(items: &[Literal]) -> AttrValue {
    let ints = items.iter().map(|i| match i {
        Literal::Int(n) => Some(*n),
        Literal::Bool(b) => Some(i64::from(*b)),
        _ => None,
    });
    let floats = items.iter().map(|i| match i {
        Literal::Int(n) => Some(*n as f64),
        Literal::Float(x) => Some(*x),
        _ => None,
    });
    if let Some(ints) = ints.collect::<Option<Vec<_>>>() {
        AttrValue::Ints(ints)
    } else if let Some(floats) = floats.collect::<Option<Vec<_>>>() {
        AttrValue::Floats(floats)
    } else {
        AttrValue::Strs(items.iter().map(shown).collect())
    }
}

fn shown(literal: &Literal) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match literal {
        Literal::None => "None".into(),
        Literal::Bool(b) => if *b { "True" } else { "False" }.into(),
        Literal::Int(i) => i.to_string(),
        Literal::Float(x) => x.to_string(),
        Literal::Str(s) => s.clone(),
        Literal::List(items) => format!("[{}]", joined(items.iter().map(shown).collect())),
        Literal::Dict(items) => {
            format!("{{{}}}", joined(items.iter().map(|(k, v)| format!("{k}: {}", shown(v))).collect()))
        }
    }
}

fn dictionary(text: &str) -> Result<Vec<(String, Literal)>, TextError> {
    let mut c = Cursor::new(text);
    c.skip_blanks();
    let close = c.eat('{').then_some('}');
    let entries = entries(&mut c, close, 0)?;
    c.skip_blanks();
    if c.peek().is_none() { Ok(entries) } else { Err(c.expected("the end")) }
}

fn entries(c: &mut Cursor<'_>, close: Option<char>, depth: usize) -> Result<Vec<(String, Literal)>, TextError> {
    let mut all = vec![];
    loop {
        c.skip_blanks();
        match (c.peek(), close) {
            (None, None) => return Ok(all),
            (Some(found), Some(close)) if found == close => {
                c.bump();
                return Ok(all);
            }
            _ => {}
        }
        let key = match c.peek() {
            Some('"' | '\'') => string(c)?,
            // YAML writes keys without quotes.
            _ => match c.word() {
                "" => return Err(c.expected("a key")),
                word => word.to_string(),
            },
        };
        c.skip_blanks();
        if !c.eat(':') {
            return Err(c.expected("`:`"));
        }
        let value = literal(c, depth)?;
        all.push((key, value));
        c.skip_blanks();
        if !c.eat(',') && c.peek().is_some() && c.peek() != close {
            return Err(c.expected("`,`"));
        }
    }
}

fn literal(c: &mut Cursor<'_>, depth: usize) -> Result<Literal, TextError> {
    if depth > MAX_DEPTH {
        return Err(c.error(format!("literals are nested deeper than {MAX_DEPTH}")));
    }
    c.skip_blanks();
    match c.peek() {
        Some('{') => {
            c.bump();
            Ok(Literal::Dict(entries(c, Some('}'), depth + 1)?))
        }
        Some(open @ ('[' | '(')) => {
            c.bump();
            let close = if open == '[' { ']' } else { ')' };
            let mut items = vec![];
            let mut commas = 0;
            loop {
                c.skip_blanks();
                if c.eat(close) {
                    break;
                }
                items.push(literal(c, depth + 1)?);
                c.skip_blanks();
                if c.eat(',') {
                    commas += 1;
                } else if c.peek() != Some(close) {
                    return Err(c.expected("`,`"));
                }
            }
            // `(1)` is 1, `(1,)` a tuple.
            match (open, commas, items.pop()) {
                ('(', 0, Some(one)) => Ok(one),
                (_, _, last) => {
                    items.extend(last);
                    Ok(Literal::List(items))
                }
            }
        }
        Some('"' | '\'') => {
            let mut text = string(c)?;
            c.skip_blanks();
            while matches!(c.peek(), Some('"' | '\'')) {
                text.push_str(&string(c)?);
                c.skip_blanks();
            }
            Ok(Literal::Str(text))
        }
        Some('-' | '+' | '.' | '0'..='9') => {
            let negative = c.eat('-');
            if !negative {
                c.eat('+');
            }
            c.skip_blanks();
            if !matches!(c.peek(), Some('.' | '0'..='9')) {
                return Err(c.expected("a number"));
            }
            match c.number(negative)? {
                Value::Int(n) => Ok(i64::try_from(n).map_or(Literal::Float(n as f64), Literal::Int)),
                Value::Float(x) => Ok(Literal::Float(x)),
                _ => Err(c.error("expected a number")),
            }
        }
        _ => match c.word() {
            "True" | "true" => Ok(Literal::Bool(true)),
            "False" | "false" => Ok(Literal::Bool(false)),
            "None" | "null" => Ok(Literal::None),
            _ => Err(c.expected("a literal")),
        },
    }
}

fn string(c: &mut Cursor<'_>) -> Result<String, TextError> {
    let at = c.position();
    let quote = c.bump().unwrap_or('"');
    let mut text = String::new();
    loop {
        text.push_str(c.take_while(|c| c != quote && c != '\\' && c != '\n'));
        match c.bump() {
            Some('\\') => match c.bump() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(other @ ('\\' | '\'' | '"')) => text.push(other),
                Some(other) => text.extend(['\\', other]),
                None => return Err(at.error("the string does not end")),
            },
            Some(found) if found == quote => return Ok(text),
            _ => return Err(at.error("the string does not end on its line")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_gives_attributes_with_and_without_braces() {
        let text =
            "'feat_stride': 16, \"ratios\": [0.5, 1, 2], 'scales': (8, 16), 'name': 'a' 'b', 'on': True, 'x': None";
        let found = attributes(text);
        assert_eq!(found, attributes(&format!("{{{text},}}")));
        assert_eq!(found[0], ("feat_stride".into(), AttrValue::Int(16)));
        assert_eq!(found[1], ("ratios".into(), AttrValue::Floats(vec![0.5, 1.0, 2.0])));
        assert_eq!(found[2], ("scales".into(), AttrValue::Ints(vec![8, 16])));
        assert_eq!(found[3], ("name".into(), AttrValue::Str("ab".into())));
        assert_eq!(found[4], ("on".into(), AttrValue::Bool(true)));
        assert_eq!(found.len(), 5);
    }

    #[test]
    fn dictionaries_inside_and_single_tuples() {
        let found = attributes("{'a': {'b': -1, 'c': {'d': 1e-3}}, 't': (3,), 'n': (3), 'mixed': [1, 'x']}");
        let names: Vec<&str> = found.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["a__b", "a__c__d", "t", "n", "mixed"]);
        assert_eq!(found[2].1, AttrValue::Ints(vec![3]));
        assert_eq!(found[3].1, AttrValue::Int(3));
        assert_eq!(found[4].1, AttrValue::Strs(vec!["1".into(), "x".into()]));
    }

    #[test]
    fn another_text_stays_as_it_is() {
        for text in ["16", "some words", "'a': f(x)", "{'a': 1", "'a': 1 'b': 2", &"[".repeat(10_000)] {
            assert_eq!(attributes(text), [("param_str".to_string(), AttrValue::Str(text.to_string()))]);
        }
        assert!(attributes("  ").is_empty());
    }
}
