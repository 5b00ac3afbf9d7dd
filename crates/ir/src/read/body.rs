//! Sub-graphs of a layer and how their ports are connected. Files connect by port and layer ids; the graph wants places in
//! the outer node's inputs and outputs and in the body's parameters and results.

use super::Reader;
use super::lookup::Class;
use super::net::{Layer, Net, Source};
use crate::xml::{Xml, child, elements, named, number, required_number, shorten};
use carafe_graph::{AttrKind, BodyInput, BodyOutput, Error, OpNew, Parameter, Result, ResultOp, Slicing};
use std::collections::{HashMap, HashSet};

/// A body that is checked but not built.
#[derive(Debug)]
pub(crate) struct BodyXml<'a> {
    pub(crate) attribute: &'static str,
    pub(crate) net: Net<'a>,
    pub(crate) inputs: Vec<BodyInput>,
    pub(crate) outputs: Vec<BodyOutput>,
    pub(crate) current_iteration: Option<usize>,
    pub(crate) execution_condition: Option<usize>,
}

/// The bodies that the class of a layer asks for, and the layer's inputs: one that two parameters of a body share is
/// given to the second through an input of its own, as most readers know only one entry a port.
pub(crate) fn bodies_of<'a>(
    reader: &mut Reader<'a>,
    layer: &Layer<'a>,
    depth: usize,
) -> Result<(Vec<BodyXml<'a>>, Vec<Source>)> {
    let mut sources = layer.sources.clone();
    let Class::Known(factory) = layer.class else {
        let holds_layers = |e: Xml<'_>| child(e, "layers").is_some();
        if reader.options.keep_unknown && elements(layer.xml).any(holds_layers) {
            return Err(Error::unsupported("the type is not known and has a body, so it cannot be kept as it is"));
        }
        return Ok((vec![], sources));
    };
    let mut bodies = vec![];
    for attribute in factory.info.attrs.iter().filter(|a| a.kind == AttrKind::Body) {
        if let Some(xml) = child(layer.xml, attribute.name) {
            let body = body(reader, layer, &mut sources, attribute.name, xml, depth);
            bodies.push(body.map_err(|e| e.at(format!("`{}`", attribute.name)))?);
        }
    }
    Ok((bodies, sources))
}

/// The elements beside a body: `then_body` has its ports in `then_port_map`.
pub(crate) fn beside(attribute: &str, element: &str) -> String {
    attribute.replacen("body", element, 1)
}

fn body<'a>(
    reader: &mut Reader<'a>,
    layer: &Layer<'a>,
    sources: &mut Vec<Source>,
    attribute: &'static str,
    xml: Xml<'a>,
    depth: usize,
) -> Result<BodyXml<'a>> {
    let net = Net::read(reader, xml, depth + 1)?;
    let ids = Ids::of(&net);
    let mut body =
        BodyXml { attribute, net, inputs: vec![], outputs: vec![], current_iteration: None, execution_condition: None };
    if let Some(map) = child(layer.xml, &beside(attribute, "port_map")) {
        body.connect(layer, sources, map, &ids).map_err(|e| e.at("port map"))?;
    }
    if let Some(edges) = child(layer.xml, &beside(attribute, "back_edges")) {
        for edge in named(edges, "edge") {
            let result = ids.result(required_number(edge, "from-layer")?).map_err(|e| e.at("back edge"))?;
            let parameter = ids.parameter(required_number(edge, "to-layer")?).map_err(|e| e.at("back edge"))?;
            // A sliced input takes its parts from outside in every iteration.
            let carried = |i: &&mut BodyInput| i.parameter == parameter && i.slicing.is_none() && i.back_edge.is_none();
            if let Some(input) = body.inputs.iter_mut().find(carried) {
                input.back_edge = Some(result);
            }
        }
    }
    Ok(body)
}

impl BodyXml<'_> {
    fn connect(&mut self, layer: &Layer<'_>, sources: &mut Vec<Source>, map: Xml<'_>, ids: &Ids) -> Result<()> {
        let mut used = HashSet::new();
        let mut outputs: Vec<(i64, BodyOutput)> = vec![];
        for entry in elements(map) {
            let side = entry.tag_name().name();
            if side != "input" && side != "output" {
                continue;
            }
            let outer: i64 = required_number(entry, "external_port_id").map_err(|e| e.at(side))?;
            let inner: u64 = required_number(entry, "internal_layer_id").map_err(|e| e.at(side))?;
            let slicing = slicing(entry).map_err(|e| e.at(side))?;
            let purpose = entry.attribute("purpose").unwrap_or("");
            if side == "input" {
                let parameter = ids.parameter(inner)?;
                if purpose == "current_iteration" {
                    self.current_iteration = Some(parameter);
                }
                if outer >= 0 {
                    let mut outer = outer_input(layer, outer)?;
                    if !used.insert(outer) {
                        sources.push(sources[outer]);
                        outer = sources.len() - 1;
                    }
                    self.inputs.push(BodyInput { outer: Some(outer), parameter, slicing, back_edge: None });
                }
            } else {
                let result = ids.result(inner)?;
                if purpose == "execution_condition" {
                    self.execution_condition = Some(result);
                }
                if outer >= 0 {
                    outputs.push((outer, BodyOutput { outer: 0, result, slicing }));
                }
            }
        }
        self.outputs = number_outputs(outputs)?;
        Ok(())
    }
}

fn outer_input(layer: &Layer<'_>, id: i64) -> Result<usize> {
    let position = layer.inputs.position(id.unsigned_abs()).filter(|p| *p < layer.sources.len());
    position.ok_or_else(|| {
        let has = layer.inputs.ids();
        Error::invalid(format!("external_port_id {id} is not a connected input port of the layer; its ports: {has}"))
    })
}

// Only the order of the outer ids counts: some files continue after the inputs, some start at 0.
fn number_outputs(outputs: Vec<(i64, BodyOutput)>) -> Result<Vec<BodyOutput>> {
    let mut sorted: Vec<i64> = outputs.iter().map(|(id, _)| *id).collect();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::invalid(format!("two outputs have the external_port_id {}", pair[0])));
    }
    let position: HashMap<i64, usize> = sorted.into_iter().enumerate().map(|(i, id)| (id, i)).collect();
    Ok(outputs.into_iter().map(|(id, output)| BodyOutput { outer: position[&id], ..output }).collect())
}

fn slicing(entry: Xml<'_>) -> Result<Option<Slicing>> {
    let Some(axis) = number(entry, "axis")? else { return Ok(None) };
    let whole = Slicing::along(axis);
    Ok(Some(Slicing {
        axis,
        start: number(entry, "start")?.unwrap_or(whole.start),
        end: number(entry, "end")?.unwrap_or(whole.end),
        stride: number(entry, "stride")?.unwrap_or(whole.stride),
        part_size: number(entry, "part_size")?.unwrap_or(whole.part_size),
    }))
}

/// Layer ids of a body's parameters and results, with their places.
struct Ids {
    parameters: HashMap<u64, usize>,
    results: HashMap<u64, usize>,
    kinds: HashMap<u64, String>,
}

impl Ids {
    fn of(net: &Net<'_>) -> Ids {
        let positions = |positions: Vec<usize>| -> HashMap<u64, usize> {
            positions.into_iter().enumerate().map(|(position, i)| (net.layers[i].id, position)).collect()
        };
        Ids {
            parameters: positions(net.positions(Class::is_parameter)),
            results: positions(net.positions(Class::is_result)),
            kinds: net.layers.iter().map(|l| (l.id, shorten(l.kind))).collect(),
        }
    }
    fn parameter(&self, id: u64) -> Result<usize> {
        self.parameters.get(&id).copied().ok_or_else(|| self.wrong(id, Parameter::INFO.name))
    }
    fn result(&self, id: u64) -> Result<usize> {
        self.results.get(&id).copied().ok_or_else(|| self.wrong(id, ResultOp::INFO.name))
    }
    fn wrong(&self, id: u64, wanted: &str) -> Error {
        match self.kinds.get(&id) {
            Some(kind) => Error::invalid(format!("expected a {wanted} of the body, found layer {id}, a {kind}")),
            None => Error::invalid(format!("expected a {wanted} of the body, there is no layer {id} in it")),
        }
    }
}
