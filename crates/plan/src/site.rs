//! What a builder sees of a unit of work, and its answer.

use crate::backend::{Backend, Step};
use crate::compressed::Compressed;
use crate::epilogue::ElementwiseOp;
use crate::grid::{Grid, Integers};
use crate::layout::{Form, Layout};
use crate::lower::separable::Before;
use carafe_graph::Op;
use carafe_tensor::{ElementType, Tensor, strides};
use std::sync::Arc;

/// One value at a node, as a builder sees it.
#[derive(Clone, Debug)]
pub struct Port {
    /// As the model says.
    pub ty: ElementType,
    /// As the model says, whatever the layout.
    pub shape: Vec<usize>,
    /// Inputs: how the value lies now. A builder may ask for another layout.
    pub layout: Layout,
    /// Inputs: the type in which the value lies now. A builder may ask for another.
    pub stored: ElementType,
    /// The value, plain and in the type of the model, if it is known.
    pub constant: Option<Tensor>,
    /// The steps on which its numbers lie. Such a value may be read and written as u8.
    pub grid: Option<Grid>,
    /// Outputs: the type in which those who read it would rather have it, when that is a narrower float than the model's.
    pub preferred: Option<ElementType>,
    /// Outputs: whether somebody who computes with integers reads it.
    pub wants_bytes: bool,
    /// Weights that the model stores as integers. A unit whose data lies on no grid sees them as a constant, and so does one
    /// whose builder declined them.
    pub integers: Option<Integers>,
    /// Weights that the model stores compressed, where [`crate::Fusing::reads_compressed`] asks for them. A unit whose builder
    /// declined sees them as a constant.
    pub compressed: Option<Compressed>,
}

impl Port {
    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }
    /// Number of elements, as the model counts.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }
    /// Whether the model says f32.
    pub fn is_f32(&self) -> bool {
        self.ty == ElementType::F32
    }
    /// The elements of a constant as integers.
    pub fn ints(&self) -> Option<Vec<i64>> {
        self.constant.as_ref()?.to_vec::<i64>().ok().map(|v| v.into_owned())
    }
    /// The elements of a constant as floats.
    pub fn floats(&self) -> Option<Vec<f32>> {
        self.constant.as_ref()?.to_vec::<f32>().ok().map(|v| v.into_owned())
    }
}

/// A unit of work to find a step for.
pub struct Site<'a, B: Backend> {
    /// The operation.
    pub op: &'a dyn Op,
    /// All inputs; those from `own_inputs` on belong to `epilogue`.
    pub inputs: Vec<Port>,
    /// Inputs of the operation itself.
    pub own_inputs: usize,
    /// The results.
    pub outputs: Vec<Port>,
    /// Whether anybody reads an output. A builder may leave out the last ones that nobody does.
    pub wanted: Vec<bool>,
    /// Elementwise work that follows and belongs to this step.
    pub epilogue: &'a [ElementwiseOp],
    /// Inputs that are read with their axes in another order: axis `order[i]` of the value is axis `i` of the operand. Shapes
    /// of the inputs are those after the change of order; a builder that does not look at this must decline when there is one.
    pub orders: &'a [Option<Vec<usize>>],
    /// The same for the result: axis `order[i]` of what the operation gives is axis `i` of the value.
    pub out_order: Option<&'a [usize]>,
    /// `epilogue` is all there is to do; `op` only names it.
    pub group: bool,
    /// A convolution that is done first, in the same step.
    pub before: Option<&'a Before>,
    /// Element type in which the backend wants the unit computed.
    pub precision: ElementType,
    /// What builders of this plan share.
    pub cx: &'a B::BuildCx,
}

impl<B: Backend> std::fmt::Debug for Site<'_, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Site({}, {:?} -> {:?})", self.op.type_name(), self.inputs, self.outputs)
    }
}

impl<B: Backend> Site<'_, B> {
    /// Whether any operand is read or written in another order of axes.
    pub fn reordered(&self) -> bool {
        self.out_order.is_some() || self.orders.iter().any(Option::is_some)
    }
    /// Elements from one to the next along each axis of an input that lies plainly.
    pub fn strides(&self, input: usize) -> Vec<usize> {
        let shape = &self.inputs[input].shape;
        let Some(order) = self.orders.get(input).and_then(Option::as_ref) else { return strides(shape) };
        let mut source = vec![0; shape.len()];
        order.iter().zip(shape).for_each(|(&from, &n)| source[from] = n);
        let steps = strides(&source);
        order.iter().map(|&from| steps[from]).collect()
    }
    /// Shape of what the operation gives, and elements from one to the next along each of its axes.
    pub fn result(&self) -> (Vec<usize>, Vec<usize>) {
        let shape = &self.outputs[0].shape;
        let steps = strides(shape);
        let Some(order) = self.out_order else { return (shape.clone(), steps) };
        let (mut own, mut own_steps) = (vec![0; shape.len()], vec![0; shape.len()]);
        for (i, &axis) in order.iter().enumerate() {
            own[axis] = shape[i];
            own_steps[axis] = steps[i];
        }
        (own, own_steps)
    }
    /// The layout of an input as it lies now.
    pub fn layout(&self, input: usize) -> Layout {
        self.inputs[input].layout
    }
}

/// The answer of a builder.
#[derive(Debug)]
pub struct Built<B: Backend> {
    /// The step.
    pub work: Work<B>,
    /// Inputs the step reads while it runs, in the order it wants them, each in this form.
    pub reads: Vec<(usize, Form)>,
    /// Form of each output.
    pub outputs: Vec<Form>,
    /// Bytes of memory for itself.
    pub workspace: usize,
    /// How much of the epilogue it does; all when `None`. The rest becomes a step of its own.
    pub taken: Option<usize>,
    /// Element type in which the step computes, when that is not what the site asked for.
    pub precision: Option<ElementType>,
}

/// What a builder found.
#[derive(Debug)]
pub enum Work<B: Backend> {
    /// A kernel.
    Step(Arc<dyn Step<B>>),
    /// Output 0 is the bytes of `reads[0]`, under another shape.
    View,
}

impl<B: Backend> Built<B> {
    /// Work with these reads and outputs, no workspace, and all of the epilogue.
    pub fn new<F: Into<Form>>(
        work: Work<B>,
        reads: impl IntoIterator<Item = (usize, F)>,
        outputs: impl IntoIterator<Item = F>,
    ) -> Built<B> {
        let reads = reads.into_iter().map(|(i, form)| (i, form.into())).collect();
        let outputs = outputs.into_iter().map(Into::into).collect();
        Built { work, reads, outputs, workspace: 0, taken: None, precision: None }
    }
    /// A step with one output and no workspace.
    pub fn step<F: Into<Form>>(
        step: impl Step<B> + 'static,
        reads: impl IntoIterator<Item = (usize, F)>,
        output: impl Into<Form>,
    ) -> Built<B> {
        let mut built = Built::new(Work::Step(Arc::new(step)), reads, []);
        built.outputs.push(output.into());
        built
    }
    /// The same bytes as an input.
    pub fn view(input: usize, layout: Layout, output: Layout) -> Built<B> {
        Built::new(Work::View, [(input, layout)], [output])
    }
    /// With only so much of the epilogue done.
    pub fn taking(mut self, count: usize) -> Built<B> {
        self.taken = Some(count);
        self
    }
    /// With memory for itself.
    pub fn with_workspace(mut self, bytes: usize) -> Built<B> {
        self.workspace = bytes;
        self
    }
    /// Computed in another element type than the site asked for.
    pub fn with_precision(mut self, ty: ElementType) -> Built<B> {
        self.precision = Some(ty);
        self
    }
}
