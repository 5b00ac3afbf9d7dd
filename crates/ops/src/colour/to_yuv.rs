//! From pixels to NV12. Chroma is computed for each of four pixels, rounded for bytes, and only then averaged and rounded
//! again.

use super::yuv::{Order, require_even, require_pixel_type};
use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

pub(super) fn infer(cx: &mut InferCx<'_>, single_plane: bool) -> Result<()> {
    let ty = cx.ty(0);
    require_pixel_type(cx, ty)?;
    cx.require_rank(0, &[4])?;
    cx.require(cx.dim(0, 3).contains(3), || format!("pixels must have 3 channels, found [{}]", cx.shape(0)))?;
    let [batch, height, width] = [0, 1, 2].map(|axis| cx.dim(0, axis));
    require_even(cx, height, width)?;
    if single_plane {
        let rows = height.mul(Dim::known(3)).floor_div(2);
        cx.set(0, ty, PartialShape::new([batch, rows, width, Dim::known(1)]));
    } else {
        cx.set(0, ty, PartialShape::new([batch, height, width, Dim::known(1)]));
        cx.set(1, ty, PartialShape::new([batch, height.floor_div(2), width.floor_div(2), Dim::known(2)]));
    }
    Ok(())
}

pub(super) fn eval(cx: &mut EvalCx<'_>, single_plane: bool, order: Order) -> Result<()> {
    let ty = cx.ty(0);
    let [batch, height, width] = [0, 1, 2].map(|axis| cx.shape(0)[axis]);
    let luma = height * width;
    let rounded = |c: f64| if ty == ElementType::U8 { c.round() } else { c };
    let mut y_plane = filled(&[batch, height, width], 0f64)?;
    let mut uv_plane = filled(&[batch, height / 2, width / 2, 2], 0f64)?;
    let pixels = cx.get::<f64>(0)?;
    for (i, (pixel, y)) in pixels.as_chunks::<3>().0.iter().zip(&mut y_plane).enumerate() {
        let [r, g, b] = match order {
            Order::Rgb => *pixel,
            Order::Bgr => [pixel[2], pixel[1], pixel[0]],
        };
        *y = rounded(0.257 * r + 0.504 * g + 0.098 * b + 16.0).clamp(0.0, 255.0);
        let u = rounded(-0.148 * r - 0.291 * g + 0.439 * b + 128.0).clamp(0.0, 255.0);
        let v = rounded(0.439 * r - 0.368 * g - 0.071 * b + 128.0).clamp(0.0, 255.0);
        let (n, row, column) = (i / luma, i % luma / width, i % width);
        let square = 2 * ((n * height / 2 + row / 2) * (width / 2) + column / 2);
        uv_plane[square] += u / 4.0;
        uv_plane[square + 1] += v / 4.0;
    }
    drop(pixels);
    uv_plane.iter_mut().for_each(|c| *c = rounded(*c));
    if single_plane {
        let mut joined = Vec::with_capacity(y_plane.len() + uv_plane.len());
        for n in 0..if luma == 0 { 0 } else { batch } {
            joined.extend_from_slice(&y_plane[n * luma..(n + 1) * luma]);
            joined.extend_from_slice(&uv_plane[n * luma / 2..(n + 1) * luma / 2]);
        }
        cx.put(0, &[batch, height * 3 / 2, width, 1], joined)
    } else {
        cx.put(0, &[batch, height, width, 1], y_plane)?;
        cx.put(1, &[batch, height / 2, width / 2, 2], uv_plane)
    }
}
