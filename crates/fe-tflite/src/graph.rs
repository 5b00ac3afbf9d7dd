//! A sub-graph of a file as a `SourceGraph`. Sub-graphs that operators hold are decoded once and shared; one that holds itself is
//! an error of the operator, and so are indexes that lead nowhere.

use crate::flexbuffer::{self, Flex};
use crate::quantization as quantized;
use crate::resources::{Handle, Resources, TensorRef, handle};
use crate::tensor::{Made, empty, tensor};
use crate::types::{element_type, is_complex, is_handle};
use crate::wire::{Model, Operator, Quantization, Signature, SubGraph, TensorInfo};
use carafe_frontend::{Held, LeftOut, MARK, SourceGraph, SourceNode, SourceTensor, SourceValue};
use carafe_graph::{AttrValue, Error, ItemType, Result, TensorAttr};
use carafe_tensor::{Dim, ElementType, PartialShape, SharedBytes, Tensor};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Domain of custom operators.
pub(crate) const CUSTOM: &str = "CUSTOM";
/// What the names of TensorFlow's operations begin with, where a file holds them as custom operators.
pub(crate) const FLEX: &str = "Flex";
/// Domain of the nodes that read variables of the state.
pub(crate) const STATE: &str = "state";
/// Attribute with the bytes of a custom operator's options.
pub(crate) const RAW_OPTIONS: &str = "custom_options";

/// Operators that sub-graphs may unfold to, and how deep they may lie inside of each other.
const MAX_NODES: usize = 1 << 20;
const MAX_DEPTH: usize = 32;

/// Operators whose result depends on what the file declares for it.
const NEEDS_OUTPUT: &[&str] =
    &["BITCAST", "CAST", "READ_VARIABLE", "HASHTABLE_FIND", "SHAPE", "UNIQUE", "ARG_MAX", "ARG_MIN"];
/// Operators that take complex numbers of the other kinds: by their attribute [`COMPLEX_INPUT`].
const TAKES_COMPLEX: &[&str] = &["CAST", "EXPAND_DIMS", "RANK", "RESHAPE", "SHAPE", "SQUEEZE"];
/// Operators that take nothing else.
const OF_COMPLEX: &[&str] = &["COMPLEX_ABS", "IMAG", "REAL"];
/// Attribute of an operator whose data are complex numbers, which have a last axis of two.
pub(crate) const COMPLEX_INPUT: &str = "complex_input";
/// Attribute of a cast to complex numbers.
pub(crate) const COMPLEX_OUTPUT: &str = "complex_output";
/// Operators whose states may be quantised.
const RECURRENT: &[&str] = &[
    "BIDIRECTIONAL_SEQUENCE_LSTM",
    "BIDIRECTIONAL_SEQUENCE_RNN",
    "LSTM",
    "RNN",
    "SVDF",
    "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN",
];
/// Operators that look at the integers of a quantised tensor.
const TAKES_INTEGERS: &[&str] = &["BITCAST", "CAST"];

/// What decoding the sub-graphs of a model shares.
pub(crate) struct Decoder<'m> {
    model: &'m Model,
    file: &'m SharedBytes,
    resources: Resources,
    made: Rc<Made>,
    done: RefCell<HashMap<usize, Done>>,
}

enum Done {
    /// Being decoded: whoever asks for it lies inside of it.
    Busy,
    /// With the number of operators that it unfolds to.
    Graph(Rc<SourceGraph>, usize),
}

impl<'m> Decoder<'m> {
    pub(crate) fn new(model: &'m Model, file: &'m SharedBytes) -> Decoder<'m> {
        let made = Rc::new(Made::default());
        Decoder { model, file, resources: Resources::of(model), made, done: RefCell::default() }
    }

    /// The graph that a model is, with second names of its inputs and outputs.
    pub(crate) fn main(&self, index: usize, signatures: &[&Signature]) -> Result<SourceGraph> {
        let (mut graph, _) = Graph::new(self, index, true)?.decode(0)?;
        let sub = &self.model.subgraphs[index];
        let names = |list: &[i32], pick: fn(&Signature) -> &Vec<(String, usize)>| -> Vec<Vec<String>> {
            let mut all: HashMap<usize, Vec<String>> = HashMap::new();
            for (name, tensor) in signatures.iter().flat_map(|s| pick(s)) {
                all.entry(*tensor).or_default().push(name.clone());
            }
            all.values_mut().for_each(Vec::dedup);
            let of = |t: &i32| usize::try_from(*t).ok().and_then(|t| all.remove(&t)).unwrap_or_default();
            list.iter().map(of).collect()
        };
        let inputs = names(&sub.inputs, |s| &s.inputs);
        let outputs = names(&sub.outputs, |s| &s.outputs);
        let own: HashSet<String> = graph.inputs.iter().chain(graph.outputs.iter().flatten()).map(shown).collect();
        for (value, names) in graph.inputs.iter_mut().zip(inputs) {
            value.names = names.into_iter().filter(|n| !own.contains(n)).collect();
        }
        for (value, names) in graph.outputs.iter_mut().flatten().zip(outputs) {
            value.names = names.into_iter().filter(|n| !own.contains(n)).collect();
        }
        Ok(graph)
    }

    // A sub-graph that an operator holds, and how many operators it unfolds to.
    fn inner(&self, index: i64, depth: usize) -> Result<(Rc<SourceGraph>, usize)> {
        let count = self.model.subgraphs.len();
        let index = usize::try_from(index).ok().filter(|i| *i < count);
        let index =
            index.ok_or_else(|| Error::invalid(format!("the file has {count} sub-graphs, there is no such one")))?;
        match self.done.borrow().get(&index) {
            Some(Done::Graph(graph, nodes)) => return Ok((graph.clone(), *nodes)),
            Some(Done::Busy) => return Err(Error::invalid(format!("sub-graph {index} holds itself"))),
            None => {}
        }
        if depth > MAX_DEPTH {
            return Err(Error::invalid(format!("sub-graphs lie inside of each other deeper than {MAX_DEPTH}")));
        }
        self.done.borrow_mut().insert(index, Done::Busy);
        let decoded = Graph::new(self, index, false).and_then(|g| g.decode(depth));
        self.done.borrow_mut().remove(&index);
        let (graph, nodes) = decoded.map_err(|e| e.at(format!("sub-graph {index}")))?;
        let graph = Rc::new(graph);
        self.done.borrow_mut().insert(index, Done::Graph(graph.clone(), nodes));
        Ok((graph, nodes))
    }

    fn is_stored(&self, info: &TensorInfo) -> bool {
        self.model.buffers.get(info.buffer).is_some_and(|(_, length)| *length > 0)
    }

    fn stored(&self, name: String, info: &TensorInfo) -> SourceTensor {
        let (info, file, made) = (info.clone(), self.file.clone(), self.made.clone());
        let span = self.model.buffers.get(info.buffer).copied().unwrap_or_default();
        SourceTensor::lazy(name, move || tensor(&info, &file, span, &made))
    }
}

// The options of TensorFlow's operations: their name, and the bytes of a NodeDef.
fn flex(value: &Flex, node: &mut SourceNode) {
    let Flex::Vector(items) = value else { return };
    let bytes = match items.get(1) {
        Some(Flex::Str(text)) => text.as_bytes(),
        Some(Flex::Blob(bytes)) => bytes,
        _ => return,
    };
    match carafe_fe_tensorflow::single::node_def(bytes) {
        Ok((_, attrs)) => node.attrs = attrs,
        Err(e) => node.fault = Some(e),
    }
}

fn shown(value: &SourceValue) -> String {
    carafe_frontend::shown(&value.name).to_string()
}

/// What a file declares of a value; `dims` may be open.
fn declared(info: &TensorInfo, ty: ElementType) -> Result<ItemType> {
    let dims = if info.shape_signature.is_empty() { &info.shape } else { &info.shape_signature };
    if dims.is_empty() && !info.has_rank && !info.shape_signature.is_empty() {
        return Ok(ItemType::Tensor(ty, PartialShape::dynamic()));
    }
    let dim = |d: &i32| match *d {
        -1 => Ok(Dim::ANY),
        d if d < 0 => Err(Error::invalid(format!("dimension {d} is negative"))),
        d => Ok(Dim::known(i64::from(d))),
    };
    let mut dims = dims.iter().map(dim).collect::<Result<Vec<_>>>()?;
    if is_complex(info.ty) {
        dims.push(Dim::known(2));
    }
    Ok(ItemType::Tensor(ty, PartialShape::new(dims)))
}

/// One sub-graph being decoded.
struct Graph<'d, 'm> {
    decoder: &'d Decoder<'m>,
    sub: &'m SubGraph,
    is_main: bool,
    /// Name of each tensor, no two alike.
    names: Vec<String>,
    inputs: HashSet<usize>,
    produced: HashSet<usize>,
    out: SourceGraph,
    /// Names that exist already.
    made: HashSet<String>,
    /// What was assigned to variables so far.
    assigned: HashMap<String, String>,
    unfolded: usize,
}

impl<'d, 'm> Graph<'d, 'm> {
    fn new(decoder: &'d Decoder<'m>, index: usize, is_main: bool) -> Result<Graph<'d, 'm>> {
        let sub = &decoder.model.subgraphs[index];
        let set = |list: &mut dyn Iterator<Item = &i32>| -> HashSet<usize> {
            list.filter_map(|t| usize::try_from(*t).ok()).collect()
        };
        let inputs = set(&mut sub.inputs.iter());
        let mut used = HashSet::new();
        let name = |(i, info): (usize, &TensorInfo)| {
            let plain = info.name.replace(MARK, "");
            let mut plain = if plain.is_empty() { format!("tensor_{i}") } else { plain };
            if is_main && used.insert(plain.clone()) {
                return plain;
            }
            // Inputs of a model are known by what is shown of their names.
            while is_main && inputs.contains(&i) {
                plain = format!("{plain}_{i}");
                if used.insert(plain.clone()) {
                    return plain;
                }
            }
            format!("{plain}{MARK}{index}.{i}")
        };
        let names: Vec<String> = sub.tensors.iter().enumerate().map(name).collect();
        Ok(Graph {
            decoder,
            sub,
            is_main,
            names,
            inputs,
            produced: set(&mut sub.operators.iter().flat_map(|op| &op.outputs)),
            out: SourceGraph { name: sub.name.clone(), outputs: Some(vec![]), ..SourceGraph::default() },
            made: HashSet::new(),
            assigned: HashMap::new(),
            unfolded: 0,
        })
    }

    fn decode(mut self, depth: usize) -> Result<(SourceGraph, usize)> {
        if self.inputs.len() < self.sub.inputs.iter().filter(|t| **t >= 0).count() {
            return Err(Error::invalid(format!("a tensor is listed twice among the inputs {:?}", self.sub.inputs)));
        }
        for &t in &self.sub.inputs {
            let value = self.input(t)?;
            self.out.inputs.push(value);
        }
        for (i, op) in self.sub.operators.iter().enumerate() {
            let node = self.operator(i, op, depth).map_err(|e| e.at(format!("operator {i}")))?;
            self.out.nodes.extend(node);
            self.unfolded += 1;
            if self.unfolded > MAX_NODES {
                return Err(Error::invalid(format!("sub-graphs unfold to more than {MAX_NODES} operators")));
            }
        }
        for &t in &self.sub.outputs {
            let value = self.output(t)?;
            self.out.outputs.get_or_insert_default().push(value);
        }
        Ok((self.out, self.unfolded))
    }

    fn tensor(&self, t: i32) -> Result<(usize, &'m TensorInfo)> {
        let index = usize::try_from(t).ok();
        let found = index.and_then(|i| Some((i, self.sub.tensors.get(i)?)));
        let count = self.sub.tensors.len();
        found.ok_or_else(|| Error::invalid(format!("there is no tensor {t}, the graph has {count}")))
    }

    fn quantization(&self, t: i32) -> Option<&'m Quantization> {
        let (_, info) = self.tensor(t).ok()?;
        quantized::of(info, self.decoder.is_stored(info))
    }

    fn input(&mut self, t: i32) -> Result<SourceValue> {
        let (i, info) = self.tensor(t)?;
        let ty = if self.is_inner_float(t) { ElementType::F32 } else { element_type(info.ty)? };
        Ok(SourceValue::new(self.names[i].clone(), declared(info, ty)))
    }

    // Inside of other graphs a quantised value crosses the border as the float that it is.
    fn is_inner_float(&self, t: i32) -> bool {
        !self.is_main && self.quantization(t).is_some()
    }

    fn output(&mut self, t: i32) -> Result<SourceValue> {
        let (_, info) = self.tensor(t)?;
        let is_inner = self.is_inner_float(t);
        let ty = if is_inner { ElementType::F32 } else { element_type(info.ty)? };
        let name = if is_inner { self.read(t)? } else { self.read_integers(t)? };
        Ok(SourceValue::new(name, declared(info, ty)))
    }

    /// Name by which operators read a tensor; what is needed for it to exist is added.
    fn read(&mut self, t: i32) -> Result<String> {
        let (i, info) = self.tensor(t)?;
        let name = self.source(t)?;
        let Some(q) = self.quantization(t) else { return Ok(name) };
        let is_float = self.produced.contains(&i) || info.is_variable || (self.inputs.contains(&i) && !self.is_main);
        if is_float {
            return Ok(name);
        }
        let float = quantized::dequantized(&name);
        if self.made.insert(float.clone()) {
            let mut node = quantized::node("Dequantize", info, q, name, float.clone());
            node.attrs.set("is_stored", AttrValue::Bool(!self.inputs.contains(&i)));
            if let Some(b) = &q.blockwise {
                node.attrs.set("block_size", AttrValue::Int(i64::from(b.block_size)));
                for scales in [b.scales, b.zero_points].into_iter().filter(|t| *t > 0) {
                    let name = self.source(scales)?;
                    node.inputs.push(name);
                }
            }
            self.out.nodes.push(node);
        }
        Ok(float)
    }

    /// Name of the integers of a tensor, where it is quantised.
    fn read_integers(&mut self, t: i32) -> Result<String> {
        let (i, info) = self.tensor(t)?;
        let name = self.source(t)?;
        let is_float = self.produced.contains(&i) || info.is_variable || (self.inputs.contains(&i) && !self.is_main);
        match self.quantization(t) {
            Some(q) if is_float => {
                let integers = quantized::integer(&name);
                if self.made.insert(integers.clone()) {
                    self.out.nodes.push(quantized::node("Quantize", info, q, name, integers.clone()));
                }
                Ok(integers)
            }
            _ => Ok(name),
        }
    }

    /// Name of a tensor as the file has it.
    fn source(&mut self, t: i32) -> Result<String> {
        let (i, info) = self.tensor(t)?;
        let name = self.names[i].clone();
        if self.produced.contains(&i) || self.inputs.contains(&i) || !self.made.insert(name.clone()) {
            return Ok(name);
        }
        if self.decoder.is_stored(info) {
            self.out.tensors.push(self.decoder.stored(name.clone(), info));
        } else if info.is_variable {
            self.out.nodes.push(self.variable(info, &name)?);
        } else if let Some(tensor) = empty(info) {
            self.out.tensors.push(SourceTensor::new(name.clone(), tensor));
        }
        Ok(name)
    }

    // A tensor that lives from one inference to the next, zeros at first.
    fn variable(&self, info: &TensorInfo, name: &str) -> Result<SourceNode> {
        let ty = if info.quantization.is_some() { ElementType::F32 } else { element_type(info.ty)? };
        let mut node = SourceNode {
            name: format!("{}/ReadValue", info.name),
            op_type: "Variable".to_string(),
            domain: STATE.to_string(),
            version: 1,
            outputs: vec![name.to_string()],
            ..SourceNode::default()
        };
        let ItemType::Tensor(ty, shape) = declared(info, ty)? else { return Ok(node) };
        self.decoder.made.spend_zeros(ty, &shape)?;
        node.attrs.set("variable_id", AttrValue::Str(carafe_frontend::shown(name).to_string()));
        node.attrs.set("type", AttrValue::Type(ty));
        node.attrs.set("shape", AttrValue::Shape(shape));
        Ok(node)
    }

    fn operator(&mut self, index: usize, op: &'m Operator, depth: usize) -> Result<Option<SourceNode>> {
        let model = self.decoder.model;
        let code = model.codes.get(op.code);
        let code = code.ok_or_else(|| Error::invalid(format!("there is no operator code {}", op.code)))?;
        let first = op.outputs.iter().find_map(|t| self.tensor(*t).ok());
        let name = first.map(|(i, _)| carafe_frontend::shown(&self.names[i]).to_string());
        let mut node = SourceNode {
            name: name.unwrap_or_else(|| format!("{}_{index}", code.name)),
            op_type: code.name.clone(),
            domain: if code.is_custom { CUSTOM.to_string() } else { String::new() },
            version: code.version,
            index: Some(index),
            ..SourceNode::default()
        };
        if !code.is_custom
            && matches!(code.name.as_str(), "VAR_HANDLE" | "HASHTABLE" | "HASHTABLE_IMPORT" | "CALL_ONCE")
        {
            let after = self.out.nodes.last().map(|n| n.label().to_string()).unwrap_or_default();
            let why = "handles, variables and tables are resolved when the graph is decoded";
            self.out.left_out.push(LeftOut { name: node.name, op_type: node.op_type, after, why });
            return Ok(None);
        }
        self.options(op, &mut node, depth);
        self.custom_options(op, &mut node);
        self.complex(op, &mut node);
        let takes_integers = !code.is_custom && TAKES_INTEGERS.contains(&code.name.as_str());
        let handled = !code.is_custom && self.resource(op, &mut node)?;
        if !handled {
            for &t in &op.inputs {
                let name = match t {
                    -1 => String::new(),
                    t if takes_integers => self.read_integers(t)?,
                    t => self.read(t)?,
                };
                node.inputs.push(name);
            }
        }
        self.outputs(op, &mut node)?;
        Ok(Some(node))
    }

    fn options(&mut self, op: &Operator, node: &mut SourceNode, depth: usize) {
        let options = match &op.options {
            Ok(options) => options,
            Err(e) => return node.fault = Some(e.clone()),
        };
        node.attrs = options.attrs.clone();
        for (name, index) in &options.graphs {
            let held = match self.decoder.inner(*index, depth + 1) {
                Ok((graph, nodes)) => {
                    self.unfolded = self.unfolded.saturating_add(nodes);
                    Held::Graph(graph)
                }
                Err(e) => Held::Broken(e.at(format!("`{name}`"))),
            };
            node.held.push((name.clone(), held));
        }
    }

    // Options of a custom operator: what a flexbuffer holds, and the bytes themselves.
    fn custom_options(&self, op: &Operator, node: &mut SourceNode) {
        let Some((offset, length)) = op.custom.filter(|_| node.domain == CUSTOM) else { return };
        let Some(bytes) = self.decoder.file.as_slice().get(offset..offset + length).filter(|b| !b.is_empty()) else {
            return;
        };
        match flexbuffer::read(bytes) {
            Some(value) if node.op_type.starts_with(FLEX) => flex(&value, node),
            Some(value) => flexbuffer::attributes(&value, &mut node.attrs),
            None => {}
        }
        if let Ok(raw) = Tensor::view(ElementType::U8, &[length], self.decoder.file, offset, length) {
            node.attrs.set(RAW_OPTIONS, AttrValue::Tensor(TensorAttr(raw)));
        }
    }

    // Marks operators on complex numbers; most have no meaning for them.
    fn complex(&self, op: &Operator, node: &mut SourceNode) {
        let name = node.op_type.as_str();
        let is = |t: Option<&i32>| t.and_then(|t| self.tensor(*t).ok()).is_some_and(|(_, info)| is_complex(info.ty));
        if name == "CAST" && is(op.outputs.first()) {
            node.attrs.set(COMPLEX_OUTPUT, AttrValue::Bool(true));
        }
        let is_builtin = node.domain.is_empty() && node.held.is_empty() && !OF_COMPLEX.contains(&name);
        if !is_builtin || !op.inputs.iter().any(|t| is(Some(t))) {
            return;
        }
        if TAKES_COMPLEX.contains(&name) {
            node.attrs.set(COMPLEX_INPUT, AttrValue::Bool(true));
        } else {
            node.fault = Some(Error::unsupported("it is not defined for complex numbers"));
        }
    }

    // Gives an operator on a variable or a table what its handle stands for. False when it has none.
    fn resource(&mut self, op: &Operator, node: &mut SourceNode) -> Result<bool> {
        let is_user =
            matches!(node.op_type.as_str(), "READ_VARIABLE" | "ASSIGN_VARIABLE" | "HASHTABLE_FIND" | "HASHTABLE_SIZE");
        if !is_user {
            return Ok(false);
        }
        let found = op.inputs.first().and_then(|t| handle(self.decoder.model, self.sub, *t));
        let Some(found) = found else {
            node.fault = Some(Error::unsupported("its handle comes from another graph"));
            return Ok(true);
        };
        match (node.op_type.as_str(), found) {
            ("READ_VARIABLE", Handle::Variable(id)) => {
                if let Some(value) = self.assigned.get(&id) {
                    node.inputs.push(value.clone());
                    return Ok(true);
                }
                let initial = self.decoder.resources.variables.get(&id).copied();
                let initial = initial.map(|r| self.foreign(r)).transpose()?;
                node.inputs.extend(initial);
                node.attrs.set("variable_id", AttrValue::Str(id));
            }
            ("ASSIGN_VARIABLE", Handle::Variable(id)) => {
                let value = op.inputs.get(1).ok_or_else(|| Error::invalid("there is no value to assign"))?;
                let value = self.read(*value)?;
                // Of several assignments the last one stays.
                let mut before = self.out.nodes.iter_mut();
                let is_same = |n: &&mut SourceNode| {
                    n.op_type == "ASSIGN_VARIABLE" && n.attrs.get("variable_id") == Some(&AttrValue::Str(id.clone()))
                };
                if let Some(old) = before.find(is_same) {
                    old.attrs.set("is_last", AttrValue::Bool(false));
                }
                self.assigned.insert(id.clone(), value.clone());
                node.inputs.push(value);
                node.attrs.set("variable_id", AttrValue::Str(id));
            }
            (_, Handle::Table(id)) => {
                let Some((keys, values)) = self.decoder.resources.tables.get(&id).copied() else {
                    node.fault = Some(Error::unsupported("its table is not filled by a sub-graph that runs once"));
                    return Ok(true);
                };
                for &t in &op.inputs[1..] {
                    let name = self.read(t)?;
                    node.inputs.push(name);
                }
                for tensor in [keys, values] {
                    let name = self.foreign(tensor)?;
                    node.inputs.push(name);
                }
            }
            _ => node.fault = Some(Error::invalid("its handle is not of the kind that it takes")),
        }
        Ok(true)
    }

    // A stored tensor of another sub-graph.
    fn foreign(&mut self, (graph, tensor): TensorRef) -> Result<String> {
        let info = self.decoder.model.subgraphs.get(graph).and_then(|g| g.tensors.get(tensor));
        let info = info.filter(|i| self.decoder.is_stored(i));
        let info =
            info.ok_or_else(|| Error::unsupported("a variable or table begins with what is not stored in the file"))?;
        let name = format!("{}{MARK}of.{graph}.{tensor}", info.name);
        if self.made.insert(name.clone()) {
            self.out.tensors.push(self.decoder.stored(name.clone(), info));
        }
        let Some(q) = quantized::of(info, true) else { return Ok(name) };
        let float = quantized::dequantized(&name);
        if self.made.insert(float.clone()) {
            let mut node = quantized::node("Dequantize", info, q, name, float.clone());
            node.attrs.set("is_stored", AttrValue::Bool(true));
            self.out.nodes.push(node);
        }
        Ok(float)
    }

    fn outputs(&mut self, op: &Operator, node: &mut SourceNode) -> Result<()> {
        let inputs: Vec<Option<&Quantization>> = op.inputs.iter().map(|t| self.quantization(*t)).collect();
        let mut rounded = vec![];
        for (port, &t) in op.outputs.iter().enumerate() {
            let (i, info) = self.tensor(t)?;
            let name = self.names[i].clone();
            if port == 0 && (NEEDS_OUTPUT.contains(&node.op_type.as_str()) || node.op_type.starts_with("STABLEHLO_")) {
                self.declare(node, info)?;
            }
            if !self.made.insert(name.clone()) || self.inputs.contains(&i) {
                return Err(Error::invalid(format!("tensor {t} is written twice")));
            }
            match self.quantization(t) {
                Some(q) if !quantized::stays_on_grid(node, &inputs, q) => {
                    let exact = quantized::exact(&name);
                    rounded.push(quantized::node("FakeQuantize", info, q, exact.clone(), name));
                    node.outputs.push(exact);
                }
                _ if is_handle(info.ty) => node.outputs.push(String::new()),
                _ => node.outputs.push(name),
            }
        }
        if node.domain.is_empty() && RECURRENT.contains(&node.op_type.as_str()) {
            self.intermediates(op, node);
            self.states(op, node);
        }
        self.out.nodes.extend(rounded);
        Ok(())
    }

    // What the file says of the first output, as attributes.
    fn declare(&self, node: &mut SourceNode, info: &TensorInfo) -> Result<()> {
        let ty = if quantized::of(info, false).is_some() && !TAKES_INTEGERS.contains(&node.op_type.as_str()) {
            ElementType::F32
        } else {
            element_type(info.ty)?
        };
        if let ItemType::Tensor(ty, shape) = declared(info, ty)? {
            if node.op_type == "READ_VARIABLE" && node.inputs.is_empty() {
                self.decoder.made.spend_zeros(ty, &shape)?;
            }
            node.attrs.set("output_type", AttrValue::Type(ty));
            node.attrs.set("output_shape", AttrValue::Shape(shape));
        }
        Ok(())
    }

    // Scales of the quantised variables that a layer reads, 0 for those that are none.
    fn states(&self, op: &Operator, node: &mut SourceNode) {
        let variables = op.inputs.iter().filter_map(|t| Some((*t, self.tensor(*t).ok()?.1)));
        let variables: Vec<(i32, &TensorInfo)> = variables.filter(|(_, info)| info.is_variable).collect();
        let of = |t: i32| self.quantization(t).and_then(|q| Some((*q.scale.first()?, *q.zero_point.first()?)));
        let all: Vec<Option<(f32, i64)>> = variables.iter().map(|(t, _)| of(*t)).collect();
        if all.iter().all(Option::is_none) {
            return;
        }
        let bits = |info: &TensorInfo| element_type(info.ty).map_or(0, |ty| ty.bits() as i64);
        let scale = |q: &Option<(f32, i64)>| q.map_or(0.0, |q| f64::from(q.0));
        node.attrs.set("state_scales", AttrValue::Floats(all.iter().map(scale).collect()));
        node.attrs.set("state_zero_points", AttrValue::Ints(all.iter().map(|q| q.map_or(0, |q| q.1)).collect()));
        node.attrs.set("state_bits", AttrValue::Ints(variables.iter().map(|(_, info)| bits(info)).collect()));
    }

    // Scales of what a quantised LSTM computes on the way.
    fn intermediates(&self, op: &Operator, node: &mut SourceNode) {
        if op.intermediates.is_empty() {
            return;
        }
        let of = |t: &i32| self.tensor(*t).ok().and_then(|(_, info)| info.quantization.as_ref());
        let scale = |q: Option<&Quantization>| q.and_then(|q| q.scale.first()).copied().unwrap_or(0.0);
        let zero = |q: Option<&Quantization>| q.and_then(|q| q.zero_point.first()).copied().unwrap_or(0);
        let all: Vec<Option<&Quantization>> = op.intermediates.iter().map(of).collect();
        node.attrs.set("intermediate_scales", AttrValue::Floats(all.iter().map(|q| f64::from(scale(*q))).collect()));
        node.attrs.set("intermediate_zero_points", AttrValue::Ints(all.iter().map(|q| zero(*q)).collect()));
    }
}
