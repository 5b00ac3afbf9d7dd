//! A model ready to run: passes applied, programs built, plans made for the shapes that were seen.

use crate::Kind;
use crate::backend::Gpu;
use crate::custom::CustomKernels;
use crate::machine::Found;
use crate::properties::{self, PRECISION, RECORDS, Settings, metric, precision, table};
use crate::remote::ClContext;
use crate::streams::{Stream, streams};
use crate::weights::Weights;
use carafe_custom_kernels::KernelFile;
use carafe_device::{CompiledModel, InferRequest, Mutability, Port, Properties, RemoteContext};
use carafe_graph::{Error, FrameworkNode, Model, Notes, Result, run_passes};
use carafe_plan::{Planner, Prepared, Request, SHAPED, Streams, annotate};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

/// What kernels are there for: f32, and products of matrices.
const FOR_KERNELS: &[&dyn carafe_graph::Pass] =
    &[&carafe_passes::ComputeInF32 { keeps: |_| false }, &carafe_passes::ExpandEinsum];

#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) kind: Kind,
    found: Arc<Found>,
    pub(crate) planner: Arc<Planner<Gpu>>,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    pub(crate) settings: Settings,
    pub(crate) streams: Arc<Streams<Arc<Stream>>>,
    pub(crate) properties: Properties,
    /// Where kernels of users are from.
    pub(crate) kernels: Vec<KernelFile>,
}

/// The passes that a model goes through.
pub(crate) fn prepare(model: &mut Model) -> Result<()> {
    let notes = &mut Notes::default();
    run_passes(model, FOR_KERNELS, notes)?;
    run_passes(model, carafe_passes::COMMON_WIDENED, notes)?;
    run_passes(model, carafe_passes::TIDY, notes)?;
    run_passes(model, carafe_passes::FUSE, notes)?;
    run_passes(model, carafe_passes::DEVICE_FUSE, notes)?;
    run_passes(model, SHAPED, notes)?;
    model.infer()
}

impl Compiled {
    pub(crate) fn new(
        kind: Kind,
        mut model: Model,
        properties: &Properties,
        custom: &CustomKernels,
    ) -> Result<Compiled> {
        let settings = Settings::of(kind, properties)?;
        let found = properties::device(properties)?;
        found.open()?;
        refuse_unknown(kind, &model)?;
        let (inputs, outputs) = (Port::inputs_of(&model), Port::outputs_of(&model));
        custom.apply(&mut model)?;
        prepare(&mut model)?;
        Ok(Compiled::of(kind, found, model, inputs, outputs, settings, properties)?.with_kernels(custom))
    }

    pub(crate) fn with_kernels(mut self, custom: &CustomKernels) -> Compiled {
        self.kernels = custom.files().to_vec();
        self
    }

    /// Of a model that went through the passes.
    pub(crate) fn of(
        kind: Kind,
        found: Arc<Found>,
        model: Model,
        inputs: Vec<Port>,
        outputs: Vec<Port>,
        settings: Settings,
        properties: &Properties,
    ) -> Result<Compiled> {
        let machine = found.open()?;
        let streams = streams(&machine, settings.streams, settings.profiled)?;
        let weights = Arc::new(Weights::of(&model, &machine));
        let records = settings.records && !settings.profiled && machine.context.has_command_buffers();
        let folder = settings.folder.clone();
        let backend = Gpu { machine, weights, half: settings.half, dry: false, folder, records };
        let planner = Arc::new(Planner::new(model, backend));
        planner.prepare()?;
        let (properties, kernels) = (properties.clone(), vec![]);
        Ok(Compiled { kind, found, planner, inputs, outputs, settings, streams, properties, kernels })
    }

    /// Bytes that inferences take, a word and a number each.
    fn memory(&self) -> String {
        let arena: usize = self.planner.last_plans().iter().map(|p| p.planned_bytes()).sum();
        format!("arena {arena} weights {}", self.planner.backend.weights.bytes())
    }
}

// All of them in one list, with counts.
fn refuse_unknown(kind: Kind, model: &Model) -> Result<()> {
    let mut unknown: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (_, node) in model.nodes().filter(|(_, n)| n.op().is::<FrameworkNode>()) {
        unknown.entry(format!("{} ({})", node.op().type_name(), node.op().opset())).or_default().push(node.name());
    }
    if unknown.is_empty() {
        return Ok(());
    }
    let list: Vec<String> =
        unknown.iter().map(|(t, names)| format!("{} x {t}: `{}`", names.len(), names.join("`, `"))).collect();
    Err(Error::unsupported(format!("device {} cannot run {}", kind.name(), list.join("; "))))
}

impl Prepared<Gpu> for Compiled {
    fn planner(&self) -> &Arc<Planner<Gpu>> {
        &self.planner
    }
    fn inputs(&self) -> &[Port] {
        &self.inputs
    }
    fn outputs(&self) -> &[Port] {
        &self.outputs
    }
    fn streams(&self) -> &Arc<Streams<Arc<Stream>>> {
        &self.streams
    }
    fn is_profiled(&self) -> bool {
        self.settings.profiled
    }
}

impl CompiledModel for Compiled {
    fn inputs(&self) -> &[Port] {
        &self.inputs
    }
    fn outputs(&self) -> &[Port] {
        &self.outputs
    }
    fn runtime_model(&self) -> Model {
        let mut model = self.planner.model.clone();
        annotate(&mut model, &self.planner.last_plans());
        model
    }
    fn export(&self, to: &mut dyn Write) -> Result<()> {
        crate::blob::export(self, to)
    }
    fn property(&self, name: &str) -> Result<String> {
        match name {
            "NETWORK_NAME" => Ok(self.planner.model.name.clone()),
            "EXECUTION_DEVICES" => Ok(self.kind.name().into()),
            "LOADED_FROM_CACHE" => Ok("false".into()),
            "GPU_MEMORY_STATISTICS" => Ok(self.memory()),
            // What came of it.
            RECORDS => Ok(self.planner.backend.records.to_string()),
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS" => Ok(self.settings.streams.to_string()),
            // What was asked for, or else what came of it.
            PRECISION if self.kind == Kind::Vpu || self.properties.get(name).is_none() => {
                Ok(precision(self.kind, &self.properties).into())
            }
            "NUM_STREAMS" if self.properties.get(name).is_none() => Ok(self.settings.streams.to_string()),
            _ => match table(self.kind).iter().find(|p| p.name == name && p.mutability == Mutability::ReadWrite) {
                Some(p) => Ok(self.properties.get(name).unwrap_or(p.default).to_string()),
                None => metric(self.kind, name, &self.found),
            },
        }
    }
    fn context(&self) -> Result<Arc<dyn RemoteContext>> {
        Ok(Arc::new(ClContext::of(self.kind, self.found.clone())?))
    }
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest> {
        Box::new(Request::new(self))
    }
}
