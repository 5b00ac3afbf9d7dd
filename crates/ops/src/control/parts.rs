//! Cutting a tensor into the parts of an axis, one per iteration, and joining them again. A negative stride takes the parts
//! from the end; inside a part the order stays.

use crate::index::around;
use carafe_graph::{Error, Result, Slicing, normalize_axis};
use carafe_tensor::Tensor;

/// Refuses parts without elements and steps that lead nowhere.
pub(super) fn check(s: &Slicing) -> Result<()> {
    if s.part_size <= 0 || s.stride == 0 {
        return Err(Error::invalid(format!(
            "slicing needs a part_size above 0 and a stride, found {} and {}",
            s.part_size, s.stride
        )));
    }
    Ok(())
}

/// How many parts an axis of `n` elements has. `end` is included; negative bounds count from the end.
pub(super) fn count(s: &Slicing, n: i64) -> Result<i64> {
    check(s)?;
    let at = |bound: i64| if bound < 0 { bound.saturating_add(n) } else { bound };
    if n == 0 {
        return Ok(0);
    }
    let (start, end) = (at(s.start), at(s.end));
    if !(0..n).contains(&start) || !(0..n).contains(&end) {
        return Err(Error::invalid(format!("slicing from {} to {} leaves an axis of {n}", s.start, s.end)));
    }
    let length = (end - start).abs() + 1;
    if length % s.part_size != 0 {
        return Err(Error::invalid(format!("{length} elements do not divide into parts of {}", s.part_size)));
    }
    Ok(length / s.part_size)
}

/// The part of one iteration.
pub(super) fn take(t: &Tensor, s: &Slicing, iteration: i64) -> Result<Tensor> {
    let axis = normalize_axis(s.axis, t.rank())?;
    let (before, n, after) = around(t.shape(), axis);
    let start = if s.start < 0 { s.start.saturating_add(n as i64) } else { s.start };
    let step = start.checked_add(iteration.saturating_mul(s.stride));
    let first = if s.stride < 0 { step.and_then(|f| f.checked_sub(s.part_size - 1)) } else { step };
    let size = usize::try_from(s.part_size).unwrap_or(0);
    let first = first.and_then(|f| usize::try_from(f).ok()).filter(|f| f.checked_add(size).is_some_and(|e| e <= n));
    let first = first.ok_or_else(|| {
        Error::invalid(format!("iteration {iteration} takes {size} elements outside of axis {axis} with {n}"))
    })?;
    let mut shape = t.shape().to_vec();
    shape[axis] = size;
    let mut part = Tensor::zeros(t.element_type(), &shape)?;
    for i in 0..if part.is_empty() { 0 } else { before } {
        part.copy_elements(i * size * after, t, (i * n + first) * after, size * after)?;
    }
    Ok(part)
}

/// Joins parts along an axis, in order or from the last to the first. Scalars become a vector.
pub(super) fn join(parts: &[Tensor], s: &Slicing) -> Result<Tensor> {
    let Some(one) = parts.first() else { return Err(Error::invalid("there are no parts to join")) };
    let mut shape = if one.rank() == 0 { vec![1] } else { one.shape().to_vec() };
    let axis = normalize_axis(s.axis, shape.len())?;
    let parts = parts
        .iter()
        .map(|p| if p.rank() == 0 { p.reshaped(&[1]).map_err(Error::from) } else { Ok(p.clone()) })
        .collect::<Result<Vec<_>>>()?;
    let mut total = 0usize;
    for p in &parts {
        let fits = p.rank() == shape.len()
            && p.element_type() == one.element_type()
            && p.shape().iter().zip(&shape).enumerate().all(|(i, (a, b))| i == axis || a == b);
        if !fits {
            return Err(Error::invalid(format!(
                "iterations gave {}{:?} and {}{shape:?}, which do not join along axis {axis}",
                p.element_type(),
                p.shape(),
                one.element_type()
            )));
        }
        total = total.saturating_add(p.shape()[axis]);
    }
    shape[axis] = total;
    let (before, _, after) = around(&shape, axis);
    let mut out = Tensor::zeros(one.element_type(), &shape)?;
    if out.is_empty() {
        return Ok(out);
    }
    let mut at = 0;
    let ordered: Box<dyn Iterator<Item = &Tensor>> =
        if s.stride < 0 { Box::new(parts.iter().rev()) } else { Box::new(parts.iter()) };
    for p in ordered {
        let n = p.shape()[axis] * after;
        for i in 0..before {
            out.copy_elements(i * total * after + at, p, i * n, n)?;
        }
        at += n;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reversed(part_size: i64) -> Slicing {
        Slicing { axis: 1, start: -1, end: 0, stride: -part_size, part_size }
    }

    #[test]
    fn a_negative_stride_takes_parts_from_the_end_without_turning_them() {
        let t = Tensor::from_slice(&[1, 4], &[0i32, 1, 2, 3]).unwrap();
        assert_eq!(count(&reversed(2), 4).unwrap(), 2);
        assert_eq!(take(&t, &reversed(2), 0).unwrap().as_slice::<i32>().unwrap(), [2, 3]);
        assert_eq!(take(&t, &reversed(2), 1).unwrap().as_slice::<i32>().unwrap(), [0, 1]);
    }

    #[test]
    fn parts_join_to_what_they_were_taken_from() {
        let data: Vec<i32> = (0..12).collect();
        let t = Tensor::from_slice(&[2, 3, 2], &data).unwrap();
        for s in [Slicing::along(1), reversed(1)] {
            let parts: Vec<Tensor> = (0..3).map(|i| take(&t, &s, i).unwrap()).collect();
            assert!(join(&parts, &s).unwrap().content_eq(&t));
        }
    }

    #[test]
    fn a_part_outside_of_the_axis_is_an_error() {
        let t = Tensor::from_slice(&[2], &[0i32, 1]).unwrap();
        assert!(take(&t, &Slicing::along(0), 2).is_err());
        assert!(count(&Slicing { stride: 0, ..Slicing::along(0) }, 2).is_err());
    }

    #[test]
    fn scalars_join_to_a_vector() {
        let parts = [Tensor::scalar(1i32), Tensor::scalar(2i32)];
        assert_eq!(join(&parts, &Slicing::along(0)).unwrap().shape(), [2]);
    }
}
