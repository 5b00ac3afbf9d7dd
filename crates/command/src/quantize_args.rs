//! Options of `carafe quantize` and `carafe compress-weights`.

use crate::args::ModelArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Quantize a model to 8 bits with the help of data, compare it with the float model and write it as OpenVINO IR.
#[derive(Args, Debug)]
#[command(
    after_long_help = "The model goes through the passes of `carafe convert` first. Weights are stored as i8, one scale for each output channel;
data is rounded by FakeQuantize in front of convolutions and matrix products. Mean, scale and layout of pictures belong into
the model: `carafe convert --mean_values` and its kin put them there.

With --max-drop, layers that cost most stay in float until the outputs differ from those of the float model by no more than that:
a relative error (--metric error), or the share of rows whose greatest element changes (--metric top1).

Examples:
  carafe quantize model.onnx --data images/ -o model_int8.xml
  carafe quantize model.xml --data samples.npz -o out.xml --calibration percentile --preset mixed
  carafe quantize model.xml --data images/ -o out.xml --max-drop 0.02 --ignored-scope type:GroupConvolution,last_layer"
)]
pub(crate) struct QuantizeArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Folder of samples (.npy, .npz, pictures), each file one of them, or one .npz whose arrays have a first axis of samples
    #[arg(long, value_name = "DIR|FILE.npz")]
    pub data: PathBuf,
    /// Where to write the .xml; the .bin goes beside it
    #[arg(short, long = "output", value_name = "OUT.xml")]
    pub output: PathBuf,
    /// Samples to use, the first ones
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub subset: usize,
    /// How the range of a value follows from the data
    #[arg(long, value_enum, default_value_t = CalibrationArg::MinMax)]
    pub calibration: CalibrationArg,
    /// Share of the numbers that a range holds, for --calibration percentile
    #[arg(long, value_name = "PERCENT", default_value_t = 99.99, allow_negative_numbers = true)]
    pub percentile: f64,
    /// Symmetric data (performance) or data with zero points (mixed); mixed for transformers and performance for others when
    /// left out
    #[arg(long, value_enum)]
    pub preset: Option<PresetArg>,
    /// Transformers get SmoothQuant; a model with attention is one
    #[arg(long = "model-type", value_enum, default_value_t = ModelTypeArg::Auto)]
    pub model_type: ModelTypeArg,
    /// Strength of SmoothQuant: 0 leaves outliers in the data, 1 moves them into the weights, -1 turns it off
    #[arg(long = "smooth-quant", value_name = "ALPHA", default_value_t = 0.95, allow_negative_numbers = true)]
    pub smooth_quant: f64,
    /// Leave biases as they are
    #[arg(long = "no-bias-correction")]
    pub no_bias_correction: bool,
    /// Layers that stay in float: NAME, type:TYPE or regex:PATTERN; may be given several times or as a list
    #[arg(long = "ignored-scope", value_name = "LIST", value_delimiter = ',')]
    pub ignored_scope: Vec<String>,
    /// Largest difference to the float model; the worst layers stay in float until it holds
    #[arg(long = "max-drop", value_name = "X", allow_negative_numbers = true)]
    pub max_drop: Option<f64>,
    /// What the difference is
    #[arg(long, value_enum, default_value_t = MetricArg::Error)]
    pub metric: MetricArg,
    /// Device that runs the model meanwhile
    #[arg(short, long, default_value = "CPU")]
    pub device: String,
    /// Print a JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CalibrationArg {
    /// Mean over the samples of the least and the greatest number
    MinMax,
    /// All but the outermost numbers
    Percentile,
    /// Least loss of information
    Entropy,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PresetArg {
    Performance,
    Mixed,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelTypeArg {
    Auto,
    Transformer,
    Other,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetricArg {
    /// Length of the difference of the outputs over their length
    Error,
    /// Share of rows whose greatest element is another one
    Top1,
}

/// Store the weights of matrix products and embeddings in 8 or 4 bits and write the model as OpenVINO IR.
#[derive(Args, Debug)]
#[command(
    after_long_help = "Needs no data: what is computed stays in float. With 4 bits, embeddings, the last layer and layers whose rows the group size does
not divide are stored in 8 bits.

Examples:
  carafe compress-weights model.onnx -o model_int8.xml
  carafe compress-weights model.xml -o out.xml --mode int4_sym --group-size 64 --ratio 0.8"
)]
pub(crate) struct CompressWeightsArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Where to write the .xml; the .bin goes beside it
    #[arg(short, long = "output", value_name = "OUT.xml")]
    pub output: PathBuf,
    /// What weights are stored as
    #[arg(long, value_enum, default_value_t = ModeArg::Int8)]
    pub mode: ModeArg,
    /// Weights of a row that share a scale, for 4 bits; -1 for whole rows
    #[arg(long = "group-size", value_name = "N", default_value_t = 128, allow_negative_numbers = true)]
    pub group_size: i64,
    /// Share of the weights that gets 4 bits, those that lose least first; the others get 8
    #[arg(long, value_name = "R", default_value_t = 1.0, allow_negative_numbers = true)]
    pub ratio: f64,
    /// Layers whose weights stay as they are: NAME, type:TYPE or regex:PATTERN; may be given several times or as a list
    #[arg(long = "ignored-scope", value_name = "LIST", value_delimiter = ',')]
    pub ignored_scope: Vec<String>,
    /// Print a JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
#[value(rename_all = "snake_case")]
pub(crate) enum ModeArg {
    /// u8 with zero points
    Int8,
    /// i8
    Int8Sym,
    /// u4 with zero points
    Int4Asym,
    /// i4
    Int4Sym,
}
