//! `carafe compress-weights`: read, compress, write.

use super::{check_output, print, print_json, quantize, read_to_change, table};
use crate::progress::ProgressLine;
use crate::quantize_args::{CompressWeightsArgs, ModeArg};
use carafe::convert;
use carafe::quantize::{CompressOptions, CompressedWeights, WeightMode, compress_weights};
use carafe::{Core, Error, Log, Progress, Result};
use serde_json::json;
use std::fmt::Write;

pub(crate) fn run(core: &Core, args: &CompressWeightsArgs) -> Result<()> {
    check_output(&args.output)?;
    let options = options(args)?;
    let line = ProgressLine::new(false);
    let model = read_to_change(core, &args.model, &line)?;
    let bar = |done: usize, total: usize, what: &str| line.bar(done, total, what);
    let done = compress_weights(&model, &options, Progress::to(&bar));
    line.clear();
    let done = done?;
    line.stage("writing the model");
    let written = convert::emit(&done.model, &args.output, &Log::default());
    line.clear();
    written?;
    if args.json { print_json(&as_json(&done, args)) } else { print(&as_text(&done, args)) }
}

fn options(args: &CompressWeightsArgs) -> Result<CompressOptions> {
    let group_size = match args.group_size {
        -1 => None,
        n @ 1.. => Some(n as usize),
        n => return Err(Error::usage(format!("--group-size must be at least 1, or -1 for whole rows, found {n}"))),
    };
    Ok(CompressOptions {
        mode: match args.mode {
            ModeArg::Int8 => WeightMode::Int8,
            ModeArg::Int8Sym => WeightMode::Int8Sym,
            ModeArg::Int4Asym => WeightMode::Int4Asym,
            ModeArg::Int4Sym => WeightMode::Int4Sym,
        },
        group_size,
        ratio: args.ratio,
        ignored: quantize::scope(&args.ignored_scope)?,
    })
}

fn as_json(done: &CompressedWeights, args: &CompressWeightsArgs) -> serde_json::Value {
    let layers: Vec<_> = done
        .layers
        .iter()
        .map(|l| {
            json!({
                "name": l.name, "type": l.type_name, "weights": l.weights, "mode": l.mode.map(WeightMode::name),
                "group_size": l.group_size, "error": l.error, "note": l.note,
            })
        })
        .collect();
    json!({
        "xml": args.output, "bin": args.output.with_extension("bin"),
        "weight_bytes": {"before": done.bytes[0], "after": done.bytes[1]}, "layers": layers,
    })
}

fn as_text(done: &CompressedWeights, args: &CompressWeightsArgs) -> String {
    let mut rows = vec![["layer", "type", "weights", "stored as", "group", "error", ""].map(str::to_string)];
    for l in &done.layers {
        rows.push([
            l.name.clone(),
            l.type_name.clone(),
            l.weights.to_string(),
            l.mode.map_or("-", WeightMode::name).to_string(),
            if l.mode.is_some() { l.group_size.to_string() } else { "-".into() },
            if l.mode.is_some() { format!("{:.5}", l.error) } else { "-".into() },
            l.note.clone().unwrap_or_default(),
        ]);
    }
    let mut out = table(&rows);
    let [before, after] = done.bytes;
    let _ = writeln!(out, "weights: {before} bytes before, {after} after");
    let _ = writeln!(out, "{}\n{}", args.output.display(), args.output.with_extension("bin").display());
    out
}
