//! Looks at values inside of a model while it runs over the data.

use carafe_device::Properties;
use carafe_frontend::Progress;
use carafe_graph::{Error, Model, Parameter, Result, Value};
use carafe_runtime::{CompiledModel, Core, InferRequest};
use carafe_tensor::Tensor;

/// Data that a model is calibrated with.
pub trait Samples {
    /// How many samples there are.
    fn count(&self) -> usize;
    /// The inputs of one sample, in the order of the model.
    fn sample(&self, index: usize) -> Result<Vec<Tensor>>;
}

/// Bytes of the values that are looked at in one run.
const BYTES_AT_ONCE: usize = 512 << 20;
/// Values that are looked at in one run when their sizes are not known.
const UNKNOWN_AT_ONCE: usize = 24;

/// Compiles models for the device that calibrates, and runs them over the data.
pub(crate) struct Runner<'a> {
    core: &'a Core,
    device: &'a str,
    properties: Properties,
    pub samples: &'a dyn Samples,
    pub progress: Progress<'a>,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(core: &'a Core, device: &'a str, samples: &'a dyn Samples, progress: Progress<'a>) -> Runner<'a> {
        let mut properties = Properties::new();
        let known = core.get_property(device, "SUPPORTED_PROPERTIES").unwrap_or_default();
        for (name, value) in [("INFERENCE_PRECISION_HINT", "f32"), ("EXECUTION_MODE_HINT", "ACCURACY")] {
            if known.split([' ', ',', ':', ';']).any(|word| word == name) {
                properties.set(name, value);
            }
        }
        Runner { core, device, properties, samples, progress }
    }

    pub(crate) fn compile(&self, model: &Model) -> Result<CompiledModel> {
        self.core.compile_model(model, self.device, &self.properties)
    }

    /// Calls `see` with every value of every sample: which value, and the tensor.
    pub(crate) fn observe(
        &self,
        model: &Model,
        values: &[Value],
        what: &str,
        see: &mut dyn FnMut(usize, &Tensor) -> Result<()>,
    ) -> Result<()> {
        let parts = parts(model, values);
        let (mut done, total) = (0, parts.len() * self.samples.count());
        for part in parts {
            let probe = Probe::new(self, model, part.iter().map(|&i| values[i]).collect())?;
            for s in 0..self.samples.count() {
                self.progress.tell(done, total, what);
                for (tensor, &i) in probe.run(&self.samples.sample(s)?)?.iter().zip(&part) {
                    see(i, tensor)?;
                }
                done += 1;
            }
        }
        Ok(())
    }
}

/// A model that gives some of its inner values.
pub(crate) struct Probe {
    /// What is an input of the model itself is taken from there.
    sources: Vec<Source>,
    request: InferRequest,
    stateful: bool,
}

enum Source {
    Input(usize),
    Output(usize),
}

impl Probe {
    pub(crate) fn new(runner: &Runner<'_>, model: &Model, values: Vec<Value>) -> Result<Probe> {
        let mut model = model.clone();
        for result in model.results().to_vec() {
            model.remove(result)?;
        }
        let mut sources = Vec::new();
        for (i, v) in values.into_iter().enumerate() {
            let input = model.parameters().iter().position(|p| *p == v.node);
            sources.push(match input {
                Some(input) if model.node(v.node).op().is::<Parameter>() => Source::Input(input),
                _ => {
                    model.result(&format!("probe{i}"), v)?;
                    Source::Output(model.results().len() - 1)
                }
            });
        }
        model.prune();
        // A model without outputs is none.
        if model.results().is_empty() {
            let first = *model.parameters().first().ok_or_else(|| Error::invalid("the model has no inputs"))?;
            model.result("probe", first.into())?;
        }
        let request = runner.compile(&model)?.create_infer_request();
        Ok(Probe { sources, request, stateful: model.is_stateful() })
    }

    pub(crate) fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        if self.stateful {
            self.request.reset_state()?;
        }
        self.request.infer(inputs)?;
        let tensor = |source: &Source| match source {
            Source::Input(i) => Ok(inputs[*i].clone()),
            Source::Output(i) => self.request.output(*i),
        };
        self.sources.iter().map(tensor).collect()
    }
}

/// Cuts a list of values into parts whose tensors fit into memory together.
pub(crate) fn parts(model: &Model, values: &[Value]) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut left = 0;
    for (i, v) in values.iter().enumerate() {
        let fact = model.fact(*v);
        let bytes = fact.shape.elements().and_then(|n| fact.ty.byte_len(n));
        let bytes = bytes.unwrap_or(BYTES_AT_ONCE / UNKNOWN_AT_ONCE);
        match parts.last_mut() {
            Some(part) if bytes <= left => part.push(i),
            _ => {
                parts.push(vec![i]);
                left = BYTES_AT_ONCE;
            }
        }
        left = left.saturating_sub(bytes);
    }
    parts
}
