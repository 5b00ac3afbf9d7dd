//! A scheduled network as a `SourceGraph`: a node for each component, and nodes of the domain [`DESCRIPTOR`] for what descriptors
//! say and for what must be remembered from step to step. A memory is read by one node and written by another, so that the graph
//! has no cycles even where the network has.

use crate::component::{Component, Field};
use crate::memory::Step;
use crate::net::Net;
use crate::schedule::{Schedule, first_time};
use crate::timed::{Expr, Read, Timed, Work};
use crate::training::is_training;
use carafe_frontend::{InputShape, Log, MARK, SourceGraph, SourceNode, SourceTensor, SourceValue};
use carafe_graph::{AttrValue, Error, ItemType, Result};
use carafe_tensor::{Dim, ElementType, PartialShape, SharedBytes};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Domain of nodes that are no components.
pub(crate) const DESCRIPTOR: &str = "descriptor";
/// Port of what a component reads; those of its arrays are named like their fields.
pub(crate) const INPUT_PORT: &str = "input";
/// Port of what a component gives.
pub(crate) const OUTPUT_PORT: &str = "output";

/// How a graph is made.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options<'r> {
    /// Memories are inputs and outputs.
    pub(crate) remove_memory: bool,
    /// Shapes that inputs are going to have: rows stand for streams side by side.
    pub(crate) shapes: &'r [InputShape],
}

/// Makes the graph.
pub(crate) fn graph(net: &Net, bytes: &SharedBytes, options: Options<'_>, log: &Log<'_>) -> Result<SourceGraph> {
    let timed = Timed::new(net)?;
    let schedule = Schedule::of(&timed)?;
    let mut builder = Builder {
        timed: &timed,
        schedule: &schedule,
        graph: SourceGraph { outputs: Some(vec![]), ..SourceGraph::default() },
        bytes: bytes.clone(),
        memories: BTreeMap::new(),
        parts: HashMap::new(),
        step: Step::default(),
        options,
        streams: Dim::known(1),
    };
    builder.inputs();
    for i in 0..timed.nodes.len() {
        builder.node(i)?;
    }
    builder.write_memories()?;
    builder.counter()?;
    if schedule.beyond > 0 {
        log.warn(format!(
            "the network looks at {} frames behind those that it needs where they are defined; at the end of an utterance the \
             last frame counts there",
            schedule.beyond
        ));
    }
    let (left, right) = (schedule.left.to_string(), schedule.right.to_string());
    builder.graph.metadata = vec![("left_context".into(), left), ("right_context".into(), right)];
    Ok(builder.graph)
}

pub(crate) struct Builder<'g> {
    pub(crate) timed: &'g Timed<'g>,
    pub(crate) schedule: &'g Schedule,
    pub(crate) graph: SourceGraph,
    bytes: SharedBytes,
    /// Rows of earlier steps of a node that somebody wants: from and to so many steps ago.
    pub(crate) memories: BTreeMap<usize, BTreeSet<(i64, i64)>>,
    /// Values that parts of descriptors became, so that each is made once.
    parts: HashMap<String, String>,
    pub(crate) step: Step,
    pub(crate) options: Options<'g>,
    /// How many streams go side by side.
    pub(crate) streams: Dim,
}

/// A value that no user sees.
pub(crate) fn hidden(name: &str) -> String {
    format!("{MARK}{name}")
}

impl Builder<'_> {
    fn inputs(&mut self) {
        let inputs = &self.timed.net.inputs;
        let in_order =
            self.options.shapes.len() == inputs.len() && self.options.shapes.iter().all(|s| s.name.is_none());
        for (i, (name, dim)) in inputs.iter().enumerate() {
            let is_meant = |n: &str| n == name || n.strip_suffix(":0") == Some(name);
            let named = || self.options.shapes.iter().find(|s| s.name.as_deref().is_some_and(is_meant));
            let given = if in_order { self.options.shapes.get(i) } else { named() };
            let rows = given.and_then(|s| s.shape.dims().filter(|d| d.len() == 2)).map_or(Dim::known(1), |d| d[0]);
            if i == 0 {
                self.streams = rows;
            }
            let shape = PartialShape::new([rows, Dim::known(*dim as i64)]);
            self.graph.inputs.push(SourceValue::new(name, Ok(ItemType::Tensor(ElementType::F32, shape))));
        }
    }
    // Whatever has the batch of the inputs.
    pub(crate) fn batch(&self) -> Result<String> {
        match self.timed.net.inputs.first() {
            Some((name, _)) => Ok(name.clone()),
            None => Err(Error::invalid("the network has no inputs")),
        }
    }

    // What a node gives is a value of its name; one that only hands on is the value that it reads.
    pub(crate) fn value(&self, node: usize) -> String {
        let mut at = node;
        for _ in 0..self.timed.nodes.len() {
            let node = &self.timed.nodes[at];
            if !matches!(node.work, Work::Same | Work::Timeless) {
                break;
            }
            match node.reads[..] {
                [Expr::Read(read)] if self.is_plain(&read, self.schedule.delay[at]) => at = read.node,
                _ => break,
            }
        }
        self.timed.nodes[at].name.clone()
    }
    // Whether a read is the value of the node at this very step.
    fn is_plain(&self, read: &Read, reader: Option<i64>) -> bool {
        self.schedule.steps_back(read.node, read.offset, reader) == 0 && self.defined_from(read, reader).is_none()
    }
    // The step from which an optional read is defined, where that is not the first one it could be.
    fn defined_from(&self, read: &Read, reader: Option<i64>) -> Option<i64> {
        let (first, own) = (self.schedule.first[read.node]?, self.schedule.delay[read.node]?);
        let is_gated = read.optional && first + own > 0;
        let reader = reader.unwrap_or(own + read.offset);
        is_gated.then(|| first - read.offset + reader)
    }

    fn node(&mut self, i: usize) -> Result<()> {
        let timed = self.timed;
        let (node, delay) = (&timed.nodes[i], self.schedule.delay[i]);
        match &node.work {
            Work::Input => Ok(()),
            Work::Output => {
                let name = self.expr(&node.reads[0], delay, &node.name, None)?;
                let mut value = SourceValue::unknown(name);
                value.label = Some(node.name.clone());
                if let Some(outputs) = &mut self.graph.outputs {
                    outputs.push(value);
                }
                Ok(())
            }
            Work::Same | Work::Timeless => {
                if node.work == Work::Timeless {
                    self.check_timeless(i)?;
                }
                let value = self.value(i);
                if value != node.name {
                    self.graph.aliases.insert(node.name.clone(), value);
                    return Ok(());
                }
                // What is not a node yet becomes one of this name.
                self.expr(&node.reads[0], delay, &node.name, Some(&node.name)).map(|_| ())
            }
            Work::Range { offset, dim } => {
                let input = self.expr(&node.reads[0], delay, &node.name, None)?;
                let mut made = helper("DimRange", &node.name, vec![input], vec![node.name.clone()]);
                made.attrs.set("dim-offset", AttrValue::Int(*offset));
                made.attrs.set("dim", AttrValue::Int(*dim));
                self.graph.nodes.push(made);
                Ok(())
            }
            Work::Component(c) => {
                let input = self.expr(&node.reads[0], delay, &node.name, None)?;
                self.component(i, &timed.net.components[*c], input)
            }
            Work::Round(frames) => self.round(i, *frames),
            Work::Switch => {
                let mut inputs = vec![self.step(0, node.reads.len() as i64)?];
                for e in &node.reads {
                    inputs.push(self.expr(e, delay, &node.name, None)?);
                }
                let mut made = helper("Switch", &node.name, inputs, vec![node.name.clone()]);
                made.attrs.set("phase", AttrValue::Int(self.phase(delay, node.reads.len() as i64)));
                self.graph.nodes.push(made);
                Ok(())
            }
        }
    }

    // The frame that the first step belongs to, counted back within a period.
    fn phase(&self, delay: Option<i64>, period: i64) -> i64 {
        (delay.unwrap_or(0) + self.schedule.left).rem_euclid(period)
    }

    // A value that counts as that of all times must not come out of the frames themselves.
    fn check_timeless(&self, node: usize) -> Result<()> {
        let timed = self.timed;
        if timed.net.nodes.iter().any(|n| n.name == timed.nodes[node].name) {
            return Ok(());
        }
        let mut seen = BTreeSet::from([node]);
        let mut stack = vec![node];
        while let Some(at) = stack.pop() {
            let n = &timed.nodes[at];
            if n.work == Work::Input && n.name == "input" {
                return Err(Error::unsupported(format!(
                    "`{}` reads `input` at one fixed time for all others, which frames that come one at a time cannot give",
                    timed.nodes[node].name
                )));
            }
            n.reads.iter().for_each(|e| {
                e.all_reads(&mut |read| {
                    if seen.insert(read.node) {
                        stack.push(read.node);
                    }
                })
            });
        }
        Ok(())
    }

    // Holds the value of every so many frames.
    fn round(&mut self, i: usize, frames: i64) -> Result<()> {
        let (node, delay) = (&self.timed.nodes[i], self.schedule.delay[i]);
        let value = self.expr(&node.reads[0], delay, &node.name, None)?;
        let step = self.step(0, frames)?;
        let before = self.back(i, 1, 1);
        let mut made = helper("Hold", &node.name, vec![step, value, before], vec![node.name.clone()]);
        made.attrs.set("frames", AttrValue::Int(frames));
        made.attrs.set("phase", AttrValue::Int(self.phase(delay, frames)));
        self.graph.nodes.push(made);
        Ok(())
    }

    // The value of an expression for a reader of a delay; of this name where there is one.
    fn expr(&mut self, e: &Expr, delay: Option<i64>, reader: &str, name: Option<&str>) -> Result<String> {
        let key = format!("{delay:?}{e:?}");
        if let (None, Some(known)) = (name, self.parts.get(&key)) {
            return Ok(known.clone());
        }
        let output = |b: &Self, kind: &str| match name {
            Some(name) => name.to_string(),
            None => hidden(&format!("{reader}/{kind}{}", b.graph.nodes.len())),
        };
        let mut made = match e {
            Expr::Read(read) => {
                let plain = match self.schedule.steps_back(read.node, read.offset, delay) {
                    0 => self.value(read.node),
                    steps => self.back(read.node, steps, steps),
                };
                let from = match self.defined_from(read, delay) {
                    Some(from) => from,
                    None if name.is_none() => return Ok(plain),
                    None => 0,
                };
                let out = output(self, "if_defined");
                let step = self.step(from, 1)?;
                let mut made = helper("IfDefined", reader, vec![step, plain], vec![out]);
                made.attrs.set("from", AttrValue::Int(from));
                made
            }
            Expr::Append(list) | Expr::Sum(list) => {
                let is_append = matches!(e, Expr::Append(_));
                let mut inputs = vec![];
                let mut at = 0;
                while at < list.len() {
                    let (rows, back) = if is_append { self.run_of_reads(&list[at..], delay) } else { (1, None) };
                    inputs.push(match back {
                        Some((node, from, to)) => self.back(node, from, to),
                        None => self.expr(&list[at], delay, reader, None)?,
                    });
                    at += rows;
                }
                if let ([one], None) = (&inputs[..], name) {
                    return Ok(one.clone());
                }
                let kind = if is_append { "Append" } else { "Sum" };
                let out = output(self, kind);
                helper(kind, reader, inputs, vec![out])
            }
            Expr::Scale(factor, inner) => {
                let inner = self.expr(inner, delay, reader, None)?;
                let mut made = helper("Scale", reader, vec![inner], vec![output(self, "scale")]);
                made.attrs.set("by", AttrValue::Float(*factor));
                made
            }
            Expr::Const(value, dim) => {
                let mut made = helper("Const", reader, vec![self.batch()?], vec![output(self, "const")]);
                made.attrs.set("value", AttrValue::Float(*value));
                made.attrs.set("dim", AttrValue::Int(*dim as i64));
                made
            }
            Expr::Failover(a, b) => {
                let from = first_time(a, &self.schedule.first).unwrap_or(i64::MIN).saturating_add(delay.unwrap_or(0));
                if from <= 0 && name.is_none() {
                    return self.expr(a, delay, reader, None);
                }
                let from = from.max(0);
                let inputs =
                    vec![self.step(from, 1)?, self.expr(a, delay, reader, None)?, self.expr(b, delay, reader, None)?];
                let mut made = helper("Failover", reader, inputs, vec![output(self, "failover")]);
                made.attrs.set("from", AttrValue::Int(from));
                made
            }
        };
        let value = made.outputs[0].clone();
        made.name = carafe_frontend::shown(&value).to_string();
        if made.name.is_empty() {
            made.name = format!("{reader}/{}{}", made.op_type, self.graph.nodes.len());
        }
        self.graph.nodes.push(made);
        if name.is_none() {
            self.parts.insert(key, value.clone());
        }
        Ok(value)
    }

    // How many reads in front are one part of a memory, and which: rows of one node, each a step later than the one before.
    fn run_of_reads(&self, list: &[Expr], delay: Option<i64>) -> (usize, Option<(usize, i64, i64)>) {
        let back = |e: &Expr| match e {
            Expr::Read(r) if self.defined_from(r, delay).is_none() => {
                Some((r.node, self.schedule.steps_back(r.node, r.offset, delay))).filter(|(_, steps)| *steps > 0)
            }
            _ => None,
        };
        let Some((node, from)) = list.first().and_then(back) else { return (1, None) };
        let rows = list.iter().zip(0..).take_while(|(e, i)| back(e) == Some((node, from - i))).count();
        (rows, Some((node, from, from - rows as i64 + 1)))
    }

    fn component(&mut self, i: usize, c: &Component, input: String) -> Result<()> {
        let name = &self.timed.nodes[i].name;
        let mut node = SourceNode {
            name: name.clone(),
            op_type: c.kind.clone(),
            version: 1,
            inputs: vec![input],
            input_ports: vec![INPUT_PORT.into()],
            outputs: vec![name.clone()],
            output_ports: vec![OUTPUT_PORT.into()],
            index: Some(i),
            ..SourceNode::default()
        };
        for (field, value) in c.fields.iter().filter(|(f, _)| !is_training(&c.kind, f)) {
            let value = match value {
                Field::Int(x) => AttrValue::Int(*x),
                Field::Float(x) => AttrValue::Float(*x),
                Field::Bool(x) => AttrValue::Bool(*x),
                Field::Text(x) => AttrValue::Str(x.clone()),
                Field::Ints(x) => AttrValue::Ints(x.clone()),
                Field::Floats(x) => AttrValue::Floats(x.clone()),
                Field::Array(_) | Field::Made(_) => {
                    // Nodes of one component share its arrays.
                    let owner = if c.name.is_empty() { name } else { &c.name };
                    let tensor = format!("{owner}/{field}");
                    if !self.graph.tensors.iter().any(|t| t.name == tensor) {
                        self.graph.tensors.push(self.tensor(&tensor, value));
                    }
                    node.inputs.push(tensor);
                    node.input_ports.push(field.clone());
                    continue;
                }
            };
            node.attrs.set(field.as_str(), value);
        }
        self.graph.nodes.push(node);
        Ok(())
    }

    fn tensor(&self, name: &str, field: &Field) -> SourceTensor {
        match field {
            Field::Made(tensor) => SourceTensor::new(name, tensor.clone()),
            Field::Array(array) => {
                let (array, bytes) = (*array, self.bytes.clone());
                SourceTensor::lazy(name, move || array.tensor(bytes.as_slice()).map_err(crate::wrong))
            }
            _ => SourceTensor::lazy(name, || Err(Error::invalid("the field is no array"))),
        }
    }
}

// A node that is no component.
pub(crate) fn helper(op_type: &str, name: &str, inputs: Vec<String>, outputs: Vec<String>) -> SourceNode {
    SourceNode {
        name: name.to_string(),
        op_type: op_type.to_string(),
        domain: DESCRIPTOR.to_string(),
        version: 1,
        input_ports: vec![INPUT_PORT.into(); inputs.len()],
        output_ports: vec![OUTPUT_PORT.into(); outputs.len()],
        inputs,
        outputs,
        ..SourceNode::default()
    }
}
