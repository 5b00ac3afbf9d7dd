//! The model as it is and the model with many rows, and requests that meet in the collector between them.

use super::collector::{Answer, Collector};
use super::{NAME, TABLE};
use crate::auto::optimal_requests;
use crate::bindings::{Bindings, check_cancel, infer_for, not_inferred};
use carafe_device::{CancelFlag, CompiledModel, InferRequest, Mutability, NodeProfile, Port, Properties};
use carafe_graph::{Error, Model, Result};
use carafe_tensor::Tensor;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) struct Compiled {
    name: String,
    device: String,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    single: Arc<dyn CompiledModel>,
    /// So many requests at once fill all batches; asynchronous ones get as many threads, for each waits for the others.
    n_optimal: usize,
    collector: Collector,
    properties: Properties,
    n_alone: AtomicUsize,
}

impl Compiled {
    pub(crate) fn new(
        model: &Model,
        device: String,
        n: usize,
        single: Arc<dyn CompiledModel>,
        many: Arc<dyn CompiledModel>,
        properties: &Properties,
    ) -> Compiled {
        let timeout = properties.or_default(TABLE, "AUTO_BATCH_TIMEOUT").and_then(|t| t.trim().parse().ok());
        Compiled {
            name: model.name.clone(),
            device,
            inputs: Port::inputs_of(model),
            outputs: Port::outputs_of(model),
            single,
            n_optimal: n * optimal_requests(&*many),
            collector: Collector::new(n, Duration::from_millis(timeout.unwrap_or(1000)), many),
            properties: properties.clone(),
            n_alone: AtomicUsize::new(0),
        }
    }
}

/// What a compiled model answers itself.
const OWN: &[&str] = &[
    "NETWORK_NAME",
    "EXECUTION_DEVICES",
    "LOADED_FROM_CACHE",
    "OPTIMAL_NUMBER_OF_INFER_REQUESTS",
    "SUPPORTED_PROPERTIES",
    "AUTO_BATCH_COUNTS",
];

impl CompiledModel for Compiled {
    fn inputs(&self) -> &[Port] {
        &self.inputs
    }
    fn outputs(&self) -> &[Port] {
        &self.outputs
    }
    fn runtime_model(&self) -> Model {
        self.single.runtime_model()
    }
    fn export(&self, _: &mut dyn Write) -> Result<()> {
        Err(super::no_export())
    }
    fn property(&self, name: &str) -> Result<String> {
        match name {
            "NETWORK_NAME" => Ok(self.name.clone()),
            "EXECUTION_DEVICES" => Ok(self.device.clone()),
            "LOADED_FROM_CACHE" => Ok("false".into()),
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS" => Ok(self.n_optimal.to_string()),
            // How many inferences had all rows, and how many requests ran alone.
            "AUTO_BATCH_COUNTS" => {
                let (many, alone) = (&self.collector.n_batches, &self.n_alone);
                Ok(format!("batches={} alone={}", many.load(Ordering::Relaxed), alone.load(Ordering::Relaxed)))
            }
            "SUPPORTED_PROPERTIES" => {
                let table = TABLE.iter().filter(|p| p.mutability == Mutability::ReadWrite).map(|p| p.name);
                Ok(OWN.iter().copied().chain(table).collect::<Vec<_>>().join(" "))
            }
            _ => match (self.properties.get(name), TABLE.iter().find(|p| p.name == name)) {
                (Some(value), _) => Ok(value.to_string()),
                (None, Some(p)) if p.mutability == Mutability::ReadWrite => Ok(p.default.to_string()),
                _ => Err(Error::not_found(format!("a model compiled for {NAME} has no property `{name}`"))),
            },
        }
    }
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest> {
        Box::new(Request {
            bound: Bindings::new(self.inputs.len(), self.outputs.len()),
            alone: None,
            outputs: vec![],
            profile: vec![],
            cancel: CancelFlag::new(),
            compiled: self,
        })
    }
}

struct Request {
    compiled: Arc<Compiled>,
    bound: Bindings,
    /// For running without others; made when first needed.
    alone: Option<Box<dyn InferRequest>>,
    outputs: Vec<Tensor>,
    profile: Vec<NodeProfile>,
    cancel: CancelFlag,
}

impl Request {
    fn run_alone(&mut self, inputs: Vec<Tensor>) -> Result<(Vec<Tensor>, Vec<NodeProfile>)> {
        let single = &self.compiled.single;
        let request = self.alone.get_or_insert_with(|| single.clone().create_request());
        for (i, tensor) in inputs.into_iter().enumerate() {
            request.set_input(i, tensor)?;
        }
        infer_for(&self.cancel, &mut **request)?;
        self.compiled.n_alone.fetch_add(1, Ordering::Relaxed);
        let n = self.compiled.outputs.len();
        let outputs = (0..n).map(|i| Ok(request.output(i)?.clone())).collect::<Result<_>>()?;
        Ok((outputs, request.profile()))
    }
}

impl InferRequest for Request {
    fn set_input(&mut self, index: usize, tensor: Tensor) -> Result<()> {
        self.bound.set_input(&self.compiled.inputs, index, tensor)
    }
    fn input(&self, index: usize) -> Option<&Tensor> {
        self.bound.input(index)
    }
    fn set_output(&mut self, index: usize, tensor: Tensor) -> Result<()> {
        self.bound.set_target(&self.compiled.outputs, index, tensor)
    }
    fn infer(&mut self) -> Result<()> {
        self.cancel.clear();
        self.run_stage(0)
    }
    fn run_stage(&mut self, _: usize) -> Result<()> {
        self.outputs.clear();
        let inputs = self.bound.all_inputs(&self.compiled.inputs)?;
        check_cancel(&self.cancel)?;
        let (outputs, profile) = match self.compiled.collector.join(inputs.clone(), &self.cancel)? {
            Answer::Rows(outputs, profile) => (outputs, profile),
            Answer::Alone => self.run_alone(inputs)?,
        };
        let handed = outputs.into_iter().enumerate().map(|(i, t)| self.bound.handed_out(i, t));
        self.outputs = handed.collect::<Result<_>>()?;
        self.profile = profile;
        Ok(())
    }
    fn output(&self, index: usize) -> Result<&Tensor> {
        self.outputs.get(index).ok_or_else(|| match self.outputs.is_empty() {
            true => not_inferred(),
            false => Error::not_found(format!("the model has no output {index}")),
        })
    }
    fn profile(&self) -> Vec<NodeProfile> {
        self.profile.clone()
    }
    fn variables(&self) -> Vec<String> {
        vec![]
    }
    fn variable(&self, id: &str) -> Result<Option<Tensor>> {
        Err(Error::not_found(format!("no variable `{id}`; the model has none")))
    }
    fn set_variable(&mut self, id: &str, _: Tensor) -> Result<()> {
        self.variable(id).map(|_| ())
    }
    fn reset_variables(&mut self) {}
    fn cancel_flag(&self) -> CancelFlag {
        self.cancel.clone()
    }
}
