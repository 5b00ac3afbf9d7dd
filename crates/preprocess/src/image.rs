//! Bytes of picture files into image-shaped inputs: decoded, made grey or RGB as the input has channels, resized bilinearly
//! to its height and width, values 0..255.

use crate::layout::Layout;
use carafe_device::Port;
use carafe_graph::{Error, Result};
use carafe_tensor::memory::ensure_memory;
use carafe_tensor::{Tensor, strides};

/// Whether the bytes are a PNG or JPEG file.
pub fn is_image(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n") || bytes.starts_with(b"\xff\xd8\xff")
}

/// Decoded pixels, rows of RGB or grey triples as floats.
struct Pixels {
    width: usize,
    height: usize,
    channels: usize,
    data: Vec<f32>,
}

/// A tensor for an input out of the bytes of a picture file (BMP, JPEG, JPEG 2000, PNG, PNM, TIFF, WebP). Without a layout the
/// axes are guessed from where 1 or 3 channels stand.
pub fn image_tensor(bytes: &[u8], port: &Port, layout: Option<&Layout>) -> Result<Tensor> {
    let axes = ImageAxes::of(port, layout)?;
    let pixels = decode(bytes)?;
    let pixels = with_channels(pixels, axes.channels);
    let height = axes.height.unwrap_or(pixels.height);
    let width = axes.width.unwrap_or(pixels.width);
    // Floats of the resized picture, the values of the tensor, and the tensor.
    let count = height.saturating_mul(width).saturating_mul(axes.channels);
    ensure_memory(count.saturating_mul(4 + 8 + 8))?;
    let pixels = resize(pixels, height, width);
    let mut shape = vec![1usize; axes.rank];
    shape[axes.h] = height;
    shape[axes.w] = width;
    if let Some(c) = axes.c {
        shape[c] = axes.channels;
    }
    let strides = strides(&shape);
    let mut values = vec![0f64; count];
    for y in 0..height {
        for x in 0..width {
            for c in 0..axes.channels {
                let at = y * strides[axes.h] + x * strides[axes.w] + axes.c.map_or(0, |a| c * strides[a]);
                values[at] = f64::from(pixels.data[(y * width + x) * axes.channels + c]);
            }
        }
    }
    if !port.ty.is_float() {
        values.iter_mut().for_each(|v| *v = v.round());
    }
    Ok(Tensor::from_f64(port.ty, &shape, &values)?)
}

/// Where channels, height and width stand in the input.
struct ImageAxes {
    rank: usize,
    c: Option<usize>,
    h: usize,
    w: usize,
    channels: usize,
    height: Option<usize>,
    width: Option<usize>,
}

impl ImageAxes {
    fn of(port: &Port, layout: Option<&Layout>) -> Result<ImageAxes> {
        let no = || {
            Error::usage(format!(
                "`{}` takes {}[{}], which is not shaped like an image (NCHW, NHWC, CHW, HWC or HW with 1 or 3 channels)",
                port.name, port.ty, port.shape
            ))
        };
        let dims: Vec<Option<usize>> = port.shape.dims().ok_or_else(no)?.iter().map(|d| d.size()).collect();
        let colour = |i: usize| matches!(dims[i], Some(1 | 3));
        let guess = match dims.len() {
            4 if colour(1) => "NCHW",
            4 if colour(3) => "NHWC",
            3 if colour(0) => "CHW",
            3 if colour(2) => "HWC",
            2 => "HW",
            _ => "",
        };
        let guessed = || guess.parse::<Layout>().and_then(|l| l.axes(dims.len())).ok();
        let names = layout.and_then(|l| l.axes(dims.len()).ok()).or_else(guessed).ok_or_else(no)?;
        let at = |axis: &str| names.iter().position(|a| a == axis);
        let (h, w) = (at("H").ok_or_else(no)?, at("W").ok_or_else(no)?);
        let c = at("C");
        let channels = c.map_or(Some(1), |c| dims[c]).unwrap_or(3);
        let others_are_one =
            (0..dims.len()).all(|i| [Some(h), Some(w), c].contains(&Some(i)) || matches!(dims[i], None | Some(1)));
        if !matches!(channels, 1 | 3) || !others_are_one {
            return Err(no());
        }
        Ok(ImageAxes { rank: dims.len(), c, h, w, channels, height: dims[h], width: dims[w] })
    }
}

// As floats, before and after the channels are those of the input.
fn decode(bytes: &[u8]) -> Result<Pixels> {
    let picture = carafe_image::decode(bytes).map_err(|e| Error::invalid(e.to_string()))?;
    ensure_memory(picture.data.len().saturating_mul(4 + 12))?;
    let data = picture.data.into_iter().map(f32::from).collect();
    Ok(Pixels { width: picture.width, height: picture.height, channels: picture.channels, data })
}

// Alpha is dropped; grey is repeated; colour becomes grey by the weights of BT.601.
fn with_channels(p: Pixels, channels: usize) -> Pixels {
    let colours = if p.channels >= 3 { 3 } else { 1 };
    let mut data = Vec::with_capacity(p.width * p.height * channels);
    for px in p.data.chunks_exact(p.channels) {
        match (colours, channels) {
            (3, 3) => data.extend_from_slice(&px[..3]),
            (3, _) => data.push(0.299 * px[0] + 0.587 * px[1] + 0.114 * px[2]),
            (_, n) => data.extend(std::iter::repeat_n(px[0], n)),
        }
    }
    Pixels { channels, data, ..p }
}

fn resize(p: Pixels, height: usize, width: usize) -> Pixels {
    if (p.height, p.width) == (height, width) {
        return p;
    }
    let taps = |i: usize, n: usize, m: usize| {
        let x = ((i as f32 + 0.5) * n as f32 / m as f32 - 0.5).clamp(0.0, (n - 1) as f32);
        (x as usize, (x as usize + 1).min(n - 1), x.fract())
    };
    let mut data = Vec::with_capacity(height * width * p.channels);
    for y in 0..height {
        let (y0, y1, fy) = taps(y, p.height, height);
        for x in 0..width {
            let (x0, x1, fx) = taps(x, p.width, width);
            for c in 0..p.channels {
                let at = |y: usize, x: usize| p.data[(y * p.width + x) * p.channels + c];
                let top = at(y0, x0) * (1.0 - fx) + at(y0, x1) * fx;
                let low = at(y1, x0) * (1.0 - fx) + at(y1, x1) * fx;
                data.push(top * (1.0 - fy) + low * fy);
            }
        }
    }
    Pixels { width, height, channels: p.channels, data }
}
