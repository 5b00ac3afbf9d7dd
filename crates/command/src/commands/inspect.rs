//! `carafe inspect`: what a model is made of. Works for models with unknown operations too.

use super::{print, print_json, read};
use crate::args::InspectArgs;
use crate::outputs::port_json;
use carafe::{Core, Error, ItemType, Port, Result, Summary, dump, files, summarize};
use carafe_view::{Graph, model_explorer};
use serde_json::json;
use std::fmt::Write;

pub(crate) fn run(core: &Core, args: &InspectArgs) -> Result<()> {
    let model = read(core, &args.model, false)?;
    if args.graph {
        return print(&dump::text(&model));
    }
    if args.dot {
        return print(&dump::dot(&model));
    }
    if let Some(file) = &args.model_explorer {
        let mut graph = Graph::of(&model);
        graph.explain("", &core.explain(&model));
        files::write(file, format!("{}\n", model_explorer(&graph)).as_bytes())
            .map_err(|e| Error::io(format!("cannot write `{}`", file.display()), &e))?;
    }
    let summary = summarize(&model);
    let packed = Packed {
        inputs: model.parameters().iter().map(|&p| model.packed_type(p)).collect(),
        outputs: model.results().iter().map(|&r| model.packed_type(r)).collect(),
    };
    if args.json { print_json(&as_json(&summary, &packed)) } else { print(&as_text(&summary, &packed)) }
}

/// What inputs and outputs carry where that is a sequence or an optional.
struct Packed {
    inputs: Vec<Option<ItemType>>,
    outputs: Vec<Option<ItemType>>,
}

fn as_json(s: &Summary, packed: &Packed) -> serde_json::Value {
    let unknown: Vec<_> =
        s.unknown.iter().map(|((t, o), nodes)| json!({"type": t, "opset": o, "nodes": nodes})).collect();
    json!({
        "name": s.name,
        "inputs": ports_json(&s.inputs, &packed.inputs),
        "outputs": ports_json(&s.outputs, &packed.outputs),
        "ops": s.ops,
        "opsets": s.opsets,
        "extensions_needed": unknown,
        "parameters": s.parameters,
        "weight_bytes": s.weight_bytes,
        "macs": s.macs,
        "variables": s.variables,
    })
}

fn ports_json(ports: &[Port], packed: &[Option<ItemType>]) -> Vec<serde_json::Value> {
    ports.iter().zip(packed).map(|(p, ty)| port_json(p, ty.as_ref())).collect()
}

fn as_text(s: &Summary, packed: &Packed) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "model       {}", s.name);
    ports(&mut out, "input", &s.inputs, &packed.inputs);
    ports(&mut out, "output", &s.outputs, &packed.outputs);
    let _ = writeln!(out, "parameters  {} ({} bytes of weights)", grouped(s.parameters), grouped(s.weight_bytes));
    match s.macs {
        Some(n) => {
            let _ = writeln!(out, "macs        {}", grouped(n));
        }
        None => out.push_str("macs        unknown, a shape is dynamic\n"),
    }
    if !s.variables.is_empty() {
        let _ = writeln!(out, "variables   {}", s.variables.join(", "));
    }
    let opsets: Vec<String> = s.opsets.iter().map(|(o, n)| format!("{o} ({n})")).collect();
    let _ = writeln!(out, "opsets      {}", opsets.join(", "));
    let _ = writeln!(out, "operations  {}", s.ops.values().sum::<usize>());
    let mut ops: Vec<_> = s.ops.iter().collect();
    ops.sort_by_key(|(name, n)| (std::cmp::Reverse(**n), name.as_str()));
    for (name, n) in ops {
        let _ = writeln!(out, "  {n:>6}  {name}");
    }
    if s.unknown.is_empty() {
        out.push_str("extensions  none needed\n");
    } else {
        out.push_str("extensions  needed for:\n");
        for ((name, opset), nodes) in &s.unknown {
            let _ = writeln!(out, "  {:>6}  {name} from `{opset}`: {}", nodes.len(), nodes.join(", "));
        }
    }
    out
}

fn ports(out: &mut String, what: &str, ports: &[Port], packed: &[Option<ItemType>]) {
    for (p, ty) in ports.iter().zip(packed) {
        let _ = match ty {
            Some(ty) => writeln!(out, "{what:<11} {}: {ty}", p.name),
            None => writeln!(out, "{what:<11} {}: {}[{}]", p.name, p.ty, p.shape),
        };
    }
}

// 12345678 as `12 345 678`.
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(c);
    }
    out
}
