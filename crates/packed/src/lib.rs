//! Files inside of a program, deflated as one. A build script packs folders ([`pack`]), and the program unpacks them when the
//! first of them is asked for ([`Files`]).
//!
//! A folder may lie outside of its package and be linked into it: a checkout may lack the link, a published package has the folder
//! itself. So each folder is named twice, see [`Folder`].

#![forbid(unsafe_code)]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Files of one folder, not of those below it.
#[derive(Clone, Copy, Debug)]
pub struct Folder<'a> {
    /// The folder within the package, and the beginning of the names of its files.
    pub name: &'a str,
    /// Where it is when it is not there, from the package; empty when it is always there.
    pub else_at: &'a str,
    /// How the files end that are wanted.
    pub ends: &'a [&'a str],
}

/// For build scripts: writes the files of `folders` to `OUT_DIR/out`, and gives the lines by which the script has cargo look at them.
pub fn pack(out: &str, folders: &[Folder<'_>]) -> Result<String, Box<dyn Error>> {
    let package = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?);
    let (mut files, mut watched) = (Vec::new(), "cargo::rerun-if-changed=build.rs\n".to_string());
    for folder in folders {
        let linked = package.join(folder.name);
        let place = if linked.is_dir() { linked } else { package.join(folder.else_at) };
        let place = place.canonicalize().map_err(|e| format!("{}: {e}", place.display()))?;
        watched += &format!("cargo::rerun-if-changed={}\n", place.display());
        for path in files_of(&place, folder.ends)? {
            watched += &format!("cargo::rerun-if-changed={}\n", path.display());
            let name = path.file_name().and_then(|n| n.to_str()).ok_or("a file whose name is not text")?;
            files.push((format!("{}/{name}", folder.name), std::fs::read(&path)?));
        }
    }
    std::fs::write(PathBuf::from(std::env::var("OUT_DIR")?).join(out), packed(&files))?;
    Ok(watched)
}

fn files_of(folder: &Path, ends: &[&str]) -> std::io::Result<Vec<PathBuf>> {
    let mut all = std::fs::read_dir(folder)?.map(|e| Ok(e?.path())).collect::<std::io::Result<Vec<_>>>()?;
    all.retain(|p| p.is_file() && p.extension().is_some_and(|e| ends.iter().any(|w| e == *w)));
    all.sort();
    Ok(all)
}

/// A line with name and length before each file.
fn packed(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut all = Vec::new();
    for (name, bytes) in files {
        all.extend_from_slice(format!("{name}\t{}\n", bytes.len()).as_bytes());
        all.extend_from_slice(bytes);
    }
    miniz_oxide::deflate::compress_to_vec(&all, 9)
}

/// What [`pack`] wrote, as part of a program. A name that is not there, or text that is none, is a mistake of the program and panics.
///
/// ```text
/// static FILES: Files = Files::new(include_bytes!(concat!(env!("OUT_DIR"), "/kernels.deflate")));
/// ```
#[derive(Debug)]
pub struct Files {
    packed: &'static [u8],
    all: OnceLock<Vec<(&'static str, &'static [u8])>>,
}

impl Files {
    pub const fn new(packed: &'static [u8]) -> Files {
        Files { packed, all: OnceLock::new() }
    }

    /// Names and contents of all files, in the order of their folders and names.
    pub fn all(&self) -> &[(&'static str, &'static [u8])] {
        self.all.get_or_init(|| {
            let bytes =
                miniz_oxide::inflate::decompress_to_vec(self.packed).expect("what a build script packed unpacks");
            unpacked(bytes.leak())
        })
    }

    /// The file of this name.
    pub fn get(&self, name: &str) -> Option<&'static [u8]> {
        self.all().iter().find(|(n, _)| *n == name).map(|(_, bytes)| *bytes)
    }

    /// The text of the file of this name.
    pub fn text(&self, name: &str) -> &'static str {
        let bytes = self.get(name).unwrap_or_else(|| panic!("no file `{name}` was packed"));
        std::str::from_utf8(bytes).unwrap_or_else(|e| panic!("the packed file `{name}` is no text: {e}"))
    }
}

fn unpacked(mut rest: &'static [u8]) -> Vec<(&'static str, &'static [u8])> {
    let mut files = Vec::new();
    while let Some(line) = rest.iter().position(|&b| b == b'\n') {
        let (name, length) = std::str::from_utf8(&rest[..line])
            .ok()
            .and_then(|line| line.split_once('\t'))
            .and_then(|(name, length)| Some((name, length.parse().ok()?)))
            .expect("name and length before each file");
        let (file, after) = rest[line + 1..].split_at(length);
        files.push((name, file));
        rest = after;
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Files {
        let files = [("a/x.txt".to_string(), b"one\ntwo\t3\n".to_vec()), ("b/y.bin".to_string(), vec![0, 10, 255])];
        Files::new(packed(&files).leak())
    }

    #[test]
    fn files_come_out_as_they_went_in() {
        let files = two();
        assert_eq!(files.text("a/x.txt"), "one\ntwo\t3\n");
        assert_eq!(files.get("b/y.bin"), Some(&[0, 10, 255][..]));
        assert_eq!(files.all().iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["a/x.txt", "b/y.bin"]);
    }

    #[test]
    fn nothing_packed_is_no_file() {
        let files = Files::new(packed(&[]).leak());
        assert!(files.all().is_empty());
        assert_eq!(files.get("a"), None);
    }

    #[test]
    #[should_panic(expected = "no file `c` was packed")]
    fn a_name_that_is_not_there_is_told() {
        two().text("c");
    }
}
