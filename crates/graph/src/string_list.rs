//! The text of a list of strings in an IR. Ordinary strings stand as in any other list, `a, b`, which OpenVINO reads and
//! writes. A list that would not come back from that (a comma, an empty string, blanks at an end, control characters) is
//! written as a JSON array, `["a,b", ""]`, which OpenVINO takes for strings with quotes but no reader of ours mistakes.

use std::fmt::Write;

/// Whether the list survives being joined with commas and split at them.
pub(crate) fn is_plain(list: &[String]) -> bool {
    let ordinary = |s: &String| !s.is_empty() && s.trim() == s && !s.contains(|c: char| c == ',' || is_escaped(c));
    list.iter().all(ordinary)
        && !list.first().is_some_and(|s| s.starts_with('['))
        && !list.last().is_some_and(|s| s.ends_with(']'))
}

pub(crate) fn join(list: &[String]) -> String {
    if is_plain(list) {
        return list.join(", ");
    }
    let mut text = String::from("[");
    for (i, item) in list.iter().enumerate() {
        text.push_str(if i == 0 { "\"" } else { ", \"" });
        for c in item.chars() {
            match c {
                '"' | '\\' => text.extend(['\\', c]),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                c if is_escaped(c) => write!(text, "\\u{:04x}", c as u32).expect("a String takes all"),
                c => text.push(c),
            }
        }
        text.push('"');
    }
    text.push(']');
    text
}

/// Reads either form. Text that only looks like an array is split at its commas, as it always was.
pub(crate) fn split(text: &str) -> Vec<String> {
    let text = text.trim();
    if let Some(list) = array(text) {
        return list;
    }
    let inner = text.trim_start_matches('[').trim_end_matches(']');
    inner.split(',').map(str::trim).filter(|s| !s.is_empty()).map(str::to_string).collect()
}

// What XML cannot hold at all. Blanks other than ' ' would survive as character references, but not every editor.
fn is_escaped(c: char) -> bool {
    c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}')
}

fn array(text: &str) -> Option<Vec<String>> {
    let mut chars = text.strip_prefix('[')?.chars().peekable();
    let mut list = vec![];
    loop {
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        if chars.next()? != '"' {
            return None;
        }
        list.push(quoted(&mut chars)?);
        while chars.next_if(|c| c.is_whitespace()).is_some() {}
        match chars.next()? {
            ',' => {}
            ']' => return chars.next().is_none().then_some(list),
            _ => return None,
        }
    }
}

fn quoted(chars: &mut impl Iterator<Item = char>) -> Option<String> {
    let mut out = String::new();
    loop {
        match chars.next()? {
            '"' => return Some(out),
            '\\' => out.push(match chars.next()? {
                c @ ('"' | '\\' | '/') => c,
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' => {
                    let digits: String = chars.by_ref().take(4).collect();
                    char::from_u32(u32::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 4)?)?
                }
                _ => return None,
            }),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: &[&str]) -> Vec<String> {
        items.iter().map(|s| s.to_string()).collect()
    }

    #[test]
    fn ordinary_strings_are_joined_with_commas() {
        assert_eq!(join(&list(&["a", "b c", "d\\e", "\"f\"", "x[0]y"])), "a, b c, d\\e, \"f\", x[0]y");
        assert_eq!(join(&[]), "");
    }

    #[test]
    fn others_are_written_as_an_array() {
        assert_eq!(join(&list(&["a,b", "c"])), r#"["a,b", "c"]"#);
        assert_eq!(join(&list(&[""])), r#"[""]"#);
        assert_eq!(join(&list(&[" \"x\\", "\u{1}\n"])), r#"[" \"x\\", "\u0001\n"]"#);
    }

    #[test]
    fn every_list_reads_back() {
        let odd =
            ["", " ", ",", "a,b", "\\", "\"", "[", "]", "[\"a\"]", "\n", "\u{0}", "\u{85}", "é", "\u{10ffff}", "a"];
        for a in odd {
            assert_eq!(split(&join(&list(&[a]))), [a]);
            for b in odd {
                assert_eq!(split(&join(&list(&[a, b]))), [a, b]);
            }
        }
        assert!(split(&join(&[])).is_empty());
    }

    #[test]
    fn lists_of_other_writers_read_as_before() {
        assert_eq!(split(" a,b , c"), ["a", "b", "c"]);
        assert_eq!(split("[a, b]"), ["a", "b"]);
        assert_eq!(split(r#"["a", b]"#), ["\"a\"", "b"]);
        assert_eq!(split("a,,b,"), ["a", "b"]);
    }
}
