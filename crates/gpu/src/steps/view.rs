//! The copy from one view of an array to another. Most operations that move elements are one such copy.

use super::types;
use crate::backend::BuildCx;
use crate::launch::{Arg, Launch};
use carafe_graph::Result;
use carafe_plan::View;
use std::fmt::Write;

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
    fn axes_that_move_together_are_one() {
        let from = View::whole(&[2, 3, 4]).permuted(&[2, 0, 1]);
        let to = View::whole(&from.dims);
        assert_eq!(joined(&from, &to), (vec![4, 6], vec![1, 4], vec![6, 1]));
    }
}
