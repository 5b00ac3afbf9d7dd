//! Makes models smaller and faster: post-training quantization to 8 bits with data ([`quantize`]) and compression of weights
//! without ([`compress_weights`]). What is written is what OpenVINO's own tools write: FakeQuantize on data, stored integers
//! with a scale for weights.
//!
//! Quantizing goes over the data several times: per channel for SmoothQuant, per tensor for ranges, per channel again for the
//! correction of biases, and once more to compare the result with the float model.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bias;
mod build;
mod compress;
mod error;
mod exclude;
mod histogram;
mod layers;
mod observe;
mod options;
mod points;
mod quantize;
mod ranges;
mod report;
mod scope;
mod smooth;
mod weights;

pub use compress::{CompressOptions, CompressedWeights, Compression, WeightMode, compress_weights};
pub use observe::Samples;
pub use options::{Calibration, Metric, ModelType, Preset, QuantizeOptions};
pub use quantize::{Quantized, quantize};
pub use report::{LayerReport, OutputReport, Report};
pub use scope::IgnoredScope;
