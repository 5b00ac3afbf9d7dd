//! `carafe extension test` and `watch`: the table of what an extension does and does not.

use super::{build, print, print_json, table};
use crate::extension_args::TestArgs;
use carafe::{Core, Error, Extension, Result};
use carafe_conformance::extension::{Check, ModelCase, Outcome, check, read_cases};
use serde_json::json;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Builds and tests; false when a check failed.
pub(crate) fn run(args: &TestArgs) -> Result<bool> {
    if args.library.is_none() && args.build.dir.join("extension.py").is_file() {
        return python(&args.build.dir);
    }
    let library = match &args.library {
        Some(library) => library.clone(),
        None => build::run(&args.build)?,
    };
    let core = carafe::core();
    core.add_extension(library.clone())?;
    let extension = loaded(&core, &library)?;
    let cases_file = args.build.dir.join("tests/cases.json");
    let cases: Vec<ModelCase> = if cases_file.is_file() { read_cases(&cases_file)? } else { vec![] };
    if extension.ops.is_empty() && cases.is_empty() {
        return Err(Error::usage(format!(
            "nothing to test: `{}` brings no operation and there is no `{}`",
            library.display(),
            cases_file.display()
        )));
    }
    let (devices, absent) = devices(&core, args, &extension)?;
    let bar = std::io::stderr().is_terminal();
    let mut hear = |c: &Check| {
        if bar {
            eprint!("\r\x1b[K{} {} {}", c.subject, c.device, c.check);
        }
    };
    let mut checks = check(&core, &extension, &devices, &cases, &mut hear);
    if bar {
        eprint!("\r\x1b[K");
    }
    for (device, why) in absent {
        checks.push(Check { subject: "-".into(), device, check: "device", outcome: Outcome::Skipped(why) });
    }
    report(&checks, &library, args.json)
}

// A project in Python has nothing to build, and its tests are Python's.
fn python(dir: &Path) -> Result<bool> {
    let program = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let ran = std::process::Command::new(&program).args(["-m", "pytest", "-q"]).current_dir(dir).status();
    let ran = ran.map_err(|e| Error::io(format!("cannot run `{}`; PYTHON names another", program.display()), &e))?;
    Ok(ran.success())
}

fn loaded(core: &Core, library: &Path) -> Result<Extension> {
    let is_it = |e: &Extension| e.path.as_deref().is_some_and(|p| p.canonicalize().ok() == library.canonicalize().ok());
    let found = core.extensions().into_iter().find(is_it);
    found.ok_or_else(|| Error::invalid(format!("`{}` brings no extension", library.display())))
}

// Those asked for must be there; those that the extension has kernels for may be missing.
fn devices(core: &Core, args: &TestArgs, extension: &Extension) -> Result<(Vec<String>, Vec<(String, String)>)> {
    if !args.device.is_empty() {
        for device in &args.device {
            core.device(device.split(['.', ':']).next().unwrap_or_default())?;
            if let Some((_, why)) = core.missing_devices().iter().find(|(name, _)| name == device) {
                return Err(Error::not_found(format!("device `{device}`: {why}")));
            }
        }
        return Ok((args.device.clone(), vec![]));
    }
    let (mut here, mut absent) = (vec!["CPU".to_string()], vec![]);
    for name in ["GPU", "VPU"] {
        if !extension.cl_kernels.iter().any(|k| k.device == name) {
            continue;
        }
        let missing = core.missing_devices().into_iter().find(|(n, _)| n == name);
        match missing {
            Some((_, why)) => absent.push((name.to_string(), why)),
            None if core.device(name).is_ok() => here.push(name.to_string()),
            None => absent.push((name.to_string(), "this command was built without it".into())),
        }
    }
    Ok((here, absent))
}

fn report(checks: &[Check], library: &Path, as_json: bool) -> Result<bool> {
    let failed = checks.iter().filter(|c| matches!(c.outcome, Outcome::Failed(_))).count();
    if as_json {
        let row = |c: &Check| {
            let (result, note) = parts(&c.outcome);
            json!({"subject": c.subject, "device": c.device, "check": c.check, "result": result, "note": note})
        };
        let rows: Vec<_> = checks.iter().map(row).collect();
        print_json(&json!({"library": library.display().to_string(), "failed": failed, "checks": rows}))?;
        return Ok(failed == 0);
    }
    let mut rows = vec![["subject", "device", "check", "result", ""].map(str::to_string)];
    for c in checks {
        let (result, note) = parts(&c.outcome);
        let result = if result == "failed" { "FAILED" } else { result };
        rows.push([c.subject.clone(), c.device.clone(), c.check.to_string(), result.to_string(), note.to_string()]);
    }
    let passed = checks.iter().filter(|c| matches!(c.outcome, Outcome::Passed(_))).count();
    let hint = if failed > 0 { "; `carafe explain E0203` says what the checks mean" } else { "" };
    print(&format!(
        "{}{passed} passed, {failed} failed, {} skipped{hint}\n",
        table(&rows),
        checks.len() - passed - failed
    ))?;
    Ok(failed == 0)
}

fn parts(outcome: &Outcome) -> (&'static str, &str) {
    match outcome {
        Outcome::Passed(note) => ("passed", note),
        Outcome::Failed(why) => ("failed", why),
        Outcome::Skipped(why) => ("skipped", why),
    }
}

/// Tests again after each save, in a process of its own: a library that is loaded cannot be replaced.
pub(crate) fn watch(args: &TestArgs) -> Result<()> {
    let program = super::isolate::program()?;
    let mut seen = None;
    loop {
        let now = newest(&args.build.dir, 0);
        if now != seen {
            seen = now;
            print(&format!("== testing {}\n", args.build.dir.display()))?;
            let words = std::env::args_os().skip(1).map(|w| if w == "watch" { "test".into() } else { w });
            let status = std::process::Command::new(&program).args(words).status();
            let status = status.map_err(|e| Error::io("cannot start the test", &e))?;
            print(&format!(
                "== {}; waiting for changes, Ctrl-C ends\n",
                if status.success() { "passed" } else { "failed" }
            ))?;
            // What the build itself wrote is no change.
            seen = newest(&args.build.dir, 0).max(seen);
        }
        std::thread::sleep(Duration::from_millis(300));
    }
}

// When a source was saved last, and how many there are: a removed file is a change too.
fn newest(dir: &Path, depth: usize) -> Option<(SystemTime, usize)> {
    let mut all: Option<(SystemTime, usize)> = None;
    for entry in std::fs::read_dir(dir).ok()?.flatten() {
        let (path, name): (PathBuf, _) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if name.starts_with('.') || ["target", "build", "Cargo.lock"].contains(&&*name) {
            continue;
        }
        let found = match path.is_dir() {
            true if depth < 8 => newest(&path, depth + 1),
            true => None,
            false => entry.metadata().and_then(|m| m.modified()).ok().map(|t| (t, 1)),
        };
        all = match (all, found) {
            (Some((a, n)), Some((b, m))) => Some((a.max(b), n + m)),
            (a, b) => a.or(b),
        };
    }
    all
}
