//! A model ready to run: passes applied, weights packed, plans made for the shapes that were seen.

use crate::lower::lower;
use crate::pieces::{latest, split};
use crate::plan::{Action, Plan};
use crate::properties::{Settings, TABLE, check, metric};
use crate::request::Request;
use crate::steps::BuildCx;
use crate::threads::Streams;
use crate::weights::{Packers, Weights};
use carafe_device::{
    CompiledModel, InferRequest, Kernel, Port, Properties, settle_kernels, tell_kernel_troubles, use_kernels,
};
use carafe_graph::{Error, FrameworkNode, Model, Notes, OpRef, Parameter, Result, run_passes};
use carafe_kernels::Isa;
use carafe_tensor::{PartialShape, Tensor};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Write;
use std::sync::{Arc, Mutex};

/// Plans of one model that are kept; the oldest goes when another is made.
const MOST_PLANS: usize = 64;

/// What makes plans, for the model and for the bodies in it.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) model: Model,
    pub(crate) weights: Weights,
    pub(crate) threads: usize,
    exact: bool,
    /// Whether kernels take denormal numbers as zero.
    pub(crate) flush_denormals: bool,
    plans: Mutex<PlanCache>,
    bodies: Mutex<KnownBodies>,
}

/// Bodies that have plans. Plans go by a body's address, so the operation that holds it is kept for good: an address that
/// was given to another body would find the wrong plan.
#[derive(Debug, Default)]
struct KnownBodies {
    addresses: HashSet<usize>,
    holders: Vec<OpRef>,
}

/// Operations with bodies that are kept; passes make new ones for new shapes, and those beyond this are evaluated.
const MOST_HOLDERS: usize = 256;

/// The model (0, or the address of a body) and the shapes of its inputs.
type PlanKey = (usize, Vec<Vec<usize>>);

/// Plans by what they are for.
#[derive(Debug, Default)]
pub(crate) struct PlanCache {
    by_shapes: HashMap<PlanKey, Arc<Plan>>,
    order: Vec<PlanKey>,
}

impl PlanCache {
    pub(crate) fn get(&self, key: &PlanKey) -> Option<Arc<Plan>> {
        self.by_shapes.get(key).cloned()
    }
    /// Keeps a plan, or gives the one that another inference put there meanwhile.
    pub(crate) fn put(&mut self, key: PlanKey, plan: Arc<Plan>) -> Arc<Plan> {
        if let Some(there) = self.get(&key) {
            return there;
        }
        if self.order.len() >= MOST_PLANS {
            let oldest = self.order.remove(0);
            self.by_shapes.remove(&oldest);
        }
        self.order.push(key.clone());
        self.by_shapes.insert(key, plan.clone());
        plan
    }
    /// The last plan of a model.
    pub(crate) fn latest(&self, which: usize) -> Option<Arc<Plan>> {
        self.get(self.order.iter().rev().find(|k| k.0 == which)?)
    }
}

impl Engine {
    /// The plan for inputs of these shapes.
    pub(crate) fn plan(&self, inputs: &[Tensor]) -> Result<Arc<Plan>> {
        self.plan_of(&self.model, 0, inputs)
    }
    /// The plan of a body; `None` for one that is not known to stay where it is.
    pub(crate) fn body_plan(&self, body: &Model, parameters: &[Tensor]) -> Result<Option<Arc<Plan>>> {
        let address = body as *const Model as usize;
        let known = self.bodies.lock().unwrap_or_else(|e| e.into_inner()).addresses.contains(&address);
        if known { self.plan_of(body, address, parameters).map(Some) } else { Ok(None) }
    }
    // Keeps the operations of a plan that have bodies.
    pub(crate) fn hold_bodies(&self, plan: &Plan) {
        let mut known = self.bodies.lock().unwrap_or_else(|e| e.into_inner());
        for step in &plan.steps {
            let Action::Eval(op) = &step.action else { continue };
            if op.has_body() && known.holders.len() < MOST_HOLDERS {
                known.addresses.extend(op.bodies().iter().map(|(_, body)| &body.model as *const Model as usize));
                known.holders.push(op.clone());
            }
        }
    }

    fn plan_of(&self, model: &Model, which: usize, inputs: &[Tensor]) -> Result<Arc<Plan>> {
        let key = (which, inputs.iter().map(|t| t.shape().to_vec()).collect::<Vec<_>>());
        let plans = || self.plans.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(plan) = plans().get(&key) {
            return Ok(plan);
        }
        let plan = Arc::new(self.make_plan(model, inputs, 0)?);
        self.hold_bodies(&plan);
        Ok(plans().put(key, plan))
    }

    /// A plan for these inputs; `depth` pieces come before it.
    pub(crate) fn make_plan(&self, model: &Model, inputs: &[Tensor], depth: usize) -> Result<Plan> {
        let known = |&p: &carafe_graph::NodeId| model.fact(p.into()).shape.is_static();
        if model.parameters().iter().all(known)
            && !model
                .parameters()
                .iter()
                .zip(inputs)
                .any(|(&p, t)| model.fact(p.into()).shape.to_static().as_deref() != Some(t.shape()))
        {
            return self.lower(model, depth);
        }
        let shapes = inputs.iter().enumerate().map(|(i, t)| (i, PartialShape::of(t.shape()))).collect();
        let open = |&p: &carafe_graph::NodeId| model.fact(p.into()).ty.is_dynamic();
        let reshaped = match model.parameters().iter().any(open) {
            true => typed(model, inputs)?.reshaped(&shapes),
            false => model.reshaped(&shapes),
        };
        // A branch that is never taken may not fit these shapes; then nodes are inferred as they come.
        let Ok(mut model) = reshaped else { return self.lower(model, depth) };
        // With the shapes known, what computes shapes is constant.
        run_passes(&mut model, SHAPED, &mut Notes::default())?;
        settle_kernels(&mut model)?;
        self.lower(&model, depth)
    }

    /// The plan of a model whose shapes are what they are, up to where they depend on data.
    fn lower(&self, model: &Model, depth: usize) -> Result<Plan> {
        let Some(split) = split(model, depth)? else { return self.lower_whole(model) };
        let mut plan = self.lower_whole(&split.head)?;
        plan.tail = Some(Arc::new(split.tail));
        Ok(plan)
    }

    fn lower_whole(&self, model: &Model) -> Result<Plan> {
        lower(
            model,
            &BuildCx {
                isa: Isa::best(),
                threads: self.threads,
                exact: self.exact,
                weights: &self.weights,
                packers: Packers::new(self.threads),
            },
        )
    }
}

// Parameters of a body may leave their type open; the tensors have one.
fn typed(model: &Model, inputs: &[Tensor]) -> Result<Model> {
    let mut model = model.clone();
    for (&p, t) in model.parameters().to_vec().iter().zip(inputs) {
        let open = model.op_at::<Parameter>(p).filter(|p| p.element_type.is_dynamic()).cloned();
        if let Some(parameter) = open {
            model.set_op(p, Arc::new(Parameter { element_type: t.element_type(), ..parameter }))?;
        }
    }
    Ok(model)
}

/// What kernels are there for: f32, and products of matrices. An extension's kernel chose its types already.
const FOR_KERNELS: &[&dyn carafe_graph::Pass] =
    &[&carafe_passes::ComputeInF32 { keeps: |op| op.is::<carafe_device::KernelOp>() }, &carafe_passes::ExpandEinsum];

/// What a model goes through once its input shapes are known.
const SHAPED: &[&dyn carafe_graph::Pass] = &[
    &carafe_passes::FoldConstants { decompression: true },
    &carafe_passes::ExpandEinsum,
    &carafe_passes::RemoveNoOps,
    &carafe_passes::RemoveUnused,
];

/// Planned memory of an inference above which two threads do more together than each on an inference of its own. With 32 MB of
/// shared cache models of 11 to 34 MB gained 2 to 11 %, those below 7 MB lost.
const LARGE_ARENA: usize = 10 << 20;

#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) engine: Arc<Engine>,
    pub(crate) inputs: Vec<Port>,
    pub(crate) outputs: Vec<Port>,
    pub(crate) settings: Settings,
    pub(crate) streams: Arc<Streams>,
    pub(crate) properties: Properties,
}

impl Compiled {
    pub(crate) fn new(mut model: Model, kernels: &[Arc<dyn Kernel>], properties: &Properties) -> Result<Compiled> {
        check(properties)?;
        refuse_unknown(&model)?;
        let (inputs, outputs) = (Port::inputs_of(&model), Port::outputs_of(&model));
        // An extension's kernel is asked first, before anything is fused into or around its node.
        use_kernels(&mut model, crate::NAME, kernels, &mut Notes::default())?;
        run_passes(&mut model, FOR_KERNELS, &mut Notes::default())?;
        if !Settings::of(properties)?.exact {
            run_passes(&mut model, &[&carafe_passes::IntegersInF32], &mut Notes::default())?;
        }
        run_passes(&mut model, carafe_passes::COMMON_WIDENED, &mut Notes::default())?;
        run_passes(&mut model, carafe_passes::TIDY, &mut Notes::default())?;
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
        let settings = Settings::of(properties)?;
        let streams = Streams::new(&settings);
        let engine = Arc::new(Engine {
            weights,
            threads: settings.threads_each,
            exact: settings.exact,
            flush_denormals: settings.flush_denormals,
            plans: Mutex::default(),
            bodies: Mutex::default(),
            model,
        });
        let mut compiled = Compiled { engine, inputs, outputs, settings, streams, properties: properties.clone() };
        compiled.prepare()?;
        compiled.join_streams()?;
        Ok(compiled)
    }

    /// Bytes that inferences take, a word and a number each: the planned memory of one request for the last shapes, weights in
    /// packed form, constants that steps read as they are.
    fn memory(&self) -> String {
        let plans = self.last_plans();
        let arena: usize = plans.iter().map(|p| p.arena).sum();
        let constants: usize = plans.iter().flat_map(|p| &p.constants).map(Tensor::byte_len).sum();
        let packed = self.engine.weights.bytes();
        format!("arena {arena} packed {packed} constants {constants}")
    }

    // The plan of the model that was made last, and those of its pieces.
    fn last_plans(&self) -> Vec<Arc<Plan>> {
        let plan = self.engine.plans.lock().unwrap_or_else(|e| e.into_inner()).latest(0);
        plan.map_or(vec![], latest)
    }

    // Streams that each work on more memory than their part of the cache get in each other's way.
    fn join_streams(&mut self) -> Result<()> {
        let arena: usize = self.last_plans().iter().map(|p| p.arena).sum();
        if !self.settings.is_free || self.settings.streams < 2 || arena < LARGE_ARENA {
            return Ok(());
        }
        let settings = self.settings.paired();
        let Some(engine) = Arc::get_mut(&mut self.engine) else { return Ok(()) };
        engine.threads = settings.threads_each;
        // The plans for fewer threads go after those for more are made: they hold the packed weights.
        let _before = std::mem::take(&mut engine.plans);
        self.streams = Streams::new(&settings);
        self.settings = settings;
        self.prepare()
    }

    // A model of known shapes is planned right away, so that the first inference is like the others.
    fn prepare(&self) -> Result<()> {
        let engine = &self.engine;
        let shape = |&p: &carafe_graph::NodeId| engine.model.fact(p.into()).shape.to_static();
        let shapes: Option<Vec<Vec<usize>>> = engine.model.parameters().iter().map(shape).collect();
        if let Some(shapes) = shapes {
            let plan = Arc::new(engine.lower(&engine.model, 0)?);
            engine.hold_bodies(&plan);
            let key = (0, shapes);
            engine.plans.lock().unwrap_or_else(|e| e.into_inner()).put(key, plan);
            // The packed form is what runs; the pages of the file can go.
            for (_, node) in engine.model.nodes() {
                if let Some(t) = node.op().get::<carafe_graph::Constant>().and_then(|_| node.outputs()[0].fact.tensor())
                {
                    t.release();
                }
            }
        }
        Ok(())
    }
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

impl CompiledModel for Compiled {
    fn inputs(&self) -> &[Port] {
        &self.inputs
    }
    fn outputs(&self) -> &[Port] {
        &self.outputs
    }
    fn runtime_model(&self) -> Model {
        let mut model = self.engine.model.clone();
        tell_kernel_troubles(&mut model);
        let plans = self.last_plans();
        let mut rows: HashMap<String, (usize, String)> = HashMap::new();
        for (place, step) in plans.iter().flat_map(|p| &p.steps).enumerate() {
            rows.insert(step.name.clone(), (place, step.kernel.clone()));
            for name in &step.fused {
                rows.insert(name.clone(), (place, format!("fused into {}", step.name)));
            }
        }
        // Nodes without a step of their own stand beside the step that does their work, or where the model has them.
        let mut order: Vec<(usize, carafe_graph::NodeId, String)> = vec![];
        let mut last = 0;
        for id in model.topological_order().unwrap_or_default() {
            let (place, kernel) =
                rows.get(model.node(id).name()).cloned().unwrap_or_else(|| (last, "optimized out".into()));
            last = place;
            order.push((place, id, kernel));
        }
        order.sort_by_key(|(place, ..)| *place);
        for (place, (_, id, kernel)) in order.into_iter().enumerate() {
            let info = model.rt_info_mut(id);
            for (key, value) in [("execOrder", place.to_string()), ("primitiveType", kernel)] {
                info.set(key, "0", vec![("value".into(), value)]);
            }
        }
        model
    }
    fn export(&self, to: &mut dyn Write) -> Result<()> {
        crate::blob::export(self, to)
    }
    fn property(&self, name: &str) -> Result<String> {
        match name {
            "NETWORK_NAME" => Ok(self.engine.model.name.clone()),
            "EXECUTION_DEVICES" => Ok(crate::NAME.into()),
            "LOADED_FROM_CACHE" => Ok("false".into()),
            "CPU_MEMORY_STATISTICS" => Ok(self.memory()),
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS" => Ok(self.settings.streams.to_string()),
            // What was asked for, or else what came of it.
            "NUM_STREAMS" if self.properties.get(name).is_none() => Ok(self.settings.streams.to_string()),
            "INFERENCE_NUM_THREADS" if self.properties.get(name).is_none() => {
                Ok((self.settings.streams * self.settings.threads_each).to_string())
            }
            _ => match self.properties.or_default(TABLE, name) {
                Some(value) if !value.is_empty() => Ok(value.to_string()),
                _ => metric(name),
            },
        }
    }
    fn create_request(self: Arc<Self>) -> Box<dyn InferRequest> {
        Box::new(Request::new(self))
    }
}
