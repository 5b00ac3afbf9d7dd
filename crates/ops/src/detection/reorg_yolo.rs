//! ReorgYolo: the space-to-depth of YOLO v2. It follows the index order of Darknet, which fills the output as if going
//! the other way, so it is not SpaceToDepth.

use super::expect::at_least;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

/// `[N, C, H, W]` to `[N, C * stride^2, H / stride, W / stride]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 2, moves = "0", also = "opset1")]
pub struct ReorgYolo {
    /// Side of the blocks.
    pub stride: i64,
}

impl Op for ReorgYolo {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let s = self.stride;
        at_least(cx, "stride", s, 1)?;
        let Some(area) = s.checked_mul(s) else { return Err(cx.fail(format!("attribute `stride` is too large: {s}"))) };
        cx.require_rank(0, &[4])?;
        if cx.rank(0).is_none() {
            cx.set(0, cx.ty(0), PartialShape::any_of_rank(4));
            return Ok(());
        }
        let (n, c, h, w) = (cx.dim(0, 0), cx.dim(0, 1), cx.dim(0, 2), cx.dim(0, 3));
        cx.require(c.max().is_none_or(|c| c >= area), || {
            format!("needs at least stride * stride = {area} channels, found {c}")
        })?;
        let divides = |d: Dim| d.get().is_none_or(|n| n % s == 0);
        cx.require(divides(h) && divides(w), || format!("size {h} x {w} must be a multiple of the stride {s}"))?;
        cx.set(0, cx.ty(0), PartialShape::new([n, c.mul(Dim::known(area)), h.floor_div(s), w.floor_div(s)]));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.out_shape(0)?;
        let &[_, channels, height, width] = cx.shape(0) else { return Err(cx.fail("data must have rank 4")) };
        let s = self.stride as usize;
        let inner = (channels / (s * s)).max(1);
        let image = channels * height * width;
        // Where the channels are no multiple, images are read from closer together than they lie.
        let image_read = inner * s * s * height * width;
        let moved = cx.input(0).select(&shape, |i| {
            let (n, c) = (i / image, i % image / (height * width));
            let (h, w) = (i % (height * width) / width, i % width);
            let (block, from) = (c / inner, c % inner);
            let (y, x) = (h * s + block / s, w * s + block % s);
            Some(n * image_read + (from * height * s + y) * width * s + x)
        })?;
        cx.set(0, moved)
    }
}
