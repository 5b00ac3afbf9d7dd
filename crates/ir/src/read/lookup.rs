//! Finds the class of a layer, and gathers the layers that have none into one error.

use super::info::Needed;
use crate::xml::shorten;
use carafe_frontend::generator;
use carafe_graph::{Constant, Error, NEWEST_OPSET, OpFactory, OpNew, Parameter, Registry, ResultOp};
use std::collections::HashMap;
use std::path::Path;

/// What a layer is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Class<'a> {
    Parameter,
    Constant,
    Result,
    Known(&'a OpFactory),
    Unknown,
}

impl Class<'_> {
    pub(crate) fn is_sink(&self) -> bool {
        matches!(self, Class::Known(factory) if factory.info.sink)
    }
    pub(crate) fn is_result(&self) -> bool {
        matches!(self, Class::Result)
    }
    pub(crate) fn is_parameter(&self) -> bool {
        matches!(self, Class::Parameter)
    }
}

pub(crate) fn classify<'a>(registry: &'a Registry, kind: &str, version: &str) -> Class<'a> {
    if numbered(version) {
        let (parameter, result) = (Parameter::INFO, ResultOp::INFO);
        for (info, class) in [(parameter, Class::Parameter), (Constant::INFO, Class::Constant), (result, Class::Result)]
        {
            if kind.eq_ignore_ascii_case(info.name) || kind.eq_ignore_ascii_case(info.xml_name) {
                return class;
            }
        }
    }
    registry.find(kind, version).map_or(Class::Unknown, Class::Known)
}

fn numbered(version: &str) -> bool {
    let number = version.strip_prefix("opset").and_then(|n| n.parse::<u32>().ok());
    number.is_some_and(|n| (1..=NEWEST_OPSET).contains(&n))
}

/// A type that no registered operation provides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Type of the operation.
    pub type_name: String,
    /// Its opset.
    pub opset: String,
    /// Names of the layers of this type, in file order.
    pub layers: Vec<String>,
    /// Whether the opset exists and only the type in it does not.
    pub knows_opset: bool,
    /// First numbered opset that has the type after all.
    pub since: Option<u32>,
    /// Known types with a similar name.
    pub near: Vec<&'static str>,
}

/// Gathers unknown layers.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    list: Vec<Problem>,
    by_type: HashMap<(String, String), usize>,
}

impl Problems {
    pub(crate) fn add(&mut self, registry: &Registry, kind: &str, version: &str, layer: &str) {
        let at = *self.by_type.entry((kind.to_string(), version.to_string())).or_insert_with(|| {
            let since = registry.newest(kind).map(|f| f.info.since).filter(|n| *n > 0);
            // Looking for similar names costs a walk over all operations; only shown types are worth it.
            let looks = since.is_none() && self.list.len() < SHOWN_TYPES;
            self.list.push(Problem {
                type_name: kind.to_string(),
                opset: version.to_string(),
                layers: vec![],
                knows_opset: registry.knows_opset(version),
                since,
                near: if looks { registry.near(kind) } else { vec![] },
            });
            self.list.len() - 1
        });
        self.list[at].layers.push(layer.to_string());
    }

    pub(crate) fn into_list(self) -> Vec<Problem> {
        self.list
    }

    /// All of them in one message, with the extensions that the model says it needs, and the command that writes one.
    pub(crate) fn check(&self, needed: &[Needed], loaded: &[String], path: Option<&Path>) -> Result<(), Error> {
        if self.list.is_empty() {
            return Ok(());
        }
        let layers: usize = self.list.iter().map(|p| p.layers.len()).sum();
        let head = match (layers, self.list.len()) {
            (1, _) => "1 layer is not known".to_string(),
            (n, 1) => format!("{n} layers of 1 type are not known"),
            (n, types) => format!("{n} layers of {types} types are not known"),
        };
        let list: Vec<String> = self.list.iter().take(SHOWN_TYPES).map(Problem::text).collect();
        let more = match self.list.len().saturating_sub(SHOWN_TYPES) {
            0 => String::new(),
            n => format!("; and {n} more types"),
        };
        let list = list.join("; ");
        let them = if layers == 1 { "it" } else { "them" };
        let words = |there: bool| {
            let some = needed.iter().filter(|n| loaded.contains(&n.name) == there).map(|n| n.words.as_str());
            some.collect::<Vec<_>>().join(", ")
        };
        let (missing, there) = (words(false), words(true));
        let write = path.map(|path| {
            let one_of_several = (self.list.len() > 1).then(|| shorten(&self.list[0].type_name));
            format!("; `{}` writes one", generator(path, one_of_several.as_deref()))
        });
        let write = write.unwrap_or_default();
        let error = Error::unsupported(match (missing.is_empty(), there.is_empty()) {
            (false, _) => format!(
                "{head}: {list}{more}; the model was made with the extension {missing}: add it with `Core::add_extension` or `--extension` first"
            ),
            (true, false) => format!(
                "{head}: {list}{more}; the model was made with the extension {there}, which is loaded and does not have {them}: is that another version of it?"
            ),
            (true, true) => format!(
                "{head}: {list}{more}; register {them} with `Core::add_ops`, or load a library with {them} by `Core::add_extension` or `--extension`{write}"
            ),
        });
        Err(error.with_code(201))
    }
}

const SHOWN_TYPES: usize = 50;
const SHOWN_LAYERS: usize = 5;

impl Problem {
    fn text(&self) -> String {
        let opset = match self.knows_opset {
            true => self.opset.clone(),
            false => format!("the unknown opset `{}`", shorten(&self.opset)),
        };
        let names: Vec<String> = self.layers.iter().take(SHOWN_LAYERS).map(|n| format!("`{}`", shorten(n))).collect();
        let mut notes = format!("{} {}", if self.layers.len() == 1 { "node" } else { "nodes" }, names.join(", "));
        if self.layers.len() > SHOWN_LAYERS {
            notes += &format!(" and {} more", self.layers.len() - SHOWN_LAYERS);
        }
        if let Some(since) = self.since {
            notes += &format!("; the type exists in opset{since}");
        }
        if !self.near.is_empty() {
            notes += &format!("; did you mean {}?", self.near.join(" or "));
        }
        format!("{} x `{}` from {opset} ({notes})", self.layers.len(), shorten(&self.type_name))
    }
}
