//! From YUV planes to pixels `[batch, height, width, 3]`. The planes come as separate tensors or as one, `[batch, height *
//! 3 / 2, width, 1]`, whose chroma rows follow the luma rows. Every chroma value serves a square of four pixels.

use crate::buffer::filled;
use carafe_graph::{EvalCx, InferCx, Result};
use carafe_tensor::{Dim, ElementType, PartialShape};

/// How the chroma lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Layout {
    /// One plane of (U, V) pairs.
    Nv12,
    /// A plane of U, then a plane of V.
    I420,
}

/// Which colour comes first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Order {
    Rgb,
    Bgr,
}

pub(super) fn infer(cx: &mut InferCx<'_>, layout: Layout) -> Result<()> {
    let (planes, chroma_channels) = match layout {
        Layout::Nv12 => (2, 2),
        Layout::I420 => (3, 1),
    };
    let n = cx.n_inputs();
    cx.require(n == 1 || n == planes, || format!("takes 1 or {planes} inputs, found {n}"))?;
    let inputs: Vec<usize> = (0..n).collect();
    let ty = cx.same_type(&inputs)?;
    require_pixel_type(cx, ty)?;
    for i in inputs {
        let channels = if i == 0 { 1 } else { chroma_channels };
        cx.require_rank(i, &[4])?;
        cx.require(cx.dim(i, 3).contains(channels), || {
            format!("{} must have {channels} channels, found [{}]", cx.port_name(i), cx.shape(i))
        })?;
    }
    let [mut batch, mut height, mut width] = [0, 1, 2].map(|axis| cx.dim(0, axis));
    if n == 1 {
        let doubled = height.mul(Dim::known(2));
        cx.require(doubled.get().is_none_or(|d| d % 3 == 0), || {
            format!("the height must be a multiple of 3 (luma and half as many chroma rows), found {height}")
        })?;
        let (low, high) = (doubled.ceil_div(3).min(), doubled.floor_div(3).max());
        height = Dim::range(low, high);
    }
    for i in 1..n {
        let two = Dim::known(2);
        for (axis, dim, found) in [
            (0, &mut batch, cx.dim(i, 0)),
            (1, &mut height, cx.dim(i, 1).mul(two)),
            (2, &mut width, cx.dim(i, 2).mul(two)),
        ] {
            *dim = dim.merge(found).ok_or_else(|| {
                cx.fail(format!("planes [{}] and [{}] do not fit on axis {axis}", cx.shape(0), cx.shape(i)))
            })?;
        }
    }
    require_even(cx, height, width)?;
    cx.set(0, ty, PartialShape::new([batch, height, width, Dim::known(3)]));
    Ok(())
}

/// u8 or a float.
pub(super) fn require_pixel_type(cx: &InferCx<'_>, ty: ElementType) -> Result<()> {
    cx.require(ty.is_dynamic() || ty.is_float() || ty == ElementType::U8, || {
        format!("pixels must be u8 or floats, found {ty}")
    })
}

pub(super) fn require_even(cx: &InferCx<'_>, height: Dim, width: Dim) -> Result<()> {
    for (name, dim) in [("height", height), ("width", width)] {
        cx.require(dim.get().is_none_or(|n| n % 2 == 0), || format!("the image {name} must be even, found {dim}"))?;
    }
    Ok(())
}

pub(super) fn eval(cx: &mut EvalCx<'_>, layout: Layout, order: Order) -> Result<()> {
    let ty = cx.ty(0);
    let single = cx.n_inputs() == 1;
    let [batch, rows, width] = [0, 1, 2].map(|axis| cx.shape(0)[axis]);
    let height = if single { rows * 2 / 3 } else { rows };
    let shape = [batch, height, width, 3];
    let mut out = filled(&shape, 0f32)?;
    let planes = (0..cx.n_inputs()).map(|i| cx.get::<f32>(i)).collect::<Result<Vec<_>>>()?;
    let (luma, chroma) = (height * width, height * width / 4);
    // Plane, offset, size of one image in that plane, and step from one value to the next.
    let (y, u, v) = match (layout, single) {
        (Layout::Nv12, true) => ((0, 0, luma + 2 * chroma, 1), (0, luma, luma + 2 * chroma, 2), (0, luma + 1, luma + 2 * chroma, 2)),
        (Layout::Nv12, false) => ((0, 0, luma, 1), (1, 0, 2 * chroma, 2), (1, 1, 2 * chroma, 2)),
        (Layout::I420, true) => ((0, 0, luma + 2 * chroma, 1), (0, luma, luma + 2 * chroma, 1), (0, luma + chroma, luma + 2 * chroma, 1)),
        (Layout::I420, false) => ((0, 0, luma, 1), (1, 0, chroma, 1), (2, 0, chroma, 1)),
    };
    let at = |(plane, offset, image, step): (usize, usize, usize, usize), n: usize, i: usize| {
        planes[plane][n * image + offset + i * step]
    };
    for (pixel, slot) in out.chunks_exact_mut(3).enumerate() {
        let (n, i) = (pixel / luma, pixel % luma);
        let (row, column) = (i / width, i % width);
        let square = row / 2 * (width / 2) + column / 2;
        let rgb = to_rgb(at(y, n, i), at(u, n, square), at(v, n, square)).map(|c| {
            let c = if ty == ElementType::U8 { c.round() } else { c };
            c.clamp(0.0, 255.0)
        });
        slot.copy_from_slice(&rgb);
        if order == Order::Bgr {
            slot.reverse();
        }
    }
    drop(planes);
    cx.put(0, &shape, out)
}

fn to_rgb(y: f32, u: f32, v: f32) -> [f32; 3] {
    let (c, d, e) = (y - 16.0, u - 128.0, v - 128.0);
    [1.164 * c + 1.596 * e, 1.164 * c - 0.391 * d - 0.813 * e, 1.164 * c + 2.018 * d]
}
