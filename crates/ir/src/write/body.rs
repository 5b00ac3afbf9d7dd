//! Bodies and their port maps. One outer port may stand only once in a port map (readers keep one entry an id), so an outer
//! value that feeds two body parameters gets a second port.

use super::{Writer, info};
use crate::read::beside;
use carafe_graph::{BodyInput, Error, Model, Node, NodeId, Result, Slicing, Value};
use std::collections::{HashMap, HashSet};

/// The input ports of a layer, and which of them each input of each body reads.
#[derive(Debug)]
pub(super) struct OuterPorts {
    pub(super) inputs: Vec<Value>,
    bodies: Vec<Vec<Option<usize>>>,
}

impl OuterPorts {
    pub(super) fn of(node: &Node) -> Result<OuterPorts> {
        let mut ports = OuterPorts { inputs: node.inputs().to_vec(), bodies: vec![] };
        for (_, body) in node.op().bodies() {
            let mut seen = HashSet::new();
            let mut port = |input: &BodyInput| -> Result<Option<usize>> {
                let Some(outer) = input.outer else { return Ok(None) };
                if seen.insert(outer) {
                    return Ok(Some(outer));
                }
                let missing = || Error::invalid(format!("the body reads input {outer}, which the node has not"));
                ports.inputs.push(*node.inputs().get(outer).ok_or_else(missing)?);
                Ok(Some(ports.inputs.len() - 1))
            };
            let outer_ports = body.inputs.iter().map(&mut port).collect::<Result<_>>()?;
            ports.bodies.push(outer_ports);
        }
        Ok(ports)
    }
}

impl Writer<'_> {
    pub(super) fn bodies(&mut self, node: &Node, outer: &OuterPorts, depth: usize) -> Result<()> {
        for ((name, body), outer_ports) in node.op().bodies().into_iter().zip(&outer.bodies) {
            let write = self.body(name, body, outer_ports, outer.inputs.len(), depth);
            write.map_err(|e| e.at(format!("`{name}`")))?;
        }
        Ok(())
    }

    fn body(
        &mut self,
        name: &str,
        body: &carafe_graph::Body,
        outer_ports: &[Option<usize>],
        n_inputs: usize,
        depth: usize,
    ) -> Result<()> {
        let mut outer: Vec<usize> = body.outputs.iter().map(|o| o.outer).collect();
        outer.sort_unstable();
        if outer.iter().copied().ne(0..outer.len()) {
            return Err(Error::invalid(format!("expected the body to give each output once, found outputs {outer:?}")));
        }
        body.check(n_inputs)?;
        // The body is written after its port map, which needs the body's layer ids.
        let ids = BodyIds::of(&body.model)?;
        let map = beside(name, "port_map");
        self.xml.open(&map, &[])?;
        for (input, port) in body.inputs.iter().zip(outer_ports) {
            if let Some(port) = port {
                let purpose = (body.current_iteration == Some(input.parameter)).then_some("current_iteration");
                self.entry("input", &port.to_string(), ids.parameter(input.parameter), input.slicing, purpose)?;
            }
        }
        let connected =
            |p: usize| body.inputs.iter().zip(outer_ports).any(|(i, port)| i.parameter == p && port.is_some());
        if let Some(p) = body.current_iteration.filter(|p| !connected(*p)) {
            self.entry("input", "-1", ids.parameter(p), None, Some("current_iteration"))?;
        }
        for output in &body.outputs {
            let port = (n_inputs + output.outer).to_string();
            self.entry("output", &port, ids.result(output.result), output.slicing, None)?;
        }
        if let Some(r) = body.execution_condition {
            self.entry("output", "-1", ids.result(r), None, Some("execution_condition"))?;
        }
        self.xml.close(&map);
        if body.inputs.iter().any(|i| i.back_edge.is_some()) {
            let edges = beside(name, "back_edges");
            self.xml.open(&edges, &[])?;
            for input in &body.inputs {
                if let Some(result) = input.back_edge {
                    let (from, to) = (ids.result(result).to_string(), ids.parameter(input.parameter).to_string());
                    self.xml.empty("edge", &[("from-layer", &from), ("to-layer", &to)])?;
                }
            }
            self.xml.close(&edges);
        }
        self.xml.open(name, &[])?;
        self.net(&body.model, depth + 1)?;
        info::write_net(&mut self.xml, &body.model.rt_info)?;
        self.xml.close(name);
        Ok(())
    }

    fn entry(
        &mut self,
        side: &str,
        outer: &str,
        inner: usize,
        slicing: Option<Slicing>,
        purpose: Option<&str>,
    ) -> Result<()> {
        let mut attributes: Vec<(&str, String)> =
            vec![("external_port_id", outer.to_string()), ("internal_layer_id", inner.to_string())];
        if let Some(s) = slicing {
            attributes.insert(0, ("axis", s.axis.to_string()));
            let rest = [("start", s.start), ("end", s.end), ("stride", s.stride), ("part_size", s.part_size)];
            attributes.extend(rest.map(|(name, n)| (name, n.to_string())));
        }
        attributes.extend(purpose.map(|p| ("purpose", p.to_string())));
        let attributes: Vec<(&str, &str)> = attributes.iter().map(|(n, v)| (*n, v.as_str())).collect();
        self.xml.empty(side, &attributes)
    }
}

/// Layer ids that the parameters and results of a body will get.
struct BodyIds<'m> {
    model: &'m Model,
    ids: HashMap<NodeId, usize>,
}

impl<'m> BodyIds<'m> {
    fn of(model: &'m Model) -> Result<BodyIds<'m>> {
        let order = super::layer_order(model)?;
        Ok(BodyIds { model, ids: order.into_iter().enumerate().map(|(i, id)| (id, i)).collect() })
    }
    fn parameter(&self, port: usize) -> usize {
        self.ids[&self.model.parameters()[port]]
    }
    fn result(&self, port: usize) -> usize {
        self.ids[&self.model.results()[port]]
    }
}
