//! A strided look at a row-major array: start, dims and one signed stride an axis, all in elements. Views of views fold, so
//! a chain of slices, permutations and reshapes becomes one copy.

/// Which elements of an array are seen, in which order. A stride of 0 repeats an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub start: usize,
    pub dims: Vec<usize>,
    pub strides: Vec<isize>,
}

impl View {
    /// The whole of an array of these dims.
    pub fn whole(dims: &[usize]) -> View {
        View { start: 0, dims: dims.to_vec(), strides: strides_of(dims) }
    }

    /// The start of rows that are wider than the last axis: `width` elements lie between one row and the next.
    pub fn of_rows(dims: &[usize], width: usize) -> View {
        let mut wide = dims.to_vec();
        if let Some(last) = wide.last_mut() {
            assert!(width >= *last, "rows of {last} do not fit into {width}");
            *last = width;
        }
        View { start: 0, dims: dims.to_vec(), strides: strides_of(&wide) }
    }

    /// The same elements of an array whose rows of `row` elements lie `pitch` apart; `None` where an axis runs over the end
    /// of a row.
    pub fn spread(&self, row: usize, pitch: usize) -> Option<View> {
        let row = row.max(1);
        let mut out = self.clone();
        out.start = self.start / row * pitch + self.start % row;
        // Where in its row the first and the last element lie that inner axes reach.
        let (mut low, mut high) = ((self.start % row) as isize, (self.start % row) as isize);
        for (stride, &n) in out.strides.iter_mut().zip(&self.dims) {
            if *stride % row as isize == 0 {
                *stride = *stride / row as isize * pitch as isize;
            } else {
                let reach = stride.checked_mul(n.saturating_sub(1) as isize)?;
                (low, high) = (low + reach.min(0), high + reach.max(0));
            }
        }
        (self.elements() == 0 || low >= 0 && high < row as isize).then_some(out)
    }

    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    pub fn elements(&self) -> usize {
        product(&self.dims)
    }

    /// Axes in another order: new axis `i` is the old `order[i]`.
    pub fn permuted(&self, order: &[usize]) -> View {
        assert_eq!(order.len(), self.rank(), "an order names every axis");
        let mut seen = vec![false; order.len()];
        order
            .iter()
            .for_each(|&a| assert!(!std::mem::replace(&mut seen[a], true), "axis {a} stands twice in {order:?}"));
        View {
            start: self.start,
            dims: order.iter().map(|&a| self.dims[a]).collect(),
            strides: order.iter().map(|&a| self.strides[a]).collect(),
        }
    }

    /// Every `step`-th element of an axis from `begin` on, `len` of them.
    pub fn sliced(&self, axis: usize, begin: usize, step: isize, len: usize) -> View {
        let mut out = self.clone();
        if len > 0 {
            let last = begin as i128 + (len as i128 - 1) * step as i128;
            let inside = 0..self.dims[axis] as i128;
            assert!(inside.contains(&(begin as i128)) && inside.contains(&last), "{begin}..={last} of {inside:?}");
            out.start = self.start.wrapping_add_signed(begin as isize * self.strides[axis]);
        }
        // With one element the step is never taken.
        out.strides[axis] = if len > 1 { self.strides[axis] * step } else { self.strides[axis] };
        out.dims[axis] = len;
        out
    }

    /// The axis backwards.
    pub fn reversed(&self, axis: usize) -> View {
        let n = self.dims[axis];
        self.sliced(axis, n.saturating_sub(1), -1, n)
    }

    /// Data axis `i` becomes axis `axes[i]` of `dims`; an axis of 1 is repeated, and so is one that no data axis maps to.
    pub fn stretched(&self, dims: &[usize], axes: &[usize]) -> View {
        assert_eq!(axes.len(), self.rank(), "every axis goes somewhere");
        let mut strides = vec![0; dims.len()];
        for (i, &axis) in axes.iter().enumerate() {
            let n = self.dims[i];
            assert!(n == 1 || n == dims[axis], "an axis of {n} does not stretch to {}", dims[axis]);
            strides[axis] = if n == 1 { 0 } else { self.strides[i] };
        }
        View { start: self.start, dims: dims.to_vec(), strides }
    }

    /// An axis seen as several, whose lengths multiply to its own.
    pub fn split(&self, axis: usize, parts: &[usize]) -> View {
        assert_eq!(product(parts), self.dims[axis], "{parts:?} of axis {axis}");
        let steps: Vec<isize> = strides_of(parts).iter().map(|s| s * self.strides[axis]).collect();
        let mut out = self.clone();
        out.dims.splice(axis..=axis, parts.iter().copied());
        out.strides.splice(axis..=axis, steps);
        out
    }

    /// The same elements in the same order under other dims, where strides can say that; `None` where only a copy can.
    pub fn reshaped(&self, dims: &[usize]) -> Option<View> {
        assert_eq!(product(dims), self.elements(), "{:?} as {dims:?}", self.dims);
        if self.elements() == 0 {
            return Some(View { start: self.start, ..View::whole(dims) });
        }
        // Longest runs of axes that one stride can walk, the innermost first.
        let mut runs: Vec<(usize, isize)> = Vec::new();
        for (&n, &stride) in self.dims.iter().zip(&self.strides).rev().filter(|(n, _)| **n != 1) {
            match runs.last_mut() {
                Some((run, first)) if stride == *first * *run as isize => *run *= n,
                _ => runs.push((n, stride)),
            }
        }
        let mut strides = vec![0; dims.len()];
        let mut runs = runs.into_iter();
        let (mut left, mut step) = (1, 1);
        for (i, &n) in dims.iter().enumerate().rev() {
            if n == 1 {
                strides[i] = step;
                continue;
            }
            if left == 1 {
                (left, step) = runs.next()?;
            }
            if left % n != 0 {
                return None;
            }
            strides[i] = step;
            left /= n;
            step *= n as isize;
        }
        (left == 1).then(|| View { start: self.start, dims: dims.to_vec(), strides })
    }
}

/// Elements of an array of these dims; as many as a number can say where there would be more, which no slice has.
pub(crate) fn product(dims: &[usize]) -> usize {
    if dims.contains(&0) { 0 } else { dims.iter().fold(1, |n, &d| n.saturating_mul(d)) }
}

/// Strides of a row-major array.
pub(super) fn strides_of(dims: &[usize]) -> Vec<isize> {
    let mut step = 1usize;
    let mut strides: Vec<isize> = dims
        .iter()
        .rev()
        .map(|&n| {
            let own = step.min(isize::MAX as usize) as isize;
            step = step.saturating_mul(n.max(1));
            own
        })
        .collect();
    strides.reverse();
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reshape_that_strides_can_say_is_a_view() {
        let swapped = View::whole(&[2, 3, 4]).permuted(&[1, 0, 2]);
        assert_eq!(swapped.reshaped(&[3, 2, 2, 2]).unwrap().strides, [4, 12, 2, 1]);
        assert_eq!(swapped.reshaped(&[6, 4]), None);
        assert_eq!(View::whole(&[6, 4]).reshaped(&[2, 12]).unwrap().strides, [12, 1]);
    }

    #[test]
    fn rows_that_lie_apart_keep_their_axes() {
        let picture = View::whole(&[2, 5, 3]).permuted(&[2, 0, 1]);
        assert_eq!(picture.spread(3, 8).unwrap().strides, [1, 40, 8]);
        assert_eq!(picture.sliced(0, 1, 1, 2).spread(3, 8).unwrap().start, 1);
        assert_eq!(View::whole(&[30]).spread(3, 8), None);
        assert_eq!(View::whole(&[3]).sliced(0, 2, -1, 3).spread(3, 8).unwrap().strides, [-1]);
    }

    #[test]
    fn an_axis_of_one_takes_any_step() {
        let one = View::whole(&[5]).sliced(0, 2, 100, 1);
        assert_eq!((one.start, one.strides[0]), (2, 1));
    }
}
