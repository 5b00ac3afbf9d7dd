//! Measures compiled models as OpenVINO's `benchmark_app` does: [`measure()`] runs a model for a while on one request or on several at
//! once, [`Latency`] and [`Counters`] make numbers of it, and [`Report`] makes files of those. Nothing here prints or writes a file.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod config;
mod counters;
mod latency;
mod measure;
mod report;
mod shapes;

pub use config::{DeviceConfig, hardware_devices, per_device};
pub use counters::Counters;
pub use latency::{Bar, Latency, histogram};
pub use measure::{Api, Group, Measurement, Settings, measure};
pub use report::{CounterReport, Report};
pub use shapes::{GuessedShape, batch_of, data_shapes, guess_shape};
