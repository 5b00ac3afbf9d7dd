//! Models written as text: protobuf text, protobuf JSON, or ONNX's own language. The first words decide which, so
//! the name of the file does not matter.

use crate::onnxtxt;
use crate::schema::MODEL;
use crate::wire::ModelProto;
use carafe_graph::{Error, Result};
use carafe_textproto::{Cursor, Form, TextError, encode, parse_json, parse_text};
use prost::Message;

/// How a model is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    ProtoText,
    Json,
    OnnxText,
}

/// How the text starting with these bytes writes a model; `None` when it is none.
pub(crate) fn written(head: &[u8]) -> Option<Written> {
    let text = utf8_start(head);
    let mut c = Cursor::new(text);
    c.skip_blanks();
    let is_field = |name: &str| MODEL.field(name).is_some();
    match c.peek()? {
        '{' => {
            c.bump();
            c.skip_blanks();
            if !c.eat('"') {
                return None;
            }
            let first = c.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
            let telling = ["\"graph\"", "\"irVersion\"", "\"ir_version\"", "\"opsetImport\"", "\"opset_import\""];
            (is_field(first) && telling.iter().any(|t| text.contains(t))).then_some(Written::Json)
        }
        '<' => {
            c.bump();
            c.skip_blanks();
            let known = onnxtxt::is_keyword(c.word());
            c.skip_blanks();
            (known && c.eat(':')).then_some(Written::OnnxText)
        }
        quote_or_word => {
            let word = if quote_or_word == '"' { onnxtxt::skip_name(&mut c)? } else { c.word() };
            c.skip_blanks();
            match c.peek()? {
                ':' | '{' if is_field(word) => Some(Written::ProtoText),
                '(' if text.contains("=>") => Some(Written::OnnxText),
                _ => None,
            }
        }
    }
}

/// The model of a text.
pub(crate) fn parse(bytes: &[u8], written: Written) -> Result<ModelProto> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| Error::invalid(format!("the text is not UTF-8 from byte {} on", e.valid_up_to())))?;
    let tree = match written {
        Written::ProtoText => parse_text(text).and_then(|m| encode(&m, &MODEL, Form::Text)),
        Written::Json => parse_json(text).and_then(|m| encode(&m, &MODEL, Form::Json)),
        Written::OnnxText => return onnxtxt::parse(text).map_err(|e| told(&e)),
    };
    let bytes = tree.map_err(|e| told(&e))?;
    ModelProto::decode(bytes::Bytes::from(bytes)).map_err(|e| Error::invalid(format!("not a valid ONNX model: {e}")))
}

fn told(e: &TextError) -> Error {
    Error::invalid(e.to_string())
}

// The longest start that is text; the last character may be cut.
fn utf8_start(head: &[u8]) -> &str {
    match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(e) if head.len() - e.valid_up_to() < 4 => std::str::from_utf8(&head[..e.valid_up_to()]).unwrap_or(""),
        Err(_) => "",
    }
}
