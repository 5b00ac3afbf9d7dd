//! Kernels of extensions as steps: in planned memory, in the forms they asked for, on the threads of the inference.

use super::{Built, Cpu, Io, Site, Step, Work};
use carafe_device::{ChosenKernel, KernelIo, KernelThreads, with_parallel};
use carafe_graph::{Error, Result};
use carafe_kernels::{Exec, keep_denormals};
use carafe_plan::PlannedKernel;
use std::sync::Arc;

pub(super) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    let Some(planned) = PlannedKernel::of(site) else { return Ok(None) };
    let config = planned.kernel.config();
    let (taken, workspace) = (config.epilogue, config.workspace);
    let step = ExtensionStep { name: planned.name, kernel: planned.kernel };
    let reads = planned.inputs.into_iter().enumerate();
    let built = Built::new(Work::Step(Arc::new(step)), reads, planned.outputs);
    Ok(Some(built.with_workspace(workspace).taking(taken)))
}

#[derive(Debug)]
struct ExtensionStep {
    name: String,
    kernel: ChosenKernel,
}

impl Step<Cpu> for ExtensionStep {
    fn kernel(&self) -> String {
        self.name.clone()
    }
    fn shows_precision(&self) -> bool {
        false
    }
    fn scratch_bytes(&self) -> usize {
        self.kernel.config().scratch
    }
    fn runs_in_place(&self, read: usize) -> bool {
        self.kernel.config().outputs[0].in_place == Some(read)
    }
    fn run(&self, io: &mut Io<'_>) -> Result<()> {
        let forms = self.kernel.forms().ok_or_else(|| Error::invalid("the kernel was made for open shapes"))?;
        let config = self.kernel.config();
        let threads = StreamThreads { exec: io.exec, scratch: config.scratch };
        // What extensions compute is not flushed, as in an evaluation.
        let _denormals = keep_denormals();
        with_parallel(io.lent.clone(), || {
            self.kernel.execute(&mut KernelIo {
                inputs: io.inputs,
                outputs: &mut *io.outputs,
                workspace: &mut io.workspace[..config.workspace],
                in_place: io.in_place,
                forms,
                threads: &threads,
            })
        })
    }
}

/// The threads of the stream, each with its scratch.
struct StreamThreads<'a> {
    exec: &'a Exec<'a>,
    /// Bytes that the kernel asked for.
    scratch: usize,
}

impl KernelThreads for StreamThreads<'_> {
    fn threads(&self) -> usize {
        self.exec.threads()
    }
    // All parts run, also when the inference is cancelled: the code that called counts on them.
    fn each(&self, parts: usize, body: &(dyn Fn(usize, &mut [u8]) + Sync)) {
        self.exec.pool.run(parts, |part, thread| {
            let _denormals = keep_denormals();
            let mut scratch = self.exec.scratch.of(thread);
            body(part, &mut bytemuck::cast_slice_mut(&mut scratch)[..self.scratch]);
        });
    }
}
