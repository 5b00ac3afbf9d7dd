//! Elementwise operations: chains of them in one pass over blocks that stay in the first cache ([`Program`], run over whole
//! arrays by [`Elements`] and over finished rectangles of a matrix by [`TileProgram`]), and single ones on other types
//! than f32 ([`typed`]).

mod apply;
mod broadcast;
mod bytes;
mod elements;
mod op;
mod program;
mod rows;
mod tile;
pub mod typed;

pub use broadcast::Broadcast;
pub use bytes::{BytesElements, BytesInput, BytesOutput};
pub use elements::Elements;
pub use op::{EltOp, Quantize, Steps};
pub use program::{Arg, Instr, Program};
pub use tile::{TileInput, TileProgram};

/// Into how many chunks a thread pool should cut `work` additions: one when a fork costs more than it gains, a few for each
/// thread when there is enough to even out.
pub(crate) fn pieces(exec: &crate::Exec<'_>, work: usize) -> usize {
    match work {
        0..16_384 => 1,
        16_384..524_288 => exec.threads(),
        // Long ones in more pieces: work is given up between two of them.
        _ => (exec.threads() * 4).max(work >> 26),
    }
}
