//! The arguments of `carafe operations`.

use clap::Args;

/// List operations: all that are known, those that a format's rules translate, those that a device takes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  carafe operations Softmax
  carafe operations --format onnx
  carafe operations --device GPU")]
pub(crate) struct OperationsArgs {
    /// One operation: its versions, inputs, outputs and attributes
    #[arg(conflicts_with_all = ["format", "device"])]
    pub name: Option<String>,
    /// What the rules of a format translate: onnx, tensorflow, tflite, caffe, mxnet, kaldi, paddle
    #[arg(long, value_name = "FORMAT", conflicts_with = "device")]
    pub format: Option<String>,
    /// What a device takes, asked with every operation case
    #[arg(short, long, value_name = "DEVICE")]
    pub device: Option<String>,
    /// Print a Markdown page instead of text
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}
