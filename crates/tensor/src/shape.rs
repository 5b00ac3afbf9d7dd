//! Shapes: partially known ones, and helpers for static ones (`&[usize]`).
//! The empty text is a scalar; an unknown rank is `...`. A shape with a 0 in it is static and has no elements.

use std::fmt;
use std::str::FromStr;

use crate::{Dim, TensorError};

/// Dimensions that may be intervals, or nothing known at all, not even their number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PartialShape(Option<Vec<Dim>>);

impl PartialShape {
    /// The shape whose rank is unknown.
    pub fn dynamic() -> Self {
        PartialShape(None)
    }

    /// Of these dimensions.
    pub fn new(dims: impl IntoIterator<Item = Dim>) -> Self {
        PartialShape(Some(dims.into_iter().collect()))
    }

    /// A static shape.
    pub fn of(shape: &[usize]) -> Self {
        Self::new(shape.iter().map(|&n| Dim::from(n)))
    }

    /// So many axes, each of any size.
    pub fn any_of_rank(r: usize) -> Self {
        PartialShape(Some(vec![Dim::ANY; r]))
    }

    /// No axes.
    pub fn scalar() -> Self {
        PartialShape(Some(Vec::new()))
    }

    /// The number of axes; `None` when it is not known.
    pub fn rank(&self) -> Option<usize> {
        self.0.as_ref().map(Vec::len)
    }

    /// The dimensions; `None` when the rank is not known.
    pub fn dims(&self) -> Option<&[Dim]> {
        self.0.as_deref()
    }

    /// The dimensions for writing.
    pub fn dims_mut(&mut self) -> Option<&mut Vec<Dim>> {
        self.0.as_mut()
    }

    /// The dimension of an axis; `Dim::ANY` when the rank is unknown or the axis lies outside.
    pub fn dim(&self, axis: usize) -> Dim {
        self.dims().and_then(|dims| dims.get(axis)).copied().unwrap_or(Dim::ANY)
    }

    /// Whether every size is known.
    pub fn is_static(&self) -> bool {
        self.dims().is_some_and(|dims| dims.iter().all(|dim| dim.size().is_some()))
    }

    /// The sizes, when all are known.
    pub fn to_static(&self) -> Option<Vec<usize>> {
        self.dims()?.iter().map(|dim| dim.size()).collect()
    }

    /// The element count of a static shape; `None` when not static or past `usize`.
    pub fn elements(&self) -> Option<usize> {
        elements(&self.to_static()?)
    }

    /// True when some static shape fits both.
    pub fn compatible(&self, other: &Self) -> bool {
        self.merge(other).is_some()
    }

    /// Both at once, dimension by dimension; an unknown rank yields to the other.
    pub fn merge(&self, other: &Self) -> Option<Self> {
        match (self.dims(), other.dims()) {
            (None, _) => Some(other.clone()),
            (_, None) => Some(self.clone()),
            (Some(a), Some(b)) if a.len() == b.len() => a
                .iter()
                .zip(b)
                .map(|(a, b)| a.merge(*b))
                .collect::<Option<Vec<_>>>()
                .map(|dims| PartialShape(Some(dims))),
            _ => None,
        }
    }

    /// The numpy rule: aligned at the last axis, missing axes count as 1. An unknown rank stays unknown.
    pub fn broadcast(&self, other: &Self) -> Option<Self> {
        let (Some(a), Some(b)) = (self.dims(), other.dims()) else {
            return Some(Self::dynamic());
        };
        let rank = a.len().max(b.len());
        let at = |dims: &[Dim], axis: usize| match (axis + dims.len()).checked_sub(rank) {
            Some(own) => dims[own],
            None => Dim::known(1),
        };
        (0..rank)
            .map(|axis| at(a, axis).broadcast(at(b, axis)))
            .collect::<Option<Vec<_>>>()
            .map(|dims| PartialShape(Some(dims)))
    }

    /// True when a tensor of this static shape may be fed here.
    pub fn accepts(&self, shape: &[usize]) -> bool {
        let Some(dims) = self.dims() else { return true };
        dims.len() == shape.len()
            && dims.iter().zip(shape).all(|(dim, &n)| i64::try_from(n).is_ok_and(|n| dim.contains(n)))
    }
}

/// The text of the IR: dimensions joined by `,` without brackets, `...` for an unknown rank, nothing for a scalar.
impl fmt::Display for PartialShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(dims) = self.dims() else { return f.write_str("...") };
        for (axis, dim) in dims.iter().enumerate() {
            if axis > 0 {
                f.write_str(",")?;
            }
            write!(f, "{dim}")?;
        }
        Ok(())
    }
}

impl FromStr for PartialShape {
    type Err = TensorError;

    /// Reads the IR text, with or without brackets around it and spaces in it.
    fn from_str(text: &str) -> Result<Self, TensorError> {
        let bad = |reason: String| TensorError::BadShape { found: text.to_owned(), reason };
        let mut inner = text.trim();
        match (inner.strip_prefix('['), inner.ends_with(']')) {
            (Some(rest), true) => inner = rest[..rest.len() - 1].trim(),
            (None, false) => {}
            _ => return Err(bad("expected both brackets or none".to_owned())),
        }
        if inner.is_empty() {
            return Ok(Self::scalar());
        }
        if inner == "..." {
            return Ok(Self::dynamic());
        }
        let dims = inner.split(',').map(str::parse::<Dim>).collect::<Result<Vec<_>, _>>();
        dims.map(Self::new).map_err(|error| bad(error.to_string()))
    }
}

/// The number of elements of a static shape; `None` past `usize`. A 0 anywhere gives 0.
pub fn elements(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n))
}

/// Row-major strides, in elements.
pub fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(text: &str) -> PartialShape {
        text.parse().unwrap()
    }

    #[test]
    fn text_round_trips() {
        for text in ["", "...", "1,3,224,224", "?,3,1..10,..5,7..", "0"] {
            assert_eq!(s(text).to_string(), text);
        }
    }

    #[test]
    fn brackets_and_spaces_are_accepted() {
        assert_eq!(s("[1, 3, -1]"), s("1,3,?"));
        assert_eq!(s("[]"), PartialShape::scalar());
        assert_eq!(s("[...]"), PartialShape::dynamic());
    }

    #[test]
    fn garbage_is_an_error() {
        for text in ["1,", ",", "[1", "1]", "]", "[", "-2", "1,a", "1 2", "9223372036854775808", "..,1", "1,..."] {
            assert!(matches!(text.parse::<PartialShape>(), Err(TensorError::BadShape { .. })), "{text}");
        }
    }

    #[test]
    fn dim_outside_of_the_rank_is_any() {
        assert_eq!(s("2").dim(1), Dim::ANY);
        assert_eq!(PartialShape::dynamic().dim(0), Dim::ANY);
    }

    #[test]
    fn only_known_sizes_are_static() {
        assert_eq!(s("2,3").to_static(), Some(vec![2, 3]));
        assert_eq!(s("2,?").to_static(), None);
        assert!(PartialShape::scalar().is_static());
        assert!(!PartialShape::dynamic().is_static());
    }

    #[test]
    fn merge_needs_equal_ranks() {
        assert_eq!(s("?,3").merge(&s("2,?")), Some(s("2,3")));
        assert_eq!(s("?,3").merge(&s("?")), None);
        assert_eq!(s("...").merge(&s("2")), Some(s("2")));
        assert!(!s("2").compatible(&s("3")));
    }

    #[test]
    fn broadcast_aligns_the_last_axis() {
        assert_eq!(s("2,1,4").broadcast(&s("3,1")), Some(s("2,3,4")));
        assert_eq!(s("2,3").broadcast(&s("")), Some(s("2,3")));
        assert_eq!(s("2").broadcast(&s("3")), None);
        assert_eq!(s("2").broadcast(&s("...")), Some(s("...")));
    }

    #[test]
    fn accepts_checks_rank_and_every_interval() {
        assert!(s("?,1..3").accepts(&[7, 2]));
        assert!(!s("?,1..3").accepts(&[7, 4]));
        assert!(!s("?").accepts(&[1, 1]));
        assert!(s("...").accepts(&[1, 1]));
    }

    #[test]
    fn elements_reports_overflow() {
        assert_eq!(elements(&[1 << 40, 1 << 40]), None);
        assert_eq!(elements(&[1 << 40, 1 << 40, 0]), Some(0));
        assert_eq!(elements(&[]), Some(1));
    }

    #[test]
    fn strides_are_row_major() {
        assert_eq!(strides(&[2, 3, 4]), [12, 4, 1]);
        assert_eq!(strides(&[]), [0usize; 0]);
    }
}
