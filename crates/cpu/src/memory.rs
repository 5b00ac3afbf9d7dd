//! Planned memory on the host: one arena for all values of a request. A step borrows what it reads and writes at once.

use crate::backend::Cpu;
use crate::steps::Io;
use crate::threads::Stream;
use carafe_graph::{Error, Result};
use carafe_kernels::{Arena, MAX_PARTS, Part};
use carafe_plan::{Host, Memory, Plan, PlanValue, Region, Slot, StepRun};
use carafe_tensor::Tensor;
use std::sync::Arc;

/// The arena of a request.
#[derive(Debug, Default)]
pub(crate) struct CpuMemory {
    arena: Option<Arena>,
}

fn part(region: Region) -> Part {
    Part { start: region.start, len: region.len }
}

fn no_arena() -> Error {
    Error::invalid("the plan has no memory")
}

/// Bytes of a value that lies neither in the arena nor in an output.
fn bytes_of<'a>(plan: &'a Plan<Cpu>, slot: Slot, host: (&'a [Tensor], &'a [Option<Tensor>])) -> Result<&'a [u8]> {
    let tensor = match slot {
        Slot::Input(i) => &host.0[i],
        Slot::Constant(i) => &plan.constants[i],
        Slot::Held(i) => host.1[i].as_ref().ok_or_else(|| Error::invalid("a value was dropped before its last use"))?,
        Slot::Planned(_) | Slot::Output(_) => return Ok(&[]),
    };
    Ok(tensor.aligned_bytes()?)
}

impl Memory<Cpu> for CpuMemory {
    fn fit(&mut self, plan: &Plan<Cpu>, _stream: &Arc<Stream>, _inputs: &[Tensor], _outputs: &[Tensor]) -> Result<()> {
        let bytes = plan.planned_bytes();
        if self.arena.as_ref().is_none_or(|a| a.len() < bytes) {
            self.arena = None;
            let no_memory = || Error::invalid(format!("no memory for {bytes} bytes of intermediate results"));
            self.arena = Some(Arena::new(bytes).ok_or_else(no_memory)?);
        }
        Ok(())
    }

    fn read(&self, value: &PlanValue, outputs: &[Tensor]) -> Result<Tensor> {
        let bytes = match value.slot {
            Slot::Planned(region) => self.arena.as_ref().ok_or_else(no_arena)?.read(part(region)),
            Slot::Output(i) => value.part(outputs[i].bytes()),
            slot => return Err(Error::invalid(format!("{slot:?} is not planned"))),
        };
        Ok(Tensor::from_bytes(value.ty, value.shape.as_deref().unwrap_or_default(), bytes)?)
    }

    fn run(&mut self, run: &StepRun<'_, Cpu>, host: &mut Host<'_>) -> Result<()> {
        let (plan, step) = (run.plan, run.step);
        // Parts of the arena first, in order; the rest is put between them afterwards.
        let (mut reads, mut n_reads) = ([Part::default(); MAX_PARTS], 0);
        let (mut writes, mut n_writes) = ([Part::default(); MAX_PARTS], 0);
        let in_place = |i: usize| step.in_place == Some(i);
        for (i, &v) in step.reads.iter().enumerate() {
            if let (Slot::Planned(region), false) = (plan.values[v].slot, in_place(i)) {
                reads[n_reads] = part(region);
                n_reads += 1;
            }
        }
        let written = step.writes.iter().filter_map(|&v| match plan.values[v].slot {
            Slot::Planned(region) => Some(region),
            _ => None,
        });
        for region in written.chain(step.workspace) {
            writes[n_writes] = part(region);
            n_writes += 1;
        }
        let arena = self.arena.as_mut().ok_or_else(no_arena)?;
        // Written outputs are taken out, so that the others can be read meanwhile.
        let mut taken: [Option<(usize, Tensor)>; 8] = Default::default();
        let mut n_taken = 0;
        for &v in &step.writes {
            if let Slot::Output(i) = plan.values[v].slot {
                let slot = taken.get_mut(n_taken).ok_or_else(|| Error::invalid("a step writes more than 8 outputs"))?;
                *slot = Some((i, std::mem::replace(&mut host.outputs[i], empty())));
                n_taken += 1;
            }
        }
        let (outputs, others) = (&*host.outputs, (host.inputs, host.held));
        let done = arena.borrow(&reads[..n_reads], &writes[..n_writes], |from, to| {
            let mut inputs: [&[u8]; MAX_PARTS] = [&[]; MAX_PARTS];
            let mut next = 0;
            for (i, (bytes, &v)) in inputs.iter_mut().zip(&step.reads).enumerate() {
                *bytes = match plan.values[v].slot {
                    _ if in_place(i) => continue,
                    Slot::Planned(_) => {
                        next += 1;
                        from[next - 1]
                    }
                    Slot::Output(i) => plan.values[v].part(outputs[i].bytes()),
                    slot => plan.values[v].part(bytes_of(plan, slot, others)?),
                };
            }
            let mut given = to.iter_mut();
            let mut made = taken.iter_mut().flatten();
            let mut out: [&mut [u8]; MAX_PARTS] = std::array::from_fn(|_| Default::default());
            for (bytes, &v) in out.iter_mut().zip(&step.writes) {
                *bytes = match plan.values[v].slot {
                    Slot::Output(_) => {
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
            run.call(&mut Io {
                exec: &run.exec.kernels(),
                inputs: &inputs[..step.reads.len()],
                outputs: &mut out[..step.writes.len()],
                workspace,
                in_place: step.in_place,
                lent: run.exec.lent(),
            })
        });
        for (i, tensor) in taken.into_iter().flatten() {
            host.outputs[i] = tensor;
        }
        done
    }
}

fn empty() -> Tensor {
    thread_local! {
        static EMPTY: Tensor = Tensor::scalar(0f32);
    }
    EMPTY.with(Tensor::clone)
}
