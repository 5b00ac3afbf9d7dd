//! The case files as part of the program. Their paths are those in the repository, for messages; nothing is read from
//! there.

use crate::case::{CaseError, CaseFile};
use carafe_graph::{Error, Result};
use std::path::Path;
use std::sync::LazyLock;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Every case file, in the order of their names; read once.
pub fn case_files() -> Result<&'static [CaseFile], CaseError> {
    static FILES: LazyLock<Result<Vec<CaseFile>, CaseError>> = LazyLock::new(|| {
        let read = |(name, text): &(&str, &str)| CaseFile::parse(&Path::new("crates/testkit/cases").join(name), text);
        CASES.iter().map(read).collect()
    });
    FILES.as_deref().map_err(Clone::clone)
}

/// Text and weights of a model that a case names.
pub(crate) fn model(file: &Path) -> Result<(&'static str, &'static [u8])> {
    let find = |file: &Path| {
        let name = file.file_name()?.to_str()?;
        MODELS.iter().find(|(n, _)| *n == name).map(|(_, bytes)| *bytes)
    };
    let missing = || Error::not_found(format!("there is no model `{}` among the cases", file.display()));
    let text = std::str::from_utf8(find(file).ok_or_else(missing)?);
    let text = text.map_err(|e| Error::invalid(format!("the model `{}`: {e}", file.display())))?;
    Ok((text, find(&file.with_extension("bin")).unwrap_or_default()))
}
