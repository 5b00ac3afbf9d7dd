//! The sub-models, each compiled by its device, and how tensors travel between them.

use super::placement::Part;
use super::report::Report;
use super::request::Request;
use super::split::{Source, Split};
use super::{NAME, TABLE, blob};
use carafe_device::{CompiledModel, InferRequest, Port, Properties};
use carafe_graph::{AttrMap, Error, FrameworkNode, Model, NodeId, Parameter, Result, ResultOp, Value};
use carafe_tensor::Tensor;
use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::Arc;

pub(crate) struct Sub {
    pub(crate) name: String,
    pub(crate) device: String,
    pub(crate) compiled: Arc<dyn CompiledModel>,
    /// For writing it as IR where the device cannot export; absent when the device's own form was read.
    pub(crate) model: Option<Model>,
    pub(crate) exports: bool,
    pub(crate) sources: Vec<Source>,
}

pub(crate) struct Compiled {
    pub(crate) name: String,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    pub(crate) subs: Vec<Sub>,
    pub(crate) sources: Vec<Source>,
    pub(crate) constants: Vec<Tensor>,
    pub(crate) report: Report,
    pub(crate) properties: Properties,
}

/// Whether a device says that its compiled models can be written and read.
pub(crate) fn can_export(part: &Part) -> bool {
    let list = part.device.metric("OPTIMIZATION_CAPABILITIES").unwrap_or_default();
    list.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|w| w == "EXPORT_IMPORT")
}

/// What a device compiles a sub-model with.
pub(crate) fn part_properties(part: &Part, n_subs: usize) -> Properties {
    let mut properties = part.properties.clone();
    // The pieces of several requests share the device one by one, or they would wait for each other in a circle.
    if n_subs > 1 && part.device.properties().iter().any(|p| p.name == "EXCLUSIVE_ASYNC_REQUESTS") {
        properties.set("EXCLUSIVE_ASYNC_REQUESTS", true);
    }
    properties
}

impl Compiled {
    pub(crate) fn new(
        model: &Model,
        parts: &[Part],
        split: Split,
        report: Report,
        properties: &Properties,
    ) -> Result<Compiled> {
        let n_subs = split.subs.len();
        let mut subs = Vec::with_capacity(n_subs);
        for sub in split.subs {
            let part = &parts[sub.device];
            let compiled = part
                .device
                .compile(&sub.model, &part_properties(part, n_subs))
                .map_err(|e| e.at(format!("sub-model `{}` on device `{}`", sub.model.name, part.name)))?;
            subs.push(Sub {
                name: sub.model.name.clone(),
                device: part.name.clone(),
                compiled,
                model: Some(sub.model),
                exports: can_export(part),
                sources: sub.sources,
            });
        }
        let compiled = Compiled {
            name: model.name.clone(),
            inputs: Port::inputs_of(model),
            outputs: Port::outputs_of(model),
            subs,
            sources: split.outputs,
            constants: split.constants,
            report,
            properties: properties.clone(),
        };
        compiled.check()?;
        Ok(compiled)
    }

    /// Whether every source names something that is there and comes before.
    pub(crate) fn check(&self) -> Result<()> {
        let exists = |s: &Source, before: usize| match *s {
            Source::Input(i) => i < self.inputs.len(),
            Source::Sub { sub, port } => sub < before && port < self.subs[sub].compiled.outputs().len(),
            Source::Constant(i) => before == self.subs.len() && i < self.constants.len(),
        };
        for (i, sub) in self.subs.iter().enumerate() {
            let n = sub.compiled.inputs().len();
            if n != sub.sources.len() {
                return Err(Error::invalid(format!(
                    "device `{}` made {n} inputs of the {} of sub-model `{}`",
                    sub.device,
                    sub.sources.len(),
                    sub.name
                )));
            }
            if !sub.sources.iter().all(|s| exists(s, i) && !matches!(s, Source::Constant(_))) {
                return Err(Error::invalid(format!("sub-model `{}` reads what no earlier one gives", sub.name)));
            }
        }
        match self.sources.len() == self.outputs.len() && self.sources.iter().all(|s| exists(s, self.subs.len())) {
            true => Ok(()),
            false => Err(Error::invalid("an output of the model comes from no sub-model")),
        }
    }

    fn devices(&self) -> Vec<&str> {
        let mut seen = HashSet::new();
        self.subs.iter().map(|s| s.device.as_str()).filter(|d| seen.insert(*d)).collect()
    }
}

impl CompiledModel for Compiled {
    fn inputs(&self) -> &[Port] {
        &self.inputs
    }
    fn outputs(&self) -> &[Port] {
        &self.outputs
    }
    /// The runtime models of all parts joined where tensors are handed over; every node says its device.
    fn runtime_model(&self) -> Model {
        join(self).unwrap_or_else(|_| Model::new(&self.name))
    }
    fn export(&self, to: &mut dyn Write) -> Result<()> {
        blob::write(self, to)
    }
    fn property(&self, name: &str) -> Result<String> {
        match name {
            "NETWORK_NAME" => Ok(self.name.clone()),
            "EXECUTION_DEVICES" => Ok(self.devices().join(" ")),
            "LOADED_FROM_CACHE" => Ok("false".into()),
            "HETERO_NUMBER_OF_SUBMODELS" => Ok(self.subs.len().to_string()),
            "HETERO_REPORT" => Ok(self.report.to_string()),
            "HETERO_REPORT_JSON" => Ok(self.report.to_json()),
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS" => {
                let of = |s: &Sub| s.compiled.property(name).ok()?.trim().parse::<usize>().ok();
                Ok(self.subs.iter().filter_map(of).max().unwrap_or(1).to_string())
            }
            "SUPPORTED_PROPERTIES" => {
                let table = TABLE.iter().filter(|p| p.mutability == carafe_device::Mutability::ReadWrite);
                let names: Vec<&str> = OWN.iter().copied().chain(table.map(|p| p.name)).collect();
                Ok(names.join(" "))
            }
            _ => match (self.properties.get(name), TABLE.iter().find(|p| p.name == name)) {
                (Some(value), _) => Ok(value.to_string()),
                (None, Some(p)) if p.mutability == carafe_device::Mutability::ReadWrite => Ok(p.default.to_string()),
                _ => Err(Error::not_found(format!("a model compiled for {NAME} has no property `{name}`"))),
            },
        }
    }
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest> {
        Box::new(Request::new(self))
    }
}

/// What a compiled model answers itself.
const OWN: &[&str] = &[
    "NETWORK_NAME",
    "EXECUTION_DEVICES",
    "LOADED_FROM_CACHE",
    "OPTIMAL_NUMBER_OF_INFER_REQUESTS",
    "SUPPORTED_PROPERTIES",
    "HETERO_NUMBER_OF_SUBMODELS",
    "HETERO_REPORT",
    "HETERO_REPORT_JSON",
];

/// What a device shows of a sub-model that runs. Where it shows nothing that fits, the sub-model as it was given to it, or one
/// node in its place when it came from a file: they say on which device they run, but not how.
fn running(sub: &Sub) -> Result<Model> {
    let (n_inputs, n_outputs) = (sub.sources.len(), sub.compiled.outputs().len());
    let shown = sub.compiled.runtime_model();
    if shown.parameters().len() == n_inputs && shown.results().len() == n_outputs {
        return Ok(shown);
    }
    if let Some(model) = &sub.model {
        return Ok(model.clone());
    }
    let mut model = Model::new(&sub.name);
    let mut inputs = Vec::new();
    for port in sub.compiled.inputs() {
        inputs.push(model.parameter(&port.name, port.ty, port.shape.clone())?);
    }
    let whole = FrameworkNode {
        type_name: "Subgraph".into(),
        opset: "execution".into(),
        attrs: AttrMap::default(),
        outputs: sub.compiled.outputs().iter().map(|p| (p.ty, p.shape.clone())).collect(),
        rule: None,
    };
    let node = model.add(&sub.name, whole, &inputs)?;
    for port in 0..n_outputs {
        model.result(&format!("result{port}"), Value { node, port })?;
    }
    Ok(model)
}

fn join(compiled: &Compiled) -> Result<Model> {
    let mut whole = Model::new(&compiled.name);
    let mut names = HashSet::new();
    let mut inputs = Vec::new();
    for port in &compiled.inputs {
        let op = Parameter { shape: port.shape.clone(), element_type: port.ty };
        let id = whole.add(&port.name, op, &[])?;
        names.insert(port.name.clone());
        whole.set_tensor_names(id.into(), port.names.clone());
        inputs.push(Value::from(id));
    }
    let (mut given, mut place): (Vec<Vec<Value>>, usize) = (vec![], 0);
    for (i, sub) in compiled.subs.iter().enumerate() {
        let model = running(sub)?;
        let mut here: HashMap<NodeId, NodeId> = HashMap::new();
        let mut bound: HashMap<NodeId, Value> = HashMap::new();
        for (p, source) in model.parameters().iter().zip(&sub.sources) {
            let value = match *source {
                Source::Input(i) => inputs[i],
                Source::Sub { sub, port } => *given[sub].get(port).ok_or_else(|| Error::invalid("no such output"))?,
                Source::Constant(_) => continue,
            };
            bound.insert(*p, value);
        }
        let at = |v: &Value, here: &HashMap<NodeId, NodeId>| match bound.get(&v.node) {
            Some(value) => Some(*value),
            None => here.get(&v.node).map(|n| Value { node: *n, port: v.port }),
        };
        for id in model.topological_order()? {
            let node = model.node(id);
            if node.op().is::<Parameter>() || node.op().is::<ResultOp>() {
                continue;
            }
            let inputs: Option<Vec<Value>> = node.inputs().iter().map(|v| at(v, &here)).collect();
            let inputs = inputs.ok_or_else(|| Error::invalid("an input is missing"))?;
            let mut name = node.name().to_string();
            while !names.insert(name.clone()) {
                name = format!("subgraph{i}: {name}");
            }
            let new = whole.add_ref(name, node.op_ref().clone(), &inputs)?;
            let info = whole.rt_info_mut(new);
            *info = node.rt_info.clone();
            for (key, value) in [("execOrder", place.to_string()), ("execDevice", sub.device.clone())] {
                info.set(key, "0", vec![("value".into(), value)]);
            }
            place += 1;
            here.insert(id, new);
        }
        let results = model.results().iter().map(|r| at(&model.result_value(*r), &here));
        given.push(results.collect::<Option<_>>().ok_or_else(|| Error::invalid("an output is missing"))?);
    }
    for (i, (source, port)) in compiled.sources.iter().zip(&compiled.outputs).enumerate() {
        let value = match *source {
            Source::Input(i) => inputs[i],
            Source::Sub { sub, port } => *given[sub].get(port).ok_or_else(|| Error::invalid("no such output"))?,
            Source::Constant(c) => whole.constant(&format!("constant{c}"), compiled.constants[c].clone())?,
        };
        let id = whole.result(&format!("result{i}"), value)?;
        whole.set_tensor_names(id.into(), port.names.clone());
    }
    Ok(whole)
}
