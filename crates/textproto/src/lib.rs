//! Protobuf messages written as text or as JSON, read into a tree without knowing what they mean. A `Schema` turns the tree
//! into the bytes of the binary form. Nothing here knows a model format.

#![forbid(unsafe_code)]

mod cursor;
mod encode;
mod json;
mod schema;
mod text;
mod tree;

pub use cursor::Cursor;
pub use encode::{Form, encode};
pub use json::parse_json;
pub use schema::{FieldInfo, Kind, Schema};
pub use text::parse_text;
pub use tree::{Field, Message, Position, TextError, Value};

/// Messages inside of messages deeper than this are refused.
pub const MAX_DEPTH: usize = 100;
