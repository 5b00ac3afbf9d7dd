//! A run whose steps happen in other processes, so that a device which ends its process, by a crash, an exit or a loop, fails
//! the step at hand and no other. A child runs steps from a number on and appends what happened to a journal, a line
//! for each event; when it is gone, the parent reads who was at work, and starts another behind that step.

use crate::plan::{Ended, Growing, Plan};
use crate::process::{End, last_words, wait};
use crate::report::{Report, Row, Verdict};
use crate::target::Target;
use carafe::{Error, Result};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// In a child: runs the steps from `first` on and writes the journal. Ends early, without an error, after a step that
/// did not end: its thread is still at work.
pub fn serve(target: &Arc<Target>, plan: &Plan, first: usize, journal: &Path) -> Result<()> {
    let shown = journal.display().to_string();
    let failed = |e: std::io::Error| Error::io(format!("cannot write `{shown}`"), &e);
    let mut file = OpenOptions::new().append(true).open(journal).map_err(failed)?;
    let mut note = |event: Value| writeln!(file, "{event}").map_err(failed);
    note(json!({"event": "start"}))?;
    let head = crate::head(target)?;
    note(json!({"event": "device", "full_name": head.full_name, "version": head.version}))?;
    let mut cases = None;
    for step in first..plan.len() {
        note(json!({"event": "begin", "step": step}))?;
        let ended = plan.run(step, target, &mut cases)?;
        let (word, text) = match &ended.verdict {
            None => ("none", ""),
            Some(Verdict::Passed) => ("passed", ""),
            Some(Verdict::Skipped(why)) => ("skipped", why.as_str()),
            Some(Verdict::Failed(message)) => ("failed", message.as_str()),
        };
        note(
            json!({"event": "end", "step": step, "verdict": word, "text": text, "ms": ended.time.as_millis() as u64}),
        )?;
        if ended.time >= target.patience {
            return Ok(());
        }
    }
    note(json!({"event": "done"}))
}

/// What the parent needs to know of the children it starts.
pub struct Children<'a> {
    pub device: &'a str,
    /// A command that calls `serve` with the step and the journal it is given.
    pub command: &'a dyn Fn(usize, &Path) -> Command,
    /// As that of the children's target.
    pub patience: Duration,
}

impl std::fmt::Debug for Children<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Children({})", self.device)
    }
}

/// Beyond the patience of the child itself, for its start and its end.
const LEEWAY: Duration = Duration::from_secs(10);

/// Runs a plan in children. `hear` is told of each step as it begins.
pub fn run(plan: &Plan, children: &Children<'_>, hear: &mut dyn FnMut(&str)) -> Result<Report> {
    let mut growing = Growing::new(Report { device: children.device.to_string(), ..Report::default() });
    let scratch = Scratch::new()?;
    let mut next = 0;
    while next < plan.len() {
        let told = one_child(plan, children, &scratch, next, hear)?;
        if let Some((full_name, version)) = told.device {
            (growing.report.full_name, growing.report.version) = (full_name, version);
        }
        let n_ended = told.ended.len();
        for (step, ended) in told.ended {
            growing.add(plan, step, ended);
        }
        next += n_ended;
        if let Some(open) = told.open {
            growing.add(plan, open, failed(gone(&told.end, &told.words, children.patience)));
            next = open + 1;
        } else if !told.started {
            // It never came to the device: a wrong command line and the like, in its own words.
            let words = told.words.strip_prefix("carafe: ").unwrap_or(&told.words).trim_end().to_string();
            return match told.end {
                End::Code(_) if !words.is_empty() => Err(Error::invalid(words)),
                end => Err(Error::invalid(format!("{end} before it began"))),
            };
        } else if n_ended == 0 {
            let why = gone(&told.end, &told.words, children.patience);
            growing.report.behaviours.push(process_row("the_device_can_be_made", why));
            break;
        } else if next == plan.len() && !told.end.is_success() {
            // Everything was checked, and then it crashed: in a thread that was left, or when the library was closed.
            let why = gone(&told.end, &told.words, children.patience);
            growing.report.behaviours.push(process_row("the_process_ends_in_peace", why));
        }
    }
    Ok(growing.finish())
}

fn failed(message: String) -> Ended {
    Ended { verdict: Some(Verdict::Failed(message)), time: Duration::ZERO }
}

fn process_row(name: &'static str, why: String) -> Row {
    Row { suite: "process", name, verdict: Verdict::Failed(why), time: Duration::ZERO }
}

fn gone(end: &End, words: &str, patience: Duration) -> String {
    let mut text = end.to_string();
    if *end == End::Killed {
        text.push_str(&format!(" within {} s", patience.as_secs_f32()));
    }
    match words.trim() {
        "" => text,
        words => format!("{text}; its last words:\n{words}"),
    }
}

/// What a child left behind.
#[derive(Default)]
struct Told {
    started: bool,
    device: Option<(String, String)>,
    ended: Vec<(usize, Ended)>,
    /// The step that began and did not end.
    open: Option<usize>,
    end: End,
    words: String,
}

impl Default for End {
    fn default() -> End {
        End::Code(0)
    }
}

fn one_child(
    plan: &Plan,
    children: &Children<'_>,
    scratch: &Scratch,
    first: usize,
    hear: &mut dyn FnMut(&str),
) -> Result<Told> {
    let (journal, errors) = (scratch.0.join("journal"), scratch.0.join("stderr"));
    let io = |what: &str, e: std::io::Error| Error::io(format!("{what} for a child process"), &e);
    File::create(&journal).map_err(|e| io("cannot make a journal", e))?;
    let stderr = File::create(&errors).map_err(|e| io("cannot make a file", e))?;
    let mut command = (children.command)(first, &journal);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(stderr);
    let mut child: Child = command.spawn().map_err(|e| io("cannot start the program", e))?;
    let mut lines = Lines::open(&journal).map_err(|e| io("cannot read the journal", e))?;
    let mut told = Told::default();
    let mut last = Instant::now();
    let waited = wait(&mut child, || {
        for line in lines.fresh() {
            last = Instant::now();
            told.take(&line, plan, hear);
        }
        last.elapsed() > children.patience + LEEWAY
    });
    told.end = waited.map_err(|e| io("cannot wait", e))?;
    lines.fresh().iter().for_each(|line| told.take(line, plan, hear));
    let all = std::fs::read(&errors).unwrap_or_default();
    told.words = last_words(&String::from_utf8_lossy(&all));
    Ok(told)
}

impl Told {
    fn take(&mut self, line: &str, plan: &Plan, hear: &mut dyn FnMut(&str)) {
        let Ok(event) = serde_json::from_str::<Value>(line) else { return };
        let text = |key: &str| event[key].as_str().unwrap_or_default().to_string();
        let step = event["step"].as_u64().map(|n| n as usize).filter(|n| *n < plan.len());
        match (event["event"].as_str(), step) {
            (Some("start"), _) => self.started = true,
            (Some("device"), _) => self.device = Some((text("full_name"), text("version"))),
            (Some("begin"), Some(step)) => {
                hear(&plan.name(step));
                self.open = Some(step);
            }
            (Some("end"), Some(step)) => {
                let verdict = match event["verdict"].as_str() {
                    Some("passed") => Some(Verdict::Passed),
                    Some("skipped") => Some(Verdict::Skipped(text("text"))),
                    Some("failed") => Some(Verdict::Failed(text("text"))),
                    _ => None,
                };
                let time = Duration::from_millis(event["ms"].as_u64().unwrap_or(0));
                self.ended.push((step, Ended { verdict, time }));
                self.open = None;
            }
            _ => {}
        }
    }
}

/// Whole lines of a file that another process writes.
struct Lines {
    file: File,
    rest: Vec<u8>,
}

impl Lines {
    fn open(path: &Path) -> std::io::Result<Lines> {
        Ok(Lines { file: File::open(path)?, rest: vec![] })
    }
    fn fresh(&mut self) -> Vec<String> {
        // What cannot be read now is read the next time.
        let _ = self.file.read_to_end(&mut self.rest);
        let whole = self.rest.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
        let lines = self.rest.drain(..whole).collect::<Vec<u8>>();
        String::from_utf8_lossy(&lines).lines().map(str::to_string).collect()
    }
}

/// A folder of its own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch> {
        let path = std::env::temp_dir().join(format!("carafe-isolate-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|e| Error::io(format!("cannot make `{}`", path.display()), &e))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
