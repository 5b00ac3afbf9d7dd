//! Builders that rules of TensorFlow and of TFLite share. They take values and plain parameters, never attributes: how a
//! format spells a stride or a padding is for its rules to read.

pub mod convolution;
pub mod division;
pub mod layout;
pub mod nms;
pub mod padding;
pub mod pooling;
pub mod reduce;
pub mod resize;
pub mod search;
pub mod segments;
pub mod shapes;
pub mod slicing;
pub mod space;
pub mod windows;

pub use layout::Layout;
pub use windows::{Padding, Windows};
