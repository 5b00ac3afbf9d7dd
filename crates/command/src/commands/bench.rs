//! `carafe bench`: the steps of benchmark_app. What is measured and how reports look is `carafe_bench`'s.

use super::bench_config::configure;
use super::bench_inputs::groups;
use super::bench_text::{Teller, counters, milliseconds};
use super::{print_json, shape_options, use_kernel_files};
use crate::bench_args::{BenchArgs, CounterSort, Hint};
use crate::progress::ProgressLine;
use carafe::convert::{self, Conversion, ConversionOptions, apply};
use carafe::preprocess::Layout;
use carafe::{
    CompiledModel, Content, Core, Error, Log, Model, NodeProfile, NodeStatus, Port, Properties, ReadRequest, Result,
    files, properties as names,
};
use carafe_bench::{Api, DeviceConfig, Latency, Report, Settings, hardware_devices, measure};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Without a limit a run takes this long.
const DEFAULT_TIME: Duration = Duration::from_secs(60);

pub(crate) fn run(core: &Core, args: &BenchArgs) -> Result<()> {
    let tell = Teller::new(args.json);
    tell.step("")?;
    tell.info("Parsing input parameters")?;
    let (path, _) = args.format.model(args.model.as_ref())?;
    let limits = Limits::of(args)?;

    tell.step("")?;
    versions(core, args, &tell)?;
    use_kernel_files(core, &args.device, &args.config)?;
    for file in &args.config {
        tell.info(format!("Kernel file is loaded: {}", file.display()))?;
    }

    tell.step("")?;
    let mut config = configure(core, args, limits.api, &tell)?;
    let properties = config.of(&args.device).clone();

    let mut stages = vec![];
    let is_blob = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("blob"));
    let prepared = match is_blob {
        true => import(core, args, path, &properties, &tell, &mut stages)?,
        false => compile(core, args, path, &properties, &tell, &mut stages)?,
    };
    let Prepared { model, compiled } = prepared;
    if args.niter == Some(0) {
        tell.info("Model compiled successfully. Skipping inference due to -niter 0.")?;
        for _ in 8..11 {
            tell.step("skipped")?;
        }
        tell.step("")?;
        return dump_config(args, &config, &tell);
    }

    tell.step("")?;
    tell_properties(core, args, &model, &compiled, &tell)?;

    tell.step("")?;
    let data = groups(args, &model, &compiled, &tell)?;
    let fill_each = match args.inference_only {
        Some(true) if data.names.len() > 1 => {
            return Err(Error::usage(
                "several shapes or files take turns, so inputs are bound in the loop: leave -inference_only out",
            ));
        }
        Some(only) => !only,
        None => data.names.len() > 1,
    };
    let requests = match limits.api {
        Api::Sync => 1,
        Api::Async => args.nireq.filter(|n| *n > 0).unwrap_or_else(|| optimal(&compiled)),
    };
    let iterations = aligned(limits.iterations, requests, data.names.len(), limits.api, &tell)?;

    tell.step(&plan_text(limits, requests, iterations, args))?;
    tell.info(match fill_each {
        false => "Benchmarking in inference only mode (inputs filling are not included in measurement loop).",
        true => "Benchmarking in full mode (inputs filling are included in measurement loop).",
    })?;
    let settings = Settings {
        api: limits.api,
        requests,
        iterations,
        duration: limits.duration,
        fill_each,
        max_rate: args.max_irate.unwrap_or(0.0),
        warm_up: !args.no_warmup,
    };
    let line = ProgressLine::new(args.json);
    let measured = measure(&compiled, &data.groups, &settings, &mut |count, elapsed| {
        let what = format!("{count} inferences");
        match limits.duration > Duration::ZERO {
            true => {
                line.bar(elapsed.as_millis() as usize, limits.duration.as_millis() as usize, &format!("ms, {what}"))
            }
            false => line.bar(count, iterations, "inferences"),
        }
    })?;
    line.clear();
    match measured.first {
        Some(first) => tell.info(format!("First inference took {} ms", milliseconds(first)))?,
        None => tell.info("Skipping warmup inference due to -no_warmup flag")?,
    }

    tell.step("")?;
    let groups = match data.names.len() {
        1 => vec![],
        _ if args.pcseq != Some(true) => vec![],
        n => (0..n)
            .map(|g| (data.names[g].clone(), Latency::of(&measured.latencies_of(g), args.latency_percentile)))
            .collect(),
    };
    let setup = [
        ("topology", model.name.clone()),
        ("target device", args.device.clone()),
        ("API", if limits.api == Api::Sync { "sync" } else { "async" }.to_string()),
        ("inference_only", (!fill_each).to_string()),
        ("precision", compiled.property(names::INFERENCE_PRECISION_HINT).unwrap_or_else(|_| "UNSPECIFIED".into())),
        ("batch size", data.groups[0].batch.to_string()),
        ("number of iterations", limits.iterations.to_string()),
        ("number of parallel infer requests", requests.to_string()),
        ("duration (ms)", limits.duration.as_millis().to_string()),
    ];
    let report = Report {
        command: command_line(),
        setup: setup.map(|(k, v)| (k.to_string(), v)).to_vec(),
        stages,
        latency: Latency::of(&measured.latencies, args.latency_percentile),
        measurement: measured,
        groups,
    };
    dump_config(args, &config, &tell)?;
    write_files(args, &compiled, &report, &tell)?;
    if args.json {
        return print_json(&report.to_json());
    }
    tell_counters(args, &report, &tell)?;
    summary(args, &compiled, &report, &tell)
}

/// How long to run, and how.
#[derive(Clone, Copy)]
struct Limits {
    api: Api,
    iterations: usize,
    duration: Duration,
}

impl Limits {
    fn of(args: &BenchArgs) -> Result<Limits> {
        let api = match (args.api, args.hint) {
            (Some(api), _) => api.into(),
            (None, Some(Hint::Latency)) => Api::Sync,
            _ => Api::Async,
        };
        let duration = match args.time {
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .map_err(|_| Error::usage(format!("-t {seconds} is not a number of seconds")))?,
            None if args.niter.is_some() => Duration::ZERO,
            None => DEFAULT_TIME,
        };
        Ok(Limits { api, iterations: args.niter.unwrap_or(0), duration })
    }
}

fn versions(core: &Core, args: &BenchArgs, tell: &Teller) -> Result<()> {
    tell.info("Carafe:")?;
    tell.info(format!("{:.<39} {}", "Build ", carafe::VERSION))?;
    tell.info("")?;
    tell.info("Device info:")?;
    for name in hardware_devices(&args.device)? {
        let version = core.device(&name)?.version();
        tell.info(&name)?;
        tell.info(format!("{:.<39} {}", "Build ", version.build))?;
        if let Ok(full) = core.get_property(&name, names::FULL_DEVICE_NAME) {
            tell.info(format!("{:.<39} {full}", "Name "))?;
        }
    }
    tell.info("")
}

fn dump_config(args: &BenchArgs, config: &DeviceConfig, tell: &Teller) -> Result<()> {
    let Some(file) = &args.dump_config else { return Ok(()) };
    write(file, &config.to_json())?;
    tell.info(format!("Configuration settings were dumped to {}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<()> {
    if let Some(dir) = file.parent().filter(|d| !d.as_os_str().is_empty()) {
        std::fs::create_dir_all(dir).map_err(|e| Error::io(format!("cannot make folder `{}`", dir.display()), &e))?;
    }
    files::write(file, text.as_bytes()).map_err(|e| Error::io(format!("cannot write `{}`", file.display()), &e))
}

struct Prepared {
    /// Empty for one that was imported.
    model: Model,
    compiled: CompiledModel,
}

fn import(
    core: &Core,
    args: &BenchArgs,
    path: &Path,
    properties: &Properties,
    tell: &Teller,
    stages: &mut Vec<(String, Duration)>,
) -> Result<Prepared> {
    if args.shape.is_some() || args.batch.is_some() || args.layout.is_some() {
        return Err(Error::usage("-shape, -b and -layout change a model, and an exported one cannot be changed"));
    }
    for _ in 4..7 {
        tell.step("")?;
        tell.info("Skipping the step for compiled model")?;
    }
    tell.step("")?;
    let start = Instant::now();
    let blob = files::map(path).map_err(|e| Error::io(format!("cannot read `{}`", path.display()), &e))?;
    let compiled = core.import_model(blob, &args.device, properties)?;
    took(tell, stages, "import model", "Import model", start)?;
    let name = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Prepared { model: Model::new(name), compiled })
}

fn compile(
    core: &Core,
    args: &BenchArgs,
    path: &Path,
    properties: &Properties,
    tell: &Teller,
    stages: &mut Vec<(String, Duration)>,
) -> Result<Prepared> {
    tell.step("")?;
    tell.info("Loading model files")?;
    let start = Instant::now();
    let (_, format) = args.format.model(args.model.as_ref())?;
    let request = ReadRequest { options: Some(&format), ..ReadRequest::new(path) };
    let request = ReadRequest { weights: args.weights.as_deref().map(Content::File), ..request };
    let shaped = args.shape.as_deref().map(shape_options).unwrap_or_default();
    let mut model = Conversion { options: shaped.clone(), ..Conversion::new(request) }.read(core)?;
    took(tell, stages, "read model", "Read model", start)?;
    tell.info("Original model I/O parameters:")?;
    tell_ports(tell, &model)?;

    tell.step("")?;
    let options = ConversionOptions {
        batch: args.batch,
        // benchmark_app writes NAME[NCHW] or [NCHW].
        source_layout: args.layout.as_deref().map(|l| {
            let l = l.trim().to_lowercase();
            match l.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                Some(only) if !only.contains('[') => only.to_string(),
                _ => l.replace('[', "(").replace(']', ")"),
            }
        }),
        ..shaped
    };
    if options != ConversionOptions::default() {
        let start = Instant::now();
        apply(&mut model, &options)?;
        let shapes: Vec<String> =
            Port::inputs_of(&model).iter().map(|p| format!("'{}': [{}]", p.name, p.shape)).collect();
        tell.info(format!("Reshaping model: {}", shapes.join(", ")))?;
        took(tell, stages, "reshape model", "Reshape model", start)?;
    }

    tell.step("")?;
    tell_ports(tell, &model)?;

    tell.step("")?;
    let before = peak_kb();
    let start = Instant::now();
    let compiled = core.compile_model(&model, &args.device, properties)?;
    took(tell, stages, "compile model", "Compile model", start)?;
    if let (Some(before), Some(after)) = (before, peak_kb()) {
        tell.info(format!("Start of compilation memory usage: Peak {before} KB"))?;
        tell.info(format!("End of compilation memory usage: Peak {after} KB"))?;
        tell.info(format!("Compile model ram used {} KB", after.saturating_sub(before)))?;
    }
    if compiled.property(names::LOADED_FROM_CACHE).is_ok_and(|v| v == "true") {
        tell.info("The compiled model came from the cache")?;
    }
    Ok(Prepared { model, compiled })
}

// Most virtual memory so far, where the system tells.
fn peak_kb() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    text.lines().find_map(|l| l.strip_prefix("VmPeak:")?.trim().trim_end_matches("kB").trim().parse().ok())
}

fn took(tell: &Teller, stages: &mut Vec<(String, Duration)>, name: &str, what: &str, start: Instant) -> Result<()> {
    let time = start.elapsed();
    stages.push((name.to_string(), time));
    tell.info(format!("{what} took {} ms", milliseconds(time)))
}

fn tell_ports(tell: &Teller, model: &Model) -> Result<()> {
    let layout = |v| Layout::of(model, v).ok().flatten().map_or("[...]".into(), |l| format!("[{l}]"));
    tell.ports("inputs", &Port::inputs_of(model), |i| {
        let id = model.parameters()[i];
        (model.node(id).name().to_string(), layout(id.into()))
    })?;
    tell.ports("outputs", &Port::outputs_of(model), |i| {
        let value = model.result_value(model.results()[i]);
        (model.node(value.node).name().to_string(), layout(value))
    })
}

fn tell_properties(
    core: &Core,
    args: &BenchArgs,
    model: &Model,
    compiled: &CompiledModel,
    tell: &Teller,
) -> Result<()> {
    tell.info("Model:")?;
    tell.info(format!("  NETWORK_NAME: {}", model.name))?;
    for p in core.device(&args.device)?.properties() {
        if p.name == names::SUPPORTED_PROPERTIES {
            continue;
        }
        match compiled.property(p.name) {
            Ok(value) if !value.is_empty() => tell.info(format!("  {}: {value}", p.name))?,
            _ => {}
        }
    }
    Ok(())
}

fn optimal(compiled: &CompiledModel) -> usize {
    let told = compiled.property(names::OPTIMAL_NUMBER_OF_INFER_REQUESTS).ok();
    told.and_then(|n| n.trim().parse().ok()).filter(|n| *n > 0).unwrap_or(1)
}

// Whole rounds of requests or groups, as benchmark_app counts.
fn aligned(iterations: usize, requests: usize, groups: usize, api: Api, tell: &Teller) -> Result<usize> {
    let round = if groups > requests { groups } else { requests };
    let whole = iterations.div_ceil(round) * round;
    if api == Api::Async && whole != iterations {
        let (by, count) = if groups > requests { ("input shapes", groups) } else { ("requests", requests) };
        tell.warn(format!(
            "Number of iterations was aligned from {iterations} to {whole} using number of {by} {count}"
        ))?;
        return Ok(whole);
    }
    Ok(iterations)
}

fn plan_text(limits: Limits, requests: usize, iterations: usize, args: &BenchArgs) -> String {
    let mut text = match limits.api {
        Api::Sync => "Start inference synchronously".to_string(),
        Api::Async => format!("Start inference asynchronously, {requests} inference requests"),
    };
    if let (Api::Async, Some(streams)) = (limits.api, &args.nstreams) {
        text.push_str(&format!(" using {streams} streams for {}", args.device));
    }
    let mut bounds = vec![];
    if limits.duration > Duration::ZERO {
        bounds.push(format!("{} ms duration", limits.duration.as_millis()));
    }
    if iterations > 0 {
        bounds.push(format!("{iterations} iterations"));
    }
    format!("{text}, limits: {}", bounds.join(", "))
}

// Options as they were given, with their values.
fn command_line() -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = vec![];
    for arg in std::env::args().skip(1).skip_while(|a| a != "bench").skip(1) {
        let is_option = arg.len() > 1 && arg.starts_with('-') && arg.parse::<f64>().is_err();
        match (is_option, rows.last_mut()) {
            (true, _) => {
                let (name, value) = arg.split_once('=').unwrap_or((&arg, ""));
                rows.push((name.to_string(), value.to_string()));
            }
            (false, Some((_, value))) if value.is_empty() => *value = arg,
            (false, _) => rows.push(("model".into(), arg)),
        }
    }
    rows
}

fn write_files(args: &BenchArgs, compiled: &CompiledModel, report: &Report, tell: &Teller) -> Result<()> {
    if let Some(file) = &args.exec_graph_path {
        if let Some(dir) = file.parent().filter(|d| !d.as_os_str().is_empty()) {
            std::fs::create_dir_all(dir)
                .map_err(|e| Error::io(format!("cannot make folder `{}`", dir.display()), &e))?;
        }
        convert::emit(&timed(compiled.runtime_model(), &report.measurement.counters.average()), file, &Log::default())?;
        tell.info(format!("Execution graph is stored to {}", file.display()))?;
    }
    if let Some(kind) = args.report_type {
        let folder = args.report_folder.clone().unwrap_or_else(|| PathBuf::from("."));
        let is_json = args.json_stats == Some(true);
        let (ending, counters) = match is_json {
            true => ("json", report.counters_json(kind.counters()).map(|v| format!("{v:#}\n"))),
            false => ("csv", report.counters_csv(kind.counters())),
        };
        if let Some(text) = counters {
            let file = folder.join(format!("benchmark_{}_report.{ending}", kind.name()));
            write(&file, &text)?;
            tell.info(format!("Performance counters report is stored to {}", file.display()))?;
        }
        if let (Some(sort), Some(last)) = (args.pcsort, report.measurement.last.last().filter(|p| !p.is_empty())) {
            let rows = sorted(last, sort);
            let file = folder.join(format!("benchmark_sorted_report.{ending}"));
            let text = match is_json {
                true => format!("{:#}\n", Report::sorted_json(&rows)),
                false => Report::sorted_csv(&rows),
            };
            write(&file, &text)?;
            tell.info(format!("Sorted performance counters report is stored to {}", file.display()))?;
        }
        let file = folder.join(format!("benchmark_report.{ending}"));
        write(&file, &if is_json { format!("{:#}\n", report.stats_json()) } else { report.to_csv() })?;
        tell.info(format!("Statistics report is stored to {}", file.display()))?;
    }
    if let Some(file) = &args.html {
        write(file, &report.to_html())?;
        tell.info(format!("HTML report is stored to {}", file.display()))?;
    }
    Ok(())
}

// The graph with the mean time of each node, `execTimeMcs`, where times were taken.
fn timed(mut graph: Model, times: &[NodeProfile]) -> Model {
    for p in times {
        let Some(id) = graph.find_node(&p.name) else { continue };
        let time = match p.status {
            NodeStatus::Executed => p.real_time.as_micros().to_string(),
            _ => "not_executed".to_string(),
        };
        graph.rt_info_mut(id).set("execTimeMcs", "0", vec![("value".into(), time)]);
    }
    graph
}

// The longest first, or as they ran; `simple_sort` leaves out what did not run.
fn sorted(profile: &[NodeProfile], sort: CounterSort) -> Vec<NodeProfile> {
    let mut rows = profile.to_vec();
    if sort != CounterSort::NoSort {
        rows.sort_by_key(|p| std::cmp::Reverse(p.real_time));
    }
    if sort == CounterSort::SimpleSort {
        rows.retain(|p| p.status == NodeStatus::Executed);
    }
    rows
}

fn tell_counters(args: &BenchArgs, report: &Report, tell: &Teller) -> Result<()> {
    let asked = args.pc == Some(true) || args.pcsort.is_some();
    if !asked {
        return Ok(());
    }
    if report.measurement.last.iter().all(Vec::is_empty) {
        return tell.warn(format!("{} gives no times of nodes", args.device));
    }
    for (i, profile) in report.measurement.last.iter().enumerate() {
        let rows = args.pcsort.map_or_else(|| profile.clone(), |sort| sorted(profile, sort));
        let word = if args.pcsort.is_some() { " sorted" } else { "" };
        tell.info(format!("Performance counts{word} for {i}-th infer request"))?;
        tell.raw(&counters(&rows, args.pcsort.is_some()))?;
    }
    Ok(())
}

fn summary(args: &BenchArgs, compiled: &CompiledModel, report: &Report, tell: &Teller) -> Result<()> {
    let devices = compiled.property("EXECUTION_DEVICES").unwrap_or_else(|_| args.device.clone());
    tell.info(format!("Execution Devices: {devices}"))?;
    tell.info(format!("Count:            {} iterations", report.measurement.latencies.len()))?;
    tell.info(format!("Duration:         {} ms", milliseconds(report.measurement.duration)))?;
    tell.info("Latency:")?;
    tell.latency(&report.latency)?;
    if !report.groups.is_empty() {
        tell.info("Latency for each data shape group:")?;
        for (i, (name, latency)) in report.groups.iter().enumerate() {
            tell.info(format!("{}. {name}", i + 1))?;
            tell.latency(latency)?;
        }
    }
    tell.info(format!("Throughput:   {:.2} FPS", report.measurement.throughput()))
}
