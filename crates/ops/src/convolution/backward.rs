//! Transposed convolutions: every element of the data spreads a copy of its filter over the output. The output plays the
//! part that the data has in a forward convolution, so its size is chosen: by `output_padding`, or by an input, in which
//! case `same_*` pads are those that lead to it, with the odd one at the other end than forward.

use super::forward::{check_ranks, groups, n_spatial, numeric_type};
use super::unfold::Grid;
use super::window::{Axis, PadType, Rounding, Window, check_list, spatial};
use crate::linear::product::{COLUMNS, Factor, Rows, add_product, transposed, with_factor, zeros};
use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::{Dim, PartialShape};

/// The attributes of a transposed convolution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Backward<'a> {
    pub strides: &'a [i64],
    pub dilations: &'a [i64],
    pub pads_begin: &'a [i64],
    pub pads_end: &'a [i64],
    pub auto_pad: PadType,
    pub output_padding: &'a [i64],
    /// Filters have a group axis in front.
    pub grouped: bool,
}

impl Backward<'_> {
    fn window(&self) -> Window<'_> {
        // Pads of `same_*` do not follow the forward rule.
        let auto_pad = if self.auto_pad == PadType::Explicit { PadType::Explicit } else { PadType::Valid };
        Window {
            strides: self.strides,
            dilations: self.dilations,
            pads_begin: self.pads_begin,
            pads_end: self.pads_end,
            auto_pad,
            rounding: Rounding::Floor,
        }
    }

    fn extra(&self, i: usize) -> i64 {
        self.output_padding.get(i).copied().unwrap_or(0)
    }

    /// The window on axis `i` of the output, which has size `out` when that was asked for.
    fn axis(&self, i: usize, n: i64, kernel: i64, out: Option<i64>) -> Axis {
        let axis = self.window().axis(i, n, kernel);
        let (Some(out), PadType::SameUpper | PadType::SameLower) = (out, self.auto_pad) else { return axis };
        let total = (spread(n, &axis).saturating_add(self.extra(i)).saturating_sub(out)).max(0);
        let (less, more) = (total / 2, total - total / 2);
        let upper = self.auto_pad == PadType::SameUpper;
        let (pad_begin, pad_end) = if upper { (more, less) } else { (less, more) };
        Axis { pad_begin, pad_end, ..axis }
    }

    fn out_dim(&self, i: usize, data: Dim, kernel: Dim) -> Dim {
        let size = |n: i64, k: i64| {
            let axis = self.window().axis(i, n, k);
            spread(n, &axis).saturating_add(self.extra(i)).saturating_sub(axis.pad_begin + axis.pad_end)
        };
        match (data.get(), kernel.get()) {
            (Some(n), Some(k)) => Dim::known(size(n, k)),
            _ => {
                let least = size(data.min().max(1), kernel.min().max(1));
                let most = data.max().zip(kernel.max()).map(|(n, k)| size(n, k).max(0));
                Dim::range(least.max(0), most)
            }
        }
    }

    pub(super) fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = numeric_type(cx)?;
        let lead = if self.grouped { 3 } else { 2 };
        check_ranks(cx, lead)?;
        let asked = self.asked_shape(cx)?;
        let from_asked = asked.as_ref().and_then(|a| a.rank());
        let Some(n) = n_spatial(cx, 1, lead, &self.window()).or(from_asked) else {
            cx.set(0, ty, PartialShape::dynamic());
            return Ok(());
        };
        self.window().check(n)?;
        check_list("output_padding", self.output_padding, 0, n)?;

        let channels = cx.dim(0, 1);
        let out_channels = if self.grouped {
            groups(cx, channels, cx.dim(1, 0), cx.dim(1, 1))?.mul(cx.dim(1, 2))
        } else {
            let wanted = cx.dim(1, 0);
            cx.require(channels.compatible(wanted), || {
                format!("data [{}] has {channels} channels, filters [{}] take {wanted}", cx.shape(0), cx.shape(1))
            })?;
            cx.dim(1, 1)
        };
        let mut dims = vec![cx.dim(0, 0), out_channels];
        match asked {
            Some(asked) => {
                cx.require(from_asked.is_none_or(|r| r == n), || {
                    format!("input 2 (`output_shape`) must have {n} values, one for each spatial axis, found [{asked}]")
                })?;
                dims.extend((0..n).map(|i| asked.dim(i).clamp_shape()));
            }
            None => {
                let (data, kernel) = (cx.shape(0), cx.shape(1));
                dims.extend((0..n).map(|i| self.out_dim(i, spatial(data, i, n), spatial(kernel, i, n))));
            }
        }
        cx.set(0, ty, PartialShape::new(dims));
        Ok(())
    }

    /// The spatial shape that input 2 asks for, as far as it is known; `None` without that input.
    fn asked_shape(&self, cx: &InferCx<'_>) -> Result<Option<PartialShape>> {
        if !cx.has(2) {
            return Ok(None);
        }
        cx.require_integer(2)?;
        cx.require_rank(2, &[1])?;
        let dims = cx.dims_value(2).or_else(|| cx.dim(2, 0).size().filter(|&n| n <= 3).map(|n| vec![Dim::ANY; n]));
        if let Some(d) = dims.iter().flatten().find(|d| d.max().is_some_and(|m| m < 0)) {
            return Err(cx.fail(format!("input 2 (`output_shape`) must not be negative, found {d}")));
        }
        Ok(Some(dims.map_or_else(PartialShape::dynamic, PartialShape::new)))
    }

    pub(super) fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        with_factor!(cx.ty(0), T => self.spread_filters::<T>(cx))
    }

    fn spread_filters<T: Factor>(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (data, filters) = (cx.get::<T>(0)?, cx.get::<T>(1)?);
        let out_shape = cx.out_shape(0)?;
        let (data_shape, filter_shape) = (cx.shape(0), cx.shape(1));
        let n_groups = if self.grouped { filter_shape[0] } else { 1 };
        let (small, large) = (&data_shape[2..], &out_shape[2..]);
        let kernel = &filter_shape[filter_shape.len() - small.len()..];
        let asked = |i: usize| cx.has(2).then(|| large[i] as i64);
        let axis = |i: usize| self.axis(i, small[i] as i64, kernel[i] as i64, asked(i));
        let grid = Grid::new(large, small, &(0..small.len()).map(axis).collect::<Vec<_>>());

        let mut out: Vec<T> = zeros(&out_shape)?;
        if out.is_empty() || data.is_empty() || n_groups == 0 {
            return cx.put(0, &out_shape, out);
        }
        let (in_channels, out_channels) = (data_shape[1] / n_groups, out_shape[1] / n_groups);
        let (rows, n_windows) = (out_channels * grid.kernel_len(), grid.n_windows());
        let group_in = in_channels * n_windows;
        let block = n_windows.min(COLUMNS);
        let by_row: Vec<Vec<T>> =
            filters.chunks_exact((in_channels * rows).max(1)).map(|f| transposed(f, in_channels, rows)).collect();
        let mut columns: Vec<T::Sum> = zeros(&[rows, block])?;
        let mut image: Vec<T::Sum> = zeros(&[out_channels, grid.image_len()])?;
        for (i, out) in out.chunks_exact_mut(image.len()).enumerate() {
            let Some(filters) = by_row.get(i % n_groups) else { break };
            let filters = Rows::new(filters, in_channels);
            image.fill(T::Sum::default());
            for start in (0..n_windows).step_by(block) {
                cx.check_cancelled()?;
                let end = n_windows.min(start + block);
                let columns = &mut columns[..rows * (end - start)];
                columns.fill(T::Sum::default());
                let data = Rows::new(&data[i * group_in + start..(i + 1) * group_in], n_windows);
                add_product(columns, filters, data, rows, in_channels, end - start);
                grid.fold(columns, &mut image, start, end);
            }
            for (y, &s) in out.iter_mut().zip(&image) {
                *y = T::narrow(s);
            }
        }
        cx.put(0, &out_shape, out)
    }
}

/// Size that `n` filters side by side reach, before pads.
fn spread(n: i64, axis: &Axis) -> i64 {
    (n.saturating_sub(1)).saturating_mul(axis.stride).saturating_add(axis.extent())
}
