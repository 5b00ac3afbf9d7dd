//! Attributes: `name: kind = value`, where the kind may be left out unless the value is an empty list.

use super::Result;
use super::graph;
use super::parser::{Literal, Parser};
use crate::wire::{AttributeProto, ValueInfoProto};

/// Kinds of one value and of lists, by their numbers in the file.
const KINDS: &[(&str, i32)] = &[
    ("float", 1),
    ("int", 2),
    ("string", 3),
    ("tensor", 4),
    ("graph", 5),
    ("floats", 6),
    ("ints", 7),
    ("strings", 8),
    ("tensors", 9),
    ("graphs", 10),
    ("sparse_tensor", 11),
    ("sparse_tensors", 12),
    ("type_proto", 13),
    ("type_protos", 14),
];
const FLOAT: i32 = 1;
const INT: i32 = 2;
const GRAPH: i32 = 5;

fn is_list(kind: i32) -> bool {
    matches!(kind, 6..=10 | 12 | 14)
}

// The kind of a list of these, and back.
fn list_of(kind: i32) -> i32 {
    if kind >= 11 { kind + 1 } else { kind + 5 }
}

fn one_of(kind: i32) -> i32 {
    if kind >= 11 { kind - 1 } else { kind - 5 }
}

fn spelled(kind: i32) -> &'static str {
    KINDS.iter().find(|(_, n)| *n == kind).map_or("nothing", |(w, _)| w)
}

impl Parser<'_> {
    /// `< ... >`, where there is one.
    pub(super) fn attributes(&mut self) -> Result<Vec<AttributeProto>> {
        let mut found = vec![];
        if self.eat("<") {
            self.list(">", |p| {
                let name = p.name()?;
                found.push(p.attribute(name)?);
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// An attribute behind its name.
    pub(super) fn attribute(&mut self, name: String) -> Result<AttributeProto> {
        let mut declared = None;
        if self.eat(":") {
            let at = self.position();
            let word = self.word()?;
            let kind = KINDS.iter().find(|(w, _)| *w == word).map(|(_, n)| *n);
            declared = Some(kind.ok_or_else(|| at.error(format!("`{word}` is no kind of attribute")))?);
        }
        self.expect("=")?;
        let at = self.position();
        let refuse = |found: i32| {
            let article = if matches!(spelled(found).as_bytes()[0], b'i') { "an" } else { "a" };
            let declared = declared.map_or("nothing", spelled);
            at.error(format!("`{name}` is declared as {declared}, found {article} {}", spelled(found)))
        };
        if self.eat("[") {
            let mut attribute =
                AttributeProto { name: Some(name.clone()), r#type: declared, ..AttributeProto::default() };
            if declared.is_some_and(|kind| !is_list(kind)) {
                return Err(
                    at.error(format!("`{name}` is declared as {}, found a list", spelled(declared.unwrap_or(0))))
                );
            }
            let mut element = declared.map(one_of);
            self.list("]", |p| {
                let value = p.single(element, &refuse)?;
                element = value.r#type;
                attribute.floats.extend(value.f);
                attribute.ints.extend(value.i);
                attribute.strings.extend(value.s);
                attribute.tensors.extend(value.t);
                attribute.graphs.extend(value.g.map(|g| *g));
                Ok(())
            })?;
            let Some(element) = element else {
                return Err(at.error(format!("`{name}` is an empty list and needs its kind: `{name}: ints = []`")));
            };
            attribute.r#type = Some(list_of(element));
            return Ok(attribute);
        }
        if self.eat("@") {
            let from = Some(self.name()?);
            return Ok(AttributeProto {
                name: Some(name),
                r#type: declared,
                ref_attr_name: from,
                ..AttributeProto::default()
            });
        }
        let mut attribute = self.single(declared, &refuse)?;
        attribute.name = Some(name);
        Ok(attribute)
    }

    fn single(
        &mut self,
        declared: Option<i32>,
        refuse: &dyn Fn(i32) -> carafe_textproto::TextError,
    ) -> Result<AttributeProto> {
        let mut value = AttributeProto::default();
        let kind = if self.next_is_type() {
            let ty = self.type_proto()?;
            let named = matches!(self.peek(), Some('"')) || !self.peek_word().is_empty();
            if named || matches!(self.peek(), Some('{' | '=' | '[')) {
                let name = if named { Some(self.name()?) } else { None };
                self.eat("=");
                value.t = Some(self.tensor_of(&ValueInfoProto { name, r#type: Some(ty) })?);
                4
            } else {
                value.tp = Some(ty);
                13
            }
        } else if !self.peek_word().is_empty() && !is_float_word(self.peek_word()) {
            let name = self.name()?;
            value.g = Some(Box::new(graph(self, name)?));
            GRAPH
        } else {
            match self.literal()? {
                // A graph whose name needs quotes.
                Literal::Str(name) if declared == Some(GRAPH) => {
                    value.g = Some(Box::new(graph(self, name)?));
                    GRAPH
                }
                Literal::Str(text) => {
                    value.s = Some(text.into_bytes().into());
                    3
                }
                Literal::Int(n) if declared == Some(FLOAT) => {
                    value.f = Some(n as f32);
                    FLOAT
                }
                Literal::Int(n) => {
                    let at = self.position();
                    let n = i64::try_from(n).map_err(|_| at.error(format!("{n} does not fit into 64 bits")))?;
                    value.i = Some(n);
                    INT
                }
                Literal::Float(x) => {
                    value.f = Some(x as f32);
                    FLOAT
                }
            }
        };
        value.r#type = Some(kind);
        if declared.is_some_and(|d| d != kind) { Err(refuse(kind)) } else { Ok(value) }
    }
}

fn is_float_word(word: &str) -> bool {
    ["inf", "infinity", "nan"].iter().any(|w| word.eq_ignore_ascii_case(w))
}
