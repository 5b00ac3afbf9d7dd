//! What there is to show of a model: boxes and edges with all that is known of them. Constants are no boxes of their own but stand with
//! the node that reads them, for a network has more of them than of anything else.

use crate::weights::Weights;
use carafe::{
    Constant, FrameworkNode, Model, NodeExplained, NodeId, NodeProfile, NodeStatus, Parameter, ResultOp, Summary,
    summarize,
};
use std::collections::HashMap;

/// Stands between the name of a node and those in its bodies, as in `NodeExplained`.
const BODY: &str = " > ";
/// Longest text of an attribute.
const MOST_CHARS: usize = 400;

/// What a box stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// An operation.
    #[default]
    Op,
    /// An input of the model.
    Input,
    /// An output of the model.
    Output,
    /// A constant that is an output.
    Constant,
    /// An operation that nobody knows.
    Unknown,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeBox {
    /// Its name, behind those of the bodies around it.
    pub name: String,
    /// Type of its operation.
    pub op: String,
    /// Opset of its operation.
    pub opset: String,
    /// What it stands for.
    pub kind: Kind,
    /// Which model it lies in: 0 is the whole, others are bodies.
    pub part: usize,
    /// Types and shapes of its outputs.
    pub outputs: Vec<String>,
    /// Attributes as text.
    pub attrs: Vec<(String, String)>,
    /// Constants that it reads.
    pub weights: Vec<Weights>,
    /// Bodies that it runs: their names and parts.
    pub bodies: Vec<(String, usize)>,
    /// Name and type in the file, where these differ.
    pub source: String,
    /// Who read it and why, and other remarks.
    pub notes: Vec<String>,
    /// The device that runs it.
    pub device: String,
    /// The kernel that runs it.
    pub kernel: String,
    /// Microseconds in a run; `None` before one, and for a node that is part of another.
    pub time_us: Option<f64>,
    /// Type of the work that the time is of: a convolution, where one was fused into this node.
    pub ran_as: String,
    /// The node whose time holds that of this one.
    pub fused_into: Option<usize>,
}

/// A value that goes from one box to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The box that makes it.
    pub from: usize,
    /// Its output.
    pub from_port: usize,
    /// The box that reads it.
    pub to: usize,
    /// Its input.
    pub to_port: usize,
}

/// A model as it is shown.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Name of the model.
    pub name: String,
    /// Facts about the whole.
    pub summary: Summary,
    /// All nodes but constants, bodies included.
    pub boxes: Vec<NodeBox>,
    /// All edges.
    pub edges: Vec<Edge>,
    /// Names of the parts: the model, then its bodies.
    pub parts: Vec<String>,
    /// The device that was asked; empty when none was.
    pub device: String,
}

impl Graph {
    /// Of a model; a device and times are added by [`Graph::explain`] and [`Graph::time`].
    pub fn of(model: &Model) -> Graph {
        let mut graph = Graph { name: model.name.clone(), summary: summarize(model), ..Graph::default() };
        graph.add(model, String::new(), model.name.clone());
        graph
    }

    fn add(&mut self, model: &Model, prefix: String, title: String) -> usize {
        let part = self.parts.len();
        self.parts.push(title);
        let order = model.topological_order().unwrap_or_else(|_| model.nodes().map(|(id, _)| id).collect());
        let feeds_result = |id: NodeId| model.users(id.into()).iter().any(|u| model.node(u.node).op().is::<ResultOp>());
        let mut at: HashMap<NodeId, usize> = HashMap::new();
        for id in order {
            let node = model.node(id);
            let op = node.op();
            if op.is::<Constant>() && !feeds_result(id) {
                continue;
            }
            let kind = match op {
                op if op.is::<Parameter>() => Kind::Input,
                op if op.is::<ResultOp>() => Kind::Output,
                op if op.is::<Constant>() => Kind::Constant,
                op if op.is::<FrameworkNode>() => Kind::Unknown,
                _ => Kind::Op,
            };
            let index = self.boxes.len();
            at.insert(id, index);
            let attrs = match op.get::<Constant>() {
                Some(_) => vec![],
                None => op.attrs().iter().map(|(n, v)| (n.to_string(), cut(&v.to_string()))).collect(),
            };
            let name = match kind {
                Kind::Input => model.parameter_name(id),
                Kind::Output => model.result_name(id),
                _ => node.name().to_string(),
            };
            let mut made = NodeBox {
                name: format!("{prefix}{name}"),
                op: op.type_name().to_string(),
                opset: op.opset().to_string(),
                kind,
                part,
                outputs: node.outputs().iter().map(|o| o.fact.to_string()).collect(),
                attrs,
                ..NodeBox::default()
            };
            if let Some(c) = op.get::<Constant>() {
                made.weights.push(Weights::of(node.name(), 0, c.tensor()));
            }
            for (port, v) in node.inputs().iter().enumerate() {
                let from = model.node(v.node);
                match (at.get(&v.node), from.op().get::<Constant>()) {
                    (Some(&from), _) => self.edges.push(Edge { from, from_port: v.port, to: index, to_port: port }),
                    (None, Some(c)) => made.weights.push(Weights::of(from.name(), port, c.tensor())),
                    (None, None) => {}
                }
            }
            self.boxes.push(made);
            for (name, body) in op.bodies() {
                let title = format!("{prefix}{} {name}", node.name());
                let inner = self.add(&body.model, format!("{prefix}{}{BODY}", node.name()), title);
                self.boxes[index].bodies.push((name.to_string(), inner));
            }
        }
        part
    }

    /// Adds who read each node and who runs it.
    pub fn explain(&mut self, device: &str, rows: &[NodeExplained]) {
        self.device = device.to_string();
        let by_name: HashMap<&str, &NodeExplained> = rows.iter().map(|r| (r.name.as_str(), r)).collect();
        for made in &mut self.boxes {
            let Some(row) =
                by_name.get(made.name.as_str()).filter(|_| made.kind == Kind::Op || made.kind == Kind::Unknown)
            else {
                continue;
            };
            made.device = row.device.clone().unwrap_or_default();
            made.kernel = row.kernel.clone().unwrap_or_default();
            if !row.source_type.is_empty() {
                made.source = format!("{} ({})", row.source, row.source_type);
            }
            made.notes.extend(row.rule.as_ref().map(|r| format!("rule: {r}")));
            made.notes.extend(Some(&row.op_from).filter(|f| !f.is_empty()).map(|f| format!("operation: {f}")));
            made.notes.extend(row.kernel_from.as_ref().map(|f| format!("kernel: {f}")));
            made.notes.extend(row.why.iter().cloned());
        }
    }

    /// Adds times of a run.
    pub fn time(&mut self, profile: &[NodeProfile]) {
        let mut times: HashMap<&str, (f64, &NodeProfile)> = HashMap::new();
        for p in profile {
            let name = match p.name.split_once(": ") {
                Some((part, node)) if part.starts_with("subgraph") => node,
                _ => &p.name,
            };
            let entry = times.entry(name).or_insert((0.0, p));
            entry.0 += p.real_time.as_nanos() as f64 / 1e3;
        }
        let at: HashMap<String, usize> = self.boxes.iter().enumerate().map(|(i, b)| (b.name.clone(), i)).collect();
        for made in self.boxes.iter_mut().filter(|b| b.kind == Kind::Op || b.kind == Kind::Unknown) {
            let Some((time, p)) = times.get(made.name.as_str()) else { continue };
            if made.kernel.is_empty() {
                made.kernel.clone_from(&p.kernel);
            }
            if p.status == NodeStatus::Executed {
                made.time_us = Some(*time);
                made.ran_as.clone_from(&p.type_name);
            }
            made.fused_into = p.kernel.strip_prefix("fused into ").and_then(|name| at.get(name).copied());
        }
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARS) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_string(),
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use carafe::{ElementType, PartialShape, Tensor};

    /// `y = relu(x + w)` with hostile names, in scopes.
    pub(crate) fn small() -> Graph {
        let mut model = Model::new("</script><script>alert(1)</script>");
        let x = model.parameter("x", ElementType::F32, PartialShape::of(&[1, 3])).unwrap();
        let w = model.constant("w", Tensor::from_f64(ElementType::F32, &[3], &[1.0, 2.0, 3.0]).unwrap()).unwrap();
        let add = model.add("a/b/add", carafe::ops::arithmetic::Add::default(), &[x, w]).unwrap();
        let relu = model.add("a/b/relu\"'<img src=x>", carafe::ops::activation::Relu, &[add.into()]).unwrap();
        model.result("y", relu.into()).unwrap();
        Graph::of(&model)
    }

    #[test]
    fn constants_stand_with_their_reader() {
        let g = small();
        assert_eq!(g.boxes.iter().map(|b| b.kind).collect::<Vec<_>>(), [Kind::Input, Kind::Op, Kind::Op, Kind::Output]);
        assert_eq!(g.edges.len(), 3);
        assert_eq!((g.boxes[1].weights[0].port, g.boxes[1].weights[0].values.len()), (1, 3));
    }

    #[test]
    fn times_and_devices_are_found_by_name() {
        let mut g = small();
        let name = g.boxes[1].name.clone();
        let fused = g.boxes[2].name.clone();
        g.explain(
            "CPU",
            &[NodeExplained { name: name.clone(), device: Some("CPU".into()), ..NodeExplained::default() }],
        );
        let time = std::time::Duration::from_micros(5);
        let row = |name: &str, kernel: &str, status| NodeProfile {
            name: name.into(),
            type_name: "T".into(),
            kernel: kernel.into(),
            status,
            real_time: time,
            cpu_time: time,
        };
        let into = format!("fused into {name}");
        g.time(&[row(&name, "k", NodeStatus::Executed), row(&fused, &into, NodeStatus::OptimizedOut)]);
        assert_eq!(
            (g.boxes[1].time_us, g.boxes[1].kernel.as_str(), g.boxes[1].device.as_str()),
            (Some(5.0), "k", "CPU")
        );
        assert_eq!((g.boxes[2].time_us, g.boxes[2].fused_into, g.boxes[1].ran_as.as_str()), (None, Some(1), "T"));
    }
}
