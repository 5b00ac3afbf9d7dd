//! PNG and JPEG into image-shaped inputs: decoded, made grey or RGB as the input has channels, resized bilinearly to
//! its height and width, values 0..255.

use carafe::memory::ensure_memory;
use carafe::{Error, Port, Result, Tensor};
use zune_core::bytestream::ZCursor;
use zune_core::options::DecoderOptions;

/// Largest width or height that is decoded.
const MAX_SIDE: usize = 1 << 14;

pub(crate) fn is_image(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x89PNG\r\n\x1a\n") || bytes.starts_with(b"\xff\xd8\xff")
}

/// Decoded pixels, rows of RGB or grey triples as floats.
struct Pixels {
    width: usize,
    height: usize,
    channels: usize,
    data: Vec<f32>,
}

/// A tensor for `port`, whose layout is `NCHW`-like letters or empty when the model does not say.
pub(crate) fn to_tensor(bytes: &[u8], port: &Port, layout: &str) -> Result<Tensor> {
    let place = Place::of(port, layout)?;
    let pixels = decode(bytes)?;
    let pixels = with_channels(pixels, place.channels)?;
    let height = place.height.unwrap_or(pixels.height);
    let width = place.width.unwrap_or(pixels.width);
    // Floats of the resized picture, the values of the tensor, and the tensor.
    let count = height.saturating_mul(width).saturating_mul(place.channels);
    ensure_memory(count.saturating_mul(4 + 8 + 8))?;
    let pixels = resize(pixels, height, width);
    let mut shape = vec![1usize; place.rank];
    shape[place.h] = height;
    shape[place.w] = width;
    if let Some(c) = place.c {
        shape[c] = place.channels;
    }
    let strides = strides(&shape);
    let mut values = vec![0f64; count];
    for y in 0..height {
        for x in 0..width {
            for c in 0..place.channels {
                let at = y * strides[place.h] + x * strides[place.w] + place.c.map_or(0, |a| c * strides[a]);
                values[at] = f64::from(pixels.data[(y * width + x) * place.channels + c]);
            }
        }
    }
    if !port.ty.is_float() {
        values.iter_mut().for_each(|v| *v = v.round());
    }
    Ok(Tensor::from_f64(port.ty, &shape, &values)?)
}

fn strides(shape: &[usize]) -> Vec<usize> {
    let mut s = vec![1; shape.len()];
    for i in (0..shape.len().saturating_sub(1)).rev() {
        s[i] = s[i + 1] * shape[i + 1];
    }
    s
}

/// Where channels, height and width stand in the input.
struct Place {
    rank: usize,
    c: Option<usize>,
    h: usize,
    w: usize,
    channels: usize,
    height: Option<usize>,
    width: Option<usize>,
}

impl Place {
    fn of(port: &Port, layout: &str) -> Result<Place> {
        let no = || {
            Error::usage(format!(
                "`{}` takes {}[{}], which is not shaped like an image (NCHW, NHWC, CHW, HWC or HW with 1 or 3 channels)",
                port.name, port.ty, port.shape
            ))
        };
        let dims: Vec<Option<usize>> = port.shape.dims().ok_or_else(no)?.iter().map(|d| d.size()).collect();
        let colour = |i: usize| matches!(dims[i], Some(1 | 3));
        let letters = match (layout.len() == dims.len(), dims.len()) {
            (true, _) => layout.to_ascii_uppercase(),
            (_, 4) if colour(1) => "NCHW".into(),
            (_, 4) if colour(3) => "NHWC".into(),
            (_, 3) if colour(0) => "CHW".into(),
            (_, 3) if colour(2) => "HWC".into(),
            (_, 2) => "HW".into(),
            _ => return Err(no()),
        };
        let at = |c: char| letters.find(c);
        let (h, w) = (at('H').ok_or_else(no)?, at('W').ok_or_else(no)?);
        let c = at('C');
        let channels = c.map_or(Some(1), |c| dims[c]).unwrap_or(3);
        let others_are_one =
            (0..dims.len()).all(|i| [Some(h), Some(w), c].contains(&Some(i)) || matches!(dims[i], None | Some(1)));
        if !matches!(channels, 1 | 3) || !others_are_one {
            return Err(no());
        }
        Ok(Place { rank: dims.len(), c, h, w, channels, height: dims[h], width: dims[w] })
    }
}

fn decode(bytes: &[u8]) -> Result<Pixels> {
    let bad = |e: &dyn std::fmt::Debug| Error::invalid(format!("the image cannot be decoded: {e:?}"));
    let options =
        DecoderOptions::default().set_max_width(MAX_SIDE).set_max_height(MAX_SIDE).png_set_strip_to_8bit(true);
    if bytes.starts_with(b"\x89PNG") {
        let mut decoder = zune_png::PngDecoder::new_with_options(ZCursor::new(bytes), options);
        decoder.decode_headers().map_err(|e| bad(&e))?;
        ensure_memory(picture_bytes(decoder.dimensions()))?;
        let data = decoder.decode_raw().map_err(|e| bad(&e))?;
        let (width, height) = decoder.dimensions().ok_or_else(|| bad(&"no size"))?;
        return pixels(width, height, data);
    }
    // Asks for its memory in a way that can fail.
    let picture = carafe_image::decode(bytes).map_err(|e| Error::invalid(e.to_string()))?;
    pixels(picture.width, picture.height, picture.data)
}

// Of samples of up to 16 bits with alpha.
fn picture_bytes(size: Option<(usize, usize)>) -> usize {
    let (width, height) = size.unwrap_or((0, 0));
    width.saturating_mul(height).saturating_mul(4 * 4)
}

fn pixels(width: usize, height: usize, data: Vec<u8>) -> Result<Pixels> {
    let area = width.checked_mul(height).filter(|a| *a > 0);
    let channels = area.filter(|a| data.len().is_multiple_of(*a)).map(|a| data.len() / a);
    match channels {
        Some(channels @ 1..=4) => {
            // As floats, before and after the channels are those of the input.
            ensure_memory(data.len().saturating_mul(4 + 12))?;
            Ok(Pixels { width, height, channels, data: data.into_iter().map(f32::from).collect() })
        }
        _ => Err(Error::invalid(format!("the image has {} bytes for {width} x {height} pixels", data.len()))),
    }
}

// Alpha is dropped; grey is repeated; colour becomes grey by the weights of BT.601.
fn with_channels(p: Pixels, channels: usize) -> Result<Pixels> {
    let colours = if p.channels >= 3 { 3 } else { 1 };
    let mut data = Vec::with_capacity(p.width * p.height * channels);
    for px in p.data.chunks_exact(p.channels) {
        match (colours, channels) {
            (3, 3) => data.extend_from_slice(&px[..3]),
            (3, _) => data.push(0.299 * px[0] + 0.587 * px[1] + 0.114 * px[2]),
            (_, n) => data.extend(std::iter::repeat_n(px[0], n)),
        }
    }
    Ok(Pixels { channels, data, ..p })
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
