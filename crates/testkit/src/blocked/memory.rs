//! Memory as a device apart from the host has it: a buffer for each value and one for each output. A step gets copies of what
//! it reads and of what it writes, and what it wrote goes back.

use super::Blocked;
use carafe_graph::{Error, Result};
use carafe_plan::{Host, Memory, Plan, PlanValue, Slot, StepRun};
use carafe_tensor::Tensor;

/// More is not to be had.
const MOST_BYTES: usize = 64 << 20;

/// Buffers of a request.
#[derive(Debug, Default)]
pub(crate) struct BlockedMemory {
    buffers: Vec<Vec<u8>>,
    /// Of outputs, until the run ends.
    outputs: Vec<Vec<u8>>,
}

/// Memory of a step.
#[derive(Debug)]
pub(crate) struct Io {
    pub(crate) inputs: Vec<Vec<u8>>,
    /// With what was there before: results with a row stride keep what lies between their rows.
    pub(crate) outputs: Vec<Vec<u8>>,
}

impl BlockedMemory {
    fn bytes(&self, plan: &Plan<Blocked>, v: usize, host: &Host<'_>) -> Result<Vec<u8>> {
        let value = &plan.values[v];
        let held = || Error::invalid("a value was dropped before its last use");
        Ok(match value.slot {
            Slot::Planned(r) => self.buffers[r.buffer][r.start..r.start + r.len].to_vec(),
            Slot::Output(i) => value.part(&self.outputs[i]).to_vec(),
            Slot::Input(i) => value.part(host.inputs[i].bytes()).to_vec(),
            Slot::Constant(i) => value.part(plan.constants[i].bytes()).to_vec(),
            Slot::Held(i) => value.part(host.held[i].as_ref().ok_or_else(held)?.bytes()).to_vec(),
        })
    }
}

impl Memory<Blocked> for BlockedMemory {
    fn fit(&mut self, plan: &Plan<Blocked>, _stream: &(), _inputs: &[Tensor], _outputs: &[Tensor]) -> Result<()> {
        // What the last run left is no part of this one.
        if plan.planned_bytes() > MOST_BYTES {
            return Err(Error::invalid(format!("no memory for {} bytes", plan.planned_bytes())));
        }
        self.buffers = plan.buffers.iter().map(|&n| vec![0xA5; n]).collect();
        let bytes = |&v: &usize| {
            let value = &plan.values[v];
            let (Slot::Output(_), Some(shape)) = (value.slot, &value.shape) else { return vec![] };
            vec![0xA5; value.ty.byte_len(shape.iter().product()).unwrap_or(0)]
        };
        self.outputs = plan.outputs.iter().map(bytes).collect();
        Ok(())
    }

    fn run(&mut self, run: &StepRun<'_, Blocked>, host: &mut Host<'_>) -> Result<()> {
        let (plan, step) = (run.plan, run.step);
        let inputs = step.reads.iter().map(|&v| self.bytes(plan, v, host)).collect::<Result<_>>()?;
        let outputs = step.writes.iter().map(|&v| self.bytes(plan, v, host)).collect::<Result<_>>()?;
        let mut io = Io { inputs, outputs };
        run.call(&mut io)?;
        for (&v, bytes) in step.writes.iter().zip(&io.outputs) {
            let value = &plan.values[v];
            let to = match value.slot {
                Slot::Planned(r) => &mut self.buffers[r.buffer][r.start..r.start + r.len],
                Slot::Output(i) => match &value.range {
                    Some(range) => &mut self.outputs[i][range.clone()],
                    None => &mut self.outputs[i][..],
                },
                slot => return Err(Error::invalid(format!("a step writes {slot:?}"))),
            };
            to.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn read(&self, value: &PlanValue, _outputs: &[Tensor]) -> Result<Tensor> {
        let bytes = match value.slot {
            Slot::Planned(r) => &self.buffers[r.buffer][r.start..r.start + r.len],
            Slot::Output(i) => value.part(&self.outputs[i]),
            slot => return Err(Error::invalid(format!("{slot:?} is not planned"))),
        };
        Ok(Tensor::from_bytes(value.ty, value.shape.as_deref().unwrap_or_default(), bytes)?)
    }

    fn finish(&mut self, plan: &Plan<Blocked>, host: &mut Host<'_>) -> Result<()> {
        for (i, &v) in plan.outputs.iter().enumerate() {
            if plan.values[v].slot == Slot::Output(i) {
                let to = host.outputs[i].unique_bytes_mut();
                to.ok_or_else(|| Error::invalid("an output is shared"))?.copy_from_slice(&self.outputs[i]);
            }
        }
        Ok(())
    }
}
