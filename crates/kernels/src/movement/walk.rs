//! Walking over the outer axes of a copy: an odometer that carries both addresses along.

/// An axis of a copy; strides in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) n: usize,
    pub(super) src: isize,
    pub(super) dst: isize,
}

/// Axes longer than 1 that a copy can have: more would be more elements than memory holds.
pub(super) const MAX_AXES: usize = 32;

/// A position among the outer axes.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    axes: &'a [Axis],
    index: [usize; MAX_AXES],
    pub(super) src: isize,
    pub(super) dst: isize,
}

impl<'a> Walk<'a> {
    /// Stands at position `at` in row-major order of the axes.
    pub(super) fn new(axes: &'a [Axis], at: usize) -> Walk<'a> {
        let mut walk = Walk { axes, index: [0; MAX_AXES], src: 0, dst: 0 };
        let mut left = at;
        for (i, axis) in axes.iter().enumerate().rev() {
            let k = left % axis.n;
            left /= axis.n;
            walk.index[i] = k;
            walk.src += k as isize * axis.src;
            walk.dst += k as isize * axis.dst;
        }
        walk
    }

    /// How many positions the innermost axis still has, this one included.
    pub(super) fn left_on_line(&self) -> usize {
        self.axes.last().map_or(1, |axis| axis.n - self.index[self.axes.len() - 1])
    }

    /// Goes on by `by` positions, at most as many as are left on the innermost axis.
    pub(super) fn advance(&mut self, by: usize) {
        let Some(last) = self.axes.len().checked_sub(1) else { return };
        let mut by = by;
        for i in (0..=last).rev() {
            let axis = self.axes[i];
            self.index[i] += by;
            self.src += by as isize * axis.src;
            self.dst += by as isize * axis.dst;
            if self.index[i] < axis.n {
                return;
            }
            self.index[i] = 0;
            self.src -= axis.n as isize * axis.src;
            self.dst -= axis.n as isize * axis.dst;
            by = 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_jumps_meet() {
        let axes = [Axis { n: 3, src: 100, dst: -7 }, Axis { n: 4, src: 10, dst: 3 }, Axis { n: 2, src: 1, dst: 1 }];
        let mut walk = Walk::new(&axes, 0);
        for at in 0..24 {
            let fresh = Walk::new(&axes, at);
            assert_eq!((walk.src, walk.dst, walk.left_on_line()), (fresh.src, fresh.dst, fresh.left_on_line()));
            walk.advance(1);
        }
        let mut walk = Walk::new(&axes, 2);
        walk.advance(2);
        assert_eq!(walk.src, Walk::new(&axes, 4).src);
    }
}
