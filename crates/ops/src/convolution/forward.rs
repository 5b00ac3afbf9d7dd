//! Forward convolutions: every window, seen as a column, is multiplied by the filters of its group. Convolution is the
//! case of one group whose filters have no group axis.

use super::unfold::Grid;
use super::window::Window;
use crate::linear::product::{COLUMNS, Factor, Rows, add_product, is_factor, with_factor, zeros};
use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// Number of spatial axes: from the data, else from the filters, else from the attributes.
pub(super) fn n_spatial(cx: &InferCx<'_>, filters: usize, filter_lead: usize, window: &Window<'_>) -> Option<usize> {
    let from_filters = cx.rank(filters).and_then(|r| r.checked_sub(filter_lead));
    cx.rank(0).and_then(|r| r.checked_sub(2)).or(from_filters).or(window.rank())
}

/// Checks the ranks of data and filters against each other; filters have `lead` axes before the spatial ones.
pub(super) fn check_ranks(cx: &InferCx<'_>, lead: usize) -> Result<()> {
    cx.require_rank(0, &[3, 4, 5])?;
    cx.require_rank(1, &[lead + 1, lead + 2, lead + 3])?;
    if let (Some(d), Some(f)) = (cx.rank(0), cx.rank(1)) {
        cx.require(d + lead == f + 2, || {
            format!("data [{}] and filters [{}] differ in their spatial rank", cx.shape(0), cx.shape(1))
        })?;
    }
    Ok(())
}

/// The common numeric type of data and filters.
pub(super) fn numeric_type(cx: &InferCx<'_>) -> Result<ElementType> {
    let ty = cx.same_type(&[0, 1])?;
    cx.require(is_factor(ty), || format!("data and filters must be numeric, found {ty}"))?;
    Ok(ty)
}

/// The number of groups, from the group axis of the filters and from the channels of the data.
pub(super) fn groups(cx: &InferCx<'_>, channels: Dim, group_axis: Dim, per_group: Dim) -> Result<Dim> {
    let mismatch = || {
        cx.fail(format!(
            "data [{}] has {channels} channels, filters [{}] take {group_axis} groups of {per_group}",
            cx.shape(0),
            cx.shape(1)
        ))
    };
    match per_group.get() {
        Some(n) if n > 0 => {
            if channels.get().is_some_and(|c| c % n != 0) {
                return Err(mismatch());
            }
            let fitting = if channels.is_known() { channels.floor_div(n) } else { Dim::ANY };
            group_axis.merge(fitting).ok_or_else(mismatch)
        }
        Some(_) if channels.contains(0) => Ok(group_axis),
        Some(_) => Err(mismatch()),
        None => Ok(group_axis),
    }
}

/// Inference of Convolution, and of GroupConvolution when `grouped`.
pub(super) fn infer(cx: &mut InferCx<'_>, window: &Window<'_>, grouped: bool) -> Result<()> {
    let ty = numeric_type(cx)?;
    infer_shape(cx, window, grouped, ty)
}

/// [`infer`] after the type is known.
pub(super) fn infer_shape(cx: &mut InferCx<'_>, window: &Window<'_>, grouped: bool, ty: ElementType) -> Result<()> {
    let lead = if grouped { 3 } else { 2 };
    check_ranks(cx, lead)?;
    let Some(n) = n_spatial(cx, 1, lead, window) else {
        cx.set(0, ty, PartialShape::dynamic());
        return Ok(());
    };
    window.check(n)?;
    let (channels, first) = (cx.dim(0, 1), cx.dim(1, 0));
    let out_channels = if grouped {
        groups(cx, channels, first, cx.dim(1, 2))?.mul(cx.dim(1, 1))
    } else {
        let wanted = cx.dim(1, 1);
        cx.require(channels.compatible(wanted), || {
            format!("data [{}] has {channels} channels, filters [{}] take {wanted}", cx.shape(0), cx.shape(1))
        })?;
        first
    };
    let mut dims = vec![cx.dim(0, 0), out_channels];
    dims.extend(window.all_windows(cx.shape(0), cx.shape(1), n)?);
    cx.set(0, ty, PartialShape::new(dims));
    Ok(())
}

/// Evaluation of Convolution, and of GroupConvolution when `grouped`.
pub(super) fn eval(cx: &mut EvalCx<'_>, window: &Window<'_>, grouped: bool) -> Result<()> {
    with_factor!(cx.ty(0), T => {
        let (data, filters) = (cx.get::<T>(0)?, cx.get::<T>(1)?);
        let (out_shape, out) = convolve::<T>(cx, window, grouped, &data, &filters, T::default())?;
        drop((data, filters));
        cx.put(0, &out_shape, out)
    })
}

/// The convolution of `data` with `filters`, which have the shapes of inputs 0 and 1.
pub(super) fn convolve<T: Factor>(
    cx: &EvalCx<'_>,
    window: &Window<'_>,
    grouped: bool,
    data: &[T],
    filters: &[T],
    pad: T,
) -> Result<(Vec<usize>, Vec<T>)> {
    let out_shape = cx.out_shape(0)?;
    let (data_shape, filter_shape) = (cx.shape(0), cx.shape(1));
    let n_groups = if grouped { filter_shape[0] } else { 1 };
    let image = &data_shape[2..];
    let kernel = &filter_shape[filter_shape.len() - image.len()..];
    let axes: Vec<_> = (0..image.len()).map(|i| window.axis(i, image[i] as i64, kernel[i] as i64)).collect();
    let grid = Grid::new(image, &out_shape[2..], &axes);

    let mut out: Vec<T> = zeros(&out_shape)?;
    if out.is_empty() || n_groups == 0 {
        return Ok((out_shape, out));
    }
    let (in_channels, out_channels) = (data_shape[1] / n_groups, out_shape[1] / n_groups);
    let (products, n_windows) = (in_channels * grid.kernel_len(), grid.n_windows());
    let block = n_windows.min(COLUMNS);
    let mut columns: Vec<T> = zeros(&[products, block])?;
    let mut sums: Vec<T::Sum> = zeros(&[out_channels, block])?;
    let group_in = in_channels * grid.image_len();
    for (i, out) in out.chunks_exact_mut(out_channels * n_windows).enumerate() {
        let filters = Rows::new(&filters[i % n_groups * out_channels * products..], products);
        let images = &data[i * group_in..][..group_in];
        for start in (0..n_windows).step_by(block) {
            cx.check_cancelled()?;
            let end = n_windows.min(start + block);
            let width = end - start;
            let columns = &mut columns[..products * width];
            grid.unfold(images, columns, start, end, pad);
            let sums = &mut sums[..out_channels * width];
            sums.fill(T::Sum::default());
            add_product(sums, filters, Rows::new(columns, width), out_channels, products, width);
            for (row, sums) in out.chunks_exact_mut(n_windows).zip(sums.chunks_exact(width)) {
                for (y, &s) in row[start..end].iter_mut().zip(sums) {
                    *y = T::narrow(s);
                }
            }
        }
    }
    Ok((out_shape, out))
}
