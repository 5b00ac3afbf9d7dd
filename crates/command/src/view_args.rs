//! Options of `carafe view`.

use crate::args::ModelArgs;
use clap::Args;
use std::path::PathBuf;

/// Write one HTML page with the graph of a model: searchable, with shapes, attributes, devices, kernels and times.
#[derive(Args, Debug)]
#[command(after_help = "The page needs nothing else: no network, no file beside it. PAGE#node=NAME shows that node.

Examples:
  carafe view model.onnx -o model.html
  carafe view model.onnx -d HETERO:GPU,CPU --run -o model.html
  carafe view model.xml --serve 8080")]
pub(crate) struct ViewArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Where to write the page; MODEL.html when left out and nothing is served
    #[arg(short, long = "output", value_name = "FILE.html")]
    pub output: Option<PathBuf>,
    /// Serve the page to this machine alone until the program is ended; a free port is taken when none is given
    #[arg(long, value_name = "PORT", num_args = 0..=1, default_missing_value = "0")]
    pub serve: Option<u16>,
    /// Also show which device and which kernel runs each node
    #[arg(short, long)]
    pub device: Option<String>,
    /// Run the model and colour nodes by their time; on CPU unless --device says another
    #[arg(long)]
    pub run: bool,
    /// Tensor for an input of --run, as NAME=FILE; the others are filled with random values
    #[arg(short, long = "input", value_name = "NAME=FILE", requires = "run")]
    pub inputs: Vec<String>,
    /// Times are means of this many inferences
    #[arg(long, value_name = "N", default_value_t = 10, requires = "run")]
    pub repeat: usize,
    /// File with custom OpenCL kernels for GPU or VPU (CONFIG_FILE); may be given several times
    #[arg(short = 'c', long = "config", value_name = "FILE.xml")]
    pub config: Vec<PathBuf>,
}
