//! What was written: fields in their order, each with its place. Numbers stay as wide as they were written; a word may be
//! an enum value, a boolean or a float like `inf`, which only the reader of the tree can tell.

use std::fmt;

/// Place in a text, counted from 1; columns count characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// What is wrong with a text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    pub at: Position,
    pub message: String,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.at.line, self.at.column, self.message)
    }
}

impl std::error::Error for TextError {}

impl Position {
    pub fn error(self, message: impl Into<String>) -> TextError {
        TextError { at: self, message: message.into() }
    }
}

/// A message: its fields as they were written, repeated ones several times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Message {
    pub fields: Vec<Field>,
}

/// One field. The name of an extension or an expanded `Any` keeps its brackets: `[a.b]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    pub name: String,
    pub at: Position,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number of at most 64 bits.
    Int(i128),
    Float(f64),
    /// Bytes of a string with its escapes resolved.
    Str(Vec<u8>),
    /// A word without quotes.
    Word(String),
    Message(Message),
    List(Vec<(Position, Value)>),
}

impl Message {
    /// Values of a field in their order; a list counts as its elements.
    pub fn all<'m>(&'m self, name: &'m str) -> impl Iterator<Item = (Position, &'m Value)> {
        self.fields.iter().filter(move |f| f.name == name).flat_map(|f| match &f.value {
            Value::List(items) => items.iter().map(|(at, v)| (*at, v)).collect::<Vec<_>>(),
            v => vec![(f.at, v)],
        })
    }
    /// The last value of a field: a field written twice counts as the last one.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.fields.iter().rev().find(|f| f.name == name).map(|f| &f.value)
    }
}

impl Value {
    /// What the value is, for messages.
    pub fn describe(&self) -> String {
        match self {
            Value::Int(n) => format!("`{n}`"),
            Value::Float(x) => format!("`{x}`"),
            Value::Str(_) => "a string".into(),
            Value::Word(w) => format!("`{w}`"),
            Value::Message(_) => "a message".into(),
            Value::List(_) => "a list".into(),
        }
    }
    pub fn as_i64(&self) -> Option<i64> {
        if let Value::Int(n) = self { i64::try_from(*n).ok() } else { None }
    }
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(n) => Some(*n as f64),
            Value::Float(x) => Some(*x),
            Value::Word(w) => match w.to_ascii_lowercase().as_str() {
                "inf" | "infinity" => Some(f64::INFINITY),
                "nan" => Some(f64::NAN),
                _ => None,
            },
            _ => None,
        }
    }
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Int(0) => Some(false),
            Value::Int(1) => Some(true),
            Value::Word(w) => match w.as_str() {
                "true" | "True" | "t" => Some(true),
                "false" | "False" | "f" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }
    /// The word of an enum value.
    pub fn as_word(&self) -> Option<&str> {
        if let Value::Word(w) = self { Some(w) } else { None }
    }
    pub fn as_message(&self) -> Option<&Message> {
        if let Value::Message(m) = self { Some(m) } else { None }
    }
}
