//! What a device brings: builders, layouts, element types, memory. Everything else of lowering and running is in this crate.

use crate::elementwise::Elt;
use crate::grid::Grid;
use crate::layout::Layout;
use crate::plan::{Plan, PlanStep, PlanValue};
use crate::run::guarded;
use crate::site::{Built, Site};
use crate::strided::{Operand, Parts, RowStrides};
use carafe_graph::{Op, Result};
use carafe_tensor::{ElementType, RemoteMemory, Tensor};
use std::any::Any;
use std::fmt::{self, Debug};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A kernel bound to the sizes of one unit.
pub trait Step<B: Backend>: Send + Sync {
    /// The name in reports, such as `conv_winograd_3x3`.
    fn kernel(&self) -> String;
    /// Whether reports write the precision into that name; not where somebody else gave it.
    fn shows_precision(&self) -> bool {
        true
    }
    /// Bytes of scratch memory that each thread needs.
    fn scratch_bytes(&self) -> usize {
        0
    }
    /// Whether an operand may have rows of this length with a stride, see [`crate::strided`].
    fn accepts_row_stride(&self, _operand: Operand, _row: usize) -> bool {
        false
    }
    /// The same step for operands that do.
    fn strided(&self, _strides: &RowStrides) -> Option<Arc<dyn Step<B>>> {
        None
    }
    /// Whether it can write its only result over a read of the same size, whose bytes are then in the output.
    fn runs_in_place(&self, _read: usize) -> bool {
        false
    }
    /// What it moves, when it only concatenates or splits.
    fn parts(&self) -> Option<Parts> {
        None
    }
    /// Does the work.
    fn run(&self, io: &mut B::Io<'_>) -> Result<()>;
}

impl<B: Backend> Debug for dyn Step<B> + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Step({})", self.kernel())
    }
}

/// A kernel whose results have shapes that only the run knows. It has no planned memory: it makes the tensors of its results,
/// as an evaluation does.
pub trait DynamicOutput<B: Backend>: Send + Sync {
    /// The name in reports.
    fn kernel(&self) -> &'static str;
    /// The results for these inputs.
    fn run(&self, exec: &B::Exec, inputs: &[Tensor]) -> Result<Vec<Tensor>>;
}

impl<B: Backend> Debug for dyn DynamicOutput<B> + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DynamicOutput({})", self.kernel())
    }
}

/// Inputs that a kernel reads with their axes in another order, so that a transpose before it costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransposedReads {
    /// So many inputs, from the first on.
    pub inputs: usize,
    /// Whether the last axis may be the last but one.
    pub columns: bool,
}

/// What the kernels of a backend take along. Asked while nodes are put together to units, before builders are.
pub trait Fusing {
    /// The axis of the columns of an operation's result, when elementwise work can follow inside its step.
    fn epilogue_axis(&self, _op: &dyn Op, _rank: usize) -> Option<usize> {
        None
    }
    /// Whether an elementwise function of this type may be part of a group or an epilogue. What is not is left to the builder
    /// of its operation, or evaluated.
    fn fuses(&self, _function: &Elt, _ty: ElementType) -> bool {
        false
    }
    /// The inputs of an operation of this type that may be read in another order of axes; its result may then be written so
    /// too.
    fn reads_transposed(&self, _op: &dyn Op, _ty: ElementType) -> Option<TransposedReads> {
        None
    }
    /// Whether a depthwise convolution goes into the pointwise one behind it, or the other way round, when so many bytes lie
    /// between.
    fn fuses_separable(&self, _bytes: usize) -> bool {
        false
    }
    /// Whether the builder of an operation may take this input as it is stored when it is compressed.
    fn reads_compressed(&self, _op: &dyn Op, _input: usize) -> bool {
        false
    }
    /// The element type in which a unit is to be computed. The model's types, floats before others, unless the backend knows
    /// better.
    fn precision(&self, _op: &dyn Op, inputs: &[Known<'_>], outputs: &[Known<'_>]) -> ElementType {
        model_precision(inputs, outputs)
    }
    /// Whether a unit that is computed in a narrower float type, or passes it on, reads this input in it.
    fn reads_narrow(&self, _op: &dyn Op, _input: usize) -> bool {
        true
    }
    /// Whether a unit reads and writes in the narrower float type that those behind it compute in, without conversions of its own:
    /// one that moves elements, one that works along rows, or a group of elementwise nodes.
    fn passes_on(&self, _op: &dyn Op, _inputs: &[Known<'_>], _group: bool) -> bool {
        false
    }
}

/// What is known of a value while units are made.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// As the model says.
    pub ty: ElementType,
    /// `None` when only the run knows it.
    pub shape: Option<&'a [usize]>,
    /// Whether its elements are known.
    pub is_constant: bool,
    /// Whether it was rounded to more steps than a byte counts: whoever quantized to 16 bits wants more than a float of 16 bits holds.
    pub is_fine: bool,
}

/// The element type in which the model has a unit computed.
pub fn model_precision(inputs: &[Known<'_>], outputs: &[Known<'_>]) -> ElementType {
    let float = outputs.iter().chain(inputs).find(|v| v.ty.is_float());
    float.or(inputs.first()).or(outputs.first()).map_or(ElementType::F32, |v| v.ty)
}

/// How the memory of values is planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// One buffer; values that are never needed at the same time share bytes of it.
    Arena {
        /// Offsets are multiples of this.
        alignment: usize,
    },
    /// A buffer for each value; values that are never needed at the same time may have the same.
    Buffers,
}

/// A device, as far as lowering and running go.
pub trait Backend: Fusing + Debug + Sized + Send + Sync + 'static {
    /// Most reads, and most writes, of one step.
    const MAX_OPERANDS: usize;
    /// How values share memory.
    const MEMORY: MemoryKind;
    /// Whether plans are made for the values of inputs that decide over shapes, axes and bounds, see [`crate::settled`].
    const PLANS_BY_VALUE: bool = false;

    /// What builders share while one plan is made.
    type BuildCx;
    /// Planned memory of one request.
    type Memory: Memory<Self>;
    /// Threads or queue of one inference.
    type Stream: Clone + Debug + Send + Sync;
    /// The stream as one run of a plan has it, with scratch as large as the plan needs.
    type Exec;
    /// Memory of a step while it runs.
    type Io<'a>;

    /// Begins a plan.
    fn build_cx(&self) -> Self::BuildCx;
    /// The step of a unit; `None` leaves it to be split up or evaluated.
    fn build(&self, site: &Site<'_, Self>) -> Result<Option<Built<Self>>>;
    /// The kernel of an operation whose results have no known shape, for inputs of these types.
    fn dynamic_output(&self, _op: &dyn Op, _types: &[ElementType]) -> Option<Arc<dyn DynamicOutput<Self>>> {
        None
    }
    /// A step that copies a value from one layout to another.
    fn reorder(&self, shape: &[usize], ty: ElementType, from: Layout, to: Layout) -> Arc<dyn Step<Self>>;
    /// A step that converts so many elements. Asked only for types that a builder wanted. With a grid, bytes are its steps.
    fn convert(
        &self,
        len: usize,
        from: ElementType,
        to: ElementType,
        grid: Option<Grid>,
    ) -> Result<Arc<dyn Step<Self>>>;
    /// A step that concatenates or splits, with strided operands.
    fn move_parts(&self, parts: Parts, strides: &RowStrides) -> Arc<dyn Step<Self>>;

    /// Begins a run. Scratch is in bytes for each thread.
    fn enter(&self, stream: &Self::Stream, scratch: usize, cancel: Option<Arc<AtomicBool>>) -> Result<Self::Exec>;
    /// Runs an evaluation on the host, with the threads of the stream if it has some.
    fn on_host<R>(&self, stream: &Self::Stream, work: impl FnOnce() -> R) -> R;
    /// Whether a kernel unwound because the inference was cancelled.
    fn is_cancellation(_panic: &(dyn Any + Send)) -> bool {
        false
    }
}

/// Planned memory of a request. It may be any: an arena of the host, buffers of a device.
pub trait Memory<B: Backend>: Debug + Default + Send {
    /// Makes room for a plan, which is then run on a stream with these inputs and tensors for outputs.
    fn fit(&mut self, plan: &Plan<B>, stream: &B::Stream, inputs: &[Tensor], outputs: &[Tensor]) -> Result<()>;
    /// Whether steps write to the memory of a device that a user gave for an output. What they do not is copied there.
    fn writes_to(_memory: &dyn RemoteMemory, _stream: &B::Stream) -> bool {
        false
    }
    /// Finds the memory of a step's operands and runs it with [`StepRun::call`].
    fn run(&mut self, step: &StepRun<'_, B>, host: &mut Host<'_>) -> Result<()>;
    /// A value in planned memory or in an output as a tensor, also between two steps. It lies plainly, in the type of the model.
    fn read(&self, value: &PlanValue, outputs: &[Tensor]) -> Result<Tensor>;
    /// A copy of such a value that stays in the memory of the device, for operations that only pass it on: to a body, to a variable.
    /// `None` where there is no other memory than the host's.
    fn share(&mut self, _value: &PlanValue) -> Result<Option<Tensor>> {
        Ok(None)
    }
    /// After the last step: outputs are now to be in the tensors of the host.
    fn finish(&mut self, _plan: &Plan<B>, _host: &mut Host<'_>) -> Result<()> {
        Ok(())
    }
    /// Whether [`Memory::leave`] is done instead of [`Memory::finish`] where outputs are read by another plan alone.
    const LEAVES: bool = false;
    /// After the last step: outputs become tensors over memory of the device, and nothing is waited for.
    fn leave(&mut self, plan: &Plan<B>, host: &mut Host<'_>) -> Result<()> {
        self.finish(plan, host)
    }
    /// After that, for a device that runs steps some time after they were called: how long they took, by their index. The
    /// times of the calls are there already.
    fn times(&mut self, _times: &mut [Duration]) -> Result<()> {
        Ok(())
    }
}

/// Tensors of the host that steps read and write besides planned memory.
#[derive(Debug)]
pub struct Host<'a> {
    /// Inputs of the model.
    pub inputs: &'a [Tensor],
    /// What evaluated steps made.
    pub held: &'a [Option<Tensor>],
    /// Outputs of the model, of the right type and shape.
    pub outputs: &'a mut [Tensor],
}

/// A step that is to run.
pub struct StepRun<'a, B: Backend> {
    /// The plan it is of.
    pub plan: &'a Plan<B>,
    /// The step with its operands.
    pub step: &'a PlanStep<B>,
    /// Its kernel.
    pub kernel: &'a dyn Step<B>,
    /// The stream it runs on.
    pub exec: &'a B::Exec,
}

impl<B: Backend> Debug for StepRun<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StepRun({})", self.step.location)
    }
}

impl<B: Backend> StepRun<'_, B> {
    /// Calls the kernel. A panic of it is an error.
    pub fn call(&self, io: &mut B::Io<'_>) -> Result<()> {
        guarded::<B, _>("the kernel", || self.kernel.run(io))
    }
}
