//! The messages of a model as a `SourceGraph`. Strings move, bytes of tensors stay where they lie until somebody reads them.

use crate::attributes;
use crate::file::Files;
use crate::imports;
use crate::tensor::{dense, tensor};
use crate::types;
use crate::wire::{AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto};
use carafe_frontend::{Held, SourceFunction, SourceGraph, SourceNode, SourceTensor, SourceValue, Versions};
use carafe_graph::{AttrMap, AttrValue, Error, Result};
use std::rc::Rc;

/// No size, axis or count is larger, and rules may multiply a few of these.
const MOST_INT: u64 = 1 << 40;

/// The graph of a model that was decoded from this many bytes.
pub(crate) fn of_model(model: ModelProto, bytes: usize, files: &Rc<Files>) -> Result<SourceGraph> {
    let versions = imports::versions(model.opset_import);
    let graph = model.graph.ok_or_else(|| Error::invalid("the ONNX file has no graph"))?;
    let entry = |p: crate::wire::StringStringEntryProto| (p.key.unwrap_or_default(), p.value.unwrap_or_default());
    Ok(SourceGraph {
        functions: model.functions.into_iter().map(|f| function(f, files)).collect(),
        metadata: model.metadata_props.into_iter().map(entry).collect(),
        bytes,
        ..Decoder { files, versions: &versions }.graph(graph)
    })
    .map(|graph| SourceGraph { versions, ..graph })
}

fn function(f: FunctionProto, files: &Rc<Files>) -> SourceFunction {
    let versions = imports::versions(f.opset_import);
    let decoder = Decoder { files, versions: &versions };
    let graph = SourceGraph {
        inputs: f.input.into_iter().map(SourceValue::unknown).collect(),
        outputs: Some(f.output.into_iter().map(SourceValue::unknown).collect()),
        nodes: f.node.into_iter().map(|n| decoder.node(n)).collect(),
        ..SourceGraph::default()
    };
    let (mut attrs, mut held) = (AttrMap::new(), vec![]);
    for a in f.attribute_proto {
        decoder.attribute(a, false, &mut attrs, &mut held);
    }
    let domain = types::domain(f.domain);
    let (name, overload) = (f.name.unwrap_or_default(), f.overload.unwrap_or_default());
    SourceFunction { domain, name, overload, graph, attrs, held }
}

/// What all nodes of a graph or a function share.
struct Decoder<'m> {
    files: &'m Rc<Files>,
    versions: &'m Versions,
}

impl Decoder<'_> {
    fn graph(&self, g: GraphProto) -> SourceGraph {
        let value = |what: &str, v: ValueInfoProto| {
            let ty = types::of_value(what, &v);
            SourceValue::new(v.name.unwrap_or_default(), ty)
        };
        let known = g.value_info.iter().chain(&g.output);
        let types = known.filter_map(|v| Some((v.name.clone()?, types::of_value("value", v).ok()?))).collect();
        let dense_ones = g.initializer.into_iter().map(|mut t| {
            let (name, files) = (t.name.get_or_insert_default().clone(), self.files.clone());
            SourceTensor::lazy(name, move || tensor(&t, &files))
        });
        let sparse = g.sparse_initializer.into_iter().map(|t| {
            let name = t.values.as_ref().and_then(|v| v.name.clone()).unwrap_or_default();
            let files = self.files.clone();
            SourceTensor::lazy(name, move || dense(&t, &files))
        });
        SourceGraph {
            name: g.name.unwrap_or_default(),
            tensors: dense_ones.chain(sparse).collect(),
            types,
            inputs: g.input.into_iter().map(|v| value("input", v)).collect(),
            outputs: Some(g.output.into_iter().map(|v| value("output", v)).collect()),
            nodes: g.node.into_iter().map(|n| self.node(n)).collect(),
            ..SourceGraph::default()
        }
    }

    fn node(&self, n: NodeProto) -> SourceNode {
        let domain = types::domain(n.domain);
        let mut node = SourceNode {
            name: n.name.unwrap_or_default(),
            op_type: n.op_type.unwrap_or_default(),
            version: self.versions.of(&domain),
            domain,
            overload: n.overload.unwrap_or_default(),
            inputs: n.input,
            outputs: n.output,
            ..SourceNode::default()
        };
        let bounded = is_bounded(&node);
        for a in n.attribute {
            self.attribute(a, bounded, &mut node.attrs, &mut node.held);
        }
        node
    }

    fn attribute(&self, mut a: AttributeProto, bounded: bool, attrs: &mut AttrMap, held: &mut Vec<(String, Held)>) {
        let name = a.name.take().unwrap_or_default();
        if let Some(of) = a.ref_attr_name.take().filter(|n| !n.is_empty()) {
            return held.push((name, Held::Reference(of)));
        }
        match attributes::value(&a, self.files) {
            Ok(Some(AttrValue::Int(i))) if bounded && i.unsigned_abs() > MOST_INT => {
                let e = Error::invalid(format!("attribute `{name}` = {i} is beyond any size or axis"));
                held.push((name, Held::Broken(e)));
            }
            Ok(Some(value)) => attrs.set(name, value),
            Ok(None) => {
                if let Some(graph) = a.g {
                    held.push((name, Held::Graph(Rc::new(self.graph(*graph)))));
                }
            }
            Err(e) => {
                let e = e.at(format!("attribute `{name}`"));
                held.push((name, Held::Broken(e)));
            }
        }
    }
}

// Single integers of the known domains are sizes, axes, counts and switches; a constant may be any number.
fn is_bounded(node: &SourceNode) -> bool {
    let known = matches!(node.domain.as_str(), "" | "ai.onnx.ml" | "com.microsoft" | "ai.onnx.preview.training");
    known && node.op_type != "Constant"
}
