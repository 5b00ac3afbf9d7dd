//! What HETERO did with a model, for people and programs: which nodes went where, what crosses the borders, and what
//! nobody takes.

use super::placement::{Part, Placement};
use super::split::{Split, counts};
use crate::json::{quoted, strings};
use carafe_graph::Model;
use std::fmt::{self, Write};

/// A model in pieces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Name of the model.
    pub model: String,
    /// In order of priority.
    pub devices: Vec<String>,
    /// In the order they run.
    pub sub_models: Vec<SubModelReport>,
    /// Nodes whose values are known before anything runs and that no device computes.
    pub folded: Vec<String>,
    /// Nodes no device takes; then there are no sub-models.
    pub refused: Vec<Refused>,
}

/// One piece.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubModelReport {
    /// Name of the sub-model.
    pub name: String,
    /// The device that runs it.
    pub device: String,
    /// Names with types.
    pub nodes: Vec<(String, String)>,
    /// What it reads: inputs of the model and values of earlier pieces.
    pub inputs: Vec<String>,
    /// Names of its outputs.
    pub outputs: Vec<String>,
}

/// A node nobody takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused {
    /// Name of the node.
    pub name: String,
    /// Type of its operation.
    pub type_name: String,
    /// By device.
    pub reasons: Vec<(String, String)>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` ({})", self.name, self.type_name)?;
        for (i, (device, reason)) in self.reasons.iter().enumerate() {
            write!(f, "{} {device}: {reason}", if i == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl Report {
    pub(crate) fn of(model: &Model, parts: &[Part], placed: &Placement, split: Option<&Split>) -> Report {
        let name = |id| model.node(id).name().to_string();
        let row = |sub: &super::split::SubModel| SubModelReport {
            name: sub.model.name.clone(),
            device: parts[sub.device].name.clone(),
            nodes: sub.nodes.iter().map(|n| (name(*n), model.node(*n).op().type_name().to_string())).collect(),
            inputs: sub.model.parameters().iter().map(|p| sub.model.node(*p).name().to_string()).collect(),
            outputs: sub.model.results().iter().map(|r| sub.model.result_name(*r)).collect(),
        };
        Report {
            model: model.name.clone(),
            devices: parts.iter().map(|p| p.name.clone()).collect(),
            sub_models: split.map(|s| s.subs.iter().map(row).collect()).unwrap_or_default(),
            folded: split
                .map(|s| s.folded.iter().filter(|n| counts(model, **n)).map(|n| name(*n)).collect())
                .unwrap_or_default(),
            refused: placed.refused.clone(),
        }
    }

    /// Device of a node; the first one where several hold a copy.
    pub fn device_of(&self, node: &str) -> Option<&str> {
        let holds = |s: &&SubModelReport| s.nodes.iter().any(|(n, _)| n == node);
        self.sub_models.iter().find(holds).map(|s| s.device.as_str())
    }

    /// The same as an object: `model`, `devices`, `sub_models`, `folded`, `refused`.
    pub fn to_json(&self) -> String {
        let sub = |s: &SubModelReport| {
            let nodes: Vec<String> =
                s.nodes.iter().map(|(n, t)| format!("{{\"name\":{},\"type\":{}}}", quoted(n), quoted(t))).collect();
            format!(
                "{{\"name\":{},\"device\":{},\"inputs\":{},\"outputs\":{},\"nodes\":[{}]}}",
                quoted(&s.name),
                quoted(&s.device),
                strings(&s.inputs),
                strings(&s.outputs),
                nodes.join(",")
            )
        };
        let refused = |r: &Refused| {
            let reasons: Vec<String> = r
                .reasons
                .iter()
                .map(|(d, why)| format!("{{\"device\":{},\"reason\":{}}}", quoted(d), quoted(why)))
                .collect();
            format!(
                "{{\"name\":{},\"type\":{},\"reasons\":[{}]}}",
                quoted(&r.name),
                quoted(&r.type_name),
                reasons.join(",")
            )
        };
        format!(
            "{{\"model\":{},\"devices\":{},\"sub_models\":[{}],\"folded\":{},\"refused\":[{}]}}",
            quoted(&self.model),
            strings(&self.devices),
            self.sub_models.iter().map(sub).collect::<Vec<_>>().join(","),
            strings(&self.folded),
            self.refused.iter().map(refused).collect::<Vec<_>>().join(",")
        )
    }

    /// The sub-models and what flows between them, for Graphviz.
    pub fn to_dot(&self) -> String {
        let mut out = format!("digraph {} {{\n  node [shape=box, style=filled];\n", quoted(&self.model));
        for (i, s) in self.sub_models.iter().enumerate() {
            let label = format!("{}\n{}\n{} nodes", s.name, s.device, s.nodes.len());
            let _ = writeln!(out, "  s{i} [label={}, fillcolor={}];", quoted(&label), self.colour(&s.device));
        }
        for (i, s) in self.sub_models.iter().enumerate() {
            for input in &s.inputs {
                let from = self.sub_models[..i].iter().position(|p| p.nodes.iter().any(|(n, _)| value_of(input, n)));
                let from = from.map_or("inputs".to_string(), |p| format!("s{p}"));
                let _ = writeln!(out, "  {from} -> s{i} [label={}];", quoted(input));
            }
        }
        out.push_str("}\n");
        out
    }

    /// Colour of a device in the graphs, by its place in the list.
    pub(crate) fn colour(&self, device: &str) -> &'static str {
        const COLOURS: [&str; 6] =
            ["\"#aed6f1\"", "\"#f5cba7\"", "\"#abebc6\"", "\"#d7bde2\"", "\"#f9e79f\"", "\"#f5b7b1\""];
        let place = self.devices.iter().position(|d| d == device).unwrap_or(0);
        COLOURS[place % COLOURS.len()]
    }
}

// `node` or `node.1`
fn value_of(input: &str, node: &str) -> bool {
    input == node
        || input.strip_prefix(node).and_then(|rest| rest.strip_prefix('.')).is_some_and(|p| p.parse::<usize>().is_ok())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "model `{}` on {}: {} sub-models", self.model, self.devices.join(", "), self.sub_models.len())?;
        for (i, s) in self.sub_models.iter().enumerate() {
            writeln!(f, "subgraph{i} `{}` on {}: {} nodes", s.name, s.device, s.nodes.len())?;
            writeln!(f, "  in:  {}", s.inputs.join(", "))?;
            for (name, type_name) in &s.nodes {
                writeln!(f, "  {name} ({type_name})")?;
            }
            writeln!(f, "  out: {}", s.outputs.join(", "))?;
        }
        if !self.folded.is_empty() {
            writeln!(f, "known before running: {}", self.folded.join(", "))?;
        }
        for r in &self.refused {
            writeln!(f, "nobody takes {r}")?;
        }
        Ok(())
    }
}
