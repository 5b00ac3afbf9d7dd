//! Puts a model on disk. Both files are written beside their final places and then renamed, so a failure leaves what was
//! there before, and weights that are mapped from the very file that is replaced stay readable.

use super::write_text;
use crate::WriteOptions;
use carafe_graph::{Error, Model, Result};
use carafe_tensor::files::Beside;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Writes `xml_path` and the weights beside it, with the extension `.bin`.
pub fn write_file(model: &Model, xml_path: &Path, options: &WriteOptions) -> Result<()> {
    write_both(model, xml_path, options).map_err(|e| e.at(format!("model `{}`", xml_path.display())))
}

fn write_both(model: &Model, xml_path: &Path, options: &WriteOptions) -> Result<()> {
    if !xml_path.extension().is_some_and(|e| e.eq_ignore_ascii_case("xml")) {
        return Err(Error::usage("the file of an IR must have the extension `.xml`"));
    }
    let bin_path = xml_path.with_extension("bin");
    for path in [xml_path, &bin_path] {
        if path.is_dir() {
            return Err(Error::usage(format!("`{}` is a folder", path.display())));
        }
    }
    let (mut bin, mut xml) = (beside(&bin_path)?, beside(xml_path)?);
    let mut out = BufWriter::with_capacity(1 << 20, bin.file());
    let text = write_text(model, options, &mut out)?;
    out.flush().map_err(|e| Error::io("cannot write weights", &e))?;
    drop(out);
    xml.file().write_all(text.as_bytes()).map_err(|e| Error::io("cannot write", &e))?;
    let failed = |path: &Path, e: &std::io::Error| Error::io(format!("cannot write `{}`", path.display()), e);
    bin.finish().map_err(|e| failed(&bin_path, &e))?;
    xml.finish().inspect_err(|_| drop(fs::remove_file(&bin_path))).map_err(|e| failed(xml_path, &e))
}

fn beside(target: &Path) -> Result<Beside<'_>> {
    Beside::create(target)
        .map_err(|e| Error::io(format!("cannot create a file in the folder of `{}`", target.display()), &e))
}
