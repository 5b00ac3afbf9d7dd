//! Windows that share an axis evenly: output `k` of `m` covers `floor(k*n/m)..ceil((k+1)*n/m)` of `n`, so neighbours may
//! overlap by one element.

use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::{Dim, PartialShape};
use std::ops::Range;

/// Checks data and `output_shape` and gives the output shape.
pub(super) fn shape(cx: &InferCx<'_>) -> Result<PartialShape> {
    cx.require_number(0)?;
    cx.require_integer(1)?;
    cx.require_rank(0, &[3, 4, 5])?;
    cx.require_rank(1, &[0, 1])?;
    let asked = cx.dims_value(1);
    let count = match (&asked, cx.rank(1)) {
        (Some(dims), _) => Some(dims.len()),
        (None, Some(1)) => cx.dim(1, 0).size(),
        (None, Some(_)) => Some(1),
        (None, None) => None,
    };
    let n = cx.rank(0).map(|r| r - 2);
    if let (Some(n), Some(count)) = (n, count) {
        cx.require(n == count, || {
            format!("output_shape must have one value for each spatial axis of [{}], found {count}", cx.shape(0))
        })?;
    }
    let Some(n) = n.or(count) else { return Ok(PartialShape::dynamic()) };
    if let Some(d) = asked.iter().flatten().find(|d| d.max().is_some_and(|m| m < 0)) {
        return Err(cx.fail(format!("output_shape must not be negative, found {d}")));
    }
    cx.require((1..=3).contains(&n), || format!("output_shape must have 1 to 3 values, found {n}"))?;
    let mut dims = vec![cx.dim(0, 0), cx.dim(0, 1)];
    match asked {
        Some(asked) => dims.extend(asked.iter().map(|d| d.clamp_shape())),
        None => dims.extend(vec![Dim::ANY; n]),
    }
    Ok(PartialShape::new(dims))
}

/// Visits every window of one image in order with the flat positions it covers.
pub(super) fn each_window(cx: &EvalCx<'_>, visit: &mut dyn FnMut(&mut dyn Iterator<Item = usize>)) -> Result<()> {
    let (image, windows) = (cx.shape(0), cx.out_shape(0)?);
    let three = |shape: &[usize]| {
        let mut all = [1; 3];
        all[5 - shape.len()..].copy_from_slice(&shape[2..]);
        all
    };
    let (image, windows) = (three(image), three(&windows));
    for z in 0..windows[0] {
        for y in 0..windows[1] {
            for x in 0..windows[2] {
                let (depth, rows) = (covered(z, image[0], windows[0]), covered(y, image[1], windows[1]));
                let columns = covered(x, image[2], windows[2]);
                let mut positions = depth.flat_map(|z| {
                    let columns = columns.clone();
                    rows.clone().flat_map(move |y| columns.clone().map(move |x| (z * image[1] + y) * image[2] + x))
                });
                visit(&mut positions);
            }
        }
    }
    Ok(())
}

fn covered(k: usize, n: usize, m: usize) -> Range<usize> {
    let (k, n, m) = (k as u128, n as u128, m as u128);
    (k * n / m) as usize..((k + 1) * n).div_ceil(m) as usize
}
