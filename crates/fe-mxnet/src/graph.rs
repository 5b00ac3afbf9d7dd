//! The symbol as a `SourceGraph`. Values are named like the node that makes them, further outputs `NODE:1` and so on; a symbol
//! may use a name again, and then the values are told apart. Variables with a value are tensors, the others are inputs.

use crate::attributes;
use crate::inputs;
use crate::parts::{Parts, Values};
use crate::symbol::{Entry, Node, Symbol};
use carafe_frontend::{Held, MARK, ReadRequest, SourceGraph, SourceNode, SourceTensor, SourceValue};
use carafe_graph::{Error, Result};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Domain of nodes whose type is that of a custom operator.
pub(crate) const CUSTOM: &str = "Custom";

/// Operators that compare with a label while training. The label is no input of a model.
const WITH_LABEL: &[&str] = &[
    "LinearRegressionOutput",
    "LogisticRegressionOutput",
    "MAERegressionOutput",
    "SVMOutput",
    "Softmax",
    "SoftmaxOutput",
    "_sparse_LinearRegressionOutput",
    "_sparse_LogisticRegressionOutput",
    "_sparse_MAERegressionOutput",
];

/// The graph of a model.
pub(crate) fn of_parts(parts: Parts, request: &ReadRequest<'_>) -> Result<SourceGraph> {
    let Parts { symbol, values, bytes } = parts;
    let is_input = inputs::asked_for(request);
    let mut graph = SourceGraph { outputs: Some(vec![]), bytes, ..SourceGraph::default() };
    graph.versions.otherwise = 1;
    let names = Names::of(&symbol);
    let read = reads(&symbol);
    let mut lacking = vec![];
    for (i, node) in symbol.nodes.iter().enumerate() {
        if !node.is_variable() {
            graph.nodes.push(self::node(&symbol, i, &names, &mut graph.second_names));
            continue;
        }
        if !read.contains(&i) {
            continue;
        }
        let key = names.value(Entry { node: i, output: 0 });
        if values.has(&node.name) && !is_input(&node.name) {
            let (values, name) = (values.clone(), node.name.clone());
            graph.tensors.push(SourceTensor::lazy(key, move || values.tensor(&name)));
            continue;
        }
        if inputs::is_weight(&symbol, i) && !is_input(&node.name) {
            lacking.push(node.name.as_str());
        }
        graph.inputs.push(SourceValue::new(key, inputs::declared(&symbol, i, &values)));
    }
    check_weights(&lacking, &values)?;
    inputs::give_shapes(&mut graph.inputs, request.input_shapes);
    graph.outputs = Some(symbol.heads.iter().map(|e| head(&symbol, *e, &names)).collect());
    Ok(graph)
}

// An output, also under the name that MXNet has for it.
fn head(symbol: &Symbol, e: Entry, names: &Names) -> SourceValue {
    let own =
        (e.output == 0 && !symbol.nodes[e.node].is_variable()).then(|| format!("{}_output", symbol.nodes[e.node].name));
    SourceValue { names: own.into_iter().collect(), ..SourceValue::unknown(names.value(e)) }
}

fn check_weights(lacking: &[&str], values: &Values) -> Result<()> {
    if lacking.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = lacking.iter().take(5).map(|n| format!("`{n}`")).collect();
    let more = if lacking.len() > 5 { format!(" and {} more", lacking.len() - 5) } else { String::new() };
    let list = format!("{}{more}", shown.join(", "));
    Err(match values.are_given {
        true => Error::invalid(format!(
            "the weights have no value for {list}; do the files belong together? A variable that is an input on purpose \
             is named in --input"
        )),
        false => Error::invalid(format!(
            "the symbol needs weights, {list}; give the `.params` that belongs to it, or put it beside the symbol as \
             `NAME-0000.params`"
        )),
    })
}

// Variables that anything but training reads.
fn reads(symbol: &Symbol) -> HashSet<usize> {
    let nodes = symbol.nodes.iter().flat_map(|n| data_inputs(n).iter().map(|e| e.node));
    nodes.chain(symbol.heads.iter().map(|e| e.node)).collect()
}

fn data_inputs(node: &Node) -> &[Entry] {
    let n = if WITH_LABEL.contains(&node.op.as_str()) { 1 } else { node.inputs.len() };
    &node.inputs[..n.min(node.inputs.len())]
}

/// Names of values and nodes.
struct Names {
    /// Label of each node, no two alike.
    labels: Vec<String>,
    /// Name of the first output of each.
    values: Vec<String>,
    /// How many outputs of each are read.
    outputs: Vec<usize>,
}

impl Names {
    fn of(symbol: &Symbol) -> Names {
        let mut taken: HashMap<&str, usize> = HashMap::new();
        let (mut labels, mut values) = (vec![], vec![]);
        let all: HashSet<&str> = symbol.nodes.iter().map(|n| n.name.as_str()).collect();
        let mut made: HashSet<String> = HashSet::new();
        for node in &symbol.nodes {
            let n = taken.entry(&node.name).or_insert(0);
            let (mut label, mut value) = (node.name.clone(), node.name.clone());
            if *n > 0 {
                value = format!("{}{MARK}{n}", node.name);
                let mut number = *n;
                while all.contains(label.as_str()) || made.contains(&label) {
                    label = format!("{}_{number}", node.name);
                    number += 1;
                }
                made.insert(label.clone());
            }
            *n += 1;
            labels.push(label);
            values.push(value);
        }
        let mut outputs = vec![1; symbol.nodes.len()];
        for e in symbol.nodes.iter().flat_map(data_inputs).chain(&symbol.heads) {
            outputs[e.node] = outputs[e.node].max(e.output + 1);
        }
        Names { labels, values, outputs }
    }
    fn value(&self, e: Entry) -> String {
        let name = &self.values[e.node];
        match (e.output, name.split_once(MARK)) {
            (0, _) => name.clone(),
            (n, None) => format!("{name}:{n}"),
            (n, Some((shown, mark))) => format!("{shown}:{n}{MARK}{mark}"),
        }
    }
}

fn node(symbol: &Symbol, index: usize, names: &Names, second_names: &mut HashMap<String, Vec<String>>) -> SourceNode {
    let node = &symbol.nodes[index];
    let mut attrs = attributes::of(&node.attrs);
    let (mut op_type, mut domain) = (node.op.clone(), String::new());
    if let Some(custom) = node.attr("op_type").filter(|_| node.op == "Custom" || node.op == "_npi_Custom") {
        (op_type, domain) = (custom.to_string(), CUSTOM.to_string());
        attrs = attrs.iter().filter(|(n, _)| *n != "op_type").map(|(n, v)| (n.to_string(), v.clone())).collect();
    }
    let outputs: Vec<String> =
        (0..names.outputs[index]).map(|output| names.value(Entry { node: index, output })).collect();
    if !outputs[0].contains(MARK) {
        // As MXNet itself calls them.
        second_names.insert(outputs[0].clone(), vec![format!("{}_output", node.name)]);
    }
    let held = node.subgraphs.iter().enumerate();
    let held = held.map(|(i, s)| (format!("subgraph{i}"), Held::Graph(Rc::new(sub_graph(s))))).collect();
    SourceNode {
        name: names.labels[index].clone(),
        op_type,
        domain,
        version: 1,
        inputs: data_inputs(node).iter().map(|e| names.value(*e)).collect(),
        outputs,
        attrs,
        held,
        index: Some(index),
        ..SourceNode::default()
    }
}

// A body of a loop or branch. All of its variables are given by the node, in the order in which they stand.
fn sub_graph(symbol: &Symbol) -> SourceGraph {
    let names = Names::of(symbol);
    let mut graph = SourceGraph::default();
    for (i, node) in symbol.nodes.iter().enumerate() {
        match node.is_variable() {
            // The names of a body are its own, also where one is that of a value around it.
            true => graph.inputs.push(SourceValue::unknown(names.value(Entry { node: i, output: 0 }))),
            false => graph.nodes.push(self::node(symbol, i, &names, &mut graph.second_names)),
        }
    }
    graph.outputs = Some(symbol.heads.iter().map(|e| SourceValue::unknown(names.value(*e))).collect());
    graph
}
