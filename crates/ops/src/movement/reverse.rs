//! Reverse: turns axes around. Only in opset1; the axes come as a list or as a mask over all axes.

use super::axes::axes_input;
use super::view::View;
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis};

carafe_graph::attr_enum! {
    /// What the second input holds.
    pub enum ReverseMode {
        /// The numbers of the axes.
        Index = "index",
        /// One boolean for every axis.
        Mask = "mask",
    }
}

/// Reads the listed axes backwards.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, until = 1, inputs = "data, reversed_axes", moves = "0")]
pub struct Reverse {
    /// How the axes are given.
    pub mode: ReverseMode,
}

impl Op for Reverse {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_rank(1, &[1])?;
        match self.mode {
            ReverseMode::Index => {
                cx.require_integer(1)?;
                if let Some(rank) = cx.rank(0) {
                    axes_input(cx, 1, rank)?;
                }
            }
            ReverseMode::Mask => {
                cx.require_boolean(1)?;
                if let Some(rank) = cx.rank(0) {
                    let n = cx.dim(1, 0);
                    cx.require(n.contains(rank as i64), || format!("the mask must have {rank} entries, found {n}"))?;
                }
            }
        }
        cx.output_like(0, 0);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let rank = cx.shape(0).len();
        let mut reversed = vec![false; rank];
        for (i, &entry) in cx.ints(1)?.iter().enumerate() {
            match self.mode {
                ReverseMode::Index => reversed[normalize_axis(entry, rank)?] = true,
                ReverseMode::Mask if i < rank => reversed[i] = entry != 0,
                ReverseMode::Mask => {}
            }
        }
        let whole = View::whole(cx.shape(0));
        let view = (0..rank).filter(|&axis| reversed[axis]).fold(whole, View::reversed);
        let out = view.copy(cx.input(0))?;
        cx.set(0, out)
    }
}
