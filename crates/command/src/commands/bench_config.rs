//! Properties that `carafe bench` compiles with: those of a file, and those that options stand for.

use super::bench_text::Teller;
use crate::bench_args::{BenchArgs, Hint};
use carafe::{Core, DeviceName, Error, Mutability, Result, files, properties as names};
use carafe_bench::{Api, CounterReport, DeviceConfig, hardware_devices, per_device};
use std::path::Path;

// What devices are compiled with: of the file, then of the options.
pub(super) fn configure(core: &Core, args: &BenchArgs, api: Api, tell: &Teller) -> Result<DeviceConfig> {
    let device = core.device(&args.device)?;
    let knows =
        |name: &str| device.properties().iter().any(|p| p.name == name && p.mutability == Mutability::ReadWrite);
    let is_made_of_others = knows(names::MULTI_DEVICE_PRIORITIES);
    let hardware = match is_made_of_others && DeviceName::parse(&args.device)?.priorities.is_none() {
        true => core.available_devices(),
        false => hardware_devices(&args.device)?,
    };
    let mut config = match &args.load_config {
        Some(file) => read_config(file)?,
        None => DeviceConfig::default(),
    };
    // `CPU` of a file is meant for `CPU`, and `HETERO` for `HETERO:GPU,CPU`.
    let base = DeviceName::parse(&args.device)?.device;
    if base != args.device
        && !hardware.contains(&base)
        && let Some(of_base) = config.0.remove(&base)
    {
        let mine = config.of(&args.device);
        *mine = of_base.overlaid(mine);
    }
    let counted = wants_counters(args);
    let hinted = config.of(&args.device).get(names::PERFORMANCE_HINT).is_some();
    let hint = match (args.hint, api) {
        (Some(Hint::None), _) => None,
        (Some(Hint::Throughput), _) => Some("THROUGHPUT"),
        (Some(Hint::CumulativeThroughput), _) => Some("CUMULATIVE_THROUGHPUT"),
        (Some(Hint::Latency), _) => Some("LATENCY"),
        (None, _) if hinted => None,
        (None, Api::Sync) => Some("LATENCY"),
        (None, Api::Async) => Some("THROUGHPUT"),
    };
    match hint {
        Some(_) if !knows(names::PERFORMANCE_HINT) => {
            tell.warn(format!("Device {} does not support performance hint property(-hint).", args.device))?;
        }
        Some(hint) => {
            if args.hint.is_none() {
                tell.warn(format!(
                    "Performance hint was not explicitly specified in command line or config file. Device({}) performance hint will be set to {hint}.",
                    args.device
                ))?;
            }
            config.of(&args.device).set(names::PERFORMANCE_HINT, hint);
        }
        None => {}
    }
    if let Some(n) = args.nireq.filter(|_| knows(names::PERFORMANCE_HINT_NUM_REQUESTS)) {
        config.of(&args.device).set(names::PERFORMANCE_HINT_NUM_REQUESTS, n);
    }
    if counted && knows(names::PERF_COUNT) {
        config.of(&args.device).set(names::PERF_COUNT, true);
    } else if counted {
        tell.warn(format!("Device {} does not take times of nodes.", args.device))?;
    }
    if let Some(dir) = &args.cache_dir {
        config.of(&args.device).set(names::CACHE_DIR, dir.display());
    }
    let wanted = [
        ("-nstreams", names::NUM_STREAMS, args.nstreams.clone()),
        ("-infer_precision", names::INFERENCE_PRECISION_HINT, args.infer_precision.clone()),
        ("-nthreads", names::INFERENCE_NUM_THREADS, args.nthreads.map(|n| n.to_string())),
        ("-pin", names::ENABLE_CPU_PINNING, args.pin.map(|p| p.to_string())),
    ];
    for (option, property, value) in wanted {
        let Some(value) = value else { continue };
        let mut taken = false;
        for (name, value) in per_device(&value, &hardware, option)? {
            if core.device(&name)?.properties().iter().any(|p| p.name == property) {
                let to = if hardware.len() == 1 && !is_made_of_others { args.device.as_str() } else { name.as_str() };
                config.of(to).set(property, value);
                taken = true;
            }
        }
        if !taken {
            return Err(Error::usage(format!(
                "option `{option}`: no device of `{}` has the property {property}",
                args.device
            )));
        }
    }
    for text in &args.property {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| Error::usage(format!("property `{text}` must have the form KEY=VALUE")))?;
        config.of(&args.device).set(key.trim(), value);
    }
    for (name, properties) in config.0.iter().filter(|(name, _)| **name != args.device) {
        core.set_property(name, properties)?;
    }
    Ok(config)
}

fn wants_counters(args: &BenchArgs) -> bool {
    let by_report = args.report_type.is_some_and(|r| r.counters() != CounterReport::None);
    args.pc.unwrap_or(by_report || args.pcsort.is_some() || args.exec_graph_path.is_some())
}

fn read_config(file: &Path) -> Result<DeviceConfig> {
    let at = || format!("configuration `{}`", file.display());
    let text = files::read_text(file).map_err(|e| Error::io(format!("cannot read {}", at()), &e))?;
    DeviceConfig::from_json(&text).map_err(|e| e.at(at()))
}
