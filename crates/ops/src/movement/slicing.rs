//! Slice bounds: which elements `begin:end:step` takes out of an axis, and how many when the axis or the bounds are only
//! known as intervals. Bounds clip as in OpenVINO, so a start before the first element with a negative step takes
//! element 0 where Python takes nothing.

use carafe_tensor::{Dim, ElementType};

/// One bound of a slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    /// As far as the direction goes.
    Open,
    /// Counts from the end when negative; may be an interval.
    At(Dim),
}

impl Bound {
    /// A value of this type; its extremes stand for "as far as there is", so they stay open on axes of unknown size.
    pub(crate) fn of(value: Dim, ty: ElementType, is_end: bool, step: i64) -> Bound {
        let farthest = match (ty, step > 0) {
            (ElementType::I32, true) => i32::MAX as i64,
            (ElementType::I32, false) => i32::MIN as i64,
            (_, true) => i64::MAX,
            (_, false) => i64::MIN,
        };
        if is_end && value.get() == Some(farthest) { Bound::Open } else { Bound::At(value) }
    }
}

/// First element taken and number of elements. `step` is not 0.
pub(crate) fn slice_exact(n: usize, begin: Option<i64>, end: Option<i64>, step: i64) -> (usize, usize) {
    let n = n as i128;
    let (first, len) = resolve(n, begin.map(i128::from), end.map(i128::from), step as i128);
    (first.clamp(0, n) as usize, len as usize)
}

fn resolve(n: i128, begin: Option<i128>, end: Option<i128>, step: i128) -> (i128, i128) {
    let from_end = |v: i128| if v < 0 { v + n } else { v };
    if step > 0 {
        let begin = begin.map_or(0, |b| from_end(b).clamp(0, n));
        let end = end.map_or(n, |e| from_end(e).clamp(0, n));
        (begin, (end - begin + step - 1).max(0) / step)
    } else {
        let last = (n - 1).max(0);
        let begin = begin.map_or(last, |b| from_end(b).clamp(0, last));
        let end = end.map_or(-1, |e| from_end(e).clamp(-1, n));
        if n == 0 { (0, 0) } else { (begin, (begin - end - step - 1).max(0) / -step) }
    }
}

/// How many elements a slice takes of an axis. An unknown step gives anything up to the whole axis.
pub(crate) fn slice_dim(n: Dim, begin: Bound, end: Bound, step: Option<i64>) -> Dim {
    let Some(step) = step else {
        return Dim::range(0, n.max());
    };
    if step == 1 && takes_all(n, begin, end) {
        return n;
    }
    let sizes = sizes_to_try(n, begin, end);
    let mut low = i128::MAX;
    let mut high = 0;
    for b in corners(begin) {
        for e in corners(end) {
            for &n in &sizes {
                let (_, len) = resolve(n, b, e, step as i128);
                low = low.min(len);
                high = high.max(len);
            }
        }
    }
    let unbounded = n.max().is_none() && high >= BEYOND / (2 * step.unsigned_abs() as i128);
    let high = if unbounded { None } else { i64::try_from(high).ok() };
    Dim::range(i64::try_from(low).unwrap_or(0), high)
}

fn takes_all(n: Dim, begin: Bound, end: Bound) -> bool {
    let from_start = match begin {
        Bound::Open => true,
        Bound::At(b) => b.get() == Some(0) || n.max().is_some_and(|m| b.max().is_some_and(|b| b < 0 && b <= -m)),
    };
    let to_end = match end {
        Bound::Open => true,
        Bound::At(e) => {
            let same = e.symbol().is_some() && e.symbol() == n.symbol();
            // The largest number stands for the end, however long the axis.
            same || e.min() == i64::MAX || n.max().is_some_and(|m| e.min() >= m)
        }
    };
    from_start && to_end
}

/// Stands for an axis without upper bound; no real axis is as long.
const BEYOND: i128 = 1 << 80;

// Within one sign the count is monotone in a bound, so the ends of its negative and of its other part are enough.
fn corners(bound: Bound) -> Vec<Option<i128>> {
    let Bound::At(dim) = bound else {
        return vec![None];
    };
    let low = if dim.min() == i64::MIN { -BEYOND } else { dim.min() as i128 };
    let high = dim.max().map_or(BEYOND, i128::from);
    let mut all = vec![low, high];
    if low < 0 && high >= 0 {
        all.extend([-1, 0]);
    }
    all.dedup();
    all.into_iter().map(Some).collect()
}

// For fixed bounds the count is piecewise linear in the size; these are its ends and the sizes where it may bend.
fn sizes_to_try(n: Dim, begin: Bound, end: Bound) -> Vec<i128> {
    let (low, high) = (n.min().max(0) as i128, n.max().map_or(BEYOND, i128::from));
    let mut sizes = vec![low, high];
    let values: Vec<i128> = corners(begin).into_iter().chain(corners(end)).flatten().collect();
    for &v in &values {
        sizes.extend([v, -v, v + 1, -v + 1]);
        sizes.extend(values.iter().flat_map(|w| [v - w, v - w + 1]));
    }
    sizes.retain(|s| (low..=high).contains(s));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use carafe_tensor::Symbol;

    fn d(text: &str) -> Dim {
        text.parse().unwrap()
    }

    fn at(n: i64) -> Bound {
        Bound::At(Dim::known(n))
    }

    #[test]
    fn a_start_before_the_axis_clips_to_element_zero() {
        assert_eq!(slice_exact(10, Some(-20), Some(-30), -3), (0, 1));
        assert_eq!(slice_exact(10, Some(100), Some(2), -4), (9, 2));
    }

    #[test]
    fn an_empty_axis_gives_nothing() {
        assert_eq!(slice_exact(0, Some(0), Some(5), 1), (0, 0));
        assert_eq!(slice_exact(0, None, None, -1), (0, 0));
    }

    #[test]
    fn the_whole_axis_keeps_its_symbol() {
        let n = Dim::ANY.with_symbol(Symbol(3));
        assert_eq!(slice_dim(n, at(0), Bound::Open, Some(1)), n);
        assert_eq!(slice_dim(n, at(0), Bound::At(n), Some(1)), n);
    }

    #[test]
    fn bounds_of_an_unknown_axis_limit_the_count() {
        assert_eq!(slice_dim(Dim::ANY, at(0), at(5), Some(2)), d("..3"));
        assert_eq!(slice_dim(Dim::ANY, at(-1), Bound::Open, Some(1)), d("..1"));
        assert_eq!(slice_dim(Dim::ANY, at(3), Bound::Open, Some(1)), Dim::ANY);
        assert_eq!(slice_dim(Dim::ANY, at(-1), at(-5), Some(-1)), d("..4"));
        assert_eq!(slice_dim(d("3..8"), at(1), at(-1), Some(2)), d("1..3"));
    }

    #[test]
    fn a_count_that_rises_and_falls_is_bounded_by_its_peak() {
        // x[-3:2] takes 2 of 2, 2 of 3, 1 of 4 and none of 5.
        assert_eq!(slice_dim(d("2..20"), at(-3), at(2), Some(1)), d("..2"));
        assert_eq!(slice_dim(Dim::ANY, at(-3), at(2), Some(1)), d("..2"));
    }

    #[test]
    fn unknown_bounds_take_anything() {
        let any = Bound::At(Dim::range(i64::MIN, None));
        assert_eq!(slice_dim(d("10"), any, at(5), Some(1)), d("..5"));
        assert_eq!(slice_dim(d("10"), at(2), any, Some(2)), d("..4"));
        assert_eq!(slice_dim(d("10"), at(2), at(5), None), d("..10"));
    }
}
