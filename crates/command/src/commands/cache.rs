//! `carafe cache`: looks after the folder that `carafe run --cache_dir` fills.

use super::{print, print_json};
use crate::args::{CacheAction, CacheArgs};
use carafe::{CacheEntry, CacheStore, Error, Removed, Result, parse_size};
use serde_json::json;
use std::fmt::Write;
use std::time::SystemTime;

pub(crate) fn run(args: &CacheArgs) -> Result<()> {
    let dir = args.dir.as_ref().filter(|d| !d.as_os_str().is_empty());
    let dir = dir.ok_or_else(|| Error::usage("no folder: give --dir or set CARAFE_CACHE_DIR"))?;
    let store = CacheStore::new(dir);
    match &args.action {
        CacheAction::List { json } => list(&store, *json),
        CacheAction::Prune { max_size } => {
            let limit = max_size.as_deref().map(parse_size).transpose()?;
            removed(store.prune(limit)?)
        }
        CacheAction::Clear => removed(store.clear()?),
    }
}

fn removed(r: Removed) -> Result<()> {
    print(&format!("removed {} ({})\n", files(r.entries), size(r.bytes)))
}

fn files(n: usize) -> String {
    if n == 1 { "1 file".into() } else { format!("{n} files") }
}

fn list(store: &CacheStore, as_json: bool) -> Result<()> {
    let all = store.list()?;
    if as_json {
        let rows: Vec<_> = all.iter().map(row).collect();
        return print_json(&json!({"dir": store.dir(), "entries": rows}));
    }
    let mut out = String::new();
    for entry in all.iter().rev() {
        let (what, note) = match &entry.info {
            Some(i) if entry.is_stale() => {
                (format!("{} for {}", i.model, i.device), format!(", of version {}", i.version))
            }
            Some(i) => (format!("{} for {}", i.model, i.device), String::new()),
            None => ("damaged".to_string(), String::new()),
        };
        let name = entry.path.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(out, "{name}  {:>10}  used {} ago  {what}{note}", size(entry.bytes), age(entry));
    }
    let total = all.iter().map(|e| e.bytes).sum();
    let _ = writeln!(out, "{}, {} in {}", files(all.len()), size(total), store.dir().display());
    print(&out)
}

fn row(entry: &CacheEntry) -> serde_json::Value {
    let used = entry.last_used.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let info = entry.info.as_ref();
    json!({
        "file": entry.path, "bytes": entry.bytes, "last_used": used, "stale": entry.is_stale(),
        "model": info.map(|i| &i.model), "device": info.map(|i| &i.device), "version": info.map(|i| &i.version),
    })
}

fn size(bytes: u64) -> String {
    let scaled = |shift: u32| bytes as f64 / (1u64 << shift) as f64;
    match bytes {
        0..0x400 => format!("{bytes} B"),
        0x400..0x10_0000 => format!("{:.1} KiB", scaled(10)),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", scaled(20)),
        _ => format!("{:.1} GiB", scaled(30)),
    }
}

fn age(entry: &CacheEntry) -> String {
    match entry.last_used.elapsed().unwrap_or_default().as_secs() {
        s @ 0..60 => format!("{s} s"),
        s @ 60..3600 => format!("{} min", s / 60),
        s @ 3600..86_400 => format!("{} h", s / 3600),
        s => format!("{} d", s / 86_400),
    }
}
