//! What a request keeps for one plan: a buffer for each value, and the kernels with their arguments, which become one command where
//! the driver records launches.

use crate::backend::Gpu;
use crate::error::told;
use crate::launch::Bound;
use crate::remote::DeviceMemory;
use crate::streams::Stream;
use crate::weights::Weights;
use carafe_graph::{Error, Result};
use carafe_opencl::{Buffer, CommandBuffer, Context};
use carafe_plan::{Action, Host, Plan, PlanValue, Slot};
use carafe_tensor::{RemoteMemory, Tensor};
use std::collections::HashMap;
use std::sync::Arc;

/// A plan whose kernels have their arguments.
#[derive(Debug)]
pub(crate) struct BoundPlan {
    pub(crate) id: u64,
    /// All launches as one command, once they are known.
    pub(crate) recorded: Recorded,
    /// Buffers of users that kernels read and write where they lie, with the slots they stand for.
    pub(crate) given: Vec<(Slot, Arc<Buffer>)>,
    pub(crate) steps: Vec<Option<Vec<Bound>>>,
    pub(crate) places: Places,
    /// What kernels of the plan tell that they had to refuse, if they may.
    pub(crate) faults: Option<Arc<Buffer>>,
}

/// What became of recording the launches of a plan.
#[derive(Debug)]
pub(crate) enum Recorded {
    /// Some step has not run yet, or it was not tried.
    NotYet,
    /// All launches, the queue they are for, and whether those of the last run may still be under way.
    Whole(CommandBuffer, usize, bool),
    /// The driver cannot, or the plan has steps on the host.
    Never,
}

/// Buffers of the values of one plan.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) arena: Option<Arc<Buffer>>,
    pub(crate) regions: HashMap<(usize, usize), Arc<Buffer>>,
    pub(crate) inputs: HashMap<usize, Arc<Buffer>>,
    pub(crate) held: HashMap<usize, Arc<Buffer>>,
    pub(crate) outputs: HashMap<usize, Arc<Buffer>>,
    pub(crate) constants: HashMap<usize, Arc<Buffer>>,
    /// Inputs and evaluated values that are there in this run.
    pub(crate) uploaded: Vec<Slot>,
}

impl Places {
    pub(crate) fn region(&mut self, start: usize, len: usize) -> Result<Arc<Buffer>> {
        if let Some(buffer) = self.regions.get(&(start, len)) {
            return Ok(buffer.clone());
        }
        let arena = self.arena.as_ref().ok_or_else(|| Error::invalid("the plan has no memory"))?;
        let part = arena.part(start, len).map_err(told)?;
        self.regions.insert((start, len), part.clone());
        Ok(part)
    }

    /// The buffer of a value.
    pub(crate) fn of(&mut self, plan: &Plan<Gpu>, value: &PlanValue, weights: &Weights) -> Result<Arc<Buffer>> {
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

    /// Brings an input or an evaluated value to the device, once in a run.
    pub(crate) fn upload(&mut self, slot: Slot, host: &Host<'_>, stream: &Stream, weights: &Weights) -> Result<bool> {
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
        match DeviceMemory::of(tensor, weights.context()) {
            Some(memory) if len > 0 => stream.queue.copy(&memory.buffer, 0, &buffer, 0, len).map_err(told)?,
            _ => stream.queue.write_later(&buffer, 0, Bytes(tensor.clone())).map_err(told)?,
        }
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

impl BoundPlan {
    /// Whether all launches are one command.
    pub(crate) fn record(&mut self, plan: &Plan<Gpu>, stream: &Stream) -> Result<bool> {
        if let Recorded::NotYet = self.recorded {
            let kernels = plan.steps.iter().all(|s| matches!(s.action, Action::Kernel(_)));
            if !kernels || stream.queue.is_profiled() {
                self.recorded = Recorded::Never;
            } else if self.steps.iter().all(Option::is_some) {
                let launches: Vec<_> = self.steps.iter().flatten().flatten().map(Bound::recorded).collect();
                let made = CommandBuffer::record(&stream.queue, &launches);
                self.recorded = match made {
                    Ok(Some(whole)) if launches.len() > 1 => Recorded::Whole(whole, stream.queue.raw(), false),
                    Ok(_) => Recorded::Never,
                    Err(e) => {
                        let text = format!("launches are not recorded, each is enqueued by itself: {e}");
                        carafe_graph::log::report(carafe_graph::log::Level::Debug, &text);
                        Recorded::Never
                    }
                };
            }
        }
        Ok(matches!(self.recorded, Recorded::Whole(..)))
    }

    /// Enqueues all launches at once, unless those of the last run may be under way.
    pub(crate) fn enqueue_whole(&mut self, stream: &Stream) -> Result<bool> {
        match &mut self.recorded {
            Recorded::Whole(whole, queue, busy) if !*busy && *queue == stream.queue.raw() => {
                whole.enqueue(&stream.queue).map_err(told)?;
                *busy = true;
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// Buffers of users among inputs and outputs, where nobody would read what is being written.
pub(crate) fn given(
    plan: &Plan<Gpu>,
    context: &Arc<Context>,
    inputs: &[Tensor],
    outputs: &[Tensor],
) -> Vec<(Slot, Arc<Buffer>)> {
    let users = |t: &Tensor| DeviceMemory::of(t, context).filter(|m| !m.is_settled()).map(|m| m.buffer.clone());
    let read: Vec<_> = inputs.iter().enumerate().filter_map(|(i, t)| Some((Slot::Input(i), users(t)?))).collect();
    let written = outputs.iter().enumerate().filter_map(|(i, t)| {
        let own = plan.outputs.get(i).is_some_and(|&v| plan.values[v].slot == Slot::Output(i));
        let buffer = users(t).filter(|b| own && read.iter().all(|(_, r)| r.raw() != b.raw()))?;
        Some((Slot::Output(i), buffer))
    });
    let written: Vec<_> = written.collect();
    read.into_iter().chain(written).collect()
}
