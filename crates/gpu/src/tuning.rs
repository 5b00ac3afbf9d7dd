//! Measured choices between ways to do the same work, kept in the folder of built kernels. Without a folder nothing is measured, and
//! the choice is the one that sizes and the device suggest. What is chosen changes times and the order of sums, nothing else.

use crate::backend::BuildCx;
use crate::error::told;
use crate::launch::{Arg, Launch};
use carafe_graph::{Error, Result};
use carafe_opencl::{Buffer, Queue};
use carafe_tensor::{Hash128, files};
use std::collections::HashMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// So many of the most promising ways are measured.
const TRIED: usize = 5;
/// Each is run so often, and the shortest time counts.
const RUNS: usize = 4;
/// The first line of the file.
const HEAD: &str = "carafe choices 1";

/// Choices that were made on a device, for each folder.
#[derive(Debug, Default)]
pub(crate) struct Choices(Mutex<HashMap<PathBuf, HashMap<String, String>>>);

impl Choices {
    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, HashMap<String, String>>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What was chosen for this work; the file is read when it is asked for the first time.
    fn known(&self, file: &Path, work: &str) -> Option<String> {
        self.lock().entry(file.to_path_buf()).or_insert_with(|| read(file)).get(work).cloned()
    }

    // A folder that cannot be written to costs time, nothing else.
    fn keep(&self, file: &Path, work: &str, choice: &str) {
        let mut all = self.lock();
        let own = all.entry(file.to_path_buf()).or_default();
        // Another process may have added some.
        read(file).into_iter().for_each(|(work, choice)| {
            own.entry(work).or_insert(choice);
        });
        own.insert(work.into(), choice.into());
        let mut lines: Vec<(&String, &String)> = own.iter().collect();
        lines.sort_unstable();
        let mut text = format!("{HEAD}\n");
        lines.iter().for_each(|(work, choice)| {
            let _ = writeln!(text, "{work}\t{choice}");
        });
        if file.parent().is_some_and(|folder| std::fs::create_dir_all(folder).is_ok()) {
            let _ = files::write(file, text.as_bytes());
        }
    }
}

fn read(file: &Path) -> HashMap<String, String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut lines = text.lines();
    if lines.next() != Some(HEAD) {
        return HashMap::new();
    }
    lines
        .filter_map(|line| line.split_once('\t'))
        .map(|(work, choice)| (work.to_string(), choice.to_string()))
        .collect()
}

// One file for each device and driver.
fn file(cx: &BuildCx, folder: &Path) -> PathBuf {
    let info = cx.machine.info();
    let mut hash = Hash128::default();
    [&info.name, &info.driver, &info.version].iter().for_each(|part| hash.bytes(part.as_bytes()));
    folder.join(format!("{:032x}.choices", hash.finish()))
}

/// The way to do `work` out of several, the most promising first. `name` is unique among them, `launches` is what each does, over
/// values of at most `largest` bytes.
pub(crate) fn choose<W: Copy>(
    cx: &BuildCx,
    work: &str,
    ways: &[W],
    largest: usize,
    name: impl Fn(&W) -> String,
    launches: impl Fn(&W) -> Result<Vec<Launch>>,
) -> Result<Option<W>> {
    let (Some(folder), false) = (cx.folder(), ways.len() < 2) else { return Ok(ways.first().copied()) };
    let file = file(cx, folder);
    if let Some(known) = cx.machine.choices.known(&file, work)
        && let Some(way) = ways.iter().find(|w| name(w) == known)
    {
        return Ok(Some(*way));
    }
    let mut best: Option<(Duration, W)> = None;
    for way in ways.iter().take(TRIED) {
        // A way that the driver does not take is not chosen; without any the first is left.
        let Ok(time) = time(cx, &launches(way)?, largest) else { continue };
        if best.is_none_or(|(least, _)| time < least) {
            best = Some((time, *way));
        }
    }
    if let Some((_, way)) = &best {
        cx.machine.choices.keep(&file, work, &name(way));
    }
    Ok(best.map(|(_, way)| way))
}

// The shortest time of launches over memory of no particular content.
fn time(cx: &BuildCx, launches: &[Launch], largest: usize) -> Result<Duration> {
    let context = &cx.machine.context;
    let queue = Queue::new(context, true).map_err(told)?;
    let workspace = |arg: &Arg| if let Arg::Workspace(start, len) = arg { start + len } else { 0 };
    let own = launches.iter().flat_map(|l| &l.args).map(workspace).max().unwrap_or(0);
    let filled = |bytes: usize| -> Result<Arc<Buffer>> {
        let buffer = Buffer::new(context, bytes.max(4)).map_err(told)?;
        queue.fill(&buffer, 0, buffer.len() / 4 * 4, 0).map_err(told)?;
        Ok(buffer)
    };
    let (from, to, own) = (filled(largest)?, filled(largest)?, filled(own)?);
    let mut bound = vec![];
    for launch in launches {
        let mut kernel = launch.kernel.create()?;
        for (i, arg) in launch.args.iter().enumerate() {
            let set = match arg {
                Arg::Read(_) => kernel.set_buffer(i, &from),
                Arg::Write(_) => kernel.set_buffer(i, &to),
                Arg::Workspace(start, len) => kernel.set_buffer(i, &own.part(*start, *len).map_err(told)?),
                Arg::Buffer(buffer) => kernel.set_buffer(i, buffer),
                Arg::Int(n) => kernel.set_value(i, &n.to_ne_bytes()),
                Arg::Float(x) => kernel.set_value(i, &x.to_ne_bytes()),
                Arg::Value(bytes) => kernel.set_value(i, bytes),
                Arg::Local(bytes) => kernel.set_local(i, *bytes),
                Arg::Faults | Arg::Step => return Err(Error::invalid("work that refuses values is not measured")),
            };
            set.map_err(told)?;
        }
        bound.push((kernel, launch.global, launch.local));
    }
    let mut least = Duration::MAX;
    for _ in 0..RUNS {
        let mut events = vec![];
        for (kernel, global, local) in &bound {
            events.extend(queue.launch(kernel, *global, *local).map_err(told)?);
        }
        queue.finish().map_err(told)?;
        let times = events.iter().map(|e| e.time().map_err(told)).collect::<Result<Vec<_>>>()?;
        // A launch costs its gap too.
        least = least.min(times.iter().sum::<Duration>() + GAP * launches.len() as u32);
    }
    Ok(least)
}

/// Between two kernels of a queue.
const GAP: Duration = Duration::from_micros(2);
