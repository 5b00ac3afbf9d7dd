//! Axes that come as an input: read, brought into range and checked, with an unknown value as a case of its own.

use carafe_graph::{Error, InferCx, Result, normalize_axis, RowKind, RowsCx};
use carafe_tensor::{Dim, PartialShape};
use std::collections::HashSet;

/// Ranks above this are taken as unknown; a declared length of a billion axes must not be allocated.
const MAX_RANK: usize = 1024;

/// A shape of which only the number of axes may be known.
pub(crate) fn of_rank(rank: Dim) -> PartialShape {
    match rank.size() {
        Some(n) if n <= MAX_RANK => PartialShape::any_of_rank(n),
        _ => PartialShape::dynamic(),
    }
}

/// The axes of an integer input of rank 0 or 1, in range; `None` when the value is not known.
pub(crate) fn axes_input(cx: &InferCx<'_>, input: usize, rank: usize) -> Result<Option<Vec<usize>>> {
    match cx.ints(input) {
        Some(axes) => axes.iter().map(|&a| normalize_axis(a, rank)).collect::<Result<_>>().map(Some),
        None => Ok(None),
    }
}

/// The axis of an integer input with one element; `None` when the value is not known.
pub(crate) fn axis_input(cx: &InferCx<'_>, input: usize, rank: usize) -> Result<Option<usize>> {
    require_one(cx, input)?;
    match cx.int(input) {
        Some(axis) => normalize_axis(axis, rank).map(Some),
        None => Ok(None),
    }
}

/// The input must be integer and hold one element: a scalar or [1].
pub(crate) fn require_one(cx: &InferCx<'_>, input: usize) -> Result<()> {
    cx.require_integer(input)?;
    let shape = cx.shape(input);
    let one = PartialShape::new([Dim::known(1)]);
    cx.require(shape.compatible(&PartialShape::scalar()) || shape.compatible(&one), || {
        format!("{} must be a scalar or have one element, found [{shape}]", cx.port_name(input))
    })
}

/// Refuses an axis that is listed twice.
pub(crate) fn require_unique(axes: &[usize]) -> Result<()> {
    let mut seen = HashSet::new();
    match axes.iter().find(|&&axis| !seen.insert(axis)) {
        Some(axis) => Err(Error::invalid(format!("axis {axis} is listed twice"))),
        None => Ok(()),
    }
}

/// Rows lie one after the other, so the same number of rows before and after means the same rows.
pub(super) fn reshaped_rows(cx: &RowsCx<'_>) -> Result<(), String> {
    match cx.kinds() {
        [RowKind::Rows, rest @ ..] if rest.iter().all(|k| *k != RowKind::Rows) => Ok(()),
        _ => Err("its shape depends on the inputs".into()),
    }
}
