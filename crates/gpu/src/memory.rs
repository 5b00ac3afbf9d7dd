//! Planned memory on the device: one arena for the values of a request, whose regions steps see as sub-buffers, and a buffer for
//! each input, output and evaluated value. What a request needs for a plan is made when it first runs it and kept: the buffers, and
//! the kernels with their arguments. After that a run enqueues, uploads inputs where they are first read, and downloads outputs.

use crate::backend::{Gpu, GpuExec};
use crate::error::told;
use crate::launch::Bound;
use crate::machine::ALIGNMENT;
use crate::streams::Stream;
use crate::weights::Weights;
use carafe_graph::{Error, Result};
use carafe_opencl::{Buffer, Event, Read};
use carafe_plan::{Host, Memory, Plan, PlanStep, PlanValue, Slot, StepRun};
use carafe_tensor::Tensor;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Plans of one request whose kernels are kept; models of other shapes come and go.
const MOST_BOUND: usize = 8;

/// Memory of a request.
#[derive(Debug, Default)]
pub(crate) struct GpuMemory {
    arena: Option<Arc<Buffer>>,
    /// What was made for each plan, the last used last.
    plans: Vec<BoundPlan>,
    /// Of the run that goes on.
    run: Option<Run>,
}

// A run: where it is, and what it has done.
#[derive(Debug)]
struct Run {
    stream: Arc<Stream>,
    /// The step that comes next, or one before it.
    at: usize,
    /// Whether anything was enqueued that nobody waited for.
    busy: bool,
    events: Vec<(usize, Event)>,
}

#[derive(Debug)]
struct BoundPlan {
    id: u64,
    steps: Vec<Option<Vec<Bound>>>,
    places: Places,
    /// What kernels of the plan tell that they had to refuse, if they may.
    faults: Option<Arc<Buffer>>,
}

// Buffers of the values of one plan.
#[derive(Debug, Default)]
struct Places {
    arena: Option<Arc<Buffer>>,
    regions: HashMap<(usize, usize), Arc<Buffer>>,
    inputs: HashMap<usize, Arc<Buffer>>,
    held: HashMap<usize, Arc<Buffer>>,
    outputs: HashMap<usize, Arc<Buffer>>,
    constants: HashMap<usize, Arc<Buffer>>,
    /// Inputs and evaluated values that are there in this run.
    uploaded: Vec<Slot>,
}

/// The step, by its number and 1, and what `refuse` of `common.cl` says of it.
const FAULT_BYTES: usize = 12;

fn refused(step: &PlanStep<Gpu>, index: i32, n: i32) -> Error {
    Error::invalid(match n {
        0 => format!("division of {} by zero", step.precision),
        n => format!("index {index} is outside of an axis of {n}"),
    })
}

fn misplaced(slot: Slot) -> Error {
    Error::invalid(format!("{slot:?} is not planned"))
}

impl Places {
    fn region(&mut self, start: usize, len: usize) -> Result<Arc<Buffer>> {
        if let Some(buffer) = self.regions.get(&(start, len)) {
            return Ok(buffer.clone());
        }
        let arena = self.arena.as_ref().ok_or_else(|| Error::invalid("the plan has no memory"))?;
        let part = arena.part(start, len).map_err(told)?;
        self.regions.insert((start, len), part.clone());
        Ok(part)
    }

    // The buffer of a value.
    fn of(&mut self, plan: &Plan<Gpu>, value: &PlanValue, weights: &Weights) -> Result<Arc<Buffer>> {
        let missing = || Error::invalid("a value was not uploaded");
        let whole = match value.slot {
            Slot::Planned(r) => return self.region(r.start, r.len),
            Slot::Input(i) => self.inputs.get(&i).cloned().ok_or_else(missing)?,
            Slot::Held(i) => self.held.get(&i).cloned().ok_or_else(missing)?,
            Slot::Output(i) => match self.outputs.get(&i) {
                Some(buffer) => buffer.clone(),
                None => self.output(plan, i, weights)?,
            },
            Slot::Constant(i) => match self.constants.get(&i) {
                Some(buffer) => buffer.clone(),
                None => {
                    let buffer = weights.plain(&plan.constants[i])?;
                    self.constants.insert(i, buffer.clone());
                    buffer
                }
            },
        };
        match &value.range {
            Some(range) => whole.part(range.start, range.len()).map_err(told),
            None => Ok(whole),
        }
    }

    fn output(&mut self, plan: &Plan<Gpu>, i: usize, weights: &Weights) -> Result<Arc<Buffer>> {
        let value = &plan.values[plan.outputs[i]];
        let count = value.shape.as_ref().map_or(0, |s| s.iter().product());
        let bytes = value.ty.byte_len(count).unwrap_or(0);
        let buffer = Buffer::new(weights.context(), bytes).map_err(told)?;
        self.outputs.insert(i, buffer.clone());
        Ok(buffer)
    }

    // Brings an input or an evaluated value to the device, once in a run.
    fn upload(&mut self, slot: Slot, host: &Host<'_>, stream: &Stream, weights: &Weights) -> Result<bool> {
        let (kept, i, tensor) = match slot {
            Slot::Input(i) => (&mut self.inputs, i, host.inputs.get(i)),
            Slot::Held(i) => (&mut self.held, i, host.held[i].as_ref()),
            _ => return Ok(false),
        };
        if self.uploaded.contains(&slot) {
            return Ok(false);
        }
        let tensor = tensor.ok_or_else(|| Error::invalid("a value was dropped before its last use"))?;
        let len = tensor.byte_len();
        let buffer = match kept.get(&i) {
            Some(buffer) if buffer.len() == len.max(1) => buffer.clone(),
            _ => {
                let buffer = Buffer::new(weights.context(), len).map_err(told)?;
                kept.insert(i, buffer.clone());
                buffer
            }
        };
        stream.queue.write_later(&buffer, 0, Bytes(tensor.clone())).map_err(told)?;
        self.uploaded.push(slot);
        Ok(true)
    }
}

struct Bytes(Tensor);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

/// Memory of a step while it runs.
#[derive(Debug)]
pub(crate) struct Io<'a> {
    pub(crate) stream: &'a Stream,
    plan: &'a Plan<Gpu>,
    step: &'a PlanStep<Gpu>,
    at: usize,
    places: &'a mut Places,
    weights: &'a Weights,
    bound: &'a mut Option<Vec<Bound>>,
    faults: &'a mut Option<Arc<Buffer>>,
    events: &'a mut Vec<(usize, Event)>,
}

impl Io<'_> {
    /// The buffer of a value that the step reads.
    pub(crate) fn read(&mut self, i: usize) -> Result<Arc<Buffer>> {
        self.places.of(self.plan, &self.plan.values[self.step.reads[i]], self.weights)
    }
    /// The buffer of a value that the step writes.
    pub(crate) fn write(&mut self, i: usize) -> Result<Arc<Buffer>> {
        self.places.of(self.plan, &self.plan.values[self.step.writes[i]], self.weights)
    }
    /// A range of the step's own memory.
    pub(crate) fn workspace(&mut self, start: usize, len: usize) -> Result<Arc<Buffer>> {
        let region = self.step.workspace.ok_or_else(|| Error::invalid("the step asked for no workspace"))?;
        if !start.is_multiple_of(ALIGNMENT) || start + len > region.len {
            let why = format!("bytes {start} to {start} + {len} are no part of a workspace of {}", region.len);
            return Err(Error::invalid(why));
        }
        self.places.region(region.start + start, len)
    }
    /// Where kernels tell what they had to refuse.
    pub(crate) fn faults(&mut self) -> Result<Arc<Buffer>> {
        if let Some(faults) = self.faults {
            return Ok(faults.clone());
        }
        let made = Buffer::new(self.weights.context(), FAULT_BYTES).map_err(told)?;
        self.stream.queue.fill(&made, 0, FAULT_BYTES, 0).map_err(told)?;
        *self.faults = Some(made.clone());
        Ok(made)
    }
    /// The number of the step in its plan.
    pub(crate) fn number(&self) -> i32 {
        self.at as i32
    }
    /// Whether the step's kernels have their arguments.
    pub(crate) fn is_bound(&self) -> bool {
        self.bound.is_some()
    }
    pub(crate) fn set_bound(&mut self, bound: Vec<Bound>) {
        *self.bound = Some(bound);
    }
    /// Enqueues the step's kernels.
    pub(crate) fn enqueue(&mut self) -> Result<()> {
        for Bound { kernel, global, local } in self.bound.iter().flatten() {
            let named = |e| told(e).at(format!("kernel `{}`", kernel.name()));
            let event = self.stream.queue.launch(kernel, *global, *local).map_err(named)?;
            self.events.extend(event.map(|e| (self.at, e)));
        }
        Ok(())
    }
}

impl GpuMemory {
    fn running(&mut self) -> Result<(&mut Run, &mut BoundPlan)> {
        let none = || Error::invalid("no plan runs");
        Ok((self.run.as_mut().ok_or_else(none)?, self.plans.last_mut().ok_or_else(none)?))
    }
}

impl Memory<Gpu> for GpuMemory {
    fn fit(&mut self, plan: &Plan<Gpu>, stream: &Arc<Stream>) -> Result<()> {
        // What a run left behind that failed or was cancelled still works in this memory.
        if let Some(run) = self.run.take().filter(|r| r.busy) {
            run.stream.queue.finish().map_err(told)?;
        }
        let bytes = plan.planned_bytes();
        if self.arena.as_ref().is_none_or(|a| a.len() < bytes) {
            self.arena = None;
            self.plans.clear();
            let located = |e| told(e).at("intermediate results");
            self.arena = Some(Buffer::new(stream.queue.context(), bytes).map_err(located)?);
        }
        match self.plans.iter().position(|p| p.id == plan.id) {
            Some(at) => {
                let found = self.plans.remove(at);
                self.plans.push(found);
            }
            None => {
                if self.plans.len() >= MOST_BOUND {
                    self.plans.remove(0);
                }
                let places = Places { arena: self.arena.clone(), ..Places::default() };
                let steps = std::iter::repeat_with(|| None).take(plan.steps.len()).collect();
                self.plans.push(BoundPlan { id: plan.id, steps, places, faults: None });
            }
        }
        if let Some(bound) = self.plans.last_mut() {
            bound.places.uploaded.clear();
        }
        self.run = Some(Run { stream: stream.clone(), at: 0, busy: false, events: vec![] });
        Ok(())
    }

    fn run(&mut self, run: &StepRun<'_, Gpu>, host: &mut Host<'_>) -> Result<()> {
        let (plan, step) = (run.plan, run.step);
        let GpuExec { stream, weights } = run.exec;
        let (now, bound) = self.running()?;
        // Steps come in order; those between are evaluated.
        while plan.steps.get(now.at).is_some_and(|s| !std::ptr::eq(s, step)) {
            now.at += 1;
        }
        let (places, faults) = (&mut bound.places, &mut bound.faults);
        for &v in &step.reads {
            now.busy |= places.upload(plan.values[v].slot, host, stream, weights)?;
        }
        now.busy = true;
        let kernels = bound.steps.get_mut(now.at).ok_or_else(|| Error::invalid("the step is not of the plan"))?;
        let (at, events) = (now.at, &mut now.events);
        run.call(&mut Io { stream, plan, step, at, places, weights, bound: kernels, faults, events })
    }

    fn read(&self, value: &PlanValue, _outputs: &[Tensor]) -> Result<Tensor> {
        let none = || Error::invalid("no plan runs");
        let (run, bound) = (self.run.as_ref().ok_or_else(none)?, self.plans.last().ok_or_else(none)?);
        let shape = value.shape.as_deref().unwrap_or_default();
        let mut tensor = Tensor::zeros(value.ty, shape)?;
        let (buffer, start) = match value.slot {
            Slot::Planned(r) => (self.arena.as_ref(), r.start),
            Slot::Output(i) => (bound.places.outputs.get(&i), value.range.as_ref().map_or(0, |r| r.start)),
            slot => return Err(misplaced(slot)),
        };
        let from = buffer.ok_or_else(|| misplaced(value.slot))?;
        run.stream.queue.read(&mut [Read { from, start, to: tensor.bytes_mut() }]).map_err(told)?;
        Ok(tensor)
    }

    fn finish(&mut self, plan: &Plan<Gpu>, host: &mut Host<'_>) -> Result<()> {
        let (run, bound) = self.running()?;
        let mut reads = vec![];
        for (i, tensor) in host.outputs.iter_mut().enumerate() {
            if plan.outputs.get(i).is_some_and(|&v| plan.values[v].slot == Slot::Output(i))
                && let Some(from) = bound.places.outputs.get(&i)
            {
                let to = tensor.unique_bytes_mut().ok_or_else(|| Error::invalid("an output is shared"))?;
                reads.push(Read { from, start: 0, to });
            }
        }
        let mut told_of = [0u8; FAULT_BYTES];
        if let Some(from) = &bound.faults {
            reads.push(Read { from, start: 0, to: &mut told_of });
        }
        if run.busy {
            run.stream.queue.read(&mut reads).map_err(told)?;
            run.busy = false;
        }
        let numbers: [i32; 3] = bytemuck::cast(told_of);
        match (usize::try_from(numbers[0]).ok().and_then(|n| plan.steps.get(n.checked_sub(1)?)), &bound.faults) {
            (Some(step), Some(faults)) => {
                run.stream.queue.fill(faults, 0, FAULT_BYTES, 0).map_err(told)?;
                run.stream.queue.finish().map_err(told)?;
                Err(refused(step, numbers[1], numbers[2]).at(step.location.as_str()))
            }
            _ => Ok(()),
        }
    }

    fn times(&mut self, times: &mut [Duration]) -> Result<()> {
        let (run, _) = self.running()?;
        let mut seen = usize::MAX;
        for (at, event) in run.events.drain(..) {
            let Some(time) = times.get_mut(at) else { continue };
            // What is there is the time of the call, which only enqueued.
            if seen != at {
                *time = Duration::ZERO;
            }
            seen = at;
            *time += event.time().map_err(told)?;
        }
        Ok(())
    }
}
