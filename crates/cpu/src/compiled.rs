//! A model ready to run: passes applied, weights packed, plans made for the shapes that were seen.

use crate::backend::Cpu;
use crate::properties::{
    GROUP, PRECISION, Settings, TABLE, check, metric, rounded_group, tell_precision, told_precision,
};
use crate::threads::{Needs, Stream, streams, streams_with_room};
use crate::weights::Weights;
use carafe_device::{CompiledModel, InferRequest, Kernel, Port, Properties, tell_kernel_troubles, use_kernels};
use carafe_graph::{Error, FrameworkNode, Model, Notes, Result, run_passes};
use carafe_kernels::Machine;
use carafe_plan::{Planner, Prepared, Request, SHAPED, Streams, annotate};
use carafe_tensor::Tensor;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

/// What kernels are there for: f32, and products of matrices. An extension's kernel chose its types already.
const FOR_KERNELS: &[&dyn carafe_graph::Pass] =
    &[&carafe_passes::ComputeInF32 { keeps: |op| op.is::<carafe_device::KernelOp>() }, &carafe_passes::ExpandEinsum];

/// Finds what is quantized; integer weights beside data that is not become floats, which other passes work on.
const QUANTIZED: &[&dyn carafe_graph::Pass] = &[
    &carafe_passes::fuse::FuseQdq,
    &carafe_passes::fuse::FuseRoundTrip,
    &carafe_passes::fuse::MarkSteps,
    &carafe_passes::fuse::WidenWeights,
];

#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) planner: Arc<Planner<Cpu>>,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    pub(crate) settings: Settings,
    pub(crate) streams: Arc<Streams<Arc<Stream>>>,
    pub(crate) properties: Properties,
}

impl Compiled {
    pub(crate) fn new(mut model: Model, kernels: &[Arc<dyn Kernel>], properties: &Properties) -> Result<Compiled> {
        check(properties)?;
        refuse_unknown(&model)?;
        let (inputs, outputs) = (Port::inputs_of(&model), Port::outputs_of(&model));
        // An extension's kernel is asked first, before anything is fused into or around its node.
        use_kernels(&mut model, crate::NAME, crate::LAYOUTS, kernels, &mut Notes::default())?;
        run_passes(&mut model, FOR_KERNELS, &mut Notes::default())?;
        run_passes(&mut model, &[&carafe_passes::fuse::KeepCompressed], &mut Notes::default())?;
        // Where integers are no faster, weights are better folded to floats.
        if carafe_kernels::Numbers::U8I8.is_fast(carafe_kernels::Isa::best()) {
            // Once before constants are folded, which would round weights for good, and once when scales are constants.
            run_passes(&mut model, &[&carafe_passes::fuse::StoreWeights], &mut Notes::default())?;
            run_passes(&mut model, carafe_passes::COMMON, &mut Notes::default())?;
            run_passes(&mut model, &[&carafe_passes::fuse::StoreWeights], &mut Notes::default())?;
        }
        if !Settings::of(properties)?.strict_f32 {
            run_passes(&mut model, &[&carafe_passes::IntegersInF32], &mut Notes::default())?;
        }
        run_passes(&mut model, carafe_passes::COMMON_WIDENED, &mut Notes::default())?;
        run_passes(&mut model, carafe_passes::TIDY, &mut Notes::default())?;
        run_passes(&mut model, QUANTIZED, &mut Notes::default())?;
        run_passes(&mut model, carafe_passes::FUSE, &mut Notes::default())?;
        run_passes(&mut model, carafe_passes::DEVICE_FUSE, &mut Notes::default())?;
        run_passes(&mut model, SHAPED, &mut Notes::default())?;
        model.infer()?;
        let weights = Weights::of(&model);
        Compiled::of(model, inputs, outputs, weights, properties)
    }

    /// Of a model that went through the passes.
    pub(crate) fn of(
        model: Model,
        inputs: Vec<Port>,
        outputs: Vec<Port>,
        weights: Weights,
        properties: &Properties,
    ) -> Result<Compiled> {
        let mut settings = Settings::of(properties)?;
        tell_precision(properties);
        let backend = Cpu {
            weights: Arc::new(weights),
            threads: settings.threads_each,
            strict_f32: settings.strict_f32,
            flush_denormals: settings.flush_denormals,
            half: settings.half,
            rounded_group: settings.rounded_group,
        };
        let mut planner = Planner::new(model, backend);
        planner.prepare()?;
        if settings.streams_may_be_fewer {
            let threads = settings.streams * settings.threads_each;
            let fewer = streams_with_room(threads, needs(&planner), Machine::here());
            if fewer < settings.streams {
                (settings.streams, settings.threads_each) = (fewer, threads / fewer);
                planner.backend.threads = settings.threads_each;
                // Kept meanwhile for the sake of the packed weights.
                let _plans = planner.take_plans();
                planner.prepare()?;
            }
        }
        let (planner, streams) = (Arc::new(planner), streams(&settings));
        Ok(Compiled { planner, inputs, outputs, settings, streams, properties: properties.clone() })
    }

    /// Bytes that inferences take, a word and a number each: the planned memory of one request for the last shapes, weights in
    /// packed form, constants that steps read as they are.
    fn memory(&self) -> String {
        let plans = self.planner.last_plans();
        let arena: usize = plans.iter().map(|p| p.planned_bytes()).sum();
        let constants: usize = plans.iter().flat_map(|p| &p.constants).map(Tensor::byte_len).sum();
        let packed = self.planner.backend.weights.bytes();
        format!("arena {arena} packed {packed} constants {constants}")
    }
}

/// What an inference needs by the plan there is.
fn needs(planner: &Planner<Cpu>) -> Needs {
    let arena = planner.last_plans().iter().map(|p| p.planned_bytes()).sum();
    Needs { arena, packed: planner.backend.weights.bytes() }
}

// All of them in one list, with counts.
fn refuse_unknown(model: &Model) -> Result<()> {
    let mut unknown: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (_, node) in model.nodes().filter(|(_, n)| n.op().is::<FrameworkNode>()) {
        unknown.entry(format!("{} ({})", node.op().type_name(), node.op().opset())).or_default().push(node.name());
    }
    if unknown.is_empty() {
        return Ok(());
    }
    let list: Vec<String> =
        unknown.iter().map(|(t, names)| format!("{} x {t}: `{}`", names.len(), names.join("`, `"))).collect();
    Err(Error::unsupported(format!("device CPU cannot run {}", list.join("; "))))
}

impl Prepared<Cpu> for Compiled {
    fn planner(&self) -> &Arc<Planner<Cpu>> {
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
        tell_kernel_troubles(&mut model);
        annotate(&mut model, &self.planner.last_plans());
        model
    }
    fn export(&self, to: &mut dyn Write) -> Result<()> {
        crate::blob::export(self, to)
    }
    fn property(&self, name: &str) -> Result<String> {
        match name {
            "NETWORK_NAME" => Ok(self.planner.model.name.clone()),
            "EXECUTION_DEVICES" => Ok(crate::NAME.into()),
            "LOADED_FROM_CACHE" => Ok("false".into()),
            "CPU_MEMORY_STATISTICS" => Ok(self.memory()),
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS" => Ok(self.settings.streams.to_string()),
            // What runs, which may be another type than was asked for.
            PRECISION => Ok(told_precision(&self.properties)),
            GROUP if self.properties.get(name).is_none() => Ok(rounded_group(&self.properties)),
            "NUM_STREAMS" if self.properties.get(name).is_none() => Ok(self.settings.streams.to_string()),
            "INFERENCE_NUM_THREADS" if self.properties.get(name).is_none() => {
                Ok((self.settings.streams * self.settings.threads_each).to_string())
            }
            _ => match self.properties.or_default(&TABLE, name) {
                Some(value) if !value.is_empty() => Ok(value.to_string()),
                _ => metric(name),
            },
        }
    }
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest> {
        Box::new(Request::new(self))
    }
}
