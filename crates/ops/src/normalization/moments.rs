//! Sums over any set of axes, as a number for every position of the rest.

use crate::index::offsets;
use carafe_graph::{InferCx, Result, normalize_axis};

/// Which of the groups that a set of axes leaves each element of `shape` belongs to, in row-major order of the elements.
pub(super) struct Groups {
    shape: Vec<usize>,
    strides: Vec<usize>,
    /// Number of groups.
    pub count: usize,
    /// Elements of each.
    pub size: usize,
}

impl Groups {
    /// Elements that differ only on `axes` are in one group.
    pub(super) fn over(shape: &[usize], axes: &[usize]) -> Groups {
        let mut strides = vec![0; shape.len()];
        let (mut count, mut size) = (1, 1);
        for axis in (0..shape.len()).rev() {
            if axes.contains(&axis) {
                size *= shape[axis];
            } else {
                strides[axis] = count;
                count *= shape[axis];
            }
        }
        Groups { shape: shape.to_vec(), strides, count, size }
    }
    /// The group of each element.
    pub(super) fn of_elements(&self) -> impl Iterator<Item = usize> + use<> {
        offsets(&self.shape, &self.strides)
    }
    /// Sum of `f` over the elements of each group.
    pub(super) fn sums(&self, data: &[f64], f: impl Fn(f64, usize) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.count];
        for (&x, group) in data.iter().zip(self.of_elements()) {
            sums[group] += f(x, group);
        }
        sums
    }
    /// Mean of each group.
    pub(super) fn means(&self, data: &[f64]) -> Vec<f64> {
        let mut means = self.sums(data, |x, _| x);
        means.iter_mut().for_each(|m| *m /= self.size as f64);
        means
    }
    /// Biased variance of each group.
    pub(super) fn variances(&self, data: &[f64], means: &[f64]) -> Vec<f64> {
        let mut variances = self.sums(data, |x, group| (x - means[group]).powi(2));
        variances.iter_mut().for_each(|v| *v /= self.size as f64);
        variances
    }
}

/// Brings axes that may count from the end into `0..rank`.
pub(super) fn normalize_axes(axes: &[i64], rank: usize) -> Result<Vec<usize>> {
    axes.iter().map(|&a| normalize_axis(a, rank)).collect()
}

/// Checks an axes input: integer, at most one dimension, and inside of the rank of the data where known.
pub(super) fn check_axes_input(cx: &InferCx<'_>, input: usize) -> Result<()> {
    cx.require_integer(input)?;
    cx.require_rank(input, &[0, 1])?;
    if let (Some(axes), Some(rank)) = (cx.ints(input), cx.rank(0)) {
        normalize_axes(&axes, rank)?;
    }
    Ok(())
}

/// A factor or term under a root must not be negative.
pub(super) fn check_epsilon(cx: &InferCx<'_>, name: &str, value: f32) -> Result<()> {
    cx.require(value >= 0.0, || format!("attribute `{name}` must be at least 0, found {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_what_the_axes_leave() {
        let g = Groups::over(&[2, 3], &[0]);
        assert_eq!((g.count, g.size), (3, 2));
        assert_eq!(g.of_elements().collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2]);
        assert_eq!(Groups::over(&[2, 3], &[]).of_elements().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    }
}
