//! Options of `carafe bench`: those of OpenVINO's `benchmark_app`, under its names, and ours. Its long options stand behind one dash;
//! [`two_dashes`] turns them into what the parser takes.

use crate::args::{FormatArgs, boolean};
use carafe_bench::{Api, CounterReport};
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Measure latency and throughput of a model, as OpenVINO's benchmark_app does and under the names of its options.
#[derive(Args, Debug)]
#[command(
    after_long_help = "Long options may stand behind one dash, as benchmark_app takes them: -niter 100 is --niter 100.

Without -t and -niter the run takes 60 seconds; with both it goes on until both are reached. The hint is throughput with requests
in the background, as many as the device says; -hint latency, or -api sync, runs one inference behind the other.

Inputs without a file are filled with random values. Sizes that the model leaves open are 1, those of pictures 256; -shape fixes
them in the model, -data_shape gives the shapes of the data and leaves the model open; several shapes of an input take turns.

Reports: -report_type writes benchmark_report.csv and, with counters, benchmark_average_counters_report.csv or its kin to
-report_folder (.json with -json_stats); --html writes a page with a histogram of latencies and the time of every node.

Examples:
  carafe bench -m model.xml -d CPU -hint latency -t 10
  carafe bench model.onnx --shape 'image[1,3,640,640]' -t 5 --html report.html -pc
  carafe bench -m model.xml -niter 100 -nireq 4 -report_type average_counters -report_folder out
  carafe bench -m model.xml -d GPU -c kernels.xml --extension libmine.so"
)]
pub(crate) struct BenchArgs {
    /// Model file; the format is detected from its content. Or an exported model (.blob)
    #[arg(required_unless_present_any = ["input_model", "input_proto", "input_symbol", "saved_model_dir", "input_meta_graph"])]
    pub model: Option<PathBuf>,
    /// Weights file, when it does not lie beside the model under the same name
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatArgs,
    /// Device to run on; `carafe devices` lists them
    #[arg(short, long, alias = "target_device", default_value = "CPU")]
    pub device: String,
    /// What the device shall be good at
    #[arg(long, alias = "perf_hint", value_enum)]
    pub hint: Option<Hint>,
    /// Run this often; 0 compiles the model and ends
    #[arg(long, alias = "number_iterations", value_name = "N")]
    pub niter: Option<usize>,
    /// Run this many seconds
    #[arg(short, long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub time: Option<f64>,
    /// Requests that run at once
    #[arg(long, alias = "number_infer_requests", value_name = "N")]
    pub nireq: Option<usize>,
    /// Streams of the device, as N or CPU:N,GPU:M
    #[arg(long, alias = "number_streams", value_name = "N")]
    pub nstreams: Option<String>,
    /// Threads of CPU
    #[arg(long, alias = "number_threads", value_name = "N")]
    pub nthreads: Option<usize>,
    /// Keep each thread of CPU on one processor
    #[arg(long, alias = "infer_threads_pinning", value_name = "YES|NO", value_parser = boolean)]
    pub pin: Option<bool>,
    /// Start inferences one behind the other, or several at once
    #[arg(long, alias = "api_type", value_enum)]
    pub api: Option<ApiArg>,
    /// Type that floats are computed in, as bf16 or CPU:bf16,GPU:f16
    #[arg(long = "infer_precision", value_name = "TYPE")]
    pub infer_precision: Option<String>,
    /// Most samples in a second
    #[arg(long = "max_irate", alias = "maximum_inference_rate", value_name = "N")]
    pub max_irate: Option<f64>,
    /// Bind inputs once before the loop (true) or before every inference (false); true unless shapes take turns
    #[arg(long = "inference_only", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", value_parser = boolean)]
    pub inference_only: Option<bool>,
    /// Do not run once before time is taken
    #[arg(long = "no_warmup")]
    pub no_warmup: bool,
    /// Size of the batch axis of every input
    #[arg(short, long = "batch_size", value_name = "N", help_heading = "Inputs")]
    pub batch: Option<i64>,
    /// Shapes of the inputs of the model, as NAME[1,3,224,224],OTHER[1..8,?] or [1,3,224,224]
    #[arg(long, value_name = "SHAPES", help_heading = "Inputs")]
    pub shape: Option<String>,
    /// Shapes of the data, as NAME[1,3,224,224][1,3,448,448] or [1,3,224,224]
    #[arg(long = "data_shape", value_name = "SHAPES", help_heading = "Inputs")]
    pub data_shape: Option<String>,
    /// Order of axes of inputs and outputs, as NAME[nchw] or nchw
    #[arg(long, value_name = "LIST", help_heading = "Inputs")]
    pub layout: Option<String>,
    /// File for an input, as NAME=FILE, NAME:FILE or FILE: .npy, .npz, pictures, raw bytes; a folder gives its first file
    #[arg(short, long = "input", alias = "paths_to_input", value_name = "NAME=FILE", help_heading = "Inputs")]
    pub inputs: Vec<String>,
    /// Seed of random inputs
    #[arg(long, default_value_t = 0, help_heading = "Inputs")]
    pub seed: u64,
    /// File with custom OpenCL kernels for GPU or VPU (CONFIG_FILE); may be given several times
    #[arg(
        short = 'c',
        long = "config",
        alias = "path_to_cldnn_config",
        value_name = "FILE.xml",
        help_heading = "Device"
    )]
    pub config: Vec<PathBuf>,
    /// Device property as KEY=VALUE; may be given several times
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Device")]
    pub property: Vec<String>,
    /// Folder that keeps compiled models
    #[arg(long = "cache_dir", alias = "cdir", value_name = "DIR", env = "CARAFE_CACHE_DIR", help_heading = "Device")]
    pub cache_dir: Option<PathBuf>,
    /// JSON file with properties of devices, as {"CPU": {"NUM_STREAMS": "3"}}; options stand in front of it
    #[arg(long = "load_config", value_name = "FILE", help_heading = "Device")]
    pub load_config: Option<PathBuf>,
    /// Write such a file with what was set
    #[arg(long = "dump_config", value_name = "FILE", help_heading = "Device")]
    pub dump_config: Option<PathBuf>,
    /// Take and print the time of every node
    #[arg(long, alias = "perf_counts", value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", value_parser = boolean,
          help_heading = "Reports")]
    pub pc: Option<bool>,
    /// Take and print the time of every node, the longest first
    #[arg(long, alias = "perf_counts_sort", value_enum, help_heading = "Reports")]
    pub pcsort: Option<CounterSort>,
    /// Also tell the latencies of each group of data shapes
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL", value_parser = boolean, help_heading = "Reports")]
    pub pcseq: Option<bool>,
    /// Which of a hundred latencies is told beside the median
    #[arg(long = "latency_percentile", value_name = "PERCENT", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=100), help_heading = "Reports")]
    pub latency_percentile: u32,
    /// Write reports
    #[arg(long = "report_type", value_enum, help_heading = "Reports")]
    pub report_type: Option<ReportType>,
    /// Folder for reports; this one when left out
    #[arg(long = "report_folder", value_name = "DIR", help_heading = "Reports")]
    pub report_folder: Option<PathBuf>,
    /// Reports are JSON instead of CSV
    #[arg(long = "json_stats", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL", value_parser = boolean, help_heading = "Reports")]
    pub json_stats: Option<bool>,
    /// Write the graph that really runs as IR
    #[arg(long = "exec_graph_path", value_name = "FILE.xml", help_heading = "Reports")]
    pub exec_graph_path: Option<PathBuf>,
    /// Write a page with a histogram of latencies and a chart of the times of nodes
    #[arg(long, value_name = "FILE", help_heading = "Reports")]
    pub html: Option<PathBuf>,
    /// Print a JSON object instead of text
    #[arg(long, help_heading = "Reports")]
    pub json: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
#[value(rename_all = "snake_case")]
pub(crate) enum Hint {
    #[value(alias = "tput")]
    Throughput,
    #[value(alias = "ctput")]
    CumulativeThroughput,
    Latency,
    None,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApiArg {
    Sync,
    Async,
}

impl From<ApiArg> for Api {
    fn from(api: ApiArg) -> Api {
        match api {
            ApiArg::Sync => Api::Sync,
            ApiArg::Async => Api::Async,
        }
    }
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
#[value(rename_all = "snake_case")]
pub(crate) enum CounterSort {
    Sort,
    NoSort,
    SimpleSort,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
#[value(rename_all = "snake_case")]
pub(crate) enum ReportType {
    #[value(name = "no_counters", alias = "no-counters")]
    Totals,
    #[value(name = "average_counters", alias = "average-counters")]
    Average,
    #[value(name = "detailed_counters", alias = "detailed-counters")]
    Detailed,
}

impl ReportType {
    pub(crate) fn counters(self) -> CounterReport {
        match self {
            ReportType::Totals => CounterReport::None,
            ReportType::Average => CounterReport::Average,
            ReportType::Detailed => CounterReport::Detailed,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            ReportType::Totals => "no_counters",
            ReportType::Average => "average_counters",
            ReportType::Detailed => "detailed_counters",
        }
    }
}

/// Names that benchmark_app takes behind one dash, and which are more than one letter.
const ONE_DASH: &[&str] = &[
    "hint",
    "niter",
    "nireq",
    "nstreams",
    "nthreads",
    "pin",
    "api",
    "infer_precision",
    "max_irate",
    "inference_only",
    "no_warmup",
    "shape",
    "data_shape",
    "layout",
    "extensions",
    "cdir",
    "cache_dir",
    "load_config",
    "dump_config",
    "pc",
    "pcsort",
    "pcseq",
    "latency_percentile",
    "report_type",
    "report_folder",
    "json_stats",
    "exec_graph_path",
];

/// The arguments of the process; behind `bench`, long options with one dash have two.
pub(crate) fn two_dashes(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let (mut benched, mut ended) = (false, false);
    let change = |arg: OsString| {
        let Some(text) = arg.to_str() else { return arg };
        benched |= text == "bench";
        ended |= text == "--";
        let name = text.strip_prefix('-').map(|t| t.split('=').next().unwrap_or(t));
        match name {
            Some(name) if benched && !ended && ONE_DASH.contains(&name) => format!("-{text}").into(),
            _ => arg,
        }
    };
    args.into_iter().map(change).collect()
}
