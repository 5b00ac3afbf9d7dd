//! The first picture of a TIFF file. Samples of 16 bits keep their upper half; floating-point samples are refused.

use crate::{MOST_BYTES, Picture, Result, area, broken, without_black};
use std::io::Cursor;
use tiff::ColorType;
use tiff::decoder::{Decoder, DecodingResult, Limits};
use tiff::tags::Tag;

pub(crate) fn decode(bytes: &[u8]) -> Result<Picture> {
    let mut limits = Limits::default();
    limits.decoding_buffer_size = MOST_BYTES;
    limits.intermediate_buffer_size = MOST_BYTES;
    let mut decoder = Decoder::new(Cursor::new(bytes)).map_err(broken)?.with_limits(limits);
    let (width, height) = decoder.dimensions().map_err(broken)?;
    let (width, height) = (width as usize, height as usize);
    let area = area(width, height)?;
    let colour = decoder.colortype().map_err(broken)?;
    let data = match decoder.read_image().map_err(broken)? {
        DecodingResult::U8(data) => data,
        DecodingResult::U16(data) => data.iter().map(|v| (v >> 8) as u8).collect(),
        _ => return Err(broken("samples that are neither of 8 nor of 16 bits are not read")),
    };
    let data = match colour {
        ColorType::Gray(bits @ (1 | 2 | 4)) => unpacked(&data, width, height, bits)?,
        ColorType::Gray(8 | 16) | ColorType::GrayA(8 | 16) | ColorType::RGB(8 | 16) | ColorType::RGBA(8 | 16) => data,
        ColorType::CMYK(8 | 16) => without_black(&data),
        ColorType::Palette(8) => {
            let map = decoder.get_tag_u16_vec(Tag::ColorMap).map_err(broken)?;
            coloured(&data[..area.min(data.len())], &map)?
        }
        other => return Err(broken(format!("pixels of the form {other:?} are not read"))),
    };
    Picture::new(width, height, data)
}

// Samples of less than a byte; every row begins with a new byte.
fn unpacked(data: &[u8], width: usize, height: usize, bits: u8) -> Result<Vec<u8>> {
    let per_byte = usize::from(8 / bits);
    let stride = width.div_ceil(per_byte);
    if data.len() < stride * height {
        return Err(broken("the file ends too early"));
    }
    let top = (1_u8 << bits) - 1;
    let sample = |row: &[u8], x: usize| {
        let shift = 8 - usize::from(bits) * (x % per_byte + 1);
        (row[x / per_byte] >> shift & top) * (255 / top)
    };
    Ok(data.chunks_exact(stride).take(height).flat_map(|row| (0..width).map(move |x| sample(row, x))).collect())
}

// The map holds all reds, then all greens, then all blues.
fn coloured(data: &[u8], map: &[u16]) -> Result<Vec<u8>> {
    let entries = map.len() / 3;
    let mut rgb = Vec::with_capacity(data.len() * 3);
    for &index in data {
        let index = usize::from(index);
        if index >= entries {
            return Err(broken(format!("colour {index} is not in the map of {entries}")));
        }
        rgb.extend([0, 1, 2].map(|c| (map[c * entries + index] >> 8) as u8));
    }
    Ok(rgb)
}
