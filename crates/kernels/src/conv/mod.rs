//! Convolutions of images that lie channels last.

mod call;
mod direct;
mod fill;
mod shape;

pub use direct::{Conv, ConvPlanar};
pub use shape::ConvShape;
