//! Models whose shapes depend on data run in segments: first all whose shapes are known, up to the operations that give values
//! of unknown shape; then the rest, as a model of its own whose inputs now have shapes. The rest has plans for the shapes it
//! was entered with, and may end in a segment again.

use crate::backend::Backend;
use crate::compressed::Compressed;
use crate::plan::Plan;
use crate::planner::{PlanCache, Planner};
use crate::run::{RunCx, RunMemory, run};
use carafe_graph::{Constant, Fact, Model, NodeId, Parameter, Result, ResultOp, Value};
use carafe_tensor::Tensor;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// More segments are not made; what is left is evaluated.
const MOST_SEGMENTS: usize = 32;

/// A value of so many elements is work.
const LARGE: usize = 1 << 14;

/// Sets of shapes of which it is remembered that they came before.
const MOST_SEEN: usize = 256;

/// A model up to where shapes are not known, and the rest.
#[derive(Debug)]
pub(crate) struct Split<B: Backend> {
    /// Has all outputs of the model, with a number in the place of those that the rest gives, then what the rest reads.
    pub(crate) head: Model,
    pub(crate) tail: Tail<B>,
}

/// What comes behind a plan.
#[derive(Debug)]
pub(crate) struct Tail<B: Backend> {
    pub(crate) model: Model,
    /// Outputs of the head that are its inputs.
    inputs: Vec<usize>,
    /// Outputs of the whole, each with the output of the tail that it is.
    outputs: Vec<(usize, usize)>,
    /// Whether it is worth a plan at the first sight of shapes; otherwise at the second.
    heavy: bool,
    /// How many segments came before.
    depth: usize,
    plans: Mutex<PlanCache<B>>,
    seen: Mutex<Vec<Vec<Vec<usize>>>>,
}

/// Memory of a tail.
#[derive(Debug)]
pub(crate) struct TailMemory<B: Backend> {
    memory: RunMemory<B>,
    /// The plan of the last run.
    plan: Option<Arc<Plan<B>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

fn is_known(fact: &Fact) -> bool {
    fact.shape.is_static() && !fact.ty.is_dynamic()
}

/// Splits a model behind the first operations whose results have no known shape; `None` when nothing comes behind them.
pub(crate) fn split<B: Backend>(model: &Model, depth: usize) -> Result<Option<Split<B>>> {
    let is_open = |id: NodeId| model.node(id).outputs().iter().any(|o| !is_known(&o.fact));
    if depth >= MOST_SEGMENTS || model.parameters().iter().any(|&p| is_open(p)) {
        return Ok(None);
    }
    let order = model.topological_order()?;
    let mut late = vec![false; model.slots()];
    let (mut any, mut heavy) = (false, false);
    for &id in &order {
        let node = model.node(id);
        late[id.0 as usize] = node.inputs().iter().any(|v| late[v.node.0 as usize] || is_open(v.node));
        if late[id.0 as usize] && !node.op().is::<ResultOp>() && !node.op().info().sink {
            any = true;
            let elements = |f: &Fact| f.shape.to_static().and_then(|s| carafe_tensor::elements(&s)).unwrap_or(0);
            let large = node.outputs().iter().any(|o| elements(&o.fact) >= LARGE);
            heavy |= large || node.op().info().heavy;
        }
    }
    if !any {
        return Ok(None);
    }
    // Variables are written last, after all that read them.
    model.sinks().iter().for_each(|s| late[s.0 as usize] = true);
    // A result of the first part goes straight out, whatever its shape.
    for &r in model.results() {
        late[r.0 as usize] = late[model.result_value(r).node.0 as usize];
    }
    let mut border: Vec<Value> = vec![];
    for &id in order.iter().filter(|id| late[id.0 as usize]) {
        for &v in model.node(id).inputs() {
            let still = model.node(v.node).op().is::<Constant>() || Compressed::of(model, v.node).is_some();
            if !late[v.node.0 as usize] && !still && !border.contains(&v) {
                border.push(v);
            }
        }
    }
    let mut head = model.clone();
    let nothing = head.constant("no_value", Tensor::scalar(0i32))?;
    for &id in order.iter().rev().filter(|id| late[id.0 as usize]) {
        match head.node(id).op().is::<ResultOp>() {
            true => head.set_input(id, 0, nothing),
            false if head.node(id).op().info().sink => head.remove(id)?,
            false => {}
        }
    }
    let first = head.results().len();
    for (k, &v) in border.iter().enumerate() {
        head.result(&format!("border_{k}"), v)?;
    }
    head.prune();
    head.infer()?;

    let mut tail = model.clone();
    let mut inputs = vec![];
    let mut entries = vec![];
    for (k, &v) in border.iter().enumerate() {
        let fact = model.fact(v);
        let new = match fact.tensor() {
            Some(t) => tail.constant(&format!("border_{k}"), t.clone())?,
            None => {
                let op = Parameter { shape: fact.shape.clone(), element_type: fact.ty };
                let id = tail.add(format!("border_{k}"), op, &[])?;
                entries.push(id);
                inputs.push(first + k);
                id.into()
            }
        };
        tail.replace_value(v, new);
    }
    let mut outputs = vec![];
    for (i, &r) in model.results().iter().enumerate() {
        match late[r.0 as usize] {
            true => outputs.push((i, outputs.len())),
            false => tail.remove(r)?,
        }
    }
    tail.prune();
    for &p in model.parameters() {
        tail.remove(p)?;
    }
    tail.order_parameters(entries);
    let tail =
        Tail { model: tail, inputs, outputs, heavy, depth: depth + 1, plans: Mutex::default(), seen: Mutex::default() };
    Ok(Some(Split { head, tail }))
}

impl<B: Backend> Tail<B> {
    /// The plan for inputs of these shapes; `None` where it is not worth making one yet.
    fn plan(&self, planner: &Planner<B>, inputs: &[Tensor]) -> Result<Option<Arc<Plan<B>>>> {
        let (key, deciding) = planner.key(&self.plans, &self.model, 0, inputs)?;
        if let Some(plan) = lock(&self.plans).get(&key) {
            return Ok(Some(plan));
        }
        if !self.heavy {
            let mut seen = lock(&self.seen);
            if !seen.contains(&key.1) {
                if seen.len() >= MOST_SEEN {
                    seen.remove(0);
                }
                seen.push(key.1);
                return Ok(None);
            }
        }
        let plan = Arc::new(planner.make_plan(&self.model, inputs, &deciding, self.depth)?);
        planner.hold_bodies(&plan);
        Ok(Some(lock(&self.plans).put(key, plan)))
    }

    /// Runs behind the head, whose outputs are in `cx.memory`.
    pub(crate) fn run(&self, cx: &mut RunCx<'_, B>) -> Result<()> {
        let inputs: Vec<Tensor> = self.inputs.iter().map(|&i| cx.memory.outputs[i].clone()).collect();
        let plan = self.plan(cx.planner, &inputs)?;
        let kept = cx.memory.tail.take();
        let mut own = kept.unwrap_or_else(|| Box::new(TailMemory { memory: RunMemory::default(), plan: None }));
        own.plan = plan.clone();
        let done = match &plan {
            Some(plan) => {
                let memory = &mut own.memory;
                let (planner, stream, env, profiled) = (cx.planner, cx.stream, &mut *cx.env, cx.profiled);
                let mut cx = RunCx { planner, stream, inputs: &inputs, memory, env, profiled, leaves: cx.leaves };
                run(plan, &mut cx).map(|()| own.memory.outputs.clone())
            }
            None => {
                let env = &mut *cx.env;
                cx.planner.backend.on_host(cx.stream, || carafe_graph::run(&self.model, &inputs, env))
            }
        };
        if let Ok(outputs) = &done {
            for &(to, from) in &self.outputs {
                cx.memory.outputs[to] = outputs[from].clone();
            }
        }
        cx.memory.tail = Some(own);
        done.map(|_| ())
    }
}

/// The plans of all segments of the last run, each with the times of its steps.
pub(crate) fn segments<'a, B: Backend>(
    plan: &'a Plan<B>,
    memory: &'a RunMemory<B>,
) -> Vec<(&'a Plan<B>, &'a [Duration])> {
    let mut all = vec![];
    let mut next = Some((plan, memory));
    while let Some((plan, memory)) = next {
        all.push((plan, &memory.times[..]));
        let tail = memory.tail.as_deref().filter(|_| plan.tail.is_some());
        next = tail.and_then(|tail| Some((&**tail.plan.as_ref()?, &tail.memory)));
    }
    all
}

/// A plan and those that were last made for what comes behind it.
pub(crate) fn latest<B: Backend>(plan: Arc<Plan<B>>) -> Vec<Arc<Plan<B>>> {
    let mut all = vec![plan];
    while let Some(next) = all.last().and_then(|p| lock(&p.tail.as_ref()?.plans).latest(0)) {
        all.push(next);
    }
    all
}
