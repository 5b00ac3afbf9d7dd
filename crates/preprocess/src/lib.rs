//! Pre- and postprocessing. [`PrePostProcessor`] puts it into the model, so that a program hands over what it has (bytes of
//! any layout, colour and size) and the device does the rest; [`image_tensor`] turns the bytes of a picture file into the
//! tensor of an input.
//!
//! ```
//! use carafe_preprocess::{ColorFormat, PrePostProcessor, ResizeAlgorithm};
//! # use carafe_graph::Model;
//! # use carafe_tensor::{ElementType, PartialShape};
//! # let mut model = Model::new("m");
//! # let x = model.parameter("x", ElementType::F32, PartialShape::of(&[1, 3, 224, 224]))?;
//! # model.result("y", x)?;
//! let mut ppp = PrePostProcessor::new(model);
//! let input = ppp.input(0)?;
//! input.tensor().element_type(ElementType::U8).layout("NHWC".parse()?).color_format(ColorFormat::Bgr);
//! input.model().layout("NCHW".parse()?);
//! input
//!     .preprocess()
//!     .convert_element_type(ElementType::F32)
//!     .convert_color(ColorFormat::Rgb)
//!     .resize(ResizeAlgorithm::Linear)
//!     .mean([123.7, 116.3, 103.5])
//!     .scale([58.4]);
//! let model = ppp.build()?;
//! assert_eq!(model.fact(model.parameters()[0].into()).shape.to_string(), "1,?,?,3");
//! # Ok::<(), carafe_graph::Error>(())
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod image;
mod layout;
pub mod nodes;
mod processor;
mod steps;

pub use image::{image_tensor, is_image};
pub use layout::Layout;
pub use processor::{
    InputInfo, InputTensorInfo, ModelInfo, OutputInfo, OutputTensorInfo, PostProcessSteps, PrePostProcessor,
    PreProcessSteps,
};
pub use steps::{ColorFormat, PaddingMode, ResizeAlgorithm};
