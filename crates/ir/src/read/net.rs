//! A `net` or `body` element as layers and edges, checked and put in order, before any operation is made from it.
//! Port ids are arbitrary numbers: what counts is the place of a port within its `input` or `output` element.

use super::Reader;
use super::body::{BodyXml, bodies_of};
use super::lookup::Class;
use crate::xml::{Xml, child, named, required, required_number, shorten};
use carafe_graph::{Error, Result};
use carafe_tensor::{Dim, ElementType};
use std::collections::HashMap;

/// Bodies inside bodies deeper than this are refused.
pub(crate) const MAX_BODY_DEPTH: usize = 32;

#[derive(Debug)]
pub(crate) struct Layer<'a> {
    pub(crate) xml: Xml<'a>,
    pub(crate) id: u64,
    pub(crate) name: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) version: &'a str,
    pub(crate) class: Class<'a>,
    pub(crate) inputs: Ports<'a>,
    pub(crate) outputs: Ports<'a>,
    /// Producers of the connected inputs, in order.
    pub(crate) sources: Vec<Source>,
    pub(crate) bodies: Vec<BodyXml<'a>>,
}

/// The ports of an `input` or `output` element in file order.
#[derive(Debug, Default)]
pub(crate) struct Ports<'a> {
    pub(crate) list: Vec<Xml<'a>>,
    /// Ids with their places, sorted.
    positions: Vec<(u64, usize)>,
}

/// An output of a layer, both as positions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    pub(crate) layer: usize,
    pub(crate) port: usize,
}

#[derive(Debug)]
pub(crate) struct Net<'a> {
    pub(crate) xml: Xml<'a>,
    pub(crate) layers: Vec<Layer<'a>>,
    /// What is built, producers first: parameters, everything that a result or sink needs, results.
    pub(crate) order: Vec<usize>,
}

impl Layer<'_> {
    pub(crate) fn location(&self) -> String {
        format!("layer '{}' ({}, id {})", shorten(self.name), shorten(self.kind), self.id)
    }
}

impl<'a> Net<'a> {
    pub(crate) fn read(reader: &mut Reader<'a>, xml: Xml<'a>, depth: usize) -> Result<Net<'a>> {
        if depth > MAX_BODY_DEPTH {
            return Err(Error::invalid(format!("bodies are nested deeper than {MAX_BODY_DEPTH}")));
        }
        let missing = |name| Error::invalid(format!("<{}> has no <{name}>", xml.tag_name().name()));
        let list = child(xml, "layers").ok_or_else(|| missing("layers"))?;
        let layers = named(list, "layer").map(|l| layer(reader, l)).collect::<Result<Vec<_>>>()?;
        let mut net = Net { xml, layers, order: vec![] };
        let ids = net.ids()?;
        if let Some(edges) = child(xml, "edges") {
            net.connect(edges, &ids)?;
        }
        net.order = net.sort()?;
        for &i in &net.order {
            let layer = &net.layers[i];
            if matches!(layer.class, Class::Unknown) {
                reader.problems.add(reader.registry, layer.kind, layer.version, layer.name);
            }
            let (bodies, sources) = bodies_of(reader, layer, depth).map_err(|e| e.at(layer.location()))?;
            (net.layers[i].bodies, net.layers[i].sources) = (bodies, sources);
        }
        Ok(net)
    }

    /// Positions in `layers` of a kind, in file order.
    pub(crate) fn positions(&self, fits: impl Fn(&Class<'a>) -> bool) -> Vec<usize> {
        (0..self.layers.len()).filter(|&i| fits(&self.layers[i].class)).collect()
    }

    fn ids(&self) -> Result<HashMap<u64, usize>> {
        let mut ids = HashMap::with_capacity(self.layers.len());
        for (i, layer) in self.layers.iter().enumerate() {
            if let Some(first) = ids.insert(layer.id, i) {
                return Err(Error::invalid(format!("the id is already that of {}", self.layers[first].location()))
                    .at(layer.location()));
            }
        }
        Ok(ids)
    }

    fn connect(&mut self, edges: Xml<'a>, ids: &HashMap<u64, usize>) -> Result<()> {
        let mut inputs: Vec<Vec<Option<Source>>> =
            self.layers.iter().map(|l| vec![None; l.inputs.list.len()]).collect();
        for edge in named(edges, "edge") {
            self.edge(edge, ids, &mut inputs).map_err(|e| {
                let show = |name| shorten(edge.attribute(name).unwrap_or("?"));
                let [a, b, c, d] = ["from-layer", "from-port", "to-layer", "to-port"].map(show);
                e.at(format!("edge {a}:{b} to {c}:{d}"))
            })?;
        }
        for (layer, inputs) in self.layers.iter_mut().zip(inputs) {
            let connected = inputs.iter().take_while(|i| i.is_some()).count();
            if let Some(later) = inputs[connected..].iter().position(|i| i.is_some()) {
                let later = connected + later;
                return Err(Error::invalid(format!("input {connected} has no edge, but input {later} has one"))
                    .at(layer.location()));
            }
            layer.sources = inputs.into_iter().flatten().collect();
        }
        Ok(())
    }

    fn edge(&self, edge: Xml<'a>, ids: &HashMap<u64, usize>, inputs: &mut [Vec<Option<Source>>]) -> Result<()> {
        let layer = |name: &str| -> Result<usize> {
            let id: u64 = required_number(edge, name)?;
            ids.get(&id).copied().ok_or_else(|| Error::invalid(format!("there is no layer with id {id}")))
        };
        let (from, to) = (layer("from-layer")?, layer("to-layer")?);
        let (source, target) = (&self.layers[from], &self.layers[to]);
        if source.class.is_result() {
            return Err(Error::invalid(format!("{} is a result and has no output", source.location())));
        }
        let source = Source { layer: from, port: position_of(source, &source.outputs, "output", edge, "from-port")? };
        let port = position_of(target, &target.inputs, "input", edge, "to-port")?;
        match &mut inputs[to][port] {
            Some(_) => Err(Error::invalid(format!("input {port} of {} already has an edge", target.location()))),
            free => {
                *free = Some(source);
                Ok(())
            }
        }
    }

    /// Depth first from results and sinks, without recursion.
    fn sort(&self) -> Result<Vec<usize>> {
        let mut order = self.positions(Class::is_parameter);
        let mut state = vec![State::New; self.layers.len()];
        order.iter().for_each(|&i| state[i] = State::Placed);
        let results = self.positions(Class::is_result);
        let starts = results.iter().flat_map(|&r| self.layers[r].sources.iter().map(|s| s.layer));
        let starts: Vec<usize> = starts.chain(self.positions(Class::is_sink)).collect();
        for start in starts {
            self.visit(start, &mut state, &mut order)?;
        }
        order.extend(results);
        Ok(order)
    }

    fn visit(&self, start: usize, state: &mut [State], order: &mut Vec<usize>) -> Result<()> {
        if state[start] == State::Placed {
            return Ok(());
        }
        state[start] = State::OnPath;
        let mut path = vec![(start, 0usize)];
        while let Some((layer, next)) = path.last_mut() {
            let Some(source) = self.layers[*layer].sources.get(*next) else {
                state[*layer] = State::Placed;
                order.push(*layer);
                path.pop();
                continue;
            };
            *next += 1;
            match state[source.layer] {
                State::Placed => {}
                State::New => {
                    state[source.layer] = State::OnPath;
                    path.push((source.layer, 0));
                }
                State::OnPath => {
                    let start = path.iter().position(|(l, _)| *l == source.layer).unwrap_or(0);
                    let names: Vec<String> = path[start..]
                        .iter()
                        .rev()
                        .take(8)
                        .map(|(l, _)| format!("'{}'", self.layers[*l].name))
                        .collect();
                    return Err(Error::invalid(format!(
                        "the edges form a cycle of {} layers: {}",
                        path.len() - start,
                        names.join(" to ")
                    )));
                }
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    OnPath,
    Placed,
}

fn layer<'a>(reader: &Reader<'a>, xml: Xml<'a>) -> Result<Layer<'a>> {
    // Whatever is missing, the message says as much of the place as the file tells.
    let known = || -> String {
        let show = |name| xml.attribute(name).map(shorten).unwrap_or_else(|| "?".into());
        format!("layer '{}' ({}, id {})", show("name"), show("type"), show("id"))
    };
    let read = || -> Result<Layer<'a>> {
        let id = required_number(xml, "id")?;
        let (name, kind) = (required(xml, "name")?, required(xml, "type")?);
        let version = required(xml, "version").map_err(|e| {
            Error::new(e.kind(), format!("{}; an execution graph has none and is not a model", e.message()))
        })?;
        Ok(Layer {
            xml,
            id,
            name,
            kind,
            version,
            class: super::lookup::classify(reader.registry, kind, version),
            inputs: ports(xml, "input")?,
            outputs: ports(xml, "output")?,
            sources: vec![],
            bodies: vec![],
        })
    };
    read().map_err(|e| e.at(known()))
}

fn ports<'a>(layer: Xml<'a>, side: &str) -> Result<Ports<'a>> {
    let Some(parent) = child(layer, side) else { return Ok(Ports::default()) };
    let list: Vec<Xml<'a>> = named(parent, "port").collect();
    let mut positions = Vec::with_capacity(list.len());
    for (position, port) in list.iter().enumerate() {
        let read = required_number(*port, "id").and_then(|id| check_port(*port).map(|()| id));
        positions.push((read.map_err(|e| e.at(format!("{side} port {position}")))?, position));
    }
    positions.sort_unstable();
    match positions.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(Error::invalid(format!("two {side} ports have the id {}", pair[0].0))),
        None => Ok(Ports { list, positions }),
    }
}

// Types and shapes are inferred anew, but a file that contradicts the format itself is not trusted with the rest.
fn check_port(port: Xml<'_>) -> Result<()> {
    declared_type(port)?;
    declared_dims(port).map(|_| ())
}

/// The `precision` of a port, if it has one.
pub(crate) fn declared_type(port: Xml<'_>) -> Result<Option<ElementType>> {
    Ok(port.attribute("precision").map(str::parse).transpose()?)
}

/// The dimensions of a port; -1 stands for any.
pub(crate) fn declared_dims(port: Xml<'_>) -> Result<Vec<Dim>> {
    let dim = |xml: Xml<'_>| {
        let text = xml.text().unwrap_or("").trim();
        match text.parse::<i64>() {
            Ok(-1) => Ok(Dim::ANY),
            Ok(n) if n >= 0 => Ok(Dim::known(n)),
            _ => Err(Error::invalid(format!("a dim is -1 or an integer from 0 on, found `{}`", shorten(text)))),
        }
    };
    named(port, "dim").map(dim).collect()
}

impl Ports<'_> {
    /// The place of the port with this id.
    pub(crate) fn position(&self, id: u64) -> Option<usize> {
        let at = self.positions.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(self.positions[at].1)
    }
    /// Ids for messages.
    pub(crate) fn ids(&self) -> String {
        match self.positions.is_empty() {
            true => "none".to_string(),
            false => self.positions.iter().take(16).map(|(id, _)| id.to_string()).collect::<Vec<_>>().join(", "),
        }
    }
}

fn position_of(layer: &Layer<'_>, ports: &Ports<'_>, side: &str, edge: Xml<'_>, attribute: &str) -> Result<usize> {
    let id: u64 = required_number(edge, attribute)?;
    ports.position(id).ok_or_else(|| {
        Error::invalid(format!("{} has no {side} port {id}, its {side} ports are: {}", layer.location(), ports.ids()))
    })
}
