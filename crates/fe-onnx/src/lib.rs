//! ONNX models into graphs. `wire` decodes, `scope` walks, and the rules in `ops` translate one node each. Sequences and
//! optionals are resolved while a model is read where they can be, and are packed tensors where only a run knows them.

#![forbid(unsafe_code)]

mod attributes;
mod file;
mod functions;
mod imports;
mod ops;
mod order;
mod scope;
mod tensor;
mod types;
mod wire;

use carafe_frontend::{Missing, RuleSet};
use carafe_graph::{Error, Model, Result, RtTree};
use functions::Functions;
use imports::Imports;
use prost::Message;
use scope::{Context, Scope};
use std::path::Path;
use wire::{GraphProto, ModelProto, NodeProto};

/// All built-in rules.
pub fn rules() -> RuleSet {
    RuleSet::new(ops::all())
}

/// Whether these first bytes of a file are those of an ONNX model: fields of a ModelProto, each with its own wire type.
pub fn is_onnx(head: &[u8]) -> bool {
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

/// Reads a model with these rules.
pub fn read_file(path: &Path, rules: &RuleSet) -> Result<Model> {
    let (bytes, source) = file::open(path)?;
    read(bytes, &source, rules)
}

/// Reads a model from bytes; tensors in external files cannot be reached.
pub fn read_bytes(bytes: Vec<u8>, rules: &RuleSet) -> Result<Model> {
    read(bytes.into(), &file::Source::default(), rules)
}

fn read(bytes: bytes::Bytes, source: &file::Source, rules: &RuleSet) -> Result<Model> {
    let proto = ModelProto::decode(bytes).map_err(|e| Error::invalid(format!("not a valid ONNX file: {e}")))?;
    let graph = proto.graph.as_ref().ok_or_else(|| Error::invalid("the ONNX file has no graph"))?;
    let imports = Imports::of(&proto.opset_import);
    let functions = Functions::of(&proto.functions);
    let mut missing = Missing::default();
    find_missing(&graph.node, &imports, rules, &functions, &mut missing, 0);
    for f in functions.all() {
        find_missing(&f.node, &Imports::of(&f.opset_import), rules, &functions, &mut missing, 0);
    }
    missing.check(rules)?;
    let cx = Context { source, rules, functions: &functions };
    let mut model = Scope::new(&cx, imports, None).graph(graph, &[])?.model;
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

fn find_missing(
    nodes: &[NodeProto],
    imports: &Imports,
    rules: &RuleSet,
    functions: &Functions<'_>,
    missing: &mut Missing,
    depth: usize,
) {
    for node in nodes {
        let domain = types::domain(node.domain.as_deref());
        let op_type = node.op_type.as_deref().unwrap_or("");
        let version = imports.version(&domain);
        if functions.get(node).is_none() && rules.find(&domain, op_type, version).is_none() {
            let name = node.name.as_deref().filter(|n| !n.is_empty());
            let name = name.or(node.output.first().map(String::as_str)).unwrap_or("");
            missing.add(&domain, op_type, version, name);
        }
        if depth < 64 {
            let graphs = node.attribute.iter().filter_map(|a| a.g.as_deref());
            graphs.for_each(|g: &GraphProto| find_missing(&g.node, imports, rules, functions, missing, depth + 1));
        }
    }
}
