//! Pictures out of files.

use carafe_frontend::{NodeCx, Outputs, StaticRule, rule};
use carafe_graph::Result;
use carafe_ops::carafe::ImageDecode;
use carafe_ops::carafe::image_decode::PixelFormat;

pub(crate) const RULES: &[StaticRule] = &[rule("ImageDecoder", 20, image_decoder)];

fn image_decoder(n: &mut NodeCx<'_>) -> Result<Outputs> {
    let format: String = n.attr("pixel_format", "RGB".to_string())?;
    let pixel_format = match format.as_str() {
        "RGB" => PixelFormat::Rgb,
        "BGR" => PixelFormat::Bgr,
        "Grayscale" => PixelFormat::Grey,
        _ => return Err(n.fail(format!("pixel_format must be RGB, BGR or Grayscale, found `{format}`"))),
    };
    let x = n.input(0)?;
    Ok(n.emit(ImageDecode { pixel_format }, &[x])?.into())
}
