//! Blocks that move between batch, channels and space.

use super::layout::Layout;
use super::padding::before_and_after;
use super::shapes::{i64_vector, rank};
use carafe_frontend::{Compose, NodeCx};
use carafe_graph::{Result, Value};
use carafe_ops::movement::depth_to_space::BlockOrder;
use carafe_ops::movement::pad::PadMode;
use carafe_ops::movement::{BatchToSpace, DepthToSpace, Pad, SpaceToBatch, SpaceToDepth};

/// Moves blocks of channels into space.
pub fn depth_to_space(n: &mut NodeCx<'_>, x: Value, block_size: i64, layout: Layout) -> Result<Value> {
    let x = layout.to_first(n, x, 2)?;
    let y = n.emit(DepthToSpace { block_size, mode: BlockOrder::BlocksFirst }, &[x])?;
    layout.from_first(n, y, 2)
}

/// Moves blocks of space into channels.
pub fn space_to_depth(n: &mut NodeCx<'_>, x: Value, block_size: i64, layout: Layout) -> Result<Value> {
    let x = layout.to_first(n, x, 2)?;
    let y = n.emit(SpaceToDepth { block_size, mode: BlockOrder::BlocksFirst }, &[x])?;
    layout.from_first(n, y, 2)
}

/// Moves blocks of the batch into the axes behind it and crops them by `crops`, a matrix `[axes, 2]`.
pub fn batch_to_space(n: &mut NodeCx<'_>, x: Value, block: Value, crops: Value) -> Result<Value> {
    let inputs = over_all_axes(n, x, block, crops)?;
    n.emit(BatchToSpace, &[x, inputs[0], inputs[1], inputs[2]])
}

/// Pads the axes behind the batch by `pads`, a matrix `[axes, 2]`, and moves blocks of them into the batch.
pub fn space_to_batch(n: &mut NodeCx<'_>, x: Value, block: Value, pads: Value) -> Result<Value> {
    let inputs = over_all_axes(n, x, block, pads)?;
    n.emit(SpaceToBatch, &[x, inputs[0], inputs[1], inputs[2]])
}

// Blocks, begins and ends with an entry for the batch in front and neutral ones behind.
fn over_all_axes(n: &mut NodeCx<'_>, x: Value, block: Value, margins: Value) -> Result<[Value; 3]> {
    let block = i64_vector(n, block)?;
    let (begins, ends) = before_and_after(n, margins)?;
    let behind = match (n.rank(x), n.shape(block).dims().and_then(|d| d.first()?.size())) {
        (Some(rank), Some(blocks)) => match rank.checked_sub(blocks + 1) {
            Some(behind) => n.i64s(&[behind as i64])?,
            None => return Err(n.fail(format!("{blocks} blocks are too many for data of {rank} axes"))),
        },
        _ => {
            let (rank, blocks) = (rank(n, x)?, n.shape_of(block)?);
            let behind = n.minus(rank, blocks)?;
            n.plus_number(behind, -1.0)?
        }
    };
    let front = n.i64s(&[1])?;
    let mut all = [block, begins, ends];
    for (list, neutral) in all.iter_mut().zip([1.0, 0.0, 0.0]) {
        let value = n.scalar_like(*list, neutral)?;
        *list = n.emit(Pad { pad_mode: PadMode::Constant }, &[*list, front, behind, value])?;
    }
    Ok(all)
}
