//! Slice: `data[start:stop:step]` along the listed axes. Start and stop clip to the axis, negative ones count from its end
//! once; see `slicing` for where this differs from Python.

use super::axes::require_unique;
use super::slicing::{Bound, slice_dim, slice_exact};
use super::view::View;
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis, RowsCx, OrderCx, Reordered};
use carafe_tensor::{Dim, PartialShape};

/// Takes every `step`-th element from `start` to `stop` along each listed axis.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 8, inputs = "data, start, stop, step, axes?", moves = "0", shape_inputs = "1, 2, 3, 4")]
pub struct Slice;

impl Op for Slice {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let shape = sliced_shape(cx, 0, 1)?;
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out = sliced_view(cx, 0, 1)?.copy(cx.input(0))?;
        cx.set(0, out)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0]).and_then(|()| cx.axes_leave_rows(4))
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        let axes = if cx.n_inputs > 4 {
            cx.axes(4)?
        } else {
            (0..(cx.ints)(1)?.len() as i64).map(|a| cx.axis(a)).collect::<Option<_>>()?
        };
        // Without its list, the axes are the first ones.
        (cx.n_inputs > 4 || axes.iter().copied().eq(0..axes.len() as i64)).then(|| {
            let ints = if cx.n_inputs > 4 { vec![(4, axes)] } else { vec![] };
            Reordered { op: Box::new(self.clone()), data: 1, ints }
        })
    }
}

/// Shape of the slice of `data` that the inputs from `first` on describe.
pub(super) fn sliced_shape(cx: &InferCx<'_>, data: usize, first: usize) -> Result<PartialShape> {
    let mut count = Dim::ANY;
    for i in (first..first + 4).filter(|&i| cx.has(i)) {
        cx.require_integer(i)?;
        cx.require_rank(i, &[1])?;
        count = count.merge(cx.dim(i, 0)).ok_or_else(|| {
            cx.fail(format!("start, stop, step and axes must have one length, found {count} and {}", cx.dim(i, 0)))
        })?;
    }
    let Some(dims) = cx.shape(data).dims() else {
        return Ok(PartialShape::dynamic());
    };
    cx.require(!dims.is_empty(), || format!("{} must not be a scalar", cx.port_name(data)))?;
    cx.require(count.min() <= dims.len() as i64, || {
        format!("{} axes are sliced, the data has {}", count.min(), dims.len())
    })?;
    let axes = if cx.has(first + 3) {
        cx.ints(first + 3)
            .map(|axes| axes.iter().map(|&a| normalize_axis(a, dims.len())).collect::<Result<Vec<_>>>())
            .transpose()?
    } else {
        count.size().map(|n| (0..n).collect())
    };
    let Some(axes) = axes else {
        return Ok(PartialShape::new(dims.iter().map(|d| Dim::range(0, d.max()))));
    };
    require_unique(&axes)?;
    let (starts, stops, steps) = (cx.dims_value(first), cx.dims_value(first + 1), cx.dims_value(first + 2));
    let entry = |values: &Option<Vec<Dim>>, i: usize| {
        values.as_ref().and_then(|v| v.get(i)).copied().unwrap_or(Dim::range(i64::MIN, None))
    };
    let mut dims = dims.to_vec();
    for (i, &axis) in axes.iter().enumerate() {
        let step = entry(&steps, i).get();
        cx.require(step != Some(0), || format!("step {i} is 0"))?;
        let direction = step.unwrap_or(1);
        let start = Bound::of(entry(&starts, i), cx.ty(first), false, direction);
        let stop = Bound::of(entry(&stops, i), cx.ty(first + 1), true, direction);
        dims[axis] = slice_dim(dims[axis], start, stop, step);
    }
    Ok(PartialShape::new(dims))
}

/// The slice itself, with exact inputs.
pub(super) fn sliced_view(cx: &EvalCx<'_>, data: usize, first: usize) -> Result<View> {
    let shape = cx.shape(data);
    let (starts, stops, steps) = (cx.ints(first)?, cx.ints(first + 1)?, cx.ints(first + 2)?);
    let axes = if cx.has(first + 3) { cx.ints(first + 3)? } else { (0..starts.len() as i64).collect() };
    let mut view = View::whole(shape);
    for (((&axis, &start), &stop), &step) in axes.iter().zip(&starts).zip(&stops).zip(&steps) {
        let axis = normalize_axis(axis, shape.len())?;
        if step == 0 {
            return Err(cx.fail("a step is 0"));
        }
        let (begin, len) = slice_exact(shape[axis], Some(start), Some(stop), step);
        view = view.sliced(axis, begin, step, len);
    }
    Ok(view)
}
