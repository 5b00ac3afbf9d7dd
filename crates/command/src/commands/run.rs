//! `carafe run`: one model once, or a list of them in one process.

use super::time_limit::TimeLimit;
use super::{print, print_json, read_shaped, use_kernel_files};
use crate::args::{Fill, RunArgs};
use crate::explain;
use crate::inputs::{Filler, bind};
use crate::outputs;
use crate::utterances::{self, Archives, Context};
use carafe::convert::{self, Conversion};
use carafe::log::Level;
use carafe::{
    CompiledModel, Content, Core, Error, InferRequest, Log, NodeProfile, NodeStatus, Properties, ReadRequest, Result,
    files, properties as names,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) fn run(core: &Core, args: &RunArgs) -> Result<()> {
    use_kernel_files(core, &args.device, &args.config)?;
    let properties = properties(core, args)?;
    let limit = TimeLimit::start(args.timeout)?;
    match &args.batch {
        Some(list) => run_batch(core, args, list, &properties, &limit),
        // What failed because it was cancelled is told as what it is: too late.
        None => run_one(core, args, &properties, &limit).or_else(|e| limit.finish().and(Err(e))),
    }
}

fn properties(core: &Core, args: &RunArgs) -> Result<Properties> {
    let mut properties = Properties::new();
    for text in &args.property {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| Error::usage(format!("property `{text}` must have the form KEY=VALUE")))?;
        properties.set(key.trim(), value);
    }
    // A device that takes no times of nodes runs all the same; what there is of times is told with the outputs.
    if args.perf && core.device(&args.device)?.properties().iter().any(|p| p.name == names::PERF_COUNT) {
        properties.set(names::PERF_COUNT, true);
    }
    if let Some(dir) = &args.cache_dir {
        properties.set("CACHE_DIR", dir.display());
    }
    Ok(properties)
}

fn run_one(core: &Core, args: &RunArgs, properties: &Properties, limit: &TimeLimit) -> Result<()> {
    let (path, options) = args.format.model(args.model.as_ref())?;
    let request = ReadRequest {
        weights: args.weights.as_deref().map(Content::File),
        explain: args.explain,
        options: Some(&options),
        ..ReadRequest::new(path)
    };
    let transformations_config = args.transformations_config.as_deref();
    let conversion = Conversion { transformations_config, ..Conversion::new(request) };
    let model = read_shaped(core, conversion, args.shape.as_deref())?;
    let compiled = core.compile_model(&model, &args.device, properties)?;
    let said = |text: String| crate::log::print(Level::Info, &text);
    let filler = Filler { random: args.fill == Fill::Random, seed: args.seed, said: Some(&said) };
    let given: Vec<(Option<String>, PathBuf)> = args.inputs.iter().map(|s| split_input(s)).collect();
    if given.iter().any(|(_, path)| utterances::is_archive(path)) {
        return run_utterances(args, path, &compiled, &model, &given, limit);
    }
    let (request, took) = infer(&compiled, &model, &given, &filler, args.repeat, limit)?;
    limit.finish()?;
    let results = outputs::collect(&compiled, &model, &request)?;
    let files = match &args.output {
        Some(dir) => Some(outputs::write(dir, &results)?),
        None => None,
    };
    let labels = args.labels.as_deref().map(read_labels).transpose()?;
    let profile = request.profile()?;
    let explained = args.explain.then(|| {
        let mut rows = core.explain(&model);
        core.explain_compiled(&mut rows, &args.device, &compiled, &profile);
        rows
    });
    if args.json {
        let mut list = Vec::new();
        for (i, r) in results.iter().enumerate() {
            let mut row = outputs::result_json(r, files.as_ref().map(|f| f[i].as_str()));
            if let Some(k) = args.top {
                row["top"] = outputs::top_json(r, k, labels.as_deref())?;
            }
            list.push(row);
        }
        let profile: Vec<_> = profile.iter().map(profile_json).collect();
        let cached = compiled.property("LOADED_FROM_CACHE").is_ok_and(|v| v == "true");
        let mut all = json!({
            "model": path, "device": args.device, "loaded_from_cache": cached, "outputs": list, "profile": profile,
        });
        if let Some(rows) = &explained {
            all["explain"] = explain::list(rows);
        }
        return print_json(&all);
    }
    let mut out = String::new();
    for r in &results {
        out.push_str(&match args.top {
            Some(k) => outputs::top_text(r, k, labels.as_deref())?,
            None => outputs::result_text(r)?,
        });
    }
    if args.perf {
        out.push_str(&profile_text(&args.device, &profile, took));
        // Devices that plan their memory tell how much it is.
        if let Ok(memory) = compiled.property("CPU_MEMORY_STATISTICS") {
            let _ = writeln!(out, "bytes: {memory}");
        }
    }
    if let Some(rows) = &explained {
        out.push_str(&explain::table(rows));
    }
    if let Some(dir) = &args.output {
        let _ = writeln!(out, "written to {}", dir.join("outputs.json").display());
    }
    print(&out)
}

// Every utterance of the archives.
fn run_utterances(
    args: &RunArgs,
    path: &Path,
    compiled: &CompiledModel,
    model: &carafe::Model,
    given: &[(Option<String>, PathBuf)],
    limit: &TimeLimit,
) -> Result<()> {
    let context = Context::of(model, args.context_window_left, args.context_window_right);
    let archives = Archives::read(compiled.inputs(), model, given)?;
    let request = compiled.create_infer_request();
    limit.cancels(request.cancel_flag());
    let all = archives.run(compiled, &request, context, &|| limit.check())?;
    limit.finish()?;
    let names: Vec<String> = compiled.outputs().iter().map(|p| p.name.clone()).collect();
    let files = match &args.output {
        Some(to) => utterances::write(to, &names, &all)?,
        None => vec![],
    };
    if args.json {
        let rows = all.iter().map(|u| {
            let shapes: BTreeMap<&str, &[usize]> =
                names.iter().map(String::as_str).zip(u.outputs.iter().map(|o| o.shape())).collect();
            json!({ "key": u.key, "frames": u.frames, "outputs": shapes })
        });
        let rows: Vec<Value> = rows.collect();
        let context = json!({ "left": context.left, "right": context.right });
        return print_json(&json!({
            "model": path, "device": args.device, "context": context, "utterances": rows, "files": files,
        }));
    }
    let mut out = String::new();
    for u in &all {
        let shapes: Vec<String> = u.outputs.iter().map(|o| format!("{:?}", o.shape())).collect();
        let _ = writeln!(out, "{}: {} frames, {}", u.key, u.frames, shapes.join(" "));
    }
    for file in files {
        let _ = writeln!(out, "written to {}", file.display());
    }
    print(&out)
}

fn infer(
    compiled: &CompiledModel,
    model: &carafe::Model,
    given: &[(Option<String>, PathBuf)],
    filler: &Filler<'_>,
    repeat: usize,
    limit: &TimeLimit,
) -> Result<(InferRequest, Duration)> {
    let request = compiled.create_infer_request();
    limit.cancels(request.cancel_flag());
    for (i, tensor) in bind(compiled.inputs(), model, given, Some(filler))?.into_iter().enumerate() {
        request.set_input(i, tensor)?;
    }
    let mut took = Duration::ZERO;
    for _ in 0..repeat.max(1) {
        limit.check()?;
        let start = Instant::now();
        request.infer(())?;
        took = start.elapsed();
    }
    Ok((request, took))
}

// `NAME=FILE`, or `FILE` alone. A path may hold `=` itself, so an existing file wins.
pub(super) fn split_input(text: &str) -> (Option<String>, PathBuf) {
    match text.split_once('=') {
        Some((name, file)) if !Path::new(text).exists() => (Some(name.to_string()), file.into()),
        _ => (None, text.into()),
    }
}

fn read_labels(path: &Path) -> Result<Vec<String>> {
    let text = files::read_text(path).map_err(|e| Error::io(format!("cannot read labels `{}`", path.display()), &e))?;
    Ok(text.lines().map(str::to_string).collect())
}

fn profile_json(p: &NodeProfile) -> serde_json::Value {
    json!({
        "name": p.name, "type": p.type_name, "kernel": p.kernel, "status": status(p.status),
        "real_us": p.real_time.as_micros() as u64, "cpu_us": p.cpu_time.as_micros() as u64,
    })
}

fn status(s: NodeStatus) -> &'static str {
    match s {
        NodeStatus::NotRun => "NOT_RUN",
        NodeStatus::OptimizedOut => "OPTIMIZED_OUT",
        NodeStatus::Executed => "EXECUTED",
    }
}

fn profile_text(device: &str, profile: &[NodeProfile], took: Duration) -> String {
    let mut out = String::new();
    if profile.is_empty() {
        let _ = writeln!(out, "{device} gives no times of nodes");
        let _ = writeln!(out, "{:>10} us  whole inference", took.as_micros());
        return out;
    }
    for p in profile.iter().filter(|p| p.status == NodeStatus::Executed) {
        let _ = writeln!(out, "{:>10} us  {:<12} {} ({})", p.real_time.as_micros(), p.kernel, p.name, p.type_name);
    }
    let total: Duration = profile.iter().map(|p| p.real_time).sum();
    let _ = writeln!(out, "{:>10} us  total", total.as_micros());
    out
}

/// One entry of a batch list.
struct BatchItem {
    model: PathBuf,
    inputs: BTreeMap<String, PathBuf>,
    /// Folder for outputs.json and the tensors, or error.txt.
    out: PathBuf,
    repeat: usize,
    /// Also write the model, uncompressed, to this .xml.
    convert: Option<PathBuf>,
}

impl BatchItem {
    fn of(value: &Value) -> std::result::Result<BatchItem, String> {
        let fields = value.as_object().ok_or_else(|| format!("an entry must be an object, found {value}"))?;
        const KNOWN: [&str; 5] = ["model", "inputs", "out", "repeat", "convert"];
        if let Some(name) = fields.keys().find(|name| !KNOWN.contains(&name.as_str())) {
            return Err(format!("unknown field `{name}`, expected one of {}", KNOWN.join(", ")));
        }
        let path = |name: &str, value: &Value| {
            value.as_str().map(PathBuf::from).ok_or_else(|| format!("`{name}` must be a path, found {value}"))
        };
        let required = |name: &str| path(name, fields.get(name).ok_or_else(|| format!("missing field `{name}`"))?);
        let inputs = match fields.get("inputs") {
            Some(list) => list.as_object().ok_or_else(|| format!("`inputs` must be an object, found {list}"))?,
            None => &serde_json::Map::new(),
        };
        let inputs = inputs.iter().map(|(name, value)| Ok((name.clone(), path(name, value)?)));
        Ok(BatchItem {
            model: required("model")?,
            inputs: inputs.collect::<std::result::Result<_, String>>()?,
            out: required("out")?,
            repeat: match fields.get("repeat") {
                Some(n) => {
                    n.as_u64().map(|n| n as usize).ok_or_else(|| format!("`repeat` must be a count, found {n}"))?
                }
                None => 1,
            },
            convert: match fields.get("convert") {
                Some(Value::Null) | None => None,
                Some(to) => Some(path("convert", to)?),
            },
        })
    }
}

fn run_batch(core: &Core, args: &RunArgs, list: &Path, properties: &Properties, limit: &TimeLimit) -> Result<()> {
    let shown = list.display();
    let text = files::read_text(list).map_err(|e| Error::io(format!("cannot read `{shown}`"), &e))?;
    let wrong = |why: String| Error::invalid(format!("batch list `{shown}`: {why}"));
    let entries: Vec<Value> = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    let items: Vec<BatchItem> =
        entries.iter().map(BatchItem::of).collect::<std::result::Result<_, _>>().map_err(wrong)?;
    let (total, mut failed) = (items.len(), 0);
    for item in items {
        if let Err(e) = run_item(core, args, &item, properties, limit) {
            failed += 1;
            let file = item.out.join("error.txt");
            std::fs::create_dir_all(&item.out)
                .and_then(|()| files::write(&file, format!("{e}\n").as_bytes()))
                .map_err(|e| Error::io(format!("cannot write `{}`", file.display()), &e))?;
        }
    }
    print(&format!("{} of {total} models ran\n", total - failed))
}

fn run_item(core: &Core, args: &RunArgs, item: &BatchItem, properties: &Properties, limit: &TimeLimit) -> Result<()> {
    let model = core.read_model(&item.model)?;
    if let Some(to) = &item.convert {
        let converted = Conversion::new(ReadRequest::new(&item.model)).run(core)?;
        convert::emit(&converted.model, to, &Log::default())?;
    }
    let compiled = core.compile_model(&model, &args.device, properties)?;
    let given: Vec<_> = item.inputs.iter().map(|(n, f)| (Some(n.clone()), f.clone())).collect();
    let filler = Filler { random: args.fill == Fill::Random, seed: args.seed, said: None };
    let (request, _) = infer(&compiled, &model, &given, &filler, item.repeat, limit)?;
    outputs::write(&item.out, &outputs::collect(&compiled, &model, &request)?)?;
    Ok(())
}
