//! VariadicSplit: parts of given lengths along an axis; one length may be -1 and takes the rest. Empty parts are legal.

use super::axes::{axis_input, of_rank, require_one};
use super::view::View;
use carafe_graph::{Error, EvalCx, InferCx, Op, Result, normalize_axis, RowsCx, OrderCx, Reordered};
use carafe_tensor::{Dim, PartialShape};

/// Cuts the data into parts of the listed lengths.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, axis, split_lengths", outputs = "outputs...", moves = "0", shape_inputs = "2")]
pub struct VariadicSplit;

/// More outputs than this are refused; the count may come from a declared shape.
const MAX_OUTPUTS: usize = 1 << 20;

impl Op for VariadicSplit {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require_integer(1)?;
        require_one(cx, 1)?;
        cx.require_integer(2)?;
        cx.require_rank(2, &[1])?;
        let n = match cx.dim(2, 0).size() {
            Some(n) if n <= MAX_OUTPUTS => n,
            _ => {
                return Err(Error::unsupported(format!(
                    "the number of split lengths must be known, found shape [{}]",
                    cx.shape(2)
                )));
            }
        };
        let shapes: Vec<PartialShape> = match cx.shape(0).dims() {
            None => vec![PartialShape::dynamic(); n],
            Some(dims) => match axis_input(cx, 1, dims.len())? {
                None => vec![of_rank(Dim::from(dims.len())); n],
                Some(axis) => {
                    let parts = match cx.dims_value(2) {
                        Some(lengths) => part_dims(dims[axis], &lengths)?,
                        None => vec![Dim::range(0, dims[axis].max()); n],
                    };
                    let with = |part: Dim| {
                        let mut dims = dims.to_vec();
                        dims[axis] = part;
                        PartialShape::new(dims)
                    };
                    parts.into_iter().map(with).collect()
                }
            },
        };
        for (output, shape) in shapes.into_iter().enumerate() {
            cx.set(output, cx.ty(0), shape);
        }
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0).to_vec();
        let axis = normalize_axis(cx.int(1)?, shape.len())?;
        let lengths: Vec<Dim> = cx.ints(2)?.into_iter().map(Dim::known).collect();
        let mut begin = 0;
        for (output, part) in part_dims(Dim::from(shape[axis]), &lengths)?.into_iter().enumerate() {
            let len = part.size().ok_or_else(|| cx.fail(format!("part {output} has the length {part}")))?;
            let part = View::whole(&shape).sliced(axis, begin, 1, len).copy(cx.input(0))?;
            cx.set(output, part)?;
            begin += len;
        }
        Ok(())
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0]).and_then(|()| cx.axes_leave_rows(1))
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        Some(Reordered { op: Box::new(self.clone()), data: 1, ints: vec![(1, cx.axes(1)?)] })
    }
}

fn part_dims(dim: Dim, lengths: &[Dim]) -> Result<Vec<Dim>> {
    let mut parts = lengths.to_vec();
    let mut rest = None;
    let mut sum = Dim::known(0);
    for (i, part) in parts.iter_mut().enumerate() {
        match part.get() {
            Some(-1) if rest.is_some() => return Err(Error::invalid("split lengths hold more than one -1")),
            Some(-1) => rest = Some(i),
            Some(n) if n < -1 => {
                return Err(Error::invalid(format!("split lengths hold {n}; -1 is the only negative")));
            }
            Some(_) => sum = sum.add(*part),
            None => {
                // A length that may turn out to be -1 says nothing.
                if part.min() < 0 {
                    *part = Dim::range(0, dim.max());
                }
                sum = sum.add(*part);
            }
        }
    }
    let too_long = || Error::invalid(format!("split lengths sum up to {sum}, the axis has {dim}"));
    match rest {
        Some(i) => {
            let left = dim.sub(sum);
            if left.max().is_some_and(|m| m < 0) {
                return Err(too_long());
            }
            parts[i] = left.clamp_shape();
        }
        None if lengths.iter().all(|d| d.min() >= 0) && !sum.compatible(dim) => return Err(too_long()),
        None => {}
    }
    Ok(parts)
}
