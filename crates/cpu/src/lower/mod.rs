//! From a model with known input shapes to a plan. The passes, in order:
//!
//! 1. `draft`: nodes become units of work over numbered values; `quantize` writes FakeQuantize as arithmetic;
//! 2. `transposes`: a transpose before or behind attention or a product of two computed matrices becomes the order in which
//!    that reads or writes;
//! 3. `epilogue`: elementwise nodes behind a convolution or matrix product move into it;
//! 4. `separable`: a depthwise convolution moves into the pointwise one behind it when what is between is large;
//! 5. `groups`: what is left of elementwise nodes is put together, chains and trees of any size;
//! 6. `select`: each unit gets its kernel and each value its layout; where layouts differ, a reorder is put between;
//! 7. `inside`: what a concatenation joins is made where it ends up, what a split cuts out is read where it lies;
//! 8. `over`: elementwise steps and the like write over an input that nobody needs any more;
//! 9. `memory`: values get places in one block of memory by how long they live.

mod draft;
pub(crate) mod elements;
mod epilogue;
mod groups;
mod inside;
mod memory;
mod over;
pub(crate) mod post;
mod quantize;
mod select;
pub(crate) mod separable;
mod transposes;

use crate::plan::Plan;
use crate::steps::BuildCx;
use carafe_graph::{Model, Result};
use draft::Draft;

/// Lowers a model. Values whose shape is not known yet are computed by plain evaluation.
pub(crate) fn lower(model: &Model, cx: &BuildCx<'_>) -> Result<Plan> {
    let mut draft = Draft::of(model)?;
    quantize::spell_out(&mut draft)?;
    transposes::absorb(&mut draft);
    epilogue::fuse(&mut draft);
    separable::fuse(&mut draft);
    groups::fuse(&mut draft);
    let mut chosen = select::select(draft, cx)?;
    inside::place(&mut chosen)?;
    over::write_over(&mut chosen);
    Ok(memory::plan(chosen))
}
