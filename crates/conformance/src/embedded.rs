//! The case files as part of the program, packed by `build.rs`. Their paths are those in the repository, for messages; nothing
//! is read from there.

use crate::case::{CaseError, CaseFile};
use carafe_graph::{Error, Result};
use carafe_packed::Files;
use std::path::Path;
use std::sync::LazyLock;

static FILES: Files = Files::new(include_bytes!(concat!(env!("OUT_DIR"), "/cases.deflate")));

/// Every case file, in the order of their names; read once.
pub fn case_files() -> Result<&'static [CaseFile], CaseError> {
    static CASES: LazyLock<Result<Vec<CaseFile>, CaseError>> = LazyLock::new(|| {
        let cases = FILES.all().iter().filter(|(name, _)| name.ends_with(".case"));
        let read =
            |&(name, _): &(&str, &[u8])| CaseFile::parse(&Path::new("crates/testkit").join(name), FILES.text(name));
        cases.map(read).collect()
    });
    CASES.as_deref().map_err(Clone::clone)
}

/// Text and weights of a model that a case names.
pub(crate) fn model(file: &Path) -> Result<(&'static str, &'static [u8])> {
    let find = |file: &Path| FILES.get(&format!("cases/models/{}", file.file_name()?.to_str()?));
    let missing = || Error::not_found(format!("there is no model `{}` among the cases", file.display()));
    let text = std::str::from_utf8(find(file).ok_or_else(missing)?);
    let text = text.map_err(|e| Error::invalid(format!("the model `{}`: {e}", file.display())))?;
    Ok((text, find(&file.with_extension("bin")).unwrap_or_default()))
}
