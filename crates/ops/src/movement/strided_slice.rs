//! StridedSlice: TensorFlow's slice. Entries are read in order, and an entry whose bit is set in several masks is an
//! ellipsis first, then a new axis, then a single index. A set bit in `begin_mask` or `end_mask` means that the value is
//! ignored; a single index is always taken from `begin`, whatever its mask says.

use super::slicing::{Bound, slice_dim, slice_exact};
use super::view::View;
use carafe_graph::{Error, EvalCx, InferCx, Op, Result, RowsCx, OrderCx, Reordered};
use carafe_tensor::{Dim, PartialShape};

/// Slices, picks and inserts axes.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 1, inputs = "data, begin, end, strides?", moves = "0", shape_inputs = "1, 2, 3")]
pub struct StridedSlice {
    /// 1 ignores the begin of that entry. Masks may be shorter than the entries; the rest counts as 0.
    pub begin_mask: Vec<i64>,
    /// 1 ignores the end of that entry.
    pub end_mask: Vec<i64>,
    /// 1 inserts an axis of size 1.
    #[attr(default = vec![])]
    pub new_axis_mask: Vec<i64>,
    /// 1 takes one element and drops the axis.
    #[attr(default = vec![])]
    pub shrink_axis_mask: Vec<i64>,
    /// 1 leaves as many axes untouched as the other entries do not need.
    #[attr(default = vec![])]
    pub ellipsis_mask: Vec<i64>,
}

/// What happens to an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    /// A new axis of size 1.
    New,
    /// The data axis as it is.
    Whole(usize),
    /// One element of the data axis, by this entry.
    Index(usize, usize),
    /// A range of the data axis, by this entry.
    Range(usize, usize),
}

impl Op for StridedSlice {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        for mask in [&self.begin_mask, &self.end_mask, &self.new_axis_mask, &self.shrink_axis_mask, &self.ellipsis_mask]
        {
            cx.require(mask.iter().all(|&b| b == 0 || b == 1), || format!("masks hold 0 and 1, found {mask:?}"))?;
        }
        let mut count = Dim::ANY;
        for i in 1..cx.n_inputs() {
            cx.require_integer(i)?;
            cx.require_rank(i, &[1])?;
            count = count.merge(cx.dim(i, 0)).ok_or_else(|| {
                cx.fail(format!("begin, end and strides must have one length, found {count} and {}", cx.dim(i, 0)))
            })?;
        }
        let shape = match (cx.shape(0).dims(), count.size()) {
            (Some(dims), Some(n)) => self.shape(cx, dims, n)?,
            (Some(dims), None) if !self.changes_rank() => {
                PartialShape::new(dims.iter().map(|d| Dim::range(0, d.max())))
            }
            _ => PartialShape::dynamic(),
        };
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let shape = cx.shape(0);
        let (begins, ends) = (cx.ints(1)?, cx.ints(2)?);
        let strides = if cx.has(3) { cx.ints(3)? } else { vec![1; begins.len()] };
        let mut view = View::whole(shape);
        let mut kept = Vec::new();
        for part in self.parts(shape.len(), begins.len())? {
            match part {
                Part::New => kept.push(1),
                Part::Whole(axis) => kept.push(shape[axis]),
                Part::Index(axis, i) => {
                    let index = in_axis(begins[i], shape[axis] as i64)?;
                    view = view.sliced(axis, index as usize, 1, 1);
                }
                Part::Range(axis, i) => {
                    let step = strides.get(i).copied().unwrap_or(1);
                    if step == 0 {
                        return Err(cx.fail(format!("stride {i} is 0")));
                    }
                    let begin = (!bit(&self.begin_mask, i)).then(|| begins[i]);
                    let end = ends.get(i).copied().filter(|_| !bit(&self.end_mask, i));
                    let (first, len) = slice_exact(shape[axis], begin, end, step);
                    view = view.sliced(axis, first, step, len);
                    kept.push(len);
                }
            }
        }
        let out = view.copy(cx.input(0))?.reshaped(&kept)?;
        cx.set(0, out)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0])?;
        let first = |mask: &[i64]| mask.first().copied().unwrap_or(0);
        let whole = first(&self.begin_mask) == 1 && first(&self.end_mask) == 1;
        let changed = [&self.new_axis_mask, &self.shrink_axis_mask, &self.ellipsis_mask].iter().any(|m| first(m) != 0);
        let by_one = cx.kinds().len() < 4 || cx.ints(3).is_some_and(|s| s.first() == Some(&1));
        if whole && !changed && by_one { Ok(()) } else { Err("it takes a part of the rows".into()) }
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        if self.changes_rank() || self.ellipsis_mask.contains(&1) {
            return None;
        }
        // Axes without an entry are taken whole.
        let begin = (cx.ints)(1)?;
        let entry = |list: &[i64], axis: usize| list.get(axis).copied();
        let spread = |list: &[i64], rest: i64| cx.order.iter().map(|&a| entry(list, a).unwrap_or(rest)).collect::<Vec<i64>>();
        let mask = |mask: &[i64]| {
            let whole = |a: usize| if a < begin.len() { entry(mask, a).unwrap_or(0) } else { 1 };
            cx.order.iter().map(|&a| whole(a)).collect::<Vec<i64>>()
        };
        let mut ints = vec![(1, spread(&begin, 0)), (2, spread(&(cx.ints)(2)?, 0))];
        if cx.n_inputs > 3 {
            ints.push((3, spread(&(cx.ints)(3)?, 1)));
        }
        let op = StridedSlice {
            begin_mask: mask(&self.begin_mask),
            end_mask: mask(&self.end_mask),
            new_axis_mask: vec![],
            shrink_axis_mask: vec![],
            ellipsis_mask: vec![],
        };
        Some(Reordered { op: Box::new(op), data: 1, ints })
    }
}

impl StridedSlice {
    fn changes_rank(&self) -> bool {
        self.new_axis_mask.contains(&1) || self.shrink_axis_mask.contains(&1)
    }

    // The output axes in order, and the dropped ones between them.
    fn parts(&self, rank: usize, n_entries: usize) -> Result<Vec<Part>> {
        let ellipses = (0..n_entries).filter(|&i| bit(&self.ellipsis_mask, i)).count();
        if ellipses > 1 {
            return Err(Error::invalid("at most one ellipsis is allowed"));
        }
        let inserts = |i: usize| !bit(&self.ellipsis_mask, i) && bit(&self.new_axis_mask, i);
        let used = (0..n_entries).filter(|&i| !inserts(i)).count() - ellipses;
        let Some(untouched) = rank.checked_sub(used) else {
            return Err(Error::invalid(format!("{used} axes are sliced, the data has {rank}")));
        };
        let mut parts = Vec::new();
        let mut axis = 0;
        for i in 0..n_entries {
            if bit(&self.ellipsis_mask, i) {
                parts.extend((axis..axis + untouched).map(Part::Whole));
                axis += untouched;
            } else if bit(&self.new_axis_mask, i) {
                parts.push(Part::New);
            } else {
                let single = bit(&self.shrink_axis_mask, i);
                parts.push(if single { Part::Index(axis, i) } else { Part::Range(axis, i) });
                axis += 1;
            }
        }
        parts.extend((axis..rank).map(Part::Whole));
        Ok(parts)
    }

    fn shape(&self, cx: &InferCx<'_>, dims: &[Dim], n_entries: usize) -> Result<PartialShape> {
        if n_entries > dims.len() + self.new_axis_mask.len() + 1 {
            return Err(cx.fail(format!("{n_entries} entries are too many for data [{}]", cx.shape(0))));
        }
        let (begins, ends, strides) = (cx.dims_value(1), cx.dims_value(2), cx.dims_value(3));
        let entry = |values: &Option<Vec<Dim>>, i: usize| {
            values.as_ref().and_then(|v| v.get(i)).copied().unwrap_or(Dim::range(i64::MIN, None))
        };
        let mut out = Vec::new();
        for part in self.parts(dims.len(), n_entries)? {
            match part {
                Part::New => out.push(Dim::known(1)),
                Part::Whole(axis) => out.push(dims[axis]),
                Part::Index(axis, i) => {
                    if let (Some(index), Some(n)) = (entry(&begins, i).get(), dims[axis].get()) {
                        in_axis(index, n)?;
                    }
                }
                Part::Range(axis, i) => {
                    let step = if cx.has(3) { entry(&strides, i).get() } else { Some(1) };
                    cx.require(step != Some(0), || format!("stride {i} is 0"))?;
                    let direction = step.unwrap_or(1);
                    let bound = |ignored: &[i64], values: &Option<Vec<Dim>>, input: usize| match bit(ignored, i) {
                        true => Bound::Open,
                        false => Bound::of(entry(values, i), cx.ty(input), input == 2, direction),
                    };
                    let begin = bound(&self.begin_mask, &begins, 1);
                    let end = bound(&self.end_mask, &ends, 2);
                    out.push(slice_dim(dims[axis], begin, end, step));
                }
            }
        }
        Ok(PartialShape::new(out))
    }
}

fn bit(mask: &[i64], i: usize) -> bool {
    mask.get(i) == Some(&1)
}

fn in_axis(index: i64, n: i64) -> Result<i64> {
    let from_start = if index < 0 { index.saturating_add(n) } else { index };
    if (0..n).contains(&from_start) {
        return Ok(from_start);
    }
    Err(Error::invalid(format!("index {index} is outside of an axis of {n}")))
}
