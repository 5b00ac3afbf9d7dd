//! TensorFlow Lite models. `flatbuffer` and `wire` read the file, `graph` makes a `SourceGraph` of a sub-graph, and the rules in
//! `ops` translate one operator each. Tensors keep the layout of the file, channels last; operators that need another stand between
//! transpositions. Quantised values are floats inside of the graph (`quantization`).

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod builtins;
mod dialect;
mod flatbuffer;
mod flexbuffer;
mod graph;
mod ops;
mod options;
mod quantization;
mod resources;
mod sparse;
mod tensor;
mod types;
mod wire;

use carafe_frontend::{Format, ReadRequest, RuleSet, Source};
use carafe_graph::{Error, Result};
use dialect::LiteDialect;
use graph::Decoder;
use std::sync::LazyLock;
use wire::{Model, Signature};

/// The format TensorFlow Lite: `.tflite` flatbuffers.
#[derive(Clone, Copy, Debug, Default)]
pub struct TfLite;

static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::new(ops::all()));

impl Format for TfLite {
    fn name(&self) -> &'static str {
        "TensorFlow Lite"
    }
    fn framework(&self) -> &'static str {
        "tflite"
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        head.get(4..8) == Some(b"TFL3")
    }
    fn endings(&self) -> &'static [&'static str] {
        &["tflite"]
    }
    fn options(&self) -> &'static [&'static str] {
        &["signature", "subgraph"]
    }
    fn rules(&self) -> &RuleSet {
        &RULES
    }
    fn decode(&self, request: &ReadRequest<'_>) -> Result<Source> {
        let bytes = request.model.map()?;
        if !self.recognizes(bytes.as_slice()) {
            return Err(Error::invalid("not a TensorFlow Lite file: bytes 4 to 7 must be `TFL3`"));
        }
        let model = wire::model(bytes.as_slice())?;
        if model.version != 3 {
            return Err(Error::unsupported(format!(
                "version {} of the schema; only version 3 is in use",
                model.version
            )));
        }
        let (index, signatures) = chosen(&model, request)?;
        let mut graph = Decoder::new(&model, &bytes).main(index, &signatures)?;
        graph.bytes = bytes.len();
        graph.versions.otherwise = 1;
        graph.metadata = metadata(&model, bytes.as_slice());
        Ok(Source::Graph(Box::new(graph), Box::new(LiteDialect)))
    }
}

/// Names of all builtin operators of the schema, by code.
pub fn builtin_operators() -> &'static [&'static str] {
    builtins::NAMES
}

// The sub-graph to read and the signatures whose names count: as the options say, else the first with all of its signatures.
fn chosen<'m>(model: &'m Model, request: &ReadRequest<'_>) -> Result<(usize, Vec<&'m Signature>)> {
    let count = model.subgraphs.len();
    if count == 0 {
        return Err(Error::invalid("the file has no sub-graph"));
    }
    let inside = |index: usize| match index < count {
        true => Ok(index),
        false => Err(Error::invalid(format!("there is no sub-graph {index}, the file has {count}"))),
    };
    if let Some(key) = request.option("signature") {
        let found = model.signatures.iter().find(|s| s.key == key).ok_or_else(|| {
            let keys: Vec<String> = model.signatures.iter().map(|s| format!("`{}`", s.key)).collect();
            let keys = if keys.is_empty() { "none".to_string() } else { keys.join(", ") };
            Error::not_found(format!("there is no signature `{key}`; the file has {keys}"))
        })?;
        return Ok((inside(found.subgraph)?, vec![found]));
    }
    let index = match request.option("subgraph") {
        None => 0,
        Some(text) => match text.parse() {
            Ok(index) => inside(index)?,
            Err(_) => model.subgraphs.iter().position(|g| g.name == text).ok_or_else(|| {
                let names: Vec<String> = model.subgraphs.iter().map(|g| format!("`{}`", g.name)).collect();
                Error::not_found(format!("there is no sub-graph `{text}`; the file has {}", names.join(", ")))
            })?,
        },
    };
    Ok((index, model.signatures.iter().filter(|s| s.subgraph == index).collect()))
}

/// Longer texts of a file are no facts about it.
const MAX_TEXT: usize = 1024;

// The description, and what the file holds as short texts.
fn metadata(model: &Model, bytes: &[u8]) -> Vec<(String, String)> {
    let mut all = vec![];
    if !model.description.is_empty() {
        all.push(("description".to_string(), model.description.clone()));
    }
    for (name, buffer) in &model.metadata {
        let span = model.buffers.get(*buffer).filter(|(_, length)| *length <= MAX_TEXT);
        let text = span.and_then(|(at, length)| std::str::from_utf8(bytes.get(*at..at + length)?).ok());
        let text = text.map(|t| t.trim_end_matches('\0')).filter(|t| !t.is_empty() && !t.contains(char::is_control));
        all.extend(text.map(|t| (name.clone(), t.to_string())));
    }
    all
}
