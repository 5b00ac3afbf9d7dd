//! What came of a quantization, layer by layer.

use crate::options::{Metric, Preset};

/// One layer.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerReport {
    /// Name of its node.
    pub name: String,
    /// Type of its operation.
    pub type_name: String,
    /// Whether it computes with integers.
    pub quantized: bool,
    /// Length of the difference to the float model at its output, over the length of the output; what layers before it lose
    /// is in it.
    pub error: Option<f64>,
    /// How much it alone costs at the outputs of the model, where that was measured.
    pub effect: Option<f64>,
    /// Why it stays in float.
    pub reason: Option<String>,
}

impl LayerReport {
    /// The error as a ratio of signal to noise, in decibels.
    pub fn sqnr_db(&self) -> Option<f64> {
        self.error.filter(|e| *e > 0.0).map(|e| -20.0 * e.log10())
    }
}

/// One output of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputReport {
    /// Its name.
    pub name: String,
    /// Length of the difference over the length of the float output, mean over the samples.
    pub error: f64,
    /// Share of its rows whose greatest element is another one; only for outputs that look like scores of classes.
    pub top1_changed: Option<f64>,
}

/// What was done and what it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// All layers in order of computation.
    pub layers: Vec<LayerReport>,
    /// All outputs that are floats.
    pub outputs: Vec<OutputReport>,
    /// The figure that `max_drop` is compared with.
    pub drop: f64,
    /// What it is.
    pub metric: Metric,
    /// Samples that were used.
    pub samples: usize,
    /// Whether the model was treated as a transformer.
    pub transformer: bool,
    /// Integers of data.
    pub preset: Preset,
    /// Values that are rounded.
    pub points: usize,
    /// Values whose outliers were moved into weights.
    pub smoothed: usize,
    /// Layers whose bias was corrected.
    pub corrected: usize,
    /// Bytes of constants before and after.
    pub bytes: [u64; 2],
}
