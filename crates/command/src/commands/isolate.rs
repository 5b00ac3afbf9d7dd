//! This program again, in another process that may end in any way.

use super::{print, print_as_it_is, print_json};
use crate::args::QueryArgs;
use carafe::{Error, Result};
use carafe_conformance::process::{End, last_words, wait};
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The file of this program.
pub(crate) fn program() -> Result<PathBuf> {
    std::env::current_exe().map_err(|e| Error::io("cannot find this program to start it again", &e))
}

/// The same command line, without `--isolate`.
pub(crate) fn again(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(std::env::args_os().skip(1).filter(|a| a != "--isolate"));
    command
}

/// `carafe query --isolate`. Says whether the other process answered.
pub(crate) fn query(args: &QueryArgs) -> Result<bool> {
    let failed = |e: std::io::Error| Error::io("cannot ask in another process", &e);
    // The limit is this process's to keep.
    let mut command = Command::new(program()?);
    let mut given = std::env::args_os().skip(1);
    while let Some(arg) = given.next() {
        match arg.to_str() {
            Some("--isolate") => {}
            Some("--timeout") => drop(given.next()),
            Some(text) if text.starts_with("--timeout=") => {}
            _ => drop(command.arg(arg)),
        }
    }
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let (out, err) = (std::thread::spawn(move || all_of(out)), std::thread::spawn(move || all_of(err)));
    let (limit, start) = (Duration::from_secs(args.timeout), Instant::now());
    let end = wait(&mut child, || start.elapsed() > limit).map_err(failed)?;
    let [out, err] = [out, err].map(|t| t.join().unwrap_or_default());
    if let End::Code(0..=2) = end {
        eprint!("{err}");
        print_as_it_is(&out)?;
        return match end {
            End::Code(2) => std::process::exit(2),
            end => Ok(end.is_success()),
        };
    }
    let late = if end == End::Killed { format!(" within {} s", args.timeout) } else { String::new() };
    let words = last_words(&err);
    if args.json {
        let signal = if let End::Signal(n) = end { Some(n) } else { None };
        print_json(
            &json!({"device": args.device, "failed": format!("{end}{late}"), "signal": signal, "words": words}),
        )?;
        return Ok(false);
    }
    let words = if words.is_empty() { String::new() } else { format!("\nits last words:\n{words}\n") };
    print(&format!("device {} did not answer: {end}{late}{words}\n", args.device))?;
    Ok(false)
}

fn all_of(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        // What was written until the process ended.
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
