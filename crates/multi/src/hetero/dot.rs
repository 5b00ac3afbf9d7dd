//! Two Graphviz files about a split, for looking at it: every node in the colour of its device, and the sub-models with
//! what flows between them.

use super::report::Report;
use crate::json::quoted;
use carafe_graph::{Constant, Error, Model, Result};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Environment variable that asks for the files: a folder, or `1` or `YES` for the current one.
pub(crate) const VARIABLE: &str = "CARAFE_HETERO_VISUALIZE";

/// Where the environment wants the files.
pub(crate) fn wanted_by_environment() -> Option<PathBuf> {
    let value = std::env::var_os(VARIABLE)?;
    match value.to_str().map(|v| v.to_ascii_lowercase()).as_deref() {
        Some("" | "0" | "no" | "false") => None,
        Some("1" | "yes" | "true") => Some(PathBuf::from(".")),
        _ => Some(value.into()),
    }
}

/// Writes `hetero_affinity_<model>.dot` and `hetero_subgraphs_<model>.dot`.
pub(crate) fn write(folder: &Path, model: &Model, report: &Report) -> Result<()> {
    let name: String = model.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    for (kind, text) in [("affinity", affinity(model, report)), ("subgraphs", report.to_dot())] {
        let path = folder.join(format!("hetero_{kind}_{name}.dot"));
        carafe_tensor::files::write(&path, text.as_bytes())
            .map_err(|e| Error::io(format!("cannot write `{}`", path.display()), &e))?;
    }
    Ok(())
}

fn affinity(model: &Model, report: &Report) -> String {
    let mut out = format!("digraph {} {{\n  node [shape=box, style=filled];\n", quoted(&model.name));
    for (id, node) in model.nodes().filter(|(_, n)| !n.op().is::<Constant>()) {
        let colour = report.device_of(node.name()).map_or("white", |d| report.colour(d));
        let label = format!("{}\n{}", node.name(), node.op().type_name());
        let _ = writeln!(out, "  n{} [label={}, fillcolor={colour}];", id.0, quoted(&label));
        for v in node.inputs().iter().filter(|v| !model.node(v.node).op().is::<Constant>()) {
            let _ = writeln!(out, "  n{} -> n{};", v.node.0, id.0);
        }
    }
    out.push_str("}\n");
    out
}
