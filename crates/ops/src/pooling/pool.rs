//! What the pools with a kernel share. The kernel is an attribute, so that even data of unknown rank gives a shape.

use crate::convolution::unfold::Grid;
use crate::convolution::window::{PadType, Rounding, Window, check_list};
use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// A window of fixed size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pool<'a> {
    pub kernel: &'a [i64],
    pub window: Window<'a>,
}

impl Pool<'_> {
    /// Whether a window may hold nothing but padding.
    pub(super) fn may_be_empty(&self) -> bool {
        let Window { strides, dilations, pads_begin, pads_end, rounding, .. } = self.window;
        let at = |list: &[i64], i: usize, otherwise| list.get(i).copied().unwrap_or(otherwise);
        let axis = |(i, &k): (usize, &i64)| {
            let beyond = if rounding == Rounding::Floor { 0 } else { at(strides, i, 1) - 1 };
            at(pads_begin, i, 0) >= k || at(pads_end, i, 0) + beyond >= k
        };
        self.kernel.iter().enumerate().any(axis) || dilations.iter().any(|&d| d > 1)
    }
    /// Checks data and attributes and gives the output shape.
    pub(super) fn shape(&self, cx: &InferCx<'_>) -> Result<PartialShape> {
        cx.require_number(0)?;
        cx.require_rank(0, &[3, 4, 5])?;
        let n = self.kernel.len();
        cx.require((1..=3).contains(&n) && cx.rank(0).is_none_or(|r| r == n + 2), || {
            format!(
                "attribute `kernel` must have one value for each spatial axis of [{}], found {:?}",
                cx.shape(0),
                self.kernel
            )
        })?;
        check_list("kernel", self.kernel, 1, n)?;
        self.window.check(n)?;
        check_list("pads_begin", self.window.pads_begin, 0, n)?;
        check_list("pads_end", self.window.pads_end, 0, n)?;
        for i in 0..n {
            let axis = self.window.axis(i, 1, self.kernel[i]);
            let (extent, before, after) = (axis.extent(), axis.pad_begin, axis.pad_end);
            let explicit = self.window.auto_pad == PadType::Explicit;
            cx.require(!explicit || (before < extent && after < extent), || {
                format!("pads {before} and {after} on axis {i} must be smaller than the window of {extent}")
            })?;
        }
        let kernel = PartialShape::new(self.kernel.iter().map(|&k| Dim::known(k)));
        let mut dims = vec![cx.dim(0, 0), cx.dim(0, 1)];
        dims.extend(self.window.all_windows(cx.shape(0), &kernel, n)?);
        Ok(PartialShape::new(dims))
    }

    /// The windows on the data of an evaluation.
    pub(super) fn grid(&self, cx: &EvalCx<'_>) -> Result<Grid> {
        let (image, windows) = (&cx.shape(0)[2..], &cx.out_shape(0)?[2..]);
        let axis = |i: usize| self.window.axis(i, image[i] as i64, self.kernel[i]);
        Ok(Grid::new(image, windows, &(0..image.len()).map(axis).collect::<Vec<_>>()))
    }
}

/// `ceil_torch` came with opset 14.
pub(super) fn refuse_ceil_torch(cx: &InferCx<'_>, rounding: Rounding) -> Result<()> {
    cx.require(rounding != Rounding::CeilTorch, || {
        "attribute `rounding_type` must be floor or ceil before opset14, found ceil_torch".to_string()
    })
}

/// An index output is i64 or i32.
pub(super) fn check_index_type(cx: &InferCx<'_>, ty: ElementType) -> Result<()> {
    cx.require(matches!(ty, ElementType::I64 | ElementType::I32), || {
        format!("attribute `index_element_type` must be i64 or i32, found {ty}")
    })
}

/// Visits every window in order with the flat image positions it covers, row by row.
pub(super) fn each_window(grid: &Grid, visit: &mut dyn FnMut(&mut dyn Iterator<Item = usize>)) {
    let [_, height, width] = grid.image;
    for z in 0..grid.windows[0] {
        let depth = grid.inside(0, z);
        for y in 0..grid.windows[1] {
            let rows = grid.inside(1, y);
            for x in 0..grid.windows[2] {
                let columns = grid.inside(2, x);
                let mut positions = depth.clone().flat_map(|k| {
                    let plane = grid.position(0, z, k).unwrap_or(0) * height;
                    let columns = columns.clone();
                    rows.clone().flat_map(move |k| {
                        let row = (plane + grid.position(1, y, k).unwrap_or(0)) * width;
                        columns.clone().map(move |k| row + grid.position(2, x, k).unwrap_or(0))
                    })
                });
                visit(&mut positions);
            }
        }
    }
}

/// Whether dilations are the same: an older version has none and is read with ones.
pub(super) fn same_dilations(a: &[i64], b: &[i64]) -> bool {
    let ones = |d: &[i64]| d.iter().all(|&d| d == 1);
    if a.is_empty() || b.is_empty() { ones(a) && ones(b) } else { a == b }
}
