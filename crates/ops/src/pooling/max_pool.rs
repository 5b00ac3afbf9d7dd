//! MaxPool: largest element of every window. Padding never wins, so a window without data gives the lowest number of the
//! type. Indices count over the flattened dimensions from `axis` on, in the data without pads.

use super::pool::{Pool, check_index_type, each_window, refuse_ceil_torch, same_dilations};
use crate::convolution::window::{PadType, Rounding, Window};
use crate::linear::product::zeros;
use carafe_graph::{EvalCx, InferCx, Op, Result, normalize_axis, RowsCx, Version, VersionCx};
use carafe_tensor::{ElementType, Number};

macro_rules! indexed_max_pool {
    ($(#[$m:meta])* $name:ident) => {
        $(#[$m])*
        pub struct $name {
            /// Steps between windows, one for each spatial axis.
            pub strides: Vec<i64>,
            /// Steps between the elements of a window; none means 1.
            #[attr(default = Vec::new())]
            pub dilations: Vec<i64>,
            /// Padding before each axis.
            pub pads_begin: Vec<i64>,
            /// Padding after each axis.
            pub pads_end: Vec<i64>,
            /// Size of the window.
            pub kernel: Vec<i64>,
            /// What happens to a last window that does not fit.
            #[attr(default = Rounding::Floor)]
            pub rounding_type: Rounding,
            /// Where the pads come from.
            #[attr(default = PadType::Explicit)]
            pub auto_pad: PadType,
            /// Type of the indices, i64 or i32.
            #[attr(default = ElementType::I64)]
            pub index_element_type: ElementType,
            /// First of the dimensions that an index counts over.
            #[attr(default = 0)]
            pub axis: i64,
        }

        impl PartialEq for $name {
            fn eq(&self, other: &$name) -> bool {
                let [a, b] = [self, other];
                same_dilations(&a.dilations, &b.dilations)
                    && (&a.strides, &a.pads_begin, &a.pads_end) == (&b.strides, &b.pads_begin, &b.pads_end)
                    && (&a.kernel, a.rounding_type, a.auto_pad) == (&b.kernel, b.rounding_type, b.auto_pad)
                    && (a.index_element_type, a.axis) == (b.index_element_type, b.axis)
            }
        }

        impl $name {
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
    };
}

indexed_max_pool! {
    /// Largest element of every window, and where it stood.
    #[derive(Op, Clone, Debug)]
    #[op(since = 14, outputs = "values, indices", heavy)]
    MaxPool
}

indexed_max_pool! {
    /// Largest element of every window, and where it stood; does not know `ceil_torch`.
    #[derive(Op, Clone, Debug)]
    #[op(name = "MaxPool", since = 8, until = 13, outputs = "values, indices", heavy)]
    MaxPoolV8
}

/// Largest element of every window.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(name = "MaxPool", since = 1, until = 7, heavy)]
pub struct MaxPoolV1 {
    /// Steps between windows, one for each spatial axis.
    pub strides: Vec<i64>,
    /// Padding before each axis.
    pub pads_begin: Vec<i64>,
    /// Padding after each axis.
    pub pads_end: Vec<i64>,
    /// Size of the window.
    pub kernel: Vec<i64>,
    /// What happens to a last window that does not fit.
    #[attr(default = Rounding::Floor)]
    pub rounding_type: Rounding,
    /// Where the pads come from.
    #[attr(default = PadType::Explicit)]
    pub auto_pad: PadType,
}

impl MaxPoolV1 {
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

impl Op for MaxPool {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        infer_indexed(cx, self.pool(), self.index_element_type, self.axis)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.pool(), Some(self.axis))
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0])?;
        // Positions of the maxima count over all rows.
        if cx.only_first_output() { Ok(()) } else { Err("its positions count over all rows".into()) }
    }
    // A window that holds nothing answers with the least number of the type.
    fn keeps_zero(&self) -> bool {
        !self.pool().may_be_empty()
    }
    fn needs_own_type(&self) -> bool {
        self.pool().may_be_empty()
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if self.rounding_type != Rounding::CeilTorch { Version::of::<MaxPoolV8>(self, cx) } else { None }
    }
}

impl Op for MaxPoolV8 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        refuse_ceil_torch(cx, self.rounding_type)?;
        infer_indexed(cx, self.pool(), self.index_element_type, self.axis)
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.pool(), Some(self.axis))
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0])?;
        // Positions of the maxima count over all rows.
        if cx.only_first_output() { Ok(()) } else { Err("its positions count over all rows".into()) }
    }
    // A window that holds nothing answers with the least number of the type.
    fn keeps_zero(&self) -> bool {
        !self.pool().may_be_empty()
    }
    fn needs_own_type(&self) -> bool {
        self.pool().may_be_empty()
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        Version::of::<MaxPool>(self, cx)
    }
    fn downgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        if self.dilations.iter().all(|&d| d == 1) && cx.only_outputs(1) { Version::of::<MaxPoolV1>(self, cx) } else { None }
    }
}

impl Op for MaxPoolV1 {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        refuse_ceil_torch(cx, self.rounding_type)?;
        let shape = self.pool().shape(cx)?;
        cx.set(0, cx.ty(0), shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        eval(cx, self.pool(), None)
    }
    fn keeps_rows(&self, cx: &RowsCx<'_>) -> Result<(), String> {
        cx.rows_at(&[0])
    }
    // A window that holds nothing answers with the least number of the type.
    fn keeps_zero(&self) -> bool {
        !self.pool().may_be_empty()
    }
    fn needs_own_type(&self) -> bool {
        self.pool().may_be_empty()
    }
    fn upgrade(&self, cx: &VersionCx<'_>) -> Option<Version> {
        let op = MaxPoolV8 {
            strides: self.strides.clone(),
            dilations: vec![1; self.kernel.len()],
            pads_begin: self.pads_begin.clone(),
            pads_end: self.pads_end.clone(),
            kernel: self.kernel.clone(),
            rounding_type: self.rounding_type,
            auto_pad: self.auto_pad,
            index_element_type: ElementType::I64,
            axis: 0,
        };
        Version::same(op, cx)
    }
}

fn infer_indexed(cx: &mut InferCx<'_>, pool: Pool<'_>, index: ElementType, axis: i64) -> Result<()> {
    check_index_type(cx, index)?;
    let shape = pool.shape(cx)?;
    cx.axis(axis, pool.kernel.len() + 2)?;
    cx.set(0, cx.ty(0), shape.clone());
    cx.set(1, index, shape);
    Ok(())
}

fn eval(cx: &mut EvalCx<'_>, pool: Pool<'_>, axis: Option<i64>) -> Result<()> {
    with_number!(cx.ty(0), T => {
        let (values, indices) = largest::<T>(cx, pool, axis.unwrap_or(0))?;
        let out_shape = cx.out_shape(0)?;
        cx.put(0, &out_shape, values)?;
        if axis.is_some() {
            cx.put(1, &out_shape, indices)?;
        }
        Ok(())
    })
}

fn largest<T: Number>(cx: &EvalCx<'_>, pool: Pool<'_>, axis: i64) -> Result<(Vec<T>, Vec<i64>)> {
    let (shape, out_shape) = (cx.shape(0), cx.out_shape(0)?);
    let grid = pool.grid(cx)?;
    let counted: usize = shape[normalize_axis(axis, shape.len())?..].iter().product();
    let lowest = lowest_of::<T>(cx.ty(0));
    let mut values: Vec<T> = zeros(&out_shape)?;
    let mut indices: Vec<i64> = zeros(&out_shape)?;
    if cx.input(0).is_empty() {
        values.fill(lowest);
        return Ok((values, indices));
    }
    let data = cx.get::<T>(0)?;
    let mut out = values.iter_mut().zip(&mut indices);
    for (i, image) in data.chunks_exact(grid.image_len()).enumerate() {
        each_window(&grid, &mut |positions| {
            let (mut best, mut best_at) = (lowest, 0);
            for at in positions {
                if image[at] > best {
                    (best, best_at) = (image[at], at);
                }
            }
            if let Some((value, index)) = out.next() {
                *value = best;
                *index = ((i * grid.image_len() + best_at) % counted) as i64;
            }
        });
    }
    Ok((values, indices))
}

/// The lowest number of the stored type, which may be narrower than the type computed in.
fn lowest_of<T: Number>(ty: ElementType) -> T {
    match ty {
        ElementType::F16 => T::from_f64(-65504.0),
        ElementType::Bf16 => T::from_f64(-3.3895313892515355e38),
        ElementType::I2 => T::from_i64(-2),
        ElementType::I4 => T::from_i64(-8),
        _ => T::lowest(),
    }
}
