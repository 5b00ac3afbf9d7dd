//! TopK: the k largest or smallest elements along an axis, with their positions. Among equal elements the one that comes
//! first wins, whether or not `stable` demands it; NaN comes last.

use crate::buffer::filled;
use crate::index::around;
use crate::movement::axes::require_one;
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis, RowsCx, Version, VersionCx, OrderCx, Reordered};
use carafe_tensor::{Dim, ElementType, Number};
use std::cmp::Ordering;

carafe_graph::attr_enum! {
    /// Which elements are taken.
    pub enum TopKMode {
        /// The largest.
        Max = "max",
        /// The smallest.
        Min = "min",
    }
}

carafe_graph::attr_enum! {
    /// Order of the taken elements.
    pub enum TopKSort {
        /// Best first.
        Value = "value",
        /// By their place.
        Index = "index",
        /// Any order; here best first.
        None = "none",
    }
}

/// The best elements along an axis; equal ones in a defined order.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 11, inputs = "data, k", outputs = "values, indices", shape_inputs = "1")]
pub struct TopK {
    /// Axis to search; negative counts from the end.
    pub axis: i64,
    /// Which elements are taken.
    pub mode: TopKMode,
    /// Order of the taken elements.
    pub sort: TopKSort,
    /// i32 or i64.
    #[attr(default = ElementType::I32)]
    pub index_element_type: ElementType,
    /// Equal elements keep their order; needs a sort.
    #[attr(default = false)]
    pub stable: bool,
}

impl Op for TopK {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        cx.require(!self.stable || self.sort != TopKSort::None, || {
            "attribute `stable` needs `sort` to be value or index, found none".to_string()
        })?;
        infer(cx, self.axis, self.index_element_type)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.axis, self.mode, self.sort)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0]).and_then(|()| cx.axis_leaves_rows(self.axis))
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if !self.stable { Version::of::<TopKV3>(self, cx) } else { None }
    }
    fn reorder(&self, cx: &OrderCx<'_>) -> Option<Reordered> {
        let op = TopK { axis: cx.axis(self.axis)?, ..self.clone() };
        Some(Reordered { op: Box::new(op), data: 1, ints: vec![] })
    }
}

macro_rules! older {
    ($name:ident, $since:literal, $until:literal) => {
        /// The best elements along an axis.
        #[derive(Op, Clone, Debug, PartialEq)]
        #[op(name = "TopK", since = $since, until = $until, inputs = "data, k", outputs = "values, indices", shape_inputs = "1")]
        pub struct $name {
            /// Axis to search; negative counts from the end.
            pub axis: i64,
            /// Which elements are taken.
            pub mode: TopKMode,
            /// Order of the taken elements.
            pub sort: TopKSort,
            /// i32 or i64.
            #[attr(default = ElementType::I32)]
            pub index_element_type: ElementType,
        }

        impl Op for $name {
            fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
                infer(cx, self.axis, self.index_element_type)
            }
            fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
                eval(cx, self.axis, self.mode, self.sort)
            }
            fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
                Version::of::<TopK>(self, cx)
            }
        }
    };
}
older!(TopKV1, 1, 2);
older!(TopKV3, 3, 10);

fn infer(cx: &mut InferCx<'_>, axis: i64, index_ty: ElementType) -> Result<()> {
    cx.require(matches!(index_ty, ElementType::I32 | ElementType::I64), || {
        format!("attribute `index_element_type` must be i32 or i64, found {index_ty}")
    })?;
    require_one(cx, 1)?;
    let mut shape = cx.shape(0).clone();
    if let Some(dims) = shape.dims_mut() {
        let axis = normalize_axis(axis, dims.len())?;
        let n = dims[axis];
        let k = cx.dims_value(1).and_then(|v| v.first().copied()).unwrap_or(Dim::ANY);
        cx.require(k.max().is_none_or(|m| m >= 0), || format!("k must not be negative, found {k}"))?;
        let k = k.clamp_shape();
        cx.require(n.max().is_none_or(|m| k.min() <= m), || format!("k is {k}, axis {axis} has {n}"))?;
        dims[axis] = if k.is_known() { k } else { k.merge(Dim::range(0, n.max())).unwrap_or(k) };
    }
    cx.set(0, cx.ty(0), shape.clone());
    cx.set(1, index_ty, shape);
    Ok(())
}

fn eval(cx: &mut EvalCx<'_>, axis: i64, mode: TopKMode, sort: TopKSort) -> Result<()> {
    let out = cx.out_shape(0)?;
    let shape = cx.shape(0).to_vec();
    let axis = normalize_axis(axis, shape.len())?;
    let (outer, n, inner) = around(&shape, axis);
    let k = out[axis];
    if k > n {
        return Err(cx.fail(format!("k is {k}, axis {axis} has {n}")));
    }
    let mut positions = filled(&out, 0usize)?;
    let mut row: Vec<usize> = Vec::with_capacity(n);
    // Sorting is compiled once for all types.
    let mut rank = |by: &dyn Fn(usize, usize) -> Ordering| {
        for o in 0..outer {
            for i in 0..inner {
                let at = |position: usize| (o * n + position) * inner + i;
                row.clear();
                row.extend(0..n);
                row.sort_by(|&a, &b| by(at(a), at(b)));
                row.truncate(k);
                if sort == TopKSort::Index {
                    row.sort_unstable();
                }
                for (rank, &position) in row.iter().enumerate() {
                    positions[(o * k + rank) * inner + i] = position;
                }
            }
        }
    };
    with_number!(cx.ty(0), T => {
        let data = cx.get::<T>(0)?;
        rank(&|a, b| better(data[a], data[b], mode));
    });
    // The taken elements themselves, so that no type changes on the way.
    let values = cx.input(0).select(&out, |flat| {
        let (outer, i) = (flat / inner / k, flat % inner);
        Some((outer * n + positions[flat]) * inner + i)
    })?;
    cx.set(0, values)?;
    cx.put(1, &out, positions.into_iter().map(|p| p as i64).collect())
}

fn better<T: Number>(a: T, b: T, mode: TopKMode) -> Ordering {
    let by_value = match mode {
        TopKMode::Max => b.partial_cmp(&a),
        TopKMode::Min => a.partial_cmp(&b),
    };
    by_value.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}
