//! AvgPool: mean of every window. The divisor is the surprise: elements outside of the data count only when pads are
//! not excluded and at least one pad is not zero, and then even those past the padding do.

use super::pool::{Pool, each_window, refuse_ceil_torch, same_dilations};
use crate::convolution::window::{PadType, Rounding, Window};
use crate::linear::product::zeros;
use carafe_graph::{EvalCx, InferCx, Op, Result, Version, VersionCx};

/// Mean of every window, which may have holes.
#[derive(Op, Clone, Debug)]
#[op(since = 16, keeps_zero, rows = "0", heavy)]
pub struct AvgPool {
    /// Steps between the elements of a window; none means 1.
    #[attr(default = Vec::new())]
    pub dilations: Vec<i64>,
    /// Steps between windows, one for each spatial axis.
    pub strides: Vec<i64>,
    /// Padding before each axis.
    pub pads_begin: Vec<i64>,
    /// Padding after each axis.
    pub pads_end: Vec<i64>,
    /// Size of the window.
    pub kernel: Vec<i64>,
    /// Divide by the number of elements that are data.
    #[attr(name = "exclude-pad")]
    pub exclude_pad: bool,
    /// Where the pads come from.
    #[attr(default = PadType::Explicit)]
    pub auto_pad: PadType,
    /// What happens to a last window that does not fit.
    #[attr(default = Rounding::Floor)]
    pub rounding_type: Rounding,
}

macro_rules! older_avg_pool {
    ($(#[$m:meta])* $name:ident) => {
        $(#[$m])*
        pub struct $name {
            /// Steps between windows, one for each spatial axis.
            pub strides: Vec<i64>,
            /// Padding before each axis.
            pub pads_begin: Vec<i64>,
            /// Padding after each axis.
            pub pads_end: Vec<i64>,
            /// Size of the window.
            pub kernel: Vec<i64>,
            /// Divide by the number of elements that are data.
            #[attr(name = "exclude-pad")]
            pub exclude_pad: bool,
            /// Where the pads come from.
            #[attr(default = PadType::Explicit)]
            pub auto_pad: PadType,
            /// What happens to a last window that does not fit.
            #[attr(default = Rounding::Floor)]
            pub rounding_type: Rounding,
        }

        impl $name {
            fn pool(&self) -> Pool<'_> {
                Pool {
                    kernel: &self.kernel,
                    window: Window {
                        strides: &self.strides,
                        dilations: &[],
                        pads_begin: &self.pads_begin,
                        pads_end: &self.pads_end,
                        auto_pad: self.auto_pad,
                        rounding: self.rounding_type,
                    },
                }
            }
        }
    };
}

older_avg_pool! {
    /// Mean of every window; knows `ceil_torch`, no dilations.
    #[derive(Op, Clone, Debug, PartialEq)]
    #[op(name = "AvgPool", since = 14, until = 15, keeps_zero, rows = "0", heavy)]
    AvgPoolV14
}

older_avg_pool! {
    /// Mean of every window.
    #[derive(Op, Clone, Debug, PartialEq)]
    #[op(name = "AvgPool", since = 1, until = 13, keeps_zero, rows = "0", heavy)]
    AvgPoolV1
}

impl PartialEq for AvgPool {
    fn eq(&self, other: &AvgPool) -> bool {
        let [a, b] = [self, other];
        same_dilations(&a.dilations, &b.dilations)
            && (&a.strides, &a.pads_begin, &a.pads_end) == (&b.strides, &b.pads_begin, &b.pads_end)
            && (&a.kernel, a.exclude_pad, a.auto_pad) == (&b.kernel, b.exclude_pad, b.auto_pad)
            && a.rounding_type == b.rounding_type
    }
}

impl AvgPool {
    fn pool(&self) -> Pool<'_> {
        Pool {
            kernel: &self.kernel,
            window: Window {
                strides: &self.strides,
                dilations: &self.dilations,
                pads_begin: &self.pads_begin,
                pads_end: &self.pads_end,
                auto_pad: self.auto_pad,
                rounding: self.rounding_type,
            },
        }
    }
}

impl Op for AvgPool {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.pool())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.pool(), self.exclude_pad)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if self.dilations.iter().all(|&d| d == 1) { Version::of::<AvgPoolV14>(self, cx) } else { None }
    }
}

impl Op for AvgPoolV14 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer(cx, self.pool())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.pool(), self.exclude_pad)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        let op = AvgPool {
            dilations: vec![1; self.kernel.len()],
            strides: self.strides.clone(),
            pads_begin: self.pads_begin.clone(),
            pads_end: self.pads_end.clone(),
            kernel: self.kernel.clone(),
            exclude_pad: self.exclude_pad,
            auto_pad: self.auto_pad,
            rounding_type: self.rounding_type,
        };
        Version::same(op, cx)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if self.rounding_type != Rounding::CeilTorch { Version::of::<AvgPoolV1>(self, cx) } else { None }
    }
}

impl Op for AvgPoolV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        refuse_ceil_torch(cx, self.rounding_type)?;
        infer(cx, self.pool())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.pool(), self.exclude_pad)
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<AvgPoolV14>(self, cx)
    }
}

fn infer(cx: &mut InferCx<'_>, pool: Pool<'_>) -> Result<()> {
    let shape = pool.shape(cx)?;
    cx.set(0, cx.ty(0), shape);
    Ok(())
}

fn eval(cx: &mut EvalCx<'_>, pool: Pool<'_>, exclude_pad: bool) -> Result<()> {
    let grid = pool.grid(cx)?;
    let out_shape = cx.out_shape(0)?;
    let padded = grid.axes.iter().any(|a| a.pad_begin != 0 || a.pad_end != 0);
    let volume = (!exclude_pad && padded).then(|| pool.kernel.iter().map(|&k| k as f64).product::<f64>());
    let ty = cx.ty(0);
    let data = cx.get::<f64>(0)?;
    let mut out: Vec<f64> = zeros(&out_shape)?;
    if !data.is_empty() {
        let mut means = out.iter_mut();
        for image in data.chunks_exact(grid.image_len()) {
            each_window(&grid, &mut |positions| {
                let (sum, count) = positions.fold((0.0, 0.0), |(sum, n), at| (sum + image[at], n + 1.0));
                let divisor = volume.unwrap_or(count);
                if let Some(mean) = means.next() {
                    *mean = if divisor == 0.0 { 0.0 } else { sum / divisor };
                }
            });
        }
    }
    drop(data);
    if ty.is_integer() && ty.bits() <= 8 {
        out.iter_mut().for_each(|y| *y = y.round_ties_even());
    }
    cx.put(0, &out_shape, out)
}
