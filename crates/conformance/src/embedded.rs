//! The case files as part of the program, packed by `build.rs`. Their paths are those in the repository, for messages; nothing
//! is read from there.

use crate::case::{CaseError, CaseFile};
use carafe_graph::{Error, Result};
use std::path::Path;
use std::sync::LazyLock;

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/cases.deflate"));

/// Names and contents of all files, in the order of `build.rs`; unpacked once.
static FILES: LazyLock<Vec<(&str, &[u8])>> = LazyLock::new(|| {
    static ALL: LazyLock<Vec<u8>> =
        LazyLock::new(|| miniz_oxide::inflate::decompress_to_vec(PACKED).expect("what build.rs packed unpacks"));
    let (mut files, mut rest) = (Vec::new(), ALL.as_slice());
    while let Some(line) = rest.iter().position(|&b| b == b'\n') {
        let (name, length) = std::str::from_utf8(&rest[..line])
            .ok()
            .and_then(|line| line.split_once('\t'))
            .and_then(|(name, length)| Some((name, length.parse().ok()?)))
            .expect("build.rs wrote name and length");
        let (file, after) = rest[line + 1..].split_at(length);
        files.push((name, file));
        rest = after;
    }
    files
});

/// Every case file, in the order of their names; read once.
pub fn case_files() -> Result<&'static [CaseFile], CaseError> {
    static CASES: LazyLock<Result<Vec<CaseFile>, CaseError>> = LazyLock::new(|| {
        let cases = FILES.iter().filter(|(name, _)| name.ends_with(".case"));
        let read = |&(name, bytes): &(&str, &[u8])| {
            let text = std::str::from_utf8(bytes).expect("case files are text");
            CaseFile::parse(&Path::new("crates/testkit/cases").join(name), text)
        };
        cases.map(read).collect()
    });
    CASES.as_deref().map_err(Clone::clone)
}

/// Text and weights of a model that a case names.
pub(crate) fn model(file: &Path) -> Result<(&'static str, &'static [u8])> {
    let find = |file: &Path| {
        let name = file.file_name()?.to_str()?;
        FILES.iter().find(|(n, _)| *n == name).map(|(_, bytes)| *bytes)
    };
    let missing = || Error::not_found(format!("there is no model `{}` among the cases", file.display()));
    let text = std::str::from_utf8(find(file).ok_or_else(missing)?);
    let text = text.map_err(|e| Error::invalid(format!("the model `{}`: {e}", file.display())))?;
    Ok((text, find(&file.with_extension("bin")).unwrap_or_default()))
}
