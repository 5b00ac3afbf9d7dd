//! DeformableConvolution: a 2-D convolution whose taps are moved by learned offsets and read between pixels. Offsets come
//! as `dy, dx` pairs for each tap; each of the deformable groups moves its share of the input channels.

use super::forward::{n_spatial, numeric_type};
use super::unfold::Grid;
use super::window::{PadType, Rounding, Window};
use crate::linear::product::{COLUMNS, Rows, add_product, zeros};
use crate::cost;
use carafe_graph::{EvalCx, InferCx, Op, Result, Fact, Version, VersionCx};
use carafe_tensor::{Dim, PartialShape};

/// 2-D convolution of `[N, Ci, H, W]` with filters `[Co, Ci / group, kh, kw]` at moved taps, weighted by an optional mask.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 8, inputs = "data, offsets, filters, mask?", heavy, channel = "1")]
pub struct DeformableConvolution {
    /// Steps between windows, one for each spatial axis.
    pub strides: Vec<i64>,
    /// Padding before each axis.
    pub pads_begin: Vec<i64>,
    /// Padding after each axis.
    pub pads_end: Vec<i64>,
    /// Steps between the elements of a filter.
    pub dilations: Vec<i64>,
    /// Where the pads come from.
    #[attr(default = PadType::Explicit)]
    pub auto_pad: PadType,
    /// Groups of channels, as in GroupConvolution.
    #[attr(default = 1)]
    pub group: i64,
    /// Groups of input channels that share offsets.
    #[attr(default = 1)]
    pub deformable_group: i64,
    /// Read zeros beyond the border instead of the border itself.
    #[attr(default = false)]
    pub bilinear_interpolation_pad: bool,
}

/// As the current version, without mask and without padding of the samples.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "DeformableConvolution", since = 1, until = 7, inputs = "data, offsets, filters", heavy, channel = "1")]
pub struct DeformableConvolutionV1 {
    /// Steps between windows, one for each spatial axis.
    pub strides: Vec<i64>,
    /// Padding before each axis.
    pub pads_begin: Vec<i64>,
    /// Padding after each axis.
    pub pads_end: Vec<i64>,
    /// Steps between the elements of a filter.
    pub dilations: Vec<i64>,
    /// Where the pads come from.
    #[attr(default = PadType::Explicit)]
    pub auto_pad: PadType,
    /// Groups of channels, as in GroupConvolution.
    #[attr(default = 1)]
    pub group: i64,
    /// Groups of input channels that share offsets.
    #[attr(default = 1)]
    pub deformable_group: i64,
}

/// The attributes of both versions.
struct Deformable<'a> {
    window: Window<'a>,
    group: i64,
    deformable_group: i64,
    pad_samples: bool,
}

impl Op for DeformableConvolution {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        self.parts().infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        self.parts().eval(cx)
    }
    fn macs(&self, inputs: &[&Fact], outputs: &[&Fact]) -> Option<u64> {
        cost::convolution(outputs[0], inputs.get(2), 1)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if cx.n_inputs() == 3 && !self.bilinear_interpolation_pad { Version::of::<DeformableConvolutionV1>(self, cx) } else { None }
    }
}

impl Op for DeformableConvolutionV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        self.parts().infer(cx)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        self.parts().eval(cx)
    }
    fn macs(&self, inputs: &[&Fact], outputs: &[&Fact]) -> Option<u64> {
        cost::convolution(outputs[0], inputs.get(2), 1)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<DeformableConvolution>(self, cx)
    }
}

macro_rules! parts {
    ($name:ident, |$op:ident| $pad_samples:expr) => {
        impl $name {
            fn parts(&self) -> Deformable<'_> {
                let $op = self;
                Deformable {
                    window: Window {
                        strides: &self.strides,
                        dilations: &self.dilations,
                        pads_begin: &self.pads_begin,
                        pads_end: &self.pads_end,
                        auto_pad: self.auto_pad,
                        rounding: Rounding::Floor,
                    },
                    group: self.group,
                    deformable_group: self.deformable_group,
                    pad_samples: $pad_samples,
                }
            }
        }
    };
}
parts!(DeformableConvolution, |op| op.bilinear_interpolation_pad);
parts!(DeformableConvolutionV1, |_op| false);

impl Deformable<'_> {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        numeric_type(cx)?;
        let all: Vec<usize> = (0..cx.n_inputs()).collect();
        let ty = cx.same_type(&all)?;
        for input in all {
            cx.require_rank(input, &[4])?;
        }
        for (name, value) in [("group", self.group), ("deformable_group", self.deformable_group)] {
            cx.require((1..=i64::from(i32::MAX)).contains(&value), || {
                format!("attribute `{name}` must be at least 1, found {value}")
            })?;
        }
        if n_spatial(cx, 2, 2, &self.window).is_none() && cx.rank(1).is_none() {
            cx.set(0, ty, PartialShape::dynamic());
            return Ok(());
        }
        self.window.check(2)?;
        let (channels, filter_channels) = (cx.dim(0, 1), cx.dim(2, 1).mul(Dim::known(self.group)));
        cx.require(channels.compatible(filter_channels), || {
            format!("data [{}] has {channels} channels, filters take {filter_channels}", cx.shape(0))
        })?;
        let divides = |dim: Dim, by: i64| dim.get().is_none_or(|n| n % by == 0);
        cx.require(divides(channels, self.group) && divides(cx.dim(2, 0), self.group), || {
            format!("channels of [{}] and [{}] must divide into {} groups", cx.shape(0), cx.shape(2), self.group)
        })?;
        cx.require(divides(channels, self.deformable_group), || {
            format!("{channels} channels must divide into {} deformable groups", self.deformable_group)
        })?;

        let mut dims = vec![cx.dim(0, 0), cx.dim(2, 0)];
        dims.extend(self.window.all_windows(cx.shape(0), cx.shape(2), 2)?);
        let taps = cx.dim(2, 2).mul(cx.dim(2, 3)).mul(Dim::known(self.deformable_group));
        for (input, per_tap) in [(1, 2), (3, 1)] {
            if !cx.has(input) {
                continue;
            }
            let wanted = [dims[0], taps.mul(Dim::known(per_tap)), dims[2], dims[3]];
            let wanted = PartialShape::new(wanted);
            let both = wanted.merge(cx.shape(input)).ok_or_else(|| {
                cx.fail(format!("{} must have shape [{wanted}], found [{}]", cx.port_name(input), cx.shape(input)))
            })?;
            (dims[0], dims[2], dims[3]) = (both.dim(0), both.dim(2), both.dim(3));
        }
        cx.set(0, ty, PartialShape::new(dims));
        Ok(())
    }

    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (data, offsets, filters) = (cx.get::<f64>(0)?, cx.get::<f64>(1)?, cx.get::<f64>(2)?);
        let mask = if cx.has(3) { Some(cx.get::<f64>(3)?) } else { None };
        let out_shape = cx.out_shape(0)?;
        let (image, kernel) = (&cx.shape(0)[2..], &cx.shape(2)[2..]);
        let axes = [0, 1].map(|i| self.window.axis(i, image[i] as i64, kernel[i] as i64));
        let grid = Grid::new(image, &out_shape[2..], &axes);

        let mut out: Vec<f64> = zeros(&out_shape)?;
        if out.is_empty() || data.is_empty() {
            drop((data, offsets, filters, mask));
            return cx.put(0, &out_shape, out);
        }
        let (n_groups, n_moves) = (self.group as usize, self.deformable_group as usize);
        let (in_channels, out_channels) = (cx.shape(0)[1] / n_groups, out_shape[1] / n_groups);
        let per_move = cx.shape(0)[1] / n_moves;
        let (taps, n_windows) = (grid.kernel_len(), grid.n_windows());
        let products = in_channels * taps;
        let block = n_windows.min(COLUMNS);
        let mut columns: Vec<f64> = zeros(&[products, block])?;
        let mut sums: Vec<f64> = zeros(&[out_channels, block])?;
        for (i, out) in out.chunks_exact_mut(out_channels * n_windows).enumerate() {
            let (batch, group) = (i / n_groups, i % n_groups);
            let filters = Rows::new(&filters[group * out_channels * products..], products);
            for start in (0..n_windows).step_by(block) {
                let end = n_windows.min(start + block);
                let width = end - start;
                let columns = &mut columns[..products * width];
                for (row, column) in columns.chunks_exact_mut(width).enumerate() {
                    let (channel, tap) = (group * in_channels + row / taps, row % taps);
                    let image = &data[(batch * n_groups * in_channels + channel) * grid.image_len()..];
                    // Planes of offsets come in pairs for each tap of each deformable group.
                    let plane = (batch * n_moves + channel / per_move) * taps + tap;
                    let moved = [2 * plane, 2 * plane + 1].map(|p| &offsets[p * n_windows..][..n_windows]);
                    for (x, window) in column.iter_mut().zip(start..end) {
                        let weight = mask.as_ref().map_or(1.0, |m| m[plane * n_windows + window]);
                        let (y_at, x_at) = tap_position(&grid, window, tap);
                        *x = weight * self.sample(image, &grid, y_at + moved[0][window], x_at + moved[1][window]);
                    }
                }
                let sums = &mut sums[..out_channels * width];
                sums.fill(0.0);
                add_product(sums, filters, Rows::new(columns, width), out_channels, products, width);
                for (row, sums) in out.chunks_exact_mut(n_windows).zip(sums.chunks_exact(width)) {
                    row[start..end].copy_from_slice(sums);
                }
            }
        }
        drop((data, offsets, filters, mask));
        cx.put(0, &out_shape, out)
    }

    /// The image between pixels. Without padding of samples a point outside counts nothing and the last pixel reaches to
    /// the border; with it the image fades into zeros within one pixel.
    fn sample(&self, image: &[f64], grid: &Grid, y: f64, x: f64) -> f64 {
        let [_, height, width] = grid.image;
        let low = if self.pad_samples { -1.0 } else { 0.0 };
        let outside = |at: f64, n: usize| !(at < n as f64 && (at > low || (at == low && !self.pad_samples)));
        if outside(y, height) || outside(x, width) {
            return 0.0;
        }
        let pixel = |y: i64, x: i64| {
            let inside = (0..height as i64).contains(&y) && (0..width as i64).contains(&x);
            if inside { image[y as usize * width + x as usize] } else { 0.0 }
        };
        let (y0, x0) = (y.floor() as i64, x.floor() as i64);
        let next = |at: i64, n: usize| if self.pad_samples { at + 1 } else { (at + 1).min(n as i64 - 1) };
        let (y1, x1) = (next(y0, height), next(x0, width));
        let (fy, fx) = (y - y0 as f64, x - x0 as f64);
        let upper = (1.0 - fx) * pixel(y0, x0) + fx * pixel(y0, x1);
        let lower = (1.0 - fx) * pixel(y1, x0) + fx * pixel(y1, x1);
        (1.0 - fy) * upper + fy * lower
    }
}

/// Where a tap of a window stands before it is moved; may lie in the padding.
fn tap_position(grid: &Grid, window: usize, tap: usize) -> (f64, f64) {
    let width = grid.windows[2];
    let kernel_width = grid.axes[2].kernel as usize;
    let at = |axis: usize, w: usize, k: usize| {
        let a = &grid.axes[axis];
        (w as i64 * a.stride + k as i64 * a.dilation - a.pad_begin) as f64
    };
    (at(1, window / width, tap / kernel_width), at(2, window % width, tap % kernel_width))
}
