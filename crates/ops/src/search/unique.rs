//! Unique: the different elements of the data, or its different slices along an axis, with the position of their first
//! occurrence, where each original went, and how often each occurs.

use crate::index::around;
use crate::movement::axes::{axis_input, of_rank, require_one};
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis};
use carafe_tensor::{Dim, ElementType, Number, PartialShape};
use std::cmp::Ordering;

/// Different elements or slices. Without an axis the data is seen as one row.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 10, inputs = "data, axis?", outputs = "values, first_indices, inverse_indices, counts")]
pub struct Unique {
    /// By value, slices compared element by element; otherwise in the order of their first occurrence.
    #[attr(default = true)]
    pub sorted: bool,
    /// Type of both index outputs: i64 or i32.
    #[attr(default = ElementType::I64)]
    pub index_element_type: ElementType,
    /// Type of the counts: i64 or i32.
    #[attr(default = ElementType::I64)]
    pub count_element_type: ElementType,
}

impl Op for Unique {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let (index_ty, count_ty) = (self.index_element_type, self.count_element_type);
        for (name, ty) in [("index_element_type", index_ty), ("count_element_type", count_ty)] {
            cx.require(matches!(ty, ElementType::I64 | ElementType::I32), || {
                format!("attribute `{name}` must be i64 or i32, found {ty}")
            })?;
        }
        if cx.has(1) {
            require_one(cx, 1)?;
        }
        // Length of what is searched, and the shape of the values around the number of different ones.
        let (n, around) = match cx.shape(0).dims() {
            Some(dims) if !cx.has(1) => (dims.iter().fold(Dim::known(1), |p, &d| p.mul(d)), Some((vec![], vec![]))),
            Some(dims) => match axis_input(cx, 1, dims.len())? {
                Some(axis) => (dims[axis], Some((dims[..axis].to_vec(), dims[axis + 1..].to_vec()))),
                None => (Dim::ANY, None),
            },
            None => (Dim::ANY, (!cx.has(1)).then(|| (vec![], vec![]))),
        };
        let different = Dim::range(n.min().min(1), n.max());
        let values = match around {
            Some((before, after)) => PartialShape::new(before.into_iter().chain([different]).chain(after)),
            None => cx.rank(0).map_or(PartialShape::dynamic(), |r| of_rank(Dim::from(r))),
        };
        let row = |n: Dim| PartialShape::new([n]);
        cx.set(0, cx.ty(0), values);
        cx.set(1, index_ty, row(different));
        cx.set(2, index_ty, row(n));
        cx.set(3, count_ty, row(different));
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (shape, axis) = if cx.has(1) {
            let axis = normalize_axis(cx.int(1)?, cx.shape(0).len())?;
            (cx.shape(0).to_vec(), axis)
        } else {
            (vec![cx.input(0).len()], 0)
        };
        let (outer, n, inner) = around(&shape, axis);
        // The order, room to sort it, the runs, and the three outputs twice.
        cx.ensure_memory(n, 16 * size_of::<usize>())?;
        let found = {
            // Compares two slices by their elements in order.
            let at = |slice: usize, e: usize| (e / inner * n + slice) * inner + e % inner;
            let by = |a: usize, b: usize, element: &dyn Fn(usize, usize) -> Ordering| {
                let mut all = (0..outer * inner).map(|e| element(at(a, e), at(b, e)));
                all.find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
            };
            if cx.ty(0) == ElementType::String {
                let data = cx.input(0).strings()?;
                Found::new(n, self.sorted, &|a, b| by(a, b, &|i, j| data[i].cmp(&data[j])))
            } else {
                with_number!(cx.ty(0), T => {
                    let data = cx.get::<T>(0)?;
                    let element = |i: usize, j: usize| {
                        let (x, y) = (data[i], data[j]);
                        // All NaN count as equal, behind every number.
                        x.partial_cmp(&y).unwrap_or_else(|| x.is_nan().cmp(&y.is_nan()))
                    };
                    Found::new(n, self.sorted, &|a, b| by(a, b, &element))
                })
            }
        };
        let mut out = shape.clone();
        out[axis] = found.first.len();
        let m = found.first.len();
        let values = cx.input(0).select(&out, |flat| {
            let (rest, k) = (flat / inner, flat % inner);
            Some((rest / m * n + found.first[rest % m]) * inner + k)
        })?;
        let numbers = |v: Vec<usize>| v.into_iter().map(|i| i as i64).collect::<Vec<i64>>();
        cx.set(0, values)?;
        cx.put(1, &[m], numbers(found.first))?;
        cx.put(2, &[n], numbers(found.inverse))?;
        cx.put(3, &[m], numbers(found.counts))
    }
}

struct Found {
    /// Place of the first of each different slice.
    first: Vec<usize>,
    /// For each slice, the number of the different one it equals.
    inverse: Vec<usize>,
    counts: Vec<usize>,
}

impl Found {
    fn new(n: usize, sorted: bool, compare: &dyn Fn(usize, usize) -> Ordering) -> Found {
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| compare(a, b));
        // Runs of equal slices, by where each begins; the sort is stable, so it begins with its first occurrence.
        let begins: Vec<usize> = (0..n).filter(|&i| i == 0 || compare(order[i - 1], order[i]).is_ne()).collect();
        let ends = begins.iter().skip(1).copied().chain([n]);
        let mut runs: Vec<(usize, usize)> = begins.iter().copied().zip(ends).collect();
        if !sorted {
            carafe_graph::sort_by_key(&mut runs, |&(begin, _)| order[begin]);
        }
        let mut inverse = vec![0; n];
        for (number, &(begin, end)) in runs.iter().enumerate() {
            order[begin..end].iter().for_each(|&slice| inverse[slice] = number);
        }
        let first = runs.iter().map(|&(begin, _)| order[begin]).collect();
        Found { first, inverse, counts: runs.iter().map(|(begin, end)| end - begin).collect() }
    }
}
