//! `carafe convert`: read, change as asked, clean, write.

use super::{print, print_json};
use crate::args::{ConvertArgs, LogLevel};
use crate::explain;
use crate::progress::ProgressLine;
use carafe::conversion::{self, ConversionOptions};
use carafe::passes::{COMMON, CompressToFp16, FUSE, TIDY};
use carafe::{Core, Error, Explained, Model, Notes, Pass, Phase, Progress, ReadRequest, Result, run_passes};
use serde_json::json;
use std::path::{Path, PathBuf};

pub(crate) fn run(core: &Core, args: &ConvertArgs) -> Result<()> {
    let path = args.model.as_ref().or(args.input_model.as_ref()).ok_or_else(|| Error::usage("no model given"))?;
    if let Some(framework) = &args.framework {
        check_framework(framework, core.format_of(path)?, path)?;
    }
    let line = ProgressLine::new(args.silent);
    let steps = |done: usize, total: usize, what: &str| line.steps(done, total, what);
    let request = ReadRequest { weights: args.weights.as_deref(), explain: args.explain, ..ReadRequest::new(path) };
    let mut model = core.read(&ReadRequest { progress: Progress::to(&steps), ..request })?;
    let explained = args.explain.then(|| core.explain(&model));
    if args.explain {
        Explained::detach(&mut model)?;
    }
    let debug = matches!(args.log_level, LogLevel::Debug | LogLevel::NotSet);
    let mut notes = if debug { Notes::enabled() } else { Notes::default() };
    if let Some(config) = &args.transformations_config {
        let place = format!("transformations config `{}`", config.display());
        let text = std::fs::read_to_string(config).map_err(|e| Error::io("cannot read", &e).at(place.clone()))?;
        let n = conversion::apply_config(&mut model, &text, core, &mut notes).map_err(|e| e.at(place.clone()))?;
        if n == 0 && !args.silent {
            eprintln!("[ WARNING ] {place}: no replacement matches this model");
        }
    }
    conversion::apply(&mut model, &options(args))?;
    if let Some(name) = &args.model_name {
        model.name = name.clone();
    }
    let output = output(args, path)?;
    let how = How { tidy: args.tidy, static_shape: args.static_shape, compress_to_fp16: args.compress_to_fp16 };
    let written = convert(core, model, &output, how, &mut notes, &line);
    line.clear();
    for line in notes.lines.iter().filter(|_| !args.silent) {
        eprintln!("[ DEBUG ] {line}");
    }
    written?;
    if args.silent {
        return Ok(());
    }
    let weights = output.with_extension("bin");
    if args.json {
        let mut all = json!({"model": path, "xml": output, "bin": weights});
        if let Some(rows) = &explained {
            all["explain"] = explain::list(rows);
        }
        return print_json(&all);
    }
    let table = explained.map(|rows| explain::table(&rows)).unwrap_or_default();
    print(&format!("{}\n{}\n{table}", output.display(), weights.display()))
}

fn options(args: &ConvertArgs) -> ConversionOptions {
    ConversionOptions {
        input: args.inputs.clone(),
        output: args.outputs.clone(),
        input_shape: args.input_shape.clone(),
        batch: args.batch,
        layout: args.layout.clone(),
        source_layout: args.source_layout.clone(),
        target_layout: args.target_layout.clone(),
        mean_values: args.mean_values.clone(),
        scale_values: args.scale_values.clone(),
        scale: args.scale,
        reverse_input_channels: args.reverse_input_channels,
        static_shape: args.static_shape,
        transform: args.transform.clone(),
    }
}

// The .xml to write: as given, or in the folder under the name of the model.
fn output(args: &ConvertArgs, model: &Path) -> Result<PathBuf> {
    if let Some(output) = &args.output {
        return Ok(output.clone());
    }
    let folder = args.output_dir.as_ref().ok_or_else(|| Error::usage("no output given; use -o or --output_dir"))?;
    let stem = model.file_stem().map(|s| s.to_string_lossy().into_owned());
    let stem = stem.filter(|s| !s.is_empty() && !s.starts_with('.')).unwrap_or_else(|| "model".to_string());
    let name = args.model_name.clone().unwrap_or(stem);
    if name.is_empty() || name.contains(['/', '\\']) {
        return Err(Error::usage(format!("model name `{name}` cannot be the name of a file; use -o to say where")));
    }
    Ok(folder.join(format!("{name}.xml")))
}

/// Names of formats as users type them, and how each begins when readers spell it out, in small letters without spaces.
const FRAMEWORKS: &[(&str, &str)] = &[
    ("onnx", "onnx"),
    ("ir", "openvino"),
    ("tf", "tensorflow"),
    ("tflite", "tensorflowlite"),
    ("paddle", "paddle"),
    ("caffe", "caffe"),
    ("mxnet", "mxnet"),
    ("kaldi", "kaldi"),
];

fn check_framework(framework: &str, format: &str, path: &Path) -> Result<()> {
    let wanted = framework.to_ascii_lowercase();
    let Some((_, start)) = FRAMEWORKS.iter().find(|(name, _)| *name == wanted) else {
        let known: Vec<&str> = FRAMEWORKS.iter().map(|(name, _)| *name).collect();
        return Err(Error::usage(format!("framework `{framework}` is unknown; known: {}", known.join(", "))));
    };
    let found = format.to_ascii_lowercase().replace(' ', "");
    let lite = |name: &str| name.contains("lite");
    if found.starts_with(start) && lite(&found) == lite(start) {
        return Ok(());
    }
    let shown = path.display();
    Err(Error::usage(format!("`{shown}` is {format}, not {framework}; leave --framework out to read it as it is")))
}

/// What happens to a model between reading and writing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    /// Simplify the graph; otherwise constants are folded and no more.
    pub tidy: bool,
    /// What depends on input shapes need not stay computed.
    pub static_shape: bool,
    pub compress_to_fp16: bool,
}

/// Cleans a model and writes it.
pub(crate) fn convert(
    core: &Core,
    mut model: Model,
    output: &Path,
    how: How,
    notes: &mut Notes,
    line: &ProgressLine,
) -> Result<()> {
    if output.extension().is_none_or(|e| !e.eq_ignore_ascii_case("xml")) {
        return Err(Error::usage(format!("output `{}` must end with .xml", output.display())));
    }
    line.stage("cleaning the model");
    core.run_phase(&mut model, Phase::Middle, notes)?;
    let all: Vec<&dyn Pass> = TIDY.iter().chain(FUSE).chain(COMMON).copied().collect();
    let passes = if how.tidy { all.as_slice() } else { COMMON };
    if how.static_shape {
        run_passes(&mut model, passes, notes)?;
        model.infer()?;
    } else {
        conversion::run_reshapable(&mut model, passes, notes)?;
    }
    core.run_phase(&mut model, Phase::Back, notes)?;
    if how.compress_to_fp16 {
        run_passes(&mut model, &[&CompressToFp16], notes)?;
    }
    if let Some(folder) = output.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder)
            .map_err(|e| Error::io(format!("cannot create folder `{}`", folder.display()), &e))?;
    }
    core.record_extensions(&mut model);
    line.stage("writing the model");
    let options = carafe::ir::WriteOptions { runtime_version: Some(format!("carafe {}", carafe::VERSION)) };
    carafe::ir::write_file(&model, output, &options).map_err(|e| e.at(format!("output `{}`", output.display())))
}
