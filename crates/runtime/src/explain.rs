//! Who served each node of a model, and why: the rule that read it, the operation it became, the device and kernel that
//! run it, and the library each of them comes from. Rows follow the model as it was read; what a device makes of it is
//! joined by name.

use crate::compiled::CompiledModel;
use crate::core::{Core, State};
use carafe_abi::Extension;
use carafe_device::{KERNEL_TROUBLE, NodeProfile, Query};
use carafe_frontend::Explained;
use carafe_graph::{Constant, FrameworkNode, Model, Node, OpFactory, OpInfo, Parameter, ResultOp};
use std::collections::{HashMap, HashSet};

const BUILT_IN: &str = "built-in";

/// What served one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeExplained {
    /// Name of the node, behind those of the bodies around it.
    pub name: String,
    /// Name and type in the file; empty where the file has the operation itself.
    pub source: String,
    /// Type of the node of the file.
    pub source_type: String,
    /// Whose rule translated it; `None` where none was needed.
    pub rule: Option<String>,
    /// `opset::Type`; empty where the node of the file left nothing in the model.
    pub op: String,
    /// Where the operation comes from: `built-in`, an extension, the program.
    pub op_from: String,
    /// The device that runs it.
    pub device: Option<String>,
    /// The kernel that runs it.
    pub kernel: Option<String>,
    /// Where the kernel comes from.
    pub kernel_from: Option<String>,
    /// Reasons, in this order: of the rule, the operation, the device.
    pub why: Vec<String>,
}

impl Core {
    /// Rule and operation of every node of a model that was read with `ReadRequest::explain`, bodies included. Inputs,
    /// outputs and constants are left out.
    pub fn explain(&self, model: &Model) -> Vec<NodeExplained> {
        let state = self.state();
        let all = state.registry.all();
        let mut rows = vec![];
        add(&state, &all, model, "", &mut rows);
        for (read, after) in Explained::gone(model) {
            let at = match after.as_str() {
                "" => 0,
                after => rows.iter().rposition(|r| r.source == after).map_or(rows.len(), |i| i + 1),
            };
            let row = NodeExplained {
                name: read.source.clone(),
                source: read.source,
                source_type: read.source_type,
                rule: Some(read.rule).filter(|r| !r.is_empty()),
                why: vec![read.why],
                ..NodeExplained::default()
            };
            rows.insert(at, row);
        }
        rows
    }

    /// Adds what a device says of its nodes without compiling them.
    pub fn explain_query(&self, rows: &mut [NodeExplained], device: &str, query: &Query) {
        for row in rows {
            if query.supported.contains(&row.name) {
                row.device = Some(device.to_string());
            } else if let Some(u) = query.unsupported.iter().find(|u| u.name == row.name) {
                row.why.push(format!("{device} does not run it: {}", u.reason));
            }
        }
    }

    /// Adds devices and kernels of a compiled model. Nodes that only the device has come behind the others.
    pub fn explain_compiled(
        &self,
        rows: &mut Vec<NodeExplained>,
        device: &str,
        compiled: &CompiledModel,
        profile: &[NodeProfile],
    ) {
        let runtime = compiled.runtime_model();
        let by_name: HashMap<&str, &Node> = runtime.nodes().map(|(_, n)| (n.name(), n)).collect();
        let profiled: HashMap<&str, &str> = profile.iter().map(|p| (node_of(p), p.kernel.as_str())).collect();
        let state = self.state();
        let serve = |row: &mut NodeExplained, node: &Node| {
            let field = |key: &str| node.rt_info.get(key).and_then(|a| a.fields.first()).map(|f| f.1.clone());
            let on = field("execDevice").unwrap_or_else(|| device.to_string());
            let kernel = profiled.get(node.name()).map(|k| k.to_string()).or_else(|| field("primitiveType"));
            row.kernel_from = kernel.as_deref().map(|k| state.library_of_kernel(&on, k));
            (row.device, row.kernel) = (Some(on), kernel);
            row.why.extend(field(KERNEL_TROUBLE));
        };
        if runtime.is_empty() {
            return unseen(rows, device, &profiled);
        }
        for row in rows.iter_mut() {
            match by_name.get(row.name.as_str()) {
                Some(node) => {
                    serve(row, node);
                    if let (Some(on), None) = (&row.device, &row.kernel) {
                        row.why.push(format!("{on} does not show what runs it"));
                    }
                    let op = op_name(node);
                    if op != row.op {
                        row.why.push(format!("a rewrite made it {op}"));
                    }
                }
                // A body runs where its node does.
                None => match row.name.split_once(BODY).map(|(outer, _)| by_name.get(outer)) {
                    Some(Some(outer)) => {
                        serve(row, outer);
                        (row.kernel, row.kernel_from) = (None, None);
                    }
                    _ if row.op.is_empty() => {}
                    _ => row.why.push("folded, fused or dropped before it ran".into()),
                },
            }
        }
        let known: HashSet<String> = rows.iter().map(|r| r.name.clone()).collect();
        let all = state.registry.all();
        for (_, node) in runtime.nodes().filter(|(_, n)| is_shown(n) && !known.contains(n.name())) {
            let mut row = row(&state, &all, node, "");
            row.why.push("made by a rewrite".into());
            serve(&mut row, node);
            rows.push(row);
        }
    }
}

// Rows of a device that does not show the graph that runs.
fn unseen(rows: &mut [NodeExplained], device: &str, profiled: &HashMap<&str, &str>) {
    for row in rows.iter_mut().filter(|r| !r.op.is_empty()) {
        row.device = Some(device.to_string());
        row.kernel = profiled.get(row.name.as_str()).map(|k| k.to_string());
        if row.kernel.is_none() {
            row.why.push(format!("{device} does not show what runs it"));
        }
    }
}

// The node a row is about; HETERO names the part in front of it.
fn node_of(row: &NodeProfile) -> &str {
    match row.name.split_once(": ") {
        Some((part, node)) if part.starts_with("subgraph") => node,
        _ => &row.name,
    }
}

/// Stands between the name of a node and those in its bodies.
const BODY: &str = " > ";

fn is_shown(node: &Node) -> bool {
    let op = node.op();
    !op.is::<Parameter>() && !op.is::<ResultOp>() && !op.is::<Constant>()
}

fn op_name(node: &Node) -> String {
    format!("{}::{}", node.op().opset(), node.op().type_name())
}

fn add(state: &State, all: &[&OpFactory], model: &Model, prefix: &str, rows: &mut Vec<NodeExplained>) {
    let order = model.topological_order().unwrap_or_default();
    for node in order.into_iter().map(|id| model.node(id)).filter(|n| is_shown(n)) {
        rows.push(row(state, all, node, prefix));
        for (_, body) in node.op().bodies() {
            add(state, all, &body.model, &format!("{prefix}{}{BODY}", node.name()), rows);
        }
    }
}

fn row(state: &State, all: &[&OpFactory], node: &Node, prefix: &str) -> NodeExplained {
    let read = Explained::of(node).unwrap_or_default();
    let (op_from, op_why) = state.library_of_op(node, all);
    let why = [read.why, op_why].into_iter().filter(|w| !w.is_empty()).collect();
    NodeExplained {
        name: format!("{prefix}{}", node.name()),
        source: read.source,
        source_type: read.source_type,
        rule: Some(read.rule).filter(|r| !r.is_empty()),
        op: op_name(node),
        op_from,
        why,
        ..NodeExplained::default()
    }
}

/// An extension as messages speak of it.
pub(crate) fn shown(e: &Extension) -> String {
    if e.name.is_empty() && e.path.is_none() {
        return "the program".to_string();
    }
    let file = e.path.as_ref().and_then(|p| p.file_name()).map(|f| f.to_string_lossy().into_owned());
    match file {
        Some(file) => format!("extension `{}` ({file})", e.name),
        None => format!("extension `{}`", e.name),
    }
}

impl State {
    // Where the operation of a node comes from, and what it stands in front of.
    fn library_of_op(&self, node: &Node, all: &[&OpFactory]) -> (String, String) {
        let op = node.op();
        if op.is::<FrameworkNode>() {
            return ("nobody".into(), "no operation of this name is registered".into());
        }
        let is_users = |info: &OpInfo| {
            let of_extensions = self.extensions.iter().flat_map(|e| &e.ops);
            of_extensions.chain(&self.loose_ops).any(|f| std::ptr::eq(f.info, info))
        };
        // Of an operation of ours the declaration is known; one of a user may stand beside it under the same name.
        if all.iter().any(|f| std::ptr::eq(f.info, op.info()) && !is_users(f.info)) {
            return (BUILT_IN.into(), String::new());
        }
        let is_this = |f: &OpFactory| {
            std::ptr::eq(f.info, op.info()) || (f.info.xml_name == op.type_name() && f.info.opset == op.opset())
        };
        let mut extensions = self.extensions.iter().rev().filter(|e| e.ops.iter().any(is_this));
        let from = match extensions.next() {
            Some(e) => shown(e),
            None if self.loose_ops.iter().any(is_this) => "the program".to_string(),
            None => return (BUILT_IN.into(), String::new()),
        };
        let mut why: Vec<String> = extensions
            .map(|e| format!("the same operation of {} was added before and is not used", shown(e)))
            .collect();
        let number = op.opset().strip_prefix("opset").and_then(|n| n.parse::<u32>().ok());
        let hidden = all.iter().find(|f| {
            let same_opset =
                f.info.opset == op.opset() || number.is_some_and(|n| f.info.since > 0 && f.info.in_opset(n));
            f.info.xml_name == op.type_name() && same_opset && !is_users(f.info)
        });
        if let Some(f) = hidden {
            let built_in = format!("{}::{}", f.info.opset, f.info.xml_name);
            why.push(format!("a user's operation stands in front of the built-in {built_in}"));
        }
        (from, why.join("; "))
    }

    fn library_of_kernel(&self, device: &str, kernel: &str) -> String {
        let family = device.split('.').next().unwrap_or(device);
        let of_extension = self
            .extensions
            .iter()
            .rev()
            .find(|e| e.kernels.iter().any(|k| k.name() == kernel && k.device().eq_ignore_ascii_case(family)));
        match (of_extension, self.plugins.get(family)) {
            (Some(e), _) => shown(e),
            (None, Some(plugin)) => format!("plugin {}", plugin.path.display()),
            (None, None) => BUILT_IN.into(),
        }
    }
}
