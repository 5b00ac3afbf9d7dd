//! Two text forms of a graph: lines to read and compare, and Graphviz.

use crate::model::{Model, Value};
use crate::printable::short_number;
use crate::structural::{Constant, Parameter, ResultOp};
use std::collections::HashMap;
use std::fmt::Write;

/// One line a node: `%2 = MatMul(%0, %1) {transpose_b=true} : f32[?,2]  # name`.
pub fn text(model: &Model) -> String {
    let mut out = String::new();
    write_model(model, 0, &mut out);
    out
}

fn write_model(model: &Model, indent: usize, out: &mut String) {
    let pad = "  ".repeat(indent);
    let Ok(order) = model.topological_order() else {
        let _ = writeln!(out, "{pad}<cyclic graph>");
        return;
    };
    let number: HashMap<_, _> = order.iter().enumerate().map(|(i, id)| (*id, i)).collect();
    let show = |v: &Value| {
        let many = model.node(v.node).outputs().len() > 1;
        if many { format!("%{}.{}", number[&v.node], v.port) } else { format!("%{}", number[&v.node]) }
    };
    for id in &order {
        let node = model.node(*id);
        let inputs: Vec<String> = node.inputs().iter().map(show).collect();
        let _ = write!(out, "{pad}%{} = {}", number[id], node.op().type_name());
        if node.op().opset() != "opset1" {
            let _ = write!(out, "@{}", node.op().opset());
        }
        let _ = write!(out, "({})", inputs.join(", "));
        let attrs: Vec<String> = match node.op().get::<Constant>() {
            Some(c) => vec![short_value(c)],
            None => node.op().attrs().iter().map(|(n, v)| format!("{n}={v}")).collect(),
        };
        if !attrs.is_empty() {
            let _ = write!(out, " {{{}}}", attrs.join(", "));
        }
        let facts: Vec<String> = node.outputs().iter().map(|o| o.fact.to_string()).collect();
        let _ = writeln!(out, " : {}  # {}", facts.join(", "), node.name());
        for (name, body) in node.op().bodies() {
            let _ = writeln!(out, "{pad}  {name}:");
            write_model(&body.model, indent + 2, out);
        }
    }
}

fn short_value(c: &Constant) -> String {
    let t = c.tensor();
    if t.len() > 8 {
        return format!("{} bytes", t.byte_len());
    }
    match t.to_vec::<f64>() {
        Ok(v) => format!("[{}]", v.iter().map(|x| short_number(*x)).collect::<Vec<_>>().join(", ")),
        Err(_) => t.strings().map(|s| format!("{s:?}")).unwrap_or_default(),
    }
}

/// Graphviz source.
pub fn dot(model: &Model) -> String {
    let mut out = String::from("digraph model {\n  node [shape=box, fontname=\"sans-serif\"];\n");
    for (id, node) in model.nodes() {
        let kind = node.op().type_name();
        let facts: Vec<String> = node.outputs().iter().map(|o| o.fact.to_string()).collect();
        let label = format!("{}\\n{}\\n{}", escape(kind), escape(node.name()), escape(&facts.join(" ")));
        let style = match node.op() {
            op if op.is::<Parameter>() || op.is::<ResultOp>() => ", style=rounded",
            op if op.is::<Constant>() => ", style=dotted",
            _ => "",
        };
        let _ = writeln!(out, "  n{} [label=\"{label}\"{style}];", id.0);
        for (i, v) in node.inputs().iter().enumerate() {
            let _ = writeln!(out, "  n{} -> n{} [headlabel=\"{i}\", taillabel=\"{}\"];", v.node.0, id.0, v.port);
        }
    }
    out.push_str("}\n");
    out
}

fn escape(s: &str) -> String {
    s.replace('\\', "\\\\").replace('"', "\\\"")
}
