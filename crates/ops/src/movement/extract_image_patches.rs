//! ExtractImagePatches: every window of an image laid out along the channels. Channel `(ky * KW + kx) * C + c` holds
//! kernel position `(ky, kx)` of image channel `c`; positions outside of the image are zero.

use crate::index::unravel;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

carafe_graph::attr_enum! {
    /// How windows meet the border.
    pub enum PatchPad {
        /// As many windows as `ceil(size / stride)`; an odd pad goes to the end.
        SameUpper = "same_upper",
        /// As many windows as `ceil(size / stride)`; an odd pad goes to the begin.
        SameLower = "same_lower",
        /// Only windows within the image.
        Valid = "valid",
    }
}

/// Windows of an image as channels.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 3, moves = "0")]
pub struct ExtractImagePatches {
    /// Height and width of a window.
    pub sizes: Vec<i64>,
    /// Steps between windows.
    pub strides: Vec<i64>,
    /// Steps within a window.
    pub rates: Vec<i64>,
    /// How windows meet the border.
    pub auto_pad: PatchPad,
}

impl Op for ExtractImagePatches {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        for (name, list) in [("sizes", &self.sizes), ("strides", &self.strides), ("rates", &self.rates)] {
            let fits = list.len() == 2 && list.iter().all(|&n| (1..=MAX_STEP).contains(&n));
            cx.require(fits, || format!("attribute `{name}` must hold two positive numbers, found {list:?}"))?;
        }
        cx.require_rank(0, &[4])?;
        let kernel = Dim::known(self.sizes[0] * self.sizes[1]);
        let mut out = vec![cx.dim(0, 0), cx.dim(0, 1).mul(kernel)];
        for i in 0..2 {
            let n = cx.dim(0, 2 + i);
            let windows = match self.auto_pad {
                PatchPad::Valid => n.sub(Dim::known(self.extent(i) - 1)).clamp_shape(),
                _ => n,
            };
            out.push(windows.ceil_div(self.strides[i]));
        }
        cx.set(0, cx.ty(0), PartialShape::new(out));
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out = cx.out_shape(0)?;
        let shape = cx.shape(0);
        let (channels, size) = (shape[1], [shape[2] as i64, shape[3] as i64]);
        let before: Vec<i64> = (0..2).map(|i| self.pad_before(i, size[i], out[2 + i] as i64)).collect();
        let patches = cx.input(0).select(&out, |flat| {
            let at = unravel(flat, &out);
            let (position, c) = (at[1] / channels, at[1] % channels);
            let k = [position as i64 / self.sizes[1], position as i64 % self.sizes[1]];
            let mut from = at[0] * channels + c;
            for i in 0..2 {
                let p = at[2 + i] as i64 * self.strides[i] - before[i] + k[i] * self.rates[i];
                if !(0..size[i]).contains(&p) {
                    return None;
                }
                from = from * size[i] as usize + p as usize;
            }
            Some(from)
        })?;
        cx.set(0, patches)
    }
}

/// Attribute values above this are refused, so that products stay in range.
const MAX_STEP: i64 = 1 << 20;

impl ExtractImagePatches {
    // Positions a window spans.
    fn extent(&self, i: usize) -> i64 {
        (self.sizes[i] - 1) * self.rates[i] + 1
    }

    fn pad_before(&self, i: usize, size: i64, windows: i64) -> i64 {
        let total = ((windows - 1) * self.strides[i] + self.extent(i) - size).max(0);
        match self.auto_pad {
            PatchPad::Valid => 0,
            PatchPad::SameUpper => total / 2,
            PatchPad::SameLower => total - total / 2,
        }
    }
}
