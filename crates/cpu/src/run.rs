//! Runs a plan once over a request's memory. Kernels take no memory from the system here; evaluated steps do.
//!
//! Kernels flush denormal numbers where the model was compiled to; evaluations, those of extensions among them, never do. A
//! step that panics is an error of this run, and one that was given up ends it as cancelled; the memory stays good for the next.

use crate::compiled::Engine;
use crate::makers::Make;
use crate::pieces::TailMemory;
use crate::plan::{Action, Place, Plan, PlanStep};
use crate::steps::Io;
use carafe_device::{Parallel, with_parallel};
use carafe_graph::{Error, ErrorKind, EvalCx, EvalEnv, Fact, Result, infer_op, panicked};
use carafe_kernels::{Arena, Exec, MAX_PARTS, Part, Stopped, flush_denormals, keep_denormals};
use carafe_tensor::{ElementType, Tensor};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Memory of a plan while it runs.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) arena: Option<Arena>,
    pub(crate) held: Vec<Option<Tensor>>,
    /// Tensors of outputs from the last run, used again when nobody else has them.
    pub(crate) outputs: Vec<Tensor>,
    /// Time of each step, when asked for.
    pub(crate) times: Vec<Duration>,
    /// Of what comes behind the plan.
    pub(crate) tail: Option<Box<TailMemory>>,
}

impl Memory {
    /// Makes room for a plan.
    pub(crate) fn fit(&mut self, plan: &Plan) -> Result<()> {
        if self.arena.as_ref().is_none_or(|a| a.len() < plan.arena) {
            self.arena = None;
            let no_memory = || Error::invalid(format!("no memory for {} bytes of intermediate results", plan.arena));
            self.arena = Some(Arena::new(plan.arena).ok_or_else(no_memory)?);
        }
        self.held.clear();
        self.held.resize(plan.held, None);
        self.outputs.resize_with(plan.outputs.len(), || Tensor::scalar(0f32));
        for (i, &v) in plan.outputs.iter().enumerate() {
            let value = &plan.values[v];
            let (Place::Output(at), Some(shape)) = (value.place, &value.shape) else { continue };
            if at == i {
                let tensor = &mut self.outputs[i];
                let fits = tensor.element_type() == value.ty && tensor.shape() == shape;
                if !fits || tensor.unique_bytes_mut().is_none() {
                    *tensor = Tensor::zeros(value.ty, shape)?;
                }
            }
        }
        Ok(())
    }
}

/// Everything a run needs besides the plan.
pub(crate) struct RunCx<'a> {
    pub(crate) exec: &'a Exec<'a>,
    pub(crate) engine: &'a Engine,
    /// The same threads, for what an evaluated step calls.
    pub(crate) lent: &'a Arc<dyn Parallel>,
    pub(crate) inputs: &'a [Tensor],
    pub(crate) memory: &'a mut Memory,
    pub(crate) env: &'a mut EvalEnv,
    pub(crate) profiled: bool,
}

/// Runs all steps; the outputs are then in `memory.outputs`.
pub(crate) fn run(plan: &Plan, cx: &mut RunCx<'_>) -> Result<()> {
    run_steps(plan, cx)?;
    plan.tail.as_ref().map_or(Ok(()), |tail| tail.run(cx))
}

fn run_steps(plan: &Plan, cx: &mut RunCx<'_>) -> Result<()> {
    cx.memory.fit(plan)?;
    let _denormals = if cx.engine.flush_denormals { flush_denormals() } else { keep_denormals() };
    if cx.profiled {
        cx.memory.times.clear();
    }
    for step in &plan.steps {
        if cx.env.cancel.as_ref().is_some_and(|c| c.load(Ordering::Relaxed)) {
            return Err(cancelled());
        }
        let started = cx.profiled.then(Instant::now);
        let done = match &step.action {
            Action::Fast(_) => fast(plan, step, cx),
            Action::Make(kernel) => make(plan, step, &**kernel, cx),
            Action::Eval(op) => eval(plan, step, &**op, cx),
        };
        done.map_err(|e| if e.kind() == ErrorKind::Cancelled { e } else { e.at(step.place.as_str()) })?;
        for &h in &step.drops {
            cx.memory.held[h] = None;
        }
        if let Some(started) = started {
            cx.memory.times.push(started.elapsed());
        }
    }
    hand_out(plan, cx)
}

pub(crate) fn cancelled() -> Error {
    Error::new(ErrorKind::Cancelled, "the inference was cancelled")
}

/// Runs the code of a step. What it throws goes no further.
fn guarded<R>(who: &str, work: impl FnOnce() -> Result<R>) -> Result<R> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| match payload.is::<Stopped>() {
        true => Err(cancelled()),
        false => Err(panicked(who, payload)),
    })
}

/// Bytes of a value outside the arena.
fn outside<'a>(plan: &'a Plan, place: Place, inputs: &'a [Tensor], held: &'a [Option<Tensor>]) -> Result<&'a [u8]> {
    let tensor = match place {
        Place::Input(i) => &inputs[i],
        Place::Constant(i) => &plan.constants[i],
        Place::Held(i) => held[i].as_ref().ok_or_else(|| Error::invalid("a value was dropped before its last use"))?,
        Place::Arena(_) | Place::Output(_) => return Ok(&[]),
    };
    Ok(tensor.aligned_bytes()?)
}

fn fast(plan: &Plan, step: &PlanStep, cx: &mut RunCx<'_>) -> Result<()> {
    let Action::Fast(kernel) = &step.action else { return Ok(()) };
    // Parts of the arena first, in order; the rest is put between them afterwards.
    let (mut reads, mut n_reads) = ([Part::default(); MAX_PARTS], 0);
    let (mut writes, mut n_writes) = ([Part::default(); MAX_PARTS], 0);
    let over = |i: usize| step.over == Some(i);
    for (i, &v) in step.reads.iter().enumerate() {
        if let (Place::Arena(part), false) = (plan.values[v].place, over(i)) {
            reads[n_reads] = part;
            n_reads += 1;
        }
    }
    for part in step.writes.iter().filter_map(|&v| match plan.values[v].place {
        Place::Arena(part) => Some(part),
        _ => None,
    }) {
        writes[n_writes] = part;
        n_writes += 1;
    }
    if let Some(part) = step.workspace {
        writes[n_writes] = part;
        n_writes += 1;
    }
    let Memory { arena, held, outputs, .. } = &mut *cx.memory;
    let arena = arena.as_mut().ok_or_else(|| Error::invalid("the plan has no memory"))?;
    // Written outputs are taken out, so that the others can be read meanwhile.
    let mut taken: [Option<(usize, Tensor)>; 8] = Default::default();
    let mut n_taken = 0;
    for &v in &step.writes {
        if let Place::Output(i) = plan.values[v].place {
            let slot = taken.get_mut(n_taken).ok_or_else(|| Error::invalid("a step writes more than 8 outputs"))?;
            *slot = Some((i, std::mem::replace(&mut outputs[i], empty())));
            n_taken += 1;
        }
    }
    let done = arena.borrow(&reads[..n_reads], &writes[..n_writes], |from, to| {
        let mut inputs: [&[u8]; MAX_PARTS] = [&[]; MAX_PARTS];
        let mut next = 0;
        for (i, (slot, &v)) in inputs.iter_mut().zip(&step.reads).enumerate() {
            *slot = match plan.values[v].place {
                _ if over(i) => continue,
                Place::Arena(_) => {
                    next += 1;
                    from[next - 1]
                }
                Place::Output(i) => plan.values[v].part(outputs[i].bytes()),
                place => plan.values[v].part(outside(plan, place, cx.inputs, held)?),
            };
        }
        let mut given = to.iter_mut();
        let mut made = taken.iter_mut().flatten();
        let mut out: [&mut [u8]; MAX_PARTS] = std::array::from_fn(|_| Default::default());
        for (slot, &v) in out.iter_mut().zip(&step.writes) {
            *slot = match plan.values[v].place {
                Place::Output(_) => {
                    let whole = made.next().and_then(|(_, t)| t.unique_bytes_mut()).unwrap_or_default();
                    match &plan.values[v].range {
                        Some(range) => &mut whole[range.clone()],
                        None => whole,
                    }
                }
                _ => given.next().map(|s| &mut **s).unwrap_or_default(),
            };
        }
        let workspace = given.next().map(|s| &mut **s).unwrap_or_default();
        guarded("the kernel", || {
            kernel.run(&mut Io {
                exec: cx.exec,
                inputs: &inputs[..step.reads.len()],
                outputs: &mut out[..step.writes.len()],
                workspace,
                over: step.over,
            })
        })
    });
    for (i, tensor) in taken.into_iter().flatten() {
        outputs[i] = tensor;
    }
    done
}

fn empty() -> Tensor {
    thread_local! {
        static EMPTY: Tensor = Tensor::scalar(0f32);
    }
    EMPTY.with(Tensor::clone)
}

/// A value as a tensor of its own.
fn tensor_of(plan: &Plan, v: usize, cx: &RunCx<'_>) -> Result<Tensor> {
    let value = &plan.values[v];
    let whole = match value.place {
        Place::Arena(part) => {
            let arena = cx.memory.arena.as_ref().ok_or_else(|| Error::invalid("the plan has no memory"))?;
            let shape = value.shape.as_deref().unwrap_or_default();
            return Ok(Tensor::from_bytes(value.ty, shape, arena.read(part))?);
        }
        Place::Output(i) => {
            let shape = value.shape.as_deref().unwrap_or_default();
            return Ok(Tensor::from_bytes(value.ty, shape, value.part(cx.memory.outputs[i].bytes()))?);
        }
        Place::Input(i) => cx.inputs[i].clone(),
        Place::Constant(i) => plan.constants[i].clone(),
        Place::Held(i) => {
            cx.memory.held[i].clone().ok_or_else(|| Error::invalid("a value was dropped before its last use"))?
        }
    };
    match &value.shape {
        Some(shape) if value.range.is_some() => Ok(Tensor::from_bytes(value.ty, shape, value.part(whole.bytes()))?),
        Some(shape) if whole.shape() != shape.as_slice() => Ok(whole.reshaped(shape)?),
        _ => Ok(whole),
    }
}

fn make(plan: &Plan, step: &PlanStep, kernel: &dyn Make, cx: &mut RunCx<'_>) -> Result<()> {
    let inputs = step.reads.iter().map(|&v| tensor_of(plan, v, cx)).collect::<Result<Vec<_>>>()?;
    let made = guarded("the kernel", || kernel.make(cx.exec, &inputs))?;
    hold(plan, step, made, cx);
    Ok(())
}

fn hold(plan: &Plan, step: &PlanStep, made: Vec<Tensor>, cx: &mut RunCx<'_>) {
    for (&v, tensor) in step.writes.iter().zip(made) {
        if let Place::Held(i) = plan.values[v].place {
            cx.memory.held[i] = Some(tensor);
        }
    }
}

fn eval(plan: &Plan, step: &PlanStep, op: &dyn carafe_graph::Op, cx: &mut RunCx<'_>) -> Result<()> {
    let inputs = step.reads.iter().map(|&v| tensor_of(plan, v, cx)).collect::<Result<Vec<_>>>()?;
    let facts: Vec<Fact> = inputs.iter().map(Fact::of).collect();
    let facts: Vec<&Fact> = facts.iter().collect();
    let _denormals = keep_denormals();
    let made = guarded("the evaluation", || {
        let outputs = infer_op(&step.name, step.node, op, &facts, true)?;
        let eval = EvalCx::new(&step.name, op.info(), inputs, &outputs, cx.env);
        with_parallel(cx.lent.clone(), || eval.evaluate(op))
    })?;
    hold(plan, step, made, cx);
    Ok(())
}

fn hand_out(plan: &Plan, cx: &mut RunCx<'_>) -> Result<()> {
    for (i, &v) in plan.outputs.iter().enumerate() {
        if plan.values[v].place != Place::Output(i) {
            cx.memory.outputs[i] = tensor_of(plan, v, cx)?;
        }
    }
    Ok(())
}

/// Whether the elements of a type can lie in planned memory.
pub(crate) fn plannable(ty: ElementType) -> bool {
    !ty.is_dynamic() && ty != ElementType::String && !ty.is_sub_byte()
}
