//! A kernel file and the sources that it names: on disk, beside the file, or in memory.

use crate::xml::MOST_BYTES;
use carafe_graph::{Error, Result};
use carafe_tensor::files;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Larger sources are not read.
const MOST_SOURCE_BYTES: u64 = 16 << 20;

/// How exactly a file must follow its format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Whatever the format does not allow is an error.
    Strict,
    /// What is often written and has one meaning only is accepted, with a warning.
    #[default]
    Compatible,
}

/// The text of a kernel file, and where its sources are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFile {
    /// For messages: the path, or the name that memory was given.
    pub name: String,
    /// The XML.
    pub text: String,
    sources: Sources,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Sources {
    Folder(PathBuf),
    Memory(BTreeMap<String, String>),
    /// One text under every name.
    Single(String),
}

/// One source of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// For messages and the log of a build.
    pub name: String,
    /// OpenCL C.
    pub text: String,
}

impl KernelFile {
    /// Reads a file; its sources lie in its folder.
    pub fn open(path: &Path) -> Result<KernelFile> {
        let failed = |e: std::io::Error| Error::io(format!("cannot read the kernel file `{}`", path.display()), &e);
        let real = std::fs::canonicalize(path).map_err(failed)?;
        let bytes = files::read(&real, MOST_BYTES as u64).map_err(failed)?;
        let text = String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            Error::invalid(format!("the kernel file `{}` is not UTF-8 text: byte {at} is wrong", path.display()))
        })?;
        let folder = real.parent().map(Path::to_path_buf).unwrap_or_default();
        Ok(KernelFile { name: path.display().to_string(), text, sources: Sources::Folder(folder) })
    }
    /// From memory. Sources are found by the names that the text gives them.
    pub fn from_memory(name: &str, text: &str, sources: impl IntoIterator<Item = (String, String)>) -> KernelFile {
        KernelFile { name: name.into(), text: text.into(), sources: Sources::Memory(sources.into_iter().collect()) }
    }
    /// From memory, with one source that all names mean.
    pub fn with_source(name: &str, text: &str, source: &str) -> KernelFile {
        KernelFile { name: name.into(), text: text.into(), sources: Sources::Single(source.into()) }
    }

    /// The same with all sources that it names in memory, to be carried elsewhere.
    pub fn self_contained(&self) -> Result<KernelFile> {
        let mut sources = BTreeMap::new();
        for name in crate::xml::source_names(self)? {
            let text = self.source(&name)?.text;
            sources.insert(name, text);
        }
        Ok(KernelFile { name: self.name.clone(), text: self.text.clone(), sources: Sources::Memory(sources) })
    }

    /// The sources that are in memory, by name.
    pub fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        let list = if let Sources::Memory(all) = &self.sources { Some(all) } else { None };
        list.into_iter().flatten().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    pub(crate) fn source(&self, name: &str) -> Result<SourceText> {
        let (shown, bytes) = match &self.sources {
            Sources::Single(text) => (name.to_string(), text.clone().into_bytes()),
            Sources::Memory(all) => match all.get(name) {
                Some(text) => (name.to_string(), text.clone().into_bytes()),
                None => {
                    let known: Vec<&str> = all.keys().map(String::as_str).collect();
                    let known = if known.is_empty() { "none was given".into() } else { known.join(", ") };
                    return Err(Error::not_found(format!("there is no source `{name}` in memory; given: {known}")));
                }
            },
            Sources::Folder(folder) => {
                // Always below the folder, also a name that begins with a slash; only then as it stands.
                let beside = folder.join(name.trim_start_matches('/'));
                let path = if beside.exists() || !Path::new(name).is_absolute() { beside } else { name.into() };
                let failed = |e| Error::io(format!("cannot open kernel file `{}`", path.display()), &e);
                (path.display().to_string(), files::read(&path, MOST_SOURCE_BYTES).map_err(failed)?)
            }
        };
        let is_binary = bytes.starts_with(b"\x7fELF") || bytes.windows(13).any(|w| w == b".neo_metadata");
        if is_binary {
            return Err(Error::unsupported(format!(
                "`{shown}` is a program compiled for a Myriad stick; this device builds kernels from source: name the .cl file \
                 that it was compiled from"
            )));
        }
        let text = String::from_utf8(bytes).map_err(|e| {
            let at = e.utf8_error().valid_up_to();
            Error::invalid(format!("kernel file `{shown}` is not UTF-8 text: byte {at} is wrong"))
        })?;
        if text.contains('\0') {
            return Err(Error::invalid(format!("kernel file `{shown}` has a zero byte in it")));
        }
        Ok(SourceText { name: shown, text })
    }
}

/// The files that a value of `CONFIG_FILE` names: one path, which may have blanks in it; several with `;` between them; or, where
/// that names no file, several with blanks between them. A path in double quotes is taken as it is.
pub fn config_files(value: &str) -> Vec<PathBuf> {
    let value = value.trim();
    if value.is_empty() {
        return vec![];
    }
    if Path::new(value).is_file() {
        return vec![value.into()];
    }
    let by_semicolon = outside_quotes(value, |c| c == ';');
    let parts = if by_semicolon.len() > 1 { by_semicolon } else { outside_quotes(value, char::is_whitespace) };
    let parts = parts.iter().map(|p| p.trim().trim_matches('"')).filter(|p| !p.is_empty());
    parts.map(PathBuf::from).collect()
}

/// What was read, unless something is wrong; then all that is, the first error in front.
pub(crate) fn all_or_errors<T>(found: Vec<T>, errors: Vec<Error>, file: &str) -> Result<Vec<T>> {
    const SHOWN: usize = 20;
    match errors.as_slice() {
        [] if found.is_empty() => Err(Error::invalid(format!("{file}: there is no <CustomLayer> in it"))),
        [] => Ok(found),
        [one] => Err(one.clone()),
        [first, ..] => {
            let mut lines: Vec<String> = errors.iter().take(SHOWN).map(Error::to_string).collect();
            if errors.len() > SHOWN {
                lines.push(format!("and {} more", errors.len() - SHOWN));
            }
            Err(Error::new(first.kind(), lines.join("\n")))
        }
    }
}

fn outside_quotes(text: &str, separates: impl Fn(char) -> bool) -> Vec<&str> {
    let (mut parts, mut start, mut quoted) = (vec![], 0, false);
    for (i, c) in text.char_indices() {
        if c == '"' {
            quoted = !quoted;
        } else if !quoted && separates(c) {
            parts.push(&text[start..i]);
            start = i + c.len_utf8();
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("carafe-kernels {name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        dir
    }

    #[test]
    fn a_path_with_blanks_is_one_file() {
        let dir = folder("blanks");
        let path = dir.join("my layers.xml");
        std::fs::write(&path, "<a/>").unwrap();
        let text = path.display().to_string();
        assert_eq!(config_files(&text), std::slice::from_ref(&path));
        assert_eq!(config_files(&format!("{text};b.xml")), [path.clone(), "b.xml".into()]);
        assert_eq!(config_files(&format!("\"{text}\" b.xml")), [path, "b.xml".into()]);
        assert_eq!(config_files(" a.xml  b.xml "), [PathBuf::from("a.xml"), "b.xml".into()]);
        assert!(config_files(" ").is_empty());
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn sources_lie_in_the_folder_of_the_file() {
        let dir = folder("beside");
        std::fs::write(dir.join("k.xml"), "").unwrap();
        std::fs::write(dir.join("k.cl"), "// source").unwrap();
        std::fs::write(dir.join("k.bin"), b"\x7fELF\x01\x01").unwrap();
        let file = KernelFile::open(&dir.join("k.xml")).unwrap();
        assert_eq!(file.source("k.cl").unwrap().text, "// source");
        assert_eq!(file.source("/k.cl").unwrap().text, "// source");
        assert!(file.source("none.cl").unwrap_err().to_string().contains("cannot open kernel file `"));
        assert!(file.source("k.bin").unwrap_err().to_string().contains("compiled for a Myriad stick"));
        std::fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn a_file_takes_its_sources_along() {
        let text = "<CustomLayer><Kernel><Source filename='a.cl'/></Kernel></CustomLayer><Source filename='b.cl'/>";
        let given = [("a.cl", "// a"), ("b.cl", "// b"), ("c.cl", "// c")].map(|(n, t)| (n.to_string(), t.to_string()));
        let file = KernelFile::from_memory("m.xml", text, given).self_contained().unwrap();
        assert_eq!(file.sources().collect::<Vec<_>>(), [("a.cl", "// a"), ("b.cl", "// b")]);
        let missing = KernelFile::from_memory("m.xml", text, []).self_contained();
        assert!(missing.unwrap_err().to_string().contains("there is no source `a.cl` in memory"));
        let single = KernelFile::with_source("m.xml", text, "// one").self_contained().unwrap();
        assert_eq!(single.sources().collect::<Vec<_>>(), [("a.cl", "// one"), ("b.cl", "// one")]);
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let e = KernelFile::open(Path::new("nowhere/k.xml")).unwrap_err();
        assert!(e.to_string().starts_with("cannot read the kernel file `nowhere/k.xml`"), "{e}");
    }

    #[test]
    fn a_source_that_memory_does_not_have_lists_those_it_has() {
        let file = KernelFile::from_memory("m", "", [("a.cl".to_string(), String::new())]);
        assert_eq!(file.source("b.cl").unwrap_err().to_string(), "there is no source `b.cl` in memory; given: a.cl");
        let single = KernelFile::with_source("m", "", "text");
        assert_eq!(single.source("any.cl").unwrap().text, "text");
    }
}
