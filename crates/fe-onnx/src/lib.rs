//! ONNX models. `wire` and `text` decode, `graph` makes a `SourceGraph` of that, and the rules in `ops` translate one node each. Sequences and
//! optionals are resolved while a model is read where they can be, and are packed tensors where only a run knows them.

#![forbid(unsafe_code)]

mod attributes;
mod dialect;
mod file;
mod graph;
mod imports;
mod onnxtxt;
mod ops;
mod schema;
mod tensor;
mod text;
mod types;
mod wire;

use carafe_frontend::{Format, ReadRequest, RuleSet, Source};
use carafe_graph::{Error, Result};
use dialect::OnnxDialect;
use prost::Message;
use std::rc::Rc;
use std::sync::LazyLock;
use wire::ModelProto;

/// The format ONNX: files in binary form, as protobuf text, as JSON, and in ONNX's own language.
#[derive(Clone, Copy, Debug, Default)]
pub struct Onnx;

static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::new(ops::all()));

impl Format for Onnx {
    fn name(&self) -> &'static str {
        "ONNX"
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        text::written(head).is_some() || is_binary(head)
    }
    fn decode(&self, request: &ReadRequest<'_>) -> Result<Source> {
        let (bytes, files) = file::open(request.model)?;
        let (size, files) = (bytes.len(), Rc::new(files));
        let graph = graph::of_model(decode(bytes)?, size, &files)?;
        let opset = graph.versions.of("");
        Ok(Source::Graph(Box::new(graph), Box::new(OnnxDialect { files, opset })))
    }
    fn framework(&self) -> &'static str {
        "onnx"
    }
    fn rules(&self) -> &RuleSet {
        &RULES
    }
}

// Fields of a ModelProto, each with its own wire type.
fn is_binary(head: &[u8]) -> bool {
    let mut at = 0;
    let mut known = 0;
    while at < head.len() {
        let Some((key, used)) = varint(&head[at..]) else { break };
        at += used;
        let (field, kind) = (key >> 3, key & 7);
        let fits = match field {
            1 | 5 => kind == 0,
            2 | 3 | 4 | 6 | 7 | 8 | 14 | 20 | 25 | 26 => kind == 2,
            _ => false,
        };
        if !fits {
            return false;
        }
        known += usize::from(matches!(field, 1 | 7 | 8));
        let Some((n, used)) = varint(&head[at..]) else { break };
        at += used;
        if kind == 2 {
            let Some(next) = usize::try_from(n).ok().and_then(|n| at.checked_add(n)) else { return false };
            if field == 7 && next > head.len() {
                known += 1;
            }
            at = next;
        }
    }
    known >= 2
}

fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (i, b) in bytes.iter().take(10).enumerate() {
        value |= u64::from(b & 0x7f) << (7 * i as u32).min(63);
        if b & 0x80 == 0 {
            return Some((value, i + 1));
        }
    }
    None
}

fn decode(bytes: bytes::Bytes) -> Result<ModelProto> {
    let head = &bytes[..bytes.len().min(64 * 1024)];
    match text::written(head) {
        Some(written) => text::parse(&bytes, written),
        None => ModelProto::decode(bytes).map_err(|e| Error::invalid(format!("not a valid ONNX file: {e}"))),
    }
}
