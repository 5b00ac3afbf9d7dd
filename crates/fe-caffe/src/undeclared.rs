//! What a layer says that no `.proto` declares. In bytes such a field has neither name nor kind, so that its value is lost:
//! that is told with the layer, and is an error where a user's code handles the layer, since only that knows whether it needs
//! the value. In text a field keeps its name; there only a value that stands in the layer itself, outside of any message of
//! parameters, has no place to go.

use crate::net::Layer;
use crate::schema::Schema;
use carafe_frontend::{Log, Origin};
use carafe_graph::{Error, Result};
use carafe_textproto::Value;

/// Each in words: `field 3 of `foo_param``.
#[derive(Clone, Debug, Default)]
pub(crate) struct Undeclared {
    fields: Vec<String>,
    /// How many there are beyond those.
    more: usize,
}

/// A layer that is broken on purpose may have any number.
const MOST: usize = 16;

impl Undeclared {
    /// A number that the schema does not have.
    pub(crate) fn number(&mut self, path: &str, number: u32) {
        self.add(format!("field {number}{}", of(path)));
    }
    /// A field whose bytes are not those of its type.
    pub(crate) fn other_form(&mut self, path: &str, number: u32, name: &str) {
        self.add(format!("field {number}{} (its bytes are not of the kind that `{name}` is declared with)", of(path)));
    }
    fn add(&mut self, text: String) {
        match self.fields.contains(&text) {
            true => {}
            false if self.fields.len() == MOST => self.more += 1,
            false => self.fields.push(text),
        }
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }
    /// All of them in one sentence about a layer or the net.
    pub(crate) fn words(&self) -> String {
        let (is, its) = if self.fields.len() == 1 { ("is", "its value is") } else { ("are", "their values are") };
        let more = if self.more > 0 { " and others" } else { "" };
        format!("{}{more} {is} declared by no .proto, so {its} lost; {ADVICE}", self.fields.join(", "))
    }
}

const ADVICE: &str = "give the caffe.proto of the Caffe that made the model with --caffe_parser_path";

fn of(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" of `{path}`") }
}

/// Tells what of a layer is lost. An error where a user's rule, operation or list of custom layers handles it.
pub(crate) fn judge(layer: &Layer, schema: &Schema, origin: Option<&Origin<'_>>, log: &Log<'_>) -> Result<()> {
    let mut all = layer.undeclared.clone();
    values_in_text(layer, schema, &mut all);
    if all.is_empty() {
        return Ok(());
    }
    let whose = match origin {
        Some(Origin::User { .. } | Origin::EqualName { .. } | Origin::CustomLayers) => origin.map(|o| o.words().0),
        _ => None,
    };
    match whose {
        Some(whose) => Err(Error::invalid(format!(
            "{}; the layer is handled by {whose}, which may need what is lost",
            all.words()
        ))),
        None => {
            log.warn(format!("{}: {}", layer.location(), all.words()));
            Ok(())
        }
    }
}

fn values_in_text(layer: &Layer, schema: &Schema, all: &mut Undeclared) {
    if layer.at.line == 0 {
        return;
    }
    let is_message = |v: &Value| match v {
        Value::Message(_) => true,
        Value::List(items) => items.iter().any(|(_, v)| matches!(v, Value::Message(_))),
        _ => false,
    };
    let is_known = |name: &str| {
        let old = schema.message("V1LayerParameter").and_then(|m| m.named(name));
        schema.layer_field(name).or(old).is_some()
    };
    for field in layer.tree.fields.iter().filter(|f| !is_message(&f.value) && !is_known(&f.name)) {
        all.add(format!("`{}` in line {}", field.name, field.at.line));
    }
}
