//! Fields of a layer that no schema has. They are no error by themselves, since forks add fields, but when a layer cannot be
//! translated they are often the reason.

use crate::net::Layer;
use crate::schema::{FieldKind, Schema};
use carafe_frontend::nearest;
use carafe_graph::Error;
use carafe_textproto::{Message, Value};

/// The error with what the layer says that nobody knows.
pub(crate) fn told(e: Error, layer: &Layer, schema: &Schema) -> Error {
    let mut all = vec![];
    for field in &layer.tree.fields {
        let Value::Message(m) = &field.value else { continue };
        let Some(FieldKind::Message(ty)) = schema.layer_field(&field.name).map(|f| &f.kind) else { continue };
        unknown(m, ty, &field.name, schema, &mut all);
    }
    match all.is_empty() {
        true => e,
        false => Error::new(e.kind(), format!("{}; {}", e, all.join("; "))).with_code(1),
    }
}

/// Everything in the messages of a layer that the schema does not have, such messages themselves included.
pub(crate) fn undeclared(layer: &Layer, schema: &Schema) -> Vec<String> {
    let mut all = vec![];
    for field in &layer.tree.fields {
        let Value::Message(m) = &field.value else { continue };
        match schema.layer_field(&field.name).map(|f| &f.kind) {
            Some(FieldKind::Message(ty)) => unknown(m, ty, &field.name, schema, &mut all),
            Some(_) => {}
            // Fields of the old form are declared apart from those of today.
            None if schema.message("V1LayerParameter").is_some_and(|m| m.named(&field.name).is_some()) => {}
            None => all.push(format!("line {}: a layer has no field `{}`", field.at.line, field.name)),
        }
    }
    all
}

fn unknown(m: &Message, ty: &str, outer: &str, schema: &Schema, all: &mut Vec<String>) {
    let Some(ty) = schema.message(ty) else { return };
    for field in &m.fields {
        match (ty.named(&field.name).map(|f| &f.kind), &field.value) {
            (Some(FieldKind::Message(inner)), Value::Message(m)) => unknown(m, inner, &field.name, schema, all),
            (Some(_), _) => {}
            (None, _) => {
                let at = match field.at.line {
                    0 => String::new(),
                    line => format!("line {line}, column {}: ", field.at.column),
                };
                let like = nearest(&field.name, ty.fields.iter().map(|f| f.name.as_str()));
                let like = like.map_or(String::new(), |name| format!(" (did you mean `{name}`?)"));
                all.push(format!("{at}`{outer}` has no field `{}`{like}", field.name));
            }
        }
    }
}
