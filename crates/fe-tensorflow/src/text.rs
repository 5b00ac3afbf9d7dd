//! Graphs written as protobuf text, which is brought to the binary form before anything else. What a text holds, its first
//! field says.

use crate::schema::{GRAPH, META_GRAPH, SAVED_MODEL};
use carafe_graph::{Error, Result};
use carafe_textproto::{Cursor, Form, Schema, encode, parse_text};

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Graph,
    MetaGraph,
    SavedModel,
}

impl Kind {
    fn schema(self) -> &'static Schema {
        match self {
            Kind::Graph => &GRAPH,
            Kind::MetaGraph => &META_GRAPH,
            Kind::SavedModel => &SAVED_MODEL,
        }
    }
}

/// What the text starting with these bytes holds; `None` when it is no text of TensorFlow.
pub(crate) fn written(head: &[u8]) -> Option<Kind> {
    let mut c = Cursor::new(utf8_start(head));
    c.skip_blanks();
    let word = c.word();
    c.skip_blanks();
    let is_field = matches!(c.peek(), Some(':' | '{' | '<'));
    let kind = [Kind::Graph, Kind::MetaGraph, Kind::SavedModel].into_iter().find(|k| k.schema().field(word).is_some());
    kind.filter(|_| is_field)
}

/// The binary form of a text.
pub(crate) fn to_binary(bytes: &[u8], kind: Kind) -> Result<Vec<u8>> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| Error::invalid(format!("the text is not UTF-8 from byte {} on", e.valid_up_to())))?;
    let tree = parse_text(text).and_then(|m| encode(&m, kind.schema(), Form::Text));
    tree.map_err(|e| Error::invalid(e.to_string()))
}

// The longest start that is text: the last character may be cut, and what is damaged further on is reported when it is parsed.
fn utf8_start(head: &[u8]) -> &str {
    let valid = std::str::from_utf8(head).map_or_else(|e| e.valid_up_to(), str::len);
    std::str::from_utf8(&head[..valid]).unwrap_or("")
}
