//! What lowering makes of a model for one set of input shapes: values with their slots, and steps in order.

use crate::backend::{Backend, DynamicOutput, Step};
use crate::segments::Tail;
use carafe_graph::{NodeId, OpRef};
use carafe_tensor::{ElementType, Tensor};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A range of bytes of a planned buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Region {
    /// Which of the plan's buffers; an arena has one.
    pub buffer: usize,
    /// The first byte.
    pub start: usize,
    /// Bytes.
    pub len: usize,
}

/// Where the bytes of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Planned memory.
    Planned(Region),
    /// The tensor bound to an input of the model.
    Input(usize),
    /// The tensor that an output of the model hands out.
    Output(usize),
    /// A constant of the plan.
    Constant(usize),
    /// A tensor that an evaluated step made.
    Held(usize),
}

/// A value of the plan.
#[derive(Clone, Debug)]
pub struct PlanValue {
    /// The type in which it is stored.
    pub ty: ElementType,
    /// As the model says. `None` when it is only known while running; then the value is held.
    pub shape: Option<Vec<usize>>,
    /// Where it is.
    pub slot: Slot,
    /// The bytes of it, when the slot has more. In planned memory they are the slot.
    pub range: Option<Range<usize>>,
}

impl PlanValue {
    /// The bytes of the value among those of its slot outside of planned memory.
    pub fn part<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        match &self.range {
            Some(range) => &bytes[range.clone()],
            None => bytes,
        }
    }
}

/// How a step does its work.
#[derive(Debug)]
pub enum Action<B: Backend> {
    /// A kernel over planned memory.
    Kernel(Arc<dyn Step<B>>),
    /// A kernel that makes its results.
    Dynamic(Arc<dyn DynamicOutput<B>>),
    /// The operation's own evaluation.
    Eval(OpRef),
}

/// One step.
#[derive(Debug)]
pub struct PlanStep<B: Backend> {
    /// The node whose work it does.
    pub node: NodeId,
    /// Name of the node.
    pub name: String,
    /// Type of its operation.
    pub type_name: String,
    /// The way errors speak of the node.
    pub location: String,
    /// What runs it, for reports.
    pub kernel: String,
    /// Element type in which it computes.
    pub precision: ElementType,
    /// How it does its work.
    pub action: Action<B>,
    /// Values it reads.
    pub reads: Vec<usize>,
    /// Values it writes.
    pub writes: Vec<usize>,
    /// The read whose bytes the result overwrites, by its index.
    pub in_place: Option<usize>,
    /// Memory for itself.
    pub workspace: Option<Region>,
    /// Held tensors that nobody reads after this step.
    pub drops: Vec<usize>,
    /// Names of further nodes it does the work of.
    pub fused: Vec<String>,
}

impl<B: Backend> PlanStep<B> {
    /// Kernel and precision in one word, as reports show them: `conv_gemm_1x1_f32+bias`. An evaluation has its name alone.
    pub fn exec_type(&self) -> String {
        match &self.action {
            Action::Eval(_) => return self.kernel.clone(),
            Action::Kernel(step) if !step.shows_precision() => return self.kernel.clone(),
            _ => {}
        }
        let at = self.kernel.find(['+', '[']).unwrap_or(self.kernel.len());
        format!("{}_{}{}", &self.kernel[..at], self.precision, &self.kernel[at..])
    }
}

/// A model for one set of input shapes.
#[derive(Debug)]
pub struct Plan<B: Backend> {
    /// No other plan of this process has it.
    pub id: u64,
    /// Shapes of the inputs it is for.
    pub inputs: Vec<Vec<usize>>,
    /// Inputs whose values it is for, by their index.
    pub values_of: Vec<(usize, Tensor)>,
    /// All values.
    pub values: Vec<PlanValue>,
    /// The steps, in order.
    pub steps: Vec<PlanStep<B>>,
    /// Constants that steps read.
    pub constants: Vec<Tensor>,
    /// Bytes of each planned buffer.
    pub buffers: Vec<usize>,
    /// Tensors that evaluated steps make.
    pub held: usize,
    /// Bytes of scratch of each thread.
    pub scratch: usize,
    /// Values that the outputs of the model hand out.
    pub outputs: Vec<usize>,
    /// What comes behind, with shapes that are known by then.
    pub(crate) tail: Option<Arc<Tail<B>>>,
}

/// An id for a plan.
pub(crate) fn new_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl<B: Backend> Plan<B> {
    /// Whether it is the plan for these inputs.
    pub(crate) fn suits(&self, inputs: &[Tensor]) -> bool {
        let shapes = self.inputs.iter().map(Vec::as_slice).eq(inputs.iter().map(Tensor::shape));
        shapes && self.values_of.iter().all(|(i, value)| inputs[*i].bytes() == value.bytes())
    }

    /// Bytes of all planned buffers.
    pub fn planned_bytes(&self) -> usize {
        self.buffers.iter().sum()
    }
}
