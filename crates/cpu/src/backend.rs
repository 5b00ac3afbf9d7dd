//! The CPU as a backend of plans: its builders, what they fuse, its threads and memory.

use crate::memory::CpuMemory;
use crate::steps::{self, Built, Io, Site, dynamic_outputs, elements, half, movement, reorder};
use crate::threads::Stream;
use crate::weights::{Packed, Packers, Weights};
use carafe_device::{KernelOp, Parallel, with_parallel};
use carafe_graph::{Error, Op, Result, normalize_axis};
use carafe_kernels::{
    DenormalsGuard, Exec, Halves, Isa, MAX_PARTS, Machine, Scratch, Stopped, flush_denormals, keep_denormals,
};
use carafe_ops::carafe::RotaryEmbedding;
use carafe_ops::indexing::Gather;
use carafe_ops::linear::{MatMul, ScaledDotProductAttention};
use carafe_plan::elementwise::Elt;
use carafe_plan::{
    Backend, DynamicOutput, Fusing, Grid, Known, Layout, MemoryKind, Parts, RowStrides, Step, TransposedReads,
    model_precision,
};
use carafe_tensor::{Element, ElementType, Tensor};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes between a depthwise and a pointwise convolution from which one step is quicker on every machine.
const LARGE_BETWEEN: usize = 3 << 20;

/// How models of one compilation are built and run.
#[derive(Debug)]
pub(crate) struct Cpu {
    pub(crate) weights: Arc<Weights>,
    /// Threads of one inference.
    pub(crate) threads: usize,
    /// No method whose error is larger than that of a plain sum.
    pub(crate) strict_f32: bool,
    /// Whether kernels take denormal numbers as zero.
    pub(crate) flush_denormals: bool,
    /// The type of 16 bits that products and convolutions of floats are computed in; `None` where they are in f32.
    pub(crate) half: Option<Halves>,
    /// Numbers of a row that are rounded together beside compressed weights; 0 where none are.
    pub(crate) rounded_group: usize,
}

/// What builders share while a plan is made.
#[derive(Debug)]
pub(crate) struct BuildCx {
    pub(crate) isa: Isa,
    pub(crate) threads: usize,
    pub(crate) strict_f32: bool,
    /// As in [`Cpu`].
    pub(crate) half: Option<Halves>,
    pub(crate) rounded_group: usize,
    pub(crate) weights: Arc<Weights>,
    pub(crate) packers: Packers,
}

impl BuildCx {
    /// Packed weights made of these constants, see [`Weights::get`].
    pub(crate) fn packed<T: Element>(
        &self,
        form: &str,
        constants: &[&Tensor],
        len: usize,
        fill: impl FnOnce(&mut [T]) -> Result<()>,
    ) -> Result<Packed> {
        self.weights.get(form, constants, len, fill)
    }
}

/// A stream while a plan runs on it. The thread flushes denormal numbers, or not, as long.
#[derive(Debug)]
pub(crate) struct CpuExec {
    stream: Arc<Stream>,
    scratch: Arc<Scratch>,
    cancel: Option<Arc<AtomicBool>>,
    isa: Isa,
    _denormals: DenormalsGuard,
}

impl CpuExec {
    /// The threads as extensions borrow them.
    pub(crate) fn lent(&self) -> &Arc<dyn Parallel> {
        &self.stream.lent
    }
    /// The form that kernels take.
    pub(crate) fn kernels(&self) -> Exec<'_> {
        let exec = Exec::new(&self.stream.pool, self.isa, &self.scratch);
        self.cancel.as_deref().map_or(exec, |cancel| exec.until(cancel))
    }
}

impl Fusing for Cpu {
    fn epilogue_axis(&self, op: &dyn Op, rank: usize) -> Option<usize> {
        if let Some(kernel) = op.get::<KernelOp>() {
            return rank.checked_sub(1).filter(|_| kernel.fuses()).map(|last| last.min(1));
        }
        normalize_axis(op.info().channel?, rank).ok()
    }
    fn fuses(&self, function: &Elt, ty: ElementType) -> bool {
        ty == ElementType::F32 && elements::elt_op(*function).is_some()
    }
    fn reads_transposed(&self, op: &dyn Op, ty: ElementType) -> Option<TransposedReads> {
        let (inputs, columns) = match () {
            _ if op.is::<ScaledDotProductAttention>() => (3, false),
            _ if op.is::<RotaryEmbedding>() => (1, false),
            _ if op.is::<MatMul>() => (2, true),
            _ => return None,
        };
        (ty == ElementType::F32).then_some(TransposedReads { inputs, columns })
    }
    fn reads_compressed(&self, op: &dyn Op, input: usize) -> bool {
        (op.is::<MatMul>() && input == 1) || (op.is::<Gather>() && input == 0)
    }
    fn fuses_separable(&self, bytes: usize) -> bool {
        // What the caches of the threads hold is read where it was written.
        let near = (self.threads * Machine::here().l2 * 3 / 4).min(LARGE_BETWEEN);
        bytes >= near && self.half.is_none()
    }
    fn precision(&self, op: &dyn Op, inputs: &[Known<'_>], outputs: &[Known<'_>]) -> ElementType {
        match self.half {
            Some(halves) if half::suits(op, inputs, halves) => half::type_of(halves),
            _ => model_precision(inputs, outputs),
        }
    }
    fn reads_narrow(&self, op: &dyn Op, input: usize) -> bool {
        half::reads_narrow(op, input)
    }
    fn passes_on(&self, op: &dyn Op, inputs: &[Known<'_>], group: bool) -> bool {
        self.half.is_some() && half::passes_on(op, inputs, group)
    }
}

impl Backend for Cpu {
    const MAX_OPERANDS: usize = MAX_PARTS;
    const MEMORY: MemoryKind = MemoryKind::Arena { alignment: 64 };

    type BuildCx = BuildCx;
    type Memory = CpuMemory;
    type Stream = Arc<Stream>;
    type Exec = CpuExec;
    type Io<'a> = Io<'a>;

    fn build_cx(&self) -> BuildCx {
        BuildCx {
            isa: Isa::best(),
            threads: self.threads,
            strict_f32: self.strict_f32,
            half: self.half,
            rounded_group: self.rounded_group,
            weights: self.weights.clone(),
            packers: Packers::new(self.threads),
        }
    }
    fn build(&self, site: &Site<'_>) -> Result<Option<Built>> {
        steps::build(site)
    }
    fn dynamic_output(&self, op: &dyn Op, types: &[ElementType]) -> Option<Arc<dyn DynamicOutput<Cpu>>> {
        dynamic_outputs::build(op, types)
    }
    fn reorder(&self, shape: &[usize], ty: ElementType, from: Layout, to: Layout) -> Arc<dyn Step<Cpu>> {
        reorder::step(shape, ty, from, to)
    }
    fn convert(
        &self,
        _len: usize,
        from: ElementType,
        to: ElementType,
        grid: Option<Grid>,
    ) -> Result<Arc<dyn Step<Cpu>>> {
        if let Some(step) = grid.and_then(|grid| steps::quantized::between(from, to, grid)) {
            return Ok(step);
        }
        let unknown = || Error::unsupported(format!("no kernel converts {from} to {to}"));
        steps::convert::step(from, to).ok_or_else(unknown)
    }
    fn move_parts(&self, parts: Parts, strides: &RowStrides) -> Arc<dyn Step<Cpu>> {
        movement::parts_step(parts, strides)
    }
    fn enter(&self, stream: &Arc<Stream>, scratch: usize, cancel: Option<Arc<AtomicBool>>) -> Result<CpuExec> {
        let no_memory = || Error::invalid(format!("no memory for {scratch} bytes of scratch of each thread"));
        let scratch = stream.scratch(scratch).ok_or_else(no_memory)?;
        let _denormals = if self.flush_denormals { flush_denormals() } else { keep_denormals() };
        Ok(CpuExec { stream: stream.clone(), scratch, cancel, isa: Isa::best(), _denormals })
    }
    fn on_host<R>(&self, stream: &Arc<Stream>, work: impl FnOnce() -> R) -> R {
        let _denormals = keep_denormals();
        with_parallel(stream.lent.clone(), work)
    }
    fn is_cancellation(panic: &(dyn Any + Send)) -> bool {
        panic.is::<Stopped>()
    }
}
