//! `carafe conformance`: whether a device does what every device must.

use super::print;
use crate::args::ConformanceArgs;
use carafe::{Core, Error, Properties, Result, files};
use carafe_conformance::{Plan, Report, Target, isolate};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// `make_core` gives a `Core` with the extensions and plugins of the command line, a new one with each call. Says
/// whether everything passed.
pub(crate) fn run(
    make_core: impl Fn() -> Result<Core> + Send + Sync + 'static,
    args: &ConformanceArgs,
) -> Result<bool> {
    let mut target = Target::new(&args.device, make_core);
    target.patience = Duration::from_secs(args.timeout);
    target.properties = properties(&args.property)?;
    let target = Arc::new(target);
    if let (Some(first), Some(journal)) = (args.first, &args.journal) {
        isolate::serve(&target, &Plan::new(&args.filter)?, first, journal)?;
        return Ok(true);
    }
    finish(args, watched(|hear| carafe_conformance::run(&target, &args.filter, hear))?)
}

/// As `run`, with the device in processes of their own.
pub(crate) fn run_isolated(args: &ConformanceArgs) -> Result<bool> {
    properties(&args.property)?;
    let plan = Plan::new(&args.filter)?;
    let program = super::isolate::program()?;
    let command = |first: usize, journal: &Path| {
        let mut command = super::isolate::again(&program);
        command.arg("--first").arg(first.to_string()).arg("--journal").arg(journal);
        command
    };
    let patience = Duration::from_secs(args.timeout);
    let children = isolate::Children { device: &args.device, command: &command, patience };
    finish(args, watched(|hear| isolate::run(&plan, &children, hear))?)
}

// Shows the name of the check at hand where someone watches.
fn watched(run: impl FnOnce(&mut dyn FnMut(&str)) -> Result<Report>) -> Result<Report> {
    let bar = std::io::stderr().is_terminal();
    let report = run(&mut |name: &str| {
        if bar {
            eprint!("\r\x1b[K{name}");
            let _ = std::io::stderr().flush();
        }
    });
    if bar {
        eprint!("\r\x1b[K");
    }
    report
}

fn finish(args: &ConformanceArgs, report: Report) -> Result<bool> {
    if let Some(file) = &args.html {
        write(file, &report.to_html())?;
    }
    if let Some(file) = &args.json {
        write(file, &format!("{:#}\n", report.to_json()))?;
    }
    print(&report.to_text(args.all))?;
    Ok(!report.has_failures())
}

fn properties(list: &[String]) -> Result<Properties> {
    let mut all = Properties::new();
    for item in list {
        let (name, value) =
            item.split_once('=').ok_or_else(|| Error::usage(format!("`{item}` is not of the form KEY=VALUE")))?;
        all.set(name, value);
    }
    Ok(all)
}

fn write(file: &Path, text: &str) -> Result<()> {
    files::write(file, text.as_bytes()).map_err(|e| Error::io(format!("cannot write `{}`", file.display()), &e))
}
