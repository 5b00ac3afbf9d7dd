//! The trace of reading: for each node of the file who handled it and which types, shapes and small values went in and came
//! out. Shapes are inferred as nodes are emitted, so the last lines before an error are those of the place it happened at.

use crate::item::Item;
use crate::options::Log;
use crate::rule::Origin;
use crate::source::{SourceNode, shown};
use carafe_graph::{Fact, Model};
use std::fmt::Write;

/// Longest value that is printed.
const SHOWN: usize = 16;

/// Tells of a node and its inputs before it is handled; a name that stands for nothing here comes from outside.
pub(crate) fn trace_inputs<'i>(
    log: &Log<'_>,
    model: &Model,
    node: &SourceNode,
    origin: Option<&Origin<'_>>,
    named: impl Fn(&str) -> Option<&'i Item>,
) {
    log.debug(|| {
        let by = origin.map_or_else(|| "nobody".to_string(), |o| o.words().0);
        let mut text = format!("extract: `{}` ({}) by {by}", node.label(), node.op_type);
        for (i, name) in node.inputs.iter().enumerate() {
            let what = match named(name) {
                _ if name.is_empty() => "left out".to_string(),
                Some(item) => described(model, item),
                None => "from outside".to_string(),
            };
            let _ = write!(text, "\n    in  {i} `{}`: {what}", shown(name));
        }
        text
    });
}

/// Tells what a node gave.
pub(crate) fn trace_outputs(log: &Log<'_>, model: &Model, node: &SourceNode, outputs: &[Item]) {
    log.debug(|| {
        let lines = outputs.iter().enumerate().map(|(i, item)| {
            let name = node.outputs.get(i).map_or("", |o| shown(o));
            format!("    out {i} `{name}`: {}", described(model, item))
        });
        lines.collect::<Vec<_>>().join("\n")
    });
}

fn described(model: &Model, item: &Item) -> String {
    let (Item::Tensor(v) | Item::Packed { value: v, .. }) = item else {
        return match item {
            Item::Sequence(items) => format!("a sequence of {}", items.len()),
            _ => "nothing".to_string(),
        };
    };
    describe(model.fact(*v))
}

/// Type, shape and, when it is small, the value.
pub fn describe(fact: &Fact) -> String {
    let mut text = format!("{}[{}]", fact.ty, fact.shape);
    let small = fact.shape.to_static().is_some_and(|s| s.iter().product::<usize>() <= SHOWN);
    if small && let Some(t) = fact.tensor() {
        let values = match t.strings() {
            Ok(strings) => strings.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>(),
            Err(_) => match t.to_vec::<f64>() {
                Ok(v) => v.iter().map(f64::to_string).collect(),
                Err(_) => return text,
            },
        };
        let _ = write!(text, " = [{}]", values.join(", "));
    } else if let Some(ints) = fact.ints().filter(|_| small) {
        let _ = write!(text, " = {ints:?}");
    }
    text
}
