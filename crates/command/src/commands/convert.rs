//! `carafe convert`: read, change as asked, clean, write.

use super::{print, print_json};
use crate::args::{ConvertArgs, LogLevel};
use crate::explain;
use crate::progress::ProgressLine;
use carafe::convert::{self, Conversion, ConversionOptions};
use carafe::log::Level;
use carafe::{Content, Core, Error, Log, Progress, ReadRequest, Result, files};
use serde_json::json;
use std::path::{Path, PathBuf};

pub(crate) fn run(core: &Core, args: &ConvertArgs) -> Result<()> {
    // Of the two names of the topology the short one is ours to bring together with the other.
    let mut format_args = args.format.clone();
    format_args.input_proto = args.input_proto_short.clone().or(format_args.input_proto);
    let (path, format) = format_args.model(args.model.as_ref())?;
    if let Some(framework) = &args.framework {
        check_framework(framework, core.format_of(path)?, path)?;
    }
    let line = ProgressLine::new(args.silent);
    let steps = |done: usize, total: usize, what: &str| line.steps(done, total, what);
    let hear = |level: Level, text: &str| {
        line.clear();
        if !args.silent {
            crate::log::print(level, text);
        }
    };
    let debug = matches!(args.log_level, LogLevel::Debug | LogLevel::NotSet);
    let request = ReadRequest {
        weights: args.weights.as_deref().map(Content::File),
        explain: args.explain,
        progress: Progress::to(&steps),
        options: Some(&format),
        log: Log::to(&hear, debug),
        ..ReadRequest::new(path)
    };
    if let Some(config) = &args.config_update {
        return update(core, &request, config);
    }
    let output = output(args, path)?;
    let conversion = Conversion {
        options: options(args),
        transformations_config: args.transformations_config.as_deref(),
        disable: args.disable.clone(),
        model_name: args.model_name.clone(),
        tidy: args.tidy,
        compress_to_fp16: args.compress_to_fp16,
        ..Conversion::new(request)
    };
    let converted = conversion.run(core).and_then(|converted| {
        line.stage("writing the model");
        convert::emit_up_to(&converted.model, &output, args.opset, &request.log).map(|()| converted)
    });
    line.clear();
    let converted = converted?;
    if args.silent {
        return Ok(());
    }
    let weights = output.with_extension("bin");
    if args.json {
        let mut all = json!({"model": path, "xml": output, "bin": weights});
        if let Some(rows) = &converted.explained {
            all["explain"] = explain::list(rows);
        }
        return print_json(&all);
    }
    let table = converted.explained.map(|rows| explain::table(&rows)).unwrap_or_default();
    print(&format!("{}\n{}\n{table}", output.display(), weights.display()))
}

// Fills in the scopes of a replacement file.
fn update(core: &Core, request: &ReadRequest<'_>, config: &Path) -> Result<()> {
    let location = || format!("transformations config `{}`", config.display());
    let text = files::read_text(config).map_err(|e| Error::io("cannot read", &e).at(location()))?;
    let model = match core.read_decoded(request)? {
        Some(model) => model,
        None => core.read(request)?,
    };
    let text = convert::update_config(&model, &text).map_err(|e| e.at(location()))?;
    files::write(config, text.as_bytes()).map_err(|e| Error::io("cannot write", &e).at(location()))?;
    print(&format!("{}\n", config.display()))
}

fn options(args: &ConvertArgs) -> ConversionOptions {
    ConversionOptions {
        input: args.inputs.clone(),
        freeze_placeholder_with_value: args.freeze_placeholder_with_value.clone(),
        output: args.outputs.clone(),
        input_shape: args.input_shape.clone(),
        batch: args.batch,
        layout: args.layout.clone(),
        source_layout: args.source_layout.clone(),
        target_layout: args.target_layout.clone(),
        mean_values: args.mean_values.clone(),
        mean_file: args.mean_file.clone(),
        mean_file_offsets: args.mean_file_offsets.clone(),
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

/// Those of the names that a reader is there for, as the help of `--framework` has them.
const READABLE: &str = "onnx, tf, tflite, paddle, caffe, mxnet, kaldi, ir";

fn check_framework(framework: &str, format: &str, path: &Path) -> Result<()> {
    let wanted = framework.to_ascii_lowercase();
    let Some((_, start)) = FRAMEWORKS.iter().find(|(name, _)| *name == wanted) else {
        return Err(Error::usage(format!("framework `{framework}` is unknown; {READABLE} can be read")));
    };
    let found = format.to_ascii_lowercase().replace(' ', "");
    let lite = |name: &str| name.contains("lite");
    if found.starts_with(start) && lite(&found) == lite(start) {
        return Ok(());
    }
    let shown = path.display();
    Err(Error::usage(format!("`{shown}` is {format}, not {framework}; leave --framework out to read it as it is")))
}
