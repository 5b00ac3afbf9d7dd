//! Steps: the glue between an operation and its kernel. One file a family; `BUILDERS` lists them and is asked in order. A
//! builder looks at a node with known shapes and answers with a step and the memory layouts it wants, or declines.

mod attention;
mod bags;
mod bytes;
mod compressed;
mod conv;
pub(crate) mod convert;
pub(crate) mod dynamic_outputs;
pub(crate) mod elements;
mod embedding;
mod epilogue;
mod extension;
mod fold;
mod gather;
pub(crate) mod half;
mod leave;
mod matmul;
pub(crate) mod movement;
pub(crate) mod quantized;
mod quantized_deconv;
mod recurrent;
mod regions;
pub(crate) mod reorder;
mod rope;
mod rows;
mod sampling;
mod select;
mod separable;
mod spatial;
mod strided_views;
mod tile_program;
mod trees;
mod typed;
mod typed_unary;
mod types;
mod views;

pub(crate) use crate::backend::Cpu;
use carafe_device::Parallel;
use carafe_graph::Result;
use carafe_kernels::Exec;
use carafe_plan::Layout;
pub(crate) use carafe_plan::{Port, Step};
use carafe_tensor::ElementType;
use std::sync::Arc;

/// A unit of work to find a step for.
pub(crate) type Site<'a> = carafe_plan::Site<'a, Cpu>;
/// The answer of a builder.
pub(crate) type Built = carafe_plan::Built<Cpu>;
/// What a builder found.
pub(crate) type Work = carafe_plan::Work<Cpu>;

/// Memory of a step while it runs: the inputs it asked for, its outputs, and its workspace.
pub(crate) struct Io<'m> {
    pub(crate) exec: &'m Exec<'m>,
    pub(crate) inputs: &'m [&'m [u8]],
    pub(crate) outputs: &'m mut [&'m mut [u8]],
    pub(crate) workspace: &'m mut [u8],
    /// The input whose bytes are those of output 0 before it is written; its slice is empty.
    pub(crate) in_place: Option<usize>,
    /// The same threads, for code that asks for some.
    pub(crate) lent: &'m Arc<dyn Parallel>,
}

impl<'m> Io<'m> {
    /// An input as elements of its type.
    pub(crate) fn input<T: bytemuck::Pod>(&self, i: usize) -> &'m [T] {
        // What lies in the output is empty here, at no address to speak of.
        if self.in_place == Some(i) { &[] } else { bytemuck::cast_slice(self.inputs[i]) }
    }
    /// An output as elements of its type, and the rest without it.
    pub(crate) fn take_output<T: bytemuck::Pod>(&mut self, i: usize) -> (&mut [T], Io<'_>) {
        let out = bytemuck::cast_slice_mut(&mut *self.outputs[i]);
        let workspace = &mut *self.workspace;
        let Io { exec, inputs, in_place, lent, .. } = *self;
        (out, Io { exec, inputs, outputs: &mut [], workspace, in_place, lent })
    }
    /// An output as elements of its type.
    pub(crate) fn output<T: bytemuck::Pod>(&mut self, i: usize) -> &mut [T] {
        bytemuck::cast_slice_mut(self.outputs[i])
    }
}

/// Bytes of so many floats.
fn floats(count: usize) -> usize {
    count * size_of::<f32>()
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
    strided_views::build,
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

/// The step of a node, from the first family that takes it; kernels of extensions are asked before all.
pub(crate) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    // What nobody takes compressed comes back as floats.
    if site.inputs.iter().any(|p| p.compressed.is_some()) {
        return compressed::build(site);
    }
    if let Some(built) = extension::build(site)? {
        return Ok(Some(built));
    }
    // Only kernels of extensions know blocks; for the others what lies so is reordered first.
    if site.inputs.iter().any(|p| p.layout.is_blocked()) {
        let mut inputs = site.inputs.clone();
        inputs.iter_mut().filter(|p| p.layout.is_blocked()).for_each(|p| p.layout = Layout::PLAIN);
        let (outputs, wanted) = (site.outputs.clone(), site.wanted.clone());
        return build_own(&Site { inputs, outputs, wanted, ..*site });
    }
    build_own(site)
}

fn build_own(site: &Site<'_>) -> Result<Option<Built>> {
    if let Some(built) = quantized::build(site)? {
        return Ok(Some(built));
    }
    // Integer weights that nobody takes as they are come back as floats.
    if site.inputs.iter().any(|p| p.integers.is_some()) {
        return Ok(None);
    }
    if let Some(built) = half::build(site)? {
        return Ok(Some(built));
    }
    // Whoever else takes it computes in the type of the model.
    let narrow = half::computed_in(site).is_some() && site.inputs.iter().any(Port::is_f32);
    Ok(build_floats(site)?.map(|built| if narrow { built.with_precision(ElementType::F32) } else { built }))
}

fn build_floats(site: &Site<'_>) -> Result<Option<Built>> {
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
