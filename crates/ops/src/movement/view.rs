//! A strided look at a row-major tensor: start, shape and one signed stride per axis. Slices, permutations, reversals and
//! broadcasts are all such looks, so they share one copy loop. A stride of 0 repeats an axis.

use carafe_graph::Result;
use carafe_tensor::{Tensor, elements, strides};

/// Copies shorter than this go element by element; longer ones in runs.
const SHORT_RUN: usize = 8;

/// Which elements of a tensor are seen, in which order.
#[derive(Clone, Debug)]
pub(crate) struct View {
    start: i64,
    shape: Vec<usize>,
    strides: Vec<i64>,
}

impl View {
    /// The whole of a tensor of this shape.
    pub(crate) fn whole(shape: &[usize]) -> View {
        View { start: 0, shape: shape.to_vec(), strides: strides(shape).into_iter().map(|s| s as i64).collect() }
    }

    /// A tensor of this shape stretched to `out`: data axis `i` becomes output axis `axes[i]`, an axis of 1 is repeated.
    pub(crate) fn broadcast(shape: &[usize], out: &[usize], axes: &[usize]) -> View {
        let own = strides(shape);
        let mut stretched = vec![0; out.len()];
        for (i, &axis) in axes.iter().enumerate() {
            stretched[axis] = if shape[i] == 1 { 0 } else { own[i] as i64 };
        }
        View { start: 0, shape: out.to_vec(), strides: stretched }
    }

    /// Axes in another order: new axis `i` is the old `order[i]`.
    pub(crate) fn permuted(mut self, order: &[usize]) -> View {
        self.strides = order.iter().map(|&a| self.strides[a]).collect();
        self.shape = order.iter().map(|&a| self.shape[a]).collect();
        self
    }

    /// Every `step`-th element of an axis from `begin` on, `len` of them.
    pub(crate) fn sliced(mut self, axis: usize, begin: usize, step: i64, len: usize) -> View {
        if len > 0 {
            self.start += begin as i64 * self.strides[axis];
        }
        self.strides[axis] = self.strides[axis].saturating_mul(step);
        self.shape[axis] = len;
        self
    }

    /// The axis backwards.
    pub(crate) fn reversed(self, axis: usize) -> View {
        let n = self.shape[axis];
        self.sliced(axis, n.saturating_sub(1), -1, n)
    }

    /// Calls `f(position, offset, length)` for the longest stretches that are contiguous in the tensor, in row-major
    /// order of the view.
    pub(crate) fn for_each_run(&self, mut f: impl FnMut(usize, usize, usize) -> Result<()>) -> Result<()> {
        let (outer, run) = self.runs();
        if elements(&self.shape) == Some(0) {
            return Ok(());
        }
        let mut walk = Walk::new(self.start, &self.shape[..outer], &self.strides[..outer]);
        let mut position = 0;
        while let Some(offset) = walk.next() {
            f(position, offset, run)?;
            position += run;
        }
        Ok(())
    }

    /// A tensor of its own with the elements of the view.
    pub(crate) fn copy(&self, tensor: &Tensor) -> Result<Tensor> {
        if self.runs().1 >= SHORT_RUN {
            let mut out = Tensor::zeros(tensor.element_type(), &self.shape)?;
            self.for_each_run(|position, offset, n| Ok(out.copy_elements(position, tensor, offset, n)?))?;
            return Ok(out);
        }
        let mut walk = Walk::new(self.start, &self.shape, &self.strides);
        Ok(tensor.select(&self.shape, |_| walk.next())?)
    }

    // Number of leading axes that are walked, and length of the contiguous rest.
    fn runs(&self) -> (usize, usize) {
        let (mut outer, mut run) = (self.shape.len(), 1usize);
        while outer > 0 && (self.shape[outer - 1] == 1 || self.strides[outer - 1] == run as i64) {
            run = run.saturating_mul(self.shape[outer - 1]);
            outer -= 1;
        }
        (outer, run)
    }
}

/// Each axis on its own: element `i` of output axis `a` comes from element `f(a, i)` of that axis of the tensor, which is
/// read under `shape`. An element that is `None` on any axis is taken from `missing`, a flat position, or is zero.
pub(crate) fn map_axes(
    tensor: &Tensor,
    shape: &[usize],
    out: &[usize],
    missing: Option<usize>,
    f: impl Fn(usize, usize) -> Option<usize>,
) -> Result<Tensor> {
    let own = strides(shape);
    let mut index = vec![0; out.len()];
    // Offset of the axes before the last one, recomputed when they move.
    let base = |index: &[usize]| {
        index.iter().enumerate().try_fold(0, |offset, (axis, &i)| Some(offset + f(axis, i)? * own[axis]))
    };
    let Some(last) = out.len().checked_sub(1) else {
        return Ok(tensor.select(out, |_| Some(0))?);
    };
    let mut outer = if elements(out) == Some(0) { None } else { base(&index[..last]) };
    Ok(tensor.select(out, |_| {
        let source = outer.and_then(|o| Some(o + f(last, index[last])?));
        index[last] += 1;
        if index[last] == out[last] {
            index[last] = 0;
            for axis in (0..last).rev() {
                index[axis] += 1;
                if index[axis] < out[axis] {
                    break;
                }
                index[axis] = 0;
            }
            outer = base(&index[..last]);
        }
        source.or(missing)
    })?)
}

// Offsets in row-major order of the shape; gives one offset for a scalar and never ends by itself on empty shapes, so
// callers ask as often as there are elements.
struct Walk<'a> {
    offset: i64,
    shape: &'a [usize],
    strides: &'a [i64],
    index: Vec<usize>,
    done: bool,
}

impl<'a> Walk<'a> {
    fn new(offset: i64, shape: &'a [usize], strides: &'a [i64]) -> Walk<'a> {
        Walk { offset, shape, strides, index: vec![0; shape.len()], done: false }
    }

    fn next(&mut self) -> Option<usize> {
        if self.done {
            return None;
        }
        let now = usize::try_from(self.offset).ok();
        for axis in (0..self.shape.len()).rev() {
            self.index[axis] += 1;
            if self.index[axis] < self.shape[axis] {
                self.offset += self.strides[axis];
                return now;
            }
            self.offset -= self.strides[axis] * (self.shape[axis] as i64 - 1);
            self.index[axis] = 0;
        }
        self.done = true;
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iota(shape: &[usize]) -> Tensor {
        let n: usize = shape.iter().product();
        Tensor::from_vec(shape, (0..n as i32).collect()).unwrap()
    }

    fn seen(view: &View, tensor: &Tensor) -> Vec<i32> {
        view.copy(tensor).unwrap().to_vec::<i32>().unwrap().into_owned()
    }

    #[test]
    fn a_permutation_reads_across() {
        let t = iota(&[2, 3]);
        assert_eq!(seen(&View::whole(&[2, 3]).permuted(&[1, 0]), &t), [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn a_negative_step_walks_back() {
        let t = iota(&[5]);
        assert_eq!(seen(&View::whole(&[5]).sliced(0, 4, -2, 3), &t), [4, 2, 0]);
    }

    #[test]
    fn long_rows_are_copied_in_runs() {
        let t = iota(&[3, 10]);
        let view = View::whole(&[3, 10]).sliced(0, 2, -1, 3);
        let mut runs = vec![];
        view.for_each_run(|p, o, n| {
            runs.push((p, o, n));
            Ok(())
        })
        .unwrap();
        assert_eq!(runs, [(0, 20, 10), (10, 10, 10), (20, 0, 10)]);
        assert_eq!(seen(&view, &t)[10], 10);
    }

    #[test]
    fn an_empty_view_reads_nothing() {
        let t = iota(&[0, 3]);
        assert_eq!(seen(&View::whole(&[0, 3]).permuted(&[1, 0]), &t), [0i32; 0]);
        assert_eq!(seen(&View::whole(&[4]).sliced(0, 9, 1, 0), &iota(&[4])), [0i32; 0]);
    }

    #[test]
    fn a_broadcast_repeats() {
        let t = iota(&[3]);
        assert_eq!(seen(&View::broadcast(&[3], &[2, 3], &[1]), &t), [0, 1, 2, 0, 1, 2]);
        assert_eq!(seen(&View::broadcast(&[], &[2], &[]), &iota(&[])), [0, 0]);
    }
}
