//! Every option once: parsing, `--help`, completions and the man page come from these definitions.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Pours any trained model into any device.
#[derive(Parser, Debug)]
#[command(name = "carafe", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Examples:
  carafe run model.xml -i image=photo.png --top 5
  carafe convert model.xml -o smaller.xml
  carafe inspect model.xml --graph

Exit codes: 0 success, 1 bad input or model, 2 wrong usage.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Run(RunArgs),
    Convert(ConvertArgs),
    Inspect(InspectArgs),
    Query(QueryArgs),
    Devices(DevicesArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// The model, and how to read it.
#[derive(Args, Debug)]
pub(crate) struct ModelArgs {
    /// Model file; the format is told by its content (OpenVINO IR .xml)
    pub model: PathBuf,
    /// Weights file, when it does not lie beside the model under the same name
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
}

/// Run a model once and write or print its outputs.
#[derive(Args, Debug)]
#[command(
    after_long_help = "Inputs: NAME is a tensor name or the name of the input node; with one input NAME= may be left
out. FILE is told by its content: .npy, .npz (one array, or one per input when NAME is left out), a PNG or JPEG image
for inputs shaped like images (resized to fit, values 0..255), anything else as raw little-endian elements.

Outputs: -o DIR writes DIR/<name>.npy for each output (names made safe for files) and DIR/outputs.json, which maps the
real names, element types and shapes to the files. Types numpy does not have (bf16, f8, 4-bit) are written as f32.

Examples:
  carafe run digits.xml -i seven.png --top 3
  carafe run bert.xml -i input_ids=ids.npy -i attention_mask=mask.npy -o out
  carafe run model.xml --fill random --seed 7 --json"
)]
pub(crate) struct RunArgs {
    /// Model file; the format is told by its content (OpenVINO IR .xml)
    #[arg(required_unless_present = "batch")]
    pub model: Option<PathBuf>,
    /// Weights file, when it does not lie beside the model under the same name
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Device to run on; `carafe devices` lists them
    #[arg(short, long, default_value = "TEMPLATE")]
    pub device: String,
    /// Tensor for an input, as NAME=FILE
    #[arg(short, long = "input", value_name = "NAME=FILE")]
    pub inputs: Vec<String>,
    /// Folder to write the outputs to
    #[arg(short, long = "output", value_name = "OUT_DIR")]
    pub output: Option<PathBuf>,
    /// Library with operations the model needs; may be given several times
    #[arg(long, value_name = "LIB")]
    pub extension: Vec<PathBuf>,
    /// Device property as KEY=VALUE; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub property: Vec<String>,
    /// What inputs without a file are filled with
    #[arg(long, value_enum, default_value_t = Fill::Zeros)]
    pub fill: Fill,
    /// Seed of the random fill
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Run this often with the same inputs; variables keep their state, the last outputs count
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub repeat: usize,
    /// Print the K largest values of each row of each output
    #[arg(long, value_name = "K")]
    pub top: Option<usize>,
    /// Text file with one class name a line, for --top
    #[arg(long, value_name = "FILE", requires = "top")]
    pub labels: Option<PathBuf>,
    /// Print the time of every node
    #[arg(long)]
    pub perf: bool,
    /// Print a JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Run many models in one process: a JSON list of {model, inputs: {NAME: FILE}, out, repeat, convert}
    #[arg(long, value_name = "LIST.json", conflicts_with_all = ["model", "inputs", "output"])]
    pub batch: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    Zeros,
    Random,
}

/// Read a model, clean its graph and write it as OpenVINO IR (.xml and .bin).
#[derive(Args, Debug)]
#[command(
    after_long_help = "Cleaning folds constants, drops what nothing needs and makes names unique. By default f32 weights
are stored as f16 and widened again by a Convert, as OpenVINO's own converter does; --compress_to_fp16=False keeps them.

Example:
  carafe convert model.xml -o out/model.xml --compress_to_fp16=False"
)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Where to write the .xml; the .bin goes beside it
    #[arg(short, long = "output_model", value_name = "OUT.xml")]
    pub output: PathBuf,
    /// Store f32 weights as f16
    #[arg(long = "compress_to_fp16", default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = boolean)]
    pub compress_to_fp16: bool,
    /// How much to tell; DEBUG says for every pass what it did and why it did not
    #[arg(long = "log_level", value_enum, ignore_case = true, default_value_t = LogLevel::Error)]
    pub log_level: LogLevel,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
#[value(rename_all = "UPPER")]
pub(crate) enum LogLevel {
    Critical,
    Error,
    Warning,
    Info,
    Debug,
}

fn boolean(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" => Ok(true),
        "false" | "0" | "no" => Ok(false),
        _ => Err("expected True or False".into()),
    }
}

/// Show inputs, outputs, operations, parameters, multiply-accumulates, opsets and missing extensions of a model.
#[derive(Args, Debug)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Print the graph, one line a node
    #[arg(long, conflicts_with_all = ["dot", "json"])]
    pub graph: bool,
    /// Print the graph as Graphviz source
    #[arg(long, conflicts_with = "json")]
    pub dot: bool,
    /// Print a JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Show which node of a model a device can run, and what it cannot.
#[derive(Args, Debug)]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Device to ask
    #[arg(short, long, default_value = "TEMPLATE")]
    pub device: String,
    /// Print a JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// List the devices of this machine.
#[derive(Args, Debug)]
pub(crate) struct DevicesArgs {
    /// Also list every property with its value and meaning
    #[arg(long)]
    pub properties: bool,
    /// Print a JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Print a completion script for a shell.
#[derive(Args, Debug)]
#[command(after_help = "Example: carafe completions bash > /etc/bash_completion.d/carafe")]
pub(crate) struct CompletionsArgs {
    pub shell: clap_complete::Shell,
}

/// Print the manual page, or write the pages of all commands to a folder.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Folder for carafe.1, carafe-run.1, ...
    #[arg(short, long = "output", value_name = "DIR")]
    pub output: Option<PathBuf>,
}
