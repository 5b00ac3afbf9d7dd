//! What messages hold, by name and by number. Text is read by name, so that a field the schema does not have is only a field
//! of unknown kind; bytes are read by number, where such a field is skipped.

use crate::names::same;
use crate::proto_file;
use carafe_graph::{Error, Result};
use std::collections::HashMap;
use std::sync::LazyLock;

static BUILT_IN: LazyLock<Schema> =
    LazyLock::new(|| proto_file::parse(include_str!("caffe.proto")).unwrap_or_else(|e| unreachable!("{e}")));

/// Message and enum types by their full names, without the package: `PoolingParameter.PoolMethod`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema {
    pub messages: HashMap<String, MessageType>,
    pub enums: HashMap<String, EnumType>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct MessageType {
    pub fields: Vec<FieldType>,
}

/// The words of an enum and their numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EnumType {
    pub values: Vec<(String, i64)>,
}

/// One field of a message type.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldType {
    pub name: String,
    pub number: u32,
    pub repeated: bool,
    pub kind: FieldKind,
    /// As the `.proto` file writes it, strings without their quotes.
    pub default: Option<String>,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldKind {
    Int { signed: bool, bits: u32, coding: Coding },
    Bool,
    Float,
    Double,
    Str,
    Enum(String),
    Message(String),
}

/// How whole numbers lie in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coding {
    Varint,
    ZigZag,
    Fixed,
}

impl Schema {
    /// Everything this crate knows of Caffe's messages.
    pub fn built_in() -> &'static Schema {
        &BUILT_IN
    }

    /// The schema of a `.proto` text.
    pub fn parse(text: &str) -> Result<Schema> {
        proto_file::parse(text).map_err(|e| Error::invalid(e.to_string()))
    }

    /// This schema with the types of another in place of its own of those names.
    #[must_use]
    pub fn with(&self, other: Schema) -> Schema {
        let mut all = self.clone();
        all.messages.extend(other.messages);
        all.enums.extend(other.enums);
        all
    }

    pub fn message(&self, name: &str) -> Option<&MessageType> {
        self.messages.get(name)
    }

    /// The word of an enum's number.
    pub fn word(&self, of: &str, number: i64) -> Option<&str> {
        let values = &self.enums.get(of)?.values;
        values.iter().find(|(_, n)| *n == number).map(|(word, _)| word.as_str())
    }

    /// A field of a layer by its name, those of forks included.
    pub(crate) fn layer_field(&self, name: &str) -> Option<&FieldType> {
        let of = |message: &str| self.message(message)?.named(name);
        of("LayerParameter").or_else(|| of("ForkLayerParameter"))
    }

    /// A field by its number in a layer of this type: forks gave some numbers to other messages, which shows by the type.
    pub(crate) fn layer_field_numbered(&self, number: u32, layer_type: &str) -> Option<&FieldType> {
        let own =
            |f: &&FieldType| f.number == number && f.name.strip_suffix("_param").is_some_and(|n| same(n, layer_type));
        let own_of = |message: &str| self.message(message)?.fields.iter().find(own);
        // `Normalize` is the one whose message is called otherwise.
        let norm = || self.message("ForkLayerParameter")?.numbered(number).filter(|f| f.name == "norm_param");
        let norm = || norm().filter(|_| same(layer_type, "Normalize"));
        own_of("LayerParameter")
            .or_else(|| own_of("ForkLayerParameter"))
            .or_else(norm)
            .or_else(|| self.message("LayerParameter")?.numbered(number))
    }
}

impl MessageType {
    pub fn named(&self, name: &str) -> Option<&FieldType> {
        self.fields.iter().find(|f| f.name == name)
    }
    pub fn numbered(&self, number: u32) -> Option<&FieldType> {
        self.fields.iter().find(|f| f.number == number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_schema_knows_layers() {
        let schema = Schema::built_in();
        let f = schema.layer_field("convolution_param").unwrap();
        assert_eq!((f.number, &f.kind), (106, &FieldKind::Message("ConvolutionParameter".into())));
        let conv = schema.message("ConvolutionParameter").unwrap();
        assert!(conv.named("kernel_size").unwrap().repeated);
        assert_eq!(conv.named("bias_term").unwrap().default.as_deref(), Some("true"));
        assert_eq!(schema.word("PoolingParameter.PoolMethod", 1), Some("AVE"));
        // Every type that a field names is there.
        for (name, m) in &schema.messages {
            for f in &m.fields {
                match &f.kind {
                    FieldKind::Message(t) => assert!(schema.messages.contains_key(t), "{name}.{}: {t}", f.name),
                    FieldKind::Enum(t) => assert!(schema.enums.contains_key(t), "{name}.{}: {t}", f.name),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn a_number_means_what_the_layer_type_says() {
        let schema = Schema::built_in();
        let name = |number, ty| schema.layer_field_numbered(number, ty).map(|f| f.name.as_str());
        assert_eq!(name(154, "Permute"), Some("permute_param"));
        assert_eq!(name(202, "Permute"), Some("permute_param"));
        assert_eq!(name(204, "DetectionOutput"), Some("detection_output_param"));
        assert_eq!(name(204, "Normalize"), Some("norm_param"));
        assert_eq!(name(206, "Normalize"), Some("norm_param"));
        assert_eq!(name(147, "Swish"), Some("swish_param"));
        assert_eq!(name(206, "Pooling"), None);
    }
}
