//! A program as a `SourceGraph`. Operators run in order and write variables, as often as they like; the graph names values, so the
//! second value of `x` is `x` with a mark (`carafe_frontend::MARK`). Blocks become sub-graphs that read outer values by their names;
//! what a block writes outside of itself becomes an output of the operator that runs it.

use crate::program::{Operator, Program, Slot, Variable};
use crate::select_pairs::{Pair, pairs};
use carafe_frontend::{Held, LeftOut, MARK, SourceGraph, SourceNode, SourceTensor, SourceValue, shown};
use carafe_graph::{AttrValue, Error, ItemType, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

/// Blocks inside of each other deeper than this are refused.
const MAX_DEPTH: usize = 64;
/// A block that several operators run is decoded for each of them: this many times the operators of the file, and some.
const MOST_UNFOLDED: usize = 8;

/// The slot in which `write_to_array` reads the array as it was before.
pub(crate) const ARRAY: &str = "Array";
/// The attribute of a condition that lists outputs which have no value when it is false.
pub(crate) const UNSET: &str = "unset_outputs";

/// The value that a variable has at a point of the program.
type Values = HashMap<String, String>;

/// The graph of a program with these parameters.
pub(crate) fn source(program: &Program, tensors: Vec<SourceTensor>, wanted: &[String]) -> Result<SourceGraph> {
    if program.blocks.is_empty() {
        return Err(Error::invalid("the program has no blocks"));
    }
    let ops: usize = program.blocks.iter().map(|b| b.ops.len()).sum();
    let variables = program.blocks.iter().rev().flat_map(|b| &b.vars).map(|(n, v)| (n.as_str(), v)).collect();
    let mut builder = Builder {
        program,
        variables,
        counts: tensors.iter().map(|t| (t.name.clone(), 1)).collect(),
        left: MOST_UNFOLDED * ops + 1024,
        path: vec![],
        written: HashMap::new(),
        inputs: vec![],
        outputs: vec![],
    };
    let mut values: Values = tensors.iter().map(|t| (t.name.clone(), t.name.clone())).collect();
    let nodes = builder.block(0, &mut values)?;
    let Builder { mut inputs, mut outputs, counts, variables, .. } = builder;
    carafe_graph::sort_by_key(&mut inputs, |(col, _)| *col);
    carafe_graph::sort_by_key(&mut outputs, |(col, _)| *col);
    let types = counts.keys().filter_map(|name| Some((name.clone(), variables.get(name.as_str())?.ty.clone().ok()?)));
    let mut graph = SourceGraph {
        inputs: inputs.into_iter().map(|(_, v)| v).collect(),
        outputs: Some(outputs.into_iter().map(|(_, v)| v).collect()),
        types: types.collect(),
        nodes,
        tensors,
        ..SourceGraph::default()
    };
    if graph.outputs.as_ref().is_some_and(Vec::is_empty) {
        return Err(Error::invalid("the program fetches nothing; export it for inference"));
    }
    leave_unneeded(&mut graph, wanted);
    leave_unread(&mut graph, wanted);
    Ok(graph)
}

struct Builder<'p> {
    program: &'p Program,
    variables: HashMap<&'p str, &'p Variable>,
    /// How many values a variable has had.
    counts: HashMap<String, usize>,
    /// Operators that may still be decoded.
    left: usize,
    /// Blocks around the one at hand.
    path: Vec<usize>,
    /// What blocks write outside of themselves; nothing for one that is being looked at.
    written: HashMap<usize, Option<Rc<BTreeSet<String>>>>,
    inputs: Vec<(i64, SourceValue)>,
    outputs: Vec<(i64, SourceValue)>,
}

/// A value that a branch decides: the variable that gets it, and where either branch has it.
struct Choice {
    out: String,
    then: String,
    other: String,
}

impl Builder<'_> {
    // The name of the next value of a variable.
    fn fresh(&mut self, variable: &str) -> String {
        let count = self.counts.entry(variable.to_string()).or_default();
        *count += 1;
        if *count == 1 { variable.to_string() } else { format!("{variable}{MARK}{}", *count - 1) }
    }

    fn block(&mut self, index: usize, values: &mut Values) -> Result<Vec<SourceNode>> {
        let program = self.program;
        let Some(block) = program.blocks.get(index) else {
            return Err(Error::invalid(format!("there is no block {index}, the program has {}", program.blocks.len())));
        };
        if self.path.contains(&index) {
            return Err(Error::invalid(format!("block {index} runs itself")));
        }
        if self.path.len() >= MAX_DEPTH {
            return Err(Error::invalid(format!("blocks are nested deeper than {MAX_DEPTH}")));
        }
        self.left = self.left.checked_sub(block.ops.len()).ok_or_else(|| {
            Error::invalid("blocks run by several operators unfold to many times the size of the program")
        })?;
        self.path.push(index);
        let pairs = pairs(block);
        let mut nodes = vec![];
        for (i, op) in block.ops.iter().enumerate() {
            let made = match op.op_type.as_str() {
                "feed" if index == 0 => self.feed(op, values),
                "fetch" if index == 0 => self.fetch(op, values),
                _ if pairs.is_part(i) => Ok(None),
                _ => match pairs.at(i) {
                    Some(pair) => self.pair(pair, values),
                    None => self.operator(op, values).map(Some),
                },
            };
            let made = made.map_err(|e| e.at(format!("operator {i} (`{}`) of block {index}", op.op_type)))?;
            nodes.extend(made.map(|node| SourceNode { index: Some(i), ..node }));
        }
        self.path.pop();
        Ok(nodes)
    }

    fn operator(&mut self, op: &Operator, values: &mut Values) -> Result<SourceNode> {
        match (op.op_type.as_str(), op.block("sub_block")) {
            ("while", Some(body)) => self.repeat(op, body, values),
            ("conditional_block" | "conditional_block_infer", Some(then)) => {
                let condition = op.input("Cond").first().cloned().unwrap_or_default();
                self.choose(&condition, Some(then), op.block("else_block"), yielded(self.program, op), values)
            }
            _ => Ok(self.plain(op, values)),
        }
    }

    // An operator that runs no block.
    fn plain(&mut self, op: &Operator, values: &mut Values) -> SourceNode {
        let mut node = self.node(&op.op_type);
        node.attrs = op.attrs.clone();
        node.held = op.broken.clone();
        if let Some((name, _)) = op.blocks.first() {
            let error = Error::unsupported(format!("attribute `{name}` is a block"));
            node.held.push((name.clone(), Held::Broken(error)));
        }
        let mut read = |slot: &Slot, values: &Values| {
            for var in &slot.vars {
                node.inputs.push(value(values, var));
                node.input_ports.push(slot.name.clone());
            }
        };
        op.inputs.iter().for_each(|slot| read(slot, values));
        if op.op_type == "write_to_array" && op.input(ARRAY).is_empty() {
            let before = op.output("Out").iter().filter(|v| values.contains_key(*v)).cloned().collect();
            read(&Slot { name: ARRAY.into(), vars: before }, values);
        }
        for slot in &op.outputs {
            for var in &slot.vars {
                let name = if var.is_empty() { String::new() } else { self.fresh(var) };
                values.insert(var.clone(), name.clone());
                node.outputs.push(name);
                node.output_ports.push(slot.name.clone());
            }
        }
        node
    }

    fn node(&self, op_type: &str) -> SourceNode {
        SourceNode { op_type: op_type.to_string(), version: self.program.version, ..SourceNode::default() }
    }

    fn feed(&mut self, op: &Operator, values: &mut Values) -> Result<Option<SourceNode>> {
        let col = op.attrs.read("col", Some(self.inputs.len() as i64))?;
        for var in op.output("Out") {
            // The marks of later values are not shown, so two inputs would have one name.
            if self.inputs.iter().any(|(_, v)| v.name.split(MARK).next() == Some(var)) {
                return Err(Error::invalid(format!("input `{var}` is fed twice")));
            }
            let name = self.fresh(var);
            values.insert(var.clone(), name.clone());
            let ty = self.variables.get(var.as_str()).map(|v| v.ty.clone());
            let ty = ty.unwrap_or_else(|| Err(Error::invalid(format!("input `{var}` is declared nowhere"))));
            self.inputs.push((col, SourceValue::new(name, ty)));
        }
        Ok(None)
    }

    fn fetch(&mut self, op: &Operator, values: &mut Values) -> Result<Option<SourceNode>> {
        let col = op.attrs.read("col", Some(self.outputs.len() as i64))?;
        let label: Option<String> = op.attrs.get("label").map(|_| op.attrs.read("label", None)).transpose()?;
        for var in op.input("X") {
            let ty = self.variables.get(var.as_str()).map(|v| v.ty.clone()).and_then(Result::ok);
            let ty = ty.unwrap_or(ItemType::Tensor(ElementType::Dynamic, PartialShape::dynamic()));
            let mut output = SourceValue::new(value(values, var), Ok(ty));
            output.label = label.clone();
            self.outputs.push((col, output));
        }
        Ok(None)
    }

    // Two conditions of which one runs, with what is selected of them behind.
    fn pair(&mut self, pair: &Pair, values: &mut Values) -> Result<Option<SourceNode>> {
        let choices =
            pair.selected.iter().map(|s| Choice { out: s.out.clone(), then: s.then.clone(), other: s.other.clone() });
        let choices = choices.collect();
        self.choose(&pair.condition, Some(pair.then), Some(pair.other), choices, values).map(Some)
    }

    // A condition over one or two blocks. What either writes outside of itself is chosen too.
    fn choose(
        &mut self,
        condition: &str,
        then: Option<usize>,
        other: Option<usize>,
        mut choices: Vec<Choice>,
        values: &mut Values,
    ) -> Result<SourceNode> {
        let mut written = BTreeSet::new();
        for block in [then, other].into_iter().flatten() {
            written.extend(self.written(block)?.iter().cloned());
        }
        let mut branch = |block: Option<usize>| -> Result<(Vec<SourceNode>, Values)> {
            let mut inner = values.clone();
            let nodes = block.map(|b| self.block(b, &mut inner)).transpose()?;
            Ok((nodes.unwrap_or_default(), inner))
        };
        let (then_nodes, then_values) = branch(then)?;
        let (other_nodes, other_values) = branch(other)?;
        let chosen: HashSet<String> = choices.iter().flat_map(|c| [c.then.clone(), c.other.clone()]).collect();
        let further = written.into_iter().filter(|v| !chosen.contains(v) && then_values.contains_key(v));
        choices.extend(further.map(|v| Choice { out: v.clone(), then: v.clone(), other: v }));
        let mut node = self.node("conditional_block");
        node.inputs.push(value(values, condition));
        node.input_ports.push("Cond".into());
        let (mut then_graph, mut other_graph) = (graph(then_nodes), graph(other_nodes));
        let mut unset = vec![];
        for (i, choice) in choices.iter().enumerate() {
            give(&mut then_graph, value(&then_values, &choice.then));
            match other_values.get(&choice.other) {
                Some(name) => give(&mut other_graph, name.clone()),
                None => unset.push(i as i64),
            }
            let name = self.fresh(&choice.out);
            values.insert(choice.out.clone(), name.clone());
            node.outputs.push(name);
            node.output_ports.push("Out".into());
        }
        if !unset.is_empty() {
            node.attrs.set(UNSET, AttrValue::Ints(unset));
        }
        node.held.push(("sub_block".into(), Held::Graph(Rc::new(then_graph))));
        node.held.push(("else_block".into(), Held::Graph(Rc::new(other_graph))));
        Ok(node)
    }

    // A loop: what its block writes outside of itself goes around, and so do its arguments.
    fn repeat(&mut self, op: &Operator, body: usize, values: &mut Values) -> Result<SourceNode> {
        let program = self.program;
        let condition = op.input("Condition").first().cloned().unwrap_or_default();
        let block = program.blocks.get(body);
        let args = block.map_or(&[][..], |b| &b.args);
        let yields = block.and_then(|b| b.yields.as_deref());
        if let Some(yields) = yields
            && (yields.len() != args.len() + 1
                || op.input("X").len() != args.len()
                || op.output("Out").len() < args.len())
        {
            return Err(Error::invalid(format!(
                "a loop over {} values takes {} arguments and gives {} values",
                op.input("X").len(),
                args.len(),
                yields.len()
            )));
        }
        let mut written = (*self.written(body)?).clone();
        // The condition is an output of the body anyway; as a variable it goes around only where somebody reads it.
        if yields.is_none() && !self.is_read(&condition) {
            written.remove(&condition);
        }
        let mut node = self.node("while");
        node.inputs.push(value(values, &condition));
        node.input_ports.push("Condition".into());
        let mut inner = values.clone();
        let mut inputs = vec![];
        // Inside, at the end of an iteration, and behind the loop.
        let mut carried: Vec<(String, String)> = vec![];
        for (i, arg) in args.iter().enumerate() {
            node.inputs.push(value(values, &op.input("X")[i]));
            carried.push((yields.map_or(arg, |y| &y[i + 1]).clone(), op.output("Out")[i].clone()));
            inputs.push(self.parameter(arg, &mut inner));
        }
        for var in written.iter().filter(|v| !args.contains(v)) {
            node.inputs.push(values.get(var).cloned().unwrap_or_default());
            carried.push((var.clone(), var.clone()));
            inputs.push(self.parameter(var, &mut inner));
        }
        node.input_ports.resize(node.inputs.len(), "X".into());
        let nodes = self.block(body, &mut inner)?;
        let mut graph = SourceGraph { inputs, ..graph(nodes) };
        give(&mut graph, value(&inner, yields.map_or(&condition, |y| &y[0])));
        for (end, out) in &carried {
            give(&mut graph, value(&inner, end));
            let name = self.fresh(out);
            values.insert(out.clone(), name.clone());
            node.outputs.push(name);
        }
        node.output_ports = vec!["Out".into(); node.outputs.len()];
        node.held.push(("sub_block".into(), Held::Graph(Rc::new(graph))));
        Ok(node)
    }

    // A variable that an iteration begins with.
    fn parameter(&mut self, variable: &str, inner: &mut Values) -> SourceValue {
        let name = self.fresh(variable);
        inner.insert(variable.to_string(), name.clone());
        let declared = self.variables.get(variable);
        let ty = match declared.map(|v| (v.is_array, v.ty.clone())) {
            Some((false, Ok(ty))) => ty,
            Some((true, Ok(ItemType::Tensor(ty, shape)))) => ItemType::Tensor(ty, stacked(&shape)),
            _ => ItemType::Tensor(ElementType::Dynamic, PartialShape::dynamic()),
        };
        SourceValue::new(name, Ok(ty))
    }

    // Whether an operator reads a variable, loops that it decides about aside.
    fn is_read(&self, variable: &str) -> bool {
        let mut ops = self.program.blocks.iter().flat_map(|b| &b.ops).filter(|op| op.op_type != "while");
        ops.any(|op| op.inputs.iter().any(|s| s.vars.iter().any(|v| v == variable)))
    }

    // Variables outside of a block that it writes, and the blocks in it. Each block is looked at once.
    fn written(&mut self, index: usize) -> Result<Rc<BTreeSet<String>>> {
        if let Some(known) = self.written.get(&index) {
            return known.clone().ok_or_else(|| Error::invalid(format!("block {index} runs itself")));
        }
        let program = self.program;
        let mut all = BTreeSet::new();
        if let Some(block) = program.blocks.get(index) {
            self.written.insert(index, None);
            for op in &block.ops {
                for (_, inner) in &op.blocks {
                    all.extend(self.written(*inner)?.iter().cloned());
                }
                if op.blocks.is_empty() || block.yields.is_some() {
                    all.extend(op.outputs.iter().flat_map(|s| &s.vars).cloned());
                }
            }
            all.retain(|v| !block.vars.contains_key(v) && !v.is_empty());
        }
        let all = Rc::new(all);
        self.written.insert(index, Some(all.clone()));
        Ok(all)
    }
}

// What a condition chooses by the values that its blocks give back.
fn yielded(program: &Program, op: &Operator) -> Vec<Choice> {
    let yields = |attribute: &str| {
        let block = op.block(attribute).and_then(|b| program.blocks.get(b));
        block.and_then(|b| b.yields.as_deref()).unwrap_or_default()
    };
    let both = yields("sub_block").iter().zip(yields("else_block"));
    let all = op.output("Out").iter().zip(both);
    all.map(|(out, (then, other))| Choice { out: out.clone(), then: then.clone(), other: other.clone() }).collect()
}

/// The shape of an array whose elements have a shape: they stand along a first axis.
pub(crate) fn stacked(element: &PartialShape) -> PartialShape {
    match element.dims() {
        Some(dims) => PartialShape::new([Dim::ANY].into_iter().chain(dims.iter().copied())),
        None => PartialShape::dynamic(),
    }
}

// The value of a variable; one that has none keeps its name, so that the error can say it.
fn value(values: &Values, variable: &str) -> String {
    values.get(variable).cloned().unwrap_or_else(|| variable.to_string())
}

fn graph(nodes: Vec<SourceNode>) -> SourceGraph {
    SourceGraph { nodes, outputs: Some(vec![]), ..SourceGraph::default() }
}

fn give(graph: &mut SourceGraph, name: String) {
    graph.outputs.get_or_insert_default().push(SourceValue::unknown(name));
}

// Leaves out operators that no output needs: a program may still have what only training uses.
fn leave_unneeded(graph: &mut SourceGraph, wanted: &[String]) {
    let mut makers: HashMap<&str, usize> = HashMap::new();
    for (i, node) in graph.nodes.iter().enumerate() {
        makers.extend(node.outputs.iter().filter(|o| !o.is_empty()).map(|o| (o.as_str(), i)));
    }
    let outputs = graph.outputs.iter().flatten().map(|o| o.name.as_str());
    let mut open: Vec<usize> =
        outputs.chain(wanted.iter().map(String::as_str)).filter_map(|o| makers.get(o).copied()).collect();
    if !wanted.is_empty() {
        open.extend(
            (0..graph.nodes.len())
                .filter(|i| graph.nodes[*i].outputs.iter().any(|o| wanted.iter().any(|w| w == shown(o)))),
        );
    }
    let mut needed = vec![false; graph.nodes.len()];
    while let Some(i) = open.pop() {
        if std::mem::replace(&mut needed[i], true) {
            continue;
        }
        let mut read = HashSet::new();
        reads(&graph.nodes[i], &mut read, 0);
        open.extend(read.iter().filter_map(|name| makers.get(name.as_str()).copied()));
    }
    let mut after = String::new();
    let mut kept = vec![];
    for (node, needed) in std::mem::take(&mut graph.nodes).into_iter().zip(needed) {
        let name = node.label().to_string();
        if needed {
            kept.push(node);
        } else {
            let why = "no output needs it";
            graph.left_out.push(LeftOut { name: name.clone(), op_type: node.op_type, after, why });
        }
        after = name;
    }
    graph.nodes = kept;
}

// Leaves names to outputs that are read, given or wanted: rules need not make the others. A node is called by the first of them.
fn leave_unread(graph: &mut SourceGraph, wanted: &[String]) {
    let mut read: HashSet<String> = HashSet::new();
    graph.nodes.iter().for_each(|n| reads(n, &mut read, 0));
    read.extend(graph.outputs.iter().flatten().map(|o| o.name.clone()));
    clear(graph, &|name| read.contains(name) || wanted.iter().any(|w| w == shown(name)), 0);
}

fn clear(graph: &mut SourceGraph, is_read: &dyn Fn(&str) -> bool, depth: usize) {
    for node in &mut graph.nodes {
        if let Some(name) = node.outputs.iter().find(|o| is_read(o)).map(|o| shown(o).to_string()) {
            node.name = name;
            node.outputs.iter_mut().filter(|o| !is_read(o)).for_each(String::clear);
        }
        for (_, held) in node.held.iter_mut().filter(|_| depth < MAX_DEPTH) {
            if let Held::Graph(inner) = held
                && let Some(inner) = Rc::get_mut(inner)
            {
                clear(inner, is_read, depth + 1);
            }
        }
    }
}

// All names that a node and its sub-graphs read.
fn reads(node: &SourceNode, read: &mut HashSet<String>, depth: usize) {
    read.extend(node.inputs.iter().cloned());
    for (_, inner) in node.graphs().filter(|_| depth < MAX_DEPTH) {
        inner.nodes.iter().for_each(|n| reads(n, read, depth + 1));
        read.extend(inner.outputs.iter().flatten().map(|o| o.name.clone()));
    }
}
