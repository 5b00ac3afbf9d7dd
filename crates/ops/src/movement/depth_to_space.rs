//! DepthToSpace: moves blocks of channels into the spatial axes, of which there may be any number.

use super::view::View;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

carafe_graph::attr_enum! {
    /// Where the block stands within the channels.
    pub enum BlockOrder {
        /// Channels are `[block..., rest]`.
        BlocksFirst = "blocks_first",
        /// Channels are `[rest, block...]`.
        DepthFirst = "depth_first",
    }
}

/// `[N, C, D...]` becomes `[N, C / block^k, D * block...]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, moves = "0", rows = "0")]
pub struct DepthToSpace {
    /// Side of a block.
    #[attr(default = 1)]
    pub block_size: i64,
    /// Where the block stands within the channels.
    pub mode: BlockOrder,
}

impl Op for DepthToSpace {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let shape = match spatial(cx, self.block_size)? {
            Some((dims, volume)) => {
                let mut out = vec![dims[0], divide(cx, dims[1], volume, "channels")?];
                out.extend(dims[2..].iter().map(|d| d.mul(Dim::known(self.block_size))));
                PartialShape::new(out)
            }
            None => PartialShape::dynamic(),
        };
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out = cx.out_shape(0)?;
        let (k, block) = (out.len() - 2, self.block_size as usize);
        let space = &cx.shape(0)[2..];
        // Where the rest of the channels and the first block axis stand.
        let (rest, blocks) = match self.mode {
            BlockOrder::BlocksFirst => (k + 1, 1),
            BlockOrder::DepthFirst => (1, 2),
        };
        let mut split = vec![block; k + 2];
        split[0] = out[0];
        split[rest] = out[1];
        split.extend(space);
        let mut order = vec![0, rest];
        for i in 0..k {
            order.extend([k + 2 + i, blocks + i]);
        }
        let moved = View::whole(&split).permuted(&order).copy(cx.input(0))?.reshaped(&out)?;
        cx.set(0, moved)
    }
}

/// The dimensions of `[N, C, D...]` data and the number of elements in a block; `None` for an unknown rank.
pub(super) fn spatial<'a>(cx: &InferCx<'a>, block: i64) -> Result<Option<(&'a [Dim], i64)>> {
    cx.require(block >= 1, || format!("attribute `block_size` must be at least 1, found {block}"))?;
    let Some(dims) = cx.shape(0).dims() else {
        return Ok(None);
    };
    cx.require(dims.len() >= 3, || format!("data must have at least 3 axes, found [{}]", cx.shape(0)))?;
    let volume = u32::try_from(dims.len() - 2).ok().and_then(|k| block.checked_pow(k));
    let volume = volume.ok_or_else(|| cx.fail(format!("attribute `block_size` is too large: {block}")))?;
    Ok(Some((dims, volume)))
}

/// `dim / by`, which must leave no rest.
pub(super) fn divide(cx: &InferCx<'_>, dim: Dim, by: i64, what: &str) -> Result<Dim> {
    let (low, high) = (dim.ceil_div(by), dim.floor_div(by));
    cx.require(high.max().is_none_or(|h| low.min() <= h), || format!("{dim} {what} are not divisible by {by}"))?;
    Ok(if by == 1 { dim } else { Dim::range(low.min(), high.max()) })
}
