//! From a model with known input shapes to a plan. The passes, in order:
//!
//! 1. `draft`: nodes become units of work over numbered values, each with the precision that the backend wants for it;
//!    `quantize` writes FakeQuantize as arithmetic, `grids` finds values that bytes can hold;
//! 2. `transposes`: a transpose before or behind attention or a product of two computed matrices becomes the order in which
//!    that reads or writes;
//! 3. `epilogue`: elementwise nodes behind a convolution or matrix product move into it;
//! 4. `separable`: a depthwise convolution moves into the pointwise one behind it, or the other way round, when what is
//!    between is large;
//! 5. `groups`: what is left of elementwise nodes is put together, chains and trees of any size;
//!    `preferred` finds values that are better stored in a narrower type;
//! 6. `select`: each unit gets its kernel and each value its layout and type; where forms differ, a copy is put between;
//! 7. `alias_concat_split`: what a concatenation joins is made where it ends up, what a split cuts out is read where it lies;
//! 8. `in_place`: elementwise steps and the like write over an input that nobody needs any more;
//! 9. `memory`: values get slots in planned memory by how long they live.

mod alias_concat_split;
pub(crate) mod draft;
mod epilogue;
mod grids;
mod groups;
mod in_place;
mod memory;
mod preferred;
mod quantize;
mod select;
pub(crate) mod separable;
mod transposes;

use crate::backend::{Backend, Fusing};
use crate::plan::Plan;
use carafe_graph::{Model, Result};
use draft::Draft;

/// Lowers a model. Values whose shape is not known yet are computed by plain evaluation.
pub fn lower<B: Backend>(model: &Model, backend: &B) -> Result<Plan<B>> {
    let mut chosen = select::select(units(model, backend)?, backend)?;
    alias_concat_split::alias(&mut chosen, backend)?;
    in_place::run_in_place(&mut chosen);
    Ok(memory::plan(chosen))
}

// Units of work with all that is fused into them.
fn units(model: &Model, fusing: &dyn Fusing) -> Result<Draft> {
    let mut draft = Draft::of(model, fusing)?;
    quantize::spell_out(&mut draft, fusing)?;
    grids::find(&mut draft);
    transposes::absorb(&mut draft, fusing);
    epilogue::fuse(&mut draft, fusing);
    separable::fuse(&mut draft, fusing);
    groups::fuse(&mut draft, fusing);
    preferred::find(&mut draft, fusing);
    Ok(draft)
}
