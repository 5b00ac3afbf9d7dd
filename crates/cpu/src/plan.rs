//! What lowering makes of a model for one set of input shapes: values with their places, and steps in order.

use crate::makers::Make;
use crate::pieces::Tail;
use crate::steps::Step;
use carafe_graph::{NodeId, OpRef};
use carafe_kernels::Part;
use carafe_tensor::{ElementType, Tensor};
use std::ops::Range;
use std::sync::Arc;

/// Order of a value's dimensions in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Layout {
    /// Row-major, as the model says.
    Plain,
    /// Axis 1 last: `N, H, W, C` for what the model calls `N, C, H, W`.
    ChannelsLast,
}

impl Layout {
    /// The dimensions as they lie in memory.
    pub(crate) fn dims(self, shape: &[usize]) -> Vec<usize> {
        self.order(shape.len()).into_iter().map(|a| shape[a]).collect()
    }
    /// Which axis of the model lies at each place in memory.
    pub(crate) fn order(self, rank: usize) -> Vec<usize> {
        match self {
            Layout::ChannelsLast if rank > 2 => std::iter::once(0).chain(2..rank).chain(std::iter::once(1)).collect(),
            _ => (0..rank).collect(),
        }
    }
    /// Where an axis of the model lies in memory.
    pub(crate) fn axis(self, axis: usize, rank: usize) -> usize {
        match self {
            Layout::ChannelsLast if rank > 2 && axis == 1 => rank - 1,
            Layout::ChannelsLast if rank > 2 && axis > 1 => axis - 1,
            _ => axis,
        }
    }
    /// Whether the layouts put this shape into the same bytes.
    pub(crate) fn same_for(self, other: Layout, shape: &[usize]) -> bool {
        let alike = |s: &[usize]| s.len() < 3 || s[1] == 1 || s[2..].iter().product::<usize>() == 1;
        self == other || alike(shape)
    }
    pub(crate) fn name(self) -> &'static str {
        match self {
            Layout::Plain => "plain",
            Layout::ChannelsLast => "channels_last",
        }
    }
}

/// Where the bytes of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Arena(Part),
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
pub(crate) struct PlanValue {
    pub(crate) ty: ElementType,
    /// `None` when it is only known while running; then the value is held.
    pub(crate) shape: Option<Vec<usize>>,
    pub(crate) place: Place,
    /// The bytes of it, when the place has more. In the arena they are the place.
    pub(crate) range: Option<Range<usize>>,
}

impl PlanValue {
    /// The bytes of the value among those of its place outside of the arena.
    pub(crate) fn part<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        match &self.range {
            Some(range) => &bytes[range.clone()],
            None => bytes,
        }
    }
}

/// How a step does its work.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// A kernel over planned memory.
    Fast(Arc<dyn Step>),
    /// A kernel that makes its results.
    Make(Arc<dyn Make>),
    /// The operation's own evaluation.
    Eval(OpRef),
}

/// One step.
#[derive(Clone, Debug)]
pub(crate) struct PlanStep {
    pub(crate) node: NodeId,
    pub(crate) name: String,
    pub(crate) type_name: String,
    /// The way errors speak of the node.
    pub(crate) place: String,
    /// What runs it, for reports.
    pub(crate) kernel: String,
    pub(crate) action: Action,
    pub(crate) reads: Vec<usize>,
    pub(crate) writes: Vec<usize>,
    /// The read that lies where the result goes, by its place.
    pub(crate) over: Option<usize>,
    pub(crate) workspace: Option<Part>,
    /// Held tensors that nobody reads after this step.
    pub(crate) drops: Vec<usize>,
    /// Names of further nodes it does the work of.
    pub(crate) fused: Vec<String>,
}

/// A model for one set of input shapes.
#[derive(Debug)]
pub(crate) struct Plan {
    /// Shapes of the inputs it is for.
    pub(crate) inputs: Vec<Vec<usize>>,
    pub(crate) values: Vec<PlanValue>,
    pub(crate) steps: Vec<PlanStep>,
    pub(crate) constants: Vec<Tensor>,
    pub(crate) arena: usize,
    pub(crate) held: usize,
    /// Floats of scratch of each thread.
    pub(crate) scratch: usize,
    /// Values that the outputs of the model hand out.
    pub(crate) outputs: Vec<usize>,
    /// What comes behind, with shapes that are known by then.
    pub(crate) tail: Option<Arc<Tail>>,
}
