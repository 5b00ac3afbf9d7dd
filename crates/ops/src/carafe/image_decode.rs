//! ImageDecode: pixels out of the bytes of a picture file. Bytes that are no picture give one without rows, not an error.

use carafe_graph::{EvalCx, InferCx, Op, Result};
use carafe_tensor::{Dim, ElementType, PartialShape, Tensor};

carafe_graph::attr_enum! {
    /// The channels of the result.
    pub enum PixelFormat { Rgb = "RGB", Bgr = "BGR", Grey = "Grayscale" }
}

/// The file `[bytes]` as `[height, width, channels]`.
#[derive(Op, Clone, Debug, PartialEq)]
#[op(opset = "carafe", inputs = "data")]
pub struct ImageDecode {
    /// Which channels the result has.
    #[attr(default = PixelFormat::Rgb)]
    pub pixel_format: PixelFormat,
}

impl ImageDecode {
    fn channels(&self) -> usize {
        if self.pixel_format == PixelFormat::Grey { 1 } else { 3 }
    }
}

impl Op for ImageDecode {
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<()> {
        let ty = cx.ty(0);
        cx.require(matches!(ty, ElementType::U8 | ElementType::Dynamic), || {
            format!("{} must be u8, found {ty}", cx.port_name(0))
        })?;
        cx.require_rank(0, &[1])?;
        let shape = PartialShape::new([Dim::ANY, Dim::ANY, Dim::known(self.channels() as i64)]);
        cx.set(0, ElementType::U8, shape);
        Ok(())
    }
    fn eval(&self, cx: &mut EvalCx<'_>) -> Result<()> {
        let (height, width, data) = match carafe_image::decode(cx.input(0).bytes()) {
            Ok(picture) => {
                let data = match self.pixel_format {
                    PixelFormat::Rgb => picture.rgb(),
                    PixelFormat::Bgr => picture.bgr(),
                    PixelFormat::Grey => picture.grey(),
                };
                (picture.height, picture.width, data)
            }
            Err(_) => (0, 0, vec![]),
        };
        cx.set(0, Tensor::from_bytes(ElementType::U8, &[height, width, self.channels()], &data)?)
    }
}
