//! Properties from one table: the table checks what users set, documents itself, and supplies defaults. Values are text
//! everywhere, as users write them on the command line.

use carafe_graph::{Error, Result};
use std::collections::BTreeMap;

/// What a property's text must look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PropertyKind {
    /// `true`, `false`, and the older `YES`, `NO`.
    Bool,
    /// A whole number within bounds.
    Int {
        /// Least.
        min: i64,
        /// Greatest.
        max: i64,
    },
    /// Any text.
    Text,
    /// One of these words, in any case.
    Enum(&'static [&'static str]),
}

/// Whether a property may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutability {
    /// Only read.
    ReadOnly,
    /// Read and set.
    ReadWrite,
}

/// One row of a device's property table.
#[derive(Clone, Copy, Debug)]
pub struct PropertyInfo {
    /// Name, as users write it.
    pub name: &'static str,
    /// What its text must look like.
    pub kind: PropertyKind,
    /// Whether it may be set.
    pub mutability: Mutability,
    /// Text of the default; empty for read-only ones.
    pub default: &'static str,
    /// A sentence for people.
    pub doc: &'static str,
}

/// Property values by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

impl Properties {
    /// None.
    pub fn new() -> Properties {
        Properties::default()
    }
    /// Adds one, in the manner of a builder.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Properties {
        self.set(name, value);
        self
    }
    /// Sets one.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.0.insert(name.to_string(), value.to_string());
    }
    /// The value of one, if it is set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
    /// Takes one out.
    pub fn remove(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }
    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v.as_str()))
    }
    /// These values, with those of `over` in front.
    pub fn overlaid(&self, over: &Properties) -> Properties {
        let mut all = self.clone();
        all.0.extend(over.0.clone());
        all
    }
    /// Checks every value against the table.
    pub fn check(&self, table: &[PropertyInfo]) -> Result<()> {
        self.iter().try_for_each(|(name, value)| check_one(table, name, value))
    }
    /// The value, or the table's default.
    pub fn or_default<'a>(&'a self, table: &'a [PropertyInfo], name: &str) -> Option<&'a str> {
        self.get(name).or_else(|| table.iter().find(|p| p.name == name).map(|p| p.default))
    }
    /// Whether a switch is on, by value or default.
    pub fn is_on(&self, table: &[PropertyInfo], name: &str) -> bool {
        self.or_default(table, name).and_then(parse_bool) == Some(true)
    }
}

/// Whether `name` may be set to `value`; the error names the near ones, the range or the words.
fn check_one(table: &[PropertyInfo], name: &str, value: &str) -> Result<()> {
    let Some(info) = table.iter().find(|p| p.name == name) else {
        let known: Vec<&str> = table.iter().filter(|p| p.mutability == Mutability::ReadWrite).map(|p| p.name).collect();
        return Err(Error::not_found(format!("there is no property `{name}`; known: {}", known.join(", "))));
    };
    if info.mutability == Mutability::ReadOnly {
        return Err(Error::usage(format!("property `{name}` can only be read")));
    }
    let wanted = match info.kind {
        PropertyKind::Text => return Ok(()),
        PropertyKind::Bool if parse_bool(value).is_some() => return Ok(()),
        PropertyKind::Bool => "true or false".to_string(),
        PropertyKind::Int { min, max } => match value.trim().parse::<i64>() {
            Ok(n) if (min..=max).contains(&n) => return Ok(()),
            _ => format!("an integer from {min} to {max}"),
        },
        PropertyKind::Enum(words) if words.iter().any(|w| w.eq_ignore_ascii_case(value.trim())) => return Ok(()),
        PropertyKind::Enum(words) => format!("one of {}", words.join(", ")),
    };
    Err(Error::usage(format!("property `{name}` takes {wanted}, found `{value}`")))
}

fn parse_bool(s: &str) -> Option<bool> {
    match s.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "1" | "on" => Some(true),
        "false" | "no" | "0" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[PropertyInfo] = &[
        PropertyInfo {
            name: "PERF_COUNT",
            kind: PropertyKind::Bool,
            mutability: Mutability::ReadWrite,
            default: "false",
            doc: "",
        },
        PropertyInfo {
            name: "NUM_STREAMS",
            kind: PropertyKind::Int { min: 1, max: 8 },
            mutability: Mutability::ReadWrite,
            default: "1",
            doc: "",
        },
    ];

    #[test]
    fn an_unknown_property_lists_the_known_ones() {
        let e = Properties::new().with("PERF_CONT", "true").check(TABLE).unwrap_err();
        assert_eq!(e.to_string(), "there is no property `PERF_CONT`; known: PERF_COUNT, NUM_STREAMS");
    }

    #[test]
    fn a_value_out_of_range_says_the_range() {
        let e = Properties::new().with("NUM_STREAMS", -1).check(TABLE).unwrap_err();
        assert_eq!(e.to_string(), "property `NUM_STREAMS` takes an integer from 1 to 8, found `-1`");
    }

    #[test]
    fn the_old_words_for_booleans_are_taken() {
        assert!(Properties::new().with("PERF_COUNT", "YES").is_on(TABLE, "PERF_COUNT"));
    }
}
