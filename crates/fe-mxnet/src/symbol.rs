//! A `symbol.json` of any version as one list of nodes. Old files are brought to what MXNet itself makes of them when it loads
//! them: settings lie in `param`, `attr` or `attrs`, references have two or three numbers, auxiliary states are not listed.

use carafe_graph::{Error, Result};
use serde_json::{Map, Value};

/// Symbols inside of symbols deeper than this are refused.
const MAX_DEPTH: usize = 16;
/// Outputs of a node; no operator has that many.
const MAX_OUTPUTS: u64 = 1 << 16;

/// One output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Entry {
    pub(crate) node: usize,
    pub(crate) output: usize,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Node {
    /// Type of the operator; `null` for a variable.
    pub(crate) op: String,
    pub(crate) name: String,
    /// Settings of the operator, and hidden ones of variables, as text.
    pub(crate) attrs: Vec<(String, String)>,
    pub(crate) inputs: Vec<Entry>,
    pub(crate) subgraphs: Vec<Symbol>,
}

impl Node {
    pub(crate) fn is_variable(&self) -> bool {
        self.op == "null"
    }
    pub(crate) fn attr(&self, name: &str) -> Option<&str> {
        self.attrs.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Symbol {
    pub(crate) nodes: Vec<Node>,
    pub(crate) heads: Vec<Entry>,
    /// major * 10000 + minor * 100 + patch of the MXNet that wrote it.
    pub(crate) version: i64,
}

/// The version that files without one are of.
const FIRST_VERSION: i64 = 800;

impl Symbol {
    /// Reads the text of a file.
    pub(crate) fn parse(text: &[u8]) -> Result<Symbol> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let tree: Value = serde_json::from_slice(text).map_err(|e| Error::invalid(format!("not a valid JSON: {e}")))?;
        let Value::Object(tree) = tree else { return Err(Error::invalid("not a symbol: expected an object")) };
        Symbol::of(&tree, None, 0)
    }

    fn of(tree: &Map<String, Value>, around: Option<i64>, depth: usize) -> Result<Symbol> {
        if depth > MAX_DEPTH {
            return Err(Error::invalid(format!("symbols are nested deeper than {MAX_DEPTH}")));
        }
        let Some(Value::Array(list)) = tree.get("nodes") else {
            return Err(Error::invalid("not a symbol: there is no list `nodes`"));
        };
        let version = around.unwrap_or_else(|| version(tree));
        let mut nodes = vec![];
        for (i, node) in list.iter().enumerate() {
            let read = Node::of(node, i, version, depth);
            nodes.push(read.map_err(|e| match node.get("name").and_then(Value::as_str) {
                Some(name) => e.at(format!("node {i} `{name}`")),
                None => e.at(format!("node {i}")),
            })?);
        }
        let heads = match tree.get("heads") {
            None => vec![],
            Some(heads) => entries(heads, nodes.len()).map_err(|e| e.at("`heads`"))?,
        };
        let mut symbol = Symbol { nodes, heads, version };
        crate::upgrade::upgrade(&mut symbol);
        if symbol.heads.is_empty() {
            return Err(Error::invalid("not a symbol: `heads` lists no outputs"));
        }
        Ok(symbol)
    }
}

// `"attrs": {"mxnet_version": ["int", 10500]}`.
fn version(tree: &Map<String, Value>) -> i64 {
    let given = tree.get("attrs").and_then(|a| a.get("mxnet_version"));
    let number = |v: &Value| v.as_i64().or_else(|| v.as_str()?.parse().ok());
    let found = given.and_then(|v| match v {
        Value::Array(pair) => pair.get(1).and_then(number),
        v => number(v),
    });
    found.unwrap_or(FIRST_VERSION)
}

impl Node {
    fn of(node: &Value, index: usize, version: i64, depth: usize) -> Result<Node> {
        let text = |key: &str| match node.get(key) {
            Some(Value::String(s)) => Ok(s.clone()),
            Some(other) => Err(Error::invalid(format!("`{key}` must be a string, found {}", kind(other)))),
            None => Err(Error::invalid(format!("`{key}` is missing"))),
        };
        let (op, name) = (text("op")?, text("name")?);
        let inputs = match node.get("inputs") {
            None => vec![],
            // A node stands behind all that it reads, so there are no cycles.
            Some(list) => entries(list, index).map_err(|e| e.at("`inputs`"))?,
        };
        let mut subgraphs = vec![];
        if let Some(Value::Array(list)) = node.get("subgraphs") {
            for (i, tree) in list.iter().enumerate() {
                let Value::Object(tree) = tree else {
                    return Err(Error::invalid(format!("sub-graph {i} must be an object, found {}", kind(tree))));
                };
                subgraphs.push(Symbol::of(tree, Some(version), depth + 1).map_err(|e| e.at(format!("sub-graph {i}")))?);
            }
        }
        Ok(Node { op, name, attrs: attributes(node)?, inputs, subgraphs })
    }
}

// Up to 0.8 `param` holds the settings and `attr` what the user noted; later one of the others holds both.
fn attributes(node: &Value) -> Result<Vec<(String, String)>> {
    let settings = |key: &'static str| match node.get(key) {
        Some(Value::Object(m)) if !m.is_empty() => Some((key, m)),
        _ => None,
    };
    let mut all: Vec<(String, String)> = vec![];
    for (key, map) in ["attrs", "param", "attr"].into_iter().filter_map(settings) {
        let is_note = key == "attr" && !all.is_empty();
        for (name, value) in map {
            let value = match value {
                Value::String(s) => s.clone(),
                Value::Number(n) => n.to_string(),
                Value::Bool(b) => if *b { "True" } else { "False" }.to_string(),
                other => {
                    return Err(Error::invalid(format!("attribute `{name}` must be a string, found {}", kind(other))));
                }
            };
            let is_known = all.iter().any(|(n, _)| n == name);
            if !is_known && (!is_note || name.starts_with("__")) {
                all.push((name.clone(), value));
            }
        }
    }
    Ok(all)
}

// `[[node, output, version], ..]`, in old files without the version.
fn entries(list: &Value, nodes: usize) -> Result<Vec<Entry>> {
    let Value::Array(list) = list else {
        return Err(Error::invalid(format!("must be a list, found {}", kind(list))));
    };
    let entry = |v: &Value| {
        let numbers = v.as_array().map(|a| a.iter().map(Value::as_u64).collect::<Vec<_>>());
        let (node, output) = match numbers.as_deref() {
            Some([Some(node), Some(output)] | [Some(node), Some(output), _]) => (*node, *output),
            _ => {
                let found = v.to_string();
                let found: String = found.chars().take(40).collect();
                return Err(Error::invalid(format!("must hold `[node, output, version]`, found {found}")));
            }
        };
        if node >= nodes as u64 {
            return Err(Error::invalid(format!("reads node {node}, only the {nodes} nodes before it can be read")));
        }
        if output > MAX_OUTPUTS {
            return Err(Error::invalid(format!("reads output {output} of node {node}; no operator has so many")));
        }
        Ok(Entry { node: node as usize, output: output as usize })
    };
    list.iter().map(entry).collect()
}

fn kind(v: &Value) -> &'static str {
    match v {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
