//! A model as its file has it, in one structure for all formats: named values between nodes, each with a type, attributes and
//! ports. A format decodes into it; everything after that is the same for all (`translate.rs`).

use carafe_graph::{AttrMap, AttrValue, Error, ItemType, Result};
use carafe_tensor::{ElementType, PartialShape, Tensor};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Ends the part of a value's name that is shown. What follows tells values of one name apart: in formats where a name means
/// the latest value of that name, the second `conv1` is `conv1<MARK>1`. A name that begins with it shows nothing.
pub const MARK: char = '\u{1}';

/// The part of a value's name that users see.
pub fn shown(name: &str) -> &str {
    name.split(MARK).next().unwrap_or("")
}

/// A graph as decoded. Names of values are its edges: a node reads what another node, an input or a tensor of that name gives;
/// in a sub-graph a name that it does not have itself is that of the graph around it.
#[derive(Clone, Debug, Default)]
pub struct SourceGraph {
    /// Name of the model, or of the sub-graph.
    pub name: String,
    /// What the graph is given. One that is named like a tensor has that as its default and is no input.
    pub inputs: Vec<SourceValue>,
    /// Stored tensors that nodes read by name.
    pub tensors: Vec<SourceTensor>,
    /// The nodes, in the order of the file; it need not be that of the data.
    pub nodes: Vec<SourceNode>,
    /// What the graph gives; `None` where the format declares nothing: then it is every value that nothing reads.
    pub outputs: Option<Vec<SourceValue>>,
    /// Types that the file declares for values inside of the graph.
    pub types: HashMap<String, ItemType>,
    /// Second names of values.
    pub aliases: HashMap<String, String>,
    /// Further tensor names of values, in formats where a value has several.
    pub second_names: HashMap<String, Vec<String>>,
    /// Functions that nodes call by their type. Only of the outermost graph, as are the fields below.
    pub functions: Vec<SourceFunction>,
    /// What the file says of itself, key and value.
    pub metadata: Vec<(String, String)>,
    /// Versions of operation sets, for nodes that rewrites add.
    pub versions: Versions,
    /// Nodes of the file that are no part of the graph.
    pub left_out: Vec<LeftOut>,
    /// Size of the file: functions and sub-graphs may unfold to a multiple of it.
    pub bytes: usize,
}

impl SourceGraph {
    /// The names of its outputs.
    pub(crate) fn output_names(&self) -> Vec<&str> {
        if let Some(outputs) = &self.outputs {
            return outputs.iter().map(|o| o.name.as_str()).collect();
        }
        let read: HashSet<&str> = self.nodes.iter().flat_map(|n| n.reads()).map(|name| self.aliased(name)).collect();
        let made = self.nodes.iter().flat_map(|n| &n.outputs).map(String::as_str);
        made.filter(|o| !shown(o).is_empty() && !read.contains(o)).collect()
    }
    /// The name that a second name stands for.
    pub(crate) fn aliased<'g>(&'g self, name: &'g str) -> &'g str {
        self.aliases.get(name).map_or(name, String::as_str)
    }
    /// About how many bytes translating it takes.
    pub(crate) fn weight(&self) -> usize {
        let values = self.inputs.iter().chain(self.outputs.iter().flatten()).map(|v| 16 + v.name.len());
        let tensors = self.tensors.iter().map(|t| 64 + t.name.len());
        values.chain(tensors).chain(self.nodes.iter().map(SourceNode::weight)).sum()
    }
}

/// A named input or output of a graph.
#[derive(Clone, Debug)]
pub struct SourceValue {
    /// Name of the value.
    pub name: String,
    /// Name of the Parameter, or of the Result, where it is another.
    pub label: Option<String>,
    /// The declared type; what is wrong with it is reported when the value is needed.
    pub ty: Result<ItemType>,
    /// Further names of the tensor, such as that of a signature.
    pub names: Vec<String>,
    /// An input whose readers were all left out.
    pub cut_off: bool,
}

impl SourceValue {
    /// A value with what is declared of it.
    pub fn new(name: impl Into<String>, ty: Result<ItemType>) -> SourceValue {
        SourceValue { name: name.into(), label: None, ty, names: vec![], cut_off: false }
    }
    /// A value of which nothing is declared.
    pub fn unknown(name: impl Into<String>) -> SourceValue {
        SourceValue::new(name, Ok(ItemType::Tensor(ElementType::Dynamic, PartialShape::dynamic())))
    }
}

/// A stored tensor. It is read when somebody needs it; bytes of a file stay mapped.
#[derive(Clone)]
pub struct SourceTensor {
    /// What nodes read it by, and the name of its constant.
    pub name: String,
    read: Rc<dyn Fn() -> Result<Tensor>>,
}

impl SourceTensor {
    /// A tensor that is there.
    pub fn new(name: impl Into<String>, tensor: Tensor) -> SourceTensor {
        SourceTensor::lazy(name, move || Ok(tensor.clone()))
    }
    /// A tensor that is read by a function.
    pub fn lazy(name: impl Into<String>, read: impl Fn() -> Result<Tensor> + 'static) -> SourceTensor {
        SourceTensor { name: name.into(), read: Rc::new(read) }
    }
    /// Reads it.
    pub fn tensor(&self) -> Result<Tensor> {
        (self.read)()
    }
}

impl std::fmt::Debug for SourceTensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SourceTensor({})", self.name)
    }
}

/// A node as the source file has it.
#[derive(Clone, Debug, Default)]
pub struct SourceNode {
    /// Its name; may be empty.
    pub name: String,
    /// Type of the operation.
    pub op_type: String,
    /// Whose type it is; empty for the format's own.
    pub domain: String,
    /// Tells functions of one name apart.
    pub overload: String,
    /// Version of the operation set the model imports for this domain.
    pub version: i64,
    /// Names of the values it reads; empty for one that is left out.
    pub inputs: Vec<String>,
    /// Names of the values it gives; empty for one that nobody wants.
    pub outputs: Vec<String>,
    /// Port of each input, in formats that name them; a port may stand for several.
    pub input_ports: Vec<String>,
    /// Port of each output, likewise.
    pub output_ports: Vec<String>,
    /// Names of nodes that come before it though it reads nothing of them.
    pub controls: Vec<String>,
    /// Attributes with a value.
    pub attrs: AttrMap,
    /// Attributes without one.
    pub held: Vec<(String, Held)>,
    /// Tensors that are stored with the node; its inputs name them, and nobody else can.
    pub stored: Vec<SourceTensor>,
    /// What is wrong with the node, reported when it is translated.
    pub fault: Option<Error>,
    /// Its number in the file, for what only the format knows about it; `None` for a node that a rewrite made.
    pub index: Option<usize>,
}

/// An attribute that has no value of its own.
#[derive(Clone, Debug)]
pub enum Held {
    /// A sub-graph, translated when a rule asks for it.
    Graph(Rc<SourceGraph>),
    /// In a function: what the caller gives under this name.
    Reference(String),
    /// What is wrong with it, reported when the node is translated.
    Broken(Error),
}

impl SourceNode {
    /// What it is called: by its first output when it has no name.
    pub fn label(&self) -> &str {
        let first = || self.outputs.first().map_or("", |o| shown(o));
        if self.name.is_empty() { first() } else { &self.name }
    }
    /// Its type with the domain, if that is not the format's own: `Relu`, or `domain::Type`.
    pub fn full_type(&self) -> String {
        match self.domain.as_str() {
            // A replacement put it there: the domain is its mark, not part of the name.
            "" | carafe_graph::REPLACEMENT => self.op_type.clone(),
            domain => format!("{domain}::{}", self.op_type),
        }
    }
    /// Its sub-graphs by attribute.
    pub fn graphs(&self) -> impl Iterator<Item = (&str, &Rc<SourceGraph>)> {
        self.held.iter().filter_map(|(name, held)| match held {
            Held::Graph(graph) => Some((name.as_str(), graph)),
            _ => None,
        })
    }
    /// Names of all values that it reads, those of its sub-graphs included.
    pub(crate) fn reads(&self) -> Vec<&str> {
        let own = self.inputs.iter().map(String::as_str).filter(|n| !n.is_empty());
        own.chain(crate::order::captured(self)).collect()
    }
    /// The input that it works on in place to make this output: both are shown by one name, which the output takes.
    pub(crate) fn in_place_of(&self, output: &str) -> Option<&str> {
        let is_same = |i: &&String| !i.is_empty() && shown(i) == shown(output);
        if output.contains(MARK) { self.inputs.iter().find(is_same).map(String::as_str) } else { None }
    }
    fn weight(&self) -> usize {
        let names = self.inputs.iter().chain(&self.outputs).map(|n| 2 + n.len()).sum::<usize>();
        let value = |v: &AttrValue| match v {
            AttrValue::Ints(v) => 8 * v.len(),
            AttrValue::Floats(v) => 4 * v.len(),
            AttrValue::Str(s) | AttrValue::Text(s) => s.len(),
            AttrValue::Strs(v) => v.iter().map(|s| 2 + s.len()).sum(),
            _ => 8,
        };
        let attrs = self.attrs.iter().map(|(n, v)| 8 + n.len() + value(v)).sum::<usize>();
        8 + self.name.len() + self.op_type.len() + names + attrs + self.graphs().map(|(_, g)| g.weight()).sum::<usize>()
    }
}

/// A function of a model. A node of its domain, name and overload is a call of it and is replaced by its nodes.
#[derive(Clone, Debug, Default)]
pub struct SourceFunction {
    /// Domain of the nodes that call it.
    pub domain: String,
    /// Type of the nodes that call it.
    pub name: String,
    /// Overload of the nodes that call it.
    pub overload: String,
    /// Its nodes, inputs and outputs. It sees no names but its own.
    pub graph: SourceGraph,
    /// Attributes that a caller may leave out.
    pub attrs: AttrMap,
    /// Those of them without a value.
    pub held: Vec<(String, Held)>,
}

/// Versions of operation sets by domain.
#[derive(Clone, Debug, Default)]
pub struct Versions {
    /// Those that the model imports.
    pub imported: HashMap<String, i64>,
    /// That of any other domain.
    pub otherwise: i64,
}

impl Versions {
    /// The version of a domain.
    pub fn of(&self, domain: &str) -> i64 {
        self.imported.get(domain).copied().unwrap_or(self.otherwise)
    }
}

/// A node of the file that is no part of the graph.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Its type.
    pub op_type: String,
    /// The node before it in the file.
    pub after: String,
    /// Why it was left out.
    pub why: &'static str,
}
