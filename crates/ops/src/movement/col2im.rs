//! Col2Im: adds the columns of an unfolded image back into it. Several columns may meet in one pixel; pixels no column
//! reaches are zero.

use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, Number, PartialShape};

/// `[N, C * KH * KW, L]` columns become an image `[N, C, H, W]`; without a batch both lose the first axis.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(since = 15, inputs = "data, output_size, kernel_size")]
pub struct Col2Im {
    /// Steps between kernel positions.
    #[attr(default = vec![1, 1])]
    pub strides: Vec<i64>,
    /// Steps within the kernel.
    #[attr(default = vec![1, 1])]
    pub dilations: Vec<i64>,
    /// Rows and columns the image was padded by at the begin.
    #[attr(default = vec![0, 0])]
    pub pads_begin: Vec<i64>,
    /// Rows and columns the image was padded by at the end.
    #[attr(default = vec![0, 0])]
    pub pads_end: Vec<i64>,
}

/// Attribute values above this are refused, so that products stay in range.
const MAX_STEP: i64 = 1 << 30;

impl Op for Col2Im {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        for (name, list, least) in [
            ("strides", &self.strides, 1),
            ("dilations", &self.dilations, 1),
            ("pads_begin", &self.pads_begin, 0),
            ("pads_end", &self.pads_end, 0),
        ] {
            let fits = list.len() == 2 && list.iter().all(|&n| (least..=MAX_STEP).contains(&n));
            cx.require(fits, || format!("attribute `{name}` must hold two numbers from {least} on, found {list:?}"))?;
        }
        cx.require_rank(0, &[2, 3])?;
        for i in [1, 2] {
            cx.require_integer(i)?;
            cx.require_rank(i, &[1])?;
            let n = cx.dim(i, 0);
            cx.require(n.contains(2), || format!("{} must have 2 entries, found {n}", cx.port_name(i)))?;
        }
        cx.same_type(&[1, 2])?;
        let Some(rank) = cx.rank(0) else {
            cx.set(0, cx.ty(0), PartialShape::dynamic());
            return Ok(());
        };
        let size = pair(cx, 1)?;
        let kernel = pair(cx, 2)?;
        let rows = cx.dim(0, rank - 2);
        let channels = match kernel[0].mul(kernel[1]).get() {
            Some(0) => return Err(cx.fail("kernel_size must be positive, found 0")),
            Some(volume) => super::depth_to_space::divide(cx, rows, volume, "rows of columns")?,
            None => Dim::range(0, rows.max()),
        };
        if let Some(columns) = self.columns(size, kernel) {
            let found = cx.dim(0, rank - 1);
            cx.require(found.contains(columns), || format!("data must have {columns} columns, found {found}"))?;
        }
        let mut out = cx.shape(0).dims().map_or(vec![], |d| d[..rank - 2].to_vec());
        out.extend([channels, size[0], size[1]]);
        cx.set(0, cx.ty(0), PartialShape::new(out));
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let out = cx.out_shape(0)?;
        let kernel: Vec<usize> = cx.ints(2)?.iter().map(|&k| usize::try_from(k).unwrap_or(0)).collect();
        if cx.ty(0).is_float() {
            let image = self.fold::<f64>(&cx.get(0)?, &out, &kernel)?;
            cx.put(0, &out, image)
        } else {
            let image = self.fold::<i64>(&cx.get(0)?, &out, &kernel)?;
            cx.put(0, &out, image)
        }
    }
}

impl Col2Im {
    // Kernel positions along one axis of the image.
    fn positions(&self, i: usize, size: i64, kernel: i64) -> Option<i64> {
        let extent = kernel.checked_sub(1)?.checked_mul(self.dilations[i])?.checked_add(1)?;
        let padded = size.checked_add(self.pads_begin[i] + self.pads_end[i])?;
        Some(((padded - extent).div_euclid(self.strides[i]) + 1).max(0))
    }

    fn columns(&self, size: [Dim; 2], kernel: [Dim; 2]) -> Option<i64> {
        let rows = self.positions(0, size[0].get()?, kernel[0].get()?)?;
        rows.checked_mul(self.positions(1, size[1].get()?, kernel[1].get()?)?)
    }

    fn fold<T: Number>(&self, data: &[T], out: &[usize], kernel: &[usize]) -> Result<Vec<T>> {
        let (planes, h, w) = (out[..out.len() - 2].iter().product::<usize>(), out[out.len() - 2], out[out.len() - 1]);
        let mut image = filled(out, T::zero())?;
        let positions = |i: usize, n: usize| self.positions(i, n as i64, kernel[i] as i64).unwrap_or(0) as usize;
        let (rows, columns) = (positions(0, h), positions(1, w));
        // Place in the image of kernel element `k` at a position; outside of it the value is dropped.
        let position = |i: usize, position: usize, k: usize, n: usize| {
            let p = position as i64 * self.strides[i] - self.pads_begin[i] + k as i64 * self.dilations[i];
            usize::try_from(p).ok().filter(|&p| p < n)
        };
        let mut values = data.iter();
        for plane in 0..planes {
            for ky in 0..kernel[0] {
                for kx in 0..kernel[1] {
                    for row in 0..rows {
                        for (column, &v) in (0..columns).zip(values.by_ref()) {
                            if let (Some(y), Some(x)) = (position(0, row, ky, h), position(1, column, kx, w)) {
                                let pixel = &mut image[(plane * h + y) * w + x];
                                *pixel = pixel.wrapping_add(v);
                            }
                        }
                    }
                }
            }
        }
        Ok(image)
    }
}

fn pair(cx: &InferCx<'_>, input: usize) -> Result<[Dim; 2]> {
    let Some(values) = cx.dims_value(input) else {
        return Ok([Dim::ANY; 2]);
    };
    match values[..] {
        [a, b] if [a, b].iter().all(|d| d.max().is_none_or(|m| m >= 0)) => Ok([a.clamp_shape(), b.clamp_shape()]),
        _ => Err(cx.fail(format!("{} must hold two sizes, found {values:?}", cx.port_name(input)))),
    }
}
