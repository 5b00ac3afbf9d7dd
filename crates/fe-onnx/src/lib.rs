//! ONNX models into graphs. `wire` decodes, `scope` walks, and the rules in `ops` translate one node each. Sequences and
//! optionals are resolved while a model is read where they can be, and are packed tensors where only a run knows them.

#![forbid(unsafe_code)]

mod attributes;
mod budget;
mod decoded;
mod encode;
mod file;
mod functions;
mod imports;
mod onnxtxt;
mod ops;
mod order;
mod schema;
mod scope;
mod telemetry;
mod tensor;
mod text;
mod types;
mod unknown;
mod wire;

use budget::Budget;
use carafe_frontend::{Format, Missing, ReadRequest, RuleSet, Unread, send_error};
use carafe_graph::{Error, Model, Result, RtTree};
use file::Source;
use functions::Functions;
use imports::{Imports, NEWEST};
use prost::Message;
use scope::{Context, Scope};
use std::cell::{Cell, RefCell};
use std::sync::LazyLock;
use wire::{GraphProto, ModelProto, NodeProto};

/// The format ONNX: files in binary form, as protobuf text, as JSON, and in ONNX's own language.
#[derive(Clone, Copy, Debug, Default)]
pub struct Onnx;

static RULES: LazyLock<RuleSet> = LazyLock::new(|| RuleSet::new(ops::all()));

impl Onnx {
    /// All built-in rules.
    pub fn rules() -> &'static RuleSet {
        &RULES
    }
}

impl Format for Onnx {
    fn name(&self) -> &'static str {
        "ONNX"
    }
    fn recognizes(&self, head: &[u8]) -> bool {
        text::written(head).is_some() || is_binary(head)
    }
    fn read(&self, request: &ReadRequest<'_>) -> Result<Model> {
        let rules = RULES.with_user("onnx", request.rules, request.fallback);
        let read = || {
            let (bytes, source) = file::open(request.model)?;
            read_counted(bytes, &source, &rules, request)
        };
        read().inspect_err(|e| send_error(request, e))
    }
    fn has_decoded_form(&self) -> bool {
        true
    }
    fn decoded(&self, request: &ReadRequest<'_>) -> Result<Option<Model>> {
        let (bytes, source) = file::open(request.model)?;
        let graph = decode(bytes)?.graph.ok_or_else(|| Error::invalid("the ONNX file has no graph"))?;
        decoded::model(graph, &source).map(Some)
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

fn read_counted(bytes: bytes::Bytes, source: &Source, rules: &RuleSet, options: &ReadRequest<'_>) -> Result<Model> {
    let budget = Budget::of(bytes.len());
    let mut proto = decode(bytes)?;
    if let Some(graph) = proto.graph.take_if(|_| !options.decoded.is_empty()) {
        proto.graph = Some(decoded::rewrite(graph, source, options)?);
    }
    let imports = Imports::of(&proto.opset_import);
    let newest = imports.version("");
    let functions = Functions::of(&proto.functions);
    let (kept, newer, unread) = (Cell::new(false), RefCell::default(), Unread::default());
    let cx = Context { source, rules, functions: &functions, budget, options, kept, newer, unread };
    let done = translate(&proto, imports, &cx);
    source.take_notes().iter().for_each(|note| options.log.warn(note));
    cx.unread.warn(&options.log);
    done.map_err(|e| match newest {
        n if n > NEWEST => e.at(format!("the model was written for opset {n}, the newest known here is {NEWEST}")),
        _ => e,
    })
}

fn decode(bytes: bytes::Bytes) -> Result<ModelProto> {
    let head = &bytes[..bytes.len().min(64 * 1024)];
    match text::written(head) {
        Some(written) => text::parse(&bytes, written),
        None => ModelProto::decode(bytes).map_err(|e| Error::invalid(format!("not a valid ONNX file: {e}"))),
    }
}

fn translate(proto: &ModelProto, imports: Imports, cx: &Context<'_>) -> Result<Model> {
    let graph = proto.graph.as_ref().ok_or_else(|| Error::invalid("the ONNX file has no graph"))?;
    telemetry::count(cx.options, graph);
    cx.options.log.debug(|| "stage extract".to_string());
    if !cx.options.keep_unknown {
        let mut missing = Missing::default();
        find_missing(&graph.node, &imports, cx, &mut missing, 0);
        for f in cx.functions.all() {
            find_missing(&f.node, &Imports::of(&f.opset_import), cx, &mut missing, 0);
        }
        telemetry::missing(cx.options, &missing);
        missing.tell(&cx.options.log);
        missing.check("onnx", cx.rules, cx.options.registry)?;
    }
    let mut model = Scope::new(cx, imports, None).graph(graph, &[])?.model;
    let info = proto
        .metadata_props
        .iter()
        .map(|p| RtTree::leaf(p.key.clone().unwrap_or_default(), p.value.clone().unwrap_or_default()));
    let info: Vec<RtTree> = info.filter(|t| !t.key.is_empty()).collect();
    if !info.is_empty() {
        model.rt_info.push(RtTree::branch("framework", info));
    }
    Ok(model)
}

fn find_missing(nodes: &[NodeProto], imports: &Imports, cx: &Context<'_>, missing: &mut Missing, depth: usize) {
    for node in nodes {
        let domain = types::domain(node.domain.as_deref());
        let op_type = node.op_type.as_deref().unwrap_or("");
        let version = imports.version(&domain);
        if cx.functions.get(node).is_none() && cx.rules.find(&domain, op_type, version).is_none() {
            missing.add(&domain, op_type, version, &decoded::node_name(node));
        }
        if depth < 64 {
            let graphs = node.attribute.iter().filter_map(|a| a.g.as_deref());
            graphs.for_each(|g: &GraphProto| find_missing(&g.node, imports, cx, missing, depth + 1));
        }
    }
}
