//! Views of arrays: axes with a stride each, forward or backward, and the copy from one view to another. Most operations that
//! move elements are one such copy.

use super::types;
use crate::backend::BuildCx;
use crate::launch::{Arg, Launch};
use carafe_graph::Result;
use carafe_plan::Port;
use carafe_tensor::strides;
use std::fmt::Write;

/// Elements of an array, in the order of some axes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// The element at index 0 of every axis.
    pub(crate) start: usize,
    pub(crate) dims: Vec<usize>,
    pub(crate) strides: Vec<isize>,
}

impl View {
    /// All of a dense array.
    pub(crate) fn whole(dims: &[usize]) -> View {
        View { start: 0, dims: dims.to_vec(), strides: strides(dims).into_iter().map(|s| s as isize).collect() }
    }
    /// A value as the model sees it, over its memory.
    pub(crate) fn of(port: &Port) -> View {
        let rank = port.rank();
        let positions: Vec<usize> = (0..rank).map(|a| port.layout.axis(a, rank)).collect();
        View::whole(&port.layout.dims(&port.shape)).permuted(&positions)
    }
    pub(crate) fn rank(&self) -> usize {
        self.dims.len()
    }
    pub(crate) fn len(&self) -> usize {
        self.dims.iter().product()
    }
    /// Axis `order[i]` becomes axis `i`.
    pub(crate) fn permuted(&self, order: &[usize]) -> View {
        let dims = order.iter().map(|&a| self.dims[a]).collect();
        View { start: self.start, dims, strides: order.iter().map(|&a| self.strides[a]).collect() }
    }
    /// `len` elements of an axis from `first` on, each `step` behind the one before.
    pub(crate) fn sliced(mut self, axis: usize, first: usize, step: isize, len: usize) -> View {
        self.start = self.start.wrapping_add_signed(first as isize * self.strides[axis]);
        self.strides[axis] *= step;
        self.dims[axis] = len;
        self
    }
    /// An axis backward.
    pub(crate) fn reversed(self, axis: usize) -> View {
        let n = self.dims[axis];
        self.sliced(axis, n - 1, -1, n)
    }
    /// An axis as several, the outermost first.
    pub(crate) fn split(mut self, axis: usize, parts: &[usize]) -> View {
        let stride = self.strides[axis];
        let own = strides(parts).into_iter().map(|s| s as isize * stride);
        self.strides.splice(axis..=axis, own);
        self.dims.splice(axis..=axis, parts.iter().copied());
        self
    }
    /// Repeated along axes that it does not have or where it is 1 long; its own axes become these.
    pub(crate) fn stretched(&self, dims: &[usize], axes: &[usize]) -> View {
        let mut strides = vec![0; dims.len()];
        for (own, &axis) in axes.iter().enumerate() {
            strides[axis] = if self.dims[own] == 1 { 0 } else { self.strides[own] };
        }
        View { start: self.start, dims: dims.to_vec(), strides }
    }
    /// Whether it is all of a dense array, in order.
    pub(crate) fn is_whole(&self) -> bool {
        let whole = View::whole(&self.dims);
        self.start == 0
            && self.dims.iter().zip(self.strides.iter().zip(&whole.strides)).all(|(&n, (a, b))| n == 1 || a == b)
    }
}

// Axes of both that can be one, and those of one element left out.
fn joined(from: &View, to: &View) -> (Vec<usize>, Vec<isize>, Vec<isize>) {
    let (mut dims, mut a, mut b): (Vec<usize>, Vec<isize>, Vec<isize>) = (vec![], vec![], vec![]);
    for axis in 0..from.rank() {
        let n = from.dims[axis];
        if n == 1 {
            continue;
        }
        let (s, t, len) = (from.strides[axis], to.strides[axis], n as isize);
        match (dims.last_mut(), a.last_mut(), b.last_mut()) {
            (Some(last), Some(x), Some(y)) if *x == s * len && *y == t * len => {
                *last *= n;
                (*x, *y) = (s, t);
            }
            _ => {
                dims.push(n);
                a.push(s);
                b.push(t);
            }
        }
    }
    (dims, a, b)
}

/// The copy of the elements of one view to another of the same axes.
pub(crate) fn copy(cx: &BuildCx, from: &View, to: &View, size: usize, read: Arg, write: Arg) -> Result<Launch> {
    let (dims, a, b) = joined(from, to);
    let (ty, count) = (types::of_size(size), from.len());
    let mut args = vec![read, write, count.into(), from.start.into(), to.start.into()];
    let mut params = format!("__global const {ty} *x, __global {ty} *y, const int count, const int x0, const int y0");
    let mut body =
        "    int rest = get_global_id(0);\n    if (rest >= count) return;\n    int at = x0, to = y0;\n".to_string();
    for axis in (0..dims.len()).rev() {
        let index = if axis == 0 {
            "rest".to_string()
        } else {
            let _ = write!(params, ", const uint n{axis}");
            args.push(dims[axis].into());
            let _ = writeln!(body, "    const int i{axis} = (uint)rest % n{axis}; rest = (uint)rest / n{axis};");
            format!("i{axis}")
        };
        for (name, array, stride) in [("at", "a", a[axis]), ("to", "b", b[axis])] {
            if stride == 1 {
                let _ = writeln!(body, "    {name} += {index};");
            } else {
                let _ = write!(params, ", const int {array}{axis}");
                args.push(Arg::Int(stride as i32));
                let _ = writeln!(body, "    {name} += {index} * {array}{axis};");
            }
        }
    }
    let source = format!("__kernel void copy({params}) {{\n{body}    y[to] = x[at];\n}}\n");
    let kernel = cx.generated("a copy", &source, "copy", &[])?;
    Ok(Launch::flat(&kernel, args, count, cx.group()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_backward_begins_at_its_last_element() {
        let view = View::whole(&[2, 4]).sliced(1, 3, -2, 2);
        assert_eq!((view.start, view.strides, view.dims), (3, vec![4, -2], vec![2, 2]));
    }

    #[test]
    fn axes_that_move_together_are_one() {
        let from = View::whole(&[2, 3, 4]).permuted(&[2, 0, 1]);
        let to = View::whole(&from.dims);
        assert_eq!(joined(&from, &to), (vec![4, 6], vec![1, 4], vec![6, 1]));
    }
}
