//! Steps: the glue between an operation and its kernel. One file a family; `BUILDERS` lists them and is asked in order. A
//! builder looks at a node with known shapes and answers with a step and the memory layouts it wants, or declines.

pub(crate) mod apart;
mod attention;
mod bags;
mod conv;
mod convert;
mod elements;
mod embedding;
mod ending;
mod fold;
mod gather;
mod looks;
mod matmul;
mod movement;
mod recurrent;
mod regions;
pub(crate) mod reorder;
mod rope;
mod rows;
mod sampling;
mod select;
mod separable;
mod spatial;
mod trees;
mod typed;
mod typed_unary;
mod types;
mod views;

use self::apart::{Apart, Operand, Pieces};
use crate::lower::post::Post;
use crate::lower::separable::Before;
use crate::plan::Layout;
use crate::weights::{Packed, Packers, Weights};
use carafe_graph::{Op, Result};
use carafe_kernels::{Exec, Isa};
use carafe_tensor::{ElementType, Tensor, strides};
use std::fmt::Debug;
use std::sync::Arc;

/// A kernel bound to the sizes of one node.
pub(crate) trait Step: Debug + Send + Sync {
    /// The name in reports, such as `conv3x3_winograd_avx512`.
    fn kernel(&self) -> String;
    /// Floats each thread needs of the scratch memory.
    fn scratch_floats(&self) -> usize {
        0
    }
    /// Whether the rows of an operand may lie apart, see [`apart`].
    fn may_lie_apart(&self, _operand: Operand, _row: usize) -> bool {
        false
    }
    /// The same step for operands that do.
    fn apart(&self, _apart: &Apart) -> Option<Arc<dyn Step>> {
        None
    }
    /// Whether it can write its only result over a read of the same size, whose bytes are then in the output.
    fn may_run_over(&self, _read: usize) -> bool {
        false
    }
    /// What it moves, when it only puts pieces together or takes them apart.
    fn pieces(&self) -> Option<Pieces> {
        None
    }
    fn run(&self, io: &mut Io<'_, '_>) -> Result<()>;
}

/// Memory of a step while it runs: the inputs it asked for, its outputs, and its workspace.
#[derive(Debug)]
pub(crate) struct Io<'a, 'm> {
    pub(crate) exec: &'a Exec<'a>,
    pub(crate) inputs: &'a [&'m [u8]],
    pub(crate) outputs: &'a mut [&'m mut [u8]],
    pub(crate) workspace: &'a mut [u8],
    /// The input whose bytes are those of output 0 before it is written; its slice is empty.
    pub(crate) over: Option<usize>,
}

impl<'m> Io<'_, 'm> {
    /// An input as elements of its type.
    pub(crate) fn input<T: bytemuck::Pod>(&self, i: usize) -> &'m [T] {
        // What lies in the output is empty here, at no address to speak of.
        if self.over == Some(i) { &[] } else { bytemuck::cast_slice(self.inputs[i]) }
    }
    /// An output as elements of its type, and the rest without it.
    pub(crate) fn take_output<'b, T: bytemuck::Pod>(&'b mut self, i: usize) -> (&'b mut [T], Io<'b, 'm>) {
        let out = bytemuck::cast_slice_mut(&mut *self.outputs[i]);
        (
            out,
            Io {
                exec: self.exec,
                inputs: self.inputs,
                outputs: &mut [],
                workspace: &mut *self.workspace,
                over: self.over,
            },
        )
    }
    /// An output as elements of its type.
    pub(crate) fn output<T: bytemuck::Pod>(&mut self, i: usize) -> &mut [T] {
        bytemuck::cast_slice_mut(self.outputs[i])
    }
}

/// One value at a node, as a builder sees it.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    pub(crate) ty: ElementType,
    /// As the model says, whatever the layout.
    pub(crate) shape: Vec<usize>,
    /// Inputs: how the value lies now. A builder may ask for another one.
    pub(crate) layout: Layout,
    /// In the plain layout.
    pub(crate) constant: Option<Tensor>,
}

impl Port {
    pub(crate) fn rank(&self) -> usize {
        self.shape.len()
    }
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().product()
    }
    pub(crate) fn is_f32(&self) -> bool {
        self.ty == ElementType::F32
    }
    /// The elements of a constant as integers.
    pub(crate) fn ints(&self) -> Option<Vec<i64>> {
        self.constant.as_ref()?.to_vec::<i64>().ok().map(|v| v.into_owned())
    }
    /// The elements of a constant as floats.
    pub(crate) fn floats(&self) -> Option<Vec<f32>> {
        self.constant.as_ref()?.to_vec::<f32>().ok().map(|v| v.into_owned())
    }
}

/// A node to find a step for.
pub(crate) struct Site<'a> {
    pub(crate) op: &'a dyn Op,
    /// All inputs; those from `own_inputs` on belong to `post`.
    pub(crate) inputs: Vec<Port>,
    pub(crate) own_inputs: usize,
    pub(crate) outputs: Vec<Port>,
    /// Whether anybody reads an output. A builder may leave out the last ones that nobody does.
    pub(crate) wanted: Vec<bool>,
    /// Elementwise work that follows and belongs to this step.
    pub(crate) post: &'a [Post],
    /// See `Unit::orders`. Shapes of the inputs are those after the change of order; a builder that does not look at this
    /// must decline when there is one.
    pub(crate) orders: &'a [Option<Vec<usize>>],
    pub(crate) out_order: Option<&'a [usize]>,
    /// `post` is all there is to do; `op` only names it.
    pub(crate) group: bool,
    /// A convolution that is done first, in the same step.
    pub(crate) before: Option<&'a Before>,
    pub(crate) cx: &'a BuildCx<'a>,
}

/// What builders share.
pub(crate) struct BuildCx<'a> {
    pub(crate) isa: Isa,
    pub(crate) threads: usize,
    /// No method whose error is larger than that of a plain sum.
    pub(crate) exact: bool,
    pub(crate) weights: &'a Weights,
    pub(crate) packers: Packers,
}

/// The answer of a builder.
#[derive(Debug)]
pub(crate) struct Built {
    pub(crate) work: Work,
    /// Inputs the step reads while it runs, in the order it wants them, each in this layout.
    pub(crate) reads: Vec<(usize, Layout)>,
    /// Layout of each output.
    pub(crate) outputs: Vec<Layout>,
    /// Bytes of memory for itself.
    pub(crate) workspace: usize,
    /// How many of the posts it does; all when `None`. The others become a step of their own.
    pub(crate) taken: Option<usize>,
}

#[derive(Debug)]
pub(crate) enum Work {
    Step(Arc<dyn Step>),
    /// Output 0 is the bytes of `reads[0]`, under another shape.
    View,
}

impl Built {
    /// A step with one output and no workspace.
    pub(crate) fn step(step: impl Step + 'static, reads: Vec<(usize, Layout)>, output: Layout) -> Built {
        Built { work: Work::Step(Arc::new(step)), reads, outputs: vec![output], workspace: 0, taken: None }
    }
    /// The same bytes as an input.
    pub(crate) fn view(input: usize, layout: Layout, output: Layout) -> Built {
        Built { work: Work::View, reads: vec![(input, layout)], outputs: vec![output], workspace: 0, taken: None }
    }
    /// With only so many of the posts done.
    pub(crate) fn taking(mut self, posts: usize) -> Built {
        self.taken = Some(posts);
        self
    }
    pub(crate) fn with_workspace(mut self, bytes: usize) -> Built {
        self.workspace = bytes;
        self
    }
}

impl Site<'_> {
    /// Packed weights made of these constants. `form` says all else that packing depends on.
    pub(crate) fn packed(
        &self,
        form: &str,
        constants: &[&Tensor],
        floats: usize,
        fill: impl FnOnce(&mut [f32]) -> Result<()>,
    ) -> Result<Packed> {
        self.cx.weights.get(form, constants, floats, fill)
    }
    /// Whether any operand is read or written in another order of axes.
    pub(crate) fn reordered(&self) -> bool {
        self.out_order.is_some() || self.orders.iter().any(Option::is_some)
    }
    /// Elements from one to the next along each axis of an input that lies plainly.
    pub(crate) fn strides(&self, input: usize) -> Vec<usize> {
        let shape = &self.inputs[input].shape;
        let Some(order) = self.orders.get(input).and_then(Option::as_ref) else { return strides(shape) };
        let mut source = vec![0; shape.len()];
        order.iter().zip(shape).for_each(|(&from, &n)| source[from] = n);
        let steps = strides(&source);
        order.iter().map(|&from| steps[from]).collect()
    }
    /// Shape of what the operation gives, and elements from one to the next along each of its axes.
    pub(crate) fn result(&self) -> (Vec<usize>, Vec<usize>) {
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
    pub(crate) fn layout(&self, input: usize) -> Layout {
        self.inputs[input].layout
    }
}

type Builder = fn(&Site<'_>) -> Result<Option<Built>>;

/// Every family, in the order they are asked.
#[rustfmt::skip]
pub(crate) const BUILDERS: &[Builder] = &[
    elements::build,
    views::build,
    matmul::build,
    conv::build,
    attention::build,
    rope::build,
    rows::build,
    spatial::build,
    regions::build,
    sampling::build,
    fold::build,
    looks::build,
    movement::build,
    gather::build,
    bags::build,
    embedding::build,
    trees::build,
    select::build,
    convert::build,
    typed::build,
    typed_unary::build,
    recurrent::build,
    #[cfg(test)]
    crate::faults::build,
];

/// The step of a node, from the first family that takes it.
pub(crate) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    if site.reordered() {
        for builder in [attention::build, rope::build] {
            if let Some(built) = builder(site)? {
                return Ok(Some(built));
            }
        }
        return matmul::build(site);
    }
    for builder in BUILDERS {
        if let Some(built) = builder(site)? {
            return Ok(Some(built));
        }
    }
    Ok(None)
}

/// The axis along which the step of an operation keeps its columns, when elementwise work can follow inside the step.
pub(crate) fn column_axis(op: &dyn Op, rank: usize) -> Option<usize> {
    use carafe_ops::convolution::{
        Convolution, ConvolutionBackpropData, DeformableConvolution, DeformableConvolutionV1, GroupConvolution,
        GroupConvolutionBackpropData,
    };
    use carafe_ops::normalization::Mvn;
    if op.is::<carafe_ops::linear::MatMul>() || op.is::<Mvn>() || op.is::<carafe_ops::own::RmsNorm>() {
        return rank.checked_sub(1);
    }
    let forward = op.is::<Convolution>() || op.is::<GroupConvolution>();
    let backward = op.is::<ConvolutionBackpropData>() || op.is::<GroupConvolutionBackpropData>();
    let moved = op.is::<DeformableConvolution>() || op.is::<DeformableConvolutionV1>();
    (forward || backward || moved).then_some(1)
}
