//! SpaceToDepth: moves blocks of the spatial axes into the channels; undoes DepthToSpace of the same mode.

use super::depth_to_space::{BlockOrder, divide, spatial};
use super::view::View;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

/// `[N, C, D...]` becomes `[N, C * block^k, D / block...]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, moves = "0", rows = "0")]
pub struct SpaceToDepth {
    /// Side of a block.
    #[attr(default = 1)]
    pub block_size: i64,
    /// Where the block stands within the channels.
    pub mode: BlockOrder,
}

impl Op for SpaceToDepth {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let shape = match spatial(cx, self.block_size)? {
            Some((dims, volume)) => {
                let mut out = vec![dims[0], dims[1].mul(Dim::known(volume))];
                for &d in &dims[2..] {
                    out.push(divide(cx, d, self.block_size, "positions")?);
                }
                PartialShape::new(out)
            }
            None => PartialShape::dynamic(),
        };
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out = cx.out_shape(0)?;
        let block = self.block_size as usize;
        let mut split = cx.shape(0)[..2].to_vec();
        for &d in &out[2..] {
            split.extend([d, block]);
        }
        let blocks = (0..out.len() - 2).map(|i| 3 + 2 * i);
        let mut order = match self.mode {
            BlockOrder::BlocksFirst => [0].into_iter().chain(blocks).chain([1]).collect::<Vec<_>>(),
            BlockOrder::DepthFirst => [0, 1].into_iter().chain(blocks).collect(),
        };
        order.extend((0..out.len() - 2).map(|i| 2 + 2 * i));
        let moved = View::whole(&split).permuted(&order).copy(cx.input(0))?.reshaped(&out)?;
        cx.set(0, moved)
    }
}
