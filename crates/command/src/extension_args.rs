//! Options of `carafe extension`, `extgen`, `plugin` and `explain`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Write, build, test and watch an extension with an operation of your own.
#[derive(Args, Debug)]
pub(crate) struct ExtensionArgs {
    #[command(subcommand)]
    pub action: ExtensionAction,
}

#[derive(Subcommand, Debug)]
pub(crate) enum ExtensionAction {
    New(Box<ExtensionNewArgs>),
    /// Build the project of an extension or plugin
    Build(BuildArgs),
    /// Build, run the cases of tests/cases.json, and compare the kernels of every device with `eval`; exit code 1 on a failure
    Test(TestArgs),
    /// Build and test again after each save
    Watch(TestArgs),
}

/// Parts of an extension, under the names of the old generator too.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Parts {
    /// Read it from Caffe
    #[arg(long, alias = "mo-caffe-ext", help_heading = "Parts")]
    pub caffe_ext: bool,
    /// Read it from MXNet
    #[arg(long, alias = "mo-mxnet-ext", help_heading = "Parts")]
    pub mxnet_ext: bool,
    /// Read it from TensorFlow
    #[arg(long, alias = "mo-tf-ext", alias = "tensorflow-ext", help_heading = "Parts")]
    pub tf_ext: bool,
    /// Read it from ONNX
    #[arg(long, alias = "mo-onnx-ext", help_heading = "Parts")]
    pub onnx_ext: bool,
    /// Read it from Kaldi
    #[arg(long, alias = "mo-kaldi-ext", help_heading = "Parts")]
    pub kaldi_ext: bool,
    /// Read it from PaddlePaddle
    #[arg(long, alias = "mo-paddle-ext", help_heading = "Parts")]
    pub paddle_ext: bool,
    /// Read it from TensorFlow Lite
    #[arg(long, alias = "mo-tflite-ext", help_heading = "Parts")]
    pub tflite_ext: bool,
    /// The operation itself; it is always written
    #[arg(long, alias = "mo-op", help_heading = "Parts")]
    pub op_ext: bool,
    /// A kernel for CPU
    #[arg(long, alias = "ie-cpu-ext", help_heading = "Parts")]
    pub cpu_ext: bool,
    /// A kernel in OpenCL for GPU
    #[arg(long, alias = "ie-gpu-ext", help_heading = "Parts")]
    pub gpu_ext: bool,
    /// A kernel in OpenCL for VPU
    #[arg(long, alias = "ie-vpu-ext", help_heading = "Parts")]
    pub vpu_ext: bool,
}

/// Write a project with an operation, its rules, kernels and tests. Without a name it asks.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  carafe extension new                                    asks, on a terminal
  carafe extension new --from-model model.onnx            for the first node that nobody knows
  carafe extension new SoftSwish --onnx-ext --domain acme --attribute beta:float=1 --cpu-ext --language c
  carafe extension new --config softswish.json

The code gives back its input until the lines that say EDIT are edited; it compiles and passes its tests as it is.")]
pub(crate) struct ExtensionNewArgs {
    /// Type of the operation
    pub name: Option<String>,
    /// Answers as JSON: name, doc, opset, language, layout, frameworks, attributes, inputs, outputs, elementwise, shape, kernels;
    /// a file of the old extgen.py will do too
    #[arg(long, value_name = "FILE.json")]
    pub config: Option<PathBuf>,
    /// Take names, attributes and ports from the first node of a model that nobody knows
    #[arg(long, value_name = "MODEL")]
    pub from_model: Option<PathBuf>,
    /// Which operation of that model
    #[arg(long, value_name = "TYPE", requires = "from_model")]
    pub op: Option<String>,
    #[command(flatten)]
    pub parts: Parts,
    /// One sentence about the operation
    #[arg(long, value_name = "TEXT")]
    pub doc: Option<String>,
    /// Its opset: the version of its layers in an IR
    #[arg(long, value_name = "NAME")]
    pub opset: Option<String>,
    /// Its type in the frameworks, when that is not NAME; `module.layer` for a Python layer of Caffe
    #[arg(long = "type", value_name = "TYPE")]
    pub op_type: Option<String>,
    /// Its domain in ONNX, or `Custom` for a Custom operator of MXNet
    #[arg(long, value_name = "NAME")]
    pub domain: Option<String>,
    /// Attribute, as NAME:TYPE=DEFAULT with int, float, bool, string, ints, floats or strings; may be given several times
    #[arg(long = "attribute", value_name = "NAME:TYPE=DEFAULT")]
    pub attributes: Vec<String>,
    /// Names of the inputs
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub inputs: Vec<String>,
    /// Names of the outputs
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub outputs: Vec<String>,
    /// Not element by element: the code sees whole tensors
    #[arg(long)]
    pub whole: bool,
    /// The outputs have other shapes than input 0; implies --whole
    #[arg(long)]
    pub changes_shape: bool,
    /// rust, c, cpp or python
    #[arg(long, value_name = "LANGUAGE")]
    pub language: Option<String>,
    /// crate, or extgen for the folders user_mo_extensions and user_ie_extensions
    #[arg(long, value_name = "LAYOUT")]
    pub layout: Option<String>,
    /// Folder of the project; ./NAME when left out
    #[arg(short, long = "output_dir", value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Ask, with what was given as the answers to begin with
    #[arg(short, long)]
    pub interactive: bool,
    /// Overwrite files that were edited
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub sdk: SdkArgs,
}

/// Where Carafe's headers and crates are.
#[derive(Args, Clone, Debug)]
pub(crate) struct SdkArgs {
    /// Repository of Carafe; the one that this command was built from when left out
    #[arg(long, value_name = "DIR", env = "CARAFE_SDK")]
    pub sdk: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct BuildArgs {
    /// Folder of the project
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Build for speed
    #[arg(long)]
    pub release: bool,
    #[command(flatten)]
    pub sdk: SdkArgs,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct TestArgs {
    #[command(flatten)]
    pub build: BuildArgs,
    /// Devices, with commas; CPU, and GPU and VPU when the extension has kernels for them, when left out
    #[arg(short, long, value_name = "DEVICES", value_delimiter = ',')]
    pub device: Vec<String>,
    /// Test this library; nothing is built
    #[arg(long, value_name = "LIB")]
    pub library: Option<PathBuf>,
    /// Print a JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// What the guide prints for `extgen.py new --help`.
const EXTGEN_HELP: &str = "usage: You can use any combination of the following arguments:

Arguments to configure extension generation in the interactive mode:

optional arguments:
  -h, --help            show this help message and exit
  --mo-caffe-ext        generate a Model Optimizer Caffe* extractor
  --mo-mxnet-ext        generate a Model Optimizer MXNet* extractor
  --mo-tf-ext           generate a Model Optimizer TensorFlow* extractor
  --mo-op               generate a Model Optimizer operation
  --ie-cpu-ext          generate an Inference Engine CPU extension
  --ie-gpu-ext          generate an Inference Engine GPU extension
  --output_dir OUTPUT_DIR
                        set an output directory. If not specified, the current
                        directory is used by default.
";

/// The Model Extension Generator as it was: `extgen new [--mo-caffe-ext] [--mo-op] ...` asks, `extgen FILE.json` does not.
#[derive(Args, Debug)]
#[command(override_help = EXTGEN_HELP)]
pub(crate) struct ExtgenArgs {
    /// `new`, or a file with answers
    #[arg(value_name = "new|FILE.json")]
    pub what: String,
    #[command(flatten)]
    pub parts: Parts,
    #[arg(long = "output_dir", value_name = "OUTPUT_DIR", default_value = ".")]
    pub output_dir: PathBuf,
    #[arg(long)]
    pub language: Option<String>,
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub sdk: SdkArgs,
}

/// Write a device of your own to start from.
#[derive(Args, Debug)]
pub(crate) struct PluginArgs {
    #[command(subcommand)]
    pub action: PluginAction,
}

#[derive(Subcommand, Debug)]
pub(crate) enum PluginAction {
    /// Write a project of a device that computes every node by the reference evaluation and passes `carafe conformance`
    New {
        /// Name of the device, such as ACME
        name: String,
        /// rust or c
        #[arg(long, value_name = "LANGUAGE", default_value = "rust")]
        language: String,
        /// Folder of the project; ./NAME in small letters when left out
        #[arg(short, long = "output_dir", value_name = "DIR")]
        output_dir: Option<PathBuf>,
        /// Overwrite files that were edited
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        sdk: SdkArgs,
    },
}

/// Print the longer text behind an error.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  carafe explain E0024
  carafe explain unsupported-op
  carafe explain            lists all")]
pub(crate) struct ExplainArgs {
    /// E0024, 24, or a word such as UNSUPPORTED-OP
    pub code: Option<String>,
}
