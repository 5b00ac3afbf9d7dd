//! Lists of tensor names. A comma inside a name is written as `\,`; a backslash has no other meaning, so a name that ends
//! in one can only stand last.

use carafe_graph::{Error, Result};
use std::collections::BTreeSet;

/// Splits at commas that have no backslash before them; empty entries are dropped, blanks are kept.
pub(crate) fn split(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut name = String::new();
    for c in text.chars() {
        match c {
            ',' if name.ends_with('\\') => {
                name.pop();
                name.push(',');
            }
            ',' => {
                names.insert(std::mem::take(&mut name));
            }
            c => name.push(c),
        }
    }
    names.insert(name);
    names.remove("");
    names
}

/// Joins in sorted order.
pub(crate) fn join(names: &BTreeSet<String>) -> Result<String> {
    let (last, first): (Vec<&String>, Vec<&String>) = names.iter().partition(|n| n.ends_with('\\'));
    if last.len() > 1 {
        return Err(Error::unsupported(format!(
            "tensor names `{}` and `{}` both end in a backslash, which one list cannot hold",
            last[0], last[1]
        )));
    }
    let escaped: Vec<String> = first.into_iter().chain(last).map(|n| n.replace(',', "\\,")).collect();
    Ok(escaped.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|n| n.to_string()).collect()
    }

    #[test]
    fn lists_split_as_openvino_does() {
        assert_eq!(split(r"a\,b,c, d,e\\,f,g\"), set(&["a,b", "c", " d", r"e\,f", r"g\"]));
    }

    #[test]
    fn empty_entries_are_dropped() {
        assert_eq!(split(",a,,b,"), set(&["a", "b"]));
        assert!(split("").is_empty());
    }

    #[test]
    fn every_list_that_can_be_written_reads_back() {
        for names in [&["a,b", "c"][..], &[r"x\,y"], &[r"a\", "b"], &[","], &[]] {
            assert_eq!(split(&join(&set(names)).unwrap()), set(names));
        }
    }

    #[test]
    fn two_names_that_end_in_a_backslash_are_an_error() {
        assert!(join(&set(&[r"a\", r"b\"])).is_err());
    }
}
