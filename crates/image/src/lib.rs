//! Pictures from the bytes of files, as 8-bit channels. Bytes are hostile: a header may claim any size, so that the number
//! of pixels is checked before anything is allocated.
#![forbid(unsafe_code)]

mod jpeg;
mod pnm;
mod tiff;

use std::io::Cursor;
use thiserror::Error;
use zune_core::bytestream::ZCursor;
use zune_core::options::DecoderOptions;

/// No picture has more pixels than this: the side of a square of 8192.
pub const MOST_PIXELS: usize = 1 << 26;
const MOST_BYTES: usize = 4 * MOST_PIXELS;

/// Why bytes are no picture.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ImageError {
    #[error("the bytes are of no known picture format (BMP, JPEG, JPEG 2000, PNG, PNM, TIFF, WebP)")]
    UnknownFormat,
    #[error("the picture has {width} x {height} pixels; at most {MOST_PIXELS} and at least 1 are read")]
    Size { width: usize, height: usize },
    #[error("the picture cannot be decoded: {0}")]
    Broken(String),
}

pub type Result<T> = std::result::Result<T, ImageError>;

fn broken(why: impl std::fmt::Display) -> ImageError {
    ImageError::Broken(why.to_string())
}

/// Formats that differ in their first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    Bmp,
    Jpeg,
    Jpeg2000,
    Png,
    Pnm,
    Tiff,
    Webp,
}

impl Format {
    /// By the first bytes.
    pub fn of(bytes: &[u8]) -> Option<Format> {
        Some(match bytes {
            [b'B', b'M', ..] => Format::Bmp,
            [0xff, 0xd8, 0xff, ..] => Format::Jpeg,
            [0, 0, 0, 12, b'j', b'P', b' ', b' ', ..] | [0xff, 0x4f, 0xff, 0x51, ..] => Format::Jpeg2000,
            [0x89, b'P', b'N', b'G', ..] => Format::Png,
            [b'P', b'1'..=b'6', ..] => Format::Pnm,
            [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Format::Tiff,
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Format::Webp,
            _ => return None,
        })
    }
}

/// Rows of pixels, channels last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    pub width: usize,
    pub height: usize,
    /// 1 grey, 2 grey and alpha, 3 red, green and blue, 4 with alpha.
    pub channels: usize,
    pub data: Vec<u8>,
}

impl Picture {
    fn new(width: usize, height: usize, data: Vec<u8>) -> Result<Picture> {
        let area = area(width, height)?;
        match data.len() / area {
            channels @ 1..=4 if data.len() == area * channels => Ok(Picture { width, height, channels, data }),
            _ => Err(broken(format!("{} bytes for {width} x {height} pixels", data.len()))),
        }
    }

    fn pixels(&self) -> impl Iterator<Item = [u8; 3]> {
        self.data.chunks_exact(self.channels).map(|px| match px {
            [r, g, b, ..] => [*r, *g, *b],
            _ => [px[0]; 3],
        })
    }

    /// Red, green and blue; grey is repeated, alpha dropped.
    pub fn rgb(&self) -> Vec<u8> {
        self.pixels().flatten().collect()
    }

    /// Blue, green and red.
    pub fn bgr(&self) -> Vec<u8> {
        self.pixels().flat_map(|[r, g, b]| [b, g, r]).collect()
    }

    /// Brightness by the weights of BT.601.
    pub fn grey(&self) -> Vec<u8> {
        let weigh = |[r, g, b]: [u8; 3]| 19595 * u32::from(r) + 38470 * u32::from(g) + 7471 * u32::from(b);
        self.pixels().map(|px| ((weigh(px) + (1 << 15)) >> 16) as u8).collect()
    }
}

/// The number of pixels, within bounds.
fn area(width: usize, height: usize) -> Result<usize> {
    let area = width.checked_mul(height).filter(|a| (1..=MOST_PIXELS).contains(a));
    area.ok_or(ImageError::Size { width, height })
}

/// Decodes a file of any known format.
pub fn decode(bytes: &[u8]) -> Result<Picture> {
    let format = Format::of(bytes).ok_or(ImageError::UnknownFormat)?;
    // A decoder that meets what its authors did not think of must not end the program.
    let decoded = std::panic::catch_unwind(|| match format {
        Format::Bmp => bmp(bytes),
        Format::Jpeg => jpeg::decode(bytes),
        Format::Jpeg2000 => jpeg2000(bytes),
        Format::Png => png(bytes),
        Format::Pnm => pnm::decode(bytes),
        Format::Tiff => tiff::decode(bytes),
        Format::Webp => webp(bytes),
    });
    decoded.unwrap_or_else(|_| Err(broken("the decoder gave up")))
}

fn options() -> DecoderOptions {
    DecoderOptions::default().set_max_width(MOST_PIXELS).set_max_height(MOST_PIXELS).png_set_strip_to_8bit(true)
}

fn size_of(dimensions: Option<(usize, usize)>) -> Result<(usize, usize)> {
    let (width, height) = dimensions.ok_or_else(|| broken("no size"))?;
    area(width, height)?;
    Ok((width, height))
}

fn bmp(bytes: &[u8]) -> Result<Picture> {
    let mut decoder = zune_bmp::BmpDecoder::new_with_options(ZCursor::new(bytes), options());
    decoder.decode_headers().map_err(|e| broken(format!("{e:?}")))?;
    let (width, height) = size_of(decoder.dimensions())?;
    Picture::new(width, height, decoder.decode().map_err(|e| broken(format!("{e:?}")))?)
}

fn png(bytes: &[u8]) -> Result<Picture> {
    let mut decoder = zune_png::PngDecoder::new_with_options(ZCursor::new(bytes), options());
    decoder.decode_headers().map_err(|e| broken(format!("{e:?}")))?;
    let (width, height) = size_of(decoder.dimensions())?;
    Picture::new(width, height, decoder.decode_raw().map_err(|e| broken(format!("{e:?}")))?)
}

fn jpeg2000(bytes: &[u8]) -> Result<Picture> {
    let image = hayro_jpeg2000::Image::new(bytes, &hayro_jpeg2000::DecodeSettings::default()).map_err(broken)?;
    let (width, height) = (image.width() as usize, image.height() as usize);
    area(width, height)?;
    let cmyk = matches!(image.color_space(), hayro_jpeg2000::ColorSpace::CMYK);
    let mut context = hayro_jpeg2000::DecoderContext::default();
    let data = image.decode(&mut context).map_err(broken)?.data_u8();
    Picture::new(width, height, if cmyk { without_black(&data) } else { data })
}

fn webp(bytes: &[u8]) -> Result<Picture> {
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(bytes)).map_err(broken)?;
    decoder.set_memory_limit(MOST_BYTES);
    let (width, height) = decoder.dimensions();
    let (width, height) = (width as usize, height as usize);
    let mut data = vec![0; area(width, height)? * if decoder.has_alpha() { 4 } else { 3 }];
    decoder.read_image(&mut data).map_err(broken)?;
    Picture::new(width, height, data)
}

/// Cyan, magenta, yellow and black as red, green and blue.
fn without_black(cmyk: &[u8]) -> Vec<u8> {
    let light = |ink: u8, black: u8| ((255 - u32::from(ink)) * (255 - u32::from(black)) / 255) as u8;
    cmyk.as_chunks::<4>().0.iter().flat_map(|&[c, m, y, k]| [c, m, y].map(|ink| light(ink, k))).collect()
}

#[cfg(test)]
mod tests;
