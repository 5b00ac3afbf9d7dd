//! The folder of the cache. Several processes may use it at once without a lock: an entry appears by a rename, whole, and
//! whoever has it mapped keeps it when it is removed or replaced. Files that are not entries are never touched.

use super::entry::{self, EntryInfo};
use carafe_graph::{Error, Result};
use carafe_tensor::{SharedBytes, files};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// Entries of compiled models in one folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheStore {
    dir: PathBuf,
}

/// A file of the cache.
#[derive(Clone, Debug)]
pub struct CacheEntry {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// When it was last read or written.
    pub last_used: SystemTime,
    /// `None` for a damaged file.
    pub info: Option<EntryInfo>,
}

impl CacheEntry {
    /// Whether this engine can never load it: it is damaged, or another version wrote it.
    pub fn is_stale(&self) -> bool {
        self.info.as_ref().is_none_or(|i| i.version != env!("CARGO_PKG_VERSION"))
    }
}

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// How many files.
    pub entries: usize,
    /// Their size together.
    pub bytes: u64,
}

/// A file that is being written; one as old as this was left behind by a process that ended early.
const PART: &str = "part";
const PART_AGE: Duration = Duration::from_secs(60 * 60);

impl CacheStore {
    /// Nothing is read or made yet.
    pub fn new(dir: impl Into<PathBuf>) -> CacheStore {
        CacheStore { dir: dir.into() }
    }

    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, key: u128) -> PathBuf {
        self.dir.join(format!("{key:032x}.blob"))
    }

    /// The payload of an entry and its file; `None` when there is no entry. A bad one is removed and told as an error.
    pub(crate) fn load(&self, key: u128) -> Result<Option<SharedBytes>> {
        let path = self.path(key);
        let file = match files::open(&path) {
            Ok(file) => file,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io(format!("cannot open `{}`", path.display()), &e)),
        };
        match entry::payload(&file, key) {
            Ok(bytes) => {
                // The order of use is in the times of change; where they cannot be set, entries age from their making.
                let _ = file.set_modified(SystemTime::now());
                Ok(Some(bytes))
            }
            Err(e) => {
                self.remove(key);
                Err(e.at(format!("removed `{}`", path.display())))
            }
        }
    }

    pub(crate) fn remove(&self, key: u128) {
        // It may be gone already, or not ours to remove.
        let _ = fs::remove_file(self.path(key));
    }

    /// Writes an entry beside its place and renames it. With a limit, the entries longest unused make room for it.
    pub(crate) fn store(
        &self,
        key: u128,
        info: &EntryInfo,
        limit: Option<u64>,
        export: impl FnOnce(&mut dyn Write) -> Result<()>,
    ) -> Result<()> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let failed = |e: std::io::Error| Error::io(format!("cannot write to `{}`", self.dir.display()), &e);
        fs::create_dir_all(&self.dir).map_err(failed)?;
        let unique = format!("{key:032x}.{}-{}.{PART}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let part = Part(self.dir.join(unique));
        let file = File::create_new(&part.0).map_err(failed)?;
        // Not synced: what a crash leaves of it is found out by its checksum.
        let size = entry::write(&file, key, info, export)?;
        drop(file);
        if let Some(limit) = limit.filter(|limit| size > *limit) {
            return Err(Error::unsupported(format!("an entry of {size} bytes is over the limit of {limit}")));
        }
        fs::rename(&part.0, self.path(key)).map_err(failed)?;
        if let Some(limit) = limit {
            self.shrink(limit, Some(&self.path(key)))?;
        }
        Ok(())
    }

    /// All entries, the one longest unused first. A folder that does not exist has none.
    pub fn list(&self) -> Result<Vec<CacheEntry>> {
        let is_entry = |path: &Path| is_key(path.file_stem()) && path.extension() == Some(OsStr::new("blob"));
        let mut all = Vec::new();
        for (path, bytes, last_used) in self.files()? {
            if is_entry(&path) {
                all.push(CacheEntry { info: entry::read_info(&path), path, bytes, last_used });
            }
        }
        carafe_graph::sort_by(&mut all, |a, b| (a.last_used, &a.path).cmp(&(b.last_used, &b.path)));
        Ok(all)
    }

    fn files(&self) -> Result<Vec<(PathBuf, u64, SystemTime)>> {
        let failed = |e: std::io::Error| Error::io(format!("cannot list `{}`", self.dir.display()), &e);
        let listing = match fs::read_dir(&self.dir) {
            Ok(listing) => listing,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
            Err(e) => return Err(failed(e)),
        };
        let mut files = Vec::new();
        for item in listing {
            let item = item.map_err(failed)?;
            // Another process may have removed it since.
            let Ok(meta) = item.metadata() else { continue };
            if meta.is_file() {
                files.push((item.path(), meta.len(), meta.modified().unwrap_or(SystemTime::UNIX_EPOCH)));
            }
        }
        Ok(files)
    }

    /// Removes what can never be loaded, then entries longest unused until the rest fits into the limit.
    pub fn prune(&self, limit: Option<u64>) -> Result<Removed> {
        let mut removed = Removed::default();
        for entry in self.list()?.iter().filter(|e| e.is_stale()) {
            removed.file(&entry.path, entry.bytes);
        }
        self.remove_left_parts(PART_AGE, &mut removed)?;
        if let Some(limit) = limit {
            let more = self.shrink(limit, None)?;
            removed.entries += more.entries;
            removed.bytes += more.bytes;
        }
        Ok(removed)
    }

    /// Removes every entry.
    pub fn clear(&self) -> Result<Removed> {
        let mut removed = Removed::default();
        for entry in self.list()? {
            removed.file(&entry.path, entry.bytes);
        }
        self.remove_left_parts(Duration::ZERO, &mut removed)?;
        Ok(removed)
    }

    fn shrink(&self, limit: u64, keep: Option<&Path>) -> Result<Removed> {
        let all = self.list()?;
        let mut total: u64 = all.iter().map(|e| e.bytes).sum();
        let mut removed = Removed::default();
        for entry in all.iter().filter(|e| Some(&*e.path) != keep) {
            if total <= limit {
                break;
            }
            removed.file(&entry.path, entry.bytes);
            total -= entry.bytes;
        }
        Ok(removed)
    }

    fn remove_left_parts(&self, age: Duration, removed: &mut Removed) -> Result<()> {
        for (path, bytes, changed) in self.files()? {
            let ours = path.extension() == Some(OsStr::new(PART))
                && is_key(path.file_name().and_then(|n| n.to_str()).and_then(|n| n.split('.').next()).map(OsStr::new));
            let old = changed.elapsed().is_ok_and(|passed| passed >= age);
            if ours && old {
                removed.file(&path, bytes);
            }
        }
        Ok(())
    }
}

impl Removed {
    fn file(&mut self, path: &Path, bytes: u64) {
        if fs::remove_file(path).is_ok() {
            self.entries += 1;
            self.bytes += bytes;
        }
    }
}

fn is_key(name: Option<&OsStr>) -> bool {
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    name.and_then(OsStr::to_str).is_some_and(|n| n.len() == 32 && n.chars().all(hex))
}

/// Removed unless it was renamed.
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
