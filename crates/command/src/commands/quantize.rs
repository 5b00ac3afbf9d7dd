//! `carafe quantize`: read, calibrate, quantize, compare, write.

use super::{check_output, print, print_json, read_to_change};
use crate::calibration::Data;
use crate::progress::ProgressLine;
use crate::quantize_args::{CalibrationArg, MetricArg, ModelTypeArg, PresetArg, QuantizeArgs};
use carafe::convert;
use carafe::quantize::{
    Calibration, IgnoredScope, Metric, ModelType, Preset, QuantizeOptions, Quantized, Report, quantize,
};
use carafe::{Core, Error, Log, Progress, Result};
use serde_json::json;
use std::fmt::Write;

pub(crate) fn run(core: &Core, args: &QuantizeArgs) -> Result<()> {
    check_output(&args.output)?;
    let options = options(args)?;
    let line = ProgressLine::new(false);
    let model = read_to_change(core, &args.model, &line)?;
    let data = Data::open(&args.data, &model, args.subset, &|done, total| line.bar(done, total, "samples read"))?;
    let bar = |done: usize, total: usize, what: &str| line.bar(done, total, what);
    let done = quantize(core, &model, &data, &options, Progress::to(&bar));
    line.clear();
    let Quantized { model, report } = done?;
    line.stage("writing the model");
    let written = convert::emit(&model, &args.output, &Log::default());
    line.clear();
    written?;
    if args.json { print_json(&as_json(&report, args)) } else { print(&as_text(&report, args)) }
}

/// What `--ignored-scope` lists.
pub(super) fn scope(list: &[String]) -> Result<IgnoredScope> {
    let mut scope = IgnoredScope::default();
    list.iter().filter(|text| !text.trim().is_empty()).try_for_each(|text| scope.add(text))?;
    Ok(scope)
}

fn options(args: &QuantizeArgs) -> Result<QuantizeOptions> {
    if args.percentile.is_nan() || args.percentile <= 0.0 || args.percentile > 100.0 {
        return Err(Error::usage(format!("--percentile must be above 0 and at most 100, found {}", args.percentile)));
    }
    let off = args.smooth_quant == -1.0;
    if !off && !(0.0..=1.0).contains(&args.smooth_quant) {
        return Err(Error::usage(format!("--smooth-quant must be from 0 to 1, or -1, found {}", args.smooth_quant)));
    }
    if let Some(drop) = args.max_drop.filter(|d| d.is_nan() || *d < 0.0) {
        return Err(Error::usage(format!("--max-drop must not be below 0, found {drop}")));
    }
    Ok(QuantizeOptions {
        calibration: match args.calibration {
            CalibrationArg::MinMax => Calibration::MinMax,
            CalibrationArg::Percentile => Calibration::Percentile(args.percentile),
            CalibrationArg::Entropy => Calibration::Entropy,
        },
        preset: args.preset.map(|p| match p {
            PresetArg::Performance => Preset::Performance,
            PresetArg::Mixed => Preset::Mixed,
        }),
        model_type: match args.model_type {
            ModelTypeArg::Auto => ModelType::Auto,
            ModelTypeArg::Transformer => ModelType::Transformer,
            ModelTypeArg::Other => ModelType::Other,
        },
        ignored: scope(&args.ignored_scope)?,
        smooth_quant: (!off).then_some(args.smooth_quant),
        bias_correction: !args.no_bias_correction,
        max_drop: args.max_drop,
        metric: match args.metric {
            MetricArg::Error => Metric::Error,
            MetricArg::Top1 => Metric::Top1,
        },
        device: args.device.clone(),
    })
}

fn preset(report: &Report) -> &'static str {
    match report.preset {
        Preset::Performance => "performance",
        Preset::Mixed => "mixed",
    }
}

fn metric(report: &Report) -> &'static str {
    match report.metric {
        Metric::Error => "error",
        Metric::Top1 => "top1",
    }
}

fn as_json(report: &Report, args: &QuantizeArgs) -> serde_json::Value {
    let layers: Vec<_> = report
        .layers
        .iter()
        .map(|l| {
            json!({
                "name": l.name, "type": l.type_name, "quantized": l.quantized, "error": l.error,
                "sqnr_db": l.sqnr_db(), "effect": l.effect, "reason": l.reason,
            })
        })
        .collect();
    let outputs: Vec<_> = report
        .outputs
        .iter()
        .map(|o| json!({"name": o.name, "error": o.error, "top1_changed": o.top1_changed}))
        .collect();
    json!({
        "xml": args.output, "bin": args.output.with_extension("bin"),
        "samples": report.samples, "preset": preset(report), "transformer": report.transformer,
        "metric": metric(report), "drop": report.drop, "max_drop": args.max_drop,
        "points": report.points, "smoothed": report.smoothed, "biases_corrected": report.corrected,
        "weight_bytes": {"before": report.bytes[0], "after": report.bytes[1]},
        "outputs": outputs, "layers": layers,
    })
}

fn as_text(report: &Report, args: &QuantizeArgs) -> String {
    let mut rows = vec![["layer", "type", "error", "sqnr", ""].map(str::to_string)];
    for l in &report.layers {
        let error = l.error.map_or("-".to_string(), |e| format!("{e:.5}"));
        let sqnr = l.sqnr_db().map_or("-".to_string(), |db| format!("{db:.1} dB"));
        let effect = l.effect.map(|e| format!(" (alone it costs {e:.5})")).unwrap_or_default();
        let reason = l.reason.as_ref().map(|why| format!("in float: {why}{effect}")).unwrap_or_default();
        rows.push([l.name.clone(), l.type_name.clone(), error, sqnr, reason]);
    }
    let mut out = super::table(&rows);
    let quantized = report.layers.iter().filter(|l| l.quantized).count();
    let _ = writeln!(
        out,
        "{quantized} of {} layers quantized with {} samples, preset {}: {} values rounded, {} smoothed, {} biases corrected",
        report.layers.len(),
        report.samples,
        preset(report),
        report.points,
        report.smoothed,
        report.corrected
    );
    for o in &report.outputs {
        let _ = write!(out, "output {}: error {:.5}", o.name, o.error);
        if let Some(share) = o.top1_changed {
            let _ = write!(out, ", greatest element changed in {:.2} % of rows", share * 100.0);
        }
        out.push('\n');
    }
    let [before, after] = report.bytes;
    let _ = writeln!(out, "weights: {before} bytes before, {after} after");
    let _ = writeln!(out, "{}\n{}", args.output.display(), args.output.with_extension("bin").display());
    out
}
