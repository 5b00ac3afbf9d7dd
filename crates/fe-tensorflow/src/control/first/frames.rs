//! Loops: each frame becomes a While. A variable of the loop is a Merge of what enters and what the last iteration gave; what
//! enters and is merged with nothing is the same in every iteration, and is read from the graph around the loop by name.

use super::graph::{Part, Producers, drop_taken, leave_outputs, order};
use carafe_frontend::{Held, MARK, SourceGraph, SourceNode, SourceValue};
use carafe_graph::{AttrValue, Error, ItemType, Result};
use carafe_tensor::{ElementType, PartialShape};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Frames inside of each other.
const MAX_DEPTH: usize = 64;

/// A frame of the graph.
struct Frame {
    name: String,
    parent: Option<usize>,
    depth: usize,
}

/// Replaces every frame of a graph by a While.
pub(super) fn structure(graph: &mut SourceGraph) -> Result<()> {
    let is_loop = |n: &SourceNode| matches!(n.op_type.as_str(), "Enter" | "Exit" | "NextIteration" | "LoopCond");
    if !graph.nodes.iter().any(is_loop) {
        return Ok(());
    }
    let producers = Producers::of(&graph.nodes);
    let is_back =
        |from: usize, to: usize| graph.nodes[from].op_type == "NextIteration" && graph.nodes[to].op_type == "Merge";
    let list = order(&graph.nodes, &producers, is_back)?;
    let (frames, mut frame_of) = frames(&graph.nodes, &producers, &list)?;
    let flows = flows(&graph.nodes, &list);
    let mut by_depth: Vec<usize> = (0..frames.len()).collect();
    carafe_graph::sort_by_key(&mut by_depth, |f| std::cmp::Reverse(frames[*f].depth));
    let mut taken = HashSet::new();
    for f in by_depth {
        let producers = Producers::of(&graph.nodes);
        let frame = Loop {
            nodes: &graph.nodes,
            producers: &producers,
            frame_of: &frame_of,
            flows: &flows,
            f,
            frame: &frames[f],
        };
        let (node, exits) = frame.structure(&mut taken);
        for (i, source) in exits {
            let exit = &mut graph.nodes[i];
            exit.op_type = "Identity".to_string();
            exit.inputs = vec![source];
            exit.held.clear();
            exit.controls.clear();
        }
        graph.nodes.push(node);
        frame_of.push(frames[f].parent);
    }
    leave_outputs(graph, |i| frame_of[i].is_some());
    drop_taken(graph, &taken);
    Ok(())
}

// The frame that each node runs in. A value may enter from any frame around, a constant from the outermost, so the parent of
// a frame is the innermost one that something enters from; it is known after a first round.
fn frames(nodes: &[SourceNode], producers: &Producers, list: &[usize]) -> Result<(Vec<Frame>, Vec<Option<usize>>)> {
    let mut frames: Vec<Frame> = vec![];
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    let mut of: Vec<Option<usize>> = vec![None; nodes.len()];
    for &i in list.iter().chain(list) {
        let node = &nodes[i];
        let depth = |f: Option<usize>, frames: &[Frame]| f.map_or(0, |f| frames[f].depth);
        let mut inner: Option<usize> = None;
        for from in
            producers.before(node).filter(|from| !(node.op_type == "Merge" && nodes[*from].op_type == "NextIteration"))
        {
            if depth(of[from], &frames) > depth(inner, &frames) {
                inner = of[from];
            }
        }
        of[i] = match node.op_type.as_str() {
            "Enter" => {
                let name = match node.attrs.get("frame_name") {
                    Some(AttrValue::Str(name) | AttrValue::Text(name)) => name.as_str(),
                    _ => return Err(Error::invalid("attribute `frame_name` is required and missing").at(place(node))),
                };
                let new = depth(inner, &frames) + 1;
                if new > MAX_DEPTH {
                    return Err(Error::invalid(format!("loops are nested deeper than {MAX_DEPTH}")).at(place(node)));
                }
                let f = *by_name.entry(name).or_insert_with(|| {
                    frames.push(Frame { name: name.to_string(), parent: inner, depth: new });
                    frames.len() - 1
                });
                if inner == Some(f) {
                    return Err(Error::invalid(format!("enters `{name}` from inside of it")).at(place(node)));
                }
                if new > frames[f].depth {
                    frames[f].parent = inner;
                    frames[f].depth = new;
                }
                Some(f)
            }
            "Exit" => match inner {
                Some(f) => frames[f].parent,
                None => return Err(Error::invalid("leaves a loop that nothing enters").at(place(node))),
            },
            _ => inner,
        };
    }
    // Frames that enter each other have no outermost.
    for f in 0..frames.len() {
        let mut at = Some(f);
        for _ in 0..=MAX_DEPTH {
            at = at.and_then(|f| frames[f].parent);
        }
        if at.is_some() {
            return Err(Error::invalid(format!("loop `{}` lies inside of itself", frames[f].name)));
        }
    }
    Ok((frames, of))
}

fn place(node: &SourceNode) -> String {
    format!("node `{}` ({})", node.label(), node.op_type)
}

// Values that order what is done to a TensorArray, and so carry its elements here.
fn flows(nodes: &[SourceNode], list: &[usize]) -> HashSet<String> {
    let mut flows: HashSet<String> = HashSet::new();
    for &i in list {
        let node = &nodes[i];
        let made = match node.op_type.as_str() {
            "TensorArrayV3" => node.outputs.get(1..).unwrap_or(&[]),
            "TensorArrayWriteV3"
            | "TensorArrayScatterV3"
            | "TensorArraySplitV3"
            | "TensorArrayWriteV2"
            | "TensorArrayScatterV2"
            | "TensorArraySplitV2" => &node.outputs,
            "Identity" | "Enter" | "Exit" | "Switch" | "NextIteration" | "Merge"
                if node.inputs.iter().any(|n| flows.contains(n)) =>
            {
                &node.outputs
            }
            _ => continue,
        };
        flows.extend(made.iter().cloned());
    }
    flows
}

struct Loop<'a> {
    nodes: &'a [SourceNode],
    producers: &'a Producers,
    frame_of: &'a [Option<usize>],
    flows: &'a HashSet<String>,
    f: usize,
    frame: &'a Frame,
}

/// A variable of a loop: its Merge, what enters, and what an iteration gives.
struct Variable<'a> {
    merge: &'a SourceNode,
    enter: &'a SourceNode,
    next: &'a SourceNode,
}

impl<'a> Loop<'a> {
    /// The While, and for each Exit the value that it hands on. Nodes that moved inside are added to `taken`.
    fn structure(&self, taken: &mut HashSet<usize>) -> (SourceNode, Vec<(usize, String)>) {
        let exits: Vec<usize> = (0..self.nodes.len()).filter(|i| self.is_exit(*i)).collect();
        let own = (0..self.frame_of.len()).filter(|i| self.frame_of[*i] == Some(self.f));
        taken.extend(own);
        match self.loop_node(&exits, taken) {
            Ok(found) => found,
            Err(e) => {
                let fault = SourceNode {
                    name: self.frame.name.clone(),
                    op_type: "While".into(),
                    outputs: exits.iter().enumerate().map(|(k, _)| self.output(k)).collect(),
                    fault: Some(e),
                    ..SourceNode::default()
                };
                let exits = exits.iter().enumerate().map(|(k, i)| (*i, self.output(k))).collect();
                (fault, exits)
            }
        }
    }

    fn is_exit(&self, i: usize) -> bool {
        self.nodes[i].op_type == "Exit"
            && self.input(&self.nodes[i], 0).is_some_and(|(from, _)| self.frame_of[from] == Some(self.f))
    }

    fn input(&self, node: &SourceNode, input: usize) -> Option<(usize, usize)> {
        self.producers.value(node.inputs.get(input)?)
    }

    // The name of an output of the While; it shows nothing.
    fn output(&self, k: usize) -> String {
        format!("{MARK}{}/{}/{k}", self.frame.name, self.f)
    }

    fn loop_node(&self, exits: &[usize], taken: &mut HashSet<usize>) -> Result<(SourceNode, Vec<(usize, String)>)> {
        let members: Vec<usize> = (0..self.nodes.len()).filter(|i| self.frame_of[*i] == Some(self.f)).collect();
        let of_type = |ty: &'static str| members.iter().map(|i| &self.nodes[*i]).filter(move |n| n.op_type == ty);
        let variables = self.variables(of_type("Merge"))?;
        let condition = match of_type("LoopCond").collect::<Vec<_>>().as_slice() {
            [one] => *one,
            [] => {
                return Err(Error::invalid(format!(
                    "loop `{}` has no condition: there is no LoopCond",
                    self.frame.name
                )));
            }
            [a, b, ..] => {
                return Err(Error::invalid(format!(
                    "loop `{}` has two conditions, `{}` and `{}`",
                    self.frame.name,
                    a.label(),
                    b.label()
                )));
            }
        };
        let goes_on = condition.inputs.first().ok_or_else(|| Error::invalid("reads nothing").at(place(condition)))?;
        let mut part = Part::default();
        for enter in of_type("Enter").filter(|e| !variables.iter().any(|v| v.enter.name == e.name)) {
            self.rename(&mut part, enter, 0, 0);
        }
        self.rename(&mut part, condition, 0, 0);
        let mut ends: HashMap<&str, &str> = HashMap::new();
        for switch in of_type("Switch").filter(|s| self.is_ours(s, condition)) {
            self.rename(&mut part, switch, 0, 1);
            if let (Some(left), Some(data)) = (switch.outputs.first(), switch.inputs.first()) {
                ends.insert(left, data);
            }
        }
        let is_frame = |n: &SourceNode| matches!(n.op_type.as_str(), "Enter" | "LoopCond" | "NextIteration" | "Exit");
        let is_merge = |n: &SourceNode| variables.iter().any(|v| v.merge.name == n.name);
        let is_member = |i: usize| {
            let node = &self.nodes[i];
            self.frame_of[i] == Some(self.f) && !is_frame(node) && !is_merge(node)
        };
        let inputs: Vec<SourceValue> = variables.iter().map(|v| self.declared(v)).collect();
        let mut sub = |outputs: &[String]| {
            let mut graph = part.graph(self.nodes, self.producers, outputs, is_member, taken);
            graph.name = self.frame.name.clone();
            graph.inputs = inputs.clone();
            super::conditionals::structure(&mut graph).map(|()| Rc::new(graph))
        };
        let cond = sub(std::slice::from_ref(goes_on))?;
        let nexts: Vec<String> = variables.iter().filter_map(|v| v.next.inputs.first().cloned()).collect();
        let body = sub(&nexts)?;
        let mut sources = vec![];
        for &i in exits {
            let left = self.nodes[i].inputs[0].as_str();
            let data = *ends.get(left).ok_or_else(|| {
                Error::invalid("leaves the loop with a value that no Switch of its condition gives")
                    .at(place(&self.nodes[i]))
            })?;
            let source = match variables.iter().position(|v| v.merge.outputs[0] == data) {
                Some(k) => self.output(k),
                None => part.name(data).to_string(),
            };
            sources.push((i, source));
        }
        let node = SourceNode {
            name: self.frame.name.clone(),
            op_type: "While".into(),
            version: condition.version,
            inputs: variables.iter().map(|v| v.enter.inputs[0].clone()).collect(),
            outputs: (0..variables.len()).map(|k| self.output(k)).collect(),
            held: vec![("cond".into(), Held::Graph(cond)), ("body".into(), Held::Graph(body))],
            ..SourceNode::default()
        };
        Ok((node, sources))
    }

    // A variable as the sub-graphs take it. The engine has no type for a list.
    fn declared(&self, variable: &Variable<'_>) -> SourceValue {
        let is_flow = self.flows.contains(&variable.enter.outputs[0]);
        let ty = match variable.enter.attrs.get("T") {
            Some(AttrValue::Type(ty)) if !is_flow => *ty,
            Some(AttrValue::Str(name)) if name == "complex64" => ElementType::F32,
            Some(AttrValue::Str(name)) if name == "complex128" => ElementType::F64,
            _ => ElementType::Dynamic,
        };
        SourceValue::new(&variable.merge.outputs[0], Ok(ItemType::Tensor(ty, PartialShape::dynamic())))
    }

    // Lets a name stand for what its node hands on.
    fn rename(&self, part: &mut Part, node: &SourceNode, input: usize, output: usize) {
        if let (Some(from), Some(to)) = (node.inputs.get(input), node.outputs.get(output)) {
            part.renamed.insert(to.clone(), from.clone());
        }
    }

    // Whether a Switch belongs to the loop itself.
    fn is_ours(&self, switch: &SourceNode, condition: &SourceNode) -> bool {
        let Some(test) = switch.inputs.get(1) else { return false };
        condition.outputs.first().is_some_and(|c| self.producers.root(self.nodes, test) == c)
    }

    // A Merge of what enters and what comes back.
    fn variables(&self, merges: impl Iterator<Item = &'a SourceNode>) -> Result<Vec<Variable<'a>>> {
        let mut variables = vec![];
        for merge in merges {
            let producers: Vec<&SourceNode> =
                (0..merge.inputs.len()).filter_map(|i| self.input(merge, i)).map(|(i, _)| &self.nodes[i]).collect();
            let of = |ty: &str| producers.iter().copied().find(|n| n.op_type == ty);
            let (enter, next) = match (of("Enter"), of("NextIteration")) {
                (Some(enter), Some(next)) => (enter, next),
                (_, None) => continue,
                (None, Some(_)) => {
                    return Err(
                        Error::invalid("a value comes back from an iteration that none entered as").at(place(merge))
                    );
                }
            };
            let complete = [merge, enter].iter().all(|n| !n.outputs.is_empty()) && merge.inputs.len() == 2;
            if !complete || enter.inputs.is_empty() || next.inputs.is_empty() {
                return Err(
                    Error::invalid("a loop variable is one value that enters and one that comes back").at(place(merge))
                );
            }
            variables.push(Variable { merge, enter, next });
        }
        if variables.is_empty() {
            return Err(Error::invalid(format!("loop `{}` has no variable: nothing comes back", self.frame.name)));
        }
        Ok(variables)
    }
}
