//! Runs a plan once over a request's memory. Kernels take no memory from the system here; evaluated steps do. A step that
//! panics is an error of this run, and one that was given up ends it as cancelled; the memory stays good for the next.

use crate::backend::{Backend, DynamicOutput, Host, Memory, Step, StepRun};
use crate::plan::{Action, Plan, PlanStep, Slot};
use crate::planner::Planner;
use crate::segments::TailMemory;
use carafe_graph::{Error, ErrorKind, EvalCx, EvalEnv, Fact, Op, Result, infer_op, panicked};
use carafe_tensor::Tensor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Memory of a plan while it runs.
#[derive(Debug)]
pub struct RunMemory<B: Backend> {
    pub(crate) planned: B::Memory,
    pub(crate) held: Vec<Option<Tensor>>,
    /// Outputs of the last run. Their tensors are used again when nobody else has them.
    pub outputs: Vec<Tensor>,
    /// Time of each step, when asked for.
    pub(crate) times: Vec<Duration>,
    /// Of what comes behind the plan.
    pub(crate) tail: Option<Box<TailMemory<B>>>,
}

impl<B: Backend> Default for RunMemory<B> {
    fn default() -> RunMemory<B> {
        RunMemory { planned: B::Memory::default(), held: vec![], outputs: vec![], times: vec![], tail: None }
    }
}

impl<B: Backend> RunMemory<B> {
    /// Makes room for a plan.
    fn fit(&mut self, plan: &Plan<B>, stream: &B::Stream, inputs: &[Tensor], leaves: bool) -> Result<()> {
        self.held.clear();
        self.held.resize(plan.held, None);
        self.outputs.resize_with(plan.outputs.len(), || Tensor::scalar(0f32));
        for (i, &v) in plan.outputs.iter().enumerate() {
            let value = &plan.values[v];
            let (Slot::Output(at), Some(shape)) = (value.slot, &value.shape) else { continue };
            if at == i {
                let tensor = &mut self.outputs[i];
                let fits = tensor.element_type() == value.ty && tensor.shape() == shape;
                let given = tensor.remote_memory().is_some_and(|m| B::Memory::writes_to(&**m, stream));
                if leaves {
                    // It becomes one of the device.
                    *tensor = Tensor::scalar(0f32);
                } else if !fits || (!given && tensor.unique_bytes_mut().is_none()) {
                    *tensor = Tensor::zeros(value.ty, shape)?;
                }
            }
        }
        self.planned.fit(plan, stream, inputs, &self.outputs)
    }
}

/// Everything a run needs besides the plan.
#[derive(Debug)]
pub struct RunCx<'a, B: Backend> {
    /// What makes plans for shapes that come up.
    pub planner: &'a Planner<B>,
    /// Where it runs.
    pub stream: &'a B::Stream,
    /// Inputs of the model.
    pub inputs: &'a [Tensor],
    /// Memory of the request.
    pub memory: &'a mut RunMemory<B>,
    /// Variables, bodies and the cancel flag.
    pub env: &'a mut EvalEnv,
    /// Whether steps are timed.
    pub profiled: bool,
    /// Whether outputs may stay in the memory of the device, because another plan reads them.
    pub leaves: bool,
}

/// Runs all steps; the outputs are then in `memory.outputs`.
pub fn run<B: Backend>(plan: &Plan<B>, cx: &mut RunCx<'_, B>) -> Result<()> {
    let leaves = B::Memory::LEAVES && (cx.leaves || plan.tail.is_some());
    run_steps(plan, cx, leaves)?;
    plan.tail.as_ref().map_or(Ok(()), |tail| tail.run(cx))?;
    if !cx.leaves {
        let settled = |t: &&mut Tensor| t.remote_memory().is_some_and(|m| m.is_settled());
        for output in cx.memory.outputs.iter_mut().filter(settled) {
            *output = output.to_host()?;
        }
    }
    Ok(())
}

fn run_steps<B: Backend>(plan: &Plan<B>, cx: &mut RunCx<'_, B>, leaves: bool) -> Result<()> {
    cx.memory.fit(plan, cx.stream, cx.inputs, leaves)?;
    let exec = cx.planner.backend.enter(cx.stream, plan.scratch, cx.env.cancel.clone())?;
    if cx.profiled {
        cx.memory.times.clear();
    }
    for step in &plan.steps {
        if cx.env.cancel.as_ref().is_some_and(|c| c.load(Ordering::Relaxed)) {
            return Err(cancelled());
        }
        let started = cx.profiled.then(Instant::now);
        let done = match &step.action {
            Action::Kernel(kernel) => run_kernel(plan, step, &**kernel, &exec, cx),
            Action::Dynamic(kernel) => run_dynamic(plan, step, &**kernel, &exec, cx),
            Action::Eval(op) => eval(plan, step, &**op, cx),
        };
        done.map_err(|e| if e.kind() == ErrorKind::Cancelled { e } else { e.at(step.location.as_str()) })?;
        for &h in &step.drops {
            cx.memory.held[h] = None;
        }
        if let Some(started) = started {
            cx.memory.times.push(started.elapsed());
        }
    }
    let RunMemory { planned, held, outputs, .. } = &mut *cx.memory;
    let host = &mut Host { inputs: cx.inputs, held, outputs };
    if leaves { planned.leave(plan, host) } else { planned.finish(plan, host) }?;
    if cx.profiled {
        let RunMemory { planned, times, .. } = &mut *cx.memory;
        planned.times(times)?;
    }
    hand_out(plan, cx)
}

/// The error of an inference that was cancelled.
pub fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the inference was cancelled")
}

/// Runs the code of a step. What it throws goes no further.
pub(crate) fn guarded<B: Backend, R>(who: &str, work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| match B::is_cancellation(&*payload) {
        true => Err(cancelled()),
        false => Err(panicked(who, payload)),
    })
}

fn run_kernel<B: Backend>(
    plan: &Plan<B>,
    step: &PlanStep<B>,
    kernel: &dyn Step<B>,
    exec: &B::Exec,
    cx: &mut RunCx<'_, B>,
) -> Result<()> {
    let RunMemory { planned, held, outputs, .. } = &mut *cx.memory;
    planned.run(&StepRun { plan, step, kernel, exec }, &mut Host { inputs: cx.inputs, held, outputs })
}

fn dropped() -> Error {
    Error::invalid("a value was dropped before its last use")
}

/// A value as a tensor of its own.
fn tensor_of<B: Backend>(plan: &Plan<B>, v: usize, cx: &RunCx<'_, B>) -> Result<Tensor> {
    let value = &plan.values[v];
    let whole = match value.slot {
        Slot::Planned(_) | Slot::Output(_) => return cx.memory.planned.read(value, &cx.memory.outputs),
        Slot::Input(i) => cx.inputs[i].clone(),
        Slot::Constant(i) => plan.constants[i].clone(),
        Slot::Held(i) => cx.memory.held[i].clone().ok_or_else(dropped)?,
    };
    match &value.shape {
        Some(shape) if value.range.is_some() => Ok(Tensor::from_bytes(value.ty, shape, value.part(whole.bytes()))?),
        Some(shape) if whole.shape() != shape.as_slice() => Ok(whole.reshaped(shape)?),
        _ => Ok(whole),
    }
}

fn tensors_of<B: Backend>(plan: &Plan<B>, step: &PlanStep<B>, cx: &RunCx<'_, B>) -> Result<Vec<Tensor>> {
    step.reads.iter().map(|&v| tensor_of(plan, v, cx)).collect()
}

// As they lie, for an operation that passes them on.
fn shared_tensors_of<B: Backend>(plan: &Plan<B>, step: &PlanStep<B>, cx: &mut RunCx<'_, B>) -> Result<Vec<Tensor>> {
    let shared = |&v: &usize| match plan.values[v].slot {
        Slot::Planned(_) | Slot::Output(_) => match cx.memory.planned.share(&plan.values[v])? {
            Some(tensor) => Ok(tensor),
            None => tensor_of(plan, v, cx),
        },
        _ => tensor_of(plan, v, cx),
    };
    step.reads.iter().map(shared).collect()
}

fn run_dynamic<B: Backend>(
    plan: &Plan<B>,
    step: &PlanStep<B>,
    kernel: &dyn DynamicOutput<B>,
    exec: &B::Exec,
    cx: &mut RunCx<'_, B>,
) -> Result<()> {
    let inputs = tensors_of(plan, step, cx)?;
    let made = guarded::<B, _>("the kernel", || kernel.run(exec, &inputs))?;
    hold(plan, step, made, cx);
    Ok(())
}

fn hold<B: Backend>(plan: &Plan<B>, step: &PlanStep<B>, made: Vec<Tensor>, cx: &mut RunCx<'_, B>) {
    for (&v, tensor) in step.writes.iter().zip(made) {
        if let Slot::Held(i) = plan.values[v].slot {
            cx.memory.held[i] = Some(tensor);
        }
    }
}

fn eval<B: Backend>(plan: &Plan<B>, step: &PlanStep<B>, op: &dyn Op, cx: &mut RunCx<'_, B>) -> Result<()> {
    let inputs = match op.has_body() || op.info().stateful || op.info().sink {
        true => shared_tensors_of(plan, step, cx)?,
        false => tensors_of(plan, step, cx)?,
    };
    let facts: Vec<Fact> = inputs.iter().map(Fact::of).collect();
    let facts: Vec<&Fact> = facts.iter().collect();
    let env = &mut *cx.env;
    let made = cx.planner.backend.on_host(cx.stream, || {
        guarded::<B, _>("the evaluation", || {
            let outputs = infer_op(&step.name, step.node, op, &facts, true)?;
            EvalCx::new(&step.name, op.info(), inputs, &outputs, env).evaluate(op)
        })
    })?;
    hold(plan, step, made, cx);
    Ok(())
}

fn hand_out<B: Backend>(plan: &Plan<B>, cx: &mut RunCx<'_, B>) -> Result<()> {
    for (i, &v) in plan.outputs.iter().enumerate() {
        if plan.values[v].slot != Slot::Output(i) {
            cx.memory.outputs[i] = tensor_of(plan, v, cx)?;
        }
    }
    Ok(())
}
