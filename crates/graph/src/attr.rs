//! Attribute values and how typed fields read and write them. A value that comes from a file is `Text` until the field
//! it belongs to parses it, so one reader serves every file format.

use crate::body::Body;
use crate::string_list;
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

/// One attribute value of any kind.
#[derive(Clone, PartialEq, Debug)]
pub enum AttrValue {
    /// As it stood in a text file; the reading field decides what it means.
    Text(String),
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// Text.
    Str(String),
    /// Whole numbers.
    Ints(Vec<i64>),
    /// Numbers.
    Floats(Vec<f64>),
    /// Texts.
    Strs(Vec<String>),
    /// An element type.
    Type(ElementType),
    /// Element types.
    Types(Vec<ElementType>),
    /// A shape.
    Shape(PartialShape),
    /// A tensor.
    Tensor(TensorAttr),
    /// A model of its own.
    Body(Box<Body>),
}

macro_rules! values_from {
    ($($from:ty, $value:ident => $made:expr;)*) => {
        $(impl From<$from> for AttrValue {
            fn from($value: $from) -> AttrValue {
                $made
            }
        })*
    };
}

values_from! {
    bool, v => AttrValue::Bool(v);
    i32, v => AttrValue::Int(v.into());
    i64, v => AttrValue::Int(v);
    f32, v => AttrValue::Float(v.into());
    f64, v => AttrValue::Float(v);
    &str, v => AttrValue::Str(v.into());
    String, v => AttrValue::Str(v);
    Vec<i64>, v => AttrValue::Ints(v);
    Vec<f64>, v => AttrValue::Floats(v);
    Vec<String>, v => AttrValue::Strs(v);
    ElementType, v => AttrValue::Type(v);
    PartialShape, v => AttrValue::Shape(v);
}

/// A tensor as an attribute value: compared by content.
#[derive(Clone, Debug)]
pub struct TensorAttr(pub Tensor);

impl PartialEq for TensorAttr {
    fn eq(&self, other: &TensorAttr) -> bool {
        self.0.content_eq(&other.0)
    }
}

/// The kind of an attribute, for schemas and documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AttrKind {
    /// True or false.
    Bool,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// Text.
    Str,
    /// Whole numbers.
    Ints,
    /// Numbers.
    Floats,
    /// Texts.
    Strs,
    /// An element type.
    Type,
    /// Element types.
    Types,
    /// A shape.
    Shape,
    /// A tensor.
    Tensor,
    /// A model of its own.
    Body,
    /// A string out of a fixed list.
    Enum(&'static [&'static str]),
}

/// Schema of one attribute, written by `#[derive(Op)]`.
#[derive(Clone, Copy, Debug)]
pub struct AttrInfo {
    /// Name, as in a file.
    pub name: &'static str,
    /// What its value is.
    pub kind: AttrKind,
    /// Text of the default expression; `None` for a required attribute.
    pub default: Option<&'static str>,
    /// Its documentation.
    pub doc: &'static str,
    /// Used while converting and running, never written to the files of an IR; a node read from one has the default.
    pub internal: bool,
}

/// A field type that can be an attribute.
pub trait Attr: Sized {
    /// What values of this type are.
    const KIND: AttrKind;
    /// Says in words what was expected when the value does not fit.
    fn read(value: &AttrValue) -> Result<Self, String>;
    /// `None` leaves the attribute out of the file.
    fn write(&self) -> Option<AttrValue>;
}

/// Adds an attribute to those of an operation, unless it is left out. Called by the derive.
pub fn write_attr<T: Attr>(to: &mut Vec<(Cow<'static, str>, AttrValue)>, name: &'static str, value: &T) {
    if let Some(value) = value.write() {
        to.push((Cow::Borrowed(name), value));
    }
}

impl AttrValue {
    /// The IR spelling of the value. `Tensor` and `Body` have none.
    pub fn to_text(&self) -> Option<String> {
        Some(match self {
            AttrValue::Text(s) | AttrValue::Str(s) => s.clone(),
            AttrValue::Bool(b) => b.to_string(),
            AttrValue::Int(i) => i.to_string(),
            AttrValue::Float(x) => float_text(*x),
            AttrValue::Ints(v) => join(v),
            AttrValue::Floats(v) => v.iter().map(|x| float_text(*x)).collect::<Vec<_>>().join(", "),
            AttrValue::Strs(v) => string_list::join(v),
            AttrValue::Type(t) => t.name().to_string(),
            AttrValue::Types(v) => join(v),
            AttrValue::Shape(s) => s.to_string(),
            AttrValue::Tensor(_) | AttrValue::Body(_) => return None,
        })
    }

    fn text(&self) -> Option<&str> {
        match self {
            AttrValue::Text(s) | AttrValue::Str(s) => Some(s.trim()),
            _ => None,
        }
    }
}

impl fmt::Display for AttrValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttrValue::Body(b) => write!(f, "<body of {} nodes>", b.model.len()),
            AttrValue::Tensor(t) => write!(f, "<{}{:?}>", t.0.element_type(), t.0.shape()),
            AttrValue::Text(s) | AttrValue::Str(s) => write!(f, "{s:?}"),
            AttrValue::Strs(v) if !string_list::is_plain(v) => f.write_str(&string_list::join(v)),
            AttrValue::Ints(_) | AttrValue::Floats(_) | AttrValue::Strs(_) | AttrValue::Types(_) => {
                write!(f, "[{}]", self.to_text().unwrap_or_default())
            }
            AttrValue::Shape(s) => write!(f, "[{s}]"),
            other => f.write_str(&other.to_text().unwrap_or_default()),
        }
    }
}

fn float_text(x: f64) -> String {
    if x.is_nan() {
        "nan".into()
    } else if x.is_infinite() {
        if x > 0.0 { "inf".into() } else { "-inf".into() }
    } else if x != 0.0 && (x.abs() < 1e-5 || x.abs() >= 1e16) {
        format!("{x:e}")
    } else {
        format!("{x}")
    }
}

fn join<T: fmt::Display>(v: &[T]) -> String {
    v.iter().map(|x| x.to_string()).collect::<Vec<_>>().join(", ")
}

fn items(text: &str) -> impl Iterator<Item = &str> {
    text.trim().trim_start_matches('[').trim_end_matches(']').split(',').map(str::trim).filter(|s| !s.is_empty())
}

fn parse_float(s: &str) -> Result<f64, String> {
    s.parse::<f64>().map_err(|_| format!("expected a number, found `{s}`"))
}

fn parse_int(s: &str) -> Result<i128, String> {
    s.parse::<i128>().map_err(|_| format!("expected an integer, found `{s}`"))
}

impl Attr for bool {
    const KIND: AttrKind = AttrKind::Bool;
    fn read(value: &AttrValue) -> Result<bool, String> {
        match value {
            AttrValue::Bool(b) => Ok(*b),
            AttrValue::Int(0) => Ok(false),
            AttrValue::Int(1) => Ok(true),
            v => match v.text().map(str::to_ascii_lowercase).as_deref() {
                Some("true" | "1") => Ok(true),
                Some("false" | "0") => Ok(false),
                _ => Err(format!("expected true or false, found {value}")),
            },
        }
    }
    fn write(&self) -> Option<AttrValue> {
        Some(AttrValue::Bool(*self))
    }
}

macro_rules! int_attr {
    ($($t:ty)*) => {$(
        impl Attr for $t {
            const KIND: AttrKind = AttrKind::Int;
            fn read(value: &AttrValue) -> Result<$t, String> {
                let n: i128 = match value {
                    AttrValue::Int(i) => *i as i128,
                    v => match v.text() {
                        Some(s) => s.parse::<i128>().map_err(|_| format!("expected an integer, found `{s}`"))?,
                        None => return Err(format!("expected an integer, found {value}")),
                    },
                };
                <$t>::try_from(n).map_err(|_| format!("{n} does not fit into {}", stringify!($t)))
            }
            fn write(&self) -> Option<AttrValue> {
                Some(match i64::try_from(*self) {
                    Ok(i) => AttrValue::Int(i),
                    Err(_) => AttrValue::Text(self.to_string()),
                })
            }
        }
        impl Attr for Vec<$t> {
            const KIND: AttrKind = AttrKind::Ints;
            fn read(value: &AttrValue) -> Result<Vec<$t>, String> {
                let list: Vec<i128> = match value {
                    AttrValue::Ints(v) => v.iter().map(|i| i128::from(*i)).collect(),
                    AttrValue::Int(i) => vec![i128::from(*i)],
                    v => match v.text() {
                        Some(s) => items(s).map(parse_int).collect::<Result<_, _>>()?,
                        None => return Err(format!("expected a list of integers, found {value}")),
                    },
                };
                list.into_iter()
                    .map(|n| <$t>::try_from(n).map_err(|_| format!("{n} does not fit into {}", stringify!($t))))
                    .collect()
            }
            fn write(&self) -> Option<AttrValue> {
                let numbers: Result<Vec<i64>, _> = self.iter().map(|&x| i64::try_from(x)).collect();
                Some(numbers.map_or_else(|_| AttrValue::Text(join(self)), AttrValue::Ints))
            }
        }
    )*};
}
int_attr!(i64 i32 u64 u32 usize);

macro_rules! float_attr {
    ($($t:ty)*) => {$(
        impl Attr for $t {
            const KIND: AttrKind = AttrKind::Float;
            fn read(value: &AttrValue) -> Result<$t, String> {
                match value {
                    AttrValue::Float(x) => Ok(*x as $t),
                    AttrValue::Int(i) => Ok(*i as $t),
                    v => match v.text() {
                        Some(s) => Ok(parse_float(s)? as $t),
                        None => Err(format!("expected a number, found {value}")),
                    },
                }
            }
            fn write(&self) -> Option<AttrValue> {
                Some(AttrValue::Float(shortest(*self)))
            }
        }
        impl Attr for Vec<$t> {
            const KIND: AttrKind = AttrKind::Floats;
            fn read(value: &AttrValue) -> Result<Vec<$t>, String> {
                match value {
                    AttrValue::Floats(v) => Ok(v.iter().map(|&x| x as $t).collect()),
                    AttrValue::Ints(v) => Ok(v.iter().map(|&x| x as $t).collect()),
                    AttrValue::Float(x) => Ok(vec![*x as $t]),
                    AttrValue::Int(x) => Ok(vec![*x as $t]),
                    v => match v.text() {
                        Some(s) => items(s).map(|s| parse_float(s).map(|x| x as $t)).collect(),
                        None => Err(format!("expected a list of numbers, found {value}")),
                    },
                }
            }
            fn write(&self) -> Option<AttrValue> {
                Some(AttrValue::Floats(self.iter().map(|&x| shortest(x)).collect()))
            }
        }
    )*};
}
float_attr!(f32 f64);

// An f32 is kept as the f64 nearest to its shortest decimal text, so 0.1f32 is written as `0.1`, not `0.10000000149`.
fn shortest<T: fmt::Display>(x: T) -> f64 {
    x.to_string().parse().unwrap_or(f64::NAN)
}

impl Attr for String {
    const KIND: AttrKind = AttrKind::Str;
    fn read(value: &AttrValue) -> Result<String, String> {
        match value {
            AttrValue::Text(s) | AttrValue::Str(s) => Ok(s.clone()),
            _ => Err(format!("expected a string, found {value}")),
        }
    }
    fn write(&self) -> Option<AttrValue> {
        Some(AttrValue::Str(self.clone()))
    }
}

impl Attr for Vec<String> {
    const KIND: AttrKind = AttrKind::Strs;
    fn read(value: &AttrValue) -> Result<Vec<String>, String> {
        match value {
            AttrValue::Strs(v) => Ok(v.clone()),
            v => match v.text() {
                Some(s) => Ok(string_list::split(s)),
                None => Err(format!("expected a list of strings, found {value}")),
            },
        }
    }
    fn write(&self) -> Option<AttrValue> {
        Some(AttrValue::Strs(self.clone()))
    }
}

impl Attr for ElementType {
    const KIND: AttrKind = AttrKind::Type;
    fn read(value: &AttrValue) -> Result<ElementType, String> {
        match value {
            AttrValue::Type(t) => Ok(*t),
            v => match v.text() {
                Some(s) => s.parse().map_err(|_| format!("expected an element type, found `{s}`")),
                None => Err(format!("expected an element type, found {value}")),
            },
        }
    }
    fn write(&self) -> Option<AttrValue> {
        Some(AttrValue::Type(*self))
    }
}

impl Attr for Vec<ElementType> {
    const KIND: AttrKind = AttrKind::Types;
    fn read(value: &AttrValue) -> Result<Vec<ElementType>, String> {
        match value {
            AttrValue::Types(t) => Ok(t.clone()),
            v => match v.text() {
                Some(s) => {
                    items(s).map(|s| s.parse().map_err(|_| format!("expected an element type, found `{s}`"))).collect()
                }
                None => Err(format!("expected a list of element types, found {value}")),
            },
        }
    }
    fn write(&self) -> Option<AttrValue> {
        Some(AttrValue::Types(self.clone()))
    }
}

impl Attr for PartialShape {
    const KIND: AttrKind = AttrKind::Shape;
    fn read(value: &AttrValue) -> Result<PartialShape, String> {
        match value {
            AttrValue::Shape(s) => Ok(s.clone()),
            v => match v.text() {
                Some(s) => s.parse().map_err(|e| format!("expected a shape, found `{s}` ({e})")),
                None => Err(format!("expected a shape, found {value}")),
            },
        }
    }
    fn write(&self) -> Option<AttrValue> {
        Some(AttrValue::Shape(self.clone()))
    }
}

impl Attr for TensorAttr {
    const KIND: AttrKind = AttrKind::Tensor;
    fn read(value: &AttrValue) -> Result<TensorAttr, String> {
        match value {
            AttrValue::Tensor(t) => Ok(t.clone()),
            _ => Err(format!("expected a tensor, found {value}")),
        }
    }
    fn write(&self) -> Option<AttrValue> {
        Some(AttrValue::Tensor(self.clone()))
    }
}

impl Attr for Body {
    const KIND: AttrKind = AttrKind::Body;
    fn read(value: &AttrValue) -> Result<Body, String> {
        match value {
            AttrValue::Body(b) => Ok((**b).clone()),
            _ => Err(format!("expected a body, found {value}")),
        }
    }
    fn write(&self) -> Option<AttrValue> {
        Some(AttrValue::Body(Box::new(self.clone())))
    }
}

/// An attribute that may be absent; give it `#[attr(default = None)]`.
impl<T: Attr> Attr for Option<T> {
    const KIND: AttrKind = T::KIND;
    fn read(value: &AttrValue) -> Result<Option<T>, String> {
        T::read(value).map(Some)
    }
    fn write(&self) -> Option<AttrValue> {
        self.as_ref().and_then(T::write)
    }
}

/// Attributes of one node by name, as a file or a frontend gives them.
#[derive(Clone, Default, Debug, PartialEq)]
pub struct AttrMap(Vec<(String, AttrValue)>);

impl AttrMap {
    /// None.
    pub fn new() -> AttrMap {
        AttrMap::default()
    }
    /// The value of this name.
    pub fn get(&self, name: &str) -> Option<&AttrValue> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, v)| v)
    }
    /// Sets or replaces.
    pub fn set(&mut self, name: impl Into<String>, value: AttrValue) {
        let name = name.into();
        match self.0.iter_mut().find(|(n, _)| *n == name) {
            Some((_, v)) => *v = value,
            None => self.0.push((name, value)),
        }
    }
    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AttrValue)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v))
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Reads a typed attribute; a missing one gives `default`, or an error when there is none. Called by the derive.
    pub fn read<T: Attr>(&self, name: &str, default: Option<T>) -> crate::Result<T> {
        match (self.get(name), default) {
            (Some(v), _) => T::read(v).map_err(|e| wrong(name, &e)),
            (None, Some(d)) => Ok(d),
            (None, None) => Err(missing(name)),
        }
    }
}

fn wrong(name: &str, why: &str) -> crate::Error {
    crate::Error::invalid(format!("attribute `{name}`: {why}"))
}

fn missing(name: &str) -> crate::Error {
    crate::Error::invalid(format!("attribute `{name}` is required and missing"))
}

impl FromIterator<(String, AttrValue)> for AttrMap {
    fn from_iter<I: IntoIterator<Item = (String, AttrValue)>>(iter: I) -> AttrMap {
        AttrMap::of(&mut iter.into_iter())
    }
}

impl AttrMap {
    fn of(iter: &mut dyn Iterator<Item = (String, AttrValue)>) -> AttrMap {
        // A file may bring very many; looking each up in a list would take a time that grows with their square.
        const MANY: usize = 64;
        let mut map = AttrMap::new();
        let mut locations: HashMap<String, usize> = HashMap::new();
        for (n, v) in iter {
            if map.0.len() < MANY {
                map.set(n, v);
                continue;
            }
            if locations.is_empty() {
                locations = map.0.iter().enumerate().map(|(i, (n, _))| (n.clone(), i)).collect();
            }
            match locations.entry(n.clone()) {
                Entry::Occupied(location) => map.0[*location.get()].1 = v,
                Entry::Vacant(location) => {
                    location.insert(map.0.len());
                    map.0.push((n, v));
                }
            }
        }
        map
    }
}

/// Declares an enum whose members are attribute strings. Reading ignores case; the first spelling is written, the
/// others are accepted.
///
/// ```
/// carafe_graph::attr_enum! {
///     /// How a border is filled.
///     pub enum PadMode { Constant = "constant", Edge = "edge" | "nearest" }
/// }
/// ```
#[macro_export]
macro_rules! attr_enum {
    ($(#[$m:meta])* $v:vis enum $name:ident { $($(#[$vm:meta])* $var:ident = $text:literal $(| $alias:literal)*),* $(,)? }) => {
        $(#[$m])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        $v enum $name { $(
            $(#[$vm])*
            #[doc = ""]
            #[doc = concat!("`", $text, "` in files.")]
            $var
        ),* }

        impl $name {
            /// The spelling used in files.
            #[allow(dead_code)]
            $v fn text(self) -> &'static str {
                match self { $(Self::$var => $text),* }
            }
        }

        impl $crate::Attr for $name {
            const KIND: $crate::AttrKind = $crate::AttrKind::Enum(&[$($text),*]);
            fn read(value: &$crate::AttrValue) -> ::std::result::Result<Self, ::std::string::String> {
                let text = match value {
                    $crate::AttrValue::Text(s) | $crate::AttrValue::Str(s) => s.trim(),
                    _ => return Err(format!("expected one of {:?}, found {value}", [$($text),*])),
                };
                $(if text.eq_ignore_ascii_case($text) $(|| text.eq_ignore_ascii_case($alias))* { return Ok(Self::$var); })*
                Err(format!("expected one of {}, found `{text}`", [$($text),*].join(", ")))
            }
            fn write(&self) -> ::std::option::Option<$crate::AttrValue> {
                Some($crate::AttrValue::Str(self.text().to_string()))
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(s: &str) -> AttrValue {
        AttrValue::Text(s.into())
    }

    #[test]
    fn a_list_is_read_with_and_without_blanks() {
        assert_eq!(Vec::<i64>::read(&text("1,2")), Vec::<i64>::read(&text(" 1, 2 ")));
        assert_eq!(Vec::<i64>::read(&text("")), Ok(vec![]));
    }

    #[test]
    fn an_f32_is_written_with_its_shortest_digits() {
        assert_eq!(0.1f32.write().unwrap().to_text().unwrap(), "0.1");
        assert_eq!(f32::read(&0.1f32.write().unwrap()), Ok(0.1f32));
    }

    #[test]
    fn a_word_where_a_number_belongs_is_an_error() {
        assert_eq!(i64::read(&text("many")), Err("expected an integer, found `many`".into()));
    }

    #[test]
    fn an_integer_beyond_the_field_is_an_error() {
        assert!(u32::read(&text("-1")).is_err());
        assert!(i64::read(&text("99999999999999999999")).is_err());
    }

    #[test]
    fn an_enum_is_read_in_any_case_and_written_in_one() {
        attr_enum! { enum M { A = "first" | "one", B = "SECOND" } }
        assert_eq!(M::read(&text("ONE")), Ok(M::A));
        assert_eq!(M::B.write(), Some(AttrValue::Str("SECOND".into())));
        assert_eq!(M::read(&text("x")), Err("expected one of first, SECOND, found `x`".into()));
    }
}
