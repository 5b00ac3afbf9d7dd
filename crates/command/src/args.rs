//! Every option once: parsing, `--help`, completions and the man page come from these definitions.

use crate::bench_args::BenchArgs;
use crate::c_api_args::CApiArgs;
use crate::extension_args::{ExplainArgs, ExtensionArgs, ExtgenArgs, PluginArgs};
use crate::operations_args::OperationsArgs;
use crate::quantize_args::{CompressWeightsArgs, QuantizeArgs};
use crate::view_args::ViewArgs;
use carafe::FormatOptions;
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
    /// Library with operations, rules, rewrites or kernels, or a folder of such libraries; may be given several times
    #[arg(long, alias = "extensions", value_name = "LIB|DIR", global = true, value_delimiter = ',')]
    pub extension: Vec<PathBuf>,
    /// Library with a device, as LIB or NAME=LIB; may be given several times
    #[arg(long, value_name = "[NAME=]LIB", global = true)]
    pub plugin: Vec<String>,
    /// JSON file of mappings from operations of a source format to ours, with renamed and constant attributes; may be given
    /// several times
    #[arg(long, value_name = "FILE.json", global = true)]
    pub mapping: Vec<PathBuf>,
    /// One mapping, as 'domain::Type=Operation(ours=theirs, ours=1.5)'; may be given several times
    #[arg(long, value_name = "FROM=TO", global = true)]
    pub map: Vec<String>,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Run(Box<RunArgs>),
    Bench(Box<BenchArgs>),
    View(Box<ViewArgs>),
    Convert(Box<ConvertArgs>),
    Quantize(Box<QuantizeArgs>),
    CompressWeights(Box<CompressWeightsArgs>),
    Inspect(InspectArgs),
    Query(QueryArgs),
    Devices(DevicesArgs),
    Operations(OperationsArgs),
    Conformance(ConformanceArgs),
    Cache(CacheArgs),
    CApi(CApiArgs),
    Extension(ExtensionArgs),
    Extgen(Box<ExtgenArgs>),
    Plugin(PluginArgs),
    Explain(ExplainArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// The model, and how to read it.
#[derive(Args, Debug)]
pub(crate) struct ModelArgs {
    /// Model file; the format is detected from its content (OpenVINO IR .xml; ONNX, TensorFlow,
    /// Caffe, Kaldi in binary or text; TensorFlow Lite; MXNet); or the folder of a SavedModel
    #[arg(required_unless_present_any = ["input_model", "input_proto", "input_symbol", "saved_model_dir", "input_meta_graph"])]
    pub model: Option<PathBuf>,
    /// Weights file, when it does not lie beside the model under the same name
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Shapes of inputs, as NAME[1,3,224,224],OTHER[1..8,?] or, in their order, [1,3,224,224]; for files that do not say them
    #[arg(long, value_name = "SHAPES")]
    pub shape: Option<String>,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// What only some formats understand.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FormatArgs {
    /// The same as MODEL
    #[arg(
        short = 'm',
        visible_short_alias = 'w',
        long = "input_model",
        alias = "path_to_model",
        value_name = "MODEL",
        conflicts_with = "model"
    )]
    pub input_model: Option<PathBuf>,
    /// Caffe: the .prototxt with the topology, when MODEL is the .caffemodel or not given
    #[arg(long = "input_proto", value_name = "FILE", help_heading = "Caffe")]
    pub input_proto: Option<PathBuf>,
    /// Caffe: CustomLayersMapping.xml, for layers that neither an extension nor we know
    #[arg(short = 'k', long = "custom_layers", value_name = "FILE", help_heading = "Caffe")]
    pub custom_layers: Option<PathBuf>,
    /// Caffe: output shapes of layers of that file, as NAME[1,3,8,8]; several outputs as NAME[..][..]
    #[arg(long = "layer_shapes", value_name = "LIST", help_heading = "Caffe")]
    pub layer_shapes: Option<String>,
    /// Caffe: your own caffe.proto, for parameters and field numbers that the built-in one does not have
    #[arg(long = "caffe_parser_path", value_name = "FILE.proto", help_heading = "Caffe")]
    pub caffe_parser_path: Option<PathBuf>,
    /// Caffe: also write optional parameters of custom layers that are not set and have no default
    #[arg(long = "disable_omitting_optional", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = boolean, hide_default_value = true, help_heading = "Caffe")]
    pub disable_omitting_optional: bool,
    /// Caffe: name parameters inside of others OUTER__INNER instead of INNER
    #[arg(long = "enable_flattening_nested_params", default_value = "false", default_missing_value = "true",
          num_args = 0..=1, require_equals = true, value_parser = boolean, hide_default_value = true,
          help_heading = "Caffe")]
    pub enable_flattening_nested_params: bool,
    /// MXNet: the -symbol.json with the topology, when MODEL is the .params or not given
    #[arg(long = "input_symbol", value_name = "FILE", help_heading = "MXNet")]
    pub input_symbol: Option<PathBuf>,
    /// MXNet: prefix of the arrays of a tuned model, PREFIX_args.nd and PREFIX_auxs.nd
    #[arg(long = "nd_prefix_name", value_name = "PREFIX", requires = "pretrained_model_name", help_heading = "MXNet")]
    pub nd_prefix_name: Option<PathBuf>,
    /// MXNet: the .params of the model that was tuned, for what the tuned arrays do not have
    #[arg(long = "pretrained_model_name", value_name = "FILE", requires = "nd_prefix_name", help_heading = "MXNet")]
    pub pretrained_model_name: Option<PathBuf>,
    /// MXNet: write the arrays of a tuned model as PREFIX-0000.params
    #[arg(long = "save_params_from_nd", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = boolean, hide_default_value = true, help_heading = "MXNet")]
    pub save_params_from_nd: bool,
    /// MXNet: nothing to say, symbols of old versions are brought up to date anyway
    #[arg(long = "legacy_mxnet_model", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = boolean, hide = true)]
    pub legacy_mxnet_model: bool,
    /// MXNet: nothing to say, SSD models of GluonCV are read as they are
    #[arg(long = "enable_ssd_gluoncv", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = boolean, hide = true)]
    pub enable_ssd_gluoncv: bool,
    /// TensorFlow: the folder of a SavedModel; the same as MODEL
    #[arg(long = "saved_model_dir", value_name = "DIR", conflicts_with_all = ["model", "input_model"],
          help_heading = "TensorFlow")]
    pub saved_model_dir: Option<PathBuf>,
    /// TensorFlow: a .meta file, its checkpoint beside it; the same as MODEL
    #[arg(long = "input_meta_graph", value_name = "FILE", conflicts_with_all = ["model", "input_model", "saved_model_dir"],
          help_heading = "TensorFlow")]
    pub input_meta_graph: Option<PathBuf>,
    /// TensorFlow: checkpoint with the variables of a graph that is not frozen: its prefix, one of its files, or its folder
    #[arg(long = "input_checkpoint", value_name = "FILE", help_heading = "TensorFlow")]
    pub input_checkpoint: Option<PathBuf>,
    /// TensorFlow: tags of the graph in a SavedModel, separated by commas; `serve` when left out
    #[arg(long = "saved_model_tags", value_name = "TAGS", help_heading = "TensorFlow")]
    pub saved_model_tags: Option<String>,
    /// TensorFlow and TensorFlow Lite: the signature whose inputs and outputs the model has
    #[arg(long = "signature", value_name = "KEY", help_heading = "TensorFlow")]
    pub signature: Option<String>,
    /// TensorFlow Lite: the sub-graph that is the model, by number or name; the first when left out
    #[arg(long = "subgraph", value_name = "GRAPH", help_heading = "TensorFlow")]
    pub subgraph: Option<String>,
    /// TensorFlow: the model is text, which is detected as a rule
    #[arg(long = "input_model_is_text", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = boolean, hide_default_value = true, help_heading = "TensorFlow")]
    pub input_model_is_text: bool,
    /// TensorFlow: inputs and outputs keep their order of axes anyway
    #[arg(long = "disable_nhwc_to_nchw", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = boolean, hide = true)]
    pub disable_nhwc_to_nchw: bool,
    /// Kaldi: file with the counts of states, whose shares are divided out; "" takes the priors of the model itself
    #[arg(long = "counts", value_name = "FILE", help_heading = "Kaldi")]
    pub counts: Option<String>,
    /// Kaldi: leave out a softmax that is an output
    #[arg(long = "remove_output_softmax", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = boolean, hide_default_value = true, help_heading = "Kaldi")]
    pub remove_output_softmax: bool,
    /// Kaldi: what a model remembers of earlier frames is inputs and outputs instead of variables
    #[arg(long = "remove_memory", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = boolean, hide_default_value = true, help_heading = "Kaldi")]
    pub remove_memory: bool,
    /// Refused: graphs are not written for TensorBoard
    #[arg(long = "tensorboard_logdir", value_name = "DIR", hide = true)]
    pub tensorboard_logdir: Option<PathBuf>,
    /// Refused: libraries of TensorFlow are not loaded
    #[arg(long = "tensorflow_custom_layer_libraries", value_name = "LIST", hide = true)]
    pub tensorflow_custom_layer_libraries: Option<String>,
    /// Refused: configurations of the Object Detection API are not read
    #[arg(long = "tensorflow_object_detection_api_pipeline_config", value_name = "FILE", hide = true)]
    pub tensorflow_object_detection_api_pipeline_config: Option<PathBuf>,
}

impl FormatArgs {
    /// The model and the options to read it with: as given, else by mo's name, else a topology alone.
    pub(crate) fn model<'a>(&'a self, given: Option<&'a PathBuf>) -> carafe::Result<(&'a PathBuf, FormatOptions)> {
        self.refuse()?;
        let named = [&self.input_model, &self.saved_model_dir, &self.input_meta_graph];
        if let Some(path) = given.or(named.into_iter().find_map(Option::as_ref)) {
            return Ok((path, self.options()));
        }
        let mut options = self.options();
        let topologies = [("input_proto", &self.input_proto), ("input_symbol", &self.input_symbol)];
        let alone = topologies.into_iter().find_map(|(name, path)| Some((name, path.as_ref()?)));
        let (name, path) = alone.ok_or_else(|| carafe::Error::usage("no model given"))?;
        options.remove(name);
        Ok((path, options))
    }

    // Options of mo that have no meaning here, each with what to do instead.
    fn refuse(&self) -> carafe::Result<()> {
        let refused = [
            (
                self.tensorboard_logdir.is_some(),
                "--tensorboard_logdir",
                "graphs are not written for TensorBoard; `carafe inspect --dot` draws the model",
            ),
            (
                self.tensorflow_custom_layer_libraries.is_some(),
                "--tensorflow_custom_layer_libraries",
                "libraries of TensorFlow are not loaded; an extension with the operation is, by `--extension LIB`",
            ),
            (
                self.tensorflow_object_detection_api_pipeline_config.is_some(),
                "--tensorflow_object_detection_api_pipeline_config",
                "pipeline.config is not read; models of the Object Detection API are converted as they are, and \
                 parts of them are replaced by `--transformations_config` with the numbers in `custom_attributes`",
            ),
        ];
        match refused.into_iter().find(|(given, _, _)| *given) {
            None => Ok(()),
            Some((_, option, why)) => Err(carafe::Error::usage(format!("option `{option}` is not supported: {why}"))),
        }
    }

    /// Under the names that readers know.
    fn options(&self) -> FormatOptions {
        let mut all = FormatOptions::default();
        let paths = [
            ("input_proto", &self.input_proto),
            ("custom_layers", &self.custom_layers),
            ("caffe_parser_path", &self.caffe_parser_path),
            ("input_checkpoint", &self.input_checkpoint),
            ("input_symbol", &self.input_symbol),
            ("nd_prefix_name", &self.nd_prefix_name),
            ("pretrained_model_name", &self.pretrained_model_name),
        ];
        for (name, path) in paths {
            if let Some(path) = path {
                all.set(name, path.display().to_string());
            }
        }
        let texts = [
            ("counts", &self.counts),
            ("layer_shapes", &self.layer_shapes),
            ("saved_model_tags", &self.saved_model_tags),
            ("signature", &self.signature),
            ("subgraph", &self.subgraph),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                all.set(name, text);
            }
        }
        let flags = [
            ("disable_omitting_optional", self.disable_omitting_optional),
            ("enable_flattening_nested_params", self.enable_flattening_nested_params),
            ("input_model_is_text", self.input_model_is_text),
            ("save_params_from_nd", self.save_params_from_nd),
            ("legacy_mxnet_model", self.legacy_mxnet_model),
            ("enable_ssd_gluoncv", self.enable_ssd_gluoncv),
            ("disable_nhwc_to_nchw", self.disable_nhwc_to_nchw),
            ("remove_output_softmax", self.remove_output_softmax),
            ("remove_memory", self.remove_memory),
        ];
        for (name, _) in flags.into_iter().filter(|(_, on)| *on) {
            all.set(name, "true");
        }
        all
    }
}

/// Run a model once and write or print its outputs.
#[derive(Args, Debug)]
#[command(
    after_long_help = "Inputs: NAME is a tensor name or the name of the input node; with one input NAME= may be left
out. FILE is detected from its content: .npy, .npz (one array, or one per input when NAME is left out), a PNG or JPEG image
for inputs shaped like images (resized to fit, values 0..255), anything else as raw little-endian elements. A
sequence takes the arrays of an .npz in their order; an optional without a file has no content.

Outputs: -o DIR writes DIR/<name>.npy for each output, DIR/<name>.npz with arr_0, arr_1, ... for a sequence or an
optional (names made safe for files), and DIR/outputs.json, which maps the real names, element types and shapes to the
files. Types numpy does not have (bf16, f8, 4-bit) are written as f32.

Utterances: a FILE that ends with .ark or .scp holds matrices of frames, or a vector for all frames of an utterance, in Kaldi's
forms. They are fed frame by frame, and variables are reset between utterances. -o OUT.ark takes a row for each frame, as text
where the name ends with .txt; a model with several outputs writes OUT.NAME.ark for each.

Examples:
  carafe run digits.xml -i seven.png --top 3
  carafe run bert.xml -i input_ids=ids.npy -i attention_mask=mask.npy -o out
  carafe run final.mdl -i input=feats.scp -i ivector=ivectors.ark -o scores.ark
  carafe run model.xml --fill random --seed 7 --json"
)]
pub(crate) struct RunArgs {
    /// Model file; the format is detected from its content (OpenVINO IR .xml; ONNX, TensorFlow,
    /// Caffe, Kaldi in binary or text; TensorFlow Lite; MXNet); or the folder of a SavedModel
    #[arg(required_unless_present_any = ["batch", "input_model", "input_proto", "input_symbol", "saved_model_dir", "input_meta_graph"])]
    pub model: Option<PathBuf>,
    /// Weights file, when it does not lie beside the model under the same name
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Shapes of inputs, as NAME[1,3,224,224],OTHER[1..8,?] or, in their order, [1,3,224,224]; for files that do not say them
    #[arg(long, value_name = "SHAPES", conflicts_with = "batch")]
    pub shape: Option<String>,
    #[command(flatten)]
    pub format: FormatArgs,
    /// JSON file of sub-graph replacements, as in `carafe convert`
    #[arg(
        long = "transformations_config",
        alias = "tensorflow_use_custom_operations_config",
        value_name = "FILE",
        conflicts_with = "batch"
    )]
    pub transformations_config: Option<PathBuf>,
    /// Device to run on; `carafe devices` lists them
    #[arg(short, long, default_value = "CPU")]
    pub device: String,
    /// File with custom OpenCL kernels for GPU or VPU (CONFIG_FILE); may be given several times
    #[arg(short = 'c', long = "config", value_name = "FILE.xml")]
    pub config: Vec<PathBuf>,
    /// Tensor for an input, as NAME=FILE
    #[arg(short, long = "input", value_name = "NAME=FILE")]
    pub inputs: Vec<String>,
    /// Folder to write the outputs to, or the archive of utterances
    #[arg(short, long = "output", value_name = "OUT_DIR")]
    pub output: Option<PathBuf>,
    /// Utterances: how often the first frame comes before itself; as the model says when left out
    #[arg(long = "context_window_left", alias = "cw_l", value_name = "FRAMES", help_heading = "Kaldi")]
    pub context_window_left: Option<usize>,
    /// Utterances: how often the last frame comes behind itself; as the model says when left out
    #[arg(long = "context_window_right", alias = "cw_r", value_name = "FRAMES", help_heading = "Kaldi")]
    pub context_window_right: Option<usize>,
    /// Device property as KEY=VALUE; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub property: Vec<String>,
    /// Folder that keeps compiled models, so that the next run need not compile
    #[arg(long = "cache_dir", value_name = "DIR", env = "CARAFE_CACHE_DIR")]
    pub cache_dir: Option<PathBuf>,
    /// What inputs without a file are filled with
    #[arg(long, value_enum, default_value_t = Fill::Zeros)]
    pub fill: Fill,
    /// Seed of the random fill
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Give up after this time, with exit code 1: an inference is cancelled, and what does not come back then is ended
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<std::time::Duration>,
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
    /// Tell for each node which rule, operation, kernel, device and library served it, and why
    #[arg(long, conflicts_with = "batch")]
    pub explain: bool,
    /// Print a JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Run many models in one process: a JSON list of {model, inputs: {NAME: FILE}, out, repeat, convert}
    #[arg(long, value_name = "LIST.json", conflicts_with_all = ["model", "inputs", "output", "timeout"])]
    pub batch: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    Zeros,
    Random,
}

/// Read a model, change it as asked, clean its graph and write it as OpenVINO IR (.xml and .bin).
#[derive(Args, Debug)]
#[command(
    after_long_help = "Cleaning folds constants, merges what is computed twice, drops what nothing needs or what does nothing, and
makes names unique; --log_level DEBUG tells where, and --tidy=False leaves the graph nearly as it was read. By default f32 weights
are stored as f16 and widened again by a Convert, as OpenVINO's own converter does; --compress_to_fp16=False keeps them.

Names in --input and --output are names of tensors or nodes, also inside the graph, which cuts it there: `0:conv` is
input port 0 of node conv, `conv:0` its output port 0. Names in all other options are inputs (for layouts also outputs).

An input has its channels reversed first, then the mean subtracted, then is divided by the scale. --layout 'x(nhwc->nchw)'
makes a model whose input is nhwc take nchw; the other options speak of the layout before that.

Transformations: LowLatency2[use_const_initializer=False], MakeStateful[param_res_names={'in':'out'}], Pruning, and the
names of rewrites that extensions bring. The stages of a conversion are load, extract, front, infer, middle, back, emit.

Examples:
  carafe convert model.xml -o out/model.xml --compress_to_fp16=False
  carafe convert model.onnx --output_dir out --input 'image[1,3,224,224],flag->True' --output features
  carafe convert model.onnx --output_dir out --mean_values '(123.7,116.3,103.5)' --scale 58.4 --reverse_input_channels
  carafe convert model.onnx -o out/model.xml --layout 'image(nchw->nhwc)'"
)]
pub(crate) struct ConvertArgs {
    /// Model file, or the folder of a SavedModel or of a Paddle model; the format is detected from the content
    #[arg(
        value_name = "MODEL",
        required_unless_present_any = ["input_model", "input_proto", "input_proto_short", "input_symbol", "saved_model_dir", "input_meta_graph"]
    )]
    pub model: Option<PathBuf>,
    /// Weights file, when it does not lie beside the model under the same name
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Format the model must have, one of those that can be read: onnx, tf, tflite, paddle, caffe, mxnet, kaldi, ir
    #[arg(long, value_name = "NAME")]
    pub framework: Option<String>,
    /// Where to write the .xml; the .bin goes beside it
    #[arg(
        short,
        long = "output_model",
        value_name = "OUT.xml",
        required_unless_present_any = ["output_dir", "config_update"],
        conflicts_with = "output_dir"
    )]
    pub output: Option<PathBuf>,
    /// Folder to write MODEL_NAME.xml and MODEL_NAME.bin to
    #[arg(long = "output_dir", value_name = "DIR")]
    pub output_dir: Option<PathBuf>,
    /// Name of the written model; that of the file when left out
    #[arg(short = 'n', long = "model_name", value_name = "NAME")]
    pub model_name: Option<String>,
    /// Inputs, as NAME[SHAPE]{TYPE}->VALUE with all but the name optional; a value freezes the input
    #[arg(long = "input", value_name = "LIST", help_heading = "Inputs and outputs")]
    pub inputs: Option<String>,
    /// Inputs that become constants, as NAME->VALUE; --input can say the same
    #[arg(long = "freeze_placeholder_with_value", value_name = "LIST", help_heading = "Inputs and outputs")]
    pub freeze_placeholder_with_value: Option<String>,
    /// Outputs to keep or make, in order
    #[arg(long = "output", value_name = "LIST", help_heading = "Inputs and outputs")]
    pub outputs: Option<String>,
    /// Shapes of --input or of all inputs, such as [1,3,224,224],[1..8,?]
    #[arg(long = "input_shape", value_name = "SHAPES", help_heading = "Inputs and outputs")]
    pub input_shape: Option<String>,
    /// Batch size of every input
    #[arg(short, long, value_name = "N", help_heading = "Inputs and outputs")]
    pub batch: Option<i64>,
    /// Fix what follows from the input shapes; the written model cannot be reshaped
    #[arg(long = "static_shape", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = boolean, hide_default_value = true, help_heading = "Inputs and outputs")]
    pub static_shape: bool,
    /// Order of axes, as nchw, NAME(nchw) or NAME(SOURCE->TARGET)
    #[arg(long, value_name = "LIST", help_heading = "Preprocessing")]
    pub layout: Option<String>,
    /// Order of axes in the model that is read
    #[arg(long = "source_layout", value_name = "LIST", help_heading = "Preprocessing")]
    pub source_layout: Option<String>,
    /// Order of axes in the model that is written
    #[arg(long = "target_layout", value_name = "LIST", help_heading = "Preprocessing")]
    pub target_layout: Option<String>,
    /// Subtracted from the channels of an input: (1,2,3) or NAME(1,2,3)
    #[arg(long = "mean_values", value_name = "LIST", help_heading = "Preprocessing")]
    pub mean_values: Option<String>,
    /// Mean image of Caffe (.binaryproto), subtracted from the only input
    #[arg(long = "mean_file", value_name = "FILE", help_heading = "Preprocessing")]
    pub mean_file: Option<PathBuf>,
    /// Where the input lies in the mean image, as (x,y); in its middle when left out
    #[arg(long = "mean_file_offsets", value_name = "(X,Y)", help_heading = "Preprocessing")]
    pub mean_file_offsets: Option<String>,
    /// The channels of an input are divided by these
    #[arg(long = "scale_values", value_name = "LIST", help_heading = "Preprocessing")]
    pub scale_values: Option<String>,
    /// All float inputs are divided by this
    #[arg(short, long, value_name = "X", allow_negative_numbers = true, help_heading = "Preprocessing")]
    pub scale: Option<f64>,
    /// Exchange RGB and BGR on inputs of 3 channels
    #[arg(long = "reverse_input_channels", default_value = "false", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = boolean, hide_default_value = true, help_heading = "Preprocessing")]
    pub reverse_input_channels: bool,
    /// Caffe: the same as --input_proto
    #[arg(short = 'd', value_name = "FILE", hide = true)]
    pub input_proto_short: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatArgs,
    /// JSON file of sub-graph replacements: a list of entries with `id`, `match_kind` (points, scope, general), `op` and others
    #[arg(long = "transformations_config", alias = "tensorflow_use_custom_operations_config", value_name = "FILE")]
    pub transformations_config: Option<PathBuf>,
    /// Fill in the inputs and outputs of the scopes of such a file, as they are in the model, and write nothing else
    #[arg(
        long = "tensorflow_custom_operations_config_update",
        alias = "transformations_config_update",
        value_name = "FILE",
        conflicts_with = "transformations_config"
    )]
    pub config_update: Option<PathBuf>,
    /// Rewrites to run, as NAME[KEY=VALUE;KEY=VALUE]; also those of extensions that are off by themselves
    #[arg(long, value_name = "LIST")]
    pub transform: Option<String>,
    /// Rewrites not to run, of extensions or built-in; --log_level DEBUG shows their names
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub disable: Vec<String>,
    /// Simplify the graph; False folds constants and no more
    #[arg(long, default_value = "true", default_missing_value = "true", num_args = 0..=1, require_equals = true,
          value_parser = boolean)]
    pub tidy: bool,
    /// Store f32 weights as f16
    #[arg(long = "compress_to_fp16", default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, value_parser = boolean)]
    pub compress_to_fp16: bool,
    /// Highest opset of the written model, for older versions of OpenVINO (2022.3 reads 10, 2023.3 reads 13); it is an error
    /// when a node needs a newer one. Without it too, each node is written in the oldest version that says the same
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub opset: Option<u32>,
    /// Tell for each node that was read which rule, operation and library served it, and why
    #[arg(long)]
    pub explain: bool,
    /// Print a JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// How much to tell; DEBUG says for every pass what it did and why it did not
    #[arg(long = "log_level", value_enum, ignore_case = true, default_value_t = LogLevel::Error)]
    pub log_level: LogLevel,
    /// Print nothing but errors
    #[arg(long, default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true,
          value_parser = boolean, hide_default_value = true)]
    pub silent: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
#[value(rename_all = "UPPER")]
pub(crate) enum LogLevel {
    Critical,
    Error,
    #[value(alias = "WARN")]
    Warning,
    Info,
    Debug,
    NotSet,
}

fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let time = text.parse().ok().and_then(|n| std::time::Duration::try_from_secs_f64(n).ok());
    time.filter(|t| !t.is_zero()).ok_or_else(|| "expected a number of seconds greater than 0".to_string())
}

pub(crate) fn boolean(text: &str) -> Result<bool, String> {
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
    /// Write the graph for Google's Model Explorer
    #[arg(long = "model-explorer", value_name = "OUT.json")]
    pub model_explorer: Option<PathBuf>,
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
    #[arg(short, long, default_value = "CPU")]
    pub device: String,
    /// File with custom OpenCL kernels for GPU or VPU (CONFIG_FILE); may be given several times
    #[arg(short = 'c', long = "config", value_name = "FILE.xml")]
    pub config: Vec<PathBuf>,
    /// Tell for each node which rule, operation, device and library served it, and why
    #[arg(long)]
    pub explain: bool,
    /// Ask in a process of its own: a library that crashes, exits or never answers is reported, with exit code 1
    #[arg(long)]
    pub isolate: bool,
    /// Seconds after which a process of --isolate is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 120, requires = "isolate")]
    pub timeout: u64,
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
    /// Also list devices that are built in but not here, with the reason
    #[arg(long)]
    pub missing: bool,
    /// Print a JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Put a device through every check and every operation case; exit code 1 if anything fails.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  carafe conformance -d CPU --html report.html
  carafe conformance --plugin MINE=libmine.so -d MINE --filter tensors::
  carafe conformance --plugin MINE=libmine.so -d MINE --isolate --timeout 20

A check of something the device says it cannot do (by `query`, by OPTIMIZATION_CAPABILITIES) is skipped, not failed.")]
pub(crate) struct ConformanceArgs {
    /// Device to judge
    #[arg(short, long, default_value = "CPU")]
    pub device: String,
    /// Run only what has this in its name, such as `export`, `tensors::` or `ops::Softmax`
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub filter: String,
    /// Device property for every compilation, as KEY=VALUE; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub property: Vec<String>,
    /// Also write the report as an HTML page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write the report as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// List every check and operation, not only those that are not whole
    #[arg(long)]
    pub all: bool,
    /// Seconds after which a check has failed
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub timeout: u64,
    /// Check in processes of their own: a crash, an exit or a loop of the device fails the check at hand, and the others go on
    #[arg(long)]
    pub isolate: bool,
    /// In such a process: the first step to run
    #[arg(long, hide = true, value_name = "STEP", requires = "journal", conflicts_with = "isolate")]
    pub first: Option<usize>,
    /// In such a process: where to write what happens
    #[arg(long, hide = true, value_name = "FILE", requires = "first")]
    pub journal: Option<PathBuf>,
}

/// Look after the folder of compiled models.
#[derive(Args, Debug)]
#[command(after_help = "Example: carafe cache --dir ~/.cache/carafe prune --max_size 2G")]
pub(crate) struct CacheArgs {
    #[command(subcommand)]
    pub action: CacheAction,
    /// The folder, as in `carafe run --cache_dir`
    #[arg(long, value_name = "DIR", env = "CARAFE_CACHE_DIR", global = true)]
    pub dir: Option<PathBuf>,
}

#[derive(Subcommand, Debug)]
pub(crate) enum CacheAction {
    /// List the entries, the one used last first
    List {
        /// Print a JSON object instead of text
        #[arg(long)]
        json: bool,
    },
    /// Remove what this version cannot load, and the entries longest unused beyond a size
    Prune {
        /// Most bytes to keep, as 1000000, 500M or 2G
        #[arg(long = "max_size", value_name = "SIZE")]
        max_size: Option<String>,
    },
    /// Remove all entries
    Clear,
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
