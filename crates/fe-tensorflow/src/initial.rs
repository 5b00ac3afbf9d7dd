//! What the nodes of initialisation and restoring do to resources: which tensor of a checkpoint a variable is given, and what a
//! table is filled with. They are looked for in the graph and in the functions that it calls, and are never run.

use crate::checkpoint::Slice;
use crate::functions::Functions;
use crate::outputs;
use crate::store::Store;
use crate::tensor::tensor;
use crate::wire::{FunctionDef, NodeDef, TensorProto};
use carafe_tensor::Tensor;
use std::cell::RefCell;
use std::collections::HashMap;

/// Functions inside of each other deeper than this are not looked into.
const MAX_DEPTH: usize = 16;
/// Nodes that are looked at, at most.
const MOST_NODES: usize = 2_000_000;

/// Where a variable comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Restored {
    /// Key of the checkpoint.
    pub(crate) key: String,
    /// The part of that tensor, where it is not all of it.
    pub(crate) part: Option<Slice>,
}

/// What a table is filled with.
#[derive(Clone, Debug)]
pub(crate) enum Filling<'m> {
    /// These keys and values.
    Pairs(&'m TensorProto, &'m TensorProto),
    /// Lines of a file.
    File(TextFile<'m>),
}

/// Lines of a file that keys and values come from.
#[derive(Clone, Debug)]
pub(crate) struct TextFile<'m> {
    /// The node that holds the path.
    pub(crate) path: &'m NodeDef,
    /// Column of the keys; -1 for the number of the line, -2 for the whole line.
    pub(crate) key_index: i64,
    /// Column of the values, likewise.
    pub(crate) value_index: i64,
    /// How many lines count; all when negative.
    pub(crate) lines: i64,
    /// Between columns.
    pub(crate) delimiter: String,
    /// Lines in front of the first.
    pub(crate) offset: i64,
}

/// What is done to the resources of the graph, by the names of their nodes.
#[derive(Debug, Default)]
pub(crate) struct Initial<'m> {
    pub(crate) variables: HashMap<&'m str, Restored>,
    pub(crate) tables: HashMap<&'m str, Filling<'m>>,
}

/// A list of nodes in which names mean something.
struct Frame<'m> {
    nodes: HashMap<&'m str, &'m NodeDef>,
    /// In a function: what its arguments are given.
    args: Option<HashMap<&'m str, Option<Output<'m>>>>,
}

/// An output of a node, and the frame that the node is in.
#[derive(Clone, Copy)]
struct Output<'m> {
    node: &'m NodeDef,
    port: usize,
    frame: usize,
}

/// Looks at all nodes of a graph.
pub(crate) fn initial<'m>(nodes: &'m [NodeDef], functions: &Functions<'m>, store: &Store) -> Initial<'m> {
    let texts = RefCell::default();
    let mut walk = Walk { functions, store, frames: vec![], found: Initial::default(), left: MOST_NODES, texts };
    walk.frame(nodes, None, 0);
    walk.found
}

struct Walk<'w, 'm> {
    functions: &'w Functions<'m>,
    store: &'w Store,
    frames: Vec<Frame<'m>>,
    found: Initial<'m>,
    left: usize,
    /// Texts of constants, by the address of their node: one node of restoring reads the names of all variables.
    texts: RefCell<HashMap<*const NodeDef, Option<Tensor>>>,
}

impl<'m> Walk<'_, 'm> {
    fn frame(&mut self, nodes: &'m [NodeDef], args: Option<HashMap<&'m str, Option<Output<'m>>>>, depth: usize) {
        let Some(left) = self.left.checked_sub(nodes.len()).filter(|_| depth < MAX_DEPTH) else { return };
        self.left = left;
        let frame = self.frames.len();
        self.frames.push(Frame { nodes: nodes.iter().map(|n| (n.name.as_str(), n)).collect(), args });
        for node in nodes {
            self.node(node, frame, depth);
        }
    }

    fn node(&mut self, node: &'m NodeDef, frame: usize, depth: usize) {
        let input = |walk: &Self, i: usize| node.input.get(i).and_then(|r| walk.output(r, frame));
        match node.op.as_str() {
            "AssignVariableOp" | "Assign" => {
                let (target, value) = (input(self, 0), input(self, 1));
                if let (Some(target), Some(value)) = (target, value)
                    && target.frame == 0
                    && let Some(restored) = self.restored(value)
                {
                    self.found.variables.entry(target.node.name.as_str()).or_insert(restored);
                }
            }
            "LookupTableImport" | "LookupTableImportV2" | "InitializeTable" | "InitializeTableV2" => {
                let content = |o: Option<Output<'m>>| o.and_then(|o| o.node.get("value")?.tensor.as_ref());
                let (keys, values) = (content(input(self, 1)), content(input(self, 2)));
                if let (Some(table), Some(keys), Some(values)) = (input(self, 0), keys, values) {
                    self.fill(table, Filling::Pairs(keys, values));
                }
            }
            "InitializeTableFromTextFile" | "InitializeTableFromTextFileV2" => {
                let number = |name: &str, default: i64| node.get(name).and_then(|v| v.i).unwrap_or(default);
                let text = |name: &str| node.get(name).and_then(|v| v.s.as_ref());
                if let (Some(table), Some(path)) = (input(self, 0), input(self, 1)) {
                    let file = TextFile {
                        path: path.node,
                        key_index: number("key_index", -2),
                        value_index: number("value_index", -1),
                        lines: number("vocab_size", -1),
                        delimiter: text("delimiter").map_or("\t".into(), |d| String::from_utf8_lossy(d).into_owned()),
                        offset: number("offset", 0),
                    };
                    self.fill(table, Filling::File(file));
                }
            }
            _ => {
                let function = self.functions.called(node).and_then(|(name, _)| self.functions.get(name));
                if let Some(function) = function {
                    let args = self.arguments(node, function, frame);
                    self.frame(&function.node_def, Some(args), depth + 1);
                }
            }
        }
    }

    fn fill(&mut self, table: Output<'m>, filling: Filling<'m>) {
        if table.frame == 0 {
            self.found.tables.entry(table.node.name.as_str()).or_insert(filling);
        }
    }

    fn arguments(
        &self,
        call: &'m NodeDef,
        function: &'m FunctionDef,
        frame: usize,
    ) -> HashMap<&'m str, Option<Output<'m>>> {
        let names = function.signature.iter().flat_map(|s| &s.input_arg).map(|a| a.name.as_str());
        let data = call.input.iter().filter(|i| !i.starts_with('^'));
        names.zip(data).map(|(name, given)| (name, self.output(given, frame))).collect()
    }

    // The node behind a reference, looked at through nodes that pass on.
    fn output(&self, reference: &str, frame: usize) -> Option<Output<'m>> {
        let mut reference = reference;
        // A chain is no longer than this, and a cycle never ends.
        for _ in 0..64 {
            let all = &self.frames[frame];
            let mut parts = reference.split(':');
            let (name, output, index) = (parts.next()?, parts.next(), parts.next());
            if let Some(given) = all.args.as_ref().and_then(|args| args.get(name)) {
                return *given;
            }
            let node = *all.nodes.get(name)?;
            if matches!(node.op.as_str(), "Identity" | "Cast" | "ReadVariableOp" | "StopGradient") {
                reference = node.input.first()?;
                continue;
            }
            let port = match (all.args.is_some(), output) {
                (_, None) => 0,
                (false, Some(port)) => port.parse().ok()?,
                (true, Some(output)) => {
                    let index = index.unwrap_or("0").parse().ok()?;
                    outputs::port(self.functions.outputs(node).as_deref(), &node.attr, output, index)?
                }
            };
            return Some(Output { node, port, frame });
        }
        None
    }

    // What a node of restoring reads for one of its outputs.
    fn restored(&self, value: Output<'m>) -> Option<Restored> {
        if !matches!(value.node.op.as_str(), "RestoreV2" | "Restore" | "RestoreSlice") {
            return None;
        }
        let text = |input: usize| -> Option<String> {
            let node = self.output(value.node.input.get(input)?, value.frame)?.node;
            let mut known = self.texts.borrow_mut();
            let tensor =
                known.entry(node).or_insert_with(|| tensor(node.get("value")?.tensor.as_ref()?, self.store).ok());
            tensor.as_ref()?.strings().ok()?.get(value.port).cloned()
        };
        let key = text(1)?;
        let part = text(2);
        Some(Restored { key, part: part.and_then(|p| Slice::parse(&p).ok()).flatten() })
    }
}
