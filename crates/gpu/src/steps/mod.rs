//! Steps: the glue between an operation and its kernels. One file a family; `BUILDERS` lists them and is asked in order. A
//! builder looks at a node with known shapes and answers with launches and the forms it reads and writes, or declines.

mod adaptive_pool;
mod attention;
mod conv;
mod custom;
mod deformable;
pub(crate) mod elementwise;
mod ending;
mod gather_tree;
mod grid_sample;
mod indexing;
mod interpolate;
mod matmul;
pub(crate) mod movement;
mod norm;
pub(crate) mod pointwise;
mod pool;
mod product;
mod recurrent;
mod reduce;
mod regions;
mod rope;
mod search;
mod sorted;
mod strided_views;
mod tiles;
mod typed;
pub(crate) mod types;
pub(crate) mod view;
mod yolo;

use crate::backend::Gpu;
use carafe_graph::Result;
use carafe_plan::Layout;
pub(crate) use carafe_plan::Port;

/// A unit of work to find a step for.
pub(crate) type Site<'a> = carafe_plan::Site<'a, Gpu>;
/// The answer of a builder.
pub(crate) type Built = carafe_plan::Built<Gpu>;

/// Elements of a tensor that kernels count, but for groups of elementwise operations.
pub(crate) const MOST_ELEMENTS: usize = i32::MAX as usize;

type Builder = fn(&Site<'_>) -> Result<Option<Built>>;

/// Every family, in the order they are asked.
#[rustfmt::skip]
pub(crate) const BUILDERS: &[Builder] = &[
    custom::build,
    elementwise::build,
    movement::build,
    strided_views::build,
    reduce::build,
    search::build,
    indexing::build,
    typed::build,
    matmul::build,
    conv::build,
    norm::build,
    attention::build,
    pool::build,
    interpolate::build,
    recurrent::build,
    rope::build,
    adaptive_pool::build,
    deformable::build,
    gather_tree::build,
    grid_sample::build,
    regions::build,
    sorted::build,
    yolo::build,
];

/// Those that read or write in another order of axes (`Site::orders`, `Site::out_order`).
pub(crate) const REORDERING: &[Builder] = &[matmul::build, attention::build];

/// The step of a node, from the first family that takes it.
pub(crate) fn build(site: &Site<'_>) -> Result<Option<Built>> {
    // Weights that nobody takes as they are stored come back as floats.
    if site.inputs.iter().any(|p| p.compressed.is_some() || p.integers.is_some()) {
        return Ok(None);
    }
    // Kernels count in 32 bits; groups of elementwise operations see to that themselves.
    let large = |p: &Port| p.len() > MOST_ELEMENTS;
    if !site.group && site.inputs.iter().chain(&site.outputs).any(large) {
        return Ok(None);
    }
    // What lies in blocks is put into order first.
    if site.inputs.iter().any(|p| p.layout.is_blocked()) {
        let mut inputs = site.inputs.clone();
        inputs.iter_mut().filter(|p| p.layout.is_blocked()).for_each(|p| p.layout = Layout::PLAIN);
        let (outputs, wanted) = (site.outputs.clone(), site.wanted.clone());
        return build(&Site { inputs, outputs, wanted, ..*site });
    }
    let builders = if site.reordered() { REORDERING } else { BUILDERS };
    for builder in builders {
        if let Some(built) = builder(site)? {
            return Ok(Some(built));
        }
    }
    Ok(None)
}
