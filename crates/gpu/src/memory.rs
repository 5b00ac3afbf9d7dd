//! Planned memory on the device: one arena for the values of a request, whose regions steps see as sub-buffers, and a buffer for
//! each input, output and evaluated value. What a request needs for a plan is made when it first runs it and kept: the buffers, and
//! the kernels with their arguments. After that a run enqueues, uploads inputs where they are first read, and downloads outputs.

use crate::backend::{Gpu, GpuExec};
use crate::bound::{BoundPlan, Places, Recorded, given};
use crate::error::told;
use crate::launch::Bound;
use crate::machine::ALIGNMENT;
use crate::remote::DeviceMemory;
use crate::streams::Stream;
use crate::weights::Weights;
use carafe_graph::{Error, Result};
use carafe_opencl::{Buffer, Event, Read};
use carafe_plan::{Host, Memory, Plan, PlanStep, PlanValue, Slot, StepRun};
use carafe_tensor::{ElementType, RemoteMemory, Tensor};
use std::sync::Arc;
use std::time::Duration;

/// Plans of one request whose kernels are kept; models of other shapes come and go.
const MOST_BOUND: usize = 8;

/// So many left tensors are kept before those that nobody has are freed.
const MOST_LEFT: usize = 64;

/// Memory of a request.
#[derive(Debug, Default)]
pub(crate) struct GpuMemory {
    arena: Option<Arc<Buffer>>,
    /// What was made for each plan, the last used last.
    plans: Vec<BoundPlan>,
    /// Of the run that goes on.
    run: Option<Run>,
    /// Memory of tensors that plans leave on the device, used again when nobody has the tensor any more.
    left: Vec<Arc<DeviceMemory>>,
}

// A run: where it is, and what it has done.
#[derive(Debug)]
struct Run {
    stream: Arc<Stream>,
    /// The step that comes next, or one before it.
    at: usize,
    /// Whether it has not come to its end.
    is_open: bool,
    /// Whether all launches were enqueued at once.
    is_whole: bool,
    events: Vec<(usize, Event)>,
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
    // A tensor of its own with bytes of a buffer, on the device.
    fn leave_copy(&mut self, from: &Arc<Buffer>, start: usize, ty: ElementType, shape: &[usize]) -> Result<Tensor> {
        let stream = self.run.as_ref().ok_or_else(|| Error::invalid("no plan runs"))?.stream.clone();
        let len = carafe_tensor::elements(shape).and_then(|n| ty.byte_len(n));
        let len = len.ok_or_else(|| Error::invalid(format!("{ty}{shape:?} has no size in bytes")))?;
        // The stream may be another than last time; what lies in this one's order may be written over.
        let free =
            |m: &Arc<DeviceMemory>| Arc::strong_count(m) == 1 && m.buffer.len() == len.max(1) && m.is_of(&stream);
        let memory = match self.left.iter().find(|m| free(m)) {
            Some(memory) => memory.clone(),
            None => {
                if self.left.len() >= MOST_LEFT {
                    self.left.retain(|m| Arc::strong_count(m) > 1);
                }
                let buffer = Buffer::new(stream.queue.context(), len).map_err(told)?;
                let made = Arc::new(DeviceMemory::left(buffer, &stream));
                self.left.push(made.clone());
                made
            }
        };
        if len > 0 {
            stream.queue.copy(from, start, &memory.buffer, 0, len).map_err(told)?;
            stream.set_busy();
        }
        Ok(Tensor::remote(ty, shape, memory)?)
    }

    // Where a value lies now, in planned memory or in an output.
    fn place(&self, value: &PlanValue) -> Result<(Arc<Buffer>, usize)> {
        let bound = self.plans.last().ok_or_else(|| Error::invalid("no plan runs"))?;
        let (buffer, start) = match value.slot {
            Slot::Planned(r) => (self.arena.as_ref(), r.start),
            Slot::Output(i) => (bound.places.outputs.get(&i), value.range.as_ref().map_or(0, |r| r.start)),
            slot => return Err(misplaced(slot)),
        };
        Ok((buffer.ok_or_else(|| misplaced(value.slot))?.clone(), start))
    }

    fn running(&mut self) -> Result<(&mut Run, &mut BoundPlan)> {
        let none = || Error::invalid("no plan runs");
        Ok((self.run.as_mut().ok_or_else(none)?, self.plans.last_mut().ok_or_else(none)?))
    }
}

// Brings these bytes to the host, and what kernels had to refuse.
fn check_faults(plan: &Plan<Gpu>, run: &Run, bound: &BoundPlan, reads: Vec<Read<'_>>) -> Result<()> {
    let mut told_of = [0u8; FAULT_BYTES];
    let mut reads: Vec<Read<'_>> = reads;
    if let Some(from) = &bound.faults {
        reads.push(Read { from, start: 0, to: &mut told_of });
    }
    if !reads.is_empty() {
        run.stream.settle(&mut reads)?;
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

impl Memory<Gpu> for GpuMemory {
    const LEAVES: bool = true;

    fn writes_to(memory: &dyn RemoteMemory, stream: &Arc<Stream>) -> bool {
        !memory.is_settled() && DeviceMemory::known(memory, stream.queue.context()).is_some()
    }

    fn fit(&mut self, plan: &Plan<Gpu>, stream: &Arc<Stream>, inputs: &[Tensor], outputs: &[Tensor]) -> Result<()> {
        // What a run left behind that failed or was cancelled still works in this memory; so does a body in another queue.
        if let Some(run) = self.run.take()
            && (run.is_open || !Arc::ptr_eq(&run.stream, stream))
        {
            run.stream.queue.finish().map_err(told)?;
        }
        let given = given(plan, stream.queue.context(), inputs, outputs);
        let bytes = plan.planned_bytes();
        if self.arena.as_ref().is_none_or(|a| a.len() < bytes) {
            self.arena = None;
            self.plans.clear();
            let located = |e| told(e).at("intermediate results");
            self.arena = Some(Buffer::new(stream.queue.context(), bytes).map_err(located)?);
        }
        let same = |p: &BoundPlan| {
            let mut both = p.given.iter().zip(&given);
            p.id == plan.id && p.given.len() == given.len() && both.all(|(a, b)| a.0 == b.0 && a.1.raw() == b.1.raw())
        };
        match self.plans.iter().position(same) {
            Some(at) => {
                let found = self.plans.remove(at);
                self.plans.push(found);
            }
            None => {
                if self.plans.len() >= MOST_BOUND {
                    self.plans.remove(0);
                }
                let mut places = Places { arena: self.arena.clone(), ..Places::default() };
                for (slot, buffer) in &given {
                    match slot {
                        Slot::Input(i) => places.inputs.insert(*i, buffer.clone()),
                        Slot::Output(i) => places.outputs.insert(*i, buffer.clone()),
                        _ => None,
                    };
                }
                let steps = std::iter::repeat_with(|| None).take(plan.steps.len()).collect();
                self.plans.push(BoundPlan {
                    id: plan.id,
                    recorded: Recorded::NotYet,
                    given,
                    steps,
                    places,
                    faults: None,
                });
            }
        }
        if let Some(bound) = self.plans.last_mut() {
            if let Recorded::Whole(_, _, busy) = &mut bound.recorded {
                *busy &= stream.is_busy();
            }
            bound.places.uploaded.clear();
            bound.places.uploaded.extend(bound.given.iter().map(|(slot, _)| *slot));
        }
        self.run = Some(Run { stream: stream.clone(), at: 0, is_open: true, is_whole: false, events: vec![] });
        Ok(())
    }

    fn run(&mut self, run: &StepRun<'_, Gpu>, host: &mut Host<'_>) -> Result<()> {
        let (plan, step) = (run.plan, run.step);
        let GpuExec { stream, weights, records } = run.exec;
        let (now, bound) = self.running()?;
        if now.is_whole {
            return Ok(());
        }
        if std::ptr::eq(step, &plan.steps[0]) && *records && bound.record(plan, stream)? {
            for &v in plan.steps.iter().flat_map(|s| &s.reads) {
                bound.places.upload(plan.values[v].slot, host, stream, weights)?;
            }
            stream.set_busy();
            now.is_whole = bound.enqueue_whole(stream)?;
            if now.is_whole {
                return Ok(());
            }
        }
        // Steps come in order; those between are evaluated.
        while plan.steps.get(now.at).is_some_and(|s| !std::ptr::eq(s, step)) {
            now.at += 1;
        }
        let (places, faults) = (&mut bound.places, &mut bound.faults);
        for &v in &step.reads {
            places.upload(plan.values[v].slot, host, stream, weights)?;
        }
        stream.set_busy();
        let kernels = bound.steps.get_mut(now.at).ok_or_else(|| Error::invalid("the step is not of the plan"))?;
        let (at, events) = (now.at, &mut now.events);
        run.call(&mut Io { stream, plan, step, at, places, weights, bound: kernels, faults, events })
    }

    fn read(&self, value: &PlanValue, _outputs: &[Tensor]) -> Result<Tensor> {
        let run = self.run.as_ref().ok_or_else(|| Error::invalid("no plan runs"))?;
        let shape = value.shape.as_deref().unwrap_or_default();
        let mut tensor = Tensor::zeros(value.ty, shape)?;
        let (from, start) = self.place(value)?;
        run.stream.settle(&mut [Read { from: &from, start, to: tensor.bytes_mut() }])?;
        Ok(tensor)
    }

    fn share(&mut self, value: &PlanValue) -> Result<Option<Tensor>> {
        let (from, start) = self.place(value)?;
        self.leave_copy(&from, start, value.ty, value.shape.as_deref().unwrap_or_default()).map(Some)
    }

    fn leave(&mut self, plan: &Plan<Gpu>, host: &mut Host<'_>) -> Result<()> {
        for i in 0..host.outputs.len() {
            let Some(value) = plan.outputs.get(i).map(|&v| &plan.values[v]) else { continue };
            let (Slot::Output(at), Some(shape)) = (value.slot, &value.shape) else { continue };
            if at == i {
                let (from, _) = self.place(value)?;
                host.outputs[i] = self.leave_copy(&from, 0, value.ty, shape)?;
            }
        }
        let (run, bound) = self.running()?;
        run.is_open = false;
        check_faults(plan, run, bound, vec![])
    }

    fn finish(&mut self, plan: &Plan<Gpu>, host: &mut Host<'_>) -> Result<()> {
        let (run, bound) = self.running()?;
        let mut reads = vec![];
        for (i, tensor) in host.outputs.iter_mut().enumerate() {
            if plan.outputs.get(i).is_some_and(|&v| plan.values[v].slot == Slot::Output(i))
                && let Some(from) = bound.places.outputs.get(&i)
            {
                if let Some(memory) = DeviceMemory::of(tensor, run.stream.queue.context()) {
                    if memory.buffer.raw() != from.raw() && tensor.byte_len() > 0 {
                        run.stream.queue.copy(from, 0, &memory.buffer, 0, tensor.byte_len()).map_err(told)?;
                    }
                    continue;
                }
                let to = tensor.unique_bytes_mut().ok_or_else(|| Error::invalid("an output is shared"))?;
                reads.push(Read { from, start: 0, to });
            }
        }
        if reads.is_empty() && bound.faults.is_none() {
            run.stream.settle(&mut [])?;
        }
        run.is_open = false;
        if let Recorded::Whole(_, _, busy) = &mut bound.recorded {
            // What follows waits.
            *busy = false;
        }
        check_faults(plan, run, bound, reads)
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
