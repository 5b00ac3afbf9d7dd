//! Makes plans of a model and of the bodies in it, one for each set of input shapes, and keeps them.

use crate::backend::Backend;
use crate::lower::lower;
use crate::plan::{Action, Plan};
use crate::segments::{latest, split};
use crate::settled::{any_decides, deciding_inputs, settle};
use carafe_device::settle_kernels;
use carafe_graph::{Constant, Model, NodeId, Notes, OpRef, Parameter, Pass, Result, run_passes};
use carafe_passes::{ExpandEinsum, FoldConstants, RemoveNoOps, RemoveUnused};
use carafe_tensor::{PartialShape, Tensor};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

/// Plans of one model that are kept; the oldest goes when another is made.
const MOST_PLANS: usize = 64;

/// Operations with bodies that are kept; passes make new ones for new shapes, and those beyond this are evaluated.
const MOST_HOLDERS: usize = 256;

/// What a model goes through once its input shapes are known.
pub const SHAPED: &[&dyn Pass] = &[&FoldConstants { decompression: true }, &ExpandEinsum, &RemoveNoOps, &RemoveUnused];

/// A model that went through a device's passes, with its plans.
#[derive(Debug)]
pub struct Planner<B: Backend> {
    /// The model.
    pub model: Model,
    /// What builds its steps.
    pub backend: B,
    plans: Mutex<PlanCache<B>>,
    bodies: Mutex<KnownBodies>,
}

/// Bodies that have plans. Plans go by a body's address, so the operation that holds it is kept for good: an address that
/// was given to another body would find the wrong plan.
#[derive(Debug, Default)]
struct KnownBodies {
    addresses: HashSet<usize>,
    holders: Vec<OpRef>,
}

/// The model (0, or the address of a body), the shapes of its inputs, and behind them the bytes of those that decide.
pub(crate) type PlanKey = (usize, Vec<Vec<usize>>);

/// Plans by what they are for.
#[derive(Debug)]
pub struct PlanCache<B: Backend> {
    by_shapes: HashMap<PlanKey, Arc<Plan<B>>>,
    order: Vec<PlanKey>,
    /// Inputs whose values are part of the key, by the shapes.
    deciding: HashMap<PlanKey, Arc<[usize]>>,
}

impl<B: Backend> Default for PlanCache<B> {
    fn default() -> PlanCache<B> {
        PlanCache { by_shapes: HashMap::new(), order: vec![], deciding: HashMap::new() }
    }
}

impl<B: Backend> PlanCache<B> {
    pub(crate) fn get(&self, key: &PlanKey) -> Option<Arc<Plan<B>>> {
        self.by_shapes.get(key).cloned()
    }
    /// Keeps a plan, or gives the one that another inference put there meanwhile.
    pub(crate) fn put(&mut self, key: PlanKey, plan: Arc<Plan<B>>) -> Arc<Plan<B>> {
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
    pub(crate) fn latest(&self, which: usize) -> Option<Arc<Plan<B>>> {
        self.get(self.order.iter().rev().find(|k| k.0 == which)?)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl<B: Backend> Planner<B> {
    /// Of a model that went through the passes of a device.
    pub fn new(model: Model, backend: B) -> Planner<B> {
        Planner { model, backend, plans: Mutex::default(), bodies: Mutex::default() }
    }

    /// Plans a model of known shapes, so that the first inference is like the others. Weights that are packed by then are
    /// dropped from memory where they are mapped.
    pub fn prepare(&self) -> Result<()> {
        let shape = |&p: &NodeId| self.model.fact(p.into()).shape.to_static();
        let shapes: Option<Vec<Vec<usize>>> = self.model.parameters().iter().map(shape).collect();
        let Some(shapes) = shapes else { return Ok(()) };
        // What decides is only known when an inference comes.
        if B::PLANS_BY_VALUE && any_decides(&self.model) {
            return Ok(());
        }
        let plan = Arc::new(self.lower(&self.model, 0)?);
        self.hold_bodies(&plan);
        lock(&self.plans).put((0, shapes), plan);
        // The packed form is what runs; the pages of the file can go.
        for (_, node) in self.model.nodes().filter(|(_, node)| node.op().is::<Constant>()) {
            if let Some(t) = node.outputs()[0].fact.tensor() {
                t.release();
            }
        }
        Ok(())
    }

    /// The plan for inputs of these shapes.
    pub fn plan(&self, inputs: &[Tensor]) -> Result<Arc<Plan<B>>> {
        self.plan_of(&self.model, 0, inputs)
    }

    /// The plan of the model that was made last, and those of its segments.
    pub fn last_plans(&self) -> Vec<Arc<Plan<B>>> {
        let plan = lock(&self.plans).latest(0);
        plan.map_or(vec![], latest)
    }

    /// All plans, which are from now on made anew.
    pub fn take_plans(&mut self) -> PlanCache<B> {
        std::mem::take(&mut *lock(&self.plans))
    }

    /// The plan of a body; `None` for one that is not known to stay where it is.
    pub(crate) fn body_plan(&self, body: &Model, parameters: &[Tensor]) -> Result<Option<Arc<Plan<B>>>> {
        let address = body as *const Model as usize;
        let known = lock(&self.bodies).addresses.contains(&address);
        if known { self.plan_of(body, address, parameters).map(Some) } else { Ok(None) }
    }

    /// Keeps the operations of a plan that have bodies.
    pub(crate) fn hold_bodies(&self, plan: &Plan<B>) {
        let mut known = lock(&self.bodies);
        for step in &plan.steps {
            let Action::Eval(op) = &step.action else { continue };
            if op.has_body() && known.holders.len() < MOST_HOLDERS {
                known.addresses.extend(op.bodies().iter().map(|(_, body)| &body.model as *const Model as usize));
                known.holders.push(op.clone());
            }
        }
    }

    fn plan_of(&self, model: &Model, which: usize, inputs: &[Tensor]) -> Result<Arc<Plan<B>>> {
        let (key, deciding) = self.key(&self.plans, model, which, inputs)?;
        if let Some(plan) = lock(&self.plans).get(&key) {
            return Ok(plan);
        }
        let plan = Arc::new(self.make_plan(model, inputs, &deciding, 0)?);
        self.hold_bodies(&plan);
        Ok(lock(&self.plans).put(key, plan))
    }

    /// What a plan for these inputs goes by, and which of them it holds the values of.
    pub(crate) fn key(
        &self,
        plans: &Mutex<PlanCache<B>>,
        model: &Model,
        which: usize,
        inputs: &[Tensor],
    ) -> Result<(PlanKey, Arc<[usize]>)> {
        let mut key = (which, inputs.iter().map(|t| t.shape().to_vec()).collect::<Vec<_>>());
        if !B::PLANS_BY_VALUE {
            return Ok((key, [].into()));
        }
        let known = lock(plans).deciding.get(&key).cloned();
        let deciding = match known {
            Some(deciding) => deciding,
            None => {
                let shaped = with_shapes(model, inputs)?;
                let found: Arc<[usize]> = match &shaped {
                    Some(shaped) => deciding_inputs::<B>(shaped.as_ref().unwrap_or(model), inputs).into(),
                    None => [].into(),
                };
                let mut plans = lock(plans);
                if plans.deciding.len() >= 4 * MOST_PLANS {
                    plans.deciding.clear();
                }
                plans.deciding.insert(key.clone(), found.clone());
                found
            }
        };
        for &i in deciding.iter() {
            key.1.push(inputs[i].aligned_bytes()?.iter().map(|&b| usize::from(b)).collect());
        }
        Ok((key, deciding))
    }

    /// A plan for these inputs, and for the values of some of them; `depth` segments come before it.
    pub(crate) fn make_plan(
        &self,
        model: &Model,
        inputs: &[Tensor],
        deciding: &[usize],
        depth: usize,
    ) -> Result<Plan<B>> {
        let mut shaped = match with_shapes(model, inputs)? {
            None => return self.lower(model, depth),
            Some(None) if deciding.is_empty() => return self.lower(model, depth),
            Some(shaped) => shaped,
        };
        if !deciding.is_empty() {
            shaped = Some(settle(shaped.as_ref().unwrap_or(model), inputs, deciding)?);
        }
        let Some(mut model) = shaped else { return self.lower(model, depth) };
        // With the shapes known, what computes shapes is constant.
        run_passes(&mut model, SHAPED, &mut Notes::default())?;
        settle_kernels(&mut model)?;
        let mut plan = self.lower(&model, depth)?;
        for &i in deciding {
            plan.values_of.push((i, inputs[i].to_host()?));
        }
        Ok(plan)
    }

    /// The plan of a model whose shapes are what they are, up to where they depend on data.
    fn lower(&self, model: &Model, depth: usize) -> Result<Plan<B>> {
        let Some(split) = split(model, depth)? else { return lower(model, &self.backend) };
        let mut plan = lower(&split.head, &self.backend)?;
        plan.tail = Some(Arc::new(split.tail));
        Ok(plan)
    }
}

// The model with the shapes of these inputs; inside `None` when it has them, and outside when it does not take them: a branch that
// is never taken may not fit, and nodes are then inferred as they come.
fn with_shapes(model: &Model, inputs: &[Tensor]) -> Result<Option<Option<Model>>> {
    let shape = |p: &NodeId| model.fact((*p).into()).shape.to_static();
    if model.parameters().iter().zip(inputs).all(|(p, t)| shape(p).as_deref() == Some(t.shape())) {
        return Ok(Some(None));
    }
    let shapes = inputs.iter().enumerate().map(|(i, t)| (i, PartialShape::of(t.shape()))).collect();
    let open = |&p: &NodeId| model.fact(p.into()).ty.is_dynamic();
    let reshaped = match model.parameters().iter().any(open) {
        true => typed(model, inputs)?.reshaped(&shapes),
        false => model.reshaped(&shapes),
    };
    Ok(reshaped.ok().map(Some))
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
