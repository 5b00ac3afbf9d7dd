//! RegionYolo: activations of a YOLO head. A region is `coords`, objectness, `classes`; only the first two coordinates
//! get a sigmoid. With `do_softmax` (YOLO v2) classes compete and the output is flattened; without (YOLO v3) each class
//! gets a sigmoid and the shape stays.

use super::expect::{at_least, dim_is};
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, PartialShape};

/// Activated YOLO predictions.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1)]
pub struct RegionYolo {
    /// Anchor sizes; kept for the reader of the output.
    #[attr(default = vec![])]
    pub anchors: Vec<f32>,
    /// First axis that `do_softmax` flattens.
    pub axis: i64,
    /// Coordinates of a region.
    pub coords: i64,
    /// Classes of a region.
    pub classes: i64,
    /// Last axis that `do_softmax` flattens.
    pub end_axis: i64,
    /// Regions of a cell with `do_softmax`.
    pub num: i64,
    /// Softmax over the classes.
    #[attr(default = true)]
    pub do_softmax: bool,
    /// Anchors used; as many regions without `do_softmax`.
    #[attr(default = vec![])]
    pub mask: Vec<i64>,
}

impl RegionYolo {
    fn regions(&self) -> i64 {
        if self.do_softmax { self.num } else { self.mask.len() as i64 }
    }
}

impl Op for RegionYolo {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_float(0)?;
        cx.require_rank(0, &[4])?;
        at_least(cx, "coords", self.coords, 2)?;
        at_least(cx, "classes", self.classes, 0)?;
        at_least(cx, "num", self.num, 0)?;
        let entries = self.coords.checked_add(self.classes).and_then(|n| n.checked_add(1));
        let Some(channels) = entries.and_then(|n| n.checked_mul(self.regions())) else {
            return Err(cx.fail(format!("{} coords and {} classes are too many", self.coords, self.classes)));
        };
        let Some(dims) = cx.shape(0).dims() else {
            let shape = if self.do_softmax { PartialShape::dynamic() } else { PartialShape::any_of_rank(4) };
            cx.set(0, cx.ty(0), shape);
            return Ok(());
        };
        if self.do_softmax {
            dim_is(cx, 0, 1, channels)?;
        }
        cx.require(dims[1].max().is_none_or(|c| c >= channels), || {
            format!("{} regions need {channels} channels, found [{}]", self.regions(), cx.shape(0))
        })?;
        let mut out = dims.to_vec();
        if self.do_softmax {
            let (axis, end) = (cx.axis(self.axis, 4)?, cx.axis(self.end_axis, 4)?);
            if axis < end {
                let flat = dims[axis..=end].iter().fold(Dim::known(1), |a, &d| a.mul(d));
                out.splice(axis..=end, [flat]);
            }
        } else {
            out[1] = Dim::known(channels);
        }
        cx.set(0, cx.ty(0), PartialShape::new(out));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.out_shape(0)?;
        let &[_, channels, height, width] = cx.shape(0) else { return Err(cx.fail("data must have rank 4")) };
        let area = height * width;
        let (coords, classes) = (self.coords as usize, self.classes as usize);
        let input = cx.get::<f64>(0)?;
        // Channels beyond the regions are left out.
        let (from, used) = (channels * area, (self.regions() as usize * (coords + classes + 1)).min(channels) * area);
        let mut y: Vec<f64> = input.chunks_exact(from.max(1)).flat_map(|image| &image[..used]).copied().collect();
        for region in y.chunks_exact_mut(((coords + classes + 1) * area).max(1)) {
            region[..2 * area].iter_mut().for_each(sigmoid);
            let (objectness, classes) = region[coords * area..].split_at_mut(area);
            objectness.iter_mut().for_each(sigmoid);
            if self.do_softmax {
                (0..area).for_each(|cell| softmax(classes, cell, area));
            } else {
                classes.iter_mut().for_each(sigmoid);
            }
        }
        cx.put(0, &shape, y)
    }
}

fn sigmoid(x: &mut f64) {
    *x = 1.0 / (1.0 + (-*x).exp());
}

/// Softmax over every `stride`-th element from `first` on.
fn softmax(x: &mut [f64], first: usize, stride: usize) {
    let of_cell = || (first..x.len()).step_by(stride);
    let max = of_cell().map(|i| x[i]).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = of_cell().map(|i| (x[i] - max).exp()).sum();
    for i in (first..x.len()).step_by(stride) {
        x[i] = (x[i] - max).exp() / sum;
    }
}
