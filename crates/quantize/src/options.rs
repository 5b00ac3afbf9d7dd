//! What a user may ask of quantization.

use crate::scope::IgnoredScope;

/// How the range of a value follows from what was seen of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Calibration {
    /// All of it: the mean over the samples of their least and of their greatest number.
    MinMax,
    /// The range that holds this percentage of the numbers.
    Percentile(f64),
    /// The range whose steps lose the least information (Kullback-Leibler divergence).
    Entropy,
}

/// Which integers data is rounded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Symmetric around zero, u8 where nothing is negative: no zero points to compute with.
    Performance,
    /// The range as it was seen, with a zero point: more accurate where values lie unevenly around zero.
    Mixed,
}

/// What is known of the structure of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelType {
    /// A transformer if it has attention.
    Auto,
    /// Smooth outliers of activations into weights first; the preset is [`Preset::Mixed`] unless given.
    Transformer,
    /// Anything else.
    Other,
}

/// What is compared between the float and the quantized model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Length of the difference of the outputs over the length of the float outputs, mean over the samples; the worst
    /// output counts.
    Error,
    /// Share of the rows of the outputs whose greatest element is another one.
    Top1,
}

/// How a model is quantized.
#[derive(Clone, Debug)]
pub struct QuantizeOptions {
    /// Range estimation.
    pub calibration: Calibration,
    /// Integers of data; by the type of the model when left out.
    pub preset: Option<Preset>,
    /// Structure of the model.
    pub model_type: ModelType,
    /// Layers that stay in float.
    pub ignored: IgnoredScope,
    /// Strength of SmoothQuant, 0 (weights) to 1 (data); `None` for none.
    pub smooth_quant: Option<f64>,
    /// Correct biases by the mean error of each channel.
    pub bias_correction: bool,
    /// Largest difference that is allowed; the worst layers stay in float until it holds.
    pub max_drop: Option<f64>,
    /// What `max_drop` is measured in.
    pub metric: Metric,
    /// Device that collects statistics and judges the result.
    pub device: String,
}

impl Default for QuantizeOptions {
    fn default() -> QuantizeOptions {
        QuantizeOptions {
            calibration: Calibration::MinMax,
            preset: None,
            model_type: ModelType::Auto,
            ignored: IgnoredScope::default(),
            smooth_quant: Some(0.95),
            bias_correction: true,
            max_drop: None,
            metric: Metric::Error,
            device: "CPU".to_string(),
        }
    }
}
