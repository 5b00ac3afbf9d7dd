//! Kernels that compute each element of the result from one element of each operand: source is written for the types, the number
//! of axes that are left after those were joined that lie together, and the function. Sizes and numbers are arguments, so that
//! layers of other sizes share the program.

use super::types;
use crate::backend::BuildCx;
use crate::launch::{Arg, Launch, Launches};
use carafe_graph::{Error, Result};
use carafe_tensor::ElementType;
use std::fmt::Write;

/// An array that is read.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    /// The type in which it lies.
    pub(crate) ty: ElementType,
    /// Elements from one to the next along each axis of the result; 0 where it is repeated.
    pub(crate) strides: Vec<usize>,
}

/// A function of elements.
#[derive(Clone, Debug)]
pub(crate) struct Pointwise {
    /// The axes of the result, as they lie.
    pub(crate) dims: Vec<usize>,
    pub(crate) operands: Vec<Operand>,
    /// The type in which the result lies.
    pub(crate) out: ElementType,
    /// Statements that use `x0`, `x1` for elements of the operands and `c0`, `c1` for numbers, all of the types that elements
    /// are computed with.
    pub(crate) body: String,
    /// The element of the result, as an expression.
    pub(crate) result: String,
    pub(crate) numbers: Vec<f32>,
    /// Whether the body calls `refuse(faults, step, ..)`.
    pub(crate) refuses: bool,
}

/// Joins axes that lie together in all arrays; the outermost first. There is at least one.
pub(crate) fn joined(dims: &[usize], arrays: &[Vec<usize>]) -> (Vec<usize>, Vec<Vec<usize>>) {
    let mut kept: Vec<usize> = vec![];
    let mut strides: Vec<Vec<usize>> = vec![vec![]; arrays.len()];
    for (axis, &n) in dims.iter().enumerate().filter(|(_, n)| **n != 1) {
        let one = strides.iter().zip(arrays).all(|(own, all)| own.last().is_some_and(|&s| s == all[axis] * n));
        match kept.last_mut() {
            Some(last) if one => {
                *last *= n;
                strides.iter_mut().zip(arrays).for_each(|(own, all)| *own.last_mut().expect("it has one") = all[axis]);
            }
            _ => {
                kept.push(n);
                strides.iter_mut().zip(arrays).for_each(|(own, all)| own.push(all[axis]));
            }
        }
    }
    if kept.is_empty() {
        kept.push(1);
        strides.iter_mut().for_each(|s| s.push(0));
    }
    (kept, strides)
}

impl Pointwise {
    /// The step. `None` when an array is of a type that kernels do not know.
    pub(crate) fn step(&self, cx: &BuildCx, name: String) -> Result<Launches> {
        let unknown = |ty: ElementType| Error::unsupported(format!("no kernel computes in {ty}"));
        let count: usize = self.dims.iter().product();
        let dense = carafe_tensor::strides(&self.dims);
        let mut arrays: Vec<Vec<usize>> = vec![dense];
        arrays.extend(self.operands.iter().map(|o| o.strides.clone()));
        let (dims, strides) = joined(&self.dims, &arrays);
        let reach = self.operands.iter().zip(&strides[1..]);
        let reach = reach.map(|(_, s)| s.iter().zip(&dims).map(|(s, n)| s * n).sum::<usize>()).max().unwrap_or(0);
        let large = count.max(reach) >= i32::MAX as usize;
        let index = if large { "ulong" } else { "uint" };
        let size = |n: usize| if large { Arg::Value((n as u64).to_ne_bytes().to_vec()) } else { Arg::from(n) };

        let mut args: Vec<Arg> = (0..self.operands.len()).map(Arg::Read).collect();
        let mut params = String::new();
        for (k, o) in self.operands.iter().enumerate() {
            let ty = types::stored(o.ty).ok_or_else(|| unknown(o.ty))?;
            let _ = write!(params, "__global const {ty} *a{k}, ");
        }
        let out = types::stored(self.out).ok_or_else(|| unknown(self.out))?;
        let _ = write!(params, "__global {out} *y, const {index} count");
        args.extend([Arg::Write(0), size(count)]);
        let mut head = format!("    const {index} i = get_global_id(0);\n    if (i >= count) return;\n");
        // Where along each axis an element lies; the outermost needs no size.
        if dims.len() > 1 && strides[1..].iter().any(|own| !is_simple(own, &strides[0])) {
            let _ = writeln!(head, "    {index} rest = i;");
            for axis in (1..dims.len()).rev() {
                let _ = write!(params, ", const {index} n{axis}");
                args.push(size(dims[axis]));
                let _ = writeln!(head, "    const {index} i{axis} = rest % n{axis}; rest /= n{axis};");
            }
            let _ = writeln!(head, "    const {index} i0 = rest;");
        }
        for (k, (o, own)) in self.operands.iter().zip(&strides[1..]).enumerate() {
            let at = if own.iter().all(|&s| s == 0) {
                "0".to_string()
            } else if *own == strides[0] {
                "i".to_string()
            } else {
                let mut sum = vec![];
                for (axis, &stride) in own.iter().enumerate() {
                    match stride {
                        0 => {}
                        1 => sum.push(format!("i{axis}")),
                        _ => {
                            let _ = write!(params, ", const {index} s{k}_{axis}");
                            args.push(size(stride));
                            sum.push(format!("i{axis} * s{k}_{axis}"));
                        }
                    }
                }
                sum.join(" + ")
            };
            let (ty, load) = (types::computed(o.ty).unwrap_or("float"), types::load(o.ty, &format!("a{k}"), &at));
            let _ = writeln!(head, "    const {ty} x{k} = {load};");
        }
        for (k, &number) in self.numbers.iter().enumerate() {
            let _ = write!(params, ", const float c{k}");
            args.push(number.into());
        }
        if self.refuses {
            params += ", volatile __global int *faults, const int step";
            args.extend([Arg::Faults, Arg::Step]);
        }
        let store = types::store(self.out, "y", "i", &self.result);
        let source = format!("__kernel void pointwise({params}) {{\n{head}{}    {store}\n}}\n", self.body);
        let kernel = cx.generated("elementwise operations", &source, "pointwise", &[])?;
        // An element may be written over what it was computed from, where both lie at one place.
        let over = |(k, own): (usize, &Vec<usize>)| (*own == strides[0] && count > 1).then_some(k);
        let over = strides[1..].iter().enumerate().filter_map(over).collect();
        Ok(Launches::new(name, vec![Launch::flat(&kernel, args, count, cx.group())]).over(over))
    }
}

fn is_simple(own: &[usize], dense: &[usize]) -> bool {
    own == dense || own.iter().all(|&s| s == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_lie_together_are_one() {
        let (dims, strides) = joined(&[2, 3, 4, 5], &[vec![60, 20, 5, 1], vec![0, 1, 0, 0]]);
        assert_eq!((dims, strides), (vec![2, 3, 20], vec![vec![60, 20, 1], vec![0, 1, 0]]));
        let (dims, strides) = joined(&[1, 3, 1], &[vec![3, 1, 1], vec![3, 1, 1]]);
        assert_eq!((dims, strides), (vec![3], vec![vec![1], vec![1]]));
    }

    #[test]
    fn one_element_has_one_axis() {
        assert_eq!(joined(&[], &[vec![]]), (vec![1], vec![vec![0]]));
    }
}
