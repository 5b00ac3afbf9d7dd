//! A graph as decoded back into messages, after rewrites. Names are the bond between nodes in a file, but a rewrite joins
//! values: outputs and what sub-graphs read keep their names, everything else gets one that is free.

use crate::attributes;
use crate::decoded::{CAPTURED, Decoded, MARKER, NOTHING, Stored, node_name};
use crate::file::Source;
use crate::tensor::element_type;
use crate::wire::{
    AttributeProto, DimensionProto, GraphProto, NodeProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto,
    ValueInfoProto,
};
use bytes::Bytes;
use carafe_graph::{
    AttrValue, Constant, Error, Fact, FrameworkNode, Model, Node, NodeId, Parameter, Result, ResultOp, Value,
};
use carafe_tensor::{ElementType, Tensor};
use std::collections::{HashMap, HashSet};

/// The graph that the model describes now; `outputs` is what the file declared of its outputs.
pub(crate) fn encode(mut from: Decoded, outputs: &[ValueInfoProto], source: &Source) -> Result<GraphProto> {
    let mut graph = GraphProto { name: Some(from.model.name.clone()), ..GraphProto::default() };
    let order = from.model.topological_order()?;
    let mut names = Names::default();
    names.fix(&from.model, &order)?;
    names.find_rest(&from.model, &order);
    for &p in from.model.parameters() {
        let input = match from.inputs.remove(&p) {
            Some(input) => input,
            None => declared(from.model.fact(p.into()))?,
        };
        graph.input.push(ValueInfoProto { name: Some(names.of(p.into()).to_string()), ..input });
    }
    let mut constants = std::mem::take(&mut from.constants);
    // In the order of the file, where it had them.
    for (id, node) in from.model.nodes() {
        if let Some(c) = node.op().get::<Constant>() {
            let name = Some(names.of(id.into()).to_string());
            match constants.remove(&id).filter(|(tensor, _)| is_same(tensor, c.tensor())) {
                Some((_, Stored::Dense(t))) => graph.initializer.push(TensorProto { name, ..*t }),
                Some((_, Stored::Sparse(mut t))) => {
                    t.values.iter_mut().for_each(|v| v.name.clone_from(&name));
                    graph.sparse_initializer.push(*t);
                }
                None => graph.initializer.push(TensorProto { name, ..stored(c.tensor())? }),
            }
        } else if let Some(op) = node.op().get::<FrameworkNode>() {
            if op.opset != MARKER {
                graph.node.push(node_of(&from, id, node, op, &names, source)?);
            }
        } else if !node.op().is::<Parameter>() && !node.op().is::<ResultOp>() {
            let why = "is an operation of the engine; before translation only those of the source format can be added";
            return Err(Error::unsupported(why).at(node.place()));
        }
    }
    for (from, to) in &names.copies {
        graph.node.push(NodeProto {
            op_type: Some("Identity".into()),
            input: vec![from.clone()],
            output: vec![to.clone()],
            ..NodeProto::default()
        });
    }
    for &r in from.model.results() {
        let name = from.model.node(r).name();
        let same = outputs.iter().find(|o| o.name.as_deref() == Some(name)).cloned();
        graph.output.push(same.unwrap_or_else(|| ValueInfoProto { name: Some(name.into()), r#type: None }));
    }
    Ok(graph)
}

/// A name for every value.
#[derive(Default)]
struct Names {
    of: HashMap<Value, String>,
    taken: HashSet<String>,
    /// Values that are needed under a second name.
    copies: Vec<(String, String)>,
}

impl Names {
    fn of(&self, v: Value) -> &str {
        self.of.get(&v).map_or("", String::as_str)
    }

    // Names that somebody outside of the nodes relies on: callers, and sub-graphs.
    fn fix(&mut self, model: &Model, order: &[NodeId]) -> Result<()> {
        for &p in model.parameters() {
            let name = model.node(p).name().to_string();
            if !self.taken.insert(name.clone()) {
                return Err(Error::invalid(format!("two inputs are named `{name}`")));
            }
            self.of.insert(p.into(), name);
        }
        let is_captured = |id: &&NodeId| {
            let op = model.node(**id).op().get::<FrameworkNode>();
            op.is_some_and(|op| op.opset == MARKER && op.type_name == CAPTURED)
        };
        let mut asked: HashMap<&str, Value> = HashMap::new();
        for &id in model.results().iter().chain(order.iter().filter(is_captured)) {
            let node = model.node(id);
            let v = node.inputs()[0];
            match asked.insert(node.name(), v) {
                Some(other) if other != v => {
                    return Err(Error::invalid(format!("two different values are needed as `{}`", node.name())));
                }
                Some(_) => {}
                None => self.ask(v, node.name())?,
            }
        }
        Ok(())
    }

    fn ask(&mut self, v: Value, name: &str) -> Result<()> {
        match self.of.get(&v) {
            Some(has) if has == name => Ok(()),
            Some(has) => {
                let has = has.clone();
                if !self.taken.insert(name.to_string()) {
                    return Err(Error::invalid(format!("`{name}` is the name of two different values")));
                }
                self.copies.push((has, name.to_string()));
                Ok(())
            }
            None => {
                if !self.taken.insert(name.to_string()) {
                    return Err(Error::invalid(format!("`{name}` is the name of two different values")));
                }
                self.of.insert(v, name.to_string());
                Ok(())
            }
        }
    }

    fn find_rest(&mut self, model: &Model, order: &[NodeId]) {
        for &id in order {
            let node = model.node(id);
            for (port, output) in node.outputs().iter().enumerate() {
                let v = Value { node: id, port };
                // An output that nobody named and nobody reads stays left out.
                let is_named = !output.names.is_empty() || !model.users(v).is_empty();
                if node.op().is::<ResultOp>() || self.of.contains_key(&v) || !is_named {
                    continue;
                }
                let wanted = output.names.iter().find(|n| !self.taken.contains(*n)).cloned();
                let wanted = wanted.unwrap_or_else(|| match port {
                    0 => node.name().to_string(),
                    port => format!("{}.{port}", node.name()),
                });
                let mut name = wanted.clone();
                let mut n = 1;
                while name.is_empty() || !self.taken.insert(name.clone()) {
                    name = format!("{wanted}_{n}");
                    n += 1;
                }
                self.of.insert(v, name);
            }
        }
    }
}

fn node_of(
    from: &Decoded,
    id: NodeId,
    node: &Node,
    op: &FrameworkNode,
    names: &Names,
    source: &Source,
) -> Result<NodeProto> {
    let before = from.nodes.get(&id);
    let mut input = vec![];
    for v in node.inputs() {
        let marker = from.model.node(v.node).op().get::<FrameworkNode>().filter(|op| op.opset == MARKER);
        match marker.map(|op| op.type_name.as_str()) {
            Some(NOTHING) => input.push(String::new()),
            Some(_) => {}
            None => input.push(names.of(*v).to_string()),
        }
    }
    let output = (0..node.outputs().len()).map(|port| names.of(Value { node: id, port }).to_string());
    let name = match before {
        Some(before) if node_name(before) == node.name() => before.name.clone(),
        _ => Some(node.name().to_string()),
    };
    let mut attribute = vec![];
    for (name, value) in op.attrs.iter() {
        let old = before.and_then(|n| n.attribute.iter().find(|a| a.name.as_deref() == Some(name)));
        let same = old.filter(|a| attributes::value(a, source).is_ok_and(|v| v.as_ref() == Some(value)));
        attribute.push(match same.or_else(|| from.held(value)) {
            Some(a) => AttributeProto { name: Some(name.to_string()), ..a.clone() },
            None => attribute_of(name, value).map_err(|e| e.at(format!("attribute `{name}`")).at(node.place()))?,
        });
    }
    Ok(NodeProto {
        input,
        output: output.collect(),
        name,
        op_type: Some(op.type_name.clone()),
        attribute,
        domain: Some(op.opset.clone()),
        overload: before.and_then(|n| n.overload.clone()),
    })
}

fn attribute_of(name: &str, value: &AttrValue) -> Result<AttributeProto> {
    let a = AttributeProto { name: Some(name.to_string()), ..AttributeProto::default() };
    let bytes = |s: &String| Bytes::from(s.clone().into_bytes());
    let number = |ty: ElementType| type_number(ty).map(i64::from);
    Ok(match value {
        AttrValue::Float(x) => AttributeProto { f: Some(*x as f32), r#type: Some(1), ..a },
        AttrValue::Int(i) => AttributeProto { i: Some(*i), r#type: Some(2), ..a },
        AttrValue::Bool(b) => AttributeProto { i: Some(i64::from(*b)), r#type: Some(2), ..a },
        // A text is read as a number where the rule wants one.
        AttrValue::Str(s) | AttrValue::Text(s) => AttributeProto { s: Some(bytes(s)), r#type: Some(3), ..a },
        AttrValue::Tensor(t) => AttributeProto { t: Some(stored(&t.0)?), r#type: Some(4), ..a },
        AttrValue::Floats(v) => AttributeProto { floats: v.iter().map(|x| *x as f32).collect(), r#type: Some(6), ..a },
        AttrValue::Ints(v) => AttributeProto { ints: v.clone(), r#type: Some(7), ..a },
        AttrValue::Strs(v) => AttributeProto { strings: v.iter().map(bytes).collect(), r#type: Some(8), ..a },
        // Types are numbers in attributes such as that of Cast.
        AttrValue::Type(ty) => AttributeProto { i: Some(number(*ty)?), r#type: Some(2), ..a },
        AttrValue::Types(v) => {
            let ints = v.iter().map(|ty| number(*ty)).collect::<Result<_>>()?;
            AttributeProto { ints, r#type: Some(7), ..a }
        }
        AttrValue::Shape(shape) => {
            let dims = shape.to_static().ok_or_else(|| Error::unsupported(format!("[{shape}] is not fixed")))?;
            AttributeProto { ints: dims.iter().map(|d| *d as i64).collect(), r#type: Some(7), ..a }
        }
        AttrValue::Body(_) => return Err(Error::unsupported("a body cannot be an attribute before translation")),
    })
}

fn is_same(a: &Tensor, b: &Tensor) -> bool {
    let place = |t: &Tensor| {
        (t.element_type(), t.strings().map_or_else(|_| t.bytes().as_ptr() as usize, |s| s.as_ptr() as usize))
    };
    place(a) == place(b) && a.shape() == b.shape()
}

fn stored(t: &Tensor) -> Result<TensorProto> {
    let proto = TensorProto {
        dims: t.shape().iter().map(|d| *d as i64).collect(),
        data_type: Some(type_number(t.element_type())?),
        ..TensorProto::default()
    };
    if let Ok(strings) = t.strings() {
        let string_data = strings.iter().map(|s| Bytes::from(s.clone().into_bytes())).collect();
        return Ok(TensorProto { string_data, ..proto });
    }
    let len = t.element_type().least_byte_len(t.len()).unwrap_or(0).min(t.bytes().len());
    Ok(TensorProto { raw_data: Some(Bytes::copy_from_slice(&t.bytes()[..len])), ..proto })
}

fn type_number(ty: ElementType) -> Result<i32> {
    let found = (0..=25).find(|n| element_type(*n).is_ok_and(|t| t == ty));
    found.ok_or_else(|| Error::unsupported(format!("ONNX has no element type {ty}")))
}

// What is declared of an input that a rewrite added.
fn declared(fact: &Fact) -> Result<ValueInfoProto> {
    let dim = |d: &carafe_tensor::Dim| DimensionProto { dim_value: d.get(), dim_param: None };
    let shape = fact.shape.dims().map(|dims| TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor_type = Some(TensorTypeProto { elem_type: Some(type_number(fact.ty)?), shape });
    Ok(ValueInfoProto { name: None, r#type: Some(TypeProto { tensor_type, ..TypeProto::default() }) })
}
